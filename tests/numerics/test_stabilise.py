"""Frames of a camera that shakes are put back in place, and those of a steady one are left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.recording import read_recording
from video2pde.recording.displacement import turn
from video2pde.recording.resize import AreaResizer, ShiftedResizer
from video2pde.recording.stabilise import _splines, measure_motion
from video2pde.recording.synth import Camera, make_case, Optics, render_film
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]
FRAMES, SIDE = 100, 80
DRIFT = np.stack([0.02 * np.arange(FRAMES), -0.03 * np.arange(FRAMES)], axis=1)


def film(
    camera: Array, noise: float = 0.01, specks: int = 0, angles: Array | None = None, drift: Array = DRIFT
) -> NDArray[np.float32]:
    """A plume that spreads and drifts, seen by a camera at ``camera`` (t, 2); specks stand still in the scene."""
    rng = np.random.default_rng(3)
    places = rng.uniform(10, SIDE - 10, (specks, 2))
    frames = []
    for k, (dy, dx) in enumerate(camera):
        y, x = np.mgrid[:SIDE, :SIDE].astype(float)
        y, x = y - dy - SIDE / 2, x - dx - SIDE / 2
        angle = 0.0 if angles is None else angles[k]
        y, x = y - angle * x, x + angle * y
        width = 60 + 2.0 * k
        u = 0.7 * np.exp(-((y + 8 - drift[k, 0]) ** 2 + 1.7 * (x - 5 - drift[k, 1]) ** 2) / width)
        light = 1 - u
        for at_y, at_x in places - SIDE / 2:
            light *= 1 - 0.5 * np.exp(-0.5 * ((y - at_y) ** 2 + (x - at_x) ** 2))
        frames.append(200 * (light + rng.normal(0, noise, light.shape)))
    return np.array(frames, dtype=np.float32)


def jitter(size: float) -> Array:
    return size * np.random.default_rng(7).standard_normal((FRAMES, 2))


def fast(shifts: Array) -> Array:
    basis = np.linalg.qr(_splines(FRAMES))[0]
    return np.asarray(shifts - basis @ (basis.T @ shifts))


@pytest.mark.parametrize("size", [0.15, 0.3, 1.0])
def test_shake_is_measured(size: float) -> None:
    # 2 % of noise in camera pixels, two of them across a cell: 1 % in a cell, and 0.06 pixels are 0.03 cells
    found = measure_motion(film(jitter(size)), "auto")
    assert found is not None
    assert found.corrected
    assert found.on == "the plume"
    assert np.sqrt(np.mean((fast(found.shifts) - fast(jitter(size))) ** 2)) < 0.03
    assert found.error < 0.06
    assert not found.turns


def test_static_structure_tells_shake_from_drift() -> None:
    slow = 0.8 * np.sin(np.arange(FRAMES) / 12.0)[:, None] * np.array([1.0, -0.5])
    found = measure_motion(film(slow + jitter(0.2), specks=12), "auto")
    assert found is not None
    assert found.on == "static structure"
    left = found.shifts - slow - jitter(0.2)
    assert np.sqrt(np.mean((left - left.mean(axis=0)) ** 2)) < 0.05  # the plume drifts by 3.6 cells meanwhile


def test_a_push_of_the_liquid_is_no_shake() -> None:
    """Without anything that stands still, what lasts over several frames is left to the drift."""
    push = 1.5 * np.tanh((np.arange(FRAMES) - 50) / 4.0)[:, None] * np.array([1.0, 0.5])
    found = measure_motion(film(np.zeros((FRAMES, 2)), drift=DRIFT + push), "auto")
    assert found is not None
    assert found.rms > 0.06  # it would be large enough to be one
    assert not found.corrected


def test_a_camera_that_turns() -> None:
    angles = 0.02 * np.random.default_rng(5).standard_normal(FRAMES)
    found = measure_motion(film(jitter(0.2), angles=angles, specks=8), "auto")
    assert found is not None
    assert found.turns
    assert np.corrcoef(found.angles, angles)[0, 1] > 0.95


@pytest.mark.parametrize("specks", [0, 12])
def test_a_steady_camera_is_left_alone(specks: int) -> None:
    for noise in (0.0, 0.01, 0.05):
        found = measure_motion(film(np.zeros((FRAMES, 2)), noise, specks), "auto")
        assert found is not None
        assert not found.corrected
        assert not found.shifts.any()
    shaken = measure_motion(film(jitter(0.3)), "none")
    assert shaken is not None
    assert not shaken.corrected
    assert shaken.rms == pytest.approx(np.sqrt((fast(jitter(0.3)) ** 2).sum(axis=1).mean()), rel=0.05)


def test_nothing_to_hold_on_to() -> None:
    noise = np.random.default_rng(0).normal(100, 2, (40, 60, 60)).astype(np.float32)
    found = measure_motion(noise, "auto")
    assert found is None or not found.corrected
    assert measure_motion(np.full((40, 60, 60), 7, np.float32), "auto") is None


def test_moved_frames_are_reduced_from_where_they_were_taken() -> None:
    y, x = np.mgrid[:240, :320].astype(float)

    def scene(dy: float, dx: float, angle: float = 0.0) -> Array:
        b, a = y - dy - 119.5, x - dx - 159.5
        b, a = b - angle * a, a + angle * b
        return np.asarray(100 + 50 * np.exp(-((b - 20) ** 2 + 1.5 * (a + 30) ** 2) / 900))

    at_rest = AreaResizer((240, 320), (60, 80))(scene(0, 0))
    out, shifted = np.empty((60, 80), np.float32), ShiftedResizer((240, 320), (60, 80))
    for dy, dx, angle in ((1.7, -2.4, 0.0), (0.5, 0.0, 0.02)):
        shifted.turned_into(scene(dy, dx, angle), (dy, dx), turn(angle, 0.0), out)
        assert np.abs(out - at_rest).max() < 0.05
        if not angle:
            shifted.into(scene(dy, dx), (dy, dx), out)
            assert np.abs(out - at_rest).max() < 0.05
        assert np.abs(AreaResizer((240, 320), (60, 80))(scene(dy, dx, angle)) - at_rest).max() > 0.5


def test_a_film_is_put_back(tmp_path: Path) -> None:
    case, camera = make_case("C"), Camera(size=(96, 96), frames=60, noise=0.01, crf=5)
    plain = read_recording(render_film(case, tmp_path / "plain", camera))
    off = RecordingSettings(illumination="none", response="linear", channel="luma", stabilise="none")
    untouched = read_recording(tmp_path / "plain" / "film.mp4", off)
    np.testing.assert_array_equal(plain.field.values, untouched.field.values)  # what is not needed costs nothing
    shaken = render_film(case, tmp_path / "shaken", replace(camera, optics=Optics(shake=1.0)))
    left, back = (read_recording(shaken, RecordingSettings(stabilise=mode)) for mode in ("none", "auto"))
    assert any("camera shake" in line for line in left.warnings)
    assert not any("shake" in line for line in back.warnings)
    rough = [np.diff(found.field.values, 2, axis=0).std() for found in (plain, left, back)]
    assert rough[2] < rough[0] + 0.35 * (rough[1] - rough[0])
