"""The whole story in a real browser: drop a film, prepare it, run it, play with its law, compare.

``VIDEO2PDE_SCREENSHOTS=1`` writes the pictures of the documentation anew.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np
import pytest
from studio_pages import drag, picture, set_field, studio, violations
from studio_server import Client, serving
from watching import error_at, let_it_draw, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL = {"weak.test_functions": "300", "identifiability.stability_runs": "8", "calibration.replicates": "6"}


@pytest.fixture(scope="module")
def film(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 (none without a browser)
    """Render a small film with a law that is known: a = 9.005, β = 0.666 on a field of 200 image units."""
    folder = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "video2pde.cli", "synth", "C", "--out", str(folder), "--size", "240x200"]
    command += ["--crop", "40,20,160,160", "--frames", "60", "--noise", "0.003", "--quiet"]
    subprocess.run(command, check=True, timeout=120)
    return folder / "film.mp4"


def prepare(page: Page, film: Path) -> str:
    """Drop the film, crop it with the mouse, draw a ruler; return the command that the page shows."""
    page.wait_for_selector(".library[data-ready]")
    page.locator("input[type=file]").set_input_files(film)
    page.get_by_role("link", name="film.mp4").wait_for()
    page.get_by_role("link", name="film.mp4").click()
    page.wait_for_selector(".prepare[data-planned]")
    overlay, size = page.locator(".overlay"), (240, 200)
    drag(page, overlay, size, (1, 1), (20, 10), (40, 20))
    drag(page, overlay, size, (239, 199), (220, 190), (200, 180))
    page.get_by_label("Ruler", exact=True).check()
    page.get_by_label("Length of the line").fill("40")
    drag(page, overlay, size, (60, 60), (100, 60), (140, 60))
    command = page.locator(".command")
    wait_until(lambda: "--scale" in (command.text_content() or ""))
    return command.text_content() or ""


def test_the_whole_story(browser: Browser, server: Client, session: dict[str, Any], folder: Path, film: Path) -> None:
    with studio(browser, server, session) as page:
        text = prepare(page, film)
        crop = [int(v) for v in shlex.split(text)[shlex.split(text).index("--crop") + 1].split(",")]
        assert np.abs(np.array(crop) - [40, 20, 160, 160]).max() <= 2
        scale = shlex.split(text)[shlex.split(text).index("--scale") + 1]
        assert scale.endswith("mm")
        assert float(scale[:-2]) == pytest.approx(0.5, rel=0.02)
        # exact numbers, typed; and a step that is undone
        set_field(page, "Crop x0, y0, width, height", "40,20,160,160")
        set_field(page, "Size of a camera pixel", "0.5mm")
        set_field(page, "Every n-th frame", "3")
        page.get_by_role("button", name="Undo").click()
        set_field(page, "Grid rows, columns", "48,48")
        page.get_by_label("Preset").select_option("quick")
        page.get_by_text("All settings").click()
        for key, value in SMALL.items():
            page.get_by_label(key).fill(value)
            page.get_by_label(key).press("Tab")
        page.get_by_text("figures for a paper").click()
        wait_until(lambda: "--no-figures" in (page.locator(".command").text_content() or ""))
        page.get_by_text("All settings").click()
        page.wait_for_selector(".checks[data-done]", timeout=240_000)
        page.evaluate("window.scrollTo(0, 0)")
        picture(page, "prepare")
        assert violations(page) == []
        command = page.locator(".command").text_content() or ""
        assert "--every" not in command
        assert "--crop 40,20,160,160" in command
        page.get_by_role("button", name="Start the run").click()
        watch(page)
        page.get_by_role("link", name="Open the result").click()
        play(page)
    compare(browser, server, session, folder, command)
    look_on_a_phone(browser, server, session, "again")


def watch(page: Page) -> None:
    """See the stages pass by, with what they found, until the run is finished."""
    view = page.locator(".view.run")
    view.wait_for()
    counts: set[int] = set()

    def finished() -> bool:
        counts.add(int(view.get_attribute("data-done") or 0))
        return view.get_attribute("data-finished") == "true"

    wait_until(finished, 300)
    assert len(counts) >= 4, "the stages are to be seen one after the other"
    assert page.locator(".stage.done, .stage.cached").count() == int(view.get_attribute("data-done") or 0)
    page.locator(".live-section").first.wait_for()
    wait_until(lambda: view.get_attribute("data-job") == "done", 30)
    # the replicates of every law have been drawn as they came; they are folded away now that the report is there
    clouds = page.locator("[data-cloud]")
    assert clouds.count() >= 1
    assert {clouds.nth(k).get_attribute("data-draws") for k in range(clouds.count())} == {"6"}
    assert "calibration: done" in (page.locator(".log").text_content() or "")
    picture(page, "run")
    assert violations(page) == []


def play(page: Page) -> None:
    """Let the law run, and see the error rise when its coefficient is wrong."""
    page.wait_for_selector(".result[data-ready]")
    assert "mm²/s" in page.locator(".coefficients").inner_text()
    picture(page, "result")
    box = page.locator(".play-box[data-ready=true]")
    box.wait_for(timeout=20_000)
    box.scroll_into_view_if_needed()
    box.get_by_role("button", name="Run", exact=True).click()
    wait_until(lambda: int(box.get_attribute("data-frame") or 0) >= 20)
    box.get_by_role("button", name="Pause").click()
    right = error_at(box, 20)
    assert right < 0.05
    picture(page, "play")
    field = box.locator("input[type=number]").first
    field.fill(str(3 * float(field.input_value())))
    field.press("Tab")
    assert error_at(box, 20) > 1.5 * right
    box.get_by_role("button", name="Reset all").click()
    assert error_at(box, 20) == pytest.approx(right, rel=1e-9)
    assert violations(page) == []


def compare(browser: Browser, server: Client, session: dict[str, Any], folder: Path, command: str) -> None:
    """Repeat the run by its command, find the same result to the byte, and see the two side by side."""
    words = shlex.split(command)
    assert words[0] == "video2pde"
    out = words[words.index("--out") + 1]
    words[words.index("--out") + 1] = "again"
    done = subprocess.run(
        [sys.executable, "-m", "video2pde.cli", *words[1:]], cwd=folder, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((folder / name / "result.json").read_text()) for name in (out, "again"))
    for result in (first, second):
        result.pop("timings_s")
    assert json.dumps(first) == json.dumps(second)
    with studio(browser, server, session, "?view=queue") as page:
        page.locator(".job[data-state=done]").wait_for()
        picture(page, "queue")
        page.get_by_role("link", name="Library").click()
        page.wait_for_selector(".library[data-ready]")
        for name in (out, "again"):
            page.get_by_label(f"Compare {name}", exact=True).check()
        picture(page, "library")
        assert violations(page) == []
        page.get_by_role("button", name="Compare 2").click()
        page.wait_for_selector(".compare[data-ready]")
        wait_until(lambda: page.locator("figure[data-term=laplacian] .estimate").count() == 2)
        assert "All settings are the same" in page.locator(".compare").inner_text()
        page.locator(".panel canvas").nth(1).wait_for()
        picture(page, "compare", full_page=True)
        assert violations(page) == []


def look_on_a_phone(browser: Browser, server: Client, session: dict[str, Any], run: str) -> None:
    """See every view on a narrow screen, in light and dark."""
    views = {
        "": ".library[data-ready]",
        "?view=queue": ".job",
        f"?view=run&run={run}": ".live-section",
        f"?view=result&run={run}": ".result[data-ready] .play-box[data-ready=true]",
        f"?view=compare&runs={run}": ".compare[data-ready] .panel canvas",
        "?view=prepare&film=film.mp4": ".prepare[data-planned] .u-box canvas",
    }
    for scheme, path in [("light", path) for path in views] + [("dark", path) for path in views]:
        size = {"viewport": {"width": 375, "height": 800}, "color_scheme": scheme}
        with studio(browser, server, session, path, **size) as page:
            page.locator(views[path]).first.wait_for()
            let_it_draw(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= 375, path
            assert violations(page) == [], path
            if scheme == "dark" and "prepare" in path:
                picture(page, "phone")


def test_closing_the_studio_leaves_the_run(tmp_path: Path, film: Path) -> None:
    """The process of a run outlives the studio, and the next studio finds it at work or done."""
    shutil.copy(film, tmp_path / "film.mp4")
    small = {key: int(value) for key, value in SMALL.items()}
    settings = {"recording.crop": [40, 20, 160, 160], "recording.grid": [32, 32]} | small
    wish = {"film": "film.mp4", "preset": "quick", "settings": settings, "out": "run", "figures": False}
    with serving(tmp_path) as client:
        client.enter()
        assert client.post("jobs", wish).status == 201
    log = tmp_path / "run" / "log.txt"
    wait_until(lambda: log.is_file() and "drift: done" in log.read_text(), 120)
    with serving(tmp_path) as client:
        client.enter()

        def state() -> str:
            return str(json.loads((tmp_path / ".video2pde-studio" / "jobs.json").read_text())[0]["state"])

        assert state() in ("running", "done")
        wait_until(lambda: state() == "done", 300)
    assert (tmp_path / "run" / "result.json").is_file()
