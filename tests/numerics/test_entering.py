"""What enters through an edge moves the centroid and is no drift; a plume that leaves the picture is carried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import erfc

from video2pde.field import Field, Grid
from video2pde.recording import read_field
from video2pde.settings import load_settings, RecordingSettings
from video2pde.stages.drift import measure_drift

GRID = Grid(40, 60, 40.0, 60.0)
TIMES = np.linspace(0, 40, 60)
SETTINGS = load_settings()


def noisy(frames: list[np.ndarray], noise: float = 0.01) -> Field:
    rng = np.random.default_rng(1)
    return Field(np.array([frame + rng.normal(0, noise, GRID.shape) for frame in frames]), TIMES, GRID)


def front() -> Field:
    profiles = [0.08 + 0.75 * erfc(GRID.x / (2 * np.sqrt(4.0 * (t + 3)))) for t in TIMES]
    return noisy([np.broadcast_to(profile, GRID.shape) for profile in profiles])


def leaving(speed: float) -> Field:
    """A plume that spreads and is carried out of the picture to the right."""
    y, x = GRID.y[:, None], GRID.x[None, :]
    spread = [30 + 2 * 0.5 * t for t in TIMES]
    shapes = [
        np.exp(-((x - 30 - speed * t) ** 2 + (y - 20) ** 2) / (2 * s)) / s for t, s in zip(TIMES, spread, strict=True)
    ]
    return noisy([0.1 + 18 * shape for shape in shapes], 0.005)


def test_a_still_front_has_no_drift() -> None:
    field = front()
    found = measure_drift(field, SETTINGS)
    assert not found.moving
    assert not found.velocity.any()
    assert "edge" in found.why
    assert any("--edges measured" in note for note in found.notes)
    off = measure_drift(field, load_settings(overrides=["drift.through_edges=false"]))
    assert off.moving
    assert off.mean[0] > 0.1


def test_the_rim_drives_what_spreads_in(tmp_path: Path) -> None:
    path = front().save(tmp_path / "front.npz")
    assert read_field(path).mask is not None
    assert read_field(path, RecordingSettings(edges="no_flux")).mask is None
    assert read_field(leaving(0.6).save(tmp_path / "leaving.npz")).mask is None
    still = measure_drift(read_field(path), SETTINGS)
    assert not still.moving
    assert not any("--edges" in note for note in still.notes)


def test_what_is_carried_in_keeps_its_drift() -> None:
    """The broken variant: a front of the same shape that flows in moves as a whole."""
    profiles = [0.08 + 0.375 * erfc((GRID.x - 12 - 0.5 * t) / 4) for t in TIMES]
    assert measure_drift(noisy([np.broadcast_to(profile, GRID.shape) for profile in profiles]), SETTINGS).moving


def test_a_plume_that_is_carried_out_keeps_its_drift() -> None:
    field = leaving(0.6)
    found = measure_drift(field, SETTINGS)
    assert found.moving
    assert found.mean[0] > 0.3
