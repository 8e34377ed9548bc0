"""Exponential time differencing of fourth order: û_t = Lû + N(û, t) with a diagonal L."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
State = NDArray[np.complex128]
Slope = Callable[[State, float], State]


class Etdrk4:
    """Take steps of ETDRK4 (Cox and Matthews, with the contour weights of Kassam and Trefethen).

    Parameters
    ----------
    linear : L, real, the shape of the state. slope : N(û, t).
    """

    def __init__(self, linear: Array, slope: Slope) -> None:
        self._linear, self._slope = linear, slope
        self._tables = lru_cache(maxsize=4)(self._make_tables)

    def advance(self, state: State, time: float, step: float) -> State:
        """Take one step of ``step`` seconds from ``time``."""
        half, full, weight, first, middle, last = self._tables(round(step, 12))
        slope = self._slope(state, time)
        moved = half * state
        slope_a = self._slope(a := moved + weight * slope, time + step / 2)
        slope_b = self._slope(moved + weight * slope_a, time + step / 2)
        slope_c = self._slope(half * a + weight * (2 * slope_b - slope), time + step)
        return np.asarray(full * state + first * slope + middle * (slope_a + slope_b) + last * slope_c)

    def _make_tables(self, step: float) -> tuple[Array, ...]:
        """Average the exponential weights over a circle around hL: their formulas cancel near hL = 0."""
        scaled = step * self._linear
        total = [np.zeros_like(scaled) for _ in range(4)]
        points = 32
        for root in np.exp(1j * np.pi * (np.arange(points) + 0.5) / points):
            z = scaled + root
            e = np.exp(z)
            total[0] += ((np.exp(z / 2) - 1) / z).real
            total[1] += ((-4 - z + e * (4 - 3 * z + z**2)) / z**3).real
            total[2] += 2 * ((2 + z + e * (z - 2)) / z**3).real
            total[3] += ((-4 - 3 * z - z**2 + e * (4 - z)) / z**3).real
        return np.exp(scaled / 2), np.exp(scaled), *(step / points * part for part in total)
