"""Rollouts of two fields: third-order Runge–Kutta, substeps as the stability bound asks, one loop for all laws.

The scheme is that of ``rollout.driver``, with two pictures in each pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numba import types
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.field import Grid
from video2pde.pair.fields import Pair
from video2pde.pair.kernels import bound_type, compile_pair, stage_type
from video2pde.pair.law import PairLaw
from video2pde.parallel import count_workers, parallel_map
from video2pde.rollout.driver import (
    BLOWN_UP,
    follow,
    MIRRORED,
    OK,
    OPEN,
    OPTIONS,
    pad,
    PERIODIC,
    RECHECK,
    TOO_MANY_SUBSTEPS,
)
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]
EDGES = {"replicate": MIRRORED, "periodic": PERIODIC, "open": OPEN}
CHUNK = 16
"""Frames that rollouts go forward together."""
FAR = 1e3
"""Values beyond this many times the largest of the start count as a rollout that has blown up."""

_jit = njit(**OPTIONS)


@_jit
def _fill(f: Any, radius: int, edge: int, outside: Any, rim: Any, k: int, share: float) -> None:
    """Put what was recorded outside the region into a padded frame, and fill its margin."""
    if outside.shape[0] > 0:
        follow(f, radius, outside, rim, k, share)
    pad(f, radius, edge)


@_jit
def _step(
    stage: Any, radius: int, frames: Any, c: Any, g: Any, h: float, edge: int, region: Any, k: int, share: Any
) -> None:
    """Advance both fields by one substep h; the result stands in the second pair of frames.

    frames: u, w, then two pairs of room, padded. region: outside (y, x), and the recorded u and w (t, y, x) that are
    followed there from frame k to the next; share: how far between them the substep begins and ends.
    """
    fu, fw, au, aw, bu, bw = frames
    outside, rim_u, rim_w = region
    stage(fu, fw, fu, fw, au, aw, c, g[0], g[1], h, 0.0)
    _fill(au, radius, edge, outside, rim_u, k, share[1])
    _fill(aw, radius, edge, outside, rim_w, k, share[1])
    stage(au, aw, fu, fw, bu, bw, c, g[0], g[1], h, 0.75)
    middle = 0.5 * (share[0] + share[1])
    _fill(bu, radius, edge, outside, rim_u, k, middle)
    _fill(bw, radius, edge, outside, rim_w, k, middle)
    stage(bu, bw, fu, fw, au, aw, c, g[0], g[1], h, 1.0 / 3.0)
    _fill(au, radius, edge, outside, rim_u, k, share[1])
    _fill(aw, radius, edge, outside, rim_w, k, share[1])


@_jit
def _largest(f: Any, radius: int) -> float:
    """Return the largest modulus of a padded frame; infinite where a value is no number."""
    top = 0.0
    for j in range(radius, f.shape[0] - radius):
        for i in range(radius, f.shape[1] - radius):
            size = abs(f[j, i])
            # written so that a NaN counts as too much
            top = top if size <= top else size
            if not size < np.inf:
                return np.inf
    return top


def advance(
    stage: Any,
    bound: Any,
    radius: int,
    start: Any,
    out: Any,
    buffers: Any,
    times: Any,
    law: Any,
    region: Any,
    control: Any,
) -> Any:
    """Roll out over all frame intervals; return (status, frame that failed, most substeps).

    start (2, y, x), out (2, t, y, x): frame k of the rollout. buffers (6, y, x), padded. law: coefficients, (1/Δx,
    1/Δy), edge. region: see :func:`_step`. control: safety, most substeps, largest value allowed.
    """
    c, g, edge = law
    safety, most, allowed = control
    ny, nx = start.shape[1], start.shape[2]
    frames = (buffers[0], buffers[1], buffers[2], buffers[3], buffers[4], buffers[5])
    for j in range(ny):
        for i in range(nx):
            frames[0][j + radius, i + radius] = start[0, j, i]
            frames[1][j + radius, i + radius] = start[1, j, i]
            out[0, 0, j, i] = start[0, j, i]
            out[1, 0, j, i] = start[1, j, i]
    outside, rim_u, rim_w = region
    _fill(frames[0], radius, edge, outside, rim_u, 0, 0.0)
    _fill(frames[1], radius, edge, outside, rim_w, 0, 0.0)
    rate, age, worst = 0.0, RECHECK, 0
    for k in range(times.shape[0] - 1):
        interval = times[k + 1] - times[k]
        t, left, used = 0.0, 1, 0
        while left > 0:
            if age >= RECHECK:
                rate, age = bound(frames[0], frames[1], c, g[0], g[1]), 0
            wanted = (interval - t) * rate / safety
            if not wanted <= most - used:
                return TOO_MANY_SUBSTEPS, k + 1, worst
            left = max(1, math.ceil(wanted))
            h = (interval - t) / left
            share = (t / interval, (t + h) / interval)
            _step(stage, radius, frames, c, g, h, edge, region, k, share)
            frames = (frames[2], frames[3], frames[0], frames[1], frames[4], frames[5])
            t, age, left, used = t + h, age + 1, left - 1, used + 1
        worst = max(worst, used)
        if not max(_largest(frames[0], radius), _largest(frames[1], radius)) <= allowed:
            return BLOWN_UP, k + 1, worst
        for j in range(ny):
            for i in range(nx):
                out[0, k + 1, j, i] = frames[0][j + radius, i + radius]
                out[1, k + 1, j, i] = frames[1][j + radius, i + radius]
    return OK, -1, worst


@lru_cache(maxsize=1)
def _compile_loop() -> Callable[..., Any]:
    """Compile :func:`advance`, or take it from the cache."""
    number, whole = types.float64, types.int64
    law = types.Tuple([number[::1], types.UniTuple(number, 2), whole])
    region = types.Tuple([types.boolean[:, ::1], types.float32[:, :, ::1], types.float32[:, :, ::1]])
    loop = _jit(advance)
    loop.compile(
        (
            types.FunctionType(stage_type()),
            types.FunctionType(bound_type()),
            whole,
            number[:, :, ::1],
            number[:, :, :, ::1],
            number[:, :, ::1],
            number[::1],
            law,
            region,
            types.Tuple([number, whole, number]),
        )
    )
    # a kernel's functions would else be taken for types of their own, and the loop compiled for each law
    loop.disable_compile()
    compiled: Callable[..., Any] = loop
    return compiled


@dataclass(frozen=True, eq=False)
class Scene:
    """Where rollouts of two fields take place.

    Parameters
    ----------
    grid : of both fields.
    settings : those of the simulator.
    outside : (y, x), where a rollout follows ``rim`` (2, t, y, x) instead of the law; None: nowhere.
    workers : threads.
    """

    grid: Grid
    settings: RolloutSettings
    outside: NDArray[np.bool_] | None = None
    rim: Frames | None = None
    workers: int | Literal["auto"] = 1

    @classmethod
    def of(cls, pair: Pair, settings: RolloutSettings, workers: int | Literal["auto"] = 1) -> Scene:
        """Follow the recording outside its mask, where it has one."""
        core = pair.u.core
        if core is None:
            return cls(pair.grid, settings, workers=workers)
        return cls(pair.grid, settings, ~core, pair.values, workers)


@dataclass(frozen=True, eq=False)
class PairRollout:
    """Both fields as a law carries them on, (2, t, y, x); NaN from where it failed, and why."""

    values: Frames
    failure: str = ""


def roll_chunks(
    laws: Sequence[PairLaw], starts: Array, times: Array, scene: Scene, chunk: int = CHUNK
) -> Iterator[tuple[slice, Array, list[str]]]:
    """Roll laws out side by side; yield (frames, values (law, 2, frame, y, x), failures), a chunk at a time.

    ``starts`` (law, 2, y, x). What has failed is NaN from then on.
    """
    states = [np.ascontiguousarray(start, float) for start in starts]
    reasons = [""] * len(laws)
    first = 0
    allowed = [FAR * max(1e-300, float(np.abs(start).max())) for start in states]
    while first < len(times):
        # each chunk begins with the last frame of the one before, which is not yielded again
        lead = 0 if first == 0 else 1
        window = slice(first - lead, min(first + chunk, len(times)))

        tasks = list(zip(laws, states, allowed, reasons, strict=True))
        go = partial(_advance, times, window, scene)
        found = parallel_map(go, tasks, min(count_workers(scene.workers), len(laws)), kind="threads")
        values = np.stack([part for part, _ in found])
        reasons = [reason for _, reason in found]
        states = [np.ascontiguousarray(part[:, -1]) for part, _ in found]
        yield slice(first, window.stop), values[:, :, lead:], reasons
        first = window.stop


def _advance(times: Array, window: slice, scene: Scene, task: tuple[PairLaw, Array, float, str]) -> tuple[Array, str]:
    """Carry one law over a window of frames; ``task``: the law, its state, the largest value allowed, why it failed."""
    law, state, allowed, failed = task
    count = window.stop - window.start
    out = np.full((2, count, *scene.grid.shape), np.nan)
    if failed or not np.isfinite(state).all():
        return out, failed or "the rollout starts from values that are no numbers"
    kernel, settings = compile_pair(law.terms), scene.settings
    radius = kernel.radius
    buffers = np.zeros((6, scene.grid.ny + 2 * radius, scene.grid.nx + 2 * radius))
    nothing = np.zeros((0, 0, 0), np.float32)
    if scene.outside is None or scene.rim is None:
        region = (np.zeros((0, 0), bool), nothing, nothing)
    else:
        region = (np.array(scene.outside), np.array(scene.rim[0, window]), np.array(scene.rim[1, window]))
    status, frame, _ = _compile_loop()(
        kernel.stage,
        kernel.bound,
        radius,
        state,
        out,
        buffers,
        np.array(times[window]),
        (law.vector, (1 / scene.grid.dx, 1 / scene.grid.dy), EDGES[settings.boundary]),
        region,
        (settings.safety, settings.max_substeps, allowed),
    )
    if status == OK:
        return out, ""
    out[:, frame:] = np.nan
    time = float(times[window.start + frame])
    if status == TOO_MANY_SUBSTEPS:
        return out, f"at {time:.4g} s more than {settings.max_substeps} substeps were needed (rollout.max_substeps)"
    return out, f"the fields grew beyond all bounds before {time:.4g} s"


def roll_out(law: PairLaw, start: Array, times: Array, scene: Scene) -> PairRollout:
    """Predict both fields (2, t, y, x) at the times from their values (2, y, x) at the first."""
    values = np.empty((2, len(times), *scene.grid.shape), np.float32)
    reason = ""
    for frames, found, reasons in roll_chunks([law], start[None], times, scene):
        values[:, frames] = found[0]
        reason = reasons[0]
    return PairRollout(values, reason)
