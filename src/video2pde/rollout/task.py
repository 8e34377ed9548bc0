"""One simulation: its inputs, checked; the compiled loop or JAX that carries it out; how it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.device import Device
from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.parallel import map_threads
from video2pde.rollout import driver
from video2pde.rollout.kernels import compile_kernel, Kernel, Structure
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.room import empty
from video2pde.settings import RolloutSettings
from video2pde.terms import Term

Array = NDArray[Any]

BLOW_UP = 1e3
"""A value this many times larger than the data is a blow-up."""
EDGES = {"replicate": driver.MIRRORED, "periodic": driver.PERIODIC, "open": driver.OPEN}
CLIP_SHARE = 0.1
"""Share of the first frame's content that clipping may take away before the rollout counts as failed."""


@dataclass(frozen=True, eq=False)
class Scheme:
    """How simulations are carried out.

    Parameters
    ----------
    settings : safety, substeps, viscosity, boundary, clipping, number type.
    accuracy : order of the central differences, 2 or 4.
    output : number type of the stored frames; None: that of the simulation.
    region : where the law holds, and what its edge is; None: everywhere.
    workers : threads; they change no result.
    device : ``"gpu"`` runs the same scheme through JAX; regions run on the CPU, whatever the device.
    vocabulary : terms of all laws that will be simulated; a device then runs one program for all of them.
    """

    settings: RolloutSettings = field(default_factory=RolloutSettings)
    accuracy: int = 4
    output: str | None = None
    region: Region | None = None
    workers: int | Literal["auto"] = 1
    device: Device = "cpu"
    vocabulary: tuple[Term, ...] = ()

    @property
    def stored(self) -> np.dtype[Any]:
        return np.dtype(self.output or self.settings.precision)


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
    """The checked inputs of one simulation.

    ``coefficients`` (1, K) of the law, or (t − 1, K) where one varies in time, then the lowest and highest of each map;
    ``maps`` (n, y, x): coefficients that vary in space, of the terms ``mapped``.
    ``starts`` (s, y, x): the initial frame, or with ``restart`` the frame that starts each interval; ``flows``: whether
    there is a flow, Σ ``factors`` (t − 1, l) × ``fields`` (l, 2, y, x); ``keep`` (t,): where a frame is stored, −1 for
    nowhere; ``limits`` of a result and of an intermediate stage; ``allowed``: what clipping may take of the
    ``content``, the first frame's sum; ``place``: how many frames of a longer simulation come before these, and the
    number of its last one.
    """

    model: Model
    coefficients: NDArray[np.float64]
    mapped: tuple[int, ...]
    maps: Array
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
    place: tuple[int, int] | None = None


def prepare_task(
    model: Model,
    starts: Array,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None,
    settings: RolloutSettings,
    *,
    restart: bool = False,
    frames: Sequence[int] | None = None,
    bounds: Bounds | None = None,
) -> Task:
    """Check the inputs of a simulation; ``frames``: those to keep, None: all; ``bounds``: None: by these starts."""
    t = own(np.asarray(times, np.float64))
    if t.ndim != 1 or len(t) < 1 or (len(t) > 1 and np.diff(t).min() <= 0):
        raise InputError("the times of a rollout must increase")
    if starts.ndim != 3 or starts.shape[1:] != grid.shape or (restart and len(starts) != len(t)):
        raise InputError(f"frames of shape {starts.shape} do not fit {len(t)} times and the grid {grid.shape}")
    survey = survey_frames(starts)
    if not survey.finite:
        raise InputError("a rollout cannot start from a frame with missing values (NaN); fill or mask them first")
    v = np.zeros((len(t), 2)) if velocity is None else np.asarray(velocity, float)
    if v.shape != (len(t), 2) or not np.isfinite(v).all():
        raise InputError(f"the drift velocity needs shape ({len(t)}, 2) and finite values, not shape {v.shape}")
    keep = np.arange(len(t))
    if frames is not None:
        keep = np.full(len(t), -1)
        keep[np.asarray(frames, int)] = np.arange(len(frames))
    values = starts.astype(settings.precision, copy=False)
    bounds = bounds or bounds_of(survey, settings)
    content = max(survey.content, 1e-12) if bounds.content is None else bounds.content
    flows, fields, factors = _prepare_flow(model, t, grid, settings)
    model = model.with_viscosity(settings.viscosity)
    coefficients, mapped, maps = _prepare_maps(model, t, grid, settings)
    return Task(
        model=model,
        coefficients=coefficients,
        mapped=mapped,
        maps=maps,
        starts=own(values),
        restart=restart,
        times=t,
        velocity=own(v * np.asarray(model.drift_scale)),
        flows=flows,
        fields=fields,
        factors=factors,
        keep=keep,
        limits=bounds.limits,
        allowed=CLIP_SHARE * content if bounds.clipping else 0.0,
        clipping=bounds.clipping,
        content=content,
    )


@dataclass(frozen=True)
class Bounds:
    """How far values may go: ``limits`` of a result and of an intermediate stage, and whether that is clipping.

    ``content``: the sum over the frame of which clipping may take a share; None: over a task's first start.
    """

    limits: tuple[float, float, float, float]
    clipping: bool
    content: float | None = None


@dataclass(frozen=True)
class Survey:
    """What frames hold: the lowest value, the largest size of one, the first frame's sum of sizes, and whether all are
    finite."""

    lowest: float
    largest: float
    content: float
    finite: bool


def survey_frames(frames: Array) -> Survey:
    """Look at frames (t, y, x) once: rollouts go on from a state every few frames, and looking takes as long as one."""
    seen = np.ascontiguousarray(frames).view()
    seen.flags.writeable = False  # compiled for one kind of array
    lowest, largest, sizes, first = driver.survey(seen)
    total = float(sizes.sum())
    return Survey(float(lowest.min()), float(largest.max()), float(first.sum()), math.isfinite(total))


def bounds_of(survey: Survey, settings: RolloutSettings) -> Bounds:
    """Take the bounds of simulations that start from frames like these."""
    lowest, largest = survey.lowest, survey.largest
    clipping = settings.clip == "on" or (settings.clip == "auto" and lowest >= 0.0 and largest <= 1.0)
    reach = BLOW_UP * max(largest, 1.0)
    return Bounds((*((0.0, 1.0) if clipping else (-reach, reach)), -reach, reach), clipping)


def own(values: Array) -> Array:
    """Return values as the compiled loop takes them: in order, and not for reading alone; copied only where needed."""
    return np.require(values, requirements=["C", "W"])


def _prepare_flow(
    model: Model, times: NDArray[np.float64], grid: Grid, settings: RolloutSettings
) -> tuple[bool, Array, NDArray[np.float64]]:
    """Return whether there is a flow, its fields (l, 2, y, x) and their factors in every frame interval."""
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


def _prepare_maps(
    model: Model, times: NDArray[np.float64], grid: Grid, settings: RolloutSettings
) -> tuple[NDArray[np.float64], tuple[int, ...], Array]:
    """Return the coefficients of every interval, or of all, which terms vary in space, and how, (n, y, x)."""
    names = [term.name for term in model.terms]
    in_time = [each for each in model.maps if each.over == "time"]
    in_space = [each for each in model.maps if each.over == "space"]
    rows = max(len(times) - 1, 1) if in_time else 1
    coefficients = np.tile(np.array(model.coefficients, float), (rows, 1))
    for each in in_time:
        index = names.index(each.term)
        if len(times) > 1:
            coefficients[:, index] = each.on_intervals(model.coefficients[index], times)
    mapped = tuple(names.index(each.term) for each in in_space)
    fields = [each.field(model.coefficients[n], grid) for each, n in zip(in_space, mapped, strict=True)]
    ends = np.array([end for field in fields for end in (field.min(), field.max())])
    maps = np.array(fields, settings.precision).reshape(-1, *(grid.shape if fields else (1, 1)))
    return np.hstack([coefficients, np.tile(ends, (rows, 1))]), mapped, maps


def run_tasks(tasks: Sequence[Task], grid: Grid, scheme: Scheme, outs: Sequence[Array] | None = None) -> list[Rollout]:
    """Run the tasks; ``outs``: where their frames are to be written, instead of arrays of their own."""
    settings, region = scheme.settings, scheme.region
    if not tasks:  # all have failed before
        return []
    if region is not None and region.rim is not None and region.rim.shape != (len(tasks[0].times), *grid.shape):
        raise InputError(f"a rim of shape {region.rim.shape} does not fit {len(tasks[0].times)} times on {grid.shape}")
    if scheme.device == "gpu" and region is None:
        from video2pde.rollout.jax_backend import advance_with_jax

        places = [_room(task, grid, scheme) for task in tasks] if outs is None else outs
        outcomes = advance_with_jax(tasks, grid, scheme, places)
        return [_report(*each, settings) for each in zip(tasks, places, outcomes, strict=True)]
    shape = (scheme.accuracy, settings.precision)
    walls = region is not None and region.walls
    if region is not None and region.rim is not None:
        # once for all tasks
        scheme = replace(scheme, region=Region(region.inside, own(np.asarray(region.rim, np.float32))))
    kernels = [compile_kernel(Structure(task.model.terms, *shape, task.flows, walls, task.mapped)) for task in tasks]
    for kernel in kernels:
        kernel.check_reach(grid)

    def run(job: tuple[Task, Kernel, Array | None]) -> Rollout:
        task, kernel, given = job
        out = _room(task, grid, scheme) if given is None else given
        return _report(task, out, _advance(task, kernel, grid, scheme, out), settings)

    jobs = list(zip(tasks, kernels, [None] * len(tasks) if outs is None else outs, strict=True))
    return map_threads(run, jobs, scheme.workers)


def _room(task: Task, grid: Grid, scheme: Scheme) -> Array:
    """Return room for the frames that a simulation keeps."""
    return empty((int(task.keep.max()) + 1, *grid.shape), scheme.stored)


def _advance(
    task: Task, kernel: Kernel, grid: Grid, scheme: Scheme, out: Array
) -> tuple[int, int, NDArray[np.int64], float]:
    """Run the compiled loop into ``out``; return status, failed frame, substeps and clipped amount."""
    settings, margin = scheme.settings, 2 * kernel.radius
    real = np.dtype(settings.precision)
    wind = np.zeros((2, *(grid.shape if len(task.fields) else (1, 1))), real)
    status, frame, substeps, lost = kernel.advance(
        task.starts,
        task.restart,
        out,
        task.keep,
        np.zeros((3, grid.ny + margin, grid.nx + margin), real),
        task.times,
        (task.velocity, task.fields, task.factors, wind),
        (
            task.coefficients.astype(real),
            (1.0 / grid.dx, 1.0 / grid.dy),
            task.limits,
            task.allowed,
            _pad_maps(task.maps, kernel.radius, settings),
        ),
        (EDGES[settings.boundary], *prepare_region(scheme.region, kernel)),
        (float(settings.safety), int(settings.max_substeps)),
    )
    return int(status), int(frame), substeps, float(lost)


def _pad_maps(maps: Array, radius: int, settings: RolloutSettings) -> Array:
    """Continue coefficients beyond the picture: around, or mirrored at its edges, where nothing of them is known."""
    mode: Literal["wrap", "symmetric"] = "wrap" if settings.boundary == "periodic" else "symmetric"
    return own(np.pad(maps, ((0, 0), (radius, radius), (radius, radius)), mode=mode) if len(maps) else maps)


def prepare_region(
    region: Region | None, kernel: Kernel
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float32]]:
    """Return neighbours between walls, what is outside, and what is seen there; empty where there is none."""
    near, outside = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0), bool)
    rim = np.zeros((0, 0, 0), np.float32)
    if region is None:
        return near, outside, rim
    if region.rim is None:
        return own(region.neighbours(kernel.offsets, kernel.radius)), outside, rim
    return near, own(~region.inside), own(np.asarray(region.rim, np.float32))


def _report(
    task: Task, values: Array, outcome: tuple[int, int, NDArray[np.int64], float], settings: RolloutSettings
) -> Rollout:
    """Say how a simulation ended: status, failed frame, substeps, clipped amount."""
    status, frame, substeps, lost = outcome
    failed = status != driver.OK
    reason = ""
    if failed:
        values[task.keep[frame:][task.keep[frame:] >= 0]] = np.nan
        before, last = task.place or (0, len(task.times) - 1)
        reason = explain(status, frame + before, last, task.times[frame], task.clipping, settings)
    share = lost / task.content if task.clipping else 0.0
    return Rollout(values, failed, frame if failed else None, reason, substeps, share)


def explain(status: int, frame: int, last: int, time: float, clipping: bool, settings: RolloutSettings) -> str:
    """Say why a simulation ended before a frame."""
    where = f"before frame {frame} of {last} (t = {time:.4g} s)"
    if status == driver.TOO_MANY_SUBSTEPS:
        return f"more than {settings.max_substeps} substeps were needed {where}"
    if status == driver.CLIPPED and clipping:
        return f"clipping to [0, 1] took more than {CLIP_SHARE:.0%} of the field {where}"
    return f"the field blew up {where}"
