"""The radial network û(x, y, t): one hidden layer of Gaussian neurons on a lattice, linear in its weights.

    û = m + s Σ_kji G_kji φ_i(x) φ_j(y) φ_k(t)

The neurons stand still, so that a derivative of û is one of the three factors' alone, and a whole picture costs two
matrix products. Along an axis the Gaussians are replaced by combinations of them, smooth ones first, that are
orthonormal and have orthogonal second derivatives: the same network, with weights that hardly disturb each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import NDArray
from scipy.linalg import eigh

from video2pde.terms.term import Order

Array = NDArray[np.float64]
MARGIN = 3
"""Neurons beyond either end: with fewer, û bends badly at the ends of the axis, above all û_t."""
WIDTH = 1.2
"""Standard deviation of a neuron, in spacings."""
FLOOR = 1e-6
"""Share of the mean that is added to the overlap of neurons, which are almost dependent."""
QUADRATURE = 12
"""Points to a spacing at which overlaps are summed."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Hold the neurons along one axis.

    Parameters
    ----------
    low, high : the ends of what they have to describe. spacing : of the neurons; both in units of the axis.
    mixture : (neurons, neurons), columns make the orthonormal combinations.
    """

    low: float
    high: float
    spacing: float
    mixture: Array

    @classmethod
    def over(cls, low: float, high: float, spacing: float) -> Axis:
        """Place neurons from ``low`` to ``high`` at most ``spacing`` apart, and MARGIN more at either end."""
        intervals = max(1, int(np.ceil((high - low) / spacing - 1e-9)))
        bare = cls(low, high, (high - low) / intervals, np.eye(intervals + 1 + 2 * MARGIN))
        overlap, stiffness = bare.gram(0), bare.gram(2)
        overlap += FLOOR * np.trace(overlap) / len(overlap) * np.eye(len(overlap))
        return cls(low, high, bare.spacing, eigh(stiffness, overlap)[1])

    def __len__(self) -> int:
        return len(self.mixture)

    def evaluate(self, at: Array, order: int) -> Array:
        """Evaluate the ``order``-th derivatives of all combinations: the shape of ``at`` and one more axis."""
        centres = self.low + self.spacing * np.arange(-MARGIN, len(self) - MARGIN)
        width = WIDTH * self.spacing
        q = (at[..., None] - centres) / width
        # the derivatives of a Gaussian are Hermite polynomials times itself
        factor = hermite_e.hermeval(q, [0.0] * order + [1.0]) * (-1.0 / width) ** order
        values: Array = (factor * np.exp(-0.5 * q**2)) @ self.mixture
        return values

    def gram(self, order: int) -> Array:
        """Return the overlaps of the ``order``-th derivatives, averaged over the axis."""
        intervals = len(self) - 1 - 2 * MARGIN
        values = self.evaluate(np.linspace(self.low, self.high, QUADRATURE * intervals + 1), order)
        overlaps: Array = values.T @ values / len(values)
        return overlaps


class Features(NamedTuple):
    """Hold the neurons at the window's pixels, on the device.

    ``x`` and ``y`` map an order of derivative to (t, nx, neurons) and (t, ny, neurons): in coordinates that move along
    every frame has its own. ``t`` is (2, t, neurons), value and derivative.
    """

    x: dict[int, jax.Array]
    y: dict[int, jax.Array]
    t: jax.Array


@dataclass(frozen=True, eq=False)
class Lattice:
    """Hold the neurons along x, y (length) and t (seconds)."""

    x: Axis
    y: Axis
    t: Axis

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the weights G: (t, y, x)."""
        return len(self.t), len(self.y), len(self.x)

    def features(self, x: Array, y: Array, t: Array, orders: Sequence[Order]) -> Features:
        """Evaluate the neurons at columns ``x`` (t, nx), rows ``y`` (t, ny) and times ``t`` (t,)."""
        along_x, along_y = {order[0] for order in orders}, {order[1] for order in orders}
        return Features(
            {p: jnp.asarray(self.x.evaluate(x, p), jnp.float32) for p in sorted(along_x)},
            {q: jnp.asarray(self.y.evaluate(y, q), jnp.float32) for q in sorted(along_y)},
            jnp.asarray(np.stack([self.t.evaluate(t, 0), self.t.evaluate(t, 1)]), jnp.float32),
        )

    def roughness(self, orders: Sequence[Order]) -> dict[Order | None, Array]:
        """Return the mean square of each combination's derivatives, by order in x and y; None: of that in t."""
        x, y = ({p: np.diagonal(axis.gram(p)) for p in {n for o in orders for n in o}} for axis in (self.x, self.y))
        t, t_slope = np.diagonal(self.t.gram(0)), np.diagonal(self.t.gram(1))
        found: dict[Order | None, Array] = {
            (p, q): t[:, None, None] * y[q][None, :, None] * x[p][None, None, :] for p, q in orders
        }
        found[None] = t_slope[:, None, None] * y[0][None, :, None] * x[0][None, None, :]
        return found

    def relative_roughness(self) -> Array:
        """Return the mean square of second derivatives of each combination, summed over axes of largest value 1."""
        t, y, x = (np.diagonal(axis.gram(2)) / axis.gram(2).max() for axis in (self.t, self.y, self.x))
        summed: Array = t[:, None, None] + y[None, :, None] + x[None, None, :]
        return summed


def expand(weights: jax.Array, features: Features, orders: Sequence[Order]) -> tuple[dict[Order, jax.Array], jax.Array]:
    """Return the sums Σ G φφφ by order of derivative in x and y, and that of the derivative in t: (t, ny, nx) each."""
    now, change = jnp.einsum("dtk,kyx->dtyx", features.t, weights)
    rows = {q: features.y[q] @ now for q in sorted({order[1] for order in orders})}
    jets = {(p, q): rows[q] @ features.x[p].mT for p, q in orders}
    return jets, features.y[0] @ change @ features.x[0].mT
