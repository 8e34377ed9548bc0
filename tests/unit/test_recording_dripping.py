"""Dye that drips into the picture for a while: its end is found, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.recording import read_recording
from video2pde.recording.dripping import find_end_of_source
from video2pde.recording.synth import Camera, deviate, make_case, render_film
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]
FRAMES, CELLS = 120, 48
TIMES = np.linspace(0.0, 24.0, FRAMES)


def film(
    amount: Array, light: Array | float = 1.0, noise: float = 0.004, seed: int = 0, times: Array = TIMES
) -> NDArray[np.float32]:
    """Film a plume that widens and holds so much dye: (t, y, x), levels of eight bits, not rounded."""
    axis = np.linspace(-1, 1, CELLS)
    width = 0.2 + 0.005 * times[:, None, None]
    plume = np.exp(-(axis[:, None] ** 2 + axis**2) / (2 * width**2)) / width**2 * 0.02
    seen = (1 - amount[:, None, None] * plume) * np.broadcast_to(light, FRAMES)[:, None, None]
    return (255 * (seen + noise * np.random.default_rng(seed).standard_normal(seen.shape))).astype(np.float32)


def dripping(until: float, rate: float = 0.012) -> Array:
    return 1 + rate * np.minimum(TIMES, until)


@pytest.mark.parametrize("until", [6.0, 12.0, 15.0])
def test_the_end_of_a_source_is_found(until: float) -> None:
    found = find_end_of_source(film(dripping(until)), TIMES, 0.0)
    assert found is not None
    assert until - 0.5 < TIMES[found.first] < until + 2.5
    assert found.share == pytest.approx(0.012 * until / (1 + 0.012 * until), rel=0.35)


def test_uneven_frames_are_no_end() -> None:
    """Frames four times as dense from half of the film on bend the amount over frames, not over time."""
    times = np.concatenate([np.arange(60) * 0.4, 60 * 0.4 + np.arange(60) * 0.1])
    frames = film(1 + 0.012 * times, times=np.full(FRAMES, 6.0))
    assert find_end_of_source(frames, times, 0.0) is None
    assert find_end_of_source(frames, TIMES, 0.0) is not None  # told otherwise, it is one


SMOOTH = {
    "conserved": np.ones(FRAMES),
    "growth": 2 / (1 + np.exp(-(TIMES - 12) / 4)),
    "decay": np.exp(-TIMES / 20),
    "front": 1 + 0.3 * np.sqrt(1 + TIMES),
    "all the time": dripping(until=1e9),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", range(3))
def test_what_changes_smoothly_is_no_end(name: str, seed: int) -> None:
    assert find_end_of_source(film(SMOOTH[name], seed=seed), TIMES, 0.0) is None


def test_light_is_no_dye() -> None:
    lamp = 1 - 0.004 * np.minimum(TIMES, 12.0)
    flicker = 1 + 0.02 * np.random.default_rng(5).standard_normal(FRAMES)
    steps = np.where(TIMES < 12, 1.0, 0.95)
    for light in (lamp, flicker, steps):
        assert find_end_of_source(film(np.ones(FRAMES), light), TIMES, 0.0) is None


def test_frames_that_show_something_else_are_no_dye() -> None:
    frames = film(np.ones(FRAMES))
    frames[70:76, 10:30, 10:30] = 60.0  # a hand
    assert find_end_of_source(frames, TIMES, 0.0) is None


def test_nothing_to_see_is_no_end() -> None:
    still = np.full((FRAMES, CELLS, CELLS), 200, np.float32)
    assert find_end_of_source(still, TIMES, 0.0) is None
    assert find_end_of_source(0 * still, TIMES, 0.0) is None
    assert find_end_of_source(film(dripping(12.0))[:50], TIMES[:50], 0.0) is None
    assert find_end_of_source(film(dripping(12.0)), np.zeros(FRAMES), 0.0) is None


def test_a_recording_begins_after_its_source(tmp_path: Path) -> None:
    case, camera = deviate(make_case("A"), Camera(size=(120, 120), frames=120, noise=0.004, crf=12), "source", 0.05)
    path = render_film(case, tmp_path, camera)
    whole = read_recording(path, RecordingSettings(dripping="none"))
    found = read_recording(path, RecordingSettings())
    assert len(whole.field) == 120
    assert 50 <= len(found.field) <= 62  # it ends at half of the film
    [warning] = [line for line in found.warnings if "dye comes in" in line]
    start = 120 - len(found.field)
    assert f"--start {start})" in warning
    assert not any("dye comes in" in line for line in whole.warnings)
    again = read_recording(path, RecordingSettings(start=start))
    assert np.array_equal(again.field.values, found.field.values)
    assert found.field.times == pytest.approx(again.field.times - again.field.times[0] + found.field.times[0])
