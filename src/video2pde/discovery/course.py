"""The course in time of a flow that keeps its shape: a vortex that turns on and off, a stirrer that slows down.

    v(x, y, t) = θ(t) Σ_k q_k v_k(x, y)

is linear in q for a known θ and in θ for a known q: each is fitted in turn, the law beside it, until neither changes.
That has far fewer unknowns than a flow in which every mode goes its own way, and so follows changes that are as fast
as a test function is wide. What is turned on or off stays so for a while: θ's total variation is penalised, which lets
it jump, but not waver in between or at the ends of the window, where few test functions reach.
"""

from __future__ import annotations

from dataclasses import replace

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


def find_course(
    law: WeakSystem, moments: TimeMoments, drift: Drift, shape: FlowShape, ridge: Ridge
) -> tuple[float, ...]:
    """Fit the course of a flow of this shape, its largest value 1; ``ridge``: the penalty on the shape's roughness."""
    count = int(np.clip(round(len(moments.field) / moments.widths.t), FEWEST, MOST))
    columns = flow_columns(moments, drift, replace(shape, in_time=count))
    known = law.theta / np.maximum(np.linalg.norm(law.theta, axis=0), 1e-300)
    rough = penalty(shape, moments.field.grid, ridge)
    steps = np.diff(np.eye(count), axis=0)
    course = np.ones(count)
    for _ in range(TURNS):
        modes = _fit(known, np.einsum("mlk,l->mk", columns, course), rough, law.b)
        # the squares of jumps, divided by the jumps of the turn before: their sum is the total variation
        soft = steps / np.sqrt(np.maximum(np.abs(steps @ course), JUMP))[:, None]
        found = _fit(known, np.einsum("mlk,k->ml", columns, modes), STIFF * soft.T @ soft, law.b)
        found /= max(float(np.abs(found).max()), 1e-300) * (np.sign(found.sum()) or 1.0)
        change = float(np.abs(found - course).max())
        course = found
        if change < SETTLED:
            break
    return tuple(float(value) for value in course)


def _fit(known: Array, columns: Array, stiffness: Array, b: Array) -> Array:
    """Fit b by both; return the amounts of ``columns``, penalised in units of their mean square."""
    count = known.shape[1]
    design = np.hstack([known, columns])
    matrix = design.T @ design
    matrix[count:, count:] += stiffness * float(np.mean(np.sum(columns**2, axis=0)))
    matrix[np.diag_indices(len(matrix))] += TINY * np.trace(matrix) / len(matrix)
    return np.asarray(np.linalg.solve(matrix, design.T @ b)[count:])
