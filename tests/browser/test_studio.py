"""The whole story in a real browser: drop a film, prepare it, run it, play with its law, compare; and nobody is let in.

``VIDEO2PDE_SCREENSHOTS=1`` writes the pictures of the documentation anew.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from watching import error_at, let_it_draw, wait_until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))
from studio_server import Client, serving, TOKEN
from study_folders import make_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = ROOT / "docs" / "img"
HOSTILE = "<img src=x onerror=alert(1)>.npy"
SMALL = {"weak.test_functions": "300", "identifiability.stability_runs": "8", "calibration.replicates": "6"}


@pytest.fixture(scope="module")
def film(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 (none without a browser)
    """Render a small film with a law that is known: a = 9.005, β = 0.666 on a field of 200 image units."""
    folder = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "video2pde.cli", "synth", "C", "--out", str(folder), "--size", "240x200"]
    command += ["--crop", "40,20,160,160", "--frames", "60", "--noise", "0.003", "--quiet"]
    subprocess.run(command, check=True, timeout=120)
    return folder / "film.mp4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recordings")
    np.save(root / HOSTILE, np.random.default_rng(1).integers(0, 255, (20, 24, 30), dtype=np.uint8))
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Client]:
    with serving(folder) as client:
        yield client


@pytest.fixture(scope="module")
def session(browser: Browser, server: Client) -> dict[str, Any]:
    return enter(browser, server)


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


def test_a_study_opens_in_the_comparison(browser: Browser, tmp_path: Path) -> None:
    """From its card to the shared law, the forest plot and the tables; beside another study it is one row."""
    make_study(tmp_path / "ink")
    make_study(tmp_path / "other")
    make_study(tmp_path / "begun", finished=False)
    with serving(tmp_path) as client:
        session = enter(browser, client)
        with studio(browser, client, session) as page:
            page.get_by_role("link", name="ink", exact=True).click()
            page.wait_for_selector(".compare[data-ready] .player[data-ready=true]")
            let_it_draw(page)
            forest = page.locator("#films-and-law figure.chart").first
            wait_until(lambda: forest.locator(".series").count() == 3)  # films, all together, random-effects mean
            assert "deep <b>" in (forest.locator("svg[role=img]").text_content() or "")
            assert "[0.970, 1.030]" in page.locator(".coefficients").inner_text()
            assert violations(page) == []
            page.locator("#films-and-law").scroll_into_view_if_needed()
            picture(page, "study")
            page.go_back()
            for name in ("ink", "other"):
                page.get_by_label(f"Compare {name}", exact=True).check()
            page.get_by_role("button", name="Compare 2").click()
            wait_until(lambda: page.locator("figure[data-term=laplacian] .estimate").count() == 2)
            assert violations(page) == []
        for path in ("?view=compare&runs=ink", "?view=compare&runs=begun", ""):
            with studio(browser, client, session, path, viewport={"width": 390, "height": 800}) as page:
                page.locator(".view[data-ready]").wait_for()
                let_it_draw(page)
                assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
                if path.endswith("begun"):
                    assert "not finished" in page.locator(".view").inner_text()


def test_hostile_names_are_text_in_every_view(browser: Browser, server: Client, session: dict[str, Any]) -> None:
    quoted = HOSTILE.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("=", "%3D")
    views = ("", f"?view=prepare&film={quoted}", f"?view=run&run={quoted}", f"?view=compare&runs={quoted}")
    for path in (*views, f"?view=result&run={quoted}", "?view=queue"):
        context = browser.new_context(storage_state=session)  # type: ignore[arg-type]
        page = context.new_page()
        dialogs: list[str] = []
        page.on("dialog", lambda dialog, found=dialogs: (found.append(dialog.message), dialog.dismiss()))
        page.goto(f"http://127.0.0.1:{server.port}/{path}")
        page.locator(".view h1").first.wait_for()
        if path != "?view=queue":
            wait_until(lambda page=page: HOSTILE in page.locator(".view").inner_text())
        page.wait_for_timeout(200)  # time for what must not happen
        assert page.locator("img[src=x]").count() == 0
        assert dialogs == []
        context.close()


def test_the_keyboard_moves_the_crop(browser: Browser, server: Client, session: dict[str, Any], folder: Path) -> None:
    np.save(folder / "keys.npy", np.zeros((8, 50, 60), np.uint8))
    with studio(browser, server, session, "?view=prepare&film=keys.npy") as page:
        page.wait_for_selector(".prepare[data-planned]")
        page.get_by_label("after every change").uncheck()
        set_field(page, "Crop x0, y0, width, height", "10,10,30,20")
        page.locator(".overlay").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowDown")
        page.keyboard.press("Alt+ArrowLeft")
        field = page.get_by_label("Crop x0, y0, width, height")
        wait_until(lambda: field.input_value() == "11,20,29,20")
        page.keyboard.press("Control+z")
        wait_until(lambda: field.input_value() == "11,20,30,20")


def test_what_cannot_be_is_said_and_nothing_typed_is_lost(
    browser: Browser, server: Client, session: dict[str, Any], folder: Path
) -> None:
    np.save(folder / "typed.npy", np.zeros((8, 50, 60), np.uint8))
    context = browser.new_context(storage_state=session)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/?view=prepare&film=typed.npy")
    page.wait_for_selector(".prepare[data-planned]")
    page.get_by_label("after every change").uncheck()
    set_field(page, "Frames per second", "12")
    set_field(page, "Border cut off, pixels", "40")
    page.locator(".problems .note.error", has_text="a border of 40 pixels leaves").wait_for()
    assert page.get_by_label("Frames per second").input_value() == "12"
    page.reload()
    wait_until(lambda: page.get_by_label("Border cut off, pixels").input_value() == "40")
    assert page.get_by_label("Frames per second").input_value() == "12"
    context.close()


def test_a_channel_is_chosen(browser: Browser, server: Client, session: dict[str, Any], folder: Path) -> None:
    frames = np.full((12, 40, 50, 3), 220, np.uint8)
    for k, frame in enumerate(frames):
        frame[10:30, 10 : 20 + k, 2] = 60  # yellow
    np.save(folder / "yellow.npy", frames)
    with studio(browser, server, session, "?view=prepare&film=yellow.npy") as page:
        page.wait_for_selector(".prepare[data-planned]")
        page.get_by_label("after every change").uncheck()
        told = page.locator(".u-box ~ p, p.fine").filter(has_text="u from").first
        top = lambda: float(told.inner_text().split("to")[-1])  # noqa: E731
        wait_until(lambda: top() > 0.7)  # automatic: blue, in which the ink is dark
        page.get_by_label("Channel").select_option("luma")
        wait_until(lambda: top() < 0.3)
        # picture and command are two answers of the server: either may come first
        wait_until(lambda: "--set recording.channel=luma" in page.locator(".command").inner_text())
        assert violations(page) == []


def test_a_mask_is_drawn_and_kept(browser: Browser, server: Client, session: dict[str, Any], folder: Path) -> None:
    """A polygon and a stroke of the brush, less what is rubbed out, become a picture that the command names."""
    np.save(folder / "masked.npy", np.zeros((8, 50, 60), np.uint8))
    with studio(browser, server, session, "?view=prepare&film=masked.npy") as page:
        page.wait_for_selector(".prepare[data-planned]")
        page.get_by_label("after every change").uncheck()
        overlay, size = page.locator(".overlay"), (60, 50)
        page.get_by_label("Mask: polygon").check()
        for corner in ((10, 10), (30, 10), (30, 30), (10, 30)):
            drag(page, overlay, size, corner)
        page.keyboard.press("Enter")
        page.get_by_label("Mask: brush").check()
        page.get_by_label("Width of the brush").fill("6")
        drag(page, overlay, size, (40, 40), (50, 40))
        page.get_by_label("Mask: rub out").check()
        drag(page, overlay, size, (20, 20), (20, 21))
        page.get_by_role("button", name="Use this mask").click()
        wait_until(lambda: "--mask masked-mask.png" in (page.locator(".command").text_content() or ""))
        page.get_by_label("Threshold of u for the mask").fill("0.25")
        page.get_by_role("button", name="Mask: u above it in this frame").click()
        wait_until(lambda: "--mask 'u>0.25@3'" in (page.locator(".command").text_content() or ""))
    mask = np.asarray(Image.open(folder / "masked-mask.png"))
    assert mask.shape == (50, 60)
    assert [int(mask[y, x]) for x, y in ((12, 12), (28, 28), (45, 40), (20, 20), (5, 5), (45, 20))] == [
        255,
        255,
        255,
        0,
        0,
        0,
    ]


def test_a_stranger_sees_nothing(browser: Browser, server: Client, session: dict[str, Any]) -> None:  # noqa: ARG001
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    assert "Open the address that it printed" in page.locator("body").inner_text()
    assert page.locator("#studio").count() == 0
    context.close()


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
