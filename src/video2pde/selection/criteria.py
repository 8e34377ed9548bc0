"""The criteria of the choice, on the validation window: error, front radius, centroid, sign of the diffusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.estimate import Estimate
from video2pde.rollout.validate import Score, Validation
from video2pde.terms.symbol import damping, smoothing_order, wave_directions

Array = NDArray[np.float64]

CERTAIN = 2.0
"""Standard errors by which a difference must exceed zero to count."""
OF_ONE_FRAME = 0.6
"""(e₁ − e₂)/(e₁ + e₂) of squared errors from which a single frame, which shows no scatter, tells: a factor of four."""
LEAST_SKILL = 0.1
"""Share of persistence's squared error that a law must remove; what coding does to a still picture reaches 4 %."""
GEOMETRY = 0.5
"""Relative excess of front and centroid errors over the best contender's that still passes."""
DIFFUSION_LEVELS = 5
"""Values of u, over the range that was seen, at which a law's diffusion is looked at."""
FORWARD = "forward diffusion"
ROUNDING = 1e-12
PIXEL = 0.05
"""Front and centroid errors below this share of a pixel always pass."""


@dataclass(frozen=True)
class Criterion:
    """One entry of the table: value, the limit it must keep, whether it passes, and by what share of the limit."""

    name: str
    value: float
    limit: float
    passed: bool
    margin: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A contender in the final comparison."""

    library: str
    terms: tuple[str, ...]
    estimates: Mapping[str, Estimate]
    rrmse: float
    front_rmse: float
    centroid_rmse: float
    skill: float
    beats_persistence: bool
    criteria: tuple[Criterion, ...]

    @property
    def admissible(self) -> bool:
        return self.beats_persistence and self.criteria[-1].passed


def block_error(series: Array) -> float:
    """Estimate the standard error of a time series' mean from blocks of √n neighbours."""
    length = max(1, round(np.sqrt(len(series))))
    count = len(series) // length
    if count < 2:
        return float(np.std(series)) if len(series) > 1 else 0.0
    means = series[: count * length].reshape(count, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(count))


def exceeds(first: Array, second: Array) -> bool:
    """Tell whether a series of errors is larger than another one, frame by frame, beyond its uncertainty.

    Compared is (e₁ − e₂)/(e₁ + e₂): errors of rollouts grow from zero, and a plain difference would take that growth
    for scatter.
    """
    e1, e2 = np.asarray(first, float), np.asarray(second, float)
    if not np.isfinite(e1).all():
        return bool(np.isfinite(e2).all())
    if not np.isfinite(e2).all():
        return False
    # where both are the same, as in the frame that both start from, nothing is compared
    there = e1 != e2
    relative = (e1[there] - e2[there]) / (e1[there] + e2[there])
    if len(relative) < 2:
        return bool((relative > OF_ONE_FRAME).any())
    return bool(relative.mean() > CERTAIN * block_error(relative))


def tabulate(
    calibrations: Mapping[str, Calibration],
    scores: Mapping[str, Score],
    validation: Validation,
    tolerance: float,
    pixel: float,
) -> tuple[Candidate, ...]:
    """Hold every contender to the criteria, whose limits the best of them set."""
    full = {name: scores[name].full for name in calibrations}
    limits = {
        "rrmse": min(f.rrmse for f in full.values()) * (1 + tolerance),
        "front": max(min(f.front_rmse for f in full.values()) * (1 + GEOMETRY), PIXEL * pixel),
        "centroid": max(min(f.centroid_rmse for f in full.values()) * (1 + GEOMETRY), PIXEL * pixel),
    }
    frames = validation.observed_snapshots
    levels = np.linspace(float(frames.min()), float(frames.max()), DIFFUSION_LEVELS)
    still = validation.persistence.full.mse
    table = []
    for name, calibration in calibrations.items():
        score, errors = scores[name], full[name]
        criteria = (
            _below("validation rRMSE", errors.rrmse, limits["rrmse"]),
            _below("front radius", errors.front_rmse, limits["front"]),
            _below("centroid", errors.centroid_rmse, limits["centroid"]),
            _forward(calibration, levels),
        )
        candidate = Candidate(
            library=name,
            terms=tuple(calibration.estimates),
            estimates=calibration.estimates,
            rrmse=errors.rrmse,
            front_rmse=errors.front_rmse,
            centroid_rmse=errors.centroid_rmse,
            skill=score.skill,
            beats_persistence=not score.failure and score.skill > LEAST_SKILL and exceeds(still, errors.mse),
            criteria=criteria,
        )
        table.append(candidate)
    return tuple(table)


def _below(name: str, value: float, limit: float) -> Criterion:
    return Criterion(name, value, limit, bool(value <= limit), float((limit - value) / limit) if limit > 0 else 0.0)


def _forward(calibration: Calibration, levels: Array) -> Criterion:
    """Check that short waves decay: the law's diffusion is nowhere negative at the levels of u that were seen.

    The terms of highest even order decide (``terms.symbol``). Each counts with the end of its interval that favours the
    law: what cannot be told from zero is not backward diffusion.
    """
    order = max((smoothing_order(term) for term in calibration.terms), default=0)
    if order == 0:
        return Criterion(FORWARD, 0.0, 0.0, True, 0.0)
    directions = wave_directions(calibration.terms)
    value, best = np.zeros((2, len(levels), len(directions)))
    for term in calibration.terms:
        estimate = calibration.estimates[term.name]
        ends = (estimate.low, estimate.high) if estimate.has_interval else (estimate.value,)
        unit = np.stack([damping(term, float(level), order, directions) for level in levels])
        value = value + estimate.value * unit
        best = best + np.max([end * unit for end in ends], axis=0)
    least = float(value.min())
    return Criterion(FORWARD, least, 0.0, bool(best.min() >= -ROUNDING * abs(best).max()), least)
