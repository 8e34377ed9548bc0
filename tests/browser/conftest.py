"""A headless Chromium, with the sample page opened in it, or a studio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np
import pytest
from sample_page import sample_page
from studio_pages import enter, HOSTILE
from studio_server import Client, serving
from watching import watched_page

from video2pde.report.document import Page as Document
from video2pde.report.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def document() -> Document:
    return sample_page()


@pytest.fixture(scope="session")
def report(document: Document, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(document, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the system's Chromium (or the one that ``CHROMIUM`` names) with a fresh profile."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or set CHROMIUM to one")
    with api.sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield instance
        instance.close()


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Page]:
    """Open the report on a laptop's screen; fail on any console message, error or request."""
    with watched_page(browser, report) as page:
        yield page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a studio opens, with a recording of a hostile name in it."""
    root = tmp_path_factory.mktemp("recordings")
    np.save(root / HOSTILE, np.random.default_rng(1).integers(0, 255, (20, 24, 30), dtype=np.uint8))
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Client]:
    with serving(folder) as client:
        yield client


@pytest.fixture(scope="module")
def session(browser: Browser, server: Client) -> dict[str, Any]:
    """What lets pages into the studio."""
    return enter(browser, server)
