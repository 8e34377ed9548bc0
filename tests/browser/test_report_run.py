"""The page of a real, small run in a real browser."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from watching import error_at, let_it_draw, wait_until, watched_page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))
from report_runs import HOSTILE, make_run, spreading_field

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def run(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 (no run without a browser)
    return make_run(spreading_field(), tmp_path_factory.mktemp("run"), HOSTILE)


def test_it_opens_and_says_what_was_found(browser: Browser, run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    with watched_page(browser, run / "report.html") as page:
        text = page.locator("body").inner_text()
        assert HOSTILE in text
        assert page.locator("img[src=x]").count() == 0
        assert f"{100 * result['test']['rrmse']:.3g}\u202f%" in page.locator(".verdict").inner_text()
        assert page.locator(".coefficients tbody tr").count() == len(result["selected"]["terms"]) + 2
        titles = page.locator("main h2").all_inner_texts()
        assert titles.index("Selection") < titles.index("The test window") < titles.index("Settings")
        marks = page.locator(".player").first.inner_text()
        assert re.search(r"train\s+validation\s+test", marks)


def test_the_law_can_be_played_with_from_the_file_alone(browser: Browser, run: Path) -> None:
    """From a frame of the film the law stays close to it; a coefficient that is wrong leads away; paint is seen."""
    with watched_page(browser, run / "report.html") as page:
        box = page.locator(".play-box[data-ready=true]")
        box.wait_for(timeout=20_000)
        box.scroll_into_view_if_needed()
        right = error_at(box, 25)
        assert right < 0.03
        slider = box.locator(".dial input[type=range]").first
        slider.focus()
        for _ in range(60):
            page.keyboard.press("ArrowRight")
        assert error_at(box, 25) > 1.5 * right
        box.get_by_role("button", name="Reset all").click()
        assert float(box.get_attribute("data-error") or "nan") == pytest.approx(0.0, abs=1e-9)
        box.get_by_role("button", name="Dye in the middle").click()
        assert float(box.get_attribute("data-error") or "nan") > 0.05
        # from another frame, and dye where the mouse is
        box.get_by_label("Start from this frame of the film").fill("10")
        wait_until(lambda: box.get_attribute("data-frame") == "10")
        assert float(box.get_attribute("data-error") or "nan") == pytest.approx(0.0, abs=1e-9)
        box.locator(".paintable").click(position={"x": 20, "y": 30})
        wait_until(lambda: float(box.get_attribute("data-error") or "nan") > 0.02)


def test_it_fits_a_phone_with_everything_unfolded(browser: Browser, run: Path) -> None:
    with watched_page(browser, run / "report.html", viewport={"width": 375, "height": 800}) as page:
        for fold in page.locator("main details").all():
            fold.evaluate("element => { element.open = true }")
        let_it_draw(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_an_unfinished_run_opens_too(browser: Browser, tmp_path: Path) -> None:
    from video2pde.publish import render_folder

    out = make_run(spreading_field(), tmp_path, "half.npz", until="validation")
    with watched_page(browser, render_folder(out, figures=False)) as page:
        assert "not finished" in page.locator(".verdict").inner_text()
        assert page.get_by_role("heading", name="Validation under both drift modes").count() == 1
        assert page.get_by_role("heading", name="The test window").count() == 0
