"""An asymmetric manufactured field with every derivative and every cell average in closed form.

u(t, y, x) = c + Σ_m A_m(t) sin(k_m x + l_m y + p_m): a sum of plane waves, whose averages over a cell are the
point values times sinc(k Δx/2) sinc(l Δy/2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field, Grid

Array = NDArray[np.float64]
LENGTHS = (9.0, 7.0)
"""Width and height of the picture."""
DURATION = 3.0
BASE = 0.55
# amplitude, k, l, phase, rate: no two alike, so that no symmetry hides a swapped axis or a sign
WAVES = (
    (0.15, 0.83, 0.31, 0.4, -0.35),
    (0.12, -0.41, 0.97, 1.9, 0.22),
    (0.09, 1.27, -0.58, 3.1, -0.15),
    (0.05, 0.36, 1.44, 5.2, 0.40),
)


@dataclass(frozen=True)
class Waves:
    """Evaluate the field's derivatives; ``cell`` = (Δx, Δy) averages over cells."""

    cell: tuple[float, float] = (0.0, 0.0)

    def jet(self, order: tuple[int, int], t: Array, y: Array, x: Array, time_order: int = 0) -> Array:
        """Return ∂_t^m D^order u on the tensor grid (t, y, x)."""
        total = np.full((len(t), len(y), len(x)), BASE if order == (0, 0) and time_order == 0 else 0.0)
        for amplitude, k, l, phase, rate in WAVES:
            shape = np.sinc(k * self.cell[0] / 2 / np.pi) * np.sinc(l * self.cell[1] / 2 / np.pi)
            angle = k * x[None, :] + l * y[:, None] + phase + np.pi / 2 * sum(order)
            growth = amplitude * rate**time_order * np.exp(rate * t)
            total += growth[:, None, None] * (shape * k ** order[0] * l ** order[1] * np.sin(angle))
        return total

    def jets(self, orders: tuple[tuple[int, int], ...], t: Array, y: Array, x: Array) -> dict[tuple[int, int], Array]:
        """Return several derivatives, u always included."""
        return {order: self.jet(order, t, y, x) for order in {(0, 0), *orders}}


def velocity(t: Array) -> Array:
    """Return a drift (t, 2) that swings in time."""
    return np.stack([0.6 + 0.2 * np.sin(1.3 * t), -0.4 + 0.15 * np.cos(0.9 * t)], axis=1)


def sample_field(nx: int, frames: int, pitch: str = "cells") -> Field:
    """Sample the field on a grid with unequal spacings: cell averages, or points for ``nodes``."""
    ny = round(0.9 * nx)
    grid = Grid(ny, nx, LENGTHS[1], LENGTHS[0], "length", pitch)  # type: ignore[arg-type]
    t = np.linspace(0, DURATION, frames)
    waves = Waves((grid.dx, grid.dy) if pitch == "cells" else (0.0, 0.0))
    return Field(waves.jet((0, 0), t, grid.y, grid.x).astype(np.float32), t, grid)


def fitted_order(sizes: Array, errors: Array) -> float:
    """Fit the convergence order p of errors ~ size^−p."""
    return float(-np.polyfit(np.log(sizes), np.log(errors), 1)[0])
