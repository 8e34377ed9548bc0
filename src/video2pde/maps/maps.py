"""THE definition of a coefficient that varies, c(x, y) or c(t), and its views.

    c(x, y) = c̄ m(x, y),      m = 1 + Σ_k q_k B_k(x, y),      Σ_k w_k q_k = 0,      and the same for c(t)

B_k are tensor B-splines over the picture, or B-splines in time, and add up to one. c̄ is the law's own coefficient: the
mean of the map, each spline weighed by the signal w_k that the recording has there, so that a map is a departure from
c̄, and a law without one is the same law. Beyond the frames that it was fitted to, c(t) stays as it last was.

A term of second derivatives acts in divergence form, D^α f → ½[D^α(c f) + c D^α f − f D^α c]: for Δu that is ∇·(c∇u),
which moves u about and makes none. All other terms are multiplied, c T(u).

Views: weak columns (``discovery.maps``), coefficients of rollouts (:meth:`CoefficientMap.field`,
:meth:`CoefficientMap.course`), words (``maps.words``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.flow.profiles import Profiles
from video2pde.terms.term import Part

Array = NDArray[np.float64]
Over = Literal["space", "time"]

DEGREE = 3
GRIDS_KEPT = 8
"""Shapes and grids whose splines are kept: those of a run, on its grid and on a finer one."""
BELIEVED = 0.01
"""Chance of departures as large as those seen, under a constant coefficient, below which it varies."""
LITTLE = 1e-2
"""Signal, relative to the largest, below which the recording says nothing of a map."""


def in_divergence_form(part: Part) -> bool:
    """Tell whether a coefficient that varies acts inside the derivatives of a part."""
    return sum(part.derivative) == 2 and not part.uses_gradient


@dataclass(frozen=True)
class MapShape:
    """Say how a coefficient may vary.

    Parameters
    ----------
    term : whose coefficient it is.
    over : ``space`` or ``time``.
    breaks : where splines join, the ends included: along y and along x (length units), or in time (seconds). They are
        close where there is something to see, and reach over the whole picture.
    """

    term: str
    over: Over
    breaks: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        ordered = all(len(axis) > 1 and np.diff(axis).min() > 0 for axis in self.breaks)
        if len(self.breaks) != (2 if self.over == "space" else 1) or not ordered:
            raise InputError(f"a coefficient over {self.over} cannot have splines that join at {self.breaks}")

    @property
    def splines(self) -> tuple[int, ...]:
        """How many splines there are along each axis."""
        return tuple(len(axis) + DEGREE - 1 for axis in self.breaks)

    @property
    def count(self) -> int:
        return int(np.prod(self.splines))

    @property
    def span(self) -> tuple[float, float]:
        """First and last time of a coefficient over time, seconds."""
        return self.breaks[-1][0], self.breaks[-1][-1]

    def along(self, grid: Grid) -> tuple[Profiles, Profiles]:
        """Return the splines along y and along x whose products a map over space is a sum of."""
        rows, columns = self.breaks
        return Profiles.between(grid.y, rows), Profiles.between(grid.x, columns)

    def on_grid(self, grid: Grid) -> Array:
        """Return every spline over space on the grid: (k, y, x)."""
        along_y, along_x = _sampled(self, grid)
        return np.asarray(np.einsum("iy,jx->ijyx", along_y, along_x).reshape(-1, *grid.shape))

    def in_time(self, times: Array) -> Array:
        """Return every spline over time at the times, (k, t); before and after the span as at its ends."""
        return Profiles.between(np.clip(times, *self.span), self.breaks[0]).values()

    def products(self, order: int) -> Array:
        """Integrate products of derivatives as a matrix (k, k): ∫c², ∫|∇c|² or ∫|∇∇c|² for order 0, 1, 2."""
        if self.over == "time":
            return _gram(self.breaks[0], order)
        rows, columns = self.breaks
        pairs = ((n, order - n, comb(order, n)) for n in range(order + 1))
        return np.asarray(sum(times * np.kron(_gram(rows, n), _gram(columns, m)) for n, m, times in pairs))

    @cached_property
    def sizes(self) -> Array:
        """Integrate every spline, (k,)."""
        return np.asarray(self.products(0).sum(axis=1))


def _gram(breaks: tuple[float, ...], order: int) -> Array:
    """Integrate products of the splines' derivatives by Gauss's rule between breaks, which is exact."""
    nodes, weights = np.polynomial.legendre.leggauss(DEGREE + 1)
    low, length = np.array(breaks[:-1])[:, None], np.diff(breaks)[:, None]
    values = Profiles.between((low + length * (nodes + 1) / 2).ravel(), breaks).values(order)
    return np.asarray((values * (length * weights / 2).ravel()) @ values.T)


@lru_cache(maxsize=GRIDS_KEPT)
def _sampled(shape: MapShape, grid: Grid) -> tuple[Array, Array]:
    along_y, along_x = shape.along(grid)
    return along_y.values(), along_x.values()


@dataclass(frozen=True, eq=False)
class CoefficientMap:
    """Hold a coefficient that varies: its shape and its departures q (k,), relative to the law's coefficient c̄.

    ``covariance`` (k + 1, k + 1): of c̄ and q together; ``directions`` (n, k): the changes of q, each of one standard
    error, that the weak fit leaves most uncertain, and that a calibration may still make; ``signal`` (k,): how much
    the recording has to say of c where each spline lies, the largest 1; ``ridge``: the penalty on roughness that
    cross-validation has chosen; ``chance``: of departures as large as these under a constant coefficient, by the
    ``statistic`` with ``freedom`` degrees of freedom; ``gain``: share of what a constant coefficient leaves of
    left-out parts that the map removes; ``answers`` (k,) by term: how the law's coefficients answer to departures that
    no calibration decides.
    """

    shape: MapShape
    departures: Array
    covariance: Array
    signal: Array
    directions: Array
    ridge: float = float("nan")
    chance: float = float("nan")
    statistic: float = float("nan")
    freedom: int = 0
    gain: float = float("nan")
    answers: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = self.shape.count
        if self.departures.shape != (count,) or not np.isfinite(self.departures).all():
            raise InputError(f"a map of this shape needs {count} finite departures, not {self.departures.shape}")
        if self.covariance.shape != (count + 1, count + 1) or self.signal.shape != (count,):
            raise InputError(f"a map of {count} splines needs as many signals and their covariance")

    @property
    def term(self) -> str:
        return self.shape.term

    @property
    def over(self) -> Over:
        return self.shape.over

    @property
    def varies(self) -> bool:
        """Whether a constant coefficient is refused: by its chance, and by what it leaves of left-out parts."""
        return bool(self.chance < BELIEVED and self.gain > 0)

    def changed(self, change: Array) -> CoefficientMap:
        """Change the departures by (k,)."""
        return replace(self, departures=self.departures + change)

    def widened(self, error: float) -> CoefficientMap:
        """Add a standard error of the mean, in quadrature: one of all of the map alike."""
        covariance = self.covariance.copy()
        covariance[0, 0] += error**2
        return replace(self, covariance=covariance)

    def field(self, mean: float, grid: Grid) -> Array:
        """Return c on the grid, (y, x), for c̄ = ``mean``."""
        along_y, along_x = _sampled(self.shape, grid)
        return np.asarray(mean * (1 + along_y.T @ self.departures.reshape(self.shape.splines) @ along_x))

    def course(self, mean: float, times: Array) -> Array:
        """Return c at the times, (t,), for c̄ = ``mean``."""
        return np.asarray(mean * (1 + self.departures @ self.shape.in_time(np.asarray(times, float))))

    def on_intervals(self, mean: float, times: Array) -> Array:
        """Return the mean of c over each interval between the times, (t − 1,), by Simpson's rule."""
        ends, middles = self.course(mean, times), self.course(mean, 0.5 * (times[1:] + times[:-1]))
        return np.asarray((ends[1:] + ends[:-1] + 4 * middles) / 6)

    def basis(self, grid: Grid | None = None, times: Array | None = None) -> Array:
        """Return the splines (k, …) on the grid, or at the times."""
        if self.over == "space":
            assert grid is not None
            return self.shape.on_grid(grid)
        assert times is not None
        return self.shape.in_time(times)

    def values(self, mean: float, basis: Array) -> Array:
        """Return c where the splines are ``basis`` (k, …), for c̄ = ``mean``."""
        return np.asarray(mean * (1 + np.tensordot(self.departures, basis, axes=1)))

    def error(self, mean: float, basis: Array) -> Array:
        """Return the standard error of c where the splines are ``basis`` (k, …), for c̄ = ``mean``."""
        splines = basis.reshape(len(basis), -1)
        flat = np.concatenate([1 + self.departures[None] @ splines, mean * splines])
        variance = np.einsum("kp,kl,lp->p", flat, self.covariance, flat, optimize=True)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)).reshape(basis.shape[1:]))

    def seen(self, basis: Array) -> NDArray[np.bool_]:
        """Tell where there is signal enough."""
        signal = np.tensordot(self.signal, basis, axes=1)
        return np.asarray(signal > LITTLE * signal.max())

    @property
    def undecided(self) -> Array:
        """The covariance (k, k) of departures in all directions but those that a calibration decides."""
        values, vectors = np.linalg.eigh(self.covariance[1:, 1:] - self.directions.T @ self.directions)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def told(self, mean: float, basis: Array) -> NDArray[np.bool_]:
        """Tell where the recording says something of c: there is signal, and the error is below the map's own range."""
        seen = self.seen(basis)
        spread = float(np.ptp(self.values(mean, basis)[seen])) if seen.any() else 0.0
        # a map that is flat within its errors is told as well as a constant is
        reach = max(spread, abs(mean))
        return np.asarray(seen & (self.error(mean, basis) < reach))
