"""Rollouts: integrate a model from a first frame over the times of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.device import Device
from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.rollout.batching import MOST_FRAMES
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.task import Bounds, bounds_of, prepare_task, Rollout, run_tasks, Scheme, survey_frames
from video2pde.rollout.together import for_each, SideBySide
from video2pde.settings import RolloutSettings

Array = NDArray[Any]


def simulate(
    model: Model,
    u0: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    settings: RolloutSettings | None = None,
    *,
    accuracy: int = 4,
    output: str | None = None,
    frames: Sequence[int] | None = None,
    region: Region | None = None,
    device: Device = "cpu",
) -> Rollout:
    """Integrate u_t = −c_x v_x u_x − c_y v_y u_y − v·∇u + Σ c_j T_j(u) from u0 over the given times.

    Parameters
    ----------
    model : terms T_j, coefficients c_j, drift scale (c_x, c_y) and a flow v(x, y, t), constant over a frame interval.
    u0 : shape (y, x), the frame at ``times[0]``.
    times : shape (t,), increasing, seconds.
    grid : positions of the samples.
    velocity : shape (t, 2), (v_x, v_y) at ``times``, length per second; linear in between. None: no drift.
    settings : safety, substeps, viscosity, boundary, clipping, number type.
    accuracy : order of the central differences, 2 or 4.
    output : number type of the stored frames; None: that of the simulation.
    frames : indices of the frames to keep; None: all.
    region : where the law holds, and what its edge is; None: everywhere.
    device : ``"gpu"`` runs the same scheme through JAX.

    Returns
    -------
    The frames, and why the rollout failed where it did.

    Examples
    --------
    >>> field = vp.example_field()
    >>> velocity = np.tile([0.5, -0.25], (60, 1))
    >>> rollout = simulate(vp.Model.of({"laplacian": 1.0}), field.values[0], field.times, field.grid, velocity)
    >>> bool(abs(rollout.values[-1] - field.values[-1]).max() < 0.015)
    True
    """
    scheme = Scheme(settings or RolloutSettings(), accuracy, output, region, device=device)
    return simulate_batch([model], u0, times, grid, velocity, scheme, frames)[0]


def simulate_batch(
    models: Sequence[Model],
    u0: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    scheme: Scheme | None = None,
    frames: Sequence[int] | None = None,
) -> list[Rollout]:
    """Integrate many models over the same times, over the cores; results do not depend on their number.

    ``u0`` is one frame (y, x) for all models or one for each (m, y, x); ``velocity`` is (t, 2) or
    (m, t, 2). The other parameters are those of :func:`simulate`.
    """
    scheme = scheme or Scheme()
    first = np.asarray(u0)
    starts = [first] * len(models) if first.ndim == 2 else list(first)
    drifts = for_each(models, velocity)
    if not len(starts) == len(drifts) == len(models):
        raise InputError(
            f"{len(models)} models need as many first frames and drifts, not {len(starts)} and {len(drifts)}"
        )
    # a frame that all share is looked at once
    bounds = _bounds_of(first, scheme.settings) if first.shape == grid.shape else None
    tasks = [
        prepare_task(model, np.asarray(start)[None], times, grid, v, scheme.settings, frames=frames, bounds=bounds)
        for model, start, v in zip(models, starts, drifts, strict=True)
    ]
    return run_tasks(tasks, grid, scheme)


def _bounds_of(frame: Array, settings: RolloutSettings) -> Bounds:
    """Take the bounds of simulations that start from a frame (y, x)."""
    survey = survey_frames(frame[None].astype(settings.precision))
    return replace(bounds_of(survey, settings), content=max(survey.content, 1e-12))


def predict_one_step(
    models: Sequence[Model],
    observed: Array,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    scheme: Scheme | None = None,
    chunk: int = 32,
) -> Iterator[tuple[slice, list[Array]]]:
    """Predict each frame from the observed frame before it, and yield the frames a chunk at a time.

    ``observed`` has shape (t, y, x). Yields the frames' slice, and their values (frame, y, x) for each model: frame 0
    is the observed one, frame k the prediction from observed frame k − 1; NaN from one on that could not be reached.
    ``velocity`` is (t, 2), or one for each model, (m, t, 2).
    """
    scheme, t, drifts = scheme or Scheme(), np.asarray(times, float), for_each(models, velocity)
    survey = survey_frames(observed)
    bounds = replace(bounds_of(survey, scheme.settings), content=max(survey.content, 1e-12))
    size = MOST_FRAMES if scheme.device == "gpu" else chunk
    failed = set[int]()
    for begin in range(0, len(t), size):
        lead, end = int(begin > 0), min(begin + size, len(t))
        window, kept = slice(begin - lead, end), range(lead, end - begin + lead)
        # converted once: the tasks share the frames
        starts = np.ascontiguousarray(observed[window], scheme.settings.precision)
        alive = [n for n in range(len(models)) if n not in failed]
        tasks = [
            prepare_task(
                models[n],
                starts,
                t[window],
                grid,
                None if (drift := drifts[n]) is None else drift[window],
                scheme.settings,
                restart=True,
                frames=kept,
                bounds=bounds,
            )
            for n in alive
        ]
        part = scheme if scheme.region is None else replace(scheme, region=scheme.region.frames(window))
        values = [np.full((end - begin, *grid.shape), np.nan, scheme.stored) for _ in models]
        results = run_tasks(tasks, grid, part, [values[n] for n in alive])
        failed |= {n for n, rollout in zip(alive, results, strict=True) if rollout.failed}
        for n, rollout in zip(alive, results, strict=True):
            values[n] = rollout.values
        yield slice(begin, end), values


def simulate_chunks(
    models: Sequence[Model],
    u0: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    scheme: Scheme | None = None,
    chunk: int = 32,
) -> Iterator[tuple[slice, Array, list[Rollout]]]:
    """Integrate many models side by side and yield the frames a chunk at a time, so that memory stays small.

    Yields the frames' slice, their values (model, frame, y, x), and one rollout for each model, which looks at these
    values. A chunk starts from the last state of the one before, so that together they are what
    :func:`simulate_batch` gives up to the choice of substeps. Models that failed keep failing: their frames stay NaN.
    """
    rollouts = SideBySide(models, u0, times, grid, velocity, scheme)
    while not rollouts.done:
        yield rollouts.advance(chunk)
