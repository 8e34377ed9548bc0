"""The course in time of a flow that keeps its shape: a vortex that turns on and off, a stirrer that slows down.

    v(x, y, t) = θ(t) Σ_k q_k v_k(x, y)

is linear in q for a known θ and in θ for a known q: each is fitted in turn, the law beside it, until neither changes.
That has far fewer unknowns than a flow in which every mode goes its own way, and so follows changes that are as fast
as a test function is wide. What is turned on or off stays so for a while: θ's total variation is penalised, which lets
it jump, but not waver in between or at the ends of the window, where few test functions reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.flows import flow_columns, penalty, Ridge
from video2pde.discovery.weak import WeakSystem
from video2pde.discovery.weighted import TimeMoments
from video2pde.drift import Drift
from video2pde.flow import FlowShape

Array = NDArray[np.float64]

FEWEST, MOST = 5, 30
"""Splines in time of a course: one for each width of a test function, within these."""
TURNS, SETTLED = 20, 1e-3
"""Turns of the fit at most, and the relative change of the course at which it ends."""
STIFF = 1e-2
"""Penalty on a change from one spline to the next, relative to the columns, ..."""
JUMP = 0.05
"""... and the change, relative to the largest strength, beyond which it no longer grows with the square."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Timed:
    """The law's weak system, and the moments at its centres."""

    law: WeakSystem
    moments: TimeMoments


def find_course(systems: Sequence[Timed], drift: Drift, shape: FlowShape, ridge: Ridge) -> tuple[float, ...]:
    """Fit the course of a flow of this shape, its largest value 1; ``ridge``: the penalty on the shape's roughness.

    ``systems``: the law's columns at the centres of moments, with test functions of several widths in time, the widest
    first. Narrow ones reach nearer to the ends of the window, wide ones are quieter: each counts by what it leaves.
    """
    widest = systems[0].moments
    count = int(np.clip(round(len(widest.field) / widest.widths.t), FEWEST, MOST))
    parts = [(each.law, flow_columns(each.moments, drift, replace(shape, in_time=count))) for each in systems]
    rough = penalty(shape, widest.field.grid, ridge)
    steps = np.diff(np.eye(count), axis=0)
    ends = np.cumsum([len(law.b) for law, _ in parts])[:-1]
    course, noise = np.ones(count), np.ones(len(parts))
    for _ in range(TURNS):
        known = np.concatenate([law.theta / n for (law, _), n in zip(parts, noise, strict=True)])
        known /= np.maximum(np.linalg.norm(known, axis=0), 1e-300)
        b = np.concatenate([law.b / n for (law, _), n in zip(parts, noise, strict=True)])
        modes, _ = _fit(known, _contract("mlk,l->mk", parts, course, noise), rough, b)
        # the squares of jumps, divided by the jumps of the turn before: their sum is the total variation
        soft = steps / np.sqrt(np.maximum(np.abs(steps @ course), JUMP))[:, None]
        found, left = _fit(known, _contract("mlk,k->ml", parts, modes, noise), STIFF * soft.T @ soft, b)
        noise *= [np.sqrt(np.mean(part**2)) for part in np.split(left, ends)]
        noise /= noise[0]
        found /= max(float(np.abs(found).max()), 1e-300) * (np.sign(found.sum()) or 1.0)
        change = float(np.abs(found - course).max())
        course = found
        if change < SETTLED:
            break
    return tuple(float(value) for value in course)


def _contract(axes: str, parts: Sequence[tuple[WeakSystem, Array]], amounts: Array, noise: Array) -> Array:
    """Multiply every system's columns (M, l, k) out with amounts, and divide them by its noise."""
    return np.concatenate([np.einsum(axes, columns, amounts) / n for (_, columns), n in zip(parts, noise, strict=True)])


def _fit(known: Array, columns: Array, stiffness: Array, b: Array) -> tuple[Array, Array]:
    """Fit b by both; return the amounts of ``columns``, penalised in units of their mean square, and what is left."""
    count = known.shape[1]
    design = np.hstack([known, columns])
    matrix = design.T @ design
    matrix[count:, count:] += stiffness * float(np.mean(np.sum(columns**2, axis=0)))
    matrix[np.diag_indices(len(matrix))] += TINY * np.trace(matrix) / len(matrix)
    amounts = np.linalg.solve(matrix, design.T @ b)
    return np.asarray(amounts[count:]), np.asarray(b - design @ amounts)
