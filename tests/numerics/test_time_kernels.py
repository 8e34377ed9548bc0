"""Test functions in time on uneven and on few frames: integration by parts holds, and a law is recovered."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.discovery.testfunctions import choose_widths, Widths
from video2pde.discovery.timekernels import time_kernels
from video2pde.field import Field, Grid, noise_weights, Windows
from video2pde.settings import WeakSettings

Array = NDArray[np.float64]


def worst_rate(times: Array, widths: Widths) -> float:
    """Return the largest relative error of −⟨∂_t φ, u⟩ / ⟨φ, u⟩ for u = exp(−2t/T), whose rate is known."""
    kernels = time_kernels(times, widths)
    u = np.exp(-2 * times / times[-1])
    errors = []
    for centre in range(widths.reach[0], len(times) - widths.reach[0]):
        row = int(kernels.rows(np.array([centre]))[0])
        frames = np.arange(centre - kernels.half, centre + kernels.half + 1)
        there = (frames >= 0) & (frames < len(times))
        rate = (kernels.slope[row][there] @ u[frames[there]]) / (kernels.value[row][there] @ u[frames[there]])
        errors.append(abs(rate / (-2 / times[-1]) - 1))
    return max(errors)


def uneven(count: int) -> Array:
    return np.cumsum(np.random.default_rng(count).uniform(0.4, 1.6, count))


def test_the_rate_of_a_decay_is_right_on_uneven_frames_and_converges() -> None:
    errors = [worst_rate(uneven(n), Widths(1.5, 1, 1, 4.0, integrated=True)) for n in (20, 40, 80)]
    assert errors[0] < 1e-4
    order = -np.polyfit(np.log([20, 40, 80]), np.log(errors), 1)[0]
    assert 2.5 < order < 6


def test_a_sum_over_uneven_frames_would_be_wrong() -> None:
    """The kernels for even frames, put on uneven ones: the variant that must not pass."""
    even = worst_rate(uneven(40), Widths(1.5, 1, 1, 4.0))
    assert even > 0.02


@pytest.mark.parametrize(("frames", "limit"), [(3, 0.15), (4, 0.04), (5, 0.02), (6, 0.01), (9, 0.002)])
def test_few_frames_are_enough(frames: int, limit: float) -> None:
    widths = choose_widths((frames, 60, 60), frames, WeakSettings())
    assert widths.integrated
    assert worst_rate(np.linspace(1, 10, frames), widths) < limit
    assert any("frames to fit on" in note for note in widths.notes)


def test_noise_weights_give_the_variance_of_noise_alone() -> None:
    times = uneven(4000)
    values = 3 + 0.7 * times + np.random.default_rng(0).normal(0, 0.2, len(times))
    weights = noise_weights(times)
    left = np.sum(weights * np.stack([values[:-2], values[1:-1], values[2:]], axis=1), axis=1)
    assert left.std() == pytest.approx(0.2, rel=0.05)
    assert noise_weights(np.arange(3.0))[0] == pytest.approx(np.array([0.5, -1, 0.5]) / np.sqrt(1.5))


def recovering(times: Array) -> Field:
    grid = Grid(24, 24, 24.0, 24.0)
    spot = np.exp(-((grid.x - 12) ** 2 + (grid.y[:, None] - 12) ** 2) / 20)
    noise = np.random.default_rng(3).normal(0, 0.002, (len(times), 24, 24))
    return Field(1 - spot * np.exp(-times / 20)[:, None, None] + noise, times, grid)


def test_windows_by_frames_time_and_change() -> None:
    """A recovery that is over half-way: by change, what is held out still changes."""
    field = recovering(np.concatenate([np.arange(0, 40, 2.0), np.arange(40, 240, 10.0)]))
    ends = {by: Windows.of(field, 0.6, 0.2, by).train_end for by in ("frames", "time", "change")}
    assert ends["frames"] == 24
    assert ends["change"] < ends["frames"] < ends["time"]
    change = Windows.of(field, 0.6, 0.2, "change")
    assert field.times[change.train_end] == pytest.approx(18, abs=6)  # 1 − exp(−t/20) = 0.6 at 18 s


@pytest.mark.parametrize("frames", [4, 5, 7, 9])
def test_few_frames_are_fitted_but_for_the_last(frames: int) -> None:
    windows = Windows.of(recovering(np.arange(frames) * 4.0), 0.6, 0.2)
    assert windows.train_end >= 3
    assert windows.test == slice(frames - 2, frames)
    assert windows.validation.stop - windows.validation.start == 2
    assert windows.validation_end < frames
