"""Do several estimates of one number agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STEADY = 0.01
"""Chance below which estimates are not those of one number."""
NORMAL = 1.96
"""Standard deviations to either side that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class Agreement:
    """``chance`` of estimates that differ as much where they are of one number; ``spread``: how much more they do."""

    chance: float
    spread: float


def compare_estimates(values: Sequence[float], errors: Sequence[float]) -> Agreement:
    """Compare estimates by χ² about their weighted mean.

    What is left of their scatter, once their own errors are taken off, is the spread (DerSimonian and Laird 1986).

    Examples
    --------
    >>> compare_estimates([1.0, 1.1], [0.1, 0.1]).chance > 0.4
    True
    >>> round(compare_estimates([1.0, 3.0], [0.1, 0.1]).spread, 2)
    1.41
    """
    from scipy.stats import chi2  # slow to import, and this module is everywhere

    found, weights = np.asarray(values, float), 1 / np.asarray(errors, float) ** 2
    mean = weights @ found / weights.sum()
    squares, free = float(weights @ (found - mean) ** 2), len(found) - 1
    excess = max(squares - free, 0.0) / float(weights.sum() - (weights**2).sum() / weights.sum())
    return Agreement(float(chi2.sf(squares, free)), float(np.sqrt(excess)))
