"""The course in time of a flow that keeps its shape: a vortex that turns on and off, a stirrer that slows down.

    v(x, y, t) = θ(t) Σ_k q_k v_k(x, y)

is linear in q for a known θ and in θ for a known q: each is fitted in turn, the law beside it, until neither changes.
That has far fewer unknowns than a flow in which every mode goes its own way, and so follows changes that are as fast
as a test function is wide. What is turned on or off stays so for a while: θ's total variation is penalised, which lets
it jump, but not waver in between or at the ends of the window, where few test functions reach. Where the film prefers
it, θ has few levels with ramps between them (``steps``).

What turns on and off moves the plume as a whole, too, and the measured drift is smoothed in time: its error is largest
where θ changes. A uniform velocity on the same splines as θ is therefore fitted along, and takes that error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.flows import flow_columns, penalty, Ridge, uniform_columns
from video2pde.discovery.steps import choose_course, Course, Misfit, Splines
from video2pde.discovery.weak import WeakSystem
from video2pde.discovery.weighted import TimeMoments
from video2pde.drift import Drift
from video2pde.flow import FlowShape
from video2pde.terms.catalogue import DRIFT

Array = NDArray[np.float64]

FEWEST, MOST = 5, 30
"""Splines in time of a course: one for each width of a test function, within these."""
TURNS, SETTLED = 20, 1e-3
"""Turns of the fit at most, and the relative change of the course at which it ends."""
STIFF = 1e-2
"""Penalty on a change from one spline to the next, relative to the columns, ..."""
JUMP = 0.05
"""... and the change, relative to the largest strength, beyond which it no longer grows with the square."""
TILE = 4.0
"""Side of the tiles that quarters of the picture are made of, in widths of a test function."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Timed:
    """The law's weak system, and the moments at its centres."""

    law: WeakSystem
    moments: TimeMoments


@dataclass(frozen=True, eq=False)
class Courses:
    """The courses of a flow of some shape: splines in time, and the columns (M, l, k) of every system.

    ``systems``: the law's columns at the centres of moments, with test functions of several widths in time, the widest
    first. Narrow ones reach nearer to the ends of the window, wide ones are quieter: each counts by what it leaves.
    """

    systems: Sequence[Timed]
    shape: FlowShape
    columns: Sequence[Array]

    @classmethod
    def of(cls, systems: Sequence[Timed], drift: Drift, shape: FlowShape) -> Courses:
        """Make the columns; ``shape`` says nothing of time yet."""
        widest = systems[0].moments
        count = int(np.clip(round(len(widest.field) / widest.widths.t), FEWEST, MOST))
        free = replace(shape, in_time=count)
        columns = [flow_columns(each.moments, drift, free) for each in systems]
        splines = free.time_functions(widest.field.times)
        return cls([_let_drift_err(each, splines) for each in systems], shape, columns)

    def find(self, ridge: Ridge) -> FlowShape:
        """Return the shape with its course, largest value 1; ``ridge``: the penalty on the shape's roughness."""
        field, count = self.systems[0].moments.field, self.columns[0].shape[1]
        parts = [(each.law, columns) for each, columns in zip(self.systems, self.columns, strict=True)]
        rough = penalty(self.shape, field.grid, ridge)
        ends = np.cumsum([len(law.b) for law, _ in parts])[:-1]
        course, noise = np.ones(count), np.ones(len(parts))
        for _ in range(TURNS):
            known, b = _weighed(parts, noise)
            modes, _ = _fit(known, _contract("mlk,l->mk", parts, course, noise), rough, b)
            columns = _contract("mlk,k->ml", parts, modes, noise)
            found, left = _fit(known, columns, STIFF * _jumps(course), b)
            noise *= [np.sqrt(np.mean(part**2)) for part in np.split(left, ends)]
            noise /= noise[0]
            found = _largest_is_one(found)
            change = float(np.abs(found - course).max())
            course = found
            if change < SETTLED:
                break
        splines = Splines(replace(self.shape, in_time=count).time_functions(field.times).T, field.times)
        quarters = np.concatenate([_quarters(each) for each in self.systems])
        chosen = choose_course(_misfits(known, columns, b, quarters), splines, partial(_free, course), course)
        values = tuple(float(value) for value in _largest_is_one(chosen.values))
        return replace(self.shape, course=values, ramps=chosen.ramps)


def _let_drift_err(system: Timed, splines: Array) -> Timed:
    """Take the measured drift off b, and put a uniform velocity on splines (l, t) in the place of its columns."""
    law = system.law
    drift = [name for name in DRIFT if name in law.names]
    others = [name for name in law.names if name not in drift]
    pushes = [uniform_columns(system.moments, axis, splines) for axis in range(2)]
    theta = np.hstack([law.columns(others), *pushes])
    names = (*others, *(f"push_{axis}_{n}" for axis in "xy" for n in range(len(splines))))
    return replace(system, law=replace(law, names=names, theta=theta, b=law.b - law.columns(drift).sum(axis=1)))


def _weighed(parts: Sequence[tuple[WeakSystem, Array]], noise: Array) -> tuple[Array, Array]:
    """Return the law's columns, each of size one, and b of all systems, divided by their noise."""
    known = np.concatenate([law.theta / n for (law, _), n in zip(parts, noise, strict=True)])
    b = np.concatenate([law.b / n for (law, _), n in zip(parts, noise, strict=True)])
    return known / np.maximum(np.linalg.norm(known, axis=0), 1e-300), b


def _largest_is_one(course: Array) -> Array:
    return np.asarray(course / (max(float(np.abs(course).max()), 1e-300) * (np.sign(course.sum()) or 1.0)))


def _jumps(course: Array) -> Array:
    """Return the squares of jumps, divided by the jumps of the turn before: their sum is the total variation."""
    steps = np.diff(np.eye(len(course)), axis=0)
    soft = steps / np.sqrt(np.maximum(np.abs(steps @ course), JUMP))[:, None]
    return np.asarray(soft.T @ soft)


def _free(course: Array, misfit: Misfit) -> Course:
    """Fit a course under its total variation, near a course that has jumps already."""
    matrix = misfit.matrix + STIFF * float(np.mean(np.diag(misfit.matrix))) * _jumps(course)
    matrix[np.diag_indices(len(matrix))] += TINY * np.trace(matrix) / len(matrix)
    return Course(np.asarray(np.linalg.solve(matrix, misfit.slope)))


def _quarters(system: Timed) -> NDArray[np.int64]:
    """Deal the centres out to four quarters, tiles of the picture in turn."""
    widths = system.moments.widths
    tiles = np.floor(system.law.centres[:, 1:] / (TILE * np.array([widths.y, widths.x]))).astype(np.int64) % 2
    return np.asarray(2 * tiles[:, 0] + tiles[:, 1])


def _misfits(known: Array, columns: Array, b: Array, quarters: NDArray[np.int64]) -> list[Misfit]:
    """Return what a course leaves of each quarter, beside the law."""
    law, _ = np.linalg.qr(known)
    beside, left = columns - law @ (law.T @ columns), b - law @ (law.T @ b)
    return [
        Misfit(beside[here].T @ beside[here], beside[here].T @ left[here], float(left[here] @ left[here]))
        for here in (quarters == quarter for quarter in np.unique(quarters))
    ]


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
