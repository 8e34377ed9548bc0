"""Time stepping of a rollout: one compiled loop for all laws.

A law's kernel (``kernels.py``) is two functions: ``stage``, one fused pass over the picture, and ``bound``, the
stability estimate. The loop takes them as arguments, so that it is compiled once for all laws, and a new law costs the
compilation of its own two functions alone. What goes through all of its functions is grouped: the law, the motion, the
region. Arrays are walked through element by element, which compiles several times faster than slices.

The scheme is the strong-stability-preserving Runge–Kutta method of third order (Shu and Osher): stable
along the imaginary axis up to 1.73, so that pure drift neither grows nor needs numerical diffusion, and
along the negative real axis up to 2.51.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from video2pde.compiled import njit

OK, BLOWN_UP, TOO_MANY_SUBSTEPS, CLIPPED = 0, 1, 2, 3
CLIPPING = {"off": 0, "on": 1, "auto": 2}
"""Whether values are clipped to [0, 1]; automatically where all values of the start lie there."""
MIRRORED, PERIODIC, OPEN = 0, 1, 2
"""How the picture goes on beyond its edges: nothing passes them; wrapped around; straight on."""
RECHECK = 4
"""Substeps after which the stability bound is taken again."""
# NaN and infinity keep their meaning: a rollout that blows up must be seen
OPTIONS: dict[str, Any] = {"fastmath": {"reassoc", "contract", "arcp", "nsz"}, "nogil": True, "error_model": "numpy"}

_jit = njit(**OPTIONS)
# with nothing taken for granted: what is not finite must be seen
_exact = njit(nogil=True)


def stage_type(precision: str) -> Any:
    """Return the signature of a pass: w, base, out, near, c, vx, vy, wind, maps, gx, gy, h, keep, low, high → lost."""
    real, number = _reals(precision), types.float64
    picture, near, flow = real[:, ::1], types.int64[:, :, ::1], real[:, :, ::1]
    return number(picture, picture, picture, near, real[::1], *[number] * 2, flow, flow, *[number] * 6)


def bound_type(precision: str) -> Any:
    """Return the signature of a stability estimate: (w, near, c, gx, gy) → rate."""
    real, number = _reals(precision), types.float64
    return number(real[:, ::1], types.int64[:, :, ::1], real[::1], number, number)


def _reals(precision: str) -> Any:
    return getattr(types, precision)


def law_types(precision: str) -> tuple[Any, Any, Any]:
    """Return the types of what a law is given with: its pass, its stability estimate, its stencil."""
    functions = types.FunctionType(stage_type(precision)), types.FunctionType(bound_type(precision))
    return (*functions, types.Tuple([types.int64, types.float64]))


def region_type() -> Any:
    """Return the type of a region, see :func:`step`."""
    return types.Tuple([types.int64, types.int64[:, :, ::1], types.boolean[:, ::1], types.float32[:, :, ::1]])


def _advance_type(precision: str, stored: str) -> Any:
    real, number, whole = _reals(precision), types.float64, types.int64
    motion = types.Tuple([number[:, ::1], real[:, :, :, ::1], number[:, ::1], real[:, :, ::1]])
    law = types.Tuple([real[:, ::1], types.UniTuple(number, 2), types.UniTuple(number, 4), number, real[:, :, ::1]])
    kept = _reals(stored)[:, :, ::1]
    pictures = real[:, :, ::1]
    control = types.Tuple([number, whole])
    return (
        *law_types(precision),
        pictures,
        types.boolean,
        kept,
        whole[::1],
        pictures,
        number[::1],
        motion,
        law,
        region_type(),
        control,
    )


def together_types(precision: str) -> tuple[Any, ...]:
    """Return the types that a loop over simulations takes first: those of :func:`carry_on`, and which are chosen."""
    real, number, whole = _reals(precision), types.float64, types.int64
    still = types.Tuple([real[:, :, :, ::1], number[:, ::1], real[:, :, ::1], real[:, :, ::1]])
    course = types.Tuple([number[::1], whole[::1], types.UniTuple(whole, 2), number[:, :, ::1], still])
    rule = types.Tuple([whole, number, number])
    law = types.Tuple([real[:, :, ::1], types.UniTuple(number, 2), rule])
    control = types.Tuple([number, whole])
    buffers = states = real[:, :, ::1]
    ends, substeps, chosen = number[:, ::1], whole[:, ::1], whole[::1]
    return (
        *law_types(precision),
        states,
        buffers,
        course,
        law,
        region_type(),
        control,
        ends,
        substeps,
        chosen,
    )


def _advance_all_type(precision: str) -> tuple[Any, ...]:
    return (*together_types(precision), _reals(precision)[:, :, :, ::1])


@_jit
def pad(w: Any, radius: int, edge: int) -> None:
    """Fill the margin of a padded frame: mirrored at the edges (no flux), wrapped around, or straight on (open)."""
    ny, nx = w.shape[0] - 2 * radius, w.shape[1] - 2 * radius
    x_end, y_end = radius + nx - 1, radius + ny - 1
    for k in range(1, radius + 1):
        left, right = radius + k - 1, x_end - k + 1
        if edge == PERIODIC:
            left, right = right, left
        for j in range(radius, radius + ny):
            if edge == OPEN:
                w[j, radius - k] = 2 * w[j, radius] - w[j, radius + k]
                w[j, x_end + k] = 2 * w[j, x_end] - w[j, x_end - k]
            else:
                w[j, radius - k] = w[j, left]
                w[j, x_end + k] = w[j, right]
    for k in range(1, radius + 1):
        top, bottom = radius + k - 1, y_end - k + 1
        if edge == PERIODIC:
            top, bottom = bottom, top
        for i in range(w.shape[1]):
            if edge == OPEN:
                w[radius - k, i] = 2 * w[radius, i] - w[radius + k, i]
                w[y_end + k, i] = 2 * w[y_end, i] - w[y_end - k, i]
            else:
                w[radius - k, i] = w[top, i]
                w[y_end + k, i] = w[bottom, i]


@_jit
def follow(w: Any, radius: int, outside: Any, rim: Any, first: int, share: float) -> None:
    """Put what was recorded outside the region into a padded frame, ``share`` of the way from frame ``first`` on."""
    for j in range(outside.shape[0]):
        for i in range(outside.shape[1]):
            if outside[j, i] and share == 0.0:
                w[j + radius, i + radius] = rim[first, j, i]
            elif outside[j, i]:
                w[j + radius, i + radius] = (1.0 - share) * rim[first, j, i] + share * rim[first + 1, j, i]


@_jit
def blow(fields: Any, factors: Any, frame: int, axis: int, wind: Any) -> float:
    """Add up a flow's velocity of one frame interval along one axis, Σ_l factors_l fields_l; return the largest speed.

    fields (l, 2, y, x): v_x, v_y. wind (2, y, x).
    """
    largest = 0.0
    for j in range(wind.shape[1]):
        for i in range(wind.shape[2]):
            total = 0.0
            for n in range(fields.shape[0]):
                total += factors[frame, n] * fields[n, axis, j, i]
            wind[axis, j, i] = total
            largest = max(largest, abs(total))
    return largest


@_jit
def begin(u: Any, radius: int, frame: Any, region: Any, k: int) -> None:
    """Put a frame into a padded one, with what was recorded outside the region, and fill its margin."""
    edge, _, outside, rim = region
    for j in range(frame.shape[0]):
        for i in range(frame.shape[1]):
            u[j + radius, i + radius] = frame[j, i]
    if outside.shape[0] > 0:
        follow(u, radius, outside, rim, k, 0.0)
    pad(u, radius, edge)


@_jit
def step(
    stage: Any, radius: int, frames: Any, law: Any, motion: Any, region: Any, k: int, t: float, h: float, share: Any
) -> float:
    """Advance u by one substep h; the result stands in ``a``. Return the sum of what was clipped.

    frames: u, a, b, padded by ``radius``. law: coefficients (of this frame interval), (1/Δx, 1/Δy), the limits of a
    result and of an intermediate stage, what clipping may take, coefficients that vary in space (n, y, x), padded.
    motion: velocity at the start of the frame interval, its rate of change,
    and the flow beside it (2, y, x). region: edge; neighbours between walls (``rollout.region``); outside (y, x), where
    the picture follows the rim (t, y, x) from frame k to the next; both empty: not at all. share: how far between them
    the substep begins and ends.
    """
    u, a, b = frames
    c, g, clip, _, maps = law
    drift, slope, wind = motion
    edge, near, outside, rim = region
    lost = 0.0
    for n in range(3):
        w = u if n == 0 else (a if n == 1 else b)
        out = b if n == 1 else a
        keep = 0.0 if n == 0 else (0.75 if n == 1 else 1.0 / 3.0)
        s = t + (0.0 if n == 0 else (h if n == 1 else 0.5 * h))
        low, high = (clip[0], clip[1]) if n == 2 else (clip[2], clip[3])
        vx, vy = drift[0] + s * slope[0], drift[1] + s * slope[1]
        lost = stage(w, u, out, near, c, vx, vy, wind, maps, g[0], g[1], h, keep, low, high)
        if outside.shape[0] > 0:
            reached = 0.5 * (share[0] + share[1]) if n == 1 else share[1]
            follow(out, radius, outside, rim, k, reached)
        pad(out, radius, edge)
    return lost


@_jit
def cross(
    stage: Any,
    bound: Any,
    stencil: Any,
    frames: Any,
    interval: float,
    velocity: Any,
    wind: Any,
    law: Any,
    region: Any,
    control: Any,
    state: Any,
    k: int,
) -> Any:
    """Cross frame interval k; return the frames, the new one first, the state, the substeps used and the status.

    stencil: its radius and the largest modulus of a first difference's Fourier symbol, over the method's limit.
    velocity (t, 2). wind: the flow (2, y, x), and its largest |v_x|, |v_y|. control: safety, most substeps. state: the
    stability bound, its age in substeps, and what was clipped since the start. The rest: see :func:`step`.
    """
    radius, advection = stencil
    u, a, b = frames
    c, g, _, allowed, _ = law
    flow, wind_x, wind_y = wind
    safety, most = control
    rate, age, lost = state
    drift = (velocity[k, 0], velocity[k, 1])
    slope = ((velocity[k + 1, 0] - drift[0]) / interval, (velocity[k + 1, 1] - drift[1]) / interval)
    fastest_x = max(abs(velocity[k, 0]), abs(velocity[k + 1, 0])) + wind_x
    fastest_y = max(abs(velocity[k, 1]), abs(velocity[k + 1, 1])) + wind_y
    t, left, used, status = 0.0, 1, 0, OK
    while left > 0 and status == OK:
        if age >= RECHECK:
            rate, age = bound(u, region[1], c, g[0], g[1]), 0
        wanted = (interval - t) * (rate + advection * (fastest_x * g[0] + fastest_y * g[1])) / safety
        # written so that a NaN counts as too much
        if not wanted <= most - used:
            status = TOO_MANY_SUBSTEPS
            break
        left = max(1, math.ceil(wanted))
        h = (interval - t) / left
        share = (t / interval, (t + h) / interval)
        lost += step(stage, radius, (u, a, b), law, (drift, slope, flow), region, k, t, h, share)
        u, a = a, u
        t, age, left, used = t + h, age + 1, left - 1, used + 1
        if not lost <= allowed:
            status = CLIPPED if math.isfinite(lost) else BLOWN_UP
    return (u, a, b), (rate, age, lost), used, status


@_jit
def blows_anew(factors: Any, k: int) -> bool:
    """Tell whether the flow of frame interval k is another than that of the one before."""
    differing = 0
    for n in range(factors.shape[1]):
        if k == 0 or factors[k, n] != factors[k - 1, n]:
            differing += 1
    return differing > 0


@_jit
def store(out: Any, place: int, u: Any, radius: int) -> None:
    """Put what a padded frame holds into a frame of the result."""
    for j in range(out.shape[1]):
        for i in range(out.shape[2]):
            out[place, j, i] = u[j + radius, i + radius]


def advance(
    stage: Any,
    bound: Any,
    stencil: Any,
    starts: Any,
    restart: bool,
    out: Any,
    keep: Any,
    buffers: Any,
    times: Any,
    motion: Any,
    law: Any,
    region: Any,
    control: Any,
) -> Any:
    """Roll out over all frame intervals; return (status, frame, substeps, clipped amount).

    stage, bound: the law's own. stencil: see :func:`cross`. starts (s, y, x): the initial frame, or with ``restart``
    the observed frame that starts each interval. out (o, y, x), keep (t,): frame k goes to out[keep[k]] where
    keep[k] ≥ 0. buffers (3, y, x), padded. motion: velocity (t, 2); fields (l, 2, y, x) and factors (t − 1, l) of the
    flow beside it, constant over a frame interval; room for it (2, y, x). law: see :func:`step`; clipping may take so
    much since the last start; its coefficients have a row for each interval, or one for all. region: see :func:`step`.
    control: see :func:`cross`.
    """
    radius = stencil[0]
    velocity, fields, factors, wind = motion
    coefficients, pitch, clip, allowed, maps = law
    frames = (buffers[0], buffers[1], buffers[2])
    substeps = np.zeros(times.shape[0] - 1, np.int64)
    rate, age, lost, worst = 0.0, RECHECK, 0.0, 0.0
    wind_x, wind_y = 0.0, 0.0
    if keep[0] >= 0:
        for j in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[keep[0], j, i] = starts[0, j, i]
    for k in range(times.shape[0] - 1):
        if restart or k == 0:
            begin(frames[0], radius, starts[k], region, k)
            age, lost = RECHECK, 0.0
        if blows_anew(factors, k):
            wind_x, wind_y = blow(fields, factors, k, 0, wind), blow(fields, factors, k, 1, wind)
        if k > 0 and coefficients.shape[0] > 1:
            age = RECHECK
        own = (coefficients[min(k, coefficients.shape[0] - 1)], pitch, clip, allowed, maps)
        interval, blown = times[k + 1] - times[k], (wind, wind_x, wind_y)
        frames, (rate, age, lost), substeps[k], status = cross(
            stage, bound, stencil, frames, interval, velocity, blown, own, region, control, (rate, age, lost), k
        )
        worst = max(worst, lost)
        if status != OK:
            return status, k + 1, substeps, worst
        if keep[k + 1] >= 0:
            store(out, keep[k + 1], frames[0], radius)
    return OK, -1, substeps, worst


@_exact
def survey(frames: Any) -> Any:
    """Return by column the lowest value, the largest size, the sum of sizes, and that of the first frame."""
    count, ny, nx = frames.shape
    lowest, largest = np.full(nx, np.inf), np.zeros(nx)
    sizes, first = np.zeros(nx), np.zeros(nx)
    for t in range(count):
        for j in range(ny):
            row = frames[t, j]
            for i in range(nx):
                value = float(row[i])
                size = abs(value)
                sizes[i] += size
                lowest[i] = value if value < lowest[i] else lowest[i]
                largest[i] = size if size > largest[i] else largest[i]
        if t == 0:
            first[:] = sizes
    return lowest, largest, sizes, first


_advance = _jit(advance)


@_jit
def carry_on(
    stage: Any,
    bound: Any,
    stencil: Any,
    states: Any,
    buffers: Any,
    course: Any,
    law: Any,
    region: Any,
    control: Any,
    ends: Any,
    substeps: Any,
    n: int,
    out: Any,
) -> int:
    """Carry simulation n on from its state (y, x) over some frames, into ``out`` (o, y, x); return the status.

    states (m, y, x) of all. course: times (t,); keep, see :func:`advance`, of the frames of this part; where the part
    begins and ends; velocities (m, t, 2); nothing of a flow and of maps. law: coefficients (m, r, K), the pitch, and
    the rule by which the state bounds what follows: clipping, how far values may go, what clipping may take of the
    content. ends (m, 5): status, frame, what was clipped, whether anything was to be, and the content. substeps (m, t).
    """
    times, keep, part, velocities, still = course
    coefficients, pitch, rule = law
    fields, factors, wind, maps = still
    first, last = part
    lowest, largest, _, sizes = survey(states[n : n + 1])
    content = max(sizes.sum(), 1e-12)
    clips = rule[0] == 1 or (rule[0] == 2 and lowest.min() >= 0.0 and largest.max() <= 1.0)
    reach = rule[1] * max(largest.max(), 1.0)
    clip = (0.0, 1.0, -reach, reach) if clips else (-reach, reach, -reach, reach)
    allowed = rule[2] * content if clips else 0.0
    own = coefficients[n, first : last - 1] if coefficients.shape[1] > 1 else coefficients[n]
    status, frame, used, lost = _advance(
        stage,
        bound,
        stencil,
        states[n : n + 1],
        False,
        out,
        keep,
        buffers,
        times[first:last],
        (velocities[n, first:last], fields, factors[first : last - 1], wind),
        (own, pitch, clip, allowed, maps),
        region,
        control,
    )
    ends[n, 0], ends[n, 1], ends[n, 2], ends[n, 3], ends[n, 4] = status, frame, lost, 1.0 if clips else 0.0, content
    for k in range(len(used)):
        substeps[n, first + k] = used[k]
    return int(status)


def advance_all(
    stage: Any,
    bound: Any,
    stencil: Any,
    states: Any,
    buffers: Any,
    course: Any,
    law: Any,
    region: Any,
    control: Any,
    ends: Any,
    substeps: Any,
    chosen: Any,
    outs: Any,
) -> None:
    """Carry the ``chosen`` simulations on, each into its own outs (m, o, y, x); see :func:`carry_on`."""
    for n in chosen:
        carry_on(stage, bound, stencil, states, buffers, course, law, region, control, ends, substeps, n, outs[n])


@lru_cache(maxsize=8)
def compile_loop(precision: str, stored: str) -> Callable[..., Any]:
    """Compile :func:`advance` for a number type and that of the frames it stores, or take it from the cache."""
    return compile_once(advance, _advance_type(precision, stored))


@lru_cache(maxsize=8)
def compile_all(precision: str) -> Callable[..., Any]:
    """Compile :func:`advance_all` for a number type, or take it from the cache."""
    return compile_once(advance_all, _advance_all_type(precision))


def compile_once(function: Callable[..., Any], signature: tuple[Any, ...]) -> Callable[..., Any]:
    """Compile a loop that is given a law's functions, for these types and no others."""
    loop = _jit(function)
    loop.compile(signature)
    # a kernel's functions would else be taken for types of their own, and the loop compiled for each law
    loop.disable_compile()
    compiled: Callable[..., Any] = loop
    return compiled
