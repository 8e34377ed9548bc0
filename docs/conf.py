"""Sphinx: Markdown pages, some of them executed, and two written from the source before each build."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

from video2pde import __version__  # noqa: E402


def choose_cache(folder: Path) -> Path:
    """Keep the executed pages under the hash of the source, so that changed code executes them again."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    chosen = folder / digest.hexdigest()[:16]
    if not chosen.exists():
        shutil.rmtree(folder, ignore_errors=True)
    return chosen


def configure_kernel(folder: Path) -> None:
    """Give the kernel that executes the pages a configuration of its own, so that nobody's personal one has a say."""
    profile = folder / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    lines = ('c.IPKernelApp.log_level = "ERROR"', "c.HistoryManager.enabled = False", "")
    (profile / "ipython_kernel_config.py").write_text("\n".join(lines), encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(folder)
    # what it finds: the command `video2pde`, and the pages' own shell cells
    for name, path in {"PATH": Path(sys.executable).parent, "PYTHONPATH": HERE}.items():
        os.environ[name] = os.pathsep.join(filter(None, [str(path), os.environ.get(name, "")]))
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"


project = "video2pde"
author = "The video2pde developers"
copyright = "The video2pde developers, MIT licence"
version = release = __version__

extensions = ["myst_nb", "mathml"]
html_math_renderer = "mathml"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"video2pde {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
templates_path: list[str] = []

nb_execution_mode = "cache"
nb_execution_cache_path = str(choose_cache(ROOT / "build" / "docs"))
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_merge_streams = True
nb_render_markdown_format = "myst"

configure_kernel(ROOT / "build" / "ipython")
generate.write_pages(HERE)
