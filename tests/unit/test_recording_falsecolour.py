"""Pictures in false colours give their values back."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import binary_dilation

from video2pde.errors import InputError
from video2pde.recording import read_field
from video2pde.settings import RecordingSettings

ROWS, COLUMNS = 40, 60
VALUES = [0.5 + 0.45 * np.sin(np.arange(COLUMNS) / 9 + k / 3) * np.cos(np.arange(ROWS) / 11)[:, None] for k in range(4)]


def paint(values: np.ndarray, name: str) -> np.ndarray:
    return np.rint(255 * matplotlib.colormaps[name](values)[..., :3]).astype(np.uint8)


def settings(colours: str | None, **more: object) -> RecordingSettings:
    return RecordingSettings(
        observable="bright", colours=colours, fps=1.0, unclip=False, illumination="none", border=0, **more
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["viridis", "jet", "inferno"])
def test_a_named_map_is_turned_back(tmp_path: Path, name: str) -> None:
    for k, values in enumerate(VALUES):
        Image.fromarray(paint(values, name)).save(tmp_path / f"{k}.png")
    found = read_field(tmp_path, settings(name))
    # a map has 256 colours, and a colour 256 steps; jet has pure blue, yellow and red over several values
    assert np.abs(found.values - np.array(VALUES)).max() < (3 if name == "jet" else 2) / 256
    assert any(f"by {name}" in note for note in found.provenance.notes)
    wrong = read_field(tmp_path, settings(None))
    assert np.abs(wrong.values - np.array(VALUES)).max() > 0.1


def test_a_legend_gives_the_map_and_text_is_no_value(tmp_path: Path) -> None:
    bar = np.broadcast_to(np.linspace(1, 0, ROWS)[:, None], (ROWS, 6))
    for k, values in enumerate(VALUES):
        picture = paint(np.hstack([values, bar]), "plasma")
        picture[10:12, 20:24] = 255  # a label
        Image.fromarray(picture).save(tmp_path / f"{k}.png")
    found = read_field(tmp_path, settings(f"legend:{COLUMNS},0,6,{ROWS}", crop=(0, 0, COLUMNS, ROWS)))
    truth = np.array(VALUES)
    inside = np.ones((ROWS, COLUMNS), bool)
    inside[9:13, 19:25] = False
    assert np.abs(found.values - truth)[:, inside].max() < 0.015
    assert np.abs(found.values - truth)[:, ~inside].max() < 0.15


def test_what_is_drawn_over_the_pictures_is_left_out_of_the_law(tmp_path: Path) -> None:
    """A scale bar in all pictures, a clock whose digits change, and the legend."""
    bar = np.broadcast_to(np.linspace(1, 0, ROWS)[:, None], (ROWS, 6))
    for k, values in enumerate(VALUES):
        picture = paint(np.hstack([values, bar]), "plasma")
        picture[30:32, 5:15] = 255  # a scale bar
        picture[3:6, 30 + 2 * (k % 2) : 32 + 2 * (k % 2)] = 0  # digits
        Image.fromarray(picture).save(tmp_path / f"{k}.png")
    legend = f"legend:{COLUMNS},0,6,{ROWS}"
    found = read_field(tmp_path, settings(legend))
    drawn = np.zeros((ROWS, COLUMNS + 6), bool)
    drawn[30:32, 5:15] = drawn[3:6, 30:34] = drawn[:, COLUMNS:] = True
    assert found.mask is not None
    assert not found.mask[drawn].any()
    assert found.mask.sum() == (~binary_dilation(drawn)).sum()
    assert any("text, lines or a legend over" in note for note in found.provenance.notes)
    # with a mask of the user's: both
    both = read_field(tmp_path, settings(legend, crop=(0, 0, COLUMNS, ROWS), mask="u<0.9@0"))
    assert both.mask is not None
    assert 0 < both.mask.sum() < (both.values[0] < 0.9).sum()
    assert read_field(tmp_path, settings(legend, overlays="none")).mask is None
    # walls go round a droplet, not round letters
    assert read_field(tmp_path, settings(legend, edges="no_flux")).mask is None


def test_what_cannot_be_turned_back(tmp_path: Path) -> None:
    for k, values in enumerate(VALUES):
        Image.fromarray(np.rint(255 * values).astype(np.uint8)).save(tmp_path / f"{k}.png")
    with pytest.raises(InputError, match="not in colour"):
        read_field(tmp_path, settings("jet"))
    for k, values in enumerate(VALUES):
        Image.fromarray(paint(values, "jet")).save(tmp_path / f"{k}.png")
    with pytest.raises(InputError, match="no colour map is called"):
        read_field(tmp_path, settings("rainbowish"))
