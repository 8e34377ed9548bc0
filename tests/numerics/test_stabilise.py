"""Frames of a camera that shakes are put back in place, and those of a steady one are left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.recording import read_recording
from video2pde.recording.displacement import fit_displacement, Splines, turn
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


@pytest.mark.parametrize("affine", [False, True])
def test_one_pass_is_the_least_squares_fit(affine: bool) -> None:
    """The compiled sums give what numpy's least squares give over the same cells, column by column."""
    frames = film(jitter(0.3), noise=0.02)[:20, ::2, ::2].astype(float)
    basis = np.linalg.qr(_splines(20))[0]
    where = np.zeros(frames.shape[1:], bool)
    where[4:-3, 3:-6] = True
    moved, errors, explained = fit_displacement(frames, basis, where, affine)
    scene = np.tensordot(basis @ basis.T, frames, axes=1)
    y, x = (axis - axis.mean() for axis in np.mgrid[: where.shape[0], : where.shape[1]].astype(float))
    before = after = 0.0
    for k, (frame, s) in enumerate(zip(frames, scene, strict=True)):
        down, right = np.gradient(s)
        motions = [down, right, down * x - right * y, down * y + right * x][: 4 if affine else 2]
        light = np.stack([s[where], np.ones(where.sum())], axis=1)
        columns = np.concatenate([np.stack([m[where] for m in motions], axis=1), light], axis=1)
        change = (frame - s)[where]
        solution, left, *_ = np.linalg.lstsq(columns, change, rcond=None)
        np.testing.assert_allclose(moved[k, : len(motions)], -solution[: len(motions)], rtol=1e-6, atol=1e-9)
        before += float(np.linalg.lstsq(light, change, rcond=None)[1][0])
        after += float(left[0])
    assert explained == pytest.approx(1 - after / before, abs=1e-8)
    assert (errors[: 4 if affine else 2] > 0).all()
    assert not moved[:, 4 if affine else 2 :].any()


def test_frames_are_put_back_by_their_splines() -> None:
    y, x = np.mgrid[:40, :50].astype(float)

    def scene(dy: float, dx: float) -> Array:
        return np.asarray(np.exp(-((y - 18 - dy) ** 2 + 1.4 * (x - 26 - dx) ** 2) / 60))

    moved = np.array([[0.7, -0.4, 0, 0], [-1.3, 2.1, 0, 0], [0, 0, 0, 0]])
    back = Splines(np.array([scene(dy, dx) for dy, dx, *_ in moved])).put_back(moved)
    inside = (slice(None), slice(5, -5), slice(5, -5))  # what left the picture is not known
    assert np.abs(back - scene(0, 0))[inside].max() < 1e-3
    assert np.abs(scene(0.7, -0.4) - scene(0, 0)).max() > 0.05


def test_motion_about_another_middle() -> None:
    """A part of a turned picture is turned about its own middle, and displaced."""
    found = measure_motion(film(jitter(0.2), angles=0.02 * jitter(1.0)[:, 0], specks=8), "affine")
    assert found is not None
    part = found.about(6.0, -9.0)
    place, apart = np.array([11.0, 4.0]), np.array([6.0, -9.0])
    for k in (0, 7, 50):
        matrix = turn(found.angles[k], found.zooms[k])
        whole = matrix @ (place + apart) + found.shifts[k]
        np.testing.assert_allclose(matrix @ place + part.shifts[k] + apart, whole, atol=1e-12)


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


def test_a_shifted_picture_is_averaged_as_it_would_be_pixel_by_pixel() -> None:
    """Weights along the axes give the mean of the four neighbouring whole shifts; beyond the edge, the edge."""
    picture = np.random.default_rng(4).integers(0, 255, (53, 71), dtype=np.uint8)
    plain, shifted = AreaResizer((53, 71), (11, 20), sloped=True), ShiftedResizer((53, 71), (11, 20))
    wide, out = np.pad(picture, 8, mode="edge"), np.empty((11, 20))
    for dy, dx in ((0.0, 0.0), (1.25, -2.6), (-4.5, 3.0)):
        (k, f), (m, g) = ((int(np.floor(d)), d - np.floor(d)) for d in (dy, dx))
        expected = sum(
            weight * plain(wide[8 + k + i : 61 + k + i, 8 + m + j : 79 + m + j])
            for i, j, weight in ((0, 0, (1 - f) * (1 - g)), (0, 1, (1 - f) * g), (1, 0, f * (1 - g)), (1, 1, f * g))
        )
        shifted.into(picture, (dy, dx), out)
        np.testing.assert_allclose(out, expected, atol=1e-10)
        shifted.turned_into(picture, (dy, dx), np.eye(2), out)
        np.testing.assert_allclose(out, expected, atol=1e-10)


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
