"""Estimates of several recordings together: do they scatter more than their errors, and what is their mean?

    y_i = x_iᵀ b + δ_i + ε_i,      δ_i ~ N(0, τ²),      ε_i ~ N(0, v_i) with v_i known

The random-effects model of meta-analysis. τ², the variance between recordings, is found by restricted maximum
likelihood (REML); its interval by profiling the generalised Q (Viechtbauer 2007); intervals of b by Hartung and Knapp,
never narrower than those without their factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2
from scipy.stats import t as student

from video2pde.errors import InputError
from video2pde.estimate import Estimate

Array = NDArray[np.float64]

LEVEL = 0.95
"""Of all intervals."""
DOUBLINGS = 200
"""How often the search for an upper end of τ² may double it."""


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """A mean or a regression over recordings.

    ``coefficients`` of the columns of the design, ``errors`` (p,) their standard errors; ``tau`` the standard deviation
    between recordings; ``q`` with ``freedom`` and ``chance``: Cochran's Q, what a scatter by errors alone would exceed
    with that chance; ``i_squared``: the share of the scatter that errors do not account for.
    """

    coefficients: tuple[Estimate, ...]
    errors: Array
    tau: Estimate
    q: float
    freedom: int
    chance: float
    i_squared: float

    @property
    def mean(self) -> Estimate:
        return self.coefficients[0]


def pool(values: Array, variances: Array, design: Array | None = None) -> RandomEffects:
    """Fit the random-effects model to estimates (n,) with known variances (n,).

    ``design`` (n, p): what they may depend on; none: one mean for all.

    Examples
    --------
    >>> found = pool(np.array([1.0, 1.2, 0.9]), np.array([0.01, 0.02, 0.01]))
    >>> round(found.mean.value, 3), found.freedom
    (1.007, 2)
    """
    model = _Model(np.asarray(values, float), np.asarray(variances, float), _as_design(values, design))
    count, columns = model.design.shape
    freedom = count - columns
    if freedom < 1:
        raise InputError(f"{count} recordings cannot tell {columns} numbers and their scatter; add recordings")
    if not (np.isfinite(model.values).all() and np.all(model.variances > 0)):
        raise InputError("every estimate needs a value and an error above zero")
    between = model.restricted_likelihood()
    low, high = model.profile(freedom)
    q = model.q(0.0)
    typical = freedom / float(np.trace(model.projection(0.0)))
    estimates, errors = model.estimate(between, freedom)
    return RandomEffects(
        coefficients=estimates,
        errors=errors,
        tau=Estimate(float(np.sqrt(between)), float(np.sqrt(low)), float(np.sqrt(high))),
        q=q,
        freedom=freedom,
        chance=float(chi2.sf(q, freedom)),
        i_squared=between / (between + typical),
    )


def _as_design(values: Array, design: Array | None) -> Array:
    return np.ones((len(values), 1)) if design is None else np.asarray(design, float)


@dataclass(frozen=True, eq=False)
class _Model:
    """The data, and what a variance τ² between recordings makes of them."""

    values: Array
    variances: Array
    design: Array

    def projection(self, between: float) -> Array:
        """Return P = W − W X (XᵀWX)⁻¹ XᵀW with W = 1/(v + τ²)."""
        weight = 1 / (self.variances + between)
        weighted = weight[:, None] * self.design
        return np.asarray(np.diag(weight) - weighted @ np.linalg.solve(self.design.T @ weighted, weighted.T))

    def q(self, between: float) -> float:
        """Return yᵀPy: χ² of n − p degrees of freedom where τ² is right."""
        return float(self.values @ self.projection(between) @ self.values)

    def restricted_likelihood(self) -> float:
        """Return the τ² at which the restricted likelihood is largest: where tr P = yᵀPPy."""

        def slope(between: float) -> float:
            projection = self.projection(between)
            moved = projection @ self.values
            return float(moved @ moved - np.trace(projection))

        return _falling_root(slope, self._scale)

    def profile(self, freedom: int) -> tuple[float, float]:
        """Return the interval of τ²: all values under which Q is neither too large nor too small to be believed."""
        tails = chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], freedom)
        low, high = (_falling_root(partial(self._above, float(limit)), self._scale) for limit in tails)
        return low, high

    def _above(self, limit: float, between: float) -> float:
        return self.q(between) - limit

    def estimate(self, between: float, freedom: int) -> tuple[tuple[Estimate, ...], Array]:
        weight = 1 / (self.variances + between)
        covariance = np.linalg.inv(self.design.T @ (weight[:, None] * self.design))
        found = covariance @ self.design.T @ (weight * self.values)
        errors = np.sqrt(np.diag(covariance))
        wider = np.sqrt(max(1.0, self.q(between) / freedom))
        half = student.ppf((1 + LEVEL) / 2, freedom) * wider * errors
        return tuple(Estimate(float(b), float(b - h), float(b + h)) for b, h in zip(found, half, strict=True)), errors

    @property
    def _scale(self) -> float:
        return float(self.variances.max() + np.ptp(self.values) ** 2)


def _falling_root(function: Callable[[float], float], scale: float) -> float:
    """Return where a falling function of τ² ≥ 0 crosses zero; 0 where it begins below."""
    if function(0.0) <= 0:
        return 0.0
    high = scale
    for _ in range(DOUBLINGS):
        if function(high) < 0:
            return float(brentq(function, 0.0, high, xtol=1e-14 * high, rtol=1e-12))
        high *= 2
    return high
