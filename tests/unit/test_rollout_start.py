"""The estimated start of a held-out rollout: less noise, nothing from later frames, and nothing moved."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.field import Field, Grid
from video2pde.rollout.start import estimate_start

GRID = Grid(48, 48, 200.0, 200.0)
TIMES = np.arange(250) / 10


def drifting(noise: float) -> tuple[Field, np.ndarray]:
    """Return a film of a drifting, growing blob, and the blob itself."""
    x, y = np.meshgrid(GRID.x, GRID.y)
    place = 90 + 0.4 * TIMES[:, None, None]
    clean = (0.3 + 0.01 * TIMES[:, None, None]) * np.exp(-((x - place) ** 2 + (y - 100) ** 2) / 1500)
    recorded = clean + noise * np.random.default_rng(1).standard_normal(clean.shape)
    return Field(recorded.astype(np.float32), TIMES, GRID), clean


def test_most_of_the_noise_goes_and_the_picture_stays() -> None:
    noisy, clean = drifting(0.02)
    error = estimate_start(noisy, 150, 9) - clean[150]
    assert error.std() < 0.42 * 0.02
    still, _ = drifting(0.0)
    assert np.abs(estimate_start(still, 150, 9) - clean[150]).max() < 5e-4
    # the mean of the same frames would lag behind
    assert np.abs(still.values[142:151].mean(axis=0) - clean[150]).max() > 2e-3


def test_later_frames_are_not_read() -> None:
    noisy, _ = drifting(0.02)
    changed = noisy.values.copy()
    changed[151:] = 7.0
    other = Field(changed, TIMES, GRID)
    np.testing.assert_array_equal(estimate_start(other, 150, 9), estimate_start(noisy, 150, 9))


@pytest.mark.parametrize(("index", "frames"), [(150, 1), (0, 9), (1, 9)])
def test_without_enough_frames_it_is_the_recorded_one(index: int, frames: int) -> None:
    noisy, _ = drifting(0.02)
    np.testing.assert_array_equal(estimate_start(noisy, index, frames), noisy.values[index])
