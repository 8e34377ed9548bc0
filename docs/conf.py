"""Sphinx: Markdown pages, and two pages written from the source (settings and API) before each build."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

from video2pde import __version__  # noqa: E402

project = "video2pde"
author = "The video2pde developers"
copyright = "The video2pde developers, MIT licence"
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"video2pde {release}"
templates_path: list[str] = []

generate.write_pages(HERE)
