"""Rollouts of a region: where a mask marks who obeys the law, the rest of the picture follows the recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import Rollout, simulate_batch
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]


def forced_frames(
    models: Sequence[Model],
    start: ArrayLike,
    observed: NDArray[np.float32],
    outside: NDArray[np.bool_],
    times: Array,
    grid: Grid,
    velocity: Array,
    settings: RolloutSettings,
) -> Iterator[tuple[int, list[Rollout | None], Array]]:
    """Advance models frame by frame, with the observed values outside the region at the start of each interval.

    Yields the frame, the interval's rollouts (None at the first frame) and the states (model, y, x).
    ``velocity`` is (model, t, 2).
    """
    state = np.broadcast_to(np.asarray(start, float), (len(models), *grid.shape)).copy()
    yield 0, [None] * len(models), state.copy()
    for k in range(1, len(times)):
        both = slice(k - 1, k + 1)
        # a model that has failed stays missing; the others go on
        alive = np.isfinite(state).all(axis=(1, 2))
        state[:, outside] = observed[k - 1][outside]
        rollouts: list[Rollout | None] = [None] * len(models)
        chosen = [n for n in range(len(models)) if alive[n]]
        if len(chosen):
            done = simulate_batch(
                [models[n] for n in chosen], state[chosen], times[both], grid, velocity[chosen][:, both], settings
            )
            for n, rollout in zip(chosen, done, strict=True):
                rollouts[n], state[n] = rollout, rollout.values[-1]
        state[~alive] = np.nan
        shown = state.copy()
        shown[:, outside] = observed[k][outside]
        shown[~alive] = np.nan
        yield k, rollouts, shown


def simulate_forced(
    models: Sequence[Model],
    start: ArrayLike,
    observed: NDArray[np.float32],
    outside: NDArray[np.bool_],
    times: Array,
    grid: Grid,
    velocity: Array,
    settings: RolloutSettings,
) -> list[Rollout]:
    """Roll models out over a window inside a region; the result is that of ``simulate_batch``."""
    values = np.empty((len(models), len(times), *grid.shape), np.float32)
    substeps = np.zeros((len(models), max(len(times) - 1, 0)), np.int64)
    failed: dict[int, tuple[int, str]] = {}
    for k, rollouts, states in forced_frames(models, start, observed, outside, times, grid, velocity, settings):
        values[:, k] = states
        for n, rollout in enumerate(rollouts):
            if rollout is not None:
                substeps[n, k - 1] = rollout.substeps.sum()
                if rollout.failed:
                    failed.setdefault(n, (k, rollout.reason))
    return [
        Rollout(
            values[n],
            n in failed,
            failed[n][0] if n in failed else None,
            failed[n][1] if n in failed else "",
            substeps[n],
        )
        for n in range(len(models))
    ]
