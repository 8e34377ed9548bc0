"""Test functions in time, as weights on the frames around a centre, whether frames are evenly spaced or not.

Where they are not, φ is a function of the frame number τ(t), a smooth increasing function of time (PCHIP), so that
it is narrow where frames are dense and wide where they are rare. Between frames u is the cubic through the four
nearest ones, whose integrals against φ and −∂φ/∂t give the weights:

    ⟨φ, u⟩ = Σ_j u_j ∫ φ(τ(t)) L_j(t) dt,      −⟨∂_t φ, u⟩ = −Σ_j u_j ∫ φ'(τ(t)) τ'(t) L_j(t) dt.

Few frames are treated in the same way: no sum over frames has to stand for an integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from video2pde.discovery.testfunctions import kernel, profile, Widths

Array = NDArray[np.float64]

PIECES, POINTS = 3, 5
"""Pieces of each interval between frames, and Gauss points in each."""
NEIGHBOURS = 4
"""Frames that a cubic needs."""


@dataclass(frozen=True, eq=False)
class TimeKernels:
    """Weights on the frames c − half … c + half around each centre c: ``value`` for φ, ``slope`` for −∂_t φ.

    Shape (1, 2 half + 1) where all centres share them, else (t, 2 half + 1), zero where φ does not fit. φ has unit
    integral; slopes are per second.
    """

    value: Array
    slope: Array

    @property
    def half(self) -> int:
        return int(self.value.shape[1]) // 2

    def rows(self, centres: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of the tables that belongs to each centre (frame number)."""
        return np.zeros_like(centres) if len(self.value) == 1 else centres


def time_kernels(times: Array, widths: Widths) -> TimeKernels:
    """Sample φ and −∂_t φ around every frame that can hold a centre."""
    if not widths.integrated:
        dt = float((times[-1] - times[0]) / max(len(times) - 1, 1))
        value, slope = (kernel(widths.t, widths.support, order, dt) for order in (0, 1))
        return TimeKernels(value[None], -slope[None])
    points = _quadrature(times)
    frames, half = len(times), widths.reach[0]
    wide = half + 1  # a cubic reaches one frame beyond the interval that φ ends in
    value, slope = np.zeros((2, frames, 2 * wide + 1))
    for centre in range(half, frames - half):
        near = points.between(centre - wide, centre + wide)
        phi, falling = (profile(near.number - centre, widths.t, widths.support, order) for order in (0, 1))
        low, high = max(0, centre - wide - 1), min(frames, centre + wide + 2)
        densities = (near.weights * phi, -near.weights * falling * near.rate)
        on_frames = np.stack([near.sum(density, low, high) for density in densities])
        total = on_frames[0].sum()
        kept = slice(max(0, centre - wide), min(frames, centre + wide + 1))
        part = slice(kept.start - centre + wide, kept.stop - centre + wide)
        value[centre, part], slope[centre, part] = on_frames[:, kept.start - low : kept.stop - low] / total
    return TimeKernels(value, slope)


@dataclass(frozen=True, eq=False)
class _Points:
    """Gauss points in time, as many in each interval: their ``weights``, τ and dτ/dt there, (p,) each.

    ``stencil`` (p, 4): the frames whose cubic goes through a point, and ``lagrange`` (p, 4) what each adds there.
    """

    weights: Array
    number: Array
    rate: Array
    stencil: NDArray[np.int64]
    lagrange: Array

    def between(self, first: int, last: int) -> _Points:
        """Take the points between two frames: a test function is zero beyond."""
        part = slice(PIECES * POINTS * max(first, 0), PIECES * POINTS * max(last, 0))
        return _Points(self.weights[part], self.number[part], self.rate[part], self.stencil[part], self.lagrange[part])

    def sum(self, values: Array, low: int, high: int) -> Array:
        """Sum values at the points times L_j, for each frame j from ``low`` to ``high``."""
        spread = (values[:, None] * self.lagrange).ravel()
        return np.bincount((self.stencil - low).ravel(), spread, minlength=high - low).astype(float, copy=False)


def _quadrature(times: Array) -> _Points:
    """Place Gauss points in the intervals between frames."""
    nodes, node_weights = leggauss(POINTS)
    edges = np.concatenate([np.linspace(a, b, PIECES + 1)[:-1] for a, b in pairwise(times)])
    edges = np.append(edges, times[-1])
    half_widths = np.diff(edges) / 2
    points = ((edges[:-1] + edges[1:]) / 2)[:, None] + half_widths[:, None] * nodes
    weights = half_widths[:, None] * node_weights
    points, weights = points.ravel(), weights.ravel()
    counting = PchipInterpolator(times, np.arange(len(times), dtype=float))
    interval = np.clip(np.searchsorted(times, points) - 1, 0, len(times) - 2)
    size = min(NEIGHBOURS, len(times))
    first = np.clip(interval - 1, 0, len(times) - size)
    stencil = first[:, None] + np.arange(size)
    near = times[stencil]
    lagrange = np.empty(stencil.shape)
    for j in range(size):
        others = [m for m in range(size) if m != j]
        factors = [(points - near[:, m]) / (near[:, j] - near[:, m]) for m in others]
        lagrange[:, j] = np.prod(factors, axis=0)
    return _Points(weights, counting(points), counting(points, 1), stencil, lagrange)
