"""The studio's views one by one: by keyboard and mouse, with hostile names, on a phone, and for strangers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TYPE_CHECKING

import numpy as np
from PIL import Image
from studio_pages import drag, enter, HOSTILE, picture, set_field, studio, violations
from studio_server import Client, serving
from study_folders import make_study
from watching import let_it_draw, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
