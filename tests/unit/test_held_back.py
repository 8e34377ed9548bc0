"""Changes that an encoder holds back: counted among the cells that change, and paid for in the interval's floor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from video2pde.calibration import EXACT, FILM_FLOOR, HELD_BACK, NOT_FITTED, recording_errors, ZERO_LEVEL
from video2pde.field import Field, Grid, held_back, Provenance


def ramp(frames: int = 41, step: int = 1) -> np.ndarray:
    """Give a picture whose left half rises, renewed every ``step`` frames, and whose right half stands still."""
    level = np.repeat(np.arange(frames)[::step], step)[:frames] / frames
    values = np.full((frames, 8, 8), 0.3, np.float32)
    values[:, :, :4] = level[:, None, None]
    return values


@pytest.mark.parametrize(("step", "share"), [(1, 0.0), (2, 0.5), (4, 0.75)])
def test_only_changing_cells_count(step: int, share: float) -> None:
    assert held_back(ramp(step=step)) == pytest.approx(share, abs=0.03)


def test_more_frames_a_second_hold_no_more_back() -> None:
    """The same film at 120 and at 480 frames: renewed every 2 and every 8 frames, it is as late."""
    slow, fast = held_back(ramp(120, 2)), held_back(ramp(480, 8))
    assert slow == pytest.approx(0.5, abs=0.03)
    assert fast == pytest.approx(slow, abs=0.03)


def test_noise_leaves_nothing_repeated_and_a_still_picture_has_nothing_to_hold_back() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, (41, 8, 8)).astype(np.float32)
    assert held_back(ramp(step=4) + noise) == 0.0
    assert held_back(np.full((10, 4, 4), 0.2, np.float32)) == 0.0


def test_the_floor_follows_what_is_held_back() -> None:
    grid = Grid(8, 8, 200.0, 200.0)
    field = Field(ramp(step=2), np.arange(41) / 10, grid, provenance=Provenance(bits=8))
    late, prompt = recording_errors(field), recording_errors(replace(field, values=ramp()))
    assert late.lags
    assert late.floor_of(fitted_lag=True) == pytest.approx(FILM_FLOOR + HELD_BACK / 1.1, rel=0.01)
    assert late.floor_of(fitted_lag=False) == pytest.approx(late.floor_of(fitted_lag=True) + NOT_FITTED / 2, rel=0.05)
    assert not prompt.lags
    assert prompt.floor_of(fitted_lag=False) == FILM_FLOOR
    assert late.zero == ZERO_LEVEL
    assert recording_errors(replace(field, provenance=Provenance(bits=16))) == EXACT
    assert recording_errors(replace(field, provenance=Provenance())) == EXACT
