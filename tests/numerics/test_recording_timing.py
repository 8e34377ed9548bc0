"""Frames at uneven times are resampled right; rounding by the container is not mistaken for a variable rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.timing import assemble, FrameStore, plan_times


def stored(frames: NDArray[np.float64]) -> FrameStore:
    store = FrameStore(frames.shape[1:])
    for frame in frames:
        store.slot()[...] = frame
    return store


def uneven(count: int, seed: int = 4) -> NDArray[np.float64]:
    steps = 0.1 * (1 + 0.3 * np.random.default_rng(seed).uniform(-1, 1, count))
    return np.concatenate([[0.0], np.cumsum(steps)])


def test_a_linear_change_in_time_is_reproduced_exactly() -> None:
    recorded = uneven(60)
    plan = plan_times(recorded, 1e-4)
    assert plan.resampled
    assert np.ptp(np.diff(plan.times)) < 1e-9
    frames = recorded[:, None, None] * np.linspace(1, 2, 12).reshape(3, 4)
    values = assemble(stored(frames), plan)
    expected = plan.times[:, None, None] * np.linspace(1, 2, 12).reshape(3, 4)
    assert np.abs(values - expected).max() < 1e-5
    untouched = frames[: len(plan.times)]
    assert np.abs(untouched - expected[: len(untouched)]).max() > 0.02


def test_linear_interpolation_is_second_order() -> None:
    errors = []
    for count in (50, 100, 200):
        recorded = uneven(count) * (50 / count)
        plan = plan_times(recorded, 0.0)
        frames = np.sin(1.5 * recorded)[:, None, None] * np.ones((2, 2))
        errors.append(np.abs(assemble(stored(frames), plan)[:, 0, 0] - np.sin(1.5 * plan.times)).max())
    order = np.polyfit(np.log([50, 100, 200]), -np.log(errors), 1)[0]
    assert 1.6 < order < 2.4


@pytest.mark.parametrize("rate", [24.0, 29.97, 30.0, 59.94])
def test_times_rounded_to_milliseconds_are_a_constant_rate(rate: float) -> None:
    exact = np.arange(1000) / rate
    plan = plan_times(np.round(exact, 3), 1e-3)
    assert not plan.resampled
    assert np.abs(plan.times - exact).max() < 6e-4
    assert 1 / np.diff(plan.times).mean() == pytest.approx(rate, rel=1e-4)
    assert plan_times(np.round(exact, 3), 1e-6).resampled


def test_a_dropped_frame_is_a_variable_rate() -> None:
    recorded = np.delete(np.arange(100) / 30, 40)
    plan = plan_times(recorded, 1e-3)
    assert plan.resampled
    assert len(plan.times) == 100
    assert plan.times == pytest.approx(np.arange(100) / 30)


def test_times_that_stand_still_are_refused() -> None:
    with pytest.raises(InputError, match="not later"):
        plan_times(np.array([0.0, 0.1, 0.1, 0.3]), 1e-3)


def test_the_store_grows_over_many_blocks() -> None:
    frames = np.random.default_rng(0).random((70, 512, 512)).astype(np.float32)
    store = stored(frames.astype(np.float64))
    assert len(store) == 70
    plan = plan_times(np.arange(70) / 10, 0.0)
    assert np.array_equal(assemble(store, plan), frames)
    assert len(store) == 0
