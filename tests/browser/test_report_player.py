"""The player in a real browser: its pixels are the field, and its controls do what they say."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import pytest
from sample_page import FRAMES, sample_field, sample_prediction, SIDE
from watching import wait_until, watched_page

from video2pde.field import Field, Windows
from video2pde.report.document import Head
from video2pde.report.document import Page as Document
from video2pde.report.films import make_player
from video2pde.report.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FIELD = sample_field()
WINDOWS = Windows.split(FRAMES)


def pixels(page: Page, panel: str) -> np.ndarray:
    """Read a panel's canvas as (y, x, rgba)."""
    values = page.evaluate(
        """key => { const shown = document.querySelector(`[data-panel=${key}] .screen canvas`);
           const copy = new OffscreenCanvas(shown.width, shown.height).getContext('2d', { willReadFrequently: true });
           copy.drawImage(shown, 0, 0);
           return btoa(String.fromCharCode(...copy.getImageData(0, 0, shown.width, shown.height).data)) }""",
        panel,
    )
    return np.frombuffer(base64.b64decode(values), np.uint8).reshape(SIDE, SIDE, 4)


def seek(page: Page, frame: int) -> None:
    page.evaluate(
        """frame => { const s = document.querySelector('.timeline input'); s.value = frame;
           s.dispatchEvent(new Event('input')) }""",
        frame,
    )


def frame_of(page: Page) -> int:
    return int(page.locator(".timeline input").input_value())


def predicted(frame: int) -> np.ndarray:
    first = WINDOWS.train_end if frame < WINDOWS.validation_end else WINDOWS.validation_end
    return sample_prediction(FIELD, first)[1][frame - first]


def levels_from_grey(page: Page, panel: str) -> np.ndarray:
    image = pixels(page, panel)
    assert (image[..., 3] == 255).all()
    assert (image[..., 0] == image[..., 1]).all()
    return image[..., 0].astype(float)


def test_grey_pixels_are_the_field_within_one_level(opened: Page) -> None:
    opened.get_by_label("Colour map").select_option("grey")
    low, high = float(FIELD.values.min()), float(FIELD.values.max())
    for frame in (0, 17, WINDOWS.train_end, 47, WINDOWS.validation_end + 5, FRAMES - 1):
        seek(opened, frame)
        shown = levels_from_grey(opened, "observed")
        expected = 255 * (FIELD.values[frame] - low) / (high - low)
        assert np.abs(shown - expected).max() <= 1.0
        if frame >= WINDOWS.train_end:
            forecast = np.clip(255 * (predicted(frame) - low) / (high - low), 0, 255)
            assert np.abs(levels_from_grey(opened, "predicted") - forecast).max() <= 1.0
        # A picture that is one column off, or upside down, must not pass for the field.
        assert np.abs(shown - np.roll(expected, 1, axis=1)).max() > 10.0
        assert np.abs(shown - expected[::-1]).max() > 10.0


def test_colours_are_those_of_the_map(opened: Page) -> None:
    seek(opened, 50)
    low, high = float(FIELD.values.min()), float(FIELD.values.max())
    for name in ("viridis", "cividis", "magma"):
        opened.get_by_label("Colour map").select_option(name)
        table = np.round(matplotlib.colormaps[name](np.arange(256))[:, :3] * 255)
        image = pixels(opened, "observed")[..., :3].astype(float)
        nearest = np.abs(image[:, :, None, :] - table).sum(axis=-1)
        assert nearest.min(axis=-1).max() == 0
        assert np.abs(nearest.argmin(axis=-1) - 255 * (FIELD.values[50] - low) / (high - low)).max() <= 1.5


def test_the_difference_is_neutral_at_zero_and_signed(opened: Page) -> None:
    seek(opened, 57)
    error = predicted(57) - FIELD.values[57]
    image = pixels(opened, "difference")[..., :3].astype(int)
    warm, cool = image[..., 0] - image[..., 2] > 40, image[..., 2] - image[..., 0] > 40
    assert warm.any()
    assert (error[warm] > 0).all()
    assert (error[cool] < 0).all()
    assert np.abs(image[np.abs(error) < 2e-4] - [245, 245, 242]).max() <= 6


def test_hover_reads_value_and_position(opened: Page) -> None:
    seek(opened, 52)
    row, column = 33, 51
    opened.locator(".panels").scroll_into_view_if_needed()
    box = opened.locator("[data-panel=observed] .screen").bounding_box()
    assert box is not None
    opened.mouse.move(box["x"] + box["width"] * (column + 0.5) / SIDE, box["y"] + box["height"] * (row + 0.5) / SIDE)
    readout = opened.locator(".player .readout")
    wait_until(lambda: readout.inner_text().startswith("x = "))
    said = readout.inner_text()
    ((x, y),) = re.findall(r"x = ([\d.]+), y = ([\d.]+) image units", said)
    assert (float(x), float(y)) == (
        pytest.approx(FIELD.grid.x[column], abs=1e-3),
        pytest.approx(FIELD.grid.y[row], abs=1e-3),
    )
    numbers = dict(re.findall(r"(observed|predicted|difference) ([−\d.]+)", said))
    step = float(np.ptp(FIELD.values)) / 255
    assert float(numbers["observed"]) == pytest.approx(FIELD.values[52, row, column], abs=step)
    assert float(numbers["predicted"]) == pytest.approx(predicted(52)[row, column], abs=step)
    error = predicted(52)[row, column] - FIELD.values[52, row, column]
    assert float(numbers["difference"].replace("−", "-")) == pytest.approx(error, abs=step)
    assert opened.locator("[data-panel=predicted] .panel-value").inner_text() == numbers["predicted"]


def test_it_plays_pauses_and_stops_at_the_end(opened: Page) -> None:
    seek(opened, 10)
    opened.get_by_label("Speed").select_option("0.25")  # it must not be over before Pause is heard
    opened.get_by_role("button", name="Play", exact=True).click()
    wait_until(lambda: frame_of(opened) > 13)
    opened.get_by_role("button", name="Pause").click()
    now = frame_of(opened)
    assert now < FRAMES - 1
    before = pixels(opened, "observed")
    time.sleep(0.3)
    assert frame_of(opened) == now
    opened.get_by_label("Speed").select_option("4")
    seek(opened, FRAMES - 6)
    opened.get_by_role("button", name="Play", exact=True).click()
    wait_until(lambda: opened.locator(".player .play").inner_text() == "Play")
    assert frame_of(opened) == FRAMES - 1
    assert not np.array_equal(before, pixels(opened, "observed"))


def test_keys_step_and_move_the_probe(opened: Page) -> None:
    seek(opened, 20)
    opened.locator(".panels").focus()
    for key, frame in (("ArrowRight", 21), ("ArrowLeft", 20), ("PageDown", 30), ("End", FRAMES - 1), ("Home", 0)):
        opened.keyboard.press(key)
        assert frame_of(opened) == frame
    opened.keyboard.press("Shift+ArrowRight")
    assert opened.locator(".readout").inner_text().startswith("x = 0.519, y = 0.506")
    opened.keyboard.press("Enter")
    wait_until(lambda: opened.locator(".trace .series.line").count() == 2)
    opened.keyboard.press("Escape")
    assert opened.locator(".trace").is_hidden()


def test_frames_without_a_prediction_say_so(opened: Page) -> None:
    seek(opened, 5)
    assert opened.locator("[data-panel=predicted] .missing").inner_text() == "no prediction for this frame"
    assert (pixels(opened, "predicted") == 0).all()
    seek(opened, 50)
    assert opened.locator("[data-panel=predicted] .missing").is_hidden()


def test_windows_are_marked_where_they_are(opened: Page) -> None:
    strip = opened.locator(".windows").bounding_box()
    assert strip is not None
    for index, window in enumerate((WINDOWS.train, WINDOWS.validation, WINDOWS.test)):
        box = opened.locator(".windows span").nth(index).bounding_box()
        assert box is not None
        assert (box["x"] - strip["x"]) / strip["width"] == pytest.approx(window.start / (FRAMES - 1), abs=0.01)
    seek(opened, WINDOWS.validation_end)
    assert opened.locator(".clock").inner_text().endswith(", test")
    seek(opened, WINDOWS.validation_end - 1)
    assert opened.locator(".clock").inner_text().endswith(", validation")


def test_the_colour_scale_can_be_set_and_reset(opened: Page) -> None:
    opened.get_by_label("Colour map").select_option("grey")
    seek(opened, 30)
    opened.get_by_role("spinbutton", name="from").fill("0.4")
    opened.get_by_role("spinbutton", name="to", exact=True).fill("0.6")
    opened.get_by_role("spinbutton", name="to", exact=True).press("Tab")
    expected = np.clip(255 * (FIELD.values[30] - 0.4) / 0.2, 0, 255)
    step = np.ptp(FIELD.values) / 0.2
    assert np.abs(levels_from_grey(opened, "observed") - expected).max() <= 0.5 * step + 1
    opened.get_by_role("spinbutton", name="from").fill("0.9")
    opened.get_by_role("spinbutton", name="from").press("Tab")
    assert np.abs(levels_from_grey(opened, "observed") - expected).max() <= 0.5 * step + 1
    opened.get_by_role("button", name="Reset colours").click()
    assert opened.get_by_label("Colour map").input_value() == "viridis"
    assert opened.get_by_role("spinbutton", name="to", exact=True).input_value() == "0.884"


def test_a_browser_that_cannot_unpack_films_says_so(browser: Browser, report: Path) -> None:
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector('.player[data-ready="failed"]')
    assert "2023 or later" in page.locator(".player").inner_text()
    context.close()


def test_what_is_masked_stays_blank(browser: Browser, tmp_path: Path) -> None:
    mask = np.hypot(FIELD.grid.x[None] - 0.5, FIELD.grid.y[:, None] - 0.5) < 0.4
    masked = Field(FIELD.values, FIELD.times, FIELD.grid, mask)
    page = Document("Masked", Head("v", "good", "s", player=make_player(masked)), ())
    with watched_page(browser, write_page(page, tmp_path / "masked.html")) as opened:
        assert np.array_equal(pixels(opened, "observed")[..., 3] == 255, mask)
        assert opened.locator(".panel").count() == 1


def test_a_damaged_film_says_so(browser: Browser, report: Path, tmp_path: Path) -> None:
    text = report.read_text()
    damaged = tmp_path / "damaged.html"
    damaged.write_text(re.sub(r'(id="film-0">)[^<]{40}', r"\1" + "A" * 40, text))
    context = browser.new_context()
    page = context.new_page()
    page.goto(damaged.as_uri())
    page.wait_for_selector('.player[data-ready="failed"]')
    assert "could not be read" in page.locator(".readout").inner_text()
    assert page.locator("#selection table").is_visible()
    context.close()
