"""Frames that an encoder made from others: measured, put right where they lag, left alone where they are worth more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.calibration.between import LONGEST, measure_lag, straighten
from video2pde.calibration.linearise import deconvolve_cells, prepare_window
from video2pde.errors import InputError
from video2pde.field import Field, Grid, held_back
from video2pde.recording import read_field
from video2pde.recording.synth import Camera, make_case, render_film

FRAMES, SIZE, GAP = 41, 24, 4


def moving() -> NDArray[np.float32]:
    """Give a blob that widens, as it would be without an encoder."""
    axis = np.linspace(-1, 1, SIZE)
    square = axis[:, None] ** 2 + axis**2
    width = 0.05 + 0.01 * np.arange(FRAMES)
    return np.asarray(np.exp(-square / width[:, None, None]) / 2, np.float32)


def marks(frames: int = FRAMES, gap: int = GAP) -> NDArray[np.bool_]:
    return np.asarray(np.arange(frames) % gap != 0)


def held(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Let every frame between repeat the last one that is not."""
    return values[np.arange(len(values)) // GAP * GAP]


def test_frames_that_repeat_are_put_on_the_curve_through_the_others() -> None:
    truth = moving()
    values = held(truth)
    before = np.abs(values - truth).max()
    assert measure_lag(values, marks())[0] == pytest.approx(0.5, abs=0.01)
    assert straighten(values, marks())
    assert np.abs(values - truth)[GAP:-GAP].max() < 0.01 * before
    assert np.abs(values - truth).max() < 0.05 * before  # one-sided at the ends
    np.testing.assert_array_equal(values[~marks()], truth[~marks()])


def test_frames_that_lead_are_put_right_as_well() -> None:
    truth = moving()
    values = truth[np.minimum(-(-np.arange(FRAMES) // GAP) * GAP, FRAMES - 1)]
    assert measure_lag(values, marks())[0] == pytest.approx(-0.5, abs=0.01)
    assert straighten(values, marks())
    assert np.abs(values - truth)[GAP:-GAP].max() < 1e-3


IRREGULAR = np.isin(np.arange(FRAMES), [1, 2, 5, 8, 9, 10, 14, 20, 21, 27, 28, 29, 33])


@pytest.mark.parametrize("between", [marks(), IRREGULAR], ids=["regular", "irregular"])
def test_frames_that_do_not_lag_are_left_alone(between: NDArray[np.bool_]) -> None:
    """Nor does noise make a lag, wherever the frames between lie."""
    truth = moving()
    noises = [np.random.default_rng(seed).normal(0, 0.05, truth.shape).astype(np.float32) for seed in range(6)]
    for values in (truth, *(truth + noise for noise in noises)):
        seen = values.copy()
        lag, known_to = measure_lag(seen, between)
        assert abs(lag) <= 3 * known_to
        assert not straighten(seen, between)
        np.testing.assert_array_equal(seen, values)


def test_an_encoder_that_is_late_is_not_waited_for() -> None:
    values = moving()
    values[1:4] = values[1:4][::-1]  # wrong, but neither late nor early on the whole
    assert straighten(values, marks(), held=0.3)
    assert np.abs(values - moving()).max() < 0.01


def test_noise_hides_no_lag() -> None:
    values = held(moving()) + np.random.default_rng(1).normal(0, 2e-3, (FRAMES, SIZE, SIZE)).astype(np.float32)
    assert 0.2 < measure_lag(values, marks())[0] < 0.5
    assert straighten(values, marks())


def test_names_without_meaning_change_nothing() -> None:
    """Films of such frames alone, and frames at the end without a later one."""
    values = held(moving())
    every = np.ones(FRAMES, bool)
    every[0] = every[LONGEST + 2] = False
    for between in (np.zeros(FRAMES, bool), np.ones(FRAMES, bool), every):
        seen = values.copy()
        straighten(seen, between, held=1.0)
        np.testing.assert_array_equal(seen, values)
    seen = values[:-2].copy()
    straighten(seen, marks()[:-2])
    np.testing.assert_array_equal(seen[-2:], values[-4:-2])
    assert (seen[:-2] != values[:-4]).any()


def test_a_still_picture_has_no_lag() -> None:
    assert measure_lag(np.full((FRAMES, 4, 4), 0.25, np.float32), marks()) == (0.0, 0.0)


def test_only_the_calibration_sees_frames_put_right() -> None:
    grid = Grid(SIZE, SIZE, 200.0, 200.0)
    values = held(moving())
    field = Field(values, np.arange(FRAMES) / 10, grid, between=marks())
    window = prepare_window(field)
    expected = deconvolve_cells(values)
    straighten(expected, marks(), held_back(values))
    np.testing.assert_array_equal(window.values, expected)
    np.testing.assert_array_equal(field.values, values)
    nodes = Field(values, np.arange(FRAMES) / 10, Grid(SIZE, SIZE, 200.0, 200.0, pitch="nodes"), between=marks())
    assert (prepare_window(nodes).values != values).any()
    np.testing.assert_array_equal(nodes.values, values)


def test_a_field_keeps_its_marks(tmp_path: Path) -> None:
    field = Field(moving(), np.arange(FRAMES) / 10, Grid(SIZE, SIZE, 200.0, 200.0), between=marks())
    np.testing.assert_array_equal(Field.load(field.save(tmp_path / "field.npz")).between, marks())
    np.testing.assert_array_equal(field.frames(slice(3, 20)).between, marks()[3:20])
    with pytest.raises(InputError, match="marks"):
        Field(moving(), np.arange(FRAMES) / 10, Grid(SIZE, SIZE, 200.0, 200.0), between=marks(12))


def test_a_film_says_which_of_its_frames_are_between(tmp_path: Path) -> None:
    """H.264 without noise has them, and they lag; lossless H.264 has none."""
    case = make_case("C", background=0.1, peak=0.85)
    film = render_film(case, tmp_path, Camera(size=(180, 180), frames=60, crf=18))
    field = read_field(film)
    assert field.between is not None
    assert 0.3 < field.between.mean() < 0.9
    assert not field.between[0]
    assert measure_lag(field.values, field.between)[0] > 0.02
    lossless = render_film(case, tmp_path / "lossless", Camera(size=(180, 180), frames=10, crf=0))
    assert read_field(lossless).between is None
