"""The error budget of a coefficient: what was corrected, and what stays uncertain.

A calibrated coefficient is the plain fit plus the shifts of all corrections; its 95 % interval is the quadrature of
their uncertainties. Sizes of what stays uncertain were measured on films of known laws by ``tools/intervals.py``, and
checked on other films. ``docs/intervals.md`` follows one coefficient through its budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.bootstrap import Bootstrap
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.terms import Term
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion, smoothing_order

Array = NDArray[np.float64]

STATISTICS, GRID, START, ROUNDING, ENCODER = "statistics", "grid", "initial frame", "rounding", "encoder"
LIGHT, LACK_OF_FIT = "light", "lack of fit"

GRID_LEFT, GRID_FLOOR = 0.2, 0.0003
"""Share of the grid's shift that may remain, and the relative error that stays where the grid resolves all; measured on
exact fields."""
START_LEFT = 0.65
"""Error that stays in units of what fitting the initial frame jointly changed."""
ZERO_LEVELS = 0.06
"""Grey levels by which u = 0 is not known."""
HELD_BACK, ENCODED = 0.15, 0.006
"""Relative error of a film whose encoder holds all changes back, in proportion to their share; and of every film that
went through an encoder, which smooths noise and slopes."""
BY_CHANCE = 0.01
"""Share of changes held back up to which none need be: noisy values are the same in two frames now and then."""
HALVES_LEFT = 1.5
"""Error of a coefficient, in units of what those of both halves of the frames differ by beyond noise."""


@dataclass(frozen=True, eq=False)
class Correction:
    """One line of the budget, for all coefficients: what was added (K,), and the half-width (K,) that it leaves."""

    name: str
    shift: Array
    uncertainty: Array


def statistics(boot: Bootstrap) -> Correction:
    """Return what the bootstrap knows: the bias by noise, taken off, and the half-width of its interval."""
    return Correction(STATISTICS, -boot.bias, np.maximum(boot.value - boot.low, boot.high - boot.value))


def grid(bias: Array, coefficients: Array) -> Correction:
    """Take off what grid and scheme added to a law that they were given (see ``finer``)."""
    return Correction(GRID, -bias, np.hypot(GRID_LEFT * bias, GRID_FLOOR * coefficients))


def initial_frame(moved: Array) -> Correction:
    """Count what fitting the initial frame jointly changed (see ``growth``): it was not known before, nor quite now."""
    return Correction(START, moved, START_LEFT * np.abs(moved))


def rounding(encoding: Encoding, offset: Array) -> Correction:
    """Count grey levels: u = 0 is known to a fraction of a level only.

    ``offset`` (K,): how the coefficients answer to a constant added to u; those of gradients hardly do.
    """
    return Correction(ROUNDING, np.zeros_like(offset), ZERO_LEVELS * encoding.level * np.abs(offset))


def light(answer: Array) -> Correction:
    """Count light that may have changed unseen; ``answer`` (K,): what that would do to the coefficients."""
    return Correction(LIGHT, np.zeros_like(answer), np.abs(answer))


def encoder(encoding: Encoding, coefficients: Array) -> Correction:
    """Count what an encoder holds back, since a film that lags shows a law that is too slow, and what it smooths."""
    relative = float(np.hypot(HELD_BACK * encoding.held_back, ENCODED if encoding.b_frames is not None else 0.0))
    return Correction(ENCODER, np.zeros_like(coefficients), relative * np.abs(coefficients))


def lack_of_fit(encoding: Encoding, coefficients: Array, apart: Array, farther: Array) -> Correction:
    """Count what the law, or the recording, leaves unexplained: both halves of the frames should ask for one law.

    ``apart`` (K,): how far they differ beyond what noise does, which the statistics count already. A fault of the
    recording may mislead both halves alike, so that the truth lies outside what they say. Where no encoder was at work,
    and they differ by more than such faults do, it is the law that is wrong: the interval reaches to the half that lies
    ``farther`` (K,) from the whole, and no further.
    """
    most = HALVES_LEFT * apart
    if not is_encoded(encoding):
        most = np.minimum(most, np.maximum(HELD_BACK * np.abs(coefficients), farther))
    return Correction(LACK_OF_FIT, np.zeros_like(apart), most)


def is_encoded(encoding: Encoding) -> bool:
    """Tell whether an encoder was at work that makes frames from others."""
    return encoding.b_frames is not None or encoding.held_back > BY_CHANCE


def add_up(plain: Array, budget: Sequence[Correction]) -> list[Estimate]:
    """Return the estimates: shifts added to the plain fit, uncertainties in quadrature; none without statistics."""
    values = plain + sum((line.shift for line in budget), np.zeros_like(plain))
    return enclose(values, budget)


def enclose(values: Array, budget: Sequence[Correction]) -> list[Estimate]:
    """Return values with the intervals that a budget makes; none without statistics."""
    if not any(line.name == STATISTICS for line in budget):
        return [Estimate(float(value)) for value in values]
    halves = np.linalg.norm([line.uncertainty for line in budget], axis=0)
    return [Estimate(float(v), float(v - half), float(v + half)) for v, half in zip(values, halves, strict=True)]


def run_forward(terms: Sequence[Term], estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """End the interval of diffusion at 0 where nothing else in the law damps short waves: backward, none would run."""
    damping = [term for term in terms if smoothing_order(term) > 0]
    found = dict(estimates)
    if len(damping) == 1 and is_diffusion(damping[0], EMPTY_TO_FULL):
        estimate = found[damping[0].name]
        if estimate.has_interval and estimate.low < 0 < estimate.value:
            found[damping[0].name] = replace(estimate, low=0.0)
    return found
