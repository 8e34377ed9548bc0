"""Views of the studio in a browser: entered, watched, pointed at, and kept as pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))
from studio_server import Client, TOKEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = ROOT / "docs" / "img"
HOSTILE = "<img src=x onerror=alert(1)>.npy"


def enter(browser: Browser, server: Client) -> dict[str, Any]:
    """Enter once, as the printed address does; all tests' pages share the cookie."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
    assert "token" not in page.url
    state = context.storage_state()
    context.close()
    return dict(state)


@contextmanager
def studio(browser: Browser, server: Client, session: dict[str, Any], path: str = "", **options: Any) -> Iterator[Page]:
    """Open a view and watch it: nothing may be logged, raised, or asked of anybody else."""
    size = {"viewport": {"width": 1366, "height": 900}, "color_scheme": "light"} | options
    context = browser.new_context(storage_state=session, **size)
    if AXE.is_file():
        context.add_init_script(path=AXE)
    page = context.new_page()
    noise: list[str] = []
    outside: list[str] = []
    here = f"http://127.0.0.1:{server.port}/"
    page.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: noise.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (noise.append("dialog"), dialog.dismiss()))
    page.on("request", lambda r: None if r.url.startswith((here, "data:", "blob:")) else outside.append(r.url))
    try:
        page.goto(here + path)
        yield page
    finally:
        context.close()
    assert noise == []
    assert outside == []


def picture(page: Page, name: str, **options: Any) -> None:
    """Keep a picture for the documentation, where it is asked for."""
    if os.environ.get("VIDEO2PDE_SCREENSHOTS"):
        page.wait_for_timeout(400)
        page.screenshot(path=PICTURES / f"studio-{name}.png", **options)


def violations(page: Page) -> list[str]:
    """Ask axe-core what stands in the way of people who cannot see or point."""
    if not AXE.is_file():
        return []
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    nodes = [(kind["id"], node) for kind in found["violations"] for node in kind["nodes"]]
    return [f"{name}: {node['html'][:120]} {node['failureSummary'][:200]}" for name, node in nodes]


def drag(page: Page, overlay: Locator, size: tuple[int, int], *points: tuple[float, float]) -> None:
    overlay.scroll_into_view_if_needed()
    box = overlay.bounding_box()
    assert box is not None
    places = [(box["x"] + x / size[0] * box["width"], box["y"] + y / size[1] * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=3)
    page.mouse.up()


def set_field(page: Page, label: str, value: str) -> None:
    field = page.get_by_label(label, exact=True)
    field.fill(value)
    field.press("Tab")
