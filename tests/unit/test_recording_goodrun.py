"""Frames that show something else: found, and the longest run of one scene kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from recording_files import blot, levels

from video2pde.recording import read_recording
from video2pde.recording.goodrun import find_good_run
from video2pde.recording.synth import Camera, make_case, Optics, render_film
from video2pde.settings import RecordingSettings

FRAMES = 60


def scene() -> NDArray[np.float32]:
    return (255 * blot(FRAMES)).astype(np.float32)


def test_one_scene_is_kept_whole() -> None:
    frames = scene()
    assert find_good_run(frames, 0.0) is None
    noise = np.random.default_rng(0).normal(0, 8, frames.shape)
    assert find_good_run((frames + noise).astype(np.float32), 0.0) is None
    flicker = 1 + 0.1 * np.random.default_rng(1).standard_normal(FRAMES)
    assert find_good_run((frames * flicker[:, None, None]).astype(np.float32), 0.0) is None
    lamp = np.where(np.arange(FRAMES) < 30, 1.0, 0.8)
    assert find_good_run((frames * lamp[:, None, None]).astype(np.float32), 0.0) is None


def shaken(shake: float) -> NDArray[np.float32]:
    """Return a disc, steep at first, as a camera sees it that shakes by so many pixels (rms)."""
    shifts = np.random.default_rng(4).normal(0, shake, (FRAMES, 2))
    y, x = np.mgrid[:96, :128] + 0.5
    away = [np.hypot(y - 50 - dy, x - 60 - dx) for dy, dx in shifts]
    discs = [0.85 - 0.6 / (1 + np.exp((r - 25) / (1.5 + 0.2 * k))) for k, r in enumerate(away)]
    return (255 * np.stack(discs)).astype(np.float32)


def test_a_camera_that_shakes_shows_one_scene() -> None:
    """A steep edge that moves by a few pixels changes blocks by a fifth of the light: nothing came into the picture."""
    frames = shaken(1.0)
    jumps = np.abs(np.diff(frames.reshape(FRAMES, 24, 4, 32, 4).mean(axis=(2, 4)), axis=0)) / 216
    assert (jumps > 0.12).mean(axis=(1, 2)).max() > 0.02
    assert find_good_run(frames, 0.0) is None
    for k in range(40, 50):
        frames[k, 40:70, : 6 * (6 - abs(k - 45)) + 6] = 30
    found = find_good_run(frames, 0.0)
    assert found is not None
    assert found.first == 0
    assert 20 <= found.stop <= 40
    assert "something is in the picture" in found.reasons[0]


def test_a_small_change_that_stays_is_no_other_scene() -> None:
    frames = scene()
    frames[25:, 5:15, 5:15] = 40  # a drop falls in
    assert find_good_run(frames, 0.0) is None


def test_a_fade_to_black_is_left_to_its_own_check() -> None:
    frames = scene() * np.clip(np.linspace(2.5, 0, FRAMES), 0, 1)[:, None, None]
    assert find_good_run(frames.astype(np.float32), 0.0) is None


FAULTS = {
    "black": ((23, 60), "frames 20 to 22 are black"),
    "cut": ((0, 45), "another scene begins at frame 45"),
    "hand": ((0, 40), "something is in the picture from frame 40"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_foreign_is_found(fault: str) -> None:
    frames, (kept, said) = scene(), FAULTS[fault]
    if fault == "black":
        frames[20:23] = 1
    elif fault == "cut":
        frames[45:] = 255 - frames[45:]
    else:
        for k in range(40, 50):
            frames[k, 20:35, : 3 * (6 - abs(k - 45)) + 3] = 30
    found = find_good_run(frames, 0.0)
    assert found is not None
    assert (found.first, found.stop) == kept
    assert any(said in reason for reason in found.reasons)


def test_the_run_is_used_and_said(tmp_path: Path) -> None:
    frames = scene()
    frames[20:23] = 0
    np.save(tmp_path / "a.npy", levels(frames / 255))
    result = read_recording(tmp_path / "a.npy", RecordingSettings(fps=10, start=4))
    line = next(line for line in result.warnings if "are black" in line)
    assert "--start 23 --stop 60" in line
    assert len(result.field) == 37
    assert result.field.times[0] == pytest.approx(2.3)
    again = read_recording(tmp_path / "a.npy", RecordingSettings(fps=10, start=23, stop=60))
    np.testing.assert_array_equal(again.field.values, result.field.values)
    assert not any("black" in line for line in again.warnings)


def test_films(tmp_path: Path) -> None:
    camera = Camera(size=(64, 64), frames=60, noise=0.01, crf=18)
    faults = {"black": (Optics(black=3), 29), "cut": (Optics(cut=0.2), 48), "hand": (Optics(hand=6), 37)}
    for name, (optics, kept) in faults.items():
        film = render_film(make_case("C"), tmp_path / name, replace(camera, optics=optics))
        result = read_recording(film)
        assert len(result.field) == kept
        assert any("longest run" in line for line in result.warnings)
        assert len(read_recording(film, RecordingSettings(frames="all")).field) == 60
    assert len(read_recording(render_film(make_case("C"), tmp_path / "plain", camera)).field) == 60
