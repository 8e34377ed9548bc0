"""How far an interval must reach for an effect that may be there, and does not show beyond doubt.

A law that passes may still hide an effect too weak to be found: nobody has shown that it is absent. Explanations are
weighed by their probability, the law alone as likely beforehand as all effects together and the effects alike,

    w_k ∝ exp[(T_k − n_k ln ν)/2] / K,      T_k the score of an effect, n_k its unknowns, ν degrees of freedom,

and each puts the coefficient where its fit does. The interval holds 95 % of that mixture (Bayesian model averaging,
Hoeting et al. 1999): the law's own where no effect stirs, wider where one nearly shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from video2pde.fit.score import Score

Array = NDArray[np.float64]

OUTSIDE = 0.05
"""Probability that an interval leaves outside."""


def weigh(scores: Sequence[Score], freedom: float) -> Array:
    """Return the probability of each effect, (K,); what is missing to 1 is the law's alone."""
    logs = np.array([(found.statistic - found.unknowns * np.log(freedom)) / 2 for found in scores])
    logs -= np.log(max(len(scores), 1))
    largest = max(float(logs.max(initial=0.0)), 0.0)
    weights = np.exp(logs - largest)
    return np.asarray(weights / (np.exp(-largest) + weights.sum()))


def reach_of_doubt(
    scores: Sequence[Score], weights: Array, values: Mapping[str, float], widths: Mapping[str, float]
) -> dict[str, float]:
    """Return by term what its half-width needs beyond its own, in quadrature, to hold the mixture.

    ``values`` of the law alone in weak form, as those of ``scores``; ``widths``: half-widths of its intervals.
    """
    reach = {}
    for name, value in values.items():
        half = widths[name]
        if not np.isfinite(half):  # a coefficient that is held is not in doubt
            reach[name] = 0.0
            continue
        own = half / norm.isf(OUTSIDE / 2)
        shifts = np.array([found.coefficients[name] - value for found in scores])
        errors = np.array([np.hypot(own, found.shift_errors[name]) for found in scores])
        wider = own * _half_width(weights, shifts / own, errors / own)
        reach[name] = float(np.sqrt(max(wider**2 - half**2, 0.0)))
    return reach


def _half_width(weights: Array, shifts: Array, errors: Array) -> float:
    """Return h for which the mixture lies within ±h but for ``OUTSIDE``, in standard errors of the law alone."""
    shares = np.append(weights, 1 - weights.sum())
    means, spreads = np.append(shifts, 0.0), np.append(errors, 1.0)

    def beyond(half: float) -> float:
        outside = norm.sf((half - means) / spreads) + norm.cdf((-half - means) / spreads)
        return float(shares @ outside) - OUTSIDE

    highest = float(np.max(np.abs(means) + 10 * spreads))
    return float(brentq(beyond, 0.0, highest))
