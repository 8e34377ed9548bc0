"""Open a page and see that it stays quiet."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


class watched_page:
    """Open a file and watch it: leaving the block asserts that nothing was logged, raised or requested."""

    def __init__(self, browser: Browser, file: Path, script: str = "", **context: object) -> None:
        options = {"viewport": {"width": 1366, "height": 900}, "color_scheme": "light"} | context
        self.context = browser.new_context(**options)
        if script:
            self.context.add_init_script(script)
        self.file = file
        self.noise: list[str] = []
        self.requests: list[str] = []

    def __enter__(self) -> Page:
        page = self.context.new_page()
        page.on("console", lambda message: self.noise.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.noise.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.noise.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(self.file.as_uri())
        page.wait_for_selector('.player[data-ready="true"]')
        let_it_draw(page)
        return page

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.noise == []
            outside = [url for url in self.requests if url != self.file.as_uri() and not url.startswith("data:")]
            assert outside == []


def let_it_draw(page: Page) -> None:
    """Wait until the browser has drawn twice: charts learn their width, and are drawn, after the first time."""
    page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def error_at(box: Locator, frame: int) -> float:
    """Let the law of a play box go on to a frame, step by step, and return its error against the film there."""
    box.get_by_role("button", name="Start again").click()
    for _ in range(frame):
        box.get_by_role("button", name="Step").click()
    wait_until(lambda: box.get_attribute("data-frame") == str(frame))
    return float(box.get_attribute("data-error") or "nan")


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Poll until something holds (the page's policy forbids the browser to evaluate conditions)."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
