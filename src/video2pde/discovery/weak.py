"""The weak system Θξ ≈ b: every term tested against Gaussian functions φ_m around random centres.

    b_m = −⟨∂_t φ_m, u⟩,      Θ_ml = Σ_k (−1)^|α_k| ⟨D^α_k φ_m, f_k(u, u_x, u_y)⟩

Test functions are separable. Each frame is filtered in x and y by two small matrix products, for the rows
and columns that can hold a centre; the filtered frames are kept with time as the last axis, and the time
integral is taken at the sampled centres alone. All libraries share the columns, and a new set of centres
costs only the time integral. Where the filtered frames would take too much memory they are made in parts, one after
the other, as often as they are asked for (``filtered``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.discovery.filtered import Filtered, most_kept
from video2pde.discovery.jets import FilmJets, Jets
from video2pde.discovery.testfunctions import choose_widths, draw_centres, interior, kernel, Widths
from video2pde.discovery.timekernels import time_kernels, TimeKernels
from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.flow import Flow
from video2pde.progress import Progress
from video2pde.settings import WeakSettings
from video2pde.terms.parse import U, U_X, U_Y
from video2pde.terms.term import compile_density, Order, Term

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Rows = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows and columns of the picture."""
Choose = Callable[[Widths, NDArray[np.bool_]], NDArray[np.int64]]
"""Chooses centres (t, y, x) from the widths of the test functions and from where one may lie."""


@dataclass(frozen=True, eq=False)
class WeakSystem:
    """Hold Θ (M, terms) and b (M,) in physical units, and where the test functions lie.

    ``centres`` are (t, y, x) sample indices of the training window.
    """

    names: tuple[str, ...]
    theta: Array
    b: Array
    centres: NDArray[np.int64]
    widths: Widths

    def columns(self, names: Sequence[str]) -> Array:
        """Take the columns of the named terms."""
        return self.theta[:, [self.names.index(name) for name in names]]

    @cached_property
    def overlap(self) -> Array32:
        """How much two test functions share, exp(−d²/4) with their distance d in widths: (M, M)."""
        scaled = (self.centres / np.array([self.widths.t, self.widths.y, self.widths.x])).astype(np.float32)
        square = np.sum(scaled**2, axis=1)
        distance = square[:, None] + square[None, :] - 2 * scaled @ scaled.T
        return np.asarray(np.exp(-0.25 * np.maximum(distance, 0)), np.float32)


@dataclass(frozen=True, eq=False)
class WeakColumns:
    """Keep what any set of centres needs: the spatially filtered densities, (slot, y, x, t), as a whole or in parts.

    Slot 0 holds ⟨φ, u⟩ in space, from which b comes; ``slots`` gives each term's (−1: the constant 1).
    ``rows`` and ``columns`` of the picture are those that were filtered, the only ones that hold centres;
    ``centres``: those that were chosen beforehand, where they were.
    ``gradient_noise`` is the share of the gradient's energy that is noise (measured from the film),
    ``gradient_sigma`` the smoothing used for gradients.
    """

    names: tuple[str, ...]
    slots: tuple[int, ...]
    filtered: Filtered
    inside: NDArray[np.bool_]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    times: Array
    widths: Widths
    gradient_sigma: float
    gradient_noise: float
    centres: NDArray[np.int64] | None = None

    @property
    def frames(self) -> int:
        return len(self.times)

    @cached_property
    def kernels(self) -> TimeKernels:
        """The weights of the test functions on the frames around each centre."""
        return time_kernels(self.times, self.widths)

    def sample(self, centres: NDArray[np.int64]) -> WeakSystem:
        """Integrate over time at the given centres (t, y, x)."""
        in_time, frames = self.kernels, np.ascontiguousarray(centres[:, 0])
        kernel_of, (y, x) = in_time.rows(frames), self.place(centres)
        sums = np.empty((len(centres), self.filtered.shape[0] + 1))
        # time's sign: ⟨φ, u_t⟩ = −⟨∂_t φ, u⟩
        for slots, rows, values in self.filtered.parts():
            here = np.flatnonzero((y >= rows.start) & (y < rows.stop))
            found = np.empty((len(here), len(values) + 1))
            at = (frames[here], y[here] - rows.start, x[here], kernel_of[here])
            integrate_time(values, *at, in_time.value, in_time.slope, found)
            sums[here, slots.start + 1 : slots.stop + 1] = found[:, 1:]
            if slots.start == 0:
                sums[here, 0] = found[:, 0]
        ones = np.ones(len(centres))
        theta = np.stack([sums[:, slot + 1] if slot >= 0 else ones for slot in self.slots], axis=1)
        return WeakSystem(self.names, theta, sums[:, 0], centres, self.widths)

    def place(self, centres: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Say where the filtered frames hold the given centres (…, y, x)."""
        return np.searchsorted(self.rows, centres[:, -2]), np.searchsorted(self.columns, centres[:, -1])

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem:
        """Draw random centres and integrate there."""
        return next(iter(self.draw_each(count, [rng])))

    def draw_each(self, count: int, rngs: Sequence[np.random.Generator]) -> Iterator[WeakSystem]:
        """Draw centres from each generator and integrate there; at all of them together, if frames are made anew."""
        drawn = [draw_centres(self.frames, self.inside, self.widths, count, rng) for rng in rngs]
        if self.filtered.values is not None:
            yield from map(self.sample, drawn)
            return
        whole = self.sample(np.concatenate(drawn))
        ends = np.cumsum([len(centres) for centres in drawn])[:-1]
        for part in zip(np.split(whole.theta, ends), np.split(whole.b, ends), drawn, strict=True):
            yield WeakSystem(self.names, *part, self.widths)


def weak_columns(
    field: Field,
    velocity: Array,
    terms: Sequence[Term],
    settings: WeakSettings | None = None,
    *,
    total_frames: int | None = None,
    moments: Array | None = None,
    progress: Progress | None = None,
    given: Flow | None = None,
    choose: Choose | None = None,
    jets: FilmJets | None = None,
) -> WeakColumns:
    """Filter the training window once for all terms.

    Parameters
    ----------
    field : the training window alone.
    velocity : (t, 2), drift v_x, v_y of its frames, length units per second.
    terms : every term of every library.
    total_frames : frames of the whole recording, of which σ_t is a share; default: of this field.
    moments : (terms, t, 2), how much each term itself moves the centroid (``discovery.moments``). The true
        drift is the centroid's velocity less Σ c_j m_j, so each column becomes T_j + m_j·∇u.
    given : a velocity that varies in space, which the drift's columns then carry u with, −v_x u_x and −v_y u_y.
    choose : chooses the only centres that will be asked for; their rows and columns alone are filtered.
    jets : those of the training window, where they are there already.
    """
    settings = settings or WeakSettings()
    if velocity.shape != (len(field), 2):
        raise InputError(f"the drift velocity has shape {velocity.shape}, not ({len(field)}, 2)")
    widths = choose_widths(field.values.shape, total_frames or len(field), settings, field.mask, field.uniform)
    inside = interior(field.grid.shape, widths, field.mask)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows) or len(field) <= 2 * widths.reach[0]:
        raise InputError("no test function fits into the training window; reduce weak.sigma_space or weak.sigma_time")
    centres = None if choose is None else choose(widths, inside)
    if centres is not None:
        rows, columns = np.unique(centres[:, 1]), np.unique(centres[:, 2])
    film = jets or FilmJets(field, settings)
    plan = _Plan(terms, widths, field.grid, (rows, columns))

    def assemble(window: slice, slots: slice) -> Array32:
        jets, spread = film(window) if plan.nonlinear(slots) else (None, None)
        pushed = None if moments is None else moments[:, window]
        carried = velocity[window] if given is None else given.velocity(field.times[window], field.grid)
        return plan.filter(field.values[window], jets, spread, carried, pushed, slots)

    shape = (plan.slots, len(rows), len(columns), len(field))
    filtered = Filtered(shape, assemble, most_kept(field.values.nbytes), progress)
    names = tuple(term.name for term in terms)
    return WeakColumns(
        names=names,
        slots=plan.slot_of,
        filtered=filtered,
        inside=inside,
        rows=rows,
        columns=columns,
        times=field.times,
        widths=widths,
        gradient_sigma=film.sigma,
        gradient_noise=film.noise,
        centres=centres,
    )


class _Plan:
    """What must be filtered for a list of terms: densities, split into a factor of time and the rest."""

    def __init__(self, terms: Sequence[Term], widths: Widths, grid: Grid, held: Rows) -> None:
        self.widths, self.grid, self.held = widths, grid, held
        self.parts: list[list[tuple[sympy.Expr, sympy.Expr, Order]]] = []
        slot_of = []
        for term in terms:
            split = [(*part.density.as_independent(U, U_X, U_Y, as_Add=False), part.derivative) for part in term.parts]
            if split == [(1, U, (0, 0))]:
                slot_of.append(0)
            elif split == [(1, 1, (0, 0))]:
                slot_of.append(-1)
            else:
                self.parts.append(split)
                slot_of.append(len(self.parts))
        self.slot_of = tuple(slot_of)
        self.slots = len(self.parts) + 1
        self._matrices: dict[tuple[int, int, bool], Array32] = {}

    def nonlinear(self, slots: slice) -> bool:
        """Tell whether some of the slots need point values."""
        return any(is_nonlinear(density) for _, split in self._wanted(slots) for _, density, _ in split)

    def _wanted(self, slots: slice) -> list[tuple[int, list[tuple[sympy.Expr, sympy.Expr, Order]]]]:
        return [(n, split) for n, split in enumerate(self.parts, start=1) if slots.start <= n < slots.stop]

    def filter(
        self,
        frames: Array32,
        jets: Jets | None,
        spread: Jets | None,
        velocity: Array,
        moments: Array | None,
        slots: slice,
    ) -> Array32:
        """Filter a chunk of frames in space, for some of the slots: (slot, y, x, t)."""
        along_x: dict[tuple[sympy.Expr, int], Array32] = {}
        in_plane: dict[tuple[sympy.Expr, Order], Array32] = {}

        def filtered(density: sympy.Expr, order: Order) -> Array32:
            if (density, order) not in in_plane:
                if (density, order[0]) not in along_x:
                    values = evaluate_density(density, jets, spread) if is_nonlinear(density) else frames
                    if not density.free_symbols:
                        values = np.full_like(frames, float(density))
                    along_x[density, order[0]] = values @ self._matrix(1, order[0], density)
                in_plane[density, order] = np.matmul(self._matrix(0, order[1], density), along_x[density, order[0]])
            return in_plane[density, order]

        v_x, v_y = np.moveaxis(velocity if velocity.ndim == 4 else velocity[:, :, None, None], 1, 0)
        begin = slots.start
        sums = np.zeros((slots.stop - begin, len(frames), *(len(held) for held in self.held)), np.float32)
        if begin == 0:
            sums[0] = filtered(U, (0, 0))
        for slot, split in self._wanted(slots):
            for factor, density, order in split:
                scale = compile_density(factor)(0.0, 0.0, 0.0, v_x, v_y) * (-1) ** sum(order)
                if velocity.ndim == 4 and factor.free_symbols:
                    sums[slot - begin] += self._carry(np.asarray(scale, np.float32), frames, order)
                else:
                    sums[slot - begin] += np.asarray(scale, np.float32) * filtered(density, order)
        if moments is not None:
            for slot, pushed in zip(self.slot_of, moments.astype(np.float32), strict=True):
                for axis, order in enumerate(((1, 0), (0, 1))):
                    if slot > 0 and begin <= slot < slots.stop and pushed[:, axis].any():
                        sums[slot - begin] -= pushed[:, axis, None, None] * filtered(U, order)
        return np.moveaxis(sums, 1, -1)

    def _carry(self, scale: Array32, frames: Array32, order: Order) -> Array32:
        """Filter −v ∂u = −∂(v u) + u ∂v of a velocity field, ``scale`` = v on the grid (t, y, x)."""
        axis, spacing = (2, self.grid.dx) if order == (1, 0) else (1, self.grid.dy)
        steeper = np.gradient(scale, spacing, axis=axis).astype(np.float32) * frames

        def filtered(values: Array32, n: Order) -> Array32:
            return np.asarray(np.matmul(self._matrix(0, n[1], U), values @ self._matrix(1, n[0], U)))

        return filtered(scale * frames, order) + filtered(steeper, (0, 0))

    def _matrix(self, axis: int, order: int, density: sympy.Expr) -> Array32:
        """Return the banded filter matrix: (nx, columns) for x (axis 1), (rows, ny) for y (axis 0)."""
        # sums over cell averages of u are integrals against φ averaged over a cell; densities are point values
        average = is_nonlinear(density) and self.grid.pitch == "cells"
        key = (axis, order, average)
        if key not in self._matrices:
            self._matrices[key] = filter_matrix(axis, order, average, self.widths, self.grid, self.held)
        return self._matrices[key]


def filter_matrix(axis: int, order: int, average: bool, widths: Widths, grid: Grid, held: Rows) -> Array32:
    """Write the derivative of a test function around each held row (axis 0) or column (axis 1) as a banded matrix.

    It is (rows, ny) along y and (nx, columns) along x. ``average``: φ averaged over a cell, for densities of point
    values beside sums over cell averages.
    """
    sigma, spacing = ((widths.y, grid.dy), (widths.x, grid.dx))[axis]
    weights = kernel(sigma, widths.support, order, spacing)
    if average:
        weights = weights + spacing**2 / 24 * kernel(sigma, widths.support, order + 2, spacing)
    half = len(weights) // 2
    matrix = np.zeros((len(held[axis]), grid.shape[axis]), np.float32)
    for row, centre in enumerate(held[axis]):
        matrix[row, centre - half : centre + half + 1] = weights
    # ∂_s φ(s − c) sampled at s: the kernel as it stands; its sign is carried by (−1)^|α|
    return np.ascontiguousarray(matrix.T) if axis == 1 else matrix


def evaluate_density(density: sympy.Expr, jets: Jets | None, spread: Jets | None) -> Array32:
    """Evaluate a density from point jets, less what the noise n adds to it: f − ½ Σ_ij f_ij n_i n_j."""
    assert jets is not None
    values = compile_density(density)(*jets, 0.0, 0.0) + np.zeros_like(jets[0])
    if spread is not None:
        for i, j, curvature in _curvatures(density):
            weight = np.float32(-0.5 if i == j else -1.0)
            values += weight * curvature(*jets, 0.0, 0.0) * spread[i] * spread[j]
    return np.asarray(values, np.float32)


@lru_cache(maxsize=256)
def _curvatures(density: sympy.Expr) -> list[tuple[int, int, Callable[..., Any]]]:
    """Compile the second derivatives of a density that are not zero."""
    symbols = (U, U_X, U_Y)
    pairs = [(i, j, sympy.diff(density, symbols[i], symbols[j])) for i in range(3) for j in range(i, 3)]
    return [(i, j, compile_density(second)) for i, j, second in pairs if second != 0]


@lru_cache(maxsize=256)
def is_nonlinear(density: sympy.Expr) -> bool:
    """Tell whether a density needs point values: anything but a multiple of u, or a constant."""
    return bool(density.free_symbols) and (density.has(U_X, U_Y) or sympy.diff(density, U, 2) != 0)


_jit: Callable[..., Any] = njit(nogil=True, fastmath=True)


@_jit
def integrate_time(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    filtered, frames_of, ys, xs, rows, value, slope, sums
):
    half = value.shape[1] // 2
    frames = filtered.shape[3]
    for m in range(len(frames_of)):
        t, y, x = frames_of[m] - half, ys[m], xs[m]
        row, first, last = rows[m], max(0, -t), min(value.shape[1], frames - t)
        total = 0.0
        for k in range(first, last):
            total += slope[row, k] * filtered[0, y, x, t + k]
        sums[m, 0] = total
        for c in range(len(filtered)):
            total = 0.0
            for k in range(first, last):
                total += value[row, k] * filtered[c, y, x, t + k]
            sums[m, c + 1] = total
