"""Coefficients against a condition: a line with the interval of its slope, a power law, or the means of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from scipy.stats import t as student

from video2pde.estimate import Estimate
from video2pde.study.meta import pool, RandomEffects

Array = NDArray[np.float64]
Condition = float | str

LEAST_FOR_A_LINE = 3
"""Recordings, at different values of a condition, that a line needs."""


@dataclass(frozen=True, eq=False)
class Line:
    """y = intercept + slope · x over recordings; ``chance`` of such a slope where there is none."""

    intercept: Estimate
    slope: Estimate
    chance: float
    tau: Estimate
    i_squared: float


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """y = factor · x^exponent."""

    factor: Estimate
    exponent: Estimate
    tau: Estimate


@dataclass(frozen=True, eq=False)
class Groups:
    """The mean of each label, and the chance of such differences where there are none."""

    means: Mapping[str, Estimate]
    chance: float


@dataclass(frozen=True, eq=False)
class Trend:
    """How one coefficient depends on one condition; what cannot be asked for is None, and ``note`` says why."""

    term: str
    condition: str
    line: Line | None = None
    power: PowerLaw | None = None
    groups: Groups | None = None
    note: str = ""


def find_trend(term: str, name: str, conditions: Sequence[Condition], values: Array, variances: Array) -> Trend:
    """Set a coefficient's estimates (n,) with variances (n,) against a condition: numbers, or labels."""
    if any(isinstance(value, str) for value in conditions):
        groups = _compare_groups([str(value) for value in conditions], values, variances)
        return Trend(
            term, name, groups=groups, note="" if groups else "every film has the same label, or one of its own"
        )
    x = np.array([float(value) for value in conditions])
    if len(set(x.tolist())) < 2 or len(x) < LEAST_FOR_A_LINE:
        return Trend(term, name, note="a line needs three films, and two values of the condition")
    power = _fit_power(x, values, variances)
    note = "" if power else "no power law: condition and coefficient must keep one sign"
    return Trend(term, name, _fit_line(x, values, variances), power, note=note)


def _fit_line(x: Array, values: Array, variances: Array) -> Line:
    # around the middle, in units of the spread: the columns are then nearly orthogonal, whatever the condition's unit
    middle, spread = float(x.mean()), float(np.ptp(x))
    found = pool(values, variances, np.column_stack([np.ones_like(x), (x - middle) / spread]))
    origin = pool(values, variances, np.column_stack([np.ones_like(x), x / spread]))
    slope = found.coefficients[1].scaled(1 / spread)
    return Line(origin.coefficients[0], slope, _chance_of_zero(found, 1), found.tau, found.i_squared)


def _chance_of_zero(found: RandomEffects, column: int) -> float:
    """Return the chance of a coefficient this large where the true one is zero, by the interval's own width."""
    estimate = found.coefficients[column]
    error = (estimate.high - estimate.low) / 2 / float(student.ppf(0.975, found.freedom))
    return float(2 * student.sf(abs(estimate.value) / error, found.freedom))


def _fit_power(x: Array, values: Array, variances: Array) -> PowerLaw | None:
    if np.any(x <= 0) or not (np.all(values > 0) or np.all(values < 0)):
        return None
    logarithms, relative = np.log(np.abs(values)), variances / values**2
    found = pool(logarithms, relative, np.column_stack([np.ones_like(x), np.log(x)]))
    sign, (at_one, exponent) = float(np.sign(values[0])), found.coefficients
    ends = sorted(sign * float(np.exp(end)) for end in (at_one.low, at_one.high))
    return PowerLaw(Estimate(sign * float(np.exp(at_one.value)), *ends), exponent, found.tau)


def _compare_groups(labels: Sequence[str], values: Array, variances: Array) -> Groups | None:
    names = sorted(set(labels))
    if not 1 < len(names) < len(labels):
        return None
    design = np.array([[float(label == name) for name in names] for label in labels])
    found = pool(values, variances, design)
    means = dict(zip(names, found.coefficients, strict=True))
    # differences from their weighted mean, in the errors that the intervals have
    half = np.array([estimate.high - estimate.low for estimate in found.coefficients]) / 2
    weight = (student.ppf(0.975, found.freedom) / half) ** 2
    centre = np.array([estimate.value for estimate in found.coefficients])
    q = float(weight @ (centre - weight @ centre / weight.sum()) ** 2)
    return Groups(means, float(chi2.sf(q, len(names) - 1)))
