"""Small summaries that figures and the page share, so that neither computes anything itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.calibration.bootstrap import Bootstrap

Array = NDArray[np.float64]
LEAST = 3
"""Replicates from which an interval is drawn."""


def bootstrap_covariance(boot: Bootstrap) -> tuple[Array, Array]:
    """Return mean (k,) and covariance (k, k) of the replicates."""
    return boot.draws.mean(axis=0), np.atleast_2d(np.cov(boot.draws, rowvar=False))


def running_intervals(draws: Array) -> tuple[Array, Array, Array, Array]:
    """Return the numbers n of replicates, and median and 95 % range of the first n, each (n, k)."""
    counts = np.arange(min(LEAST, len(draws)), len(draws) + 1)
    ends = np.stack([np.quantile(draws[:n], (0.025, 0.5, 0.975), axis=0) for n in counts], axis=1)
    return counts.astype(float), ends[1], ends[0], ends[2]


def ellipse_path(centre: Array, covariance: Array, radius: float = 2.448, points: int = 120) -> Array:
    """Return (points, 2) on {z : (z − c)ᵀ C⁻¹ (z − c) = radius²}."""
    values, axes = np.linalg.eigh(covariance)
    angle = np.linspace(0.0, 2 * np.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray((axes * np.sqrt(np.maximum(values, 0.0))) @ circle * radius).T + centre


def thin(x: Array, y: Array, most: int) -> tuple[Array, Array]:
    """Take at most ``most`` points of a curve, evenly, the last one included."""
    if len(x) <= most:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, most).round().astype(int))
    return x[kept], y[kept]


def relative_half_widths(calibration: Calibration) -> Array:
    """Return half the width of each coefficient's 95 % interval, in units of its value; NaN without an interval."""
    found = [calibration.estimates[term.name] for term in calibration.terms]
    return np.array([(e.high - e.low) / 2 / abs(e.value) if e.value else np.nan for e in found])
