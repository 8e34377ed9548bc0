"""What an encoder does to a film: changes that it holds back, and B frames that are late, measured and corrected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.calibration.window import prepare_window
from video2pde.errors import InputError
from video2pde.field import Encoding, Field, Grid
from video2pde.field.cells import deconvolve_cells
from video2pde.recording import read_field, read_recording
from video2pde.recording.encoding import (
    also_held_back,
    copied_noise,
    correct_b_frames,
    held_back,
    LONGEST,
    measure_encoding,
    measure_lag,
)
from video2pde.recording.synth import Camera, make_case, Optics, render_film

FRAMES, SIZE, GAP = 41, 24, 4
LEVEL = 1 / 255


def moving() -> NDArray[np.float32]:
    """Return a blob that widens, as it would be without an encoder."""
    axis = np.linspace(-1, 1, SIZE)
    square = axis[:, None] ** 2 + axis**2
    width = 0.05 + 0.01 * np.arange(FRAMES)
    return np.asarray(np.exp(-square / width[:, None, None]) / 2, np.float32)


def marks(frames: int = FRAMES, gap: int = GAP) -> NDArray[np.bool_]:
    return np.asarray(np.arange(frames) % gap != 0)


def held(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Let every frame between repeat the last one that is not."""
    return values[np.arange(len(values)) // GAP * GAP]


def corrected(values: NDArray[np.float32], b_frames: NDArray[np.bool_]) -> NDArray[np.float32] | None:
    """Correct B frames where they are seen to be late, as a calibration does; None where they are not."""
    if not measure_encoding(values, LEVEL, b_frames).late_b_frames:
        return None
    seen = values.copy()
    correct_b_frames(seen, b_frames)
    return seen


def test_b_frames_that_repeat_are_replaced_by_the_curve_through_the_others() -> None:
    truth = moving()
    repeated = held(truth)
    values = corrected(repeated, marks())
    assert values is not None
    before = np.abs(repeated - truth).max()
    assert measure_lag(repeated, marks())[0] == pytest.approx(0.5, abs=0.01)
    assert np.abs(values - truth)[GAP:-GAP].max() < 0.01 * before
    assert np.abs(values - truth).max() < 0.05 * before  # one-sided at the ends
    np.testing.assert_array_equal(values[~marks()], truth[~marks()])


def test_b_frames_that_lead_are_corrected_as_well() -> None:
    truth = moving()
    early = truth[np.minimum(-(-np.arange(FRAMES) // GAP) * GAP, FRAMES - 1)]
    assert measure_lag(early, marks())[0] == pytest.approx(-0.5, abs=0.01)
    values = corrected(early, marks())
    assert values is not None
    assert np.abs(values - truth)[GAP:-GAP].max() < 1e-3


IRREGULAR = np.isin(np.arange(FRAMES), [1, 2, 5, 8, 9, 10, 14, 20, 21, 27, 28, 29, 33])


@pytest.mark.parametrize("b_frames", [marks(), IRREGULAR], ids=["regular", "irregular"])
def test_frames_that_do_not_lag_are_left_alone(b_frames: NDArray[np.bool_]) -> None:
    """Nor does noise make a lag, wherever the frames between lie."""
    truth = moving()
    noises = [np.random.default_rng(seed).normal(0, 0.05, truth.shape).astype(np.float32) for seed in range(6)]
    for values in (truth, *(truth + noise for noise in noises)):
        lag, known_to = measure_lag(values, b_frames)
        assert abs(lag) <= 3 * known_to
        assert corrected(values, b_frames) is None


def test_an_encoder_that_holds_changes_back_makes_b_frames_late() -> None:
    """Neither late nor early on the whole: every second frame repeats, and so do the B frames."""
    values = moving()
    values[1::2] = values[:-1:2]
    assert measure_encoding(values, LEVEL / 100).held_back > 0.3
    assert corrected(values, marks()) is not None


def test_noise_hides_no_lag() -> None:
    values = held(moving()) + np.random.default_rng(1).normal(0, 2e-3, (FRAMES, SIZE, SIZE)).astype(np.float32)
    assert 0.2 < measure_lag(values, marks())[0] < 0.5
    assert corrected(values, marks()) is not None


def test_names_without_meaning_change_nothing() -> None:
    """Films of such frames alone, and frames at the end without a later one."""
    values = held(moving())
    every = np.ones(FRAMES, bool)
    every[0] = every[LONGEST + 2] = False
    for b_frames in (np.zeros(FRAMES, bool), np.ones(FRAMES, bool), every):
        seen = values.copy()
        correct_b_frames(seen, b_frames)
        np.testing.assert_array_equal(seen, values)
    seen = values[:-2].copy()
    correct_b_frames(seen, marks()[:-2])
    np.testing.assert_array_equal(seen[-2:], values[-4:-2])
    assert (seen[:-2] != values[:-4]).any()


def test_a_still_picture_has_no_lag() -> None:
    assert measure_lag(np.full((FRAMES, 4, 4), 0.25, np.float32), marks()) == (0.0, 0.0)


def test_only_the_calibration_sees_corrected_frames() -> None:
    grid = Grid(SIZE, SIZE, 200.0, 200.0)
    values = held(moving())
    encoding = measure_encoding(values, LEVEL, marks())
    assert encoding.late_b_frames
    field = Field(values, np.arange(FRAMES) / 10, grid, encoding=encoding)
    window = prepare_window(field)
    expected = deconvolve_cells(values)
    correct_b_frames(expected, marks())
    np.testing.assert_array_equal(window.values, expected)
    np.testing.assert_array_equal(field.values, values)
    nodes = Field(values, field.times, Grid(SIZE, SIZE, 200.0, 200.0, pitch="nodes"), encoding=encoding)
    assert (prepare_window(nodes).values != values).any()
    np.testing.assert_array_equal(nodes.values, values)
    np.testing.assert_array_equal(prepare_window(nodes, undo_coding=False).values, values)


def test_a_field_keeps_what_was_measured(tmp_path: Path) -> None:
    encoding = Encoding(1 / 219, 0.25, marks(), late_b_frames=True)
    field = Field(moving(), np.arange(FRAMES) / 10, Grid(SIZE, SIZE, 200.0, 200.0), encoding=encoding)
    again = Field.load(field.save(tmp_path / "field.npz")).encoding
    part = field.frames(slice(3, 20)).encoding
    assert again is not None
    assert part is not None
    assert (again.level, again.held_back, again.late_b_frames) == (1 / 219, 0.25, True)
    np.testing.assert_array_equal(again.b_frames, marks())
    np.testing.assert_array_equal(part.b_frames, marks()[3:20])
    assert part.held_back == 0.25
    with pytest.raises(InputError, match="12 marks of B frames for 41"):
        Field(moving(), field.times, field.grid, encoding=Encoding(1 / 219, b_frames=marks(12)))


def test_a_film_says_which_of_its_frames_are_b_frames_and_how_large_a_level_is(tmp_path: Path) -> None:
    """H.264 without noise has them, and they lag; lossless H.264 has none."""
    case = make_case("C", background=0.1, peak=0.85)
    film = render_film(case, tmp_path, Camera(size=(180, 180), frames=60, crf=18))
    field = read_field(film)
    assert field.encoding is not None
    b_frames = field.encoding.b_frames
    assert b_frames is not None
    assert 0.3 < b_frames.mean() < 0.9
    assert not b_frames[0]
    assert measure_lag(field.values, b_frames)[0] > 0.02
    assert field.encoding.level == pytest.approx(1 / 219)  # limited range
    lossless = render_film(case, tmp_path / "lossless", Camera(size=(180, 180), frames=10, crf=0))
    prompt = read_field(lossless).encoding
    assert prompt is not None
    assert prompt.b_frames is None
    assert prompt.held_back < field.encoding.held_back


def ramp(frames: int = 41, step: int = 1) -> np.ndarray:
    """Return a picture whose left half rises, renewed every ``step`` frames, and whose right half stands still."""
    level = np.repeat(np.arange(frames)[::step], step)[:frames] / frames
    values = np.full((frames, 8, 8), 0.3, np.float32)
    values[:, :, :4] = level[:, None, None]
    return values


@pytest.mark.parametrize(("step", "share"), [(1, 0.0), (2, 0.5), (4, 0.75)])
def test_only_changing_cells_count(step: int, share: float) -> None:
    assert held_back(ramp(step=step), LEVEL) == pytest.approx(share, abs=0.03)


def test_more_frames_a_second_hold_no_more_back() -> None:
    """The same film at 120 and at 480 frames: renewed every 2 and every 8 frames, it is as late."""
    slow, fast = held_back(ramp(120, 2), LEVEL), held_back(ramp(480, 8), LEVEL)
    assert slow == pytest.approx(0.5, abs=0.03)
    assert fast == pytest.approx(slow, abs=0.03)


def test_noise_leaves_nothing_repeated_and_a_still_picture_has_nothing_to_hold_back() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, (41, 8, 8)).astype(np.float32)
    assert held_back(ramp(step=4) + noise, LEVEL) == 0.0
    assert held_back(np.full((10, 4, 4), 0.2, np.float32), LEVEL) == 0.0


def spreading(frames: int, copied: float, seed: int = 3) -> np.ndarray:
    """Return a blot that grows, on a texture, its noise copied from the frame before with a probability."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-20:20, -20:20]
    texture, noise = rng.normal(0, 0.05, x.shape), rng.normal(0, 0.01, x.shape)
    out = []
    for k in range(frames):
        new = rng.random(x.shape) >= copied
        noise = np.where(new, rng.normal(0, 0.01, x.shape), noise)
        out.append(np.exp(-(x**2 + y**2) / (60 + k)) + texture + noise)
    return np.array(out, np.float32)


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8])
def test_copied_noise_is_seen_beside_a_texture_that_stands_still(share: float) -> None:
    assert copied_noise(spreading(120, share)) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("codec", ["ffv1", "h264"])
def test_an_encoder_still_shows_in_frames_that_were_put_back(tmp_path: Path, codec: str) -> None:
    """Resampled frames repeat nothing exactly; without an encoder nothing is held back."""
    camera = Camera(
        size=(160, 160), frames=80, noise=0.01, crf=26, codec=codec, container="mkv", optics=Optics(shake=0.8)
    )
    result = read_recording(render_film(make_case("A"), tmp_path, camera))
    assert result.motion is not None
    assert result.motion.corrected
    encoding = result.field.encoding
    assert encoding is not None
    assert held_back(result.field.values, encoding.level) < 0.01
    assert (encoding.held_back > 0.1) == (codec == "h264")
    assert codec == "h264" or encoding.held_back < 0.02


def test_noise_of_luma_does_not_hide_what_is_held_back_of_a_colour() -> None:
    """A stored difference that lags, of which a channel is the sum with luma and its noise."""
    noise = np.random.default_rng(2).normal(0, 2e-3, ramp().shape).astype(np.float32)
    whole = Encoding(LEVEL, held_back(ramp(step=4) + noise, LEVEL))
    assert whole.held_back == 0.0
    interpolated = ramp(step=4) + 0.02 * LEVEL * np.sign(noise)  # a neighbour that changed counts a little
    assert also_held_back(whole, interpolated, LEVEL, 1.0).held_back == pytest.approx(0.75, abs=0.03)
    assert also_held_back(whole, ramp() + noise, LEVEL, 1.0).held_back < 0.05
    # what luma shows already stays, and B frames of a film that lags are late
    assert also_held_back(Encoding(LEVEL, 0.9), ramp(step=4), LEVEL, 1.0).held_back == 0.9
    marked = Encoding(LEVEL, 0.0, marks(), late_b_frames=False)
    assert also_held_back(marked, ramp(step=4), LEVEL, 1.0).late_b_frames
    assert not also_held_back(marked, ramp(), LEVEL, 1.0).late_b_frames


@pytest.mark.parametrize("codec", ["ffv1", "h264"])
def test_a_film_read_in_a_colour_says_what_was_held_back_of_its_differences(tmp_path: Path, codec: str) -> None:
    """Yellow ink in blue: with the noise of luma hardly a value repeats, and yet what it is made of lags."""
    camera = Camera(
        size=(160, 160), frames=80, noise=0.01, crf=18, codec=codec, container="mkv", optics=Optics(yellow=0.9)
    )
    result = read_recording(render_film(make_case("A"), tmp_path, camera))
    encoding = result.field.encoding
    assert result.channel.name == "b"
    assert encoding is not None
    assert held_back(result.field.values, encoding.level) < 0.01
    assert (encoding.held_back > 0.1) == (codec == "h264")
    assert codec == "h264" or encoding.held_back < 0.01
