"""Exact evolution of the gradient-square law by the Cole–Hopf transformation.

u_t + v(t)·∇u = a|∇u|² + β Δu with β > 0 becomes the heat equation for θ = exp(a u/β). Its solution at time t
is a Gaussian average of the *first* frame, shifted by X(t) = ∫v: every frame is computed from the first
one alone, so no error accumulates. All weights are positive, hence θ keeps its relative accuracy where u is
small and a/β is large, and the maximum principle holds.

Two ways to take the average, both separable:

* wide kernels (σ = √(2βt) of at least ``WIDE`` pixels): the sampled Gaussian, whose sum is an integral to
  within exp(−2π²σ²);
* narrow kernels: Gauss–Hermite nodes, at which the smooth field u (not θ) is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import cumulative_trapezoid

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.task import Rollout
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]
WIDE = 1.25
"""Width in pixels from which a sampled Gaussian is exact to about 1e-13."""
REACH = 9.0
"""Standard deviations after which a Gaussian ends."""
NODES = 12
POINTS = 10
"""Gauss–Hermite nodes of a narrow kernel, and points of the polynomial that interpolates u between pixels."""
LARGEST_EXPONENT = 650.0


def evolve_cole_hopf(
    model: Model,
    u0: ArrayLike,
    times: ArrayLike,
    grid: Grid,
    velocity: ArrayLike | None = None,
    settings: RolloutSettings | None = None,
) -> Rollout:
    """Evolve u0 exactly under a ``grad_squared`` + ``laplacian`` law with β > 0 and uniform drift.

    Parameters are those of :func:`video2pde.rollout.simulate.simulate`. The drift acts on the first frame
    as the boundary condition continues it: mirrored without end, or periodic. Nothing is clipped.
    """
    chosen = settings or RolloutSettings()
    a, beta = _coefficients(model.with_viscosity(chosen.viscosity))
    first = np.asarray(u0, float)
    t = np.asarray(times, float)
    if first.shape != grid.shape or not np.isfinite(first).all():
        raise InputError(f"the first frame must be finite and of shape {grid.shape}, not {first.shape}")
    v = np.zeros((len(t), 2)) if velocity is None else np.asarray(velocity, float) * model.drift_scale
    shift = cumulative_trapezoid(v, t, axis=0, initial=0.0)
    exponent = a / beta
    if abs(exponent) * np.ptp(first) > LARGEST_EXPONENT:
        raise InputError(
            f"a/β·(max u − min u) = {abs(exponent) * np.ptp(first):.0f} exceeds {LARGEST_EXPONENT:.0f}, the range of "
            "the exponential; use the explicit scheme"
        )
    values = np.empty((len(t), *grid.shape), chosen.precision)
    values[0] = first
    axes = [_Axis(n, pitch, chosen.boundary == "periodic") for n, pitch in ((grid.ny, grid.dy), (grid.nx, grid.dx))]
    for k in range(1, len(t)):
        width = float(np.sqrt(2.0 * beta * (t[k] - t[0])))
        values[k] = _evolve(first, exponent, width, (shift[k, 1], shift[k, 0]), axes)
    return Rollout(values, False, None, "", np.ones(len(t) - 1, np.int64))


def _coefficients(model: Model) -> tuple[float, float]:
    if not model.consists_of(("grad_squared", "laplacian")):
        raise InputError(f"the Cole–Hopf evolution knows |∇u|² and Δu alone, not {model.equation.text}; use simulate")
    a, beta = model.amount("grad_squared"), model.amount("laplacian")
    if not beta > 0.0:
        raise InputError(f"the Cole–Hopf evolution needs a positive diffusion, not β = {beta:g}; use simulate")
    return a, beta


@dataclass(frozen=True)
class _Axis:
    """Describe one direction: n samples of spacing ``pitch``, continued by mirroring or periodically."""

    n: int
    pitch: float
    periodic: bool

    def fold(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bring an index of the continued line back to the sample that it repeats."""
        if self.periodic:
            return index % self.n
        inside = index % (2 * self.n)
        return np.where(inside < self.n, inside, 2 * self.n - 1 - inside)

    def gaussian(self, width: float, shift: float) -> Array:
        """Build the matrix of Gaussian weights of the given width around x − shift; each row sums to one."""
        move = -shift / self.pitch
        whole = int(np.floor(move))
        half = int(np.ceil(REACH * width / self.pitch))
        offsets = np.arange(-half, half + 2)
        weights = np.exp(-0.5 * ((offsets - (move - whole)) * self.pitch / width) ** 2)
        rows = np.arange(self.n)[:, None]
        places = rows * self.n + self.fold(rows + whole + offsets)
        spread = np.broadcast_to(weights / weights.sum(), places.shape)
        matrix: Any = np.bincount(places.ravel(), spread.ravel(), minlength=self.n**2)
        return np.asarray(matrix, float).reshape(self.n, self.n)

    def interpolate(self, u: Array, shift: float) -> Array:
        """Evaluate the local polynomial through ``POINTS`` samples at x − shift, along the first axis of u."""
        move = -shift / self.pitch
        whole = int(np.floor(move))
        offsets = np.arange(POINTS) - (POINTS // 2 - 1)
        continued = u[self.fold(np.arange(self.n + POINTS - 1) + whole + offsets[0])]
        weights = _lagrange(move - whole, offsets)
        result: Array = weights[0] * continued[: self.n]
        for m in range(1, POINTS):
            result += weights[m] * continued[m : m + self.n]
        return result


def _lagrange(x: float, points: NDArray[np.int64]) -> Array:
    others = points[:, None] != points[None, :]
    top = np.where(others, x - points[None, :], 1.0).prod(axis=1)
    bottom = np.where(others, points[:, None] - points[None, :], 1).prod(axis=1)
    result: Array = top / bottom
    return result


@lru_cache(maxsize=4)
def _hermite(count: int) -> tuple[Array, Array]:
    """Return nodes in standard deviations and weights of the Gaussian average."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def _evolve(first: Array, exponent: float, width: float, shift: tuple[float, float], axes: list[_Axis]) -> Array:
    """Average the first frame over Gaussians of the given width, along y and then along x."""
    narrow = [width < WIDE * axis.pitch for axis in axes]
    if any(narrow):
        along_y = _average_narrow(first, exponent, width, shift[0], axes[0])
        return _average_narrow(along_y.T, exponent, width, shift[1], axes[1]).T
    kernels = [axis.gaussian(width, move) for axis, move in zip(axes, shift, strict=True)]
    if exponent == 0.0:
        mean: Array = kernels[0] @ first @ kernels[1].T
        return mean
    # θ relative to its largest value: no overflow, and positive sums keep their relative accuracy
    top = first.max() if exponent > 0 else first.min()
    theta = kernels[0] @ np.exp(exponent * (first - top)) @ kernels[1].T
    result: Array = top + np.log(theta) / exponent
    return result


def _average_narrow(u: Array, exponent: float, width: float, shift: float, axis: _Axis) -> Array:
    """Average θ along the first axis by Gauss–Hermite nodes, u being interpolated there."""
    nodes, weights = _hermite(NODES)
    samples = np.stack([axis.interpolate(u, shift + width * node) for node in nodes])
    if exponent == 0.0:
        mean: Array = np.tensordot(weights, samples, axes=1)
        return mean
    top = samples.max(axis=0) if exponent > 0 else samples.min(axis=0)
    excess: Any = np.tensordot(weights, np.expm1(exponent * (samples - top)), axes=1)
    result: Array = top + np.log1p(excess) / exponent
    return result
