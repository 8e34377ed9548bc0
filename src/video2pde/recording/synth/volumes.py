"""A second solver for known-truth recordings: finite volumes in the fixed frame of the picture.

    d⟨u⟩/dt = −(1/h) Σ faces (v u − m D ∂u/∂n) + ⟨sources⟩

It has nothing in common with the spectral solvers beyond the case that it is given: cell averages, face values and face
slopes of fourth order, advection by the drift and the flow as fluxes, Runge–Kutta of order 3. Films of it check what
was tuned on films of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.errors import InputError
from video2pde.recording.synth.laws import Case

Array = NDArray[np.float64]

REFINE = 2  # cells along a camera pixel
MARGIN = 16  # camera pixels beyond the picture on each side
STABLE = 0.16  # h²/(D dt) that Runge–Kutta of order 3 holds, with some room
COURANT = 0.4


def sample_volumes(
    case: Case,
    shape: tuple[int, int],
    pixel: float,
    times: Array,
    *,
    refine: int = REFINE,
    margin: int = MARGIN,
) -> Iterator[Array]:
    """Yield the true field as averages over camera pixels, shape ``shape``, the picture's centre in the middle.

    Parameters
    ----------
    pixel : size of a camera pixel, image units. times : s, ascending.
    refine : cells along a pixel. margin : pixels beyond the picture, where the plume must not reach.
    """
    solver = _Volumes(case, shape, pixel, refine, margin)
    now = 0.0
    for time in times:
        solver.advance(now, float(time))
        now = float(time)
        yield solver.picture()


class _Volumes:
    """Hold the cell averages and advance them."""

    def __init__(self, case: Case, shape: tuple[int, int], pixel: float, refine: int, margin: int) -> None:
        medium, law = case.medium, case.law
        if medium.fourth or medium.fractional < 2 or medium.memory < 1 or medium.immobile:
            raise InputError(
                "finite volumes solve no operator beyond the Laplacian and no memory; take the spectral solver"
            )
        if medium.turned:
            raise InputError("finite volumes solve anisotropy along the axes alone; take the spectral solver")
        if medium.bump:
            raise InputError("finite volumes solve coefficients that vary along x alone; take the spectral solver")
        self._case, self._refine, self._margin = case, refine, margin
        self._h = h = pixel / refine
        rows, columns = (refine * (n + 2 * margin) for n in shape)
        self._x_face, y_face = (np.linspace(-n * h / 2, n * h / 2, n + 1) for n in (columns, rows))
        self._x, self._y = ((faces[1:] + faces[:-1]) / 2 for faces in (self._x_face, y_face))
        steady = replace(medium.flow, pulse=None)
        self._vx = np.broadcast_to(
            steady.velocity(self._x_face[None, :], self._y[:, None], 0.0)[0], (rows, columns + 1)
        ).copy()
        self._vy = np.broadcast_to(
            steady.velocity(self._x[None, :], y_face[:, None], 0.0)[1], (rows + 1, columns)
        ).copy()
        self._values = self._average_plume()
        self._source = self._average(lambda y, x: medium.source.shape(x[None, :], y[:, None]))
        self._padded = np.empty((rows + 4, columns + 4))
        largest = law.laplacian * max(medium.largest_factor, 1 + abs(medium.anisotropy))
        drift = [abs(m) * (1 + abs(case.drift.swing)) for m in case.drift.mean]
        fastest = max(np.abs(self._vx).max() + drift[0], np.abs(self._vy).max() + drift[1], 1e-9)
        self._largest = min(STABLE * h**2 / max(largest, 1e-9), COURANT * h / fastest, 0.5)

    def _average_plume(self) -> Array:
        x0, y0 = (float(value) for value in self._case.position(0.0))
        blobs = self._case.plume.blobs()
        return self._case.background + self._average(lambda y, x: blobs(y - y0, x - x0))

    def _average(self, function: Callable[[Array, Array], Array]) -> Array:
        """Average a function of (y, x) over cells by Gauss–Legendre points, 2 × 2 in each."""
        offset = self._h / (2 * math.sqrt(3.0))
        total = np.zeros((len(self._y), len(self._x)))
        for dy in (-offset, offset):
            for dx in (-offset, offset):
                total += function(self._y + dy, self._x + dx) / 4
        return total

    def advance(self, now: float, time: float) -> None:
        """Integrate to ``time`` by third-order Runge–Kutta (Shu and Osher)."""
        if time <= now:
            return
        steps = math.ceil((time - now) / self._largest - 1e-9)
        step = (time - now) / steps
        for k in range(steps):
            t, u = now + k * step, self._values
            first = u + step * self._rate(u, t)
            second = 0.75 * u + 0.25 * (first + step * self._rate(first, t + step))
            self._values = (u + 2 * (second + step * self._rate(second, t + step / 2))) / 3

    def _rate(self, u: Array, time: float) -> Array:
        case, law, medium = self._case, self._case.law, self._case.medium
        p = self._padded
        p[2:-2, 2:-2] = u
        p[:2, 2:-2], p[-2:, 2:-2] = u[0], u[-1]
        p[:, :2], p[:, -2:] = p[:, 2:3], p[:, -3:-2]
        level = np.zeros(1)  # of y, along which nothing varies
        varied = tuple(medium.factor(x, level, time, case.duration) for x in (self._x_face, self._x))
        diffuses = medium.varies == "laplacian"
        ones = np.ones_like(varied[0]), np.ones_like(varied[1])
        on_face, on_cell = (law.laplacian * part for part in (varied if diffuses else ones))
        steep = law.grad_squared * (ones[1] if diffuses else varied[1])
        drift = (float(value) for value in case.drift.velocity(time))
        theta = medium.flow.strength(time)
        out = np.empty_like(u)
        _sum_fluxes(
            p,
            out,
            self._h,
            self._vx,
            self._vy,
            theta,
            *drift,
            on_face * (1 + medium.anisotropy),
            on_cell * (1 - medium.anisotropy),
        )
        _add_sources(
            p,
            out,
            self._h,
            law.constant,
            law.u + (0.0 if medium.conserved else theta * medium.flow.divergence),
            law.u_squared,
            steep,
            law.u_grad_squared,
        )
        if medium.source.rate:
            out += medium.source.strength(time) * self._source
        return out

    def picture(self) -> Array:
        """Average the cells of each camera pixel inside the picture."""
        n, m = self._refine, self._margin
        rows, columns = (length // n for length in self._values.shape)
        pixels = self._values.reshape(rows, n, columns, n).mean(axis=(1, 3))
        return np.asarray(pixels[m : rows - m, m : columns - m])


def _sum_fluxes_loop(
    p: Any, out: Any, h: float, vx: Any, vy: Any, theta: float, drift_x: float, drift_y: float, across: Any, along: Any
) -> None:
    """Take −div of v u − D ∇u; ``across``: D_x on x-faces, ``along``: D_y on cells, both by column."""
    rows, columns = out.shape
    for j in range(rows):
        r = j + 2
        for i in range(columns):
            c = i + 2
            a = p[r, c]
            left = (7 * (p[r, c - 1] + a) - (p[r, c - 2] + p[r, c + 1])) / 12
            right = (7 * (a + p[r, c + 1]) - (p[r, c - 1] + p[r, c + 2])) / 12
            up = (7 * (p[r - 1, c] + a) - (p[r - 2, c] + p[r + 1, c])) / 12
            down = (7 * (a + p[r + 1, c]) - (p[r - 1, c] + p[r + 2, c])) / 12
            s_left = (15 * (a - p[r, c - 1]) - (p[r, c + 1] - p[r, c - 2])) / (12 * h)
            s_right = (15 * (p[r, c + 1] - a) - (p[r, c + 2] - p[r, c - 1])) / (12 * h)
            s_up = (15 * (a - p[r - 1, c]) - (p[r + 1, c] - p[r - 2, c])) / (12 * h)
            s_down = (15 * (p[r + 1, c] - a) - (p[r + 2, c] - p[r - 1, c])) / (12 * h)
            flux = (drift_x + theta * vx[j, i + 1]) * right - (drift_x + theta * vx[j, i]) * left
            flux += (drift_y + theta * vy[j + 1, i]) * down - (drift_y + theta * vy[j, i]) * up
            flux -= across[i + 1] * s_right - across[i] * s_left + along[i] * (s_down - s_up)
            out[j, i] = -flux / h


def _add_sources_loop(
    p: Any, out: Any, h: float, constant: float, linear: float, squared: float, steep: Any, steep_u: float
) -> None:
    """Add c₀ + c₁u + c₂u² + (a + a₂u)|∇u|²: an average of squares is the average's square plus h²/12 of its slopes'."""
    rows, columns = out.shape
    third = h * h / 12
    for j in range(rows):
        r = j + 2
        for i in range(columns):
            c = i + 2
            a = p[r, c]
            u_x = (8 * (p[r, c + 1] - p[r, c - 1]) - (p[r, c + 2] - p[r, c - 2])) / (12 * h)
            u_y = (8 * (p[r + 1, c] - p[r - 1, c]) - (p[r + 2, c] - p[r - 2, c])) / (12 * h)
            u_xx = (p[r, c + 1] - 2 * a + p[r, c - 1]) / (h * h)
            u_yy = (p[r + 1, c] - 2 * a + p[r - 1, c]) / (h * h)
            u_xy = (p[r + 1, c + 1] - p[r + 1, c - 1] - p[r - 1, c + 1] + p[r - 1, c - 1]) / (4 * h * h)
            # slopes of cell averages are averages of slopes: a fourth-order difference is exact enough for them
            square = u_x * u_x + u_y * u_y
            square += third * (u_xx * u_xx + 2 * u_xy * u_xy + u_yy * u_yy)
            twist = third * (u_x * (2 * u_x * u_xx + 2 * u_y * u_xy) + u_y * (2 * u_x * u_xy + 2 * u_y * u_yy))
            out[j, i] += constant + linear * a + squared * (a * a + third * (u_x * u_x + u_y * u_y))
            out[j, i] += (steep[i] + steep_u * a) * square + steep_u * twist


_sum_fluxes = cast(Any, njit(fastmath=True)(_sum_fluxes_loop))
_add_sources = cast(Any, njit(fastmath=True)(_add_sources_loop))
