"""What is known of calibrated maps: the spread of replicates along calibrated directions, the weak fit's elsewhere.

The weak covariance of a map is a sum over all directions, C = Σ_i d_i d_iᵀ. A calibration decides the first of them
anew: their part gives way to what the replicates show. The mean has the error of its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.calibration.blocks import Unknowns
from video2pde.calibration.bootstrap import Bootstrap
from video2pde.calibration.budget import Correction
from video2pde.calibration.mapped import MapBlock
from video2pde.estimate import Estimate
from video2pde.maps import CoefficientMap
from video2pde.rollout.model import Model

Array = NDArray[np.float64]

MAPS = "maps"
"""Line of the budget: what is not known of maps."""


def fitted_maps(
    model: Model, unknowns: Unknowns, boot: Bootstrap | None, estimates: Mapping[str, Estimate]
) -> tuple[CoefficientMap, ...]:
    """Return the maps of a fitted model with their errors; the weak fit's where there are no replicates."""
    blocks = {block.term: block for block in unknowns.blocks if isinstance(block, MapBlock)}
    names = [term.name for term in model.terms]
    found, begin = [], 0
    for each in model.maps:
        block = blocks.get(each.term)
        size = 0 if block is None else block.size
        if boot is None or boot.converged < 2 or block is None or block.directions is None:
            found.append(each)
        else:
            draws = np.column_stack([boot.draws[:, names.index(each.term)], boot.maps[:, begin : begin + size]])
            covariance = _join(each.undecided, block.directions, draws)
            found.append(replace(each, covariance=_with_interval(covariance, estimates[each.term])))
        begin += size
    return tuple(found)


def undecided(maps: Sequence[CoefficientMap], names: Sequence[str]) -> Correction:
    """Count what departures of maps that no calibration decides do to the coefficients, (K,)."""
    variance = np.zeros(len(names))
    for each in maps:
        answers = np.stack([each.answers.get(name, np.zeros(each.shape.count)) for name in names])
        variance += np.einsum("nk,kl,nl->n", answers, each.undecided, answers)
    return Correction(MAPS, np.zeros(len(names)), NORMAL * np.sqrt(variance))


def _join(undecided: Array, directions: Array, draws: Array) -> Array:
    """Add the replicates' covariance of the mean and the directions to what is ``undecided`` (k, k)."""
    spread = np.cov(draws, rowvar=False)
    turn = np.zeros((len(undecided) + 1, draws.shape[1]))
    turn[0, 0], turn[1:, 1:] = 1.0, directions.T
    rest = np.zeros((len(turn), len(turn)))
    rest[1:, 1:] = undecided
    return np.asarray(turn @ spread @ turn.T + rest)


def _with_interval(covariance: Array, estimate: Estimate) -> Array:
    """Give the mean the error that its interval has: everything in the budget, not noise alone."""
    if not estimate.has_interval or covariance[0, 0] <= 0:
        return covariance
    half = max(estimate.high - estimate.value, estimate.value - estimate.low) / NORMAL
    added = max(half**2 - covariance[0, 0], 0.0)
    whole = covariance.copy()
    whole[0, 0] += added
    return whole
