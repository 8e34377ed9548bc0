"""Time stepping of a rollout: the loop that is written once and compiled with every kernel.

``kernels.py`` pastes the source of :data:`PASTED` behind the generated ``stage`` and ``bound`` of a set of terms and
compiles the whole with numba. The functions here are plain Python; ``stage``, ``bound`` and ``RADIUS`` are those of the
generated module. What goes through all of them is grouped: the law, the motion, the region.

The scheme is the strong-stability-preserving Runge–Kutta method of third order (Shu and Osher): stable
along the imaginary axis up to 1.73, so that pure drift neither grows nor needs numerical diffusion, and
along the negative real axis up to 2.51.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

RADIUS = 2
ADVECTION = 1.0
OK, BLOWN_UP, TOO_MANY_SUBSTEPS, CLIPPED = 0, 1, 2, 3
MIRRORED, PERIODIC, OPEN = 0, 1, 2
"""How the picture goes on beyond its edges: nothing passes them; wrapped around; straight on."""
RECHECK = 4
"""Substeps after which the stability bound is taken again."""


def stage(*_: Any) -> float:
    """Stand for the generated pass: out = keep·base + (1 − keep)·(w + h·F(w)), clipped; return Σ|clipped|."""
    raise AssertionError("replaced by generated code for each set of terms")


def bound(*_: Any) -> float:
    """Stand for the generated bound on the spectral radius of the linearised operator, over the method's limits."""
    raise AssertionError("replaced by generated code for each set of terms")


def pad(w: Any, edge: int) -> None:
    """Fill the margin of a padded frame: mirrored at the edges (no flux), wrapped around, or straight on (open)."""
    ny = w.shape[0] - 2 * RADIUS
    nx = w.shape[1] - 2 * RADIUS
    x_end, y_end = RADIUS + nx - 1, RADIUS + ny - 1
    if edge == OPEN:
        for k in range(1, RADIUS + 1):
            for j in range(RADIUS, RADIUS + ny):
                w[j, RADIUS - k] = 2 * w[j, RADIUS] - w[j, RADIUS + k]
                w[j, x_end + k] = 2 * w[j, x_end] - w[j, x_end - k]
        for k in range(1, RADIUS + 1):
            w[RADIUS - k, :] = 2 * w[RADIUS, :] - w[RADIUS + k, :]
            w[y_end + k, :] = 2 * w[y_end, :] - w[y_end - k, :]
        return
    periodic = edge == PERIODIC
    for k in range(RADIUS):
        left = x_end - k if periodic else RADIUS + k
        right = RADIUS + k if periodic else x_end - k
        for j in range(RADIUS, RADIUS + ny):
            w[j, RADIUS - 1 - k] = w[j, left]
            w[j, RADIUS + nx + k] = w[j, right]
    for k in range(RADIUS):
        top = y_end - k if periodic else RADIUS + k
        bottom = RADIUS + k if periodic else y_end - k
        w[RADIUS - 1 - k, :] = w[top, :]
        w[RADIUS + ny + k, :] = w[bottom, :]


def follow(w: Any, outside: Any, before: Any, after: Any, share: float) -> None:
    """Put what was recorded outside the region into a padded frame, ``share`` of the way between two frames."""
    for j in range(outside.shape[0]):
        for i in range(outside.shape[1]):
            if outside[j, i]:
                w[j + RADIUS, i + RADIUS] = (1.0 - share) * before[j, i] + share * after[j, i]


def blow(fields: Any, factors: Any, wind: Any) -> Any:
    """Add up the flow's velocity of one frame interval, wind = Σ_l factors_l fields_l; return its largest |v_x|, |v_y|.

    fields (l, 2, y, x): v_x, v_y. wind (2, y, x).
    """
    wind[:] = 0.0
    for n in range(fields.shape[0]):
        wind += factors[n] * fields[n]
    return np.abs(wind[0]).max(), np.abs(wind[1]).max()


def begin(u: Any, frame: Any, region: Any) -> None:
    """Put a frame into a padded one, with what was recorded outside the region, and fill its margin."""
    edge, _, outside, rim = region
    u[RADIUS : u.shape[0] - RADIUS, RADIUS : u.shape[1] - RADIUS] = frame
    if outside.shape[0] > 0:
        follow(u, outside, rim[0], rim[0], 0.0)
    pad(u, edge)


def step(frames: Any, law: Any, motion: Any, region: Any, t: float, h: float, share: Any) -> float:
    """Advance u by one substep h; the result stands in ``a``. Return the sum of what was clipped.

    frames: u, a, b, padded. law: coefficients, (1/Δx, 1/Δy), the limits of a result and of an intermediate stage, what
    clipping may take. motion: velocity at the start of the frame interval, its rate of change, and the flow beside it
    (2, y, x). region: edge; neighbours between walls (``rollout.region``); outside (y, x), where the picture follows
    the rim, the frames before and after (2, y, x); both empty: not at all. share: how far between them the substep
    begins and ends.
    """
    u, a, b = frames
    c, g, clip, _ = law
    drift, slope, wind = motion
    edge, near, outside, rim = region
    lost = 0.0
    for n in range(3):
        w = u if n == 0 else (a if n == 1 else b)
        out = b if n == 1 else a
        keep = 0.0 if n == 0 else (0.75 if n == 1 else 1.0 / 3.0)
        s = t + (0.0 if n == 0 else (h if n == 1 else 0.5 * h))
        low, high = (clip[0], clip[1]) if n == 2 else (clip[2], clip[3])
        v = (drift[0] + s * slope[0], drift[1] + s * slope[1])
        lost = stage(w, u, out, near, c, v[0], v[1], wind, g[0], g[1], h, keep, low, high)
        if outside.shape[0] > 0:
            reached = 0.5 * (share[0] + share[1]) if n == 1 else share[1]
            follow(out, outside, rim[0], rim[1], reached)
        pad(out, edge)
    return lost


def cross(
    frames: Any, interval: float, velocity: Any, wind: Any, law: Any, region: Any, control: Any, state: Any
) -> Any:
    """Cross one frame interval; return the frames, the new one first, the state, the substeps used and the status.

    velocity (2, 2): at both ends. wind: the flow (2, y, x), and its largest |v_x|, |v_y|. control: safety, most
    substeps. state: the stability bound, its age in substeps, and what was clipped since the start. The rest: see
    :func:`step`.
    """
    u, a, b = frames
    c, g, _, allowed = law
    flow, wind_x, wind_y = wind
    safety, most = control
    rate, age, lost = state
    drift = (velocity[0, 0], velocity[0, 1])
    slope = ((velocity[1, 0] - drift[0]) / interval, (velocity[1, 1] - drift[1]) / interval)
    fastest_x = max(abs(velocity[0, 0]), abs(velocity[1, 0])) + wind_x
    fastest_y = max(abs(velocity[0, 1]), abs(velocity[1, 1])) + wind_y
    t, left, used, status = 0.0, 1, 0, OK
    while left > 0 and status == OK:
        if age >= RECHECK:
            rate, age = bound(u, region[1], c, g[0], g[1]), 0
        wanted = (interval - t) * (rate + ADVECTION * (fastest_x * g[0] + fastest_y * g[1])) / safety
        # written so that a NaN counts as too much
        if not wanted <= most - used:
            status = TOO_MANY_SUBSTEPS
            break
        left = max(1, math.ceil(wanted))
        h = (interval - t) / left
        share = (t / interval, (t + h) / interval)
        lost += step((u, a, b), law, (drift, slope, flow), region, t, h, share)
        u, a = a, u
        t, age, left, used = t + h, age + 1, left - 1, used + 1
        if not lost <= allowed:
            status = CLIPPED if np.isfinite(lost) else BLOWN_UP
    return (u, a, b), (rate, age, lost), used, status


def advance(
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

    starts (s, y, x): the initial frame, or with ``restart`` the observed frame that starts each interval. out
    (o, y, x), keep (t,): frame k goes to out[keep[k]] where keep[k] ≥ 0. buffers (3, y, x), padded; the last state is
    left in buffers[0]. motion: velocity (t, 2); fields (l, 2, y, x) and factors (t − 1, l) of the flow beside it,
    constant over a frame interval; room for it (2, y, x). law: see :func:`step`; clipping may take so much since the
    last start. region: see :func:`step`; its rim has all frames. control: see :func:`cross`.
    """
    velocity, fields, factors, wind = motion
    edge, near, outside, rim = region
    frames = (buffers[0], buffers[1], buffers[2])
    substeps = np.zeros(times.shape[0] - 1, np.int64)
    state, worst = (0.0, RECHECK, 0.0), 0.0
    wind_x, wind_y = 0.0, 0.0
    if keep[0] >= 0:
        out[keep[0]] = starts[0]
    for k in range(times.shape[0] - 1):
        here = (edge, near, outside, rim[k : k + 2])
        if restart or k == 0:
            begin(frames[0], starts[k], here)
            state = (state[0], RECHECK, 0.0)
        if fields.shape[0] > 0 and (k == 0 or (factors[k] != factors[k - 1]).any()):
            wind_x, wind_y = blow(fields, factors[k], wind)
        interval, both, blown = times[k + 1] - times[k], velocity[k : k + 2], (wind, wind_x, wind_y)
        frames, state, substeps[k], status = cross(frames, interval, both, blown, law, here, control, state)
        worst = max(worst, state[2])
        if status != OK:
            return status, k + 1, substeps, worst
        if keep[k + 1] >= 0:
            u = frames[0]
            out[keep[k + 1]] = u[RADIUS : u.shape[0] - RADIUS, RADIUS : u.shape[1] - RADIUS]
    buffers[0, :, :] = frames[0]
    return OK, -1, substeps, worst


PASTED = (pad, blow, follow, begin, step, cross, advance)
