"""Uneven times are kept; rounding by the container is not mistaken for a variable rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import is_uniform
from video2pde.recording.timing import assemble, FrameStore, plan_times


def stored(frames: NDArray[np.float64]) -> FrameStore:
    store = FrameStore(frames.shape[1:])
    for frame in frames:
        store.slot()[...] = frame
    return store


@pytest.mark.parametrize("rate", [24.0, 29.97, 30.0, 59.94])
def test_times_rounded_to_milliseconds_are_a_constant_rate(rate: float) -> None:
    exact = np.arange(1000) / rate
    plan = plan_times(np.round(exact, 3), 1e-3)
    assert np.abs(plan.times - exact).max() < 6e-4
    assert 1 / np.diff(plan.times).mean() == pytest.approx(rate, rel=1e-4)
    assert not is_uniform(plan_times(np.round(exact, 3), 1e-6).times)
    assert is_uniform(plan.times)


def test_a_dropped_frame_stays_a_gap() -> None:
    recorded = np.delete(np.arange(100) / 30, 40)
    plan = plan_times(recorded, 1e-3)
    assert np.array_equal(plan.times, recorded)
    assert "kept as they are" in plan.note


def test_times_that_stand_still_are_refused() -> None:
    with pytest.raises(InputError, match="not later"):
        plan_times(np.array([0.0, 0.1, 0.1, 0.3]), 1e-3)


def test_the_store_grows_over_many_blocks() -> None:
    frames = np.random.default_rng(0).random((70, 512, 512)).astype(np.float32)
    store = stored(frames.astype(np.float64))
    assert len(store) == 70
    assert np.array_equal(assemble(store), frames)
    assert len(store) == 0
