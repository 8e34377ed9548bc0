"""Frame times: whether they are even, and what three neighbouring frames say about noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNIFORM_WITHIN = 1e-3
"""Largest relative spread of the frame intervals that still counts as even."""


def is_uniform(times: NDArray[np.float64]) -> bool:
    """Tell whether times are evenly spaced, to a thousandth of the interval."""
    steps = np.diff(times)
    return len(steps) < 2 or bool(np.ptp(steps) <= UNIFORM_WITHIN * steps.mean())


def noise_weights(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (t − 2, 3) on three neighbouring frames whose sum is noise alone, with the noise's own variance.

    The middle frame less the straight line through its neighbours: (1, −2, 1)/√6 where frames are evenly spaced.
    """
    before, after = np.diff(times)[:-1], np.diff(times)[1:]
    share = before / (before + after)
    weights = np.stack([1 - share, -np.ones_like(share), share], axis=1)
    return np.asarray(weights / np.linalg.norm(weights, axis=1, keepdims=True))
