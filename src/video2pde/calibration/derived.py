"""Numbers that follow from a law's coefficients: the level that growth ends at, the threshold of a bistable reaction.

Intervals follow the coefficients' errors to first order: those that the replicates show with their correlations, all
others as if they added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.budget import STATISTICS
from video2pde.calibration.calibrate import Calibration
from video2pde.estimate import Estimate
from video2pde.terms.families import FAMILIES

Array = NDArray[np.float64]

REACTIONS = ("constant", "u", "u_squared", "u_cubed")
MEANINGS = {
    "K": "the level that it grows towards",
    "α": "the threshold: what is below it fades, what is above it grows",
    "β": "the level that it grows towards above the threshold",
}


@dataclass(frozen=True)
class Derived:
    """A number that follows from a law: its symbol, what it means, its interval, and its unit."""

    symbol: str
    meaning: str
    estimate: Estimate
    unit: str = "1"

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``result.json``."""
        return {"symbol": self.symbol, "meaning": self.meaning, **self.estimate.to_json(), "unit": self.unit}

    def words(self) -> str:
        """Say it in one line."""
        return f"{self.symbol} = {self.estimate}, {self.meaning}"


def propagate(law: Calibration, names: Sequence[str], values: Sequence[float], slopes: Array) -> list[Estimate]:
    """Return numbers that follow from the coefficients of ``names``, by their derivatives ``slopes`` (n, names)."""
    covariance, rest = coefficient_errors(law, names)
    found = []
    for value, slope in zip(values, slopes, strict=True):
        half = float(np.hypot(np.sqrt(max(slope @ covariance @ slope, 0.0)), np.abs(slope) @ rest))
        found.append(Estimate(float(value), float(value - half), float(value + half)))
    return found


def coefficient_errors(law: Calibration, names: Sequence[str]) -> tuple[Array, Array]:
    """Split half-widths into a covariance (n, n), by what the replicates show, and what is left of them, (n,)."""
    listed = [term.name for term in law.terms]
    index = [listed.index(name) for name in names]
    half = np.array([_half_width(law.estimates[name]) for name in names])
    boot = law.bootstrap
    if boot is None or boot.converged < 2:
        return np.zeros((len(names), len(names))), half
    own = np.minimum(law.correction(STATISTICS).uncertainty[index], half)
    draws = boot.draws[:, index]
    spread = draws.std(axis=0, ddof=1)
    sizes = np.where(spread > 0, spread, 1.0)
    together = np.atleast_2d(np.cov(draws, rowvar=False)) / np.outer(sizes, sizes)
    return np.asarray(together * np.outer(own, own)), np.sqrt(half**2 - own**2)


def _half_width(estimate: Estimate) -> float:
    return max(estimate.high - estimate.value, estimate.value - estimate.low) if estimate.has_interval else np.nan


def find_derived(law: Calibration) -> tuple[Derived, ...]:
    """Return the numbers that follow from a law, and the parameters of its terms."""
    by_symbol = {family.symbol: family for family in FAMILIES.values()}
    fitted = tuple(Derived(s, by_symbol[s].meaning, estimate) for s, estimate in law.parameters.items())
    return fitted + _levels(law)


def _levels(law: Calibration) -> tuple[Derived, ...]:
    """Return where a reaction without a constant vanishes beside u = 0: K of u and u², α and β of u, u² and u³.

    For r(u) = c₁u + c₂u² + c₃u³ = u q(u), a root z of q moves by ∂z/∂c_k = −z^{k−1}/q′(z).
    """
    names = [term.name for term in law.terms if term.name in REACTIONS]
    if names not in (["u", "u_squared"], ["u", "u_squared", "u_cubed"]):
        return ()
    polynomial = np.polynomial.Polynomial([law.estimates[name].value for name in names])
    roots = np.asarray(polynomial.roots(), complex)
    levels = sorted(float(z.real) for z in roots if z.real > 0 and abs(z.imag) < 1e-9 * abs(z))
    bistable = len(names) == 3
    if len(levels) != (2 if bistable else 1) or (bistable and law.estimates["u_cubed"].value > 0):
        return ()
    if not bistable and law.estimates["u"].value < 0:
        return ()
    slopes = np.array([[-(z**k) / polynomial.deriv()(z) for k in range(len(names))] for z in levels])
    symbols = ("α", "β") if bistable else ("K",)
    estimates = propagate(law, names, levels, slopes)
    return tuple(Derived(s, MEANINGS[s], estimate) for s, estimate in zip(symbols, estimates, strict=True))
