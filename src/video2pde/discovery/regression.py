"""Sparse regression: sequentially thresholded ridge least squares on the normal equations of Θξ ≈ b.

Columns are normalised first, so that neither ridge nor threshold depends on units. By default a term is
dropped when its share of the signal, ‖ξ_l Θ_l‖ / ‖b‖, is below the threshold; a threshold on the
coefficients themselves (the paper's λ) is kept as a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear, minimize_scalar

from video2pde.discovery.weak import WeakSystem
from video2pde.html import table
from video2pde.settings import RegressionSettings
from video2pde.terms.catalogue import DRIFT, TENSOR
from video2pde.terms.constraints import WHOLE_TENSOR

Array = NDArray[np.float64]
ACTIVE = 1e-12
"""A coefficient (as a share of the signal) above this counts as active."""
RESTORE = 2.0
"""Dropped terms come back where more than this times what all terms together leave is unexplained, ..."""
ANGLES = 60
"""Directions over half a turn in which a tensor without diffusion across is tried."""
LEAST_UNEXPLAINED = 2e-5
"""... and more than this share of ‖b‖²."""


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal equations with unit columns: gram R = Θ̂ᵀΘ̂, right-hand side Θ̂ᵀb̂, and the norms taken out."""

    names: tuple[str, ...]
    gram: Array
    right: Array
    norms: Array
    signal: float

    def take(self, names: Sequence[str]) -> Normal:
        """Keep the named columns alone."""
        index = [self.names.index(name) for name in names]
        return Normal(tuple(names), self.gram[np.ix_(index, index)], self.right[index], self.norms[index], self.signal)


def solve_columns(design: Array, target: Array, rank: float) -> Array:
    """Solve a least-squares problem on columns of unit length; what is smaller than ``rank`` is no direction."""
    size = np.linalg.norm(design, axis=0)
    scale = np.where(size > 0, size, 1.0)
    found = np.linalg.lstsq(design / scale, target, rcond=rank)[0]
    return np.asarray(found / (scale if found.ndim == 1 else scale[:, None]))


def normal_equations(system: WeakSystem, drift: str = "axes") -> Normal:
    """Form the normal equations once; libraries, sweeps and thresholds reuse them.

    ``drift``: ``axes`` keeps one drift column per axis, ``scale`` adds them into ``drift_x`` + ``drift_y``
    as one column named ``drift``, ``fixed`` moves them to the right-hand side with coefficient 1.
    """
    names, theta, b = list(system.names), system.theta, system.b
    present = [name for name in DRIFT if name in names]
    if drift != "axes" and present:
        moved = system.columns(present).sum(axis=1)
        keep = [i for i, name in enumerate(names) if name not in present]
        names, theta = [names[i] for i in keep], theta[:, keep]
        if drift == "scale":
            names, theta = [*names, "drift"], np.column_stack([theta, moved])
        else:
            b = b - moved
    norms = np.linalg.norm(theta, axis=0)
    safe = np.where(norms > 0, norms, 1.0)
    signal = float(np.linalg.norm(b))
    unit = theta / safe
    return Normal(tuple(names), unit.T @ unit, unit.T @ b / (signal or 1.0), norms, signal)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (0 where dropped), their shares of the signal, and how the iteration ended."""

    names: tuple[str, ...]
    coefficients: Array
    shares: Array
    explained: float
    iterations: int

    @property
    def active(self) -> tuple[str, ...]:
        return tuple(name for name, share in zip(self.names, self.shares, strict=True) if share > ACTIVE)


def solve_sparse(normal: Normal, settings: RegressionSettings, threshold: float | None = None) -> Solution:
    """Repeat: solve ridge least squares on the active columns, drop what is below the threshold."""
    limit = settings.threshold if threshold is None else threshold
    active = normal.norms > 0
    shares = np.zeros(len(normal.names))
    iterations = 0
    while iterations < settings.max_iterations:
        iterations += 1
        shares[:] = 0
        if active.any():
            shares[active] = _ridge(normal, active, settings)
        measure = np.abs(shares if settings.threshold_on == "share" else _coefficients(normal, shares))
        kept = _keep_together(normal.names, active & (measure >= limit) & (np.abs(shares) > ACTIVE))
        if (kept == active).all():
            break
        active = kept
    if threshold is None and settings.threshold_on == "share":
        shares = _restore(normal, shares, settings)
    explained = float(1 - _unexplained(normal, shares)) if normal.signal > 0 else 0.0
    return Solution(normal.names, _coefficients(normal, shares), np.abs(shares), explained, iterations)


def _keep_together(names: Sequence[str], kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep a diffusion tensor whole: which of its entries is small depends on how the camera was turned."""
    index = [names.index(name) for name in TENSOR if name in names]
    if len(index) == len(TENSOR):
        kept[index] = kept[index].any()
    return kept


def _unexplained(normal: Normal, shares: Array) -> float:
    """Return ‖b̂ − Θ̂s‖² = 1 − 2 sᵀr + sᵀRs, b̂ having unit length."""
    return float(1 - 2 * shares @ normal.right + shares @ normal.gram @ shares)


def _restore(normal: Normal, shares: Array, settings: RegressionSettings) -> Array:
    """Take dropped terms back, the most useful first, while without them far more stays unexplained than need be.

    A share of the signal is no measure where the background itself changes (growth, decay): it carries most of the
    signal, and a term that shapes the plume alone can fall below the threshold though nothing else explains its part.
    """
    whole = np.zeros_like(shares)
    possible = normal.norms > 0
    if normal.signal == 0 or not possible.any():
        return shares
    whole[possible] = _ridge(normal, possible, settings)
    enough = max(RESTORE * _unexplained(normal, whole), LEAST_UNEXPLAINED)
    while _unexplained(normal, shares) > enough:
        trials = []
        for index in np.flatnonzero(possible & (shares == 0)):
            active = shares != 0
            active[index] = True
            active = _keep_together(normal.names, active)
            trial = np.zeros_like(shares)
            trial[active] = _ridge(normal, active, settings)
            trials.append((_unexplained(normal, trial), trial))
        if not trials:
            break
        shares = min(trials, key=lambda pair: pair[0])[1]
    return shares


def _coefficients(normal: Normal, shares: Array) -> Array:
    return shares * normal.signal / np.where(normal.norms > 0, normal.norms, 1.0)


def _ridge(normal: Normal, active: NDArray[np.bool_], settings: RegressionSettings) -> Array:
    index = np.flatnonzero(active)
    matrix = normal.gram[np.ix_(index, index)] + settings.ridge * np.eye(len(index))
    right = normal.right[index]
    names = [normal.names[i] for i in index]
    low, high = _bounds(names, settings.signs)
    if np.isinf(low).all() and np.isinf(high).all():
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])
    found = _bounded(matrix, right, low, high)
    if settings.signs.get(WHOLE_TENSOR) == "positive" and set(TENSOR) <= set(names):
        return _with_positive_tensor(matrix, right, (low, high), found, names, normal.norms[index])
    return found


def _bounded(matrix: Array, right: Array, low: Array, high: Array) -> Array:
    # minimise ½ sᵀAs − rᵀs under bounds: with A = LLᵀ it is ½‖Lᵀs − L⁻¹r‖²
    factor = np.linalg.cholesky(matrix + 1e-14 * np.eye(len(matrix)))
    return np.asarray(lsq_linear(factor.T, np.linalg.solve(factor, right), bounds=(low, high)).x)


def _with_positive_tensor(
    matrix: Array, right: Array, bounds: tuple[Array, Array], found: Array, names: Sequence[str], norms: Array
) -> Array:
    """Keep a diffusion tensor from being negative in any direction.

    The problem is convex: where the best tensor is negative in one direction, the best that is allowed has no diffusion
    there at all, D = d n nᵀ. Then d and the other coefficients are linear, and the direction n is looked for.
    """
    place = [names.index(name) for name in TENSOR]
    xx, yy, cross = found[place] / norms[place]
    if xx + yy >= np.hypot(xx - yy, cross):
        return found
    others = [i for i in range(len(names)) if i not in place]

    def along(angle: float) -> tuple[float, Array]:
        c, s = np.cos(angle), np.sin(angle)
        basis = np.zeros((len(names), len(others) + 1))
        basis[others, np.arange(len(others))] = 1.0
        basis[place, -1] = np.array([c * c, s * s, 2 * c * s]) * norms[place] / norms[place].max()
        low, high = (np.append(bound[others], end) for bound, end in zip(bounds, (0.0, np.inf), strict=True))
        shares = basis @ _bounded(basis.T @ matrix @ basis, basis.T @ right, low, high)
        return float(0.5 * shares @ matrix @ shares - right @ shares), shares

    angles = np.linspace(0.0, np.pi, ANGLES, endpoint=False)
    best = angles[int(np.argmin([along(angle)[0] for angle in angles]))]
    step = np.pi / ANGLES
    finer = minimize_scalar(lambda angle: along(angle)[0], bounds=(best - step, best + step), method="bounded")
    return along(float(finer.x))[1]


def _bounds(names: Sequence[str], signs: Mapping[str, str]) -> tuple[Array, Array]:
    low = np.array([0.0 if signs.get(name) == "positive" else -np.inf for name in names])
    high = np.array([0.0 if signs.get(name) == "negative" else np.inf for name in names])
    return low, high


@dataclass(frozen=True, eq=False)
class SparseFit:
    """Hold the sparse fit of one library to the weak system.

    ``coefficients`` are in the recording's units, 0 where a term was dropped; ``errors`` their standard
    errors; ``shares`` each term's share of the signal; ``explained`` the share of ‖b‖² that the fit explains.
    """

    library: str
    names: tuple[str, ...]
    coefficients: Mapping[str, float]
    errors: Mapping[str, float]
    shares: Mapping[str, float]
    explained: float
    iterations: int

    @property
    def active(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if self.shares[name] > ACTIVE)

    @property
    def active_terms(self) -> tuple[str, ...]:
        """Active terms without the drift."""
        return tuple(name for name in self.active if not name.startswith("drift"))

    def significance(self, name: str) -> float:
        """Return |coefficient| in standard errors."""
        return abs(self.coefficients[name]) / self.errors[name] if self.errors.get(name, 0) > 0 else 0.0

    def __repr__(self) -> str:
        parts = [f"{n} = {self.coefficients[n]:.5g} ± {self.errors[n]:.2g}" for n in self.active]
        return f"SparseFit({self.library}: {', '.join(parts) or 'nothing active'}; explains {self.explained:.2%})"

    def _repr_html_(self) -> str:
        """Show the fit in a notebook as a table."""
        rows = [
            (n, f"{self.coefficients[n]:.5g}", f"{self.errors[n]:.2g}", f"{self.shares[n]:.1%}") for n in self.names
        ]
        heads = ("term", "coefficient", "standard error", "share of the signal")
        return table(heads, rows, f"library {self.library}, explains {self.explained:.2%}")


def fit_library(
    library: str, names: Sequence[str], system: WeakSystem, settings: RegressionSettings | None = None
) -> SparseFit:
    """Fit one library (with the drift columns that the system holds) and attach standard errors."""
    settings = settings or RegressionSettings()
    normal = normal_equations(system, settings.drift)
    columns = [*names, *(name for name in normal.names if name.startswith("drift"))]
    solution = solve_sparse(normal.take(columns), settings)
    errors = _standard_errors(system, solution, settings.drift)
    return SparseFit(
        library,
        solution.names,
        {n: float(c) for n, c in zip(solution.names, solution.coefficients, strict=True)},
        errors,
        {n: float(s) for n, s in zip(solution.names, solution.shares, strict=True)},
        solution.explained,
        solution.iterations,
    )


def _standard_errors(system: WeakSystem, solution: Solution, drift: str) -> dict[str, float]:
    """Estimate standard errors where test functions overlap.

    cov ξ = (ΘᵀΘ)⁻¹ [Σ_mn K_mn r_m r_n Θ_m Θ_nᵀ] (ΘᵀΘ)⁻¹ with K_mn = exp(−d²_mn/4), d in widths: the
    correlation of the residuals of two Gaussian test functions under noise that is white in space and time.
    """
    errors = dict.fromkeys(solution.names, 0.0)
    active = solution.active
    if not active:
        return errors
    columns = [system.columns(DRIFT).sum(axis=1) if n == "drift" else system.columns([n])[:, 0] for n in active]
    theta = np.column_stack(columns)
    coefficients = solution.coefficients[[solution.names.index(n) for n in active]]
    target = system.b - (system.columns([n for n in DRIFT if n in system.names]).sum(axis=1) if drift == "fixed" else 0)
    residual = target - theta @ coefficients
    scale = np.linalg.norm(theta, axis=0)
    unit = theta / scale
    scores = unit * residual[:, None]
    bread = np.linalg.pinv(unit.T @ unit)
    spread = bread @ (scores.T @ system.overlap @ scores) @ bread
    for name, variance, size in zip(active, np.diag(spread), scale, strict=True):
        errors[name] = float(np.sqrt(max(variance, 0.0)) / size)
    return errors
