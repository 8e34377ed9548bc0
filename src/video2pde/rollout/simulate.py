"""Rollouts: integrate a model from a first frame over the times of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.parallel import map_threads
from video2pde.rollout import driver
from video2pde.rollout.kernels import compile_kernel, Kernel, Structure
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.settings import RolloutSettings

Array = NDArray[Any]
Device = Literal["cpu", "gpu"]

BLOW_UP = 1e3
"""A value this many times larger than the data is a blow-up."""
EDGES = {"replicate": driver.MIRRORED, "periodic": driver.PERIODIC, "open": driver.OPEN}
CLIP_SHARE = 0.1
"""Share of the first frame's content that clipping may take away before the rollout counts as failed."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """Hold a simulated window.

    Parameters
    ----------
    values : shape (t, y, x), the frames that were asked for; NaN from the failed frame on.
    failed : whether the simulation stopped early.
    failed_frame : index into the times of the first frame that could not be reached, or None.
    reason : why it failed, or an empty text.
    substeps : int, shape (t − 1,), Runge–Kutta steps used in each frame interval.
    clipped : what clipping took away since the last start, as a share of the first frame's content.
    """

    values: Array
    failed: bool
    failed_frame: int | None
    reason: str
    substeps: NDArray[np.int64]
    clipped: float = 0.0


@dataclass(frozen=True, eq=False)
class Task:
    """Hold the checked inputs of one simulation."""

    model: Model
    starts: Array
    restart: bool
    times: NDArray[np.float64]
    velocity: NDArray[np.float64]
    flows: bool
    fields: Array
    factors: NDArray[np.float64]
    keep: NDArray[np.int64]
    limits: tuple[float, float, float, float]
    allowed: float
    clipping: bool
    content: float


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
    return simulate_batch(
        [model],
        u0,
        times,
        grid,
        velocity,
        settings,
        accuracy=accuracy,
        output=output,
        frames=frames,
        region=region,
        device=device,
    )[0]


def simulate_batch(
    models: Sequence[Model],
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
    workers: int | Literal["auto"] = 1,
    device: Device = "cpu",
) -> list[Rollout]:
    """Integrate many models over the same times, over the cores; results do not depend on their number.

    ``u0`` is one frame (y, x) for all models or one for each (m, y, x); ``velocity`` is (t, 2) or
    (m, t, 2). The other parameters are those of :func:`simulate`.
    """
    chosen = settings or RolloutSettings()
    first = np.asarray(u0)
    starts = [first] * len(models) if first.ndim == 2 else list(first)
    drift = None if velocity is None else np.asarray(velocity, float)
    drifts = list(drift) if drift is not None and drift.ndim == 3 else [drift] * len(models)
    if not len(starts) == len(drifts) == len(models):
        raise InputError(
            f"{len(models)} models need as many first frames and drifts, not {len(starts)} and {len(drifts)}"
        )
    tasks = [
        _prepare(model, np.asarray(start)[None], False, times, grid, v, chosen, frames)
        for model, start, v in zip(models, starts, drifts, strict=True)
    ]
    return _run(tasks, grid, chosen, accuracy, output, workers, device, region)


def predict_one_step(
    models: Sequence[Model],
    observed: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    settings: RolloutSettings | None = None,
    *,
    accuracy: int = 4,
    output: str | None = None,
    region: Region | None = None,
    workers: int | Literal["auto"] = 1,
    device: Device = "cpu",
) -> list[Rollout]:
    """Predict each frame from the observed frame before it.

    ``observed`` has shape (t, y, x). Frame 0 of a result is the observed one; frame k is the prediction
    from observed frame k − 1. ``velocity`` is (t, 2), or one for each model, (m, t, 2).
    """
    chosen = settings or RolloutSettings()
    # converted once: the tasks share the frames
    starts = np.ascontiguousarray(observed, chosen.precision)
    drift = None if velocity is None else np.asarray(velocity, float)
    drifts = list(drift) if drift is not None and drift.ndim == 3 else [drift] * len(models)
    tasks = [
        _prepare(model, starts, True, times, grid, v, chosen, None) for model, v in zip(models, drifts, strict=True)
    ]
    return _run(tasks, grid, chosen, accuracy, output, workers, device, region)


def simulate_chunks(
    models: Sequence[Model],
    u0: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    settings: RolloutSettings | None = None,
    *,
    chunk: int = 32,
    accuracy: int = 4,
    region: Region | None = None,
    workers: int | Literal["auto"] = 1,
) -> Iterator[tuple[slice, Array, list[Rollout]]]:
    """Integrate many models side by side and give the frames a chunk at a time, so that memory stays small.

    Yields the frames' slice, their values (model, frame, y, x), and one rollout for each model, which looks at these
    values. A chunk starts from the last state of the one before, so that together they are what
    :func:`simulate_batch` gives up to the choice of substeps. Models that failed keep failing: their frames stay NaN.
    """
    t = np.asarray(times, float)
    chosen = settings or RolloutSettings()
    drift = None if velocity is None else np.asarray(velocity, float)
    drifts = [drift] * len(models) if drift is None or drift.ndim == 2 else list(drift)
    state = np.broadcast_to(np.asarray(u0, chosen.precision), (len(models), *grid.shape))
    failed: dict[int, Rollout] = {}
    begin = 0
    while begin < len(t):
        # the state's own frame leads every chunk but the first, and is not given again
        lead = int(begin > 0)
        end = min(begin + chunk, len(t))
        window = slice(begin - lead, end)
        values = np.empty((len(models), end - begin, *grid.shape), chosen.precision)
        values[list(failed)] = np.nan
        alive = [n for n in range(len(models)) if n not in failed]
        tasks = [
            _prepare(
                models[n],
                state[n][None],
                False,
                t[window],
                grid,
                None if (v := drifts[n]) is None else v[window],
                chosen,
                range(lead, end - begin + lead),
            )
            for n in alive
        ]
        part = None if region is None else region.frames(window)
        done = _run(tasks, grid, chosen, accuracy, None, workers, "cpu", part, [values[n] for n in alive])
        results = dict(zip(alive, done, strict=True))
        for n, rollout in results.items():
            if rollout.failed and rollout.failed_frame is not None:
                failed[n] = replace(rollout, failed_frame=rollout.failed_frame + begin - lead)
        yield (
            slice(begin, end),
            values,
            [replace(failed[n], values=values[n]) if n in failed else results[n] for n in range(len(models))],
        )
        state, begin = values[:, -1], end


def _prepare(
    model: Model,
    starts: Array,
    restart: bool,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None,
    settings: RolloutSettings,
    frames: Sequence[int] | None,
) -> Task:
    t = np.ascontiguousarray(times, dtype=np.float64)
    if t.ndim != 1 or len(t) < 1 or (len(t) > 1 and np.diff(t).min() <= 0):
        raise InputError("the times of a rollout must increase")
    if starts.ndim != 3 or starts.shape[1:] != grid.shape or (restart and len(starts) != len(t)):
        raise InputError(f"frames of shape {starts.shape} do not fit {len(t)} times and the grid {grid.shape}")
    if not np.isfinite(starts).all():
        raise InputError("a rollout cannot start from a frame with missing values (NaN); fill or mask them first")
    v = np.zeros((len(t), 2)) if velocity is None else np.asarray(velocity, float)
    if v.shape != (len(t), 2) or not np.isfinite(v).all():
        raise InputError(f"the drift velocity needs shape ({len(t)}, 2) and finite values, not shape {v.shape}")
    keep = np.arange(len(t))
    if frames is not None:
        keep = np.full(len(t), -1)
        keep[np.asarray(frames, int)] = np.arange(len(frames))
    values = starts.astype(settings.precision, copy=False)
    largest = float(np.abs(values).max())
    normalised = settings.clip == "auto" and float(values.min()) >= 0.0 and largest <= 1.0
    clipping = settings.clip == "on" or normalised
    reach = BLOW_UP * max(largest, 1.0)
    low, high = (0.0, 1.0) if clipping else (-reach, reach)
    content = max(float(np.abs(starts[0]).sum()), 1e-12)
    return Task(
        model.with_viscosity(settings.viscosity),
        np.ascontiguousarray(values),
        restart,
        t,
        v * np.asarray(model.drift_scale),
        *_prepare_flow(model, t, grid, settings),
        keep,
        (low, high, -reach, reach),
        CLIP_SHARE * content if clipping else 0.0,
        clipping,
        content,
    )


def _prepare_flow(
    model: Model, times: NDArray[np.float64], grid: Grid, settings: RolloutSettings
) -> tuple[bool, Array, NDArray[np.float64]]:
    """Say whether there is a flow; give its fields (l, 2, y, x) and their factors in every frame interval."""
    flow, intervals = model.flow, max(len(times) - 1, 0)
    if flow is None:
        return False, np.zeros((0, 2, 1, 1), settings.precision), np.zeros((intervals, 0))
    if flow.kind == "given":
        flow = flow.scaled(model.drift_scale)
    # the mean over an interval, by Simpson's rule
    ends, middles = flow.weights(times), flow.weights(0.5 * (times[1:] + times[:-1]))
    factors = (ends[1:] + ends[:-1] + 4 * middles) / 6
    used = np.flatnonzero(np.abs(factors).max(axis=0, initial=0.0) > 0)
    fields = np.ascontiguousarray(flow.fields(grid)[used], settings.precision)
    return True, fields, np.ascontiguousarray(factors[:, used])


def _run(
    tasks: Sequence[Task],
    grid: Grid,
    settings: RolloutSettings,
    accuracy: int,
    output: str | None,
    workers: int | Literal["auto"],
    device: Device,
    region: Region | None = None,
    outs: Sequence[Array] | None = None,
) -> list[Rollout]:
    """Run the tasks; ``outs``: where their frames are to be written, instead of arrays of their own.

    Regions run on the CPU, whatever the device.
    """
    stored = np.dtype(output or settings.precision)
    if region is not None and region.rim is not None and region.rim.shape != (len(tasks[0].times), *grid.shape):
        raise InputError(f"a rim of shape {region.rim.shape} does not fit {len(tasks[0].times)} times on {grid.shape}")
    if device == "gpu" and region is None:
        from video2pde.rollout.jax_backend import advance_with_jax

        outcomes = advance_with_jax(tasks, grid, settings, accuracy, stored)
        return [_report(task, *outcome, settings) for task, outcome in zip(tasks, outcomes, strict=True)]
    walls = region is not None and region.walls
    kernels = [
        compile_kernel(Structure(task.model.terms, accuracy, settings.precision, task.flows, walls)) for task in tasks
    ]
    for kernel in kernels:
        if kernel.radius > min(grid.shape):
            raise InputError(f"a grid of {grid.ny}×{grid.nx} is smaller than the stencil's reach of {kernel.radius}")

    def run(job: tuple[Task, Kernel, Array | None]) -> Rollout:
        task, kernel, given = job
        out = np.empty((int(task.keep.max()) + 1, *grid.shape), stored) if given is None else given
        return _report(task, out, *_advance(task, kernel, grid, settings, region, out), settings)

    jobs = list(zip(tasks, kernels, [None] * len(tasks) if outs is None else outs, strict=True))
    return map_threads(run, jobs, workers)


def _advance(
    task: Task, kernel: Kernel, grid: Grid, settings: RolloutSettings, region: Region | None, out: Array
) -> tuple[int, int, NDArray[np.int64], float]:
    """Run the compiled loop into ``out``; give status, failed frame, substeps and clipped amount."""
    margin = 2 * kernel.radius
    real = np.dtype(settings.precision)
    buffers = np.zeros((3, grid.ny + margin, grid.nx + margin), real)
    status, frame, substeps, lost = kernel.advance(
        task.starts,
        task.restart,
        out,
        task.keep,
        buffers,
        task.times,
        task.velocity,
        task.fields,
        task.factors,
        np.zeros((2, *(grid.shape if len(task.fields) else (1, 1))), real),
        np.array(task.model.coefficients, real),
        (1.0 / grid.dx, 1.0 / grid.dy),
        task.limits,
        task.allowed,
        EDGES[settings.boundary],
        *_prepare_region(region, kernel),
        settings.safety,
        settings.max_substeps,
    )
    return int(status), int(frame), substeps, float(lost)


def _prepare_region(
    region: Region | None, kernel: Kernel
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float32]]:
    """Return neighbours between walls, what is outside, and what is seen there; empty where there is none."""
    near, outside = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0), bool)
    rim = np.zeros((0, 0, 0), np.float32)
    if region is None:
        return near, outside, rim
    if region.rim is None:
        return region.neighbours(kernel.offsets, kernel.radius), outside, rim
    return near, np.ascontiguousarray(~region.inside), np.ascontiguousarray(region.rim, np.float32)


def _report(
    task: Task,
    values: Array,
    status: int,
    frame: int,
    substeps: NDArray[np.int64],
    lost: float,
    settings: RolloutSettings,
) -> Rollout:
    failed = status != driver.OK
    reason = ""
    if failed:
        values[task.keep[frame:][task.keep[frame:] >= 0]] = np.nan
        reason = _explain(task, status, frame, settings)
    share = lost / task.content if task.clipping else 0.0
    return Rollout(values, failed, frame if failed else None, reason, substeps, share)


def _explain(task: Task, status: int, frame: int, settings: RolloutSettings) -> str:
    where = f"before frame {frame} of {len(task.times) - 1} (t = {task.times[frame]:.4g} s)"
    if status == driver.TOO_MANY_SUBSTEPS:
        return f"more than {settings.max_substeps} substeps were needed {where}"
    if status == driver.CLIPPED and task.clipping:
        return f"clipping to [0, 1] took more than {CLIP_SHARE:.0%} of the field {where}"
    return f"the field blew up {where}"
