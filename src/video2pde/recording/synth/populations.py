"""Recoveries of two populations, of which the camera sees the sum: exact in Fourier modes of a large square.

    mobile:   m_t = D Δm − k_on m + k_off b        bound, or slow:   b_t = D₂ Δb + k_on m − k_off b

A bleach takes the same share of both everywhere: just after it they are mixed as before. Each mode follows the
exponential of its own 2 × 2 matrix. The square is several times as large as the picture: what is around it counts as it
does around a microscope's field of view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Provenance

Array = NDArray[np.float64]

AROUND = 3
"""Sides of the picture that the square has."""
FINER = 2
"""Points of the solver's grid for each cell, along each axis."""


@dataclass(frozen=True)
class Bleached:
    """Describe a recovery: two populations, where it was bleached, and the light.

    Parameters
    ----------
    fast, slow : D and D₂, length²/s. bind, release : k_on and k_off, 1/s.
    share : of the fast population before the bleach; None: that of the equilibrium, k_off/(k_on + k_off).
    radius, depth : of the main spot, as a share of the picture's side, and in u; a smaller one lies beside it.
    fading : rate at which the light dims everything, 1/s. rim : how soft the spots' rims are, as a share of the radius.
    """

    fast: float
    slow: float = 0.0
    bind: float = 0.0
    release: float = 0.0
    share: float | None = None
    radius: float = 0.15
    depth: float = 0.7
    fading: float = 0.0
    rim: float = 0.15

    @property
    def fast_share(self) -> float:
        """The share of the fast population before the bleach."""
        if self.share is not None:
            return self.share
        if self.bind + self.release <= 0:
            raise InputError("populations that do not exchange have no equilibrium; give the share of the fast one")
        return self.release / (self.bind + self.release)


def recovery_field(case: Bleached, grid: Grid, times: Array, noise: float = 0.0, seed: int = 0) -> Field:
    """Return what a camera sees of a recovery, 1 being the level before the bleach, averaged over cells.

    ``noise``: standard deviation of white noise in each cell and frame.
    """
    ny, nx = (AROUND * FINER * n for n in grid.shape)
    height, width = AROUND * grid.height, AROUND * grid.width
    y, x = ((np.arange(n) + 0.5) / n * side - side / 2 for n, side in ((ny, height), (nx, width)))
    start = fft.rfft2(_spots(case, y[:, None], x[None, :], grid))
    ky, kx = (2 * np.pi * fft.fftfreq(ny, height / ny))[:, None], (2 * np.pi * fft.rfftfreq(nx, width / nx))[None, :]
    # each point of the finer grid stands for the average over its part of a cell
    start = start * np.sinc(ky * height / ny / (2 * np.pi)) * np.sinc(kx * width / nx / (2 * np.pi))
    square = ky**2 + kx**2
    values = np.empty((len(times), *grid.shape), np.float32)
    rng = np.random.default_rng(seed)
    for index, time in enumerate(np.asarray(times, float) - float(times[0])):
        seen = fft.irfft2(start * _visible(case, square, float(time)), s=(ny, nx))
        picture = (1 - seen) * math.exp(-case.fading * float(time))
        inner = picture[FINER * grid.ny : 2 * FINER * grid.ny, FINER * grid.nx : 2 * FINER * grid.nx]
        cells = inner.reshape(grid.ny, FINER, grid.nx, FINER).mean(axis=(1, 3))
        values[index] = cells + noise * rng.standard_normal(grid.shape)
    return Field(values, np.asarray(times, float), grid, provenance=Provenance(path="known truth, two populations"))


def _spots(case: Bleached, y: Array, x: Array, grid: Grid) -> Array:
    """Return what a bleach takes away: a round spot with a soft rim, and a smaller one to a side."""
    side = min(grid.height, grid.width)
    rim = case.rim * case.radius * side

    def spot(cy: float, cx: float, radius: float) -> Array:
        distance = np.hypot(y - cy * side, x - cx * side)
        return np.asarray(0.5 * (1 - np.tanh((distance - radius * side) / rim)))

    return case.depth * (spot(0.02, -0.05, case.radius) + 0.6 * spot(-0.12, 0.22, 0.5 * case.radius))


def _visible(case: Bleached, square: Array, time: float) -> Array:
    """Return what a unit of each mode, shared out as before the bleach, has become in the sum of both populations."""
    share = case.fast_share
    a, d = -case.fast * square - case.bind, -case.slow * square - case.release
    b, c = case.release, case.bind
    # exp(tA) = e^{t tr/2} (cosh(tr) + (A − tr/2) sinh(tr)/r), r² = ((a − d)/2)² + bc
    half, root = (a + d) / 2, np.sqrt(((a - d) / 2) ** 2 + b * c)
    grow, fall = np.exp(time * (half + root)), np.exp(time * (half - root))
    even = (grow + fall) / 2
    odd = np.where(root > 1e-12, (grow - fall) / (2 * np.where(root > 1e-12, root, 1.0)), time * even)
    first = even * share + odd * ((a - half) * share + b * (1 - share))
    second = even * (1 - share) + odd * (c * share + (d - half) * (1 - share))
    return np.asarray(first + second)
