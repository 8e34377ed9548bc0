"""Identities of laws with a Cole–Hopf transform, and how far a simulated evolution is from them.

A law u_t + v(t)·∇u = (a + a₂u)|∇u|² + βΔu with β > 0 becomes linear, θ_t + v·∇θ = βΔθ, for θ = F(u) with
F′ = exp((au + a₂u²/2)/β): the exponential exp(au/β) where a₂ = 0, u itself where a = a₂ = 0. From it follow, on a
periodic domain, the maximum principle, the conserved ∫θ, the decay of ∫θ², the growth of ∫u, and the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid, simpson
from scipy.interpolate import CubicHermiteSpline

from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]
TABLE = 4097
"""Nodes of the table of F where it has no closed form."""
CLOSED = RolloutSettings(boundary="periodic", clip="off")
"""The simulator without edges and without clipping: where the identities hold."""


@dataclass(frozen=True)
class Transform:
    """Map u to θ = F(u), scaled so that F′ is at most 1 (or θ at most 1) between ``low`` and ``high``.

    Parameters
    ----------
    a, a2, beta : coefficients of |∇u|², u|∇u|² and Δu.
    low, high : range of u, which the maximum principle keeps.
    """

    a: float
    a2: float
    beta: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """How many e-folds F′ varies over the range of u; a·Δu/β where a₂ = 0."""
        exponents = self._exponent(np.linspace(self.low, self.high, 257))
        return float(np.ptp(exponents))

    def theta(self, u: Array) -> Array:
        """Return θ = F(u)."""
        if self.a2 == 0.0:
            return np.asarray(np.exp(self._exponent(u) - self._top)) if self.a else np.asarray(u, float)
        return np.asarray(self._table(u))

    def slope(self, u: Array) -> Array:
        """Return F′(u)."""
        weight = np.exp(self._exponent(u) - self._top)
        return np.asarray(weight * (self.a / self.beta) if self.a and self.a2 == 0.0 else weight)

    def inverse(self, theta: float) -> float:
        """Return u where F(u) = θ."""
        nodes = np.linspace(self.low, self.high, TABLE)
        values = self.theta(nodes)
        order = np.argsort(values)
        if self.a2 == 0.0 and self.a:
            return float((np.log(theta) + self._top) * self.beta / self.a)
        return float(np.interp(theta, values[order], nodes[order]))

    def limit(self, u0: Array) -> float:
        """Return the uniform level that u0 tends to on a periodic domain: F(u) becomes the mean of F(u0)."""
        return self.inverse(float(self.theta(u0).mean()))

    def _exponent(self, u: Array) -> Array:
        return np.asarray((self.a * u + 0.5 * self.a2 * u**2) / self.beta)

    @cached_property
    def _top(self) -> float:
        # θ relative to its largest value: exponentials neither overflow nor lose the largest part
        return float(self._exponent(np.linspace(self.low, self.high, 257)).max())

    @cached_property
    def _table(self) -> CubicHermiteSpline:
        room = 0.05 * (self.high - self.low)
        nodes = np.linspace(self.low - room, self.high + room, TABLE)
        points, weights = np.polynomial.legendre.leggauss(8)
        width = nodes[1] - nodes[0]
        inner = nodes[:-1, None] + 0.5 * width * (points + 1)
        pieces = 0.5 * width * (np.exp(self._exponent(inner) - self._top) @ weights)
        return CubicHermiteSpline(
            nodes, np.concatenate([[0.0], np.cumsum(pieces)]), np.exp(self._exponent(nodes) - self._top)
        )


@dataclass(frozen=True, eq=False)
class Evolution:
    """A simulated evolution on a periodic domain.

    Parameters
    ----------
    times : shape (t,), uniform, an odd number of them; seconds.
    values : shape (t, y, x).
    shift : shape (t, 2), ∫v dt along x and y since the first frame.
    """

    times: Array
    values: Array
    shift: Array
    grid: Grid

    def integral(self, density: Array) -> Array:
        """Integrate a density (t, y, x) over the domain, frame by frame."""
        return np.asarray(density.sum(axis=(1, 2)) * self.grid.dx * self.grid.dy)

    @cached_property
    def gradient_squared(self) -> Array:
        """|∇u|², (t, y, x), by Fourier series: its error is far below the simulator's."""
        ky, kx = _wavenumbers(self.grid)
        transformed = np.fft.rfft2(self.values)
        along_x = np.fft.irfft2(1j * kx * transformed, s=self.grid.shape)
        along_y = np.fft.irfft2(1j * ky * transformed, s=self.grid.shape)
        return np.asarray(along_x**2 + along_y**2)


def evolve(law: Model, u0: Array, times: Array, velocity: Array, grid: Grid) -> Evolution:
    """Simulate on a periodic domain without clipping; ``velocity`` (t, 2) is linear between the times."""
    rollout = simulate(law, u0, times, grid, velocity, CLOSED)
    if rollout.failed:
        raise ArithmeticError(rollout.reason)
    shift = cumulative_trapezoid(velocity, times, axis=0, initial=0.0)
    return Evolution(times, np.asarray(rollout.values, float), shift, grid)


def measure_identities(seen: Evolution, transform: Transform) -> dict[str, float]:
    """Return the relative residual of each identity on a simulated evolution.

    ``linear``: θ against the exact solution of its linear equation; ``mass``: ∫θ; ``energy``:
    ½ d/dt ∫θ² = −β ∫F′²|∇u|²; ``mean``: d/dt ∫u = ∫(a + a₂u)|∇u|²; ``maximum``: how far u leaves its first range.
    """
    u, tr = seen.values, transform
    theta, square = tr.theta(u), seen.gradient_squared
    exact = spread_linearly(theta[0], tr.beta, seen.times[-1] - seen.times[0], seen.shift[-1], seen.grid)
    mass = seen.integral(theta)
    energy = 0.5 * seen.integral(theta**2)
    dissipated = simpson(tr.beta * seen.integral(tr.slope(u) ** 2 * square), x=seen.times)
    content = seen.integral(u)
    grown = simpson(seen.integral((tr.a + tr.a2 * u) * square), x=seen.times)
    reach = float(np.ptp(u[0]))
    varied = float(np.abs(theta[0] - theta[0].mean()).mean()) * seen.grid.width * seen.grid.height
    return {
        "linear": float(np.linalg.norm(theta[-1] - exact) / np.linalg.norm(theta[0] - theta[0].mean())),
        "mass": float(abs(mass[-1] - mass[0]) / varied),
        "energy": float(abs(energy[-1] - energy[0] + dissipated) / abs(dissipated)),
        "mean": float(abs(content[-1] - content[0] - grown) / (reach * seen.grid.width * seen.grid.height)),
        "maximum": float(max(0.0, u.max() - u[0].max(), u[0].min() - u.min()) / reach),
    }


def measure_moving_frame(moving: Evolution, still: Evolution) -> float:
    """Compare an evolution moved back by ∫v dt with one without drift; relative to the range of u."""
    back = spread_linearly(moving.values[-1], 0.0, 0.0, -moving.shift[-1], moving.grid)
    return float(np.abs(back - still.values[-1]).max() / np.ptp(still.values[0]))


def spread_linearly(theta: Array, beta: float, duration: float, shift: Array, grid: Grid) -> Array:
    """Solve θ_t + v·∇θ = βΔθ exactly on the periodic domain, by Fourier series."""
    ky, kx = _wavenumbers(grid)
    factor = np.exp(-beta * duration * (kx**2 + ky**2) - 1j * (kx * shift[0] + ky * shift[1]))
    return np.asarray(np.fft.irfft2(factor * np.fft.rfft2(theta), s=grid.shape))


def periodic_plume(grid: Grid, low: float, high: float) -> Array:
    """Return an asymmetric, exactly periodic and smooth first frame between ``low`` and ``high``."""
    fine = 2 * np.pi * np.arange(256) / 256
    reference = _shape(fine[:, None], fine[None, :])
    bottom, top = reference.min(), reference.max()
    y, x = (2 * np.pi * axis / size for axis, size in ((grid.y, grid.height), (grid.x, grid.width)))
    return np.asarray(low + (high - low) * (_shape(y[:, None], x[None, :]) - bottom) / (top - bottom))


def _shape(y: Array, x: Array) -> Array:
    bump = np.exp(np.cos(x - 2.6) - 1 + 1.2 * (np.cos(y - 3.5) - 1))
    return np.asarray(bump + 0.12 * np.sin(x + 0.4) * np.cos(y - 0.9))


def _wavenumbers(grid: Grid) -> tuple[Array, Array]:
    ky = 2 * np.pi * np.fft.fftfreq(grid.ny, grid.dy)
    kx = 2 * np.pi * np.fft.rfftfreq(grid.nx, grid.dx)
    return np.asarray(ky[:, None], np.float64), np.asarray(kx[None, :], np.float64)
