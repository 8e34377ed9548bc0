"""What is turned on and off: a course of few levels with ramps between them, where the film prefers it to any other.

A course on splines has a value for every width of a test function, and each carries noise. Few levels have far fewer
unknowns. Which of both it is, is asked of the film: each is fitted to three quarters of the picture and compared with
what the fourth one shows, since a flow of one shape has the same course everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from video2pde.discovery.flows import NEARLY
from video2pde.flow.ramps import ramp_functions

Array = NDArray[np.float64]

MOST_STEPS = 3
"""Ramps of a course at most."""
SHORTEST, LONGEST = 1.0, 0.3
"""Width (a standard deviation) of a ramp: frames at least, and share of the window at most."""
TRIES = 300
"""Evaluations for each unknown of a ramp."""
TINY = 1e-10


@dataclass(frozen=True, eq=False)
class Misfit:
    """What a course θ leaves, θᵀAθ − 2gᵀθ + c, of one part of the picture or of several; c: what θ = 0 leaves."""

    matrix: Array
    slope: Array
    without: float

    def __add__(self, other: Misfit) -> Misfit:
        return Misfit(self.matrix + other.matrix, self.slope + other.slope, self.without + other.without)

    def of(self, course: Array) -> float:
        return float(course @ self.matrix @ course - 2 * self.slope @ course) + self.without

    def least(self, basis: Array) -> Array:
        """Return the course in the span of a basis (l, k) that leaves least."""
        matrix = basis.T @ self.matrix @ basis
        matrix[np.diag_indices(len(matrix))] += TINY * np.trace(matrix) / len(matrix)
        return np.asarray(basis @ np.linalg.solve(matrix, basis.T @ self.slope))


@dataclass(frozen=True, eq=False)
class Course:
    """A course: coefficients of the splines, and (centre, width) of the ramps of one that has few levels."""

    values: Array
    ramps: tuple[tuple[float, float], ...] = ()


Fitter = Callable[[Misfit], Course]


@dataclass(frozen=True, eq=False)
class Splines:
    """The splines of a course: their values (t, l) at the times."""

    values: Array
    times: Array

    def ramps(self, centres: Array, widths: Array) -> Array:
        """Return a constant and ramps from 0 to 1, as coefficients of the splines, (l, 1 + n)."""
        return np.asarray(self._nearest @ ramp_functions(self.times, centres, widths))

    @cached_property
    def _nearest(self) -> Array:
        """Make the coefficients nearest to values at the times."""
        return np.asarray(np.linalg.pinv(self.values))


def choose_course(folds: Sequence[Misfit], splines: Splines, free: Fitter, course: Array) -> Course:
    """Return the course, of few levels or free, that says most about the quarters it was not fitted to.

    The fewest levels win where they leave at most a tenth more than the best, or more by no more than one standard
    error over the quarters: an error of the drift, or of the encoder, is the same in all quarters, and a ramp too many
    follows it. ``free`` fits a course without levels; ``course`` is where ramps are looked for.
    """
    fitters: list[Fitter] = [*(partial(fit_steps, splines, course, count) for count in range(1, MOST_STEPS + 1)), free]
    left = np.array(
        [[fold.of(fit(_sum([f for f in folds if f is not fold])).values) for fold in folds] for fit in fitters]
    )
    worse = left - left[np.argmin(left.sum(axis=1))]
    error = np.std(worse, axis=1, ddof=1) * np.sqrt(len(folds)) if len(folds) > 1 else np.zeros(len(fitters))
    enough = np.maximum(error, (NEARLY - 1) * left.sum(axis=1).min())
    return fitters[int(np.argmax(worse.sum(axis=1) <= enough))](_sum(folds))


def _sum(parts: Sequence[Misfit]) -> Misfit:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def fit_steps(splines: Splines, course: Array, count: int, misfit: Misfit) -> Course:
    """Fit so many ramps, from where the course changes most."""
    times = splines.times
    span = float(times[-1] - times[0])
    frame = span / (len(times) - 1)
    changed = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(splines.values @ course)))])
    places = np.interp((np.arange(count) + 0.5) / count * changed[-1], changed, times)
    narrow, wide = np.log(SHORTEST * frame), np.log(LONGEST * span)

    def ramps(place: Array) -> tuple[Array, Array]:
        centres, widths = np.split(place, 2)
        return centres, np.exp(np.clip(widths, narrow, wide))

    def levels(place: Array) -> Array:
        return misfit.least(splines.ramps(*ramps(place)))

    def left(place: Array) -> float:
        centres, widths = np.split(place, 2)
        beyond = np.maximum(times[0] - centres, 0) + np.maximum(centres - times[-1], 0)
        beyond += frame * (np.maximum(narrow - widths, 0) + np.maximum(widths - wide, 0))
        explained = misfit.without - misfit.of(levels(place))
        return -explained * (1 - float(beyond.sum()) / span)

    begin = np.concatenate([places, np.full(count, np.log(2 * frame))])
    simplex = np.vstack([begin, begin + np.diag([*[span / 20] * count, *[1.0] * count])])
    options = {"maxfev": TRIES * len(begin), "initial_simplex": simplex, "xatol": 1e-3 * frame, "fatol": 0.0}
    found = minimize(left, begin, method="Nelder-Mead", options=options).x
    return Course(
        levels(found), tuple((float(centre), float(width)) for centre, width in zip(*ramps(found), strict=True))
    )
