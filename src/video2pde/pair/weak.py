"""The weak system of two fields: b_u = −⟨∂_t φ, u⟩, b_w = −⟨∂_t φ, w⟩, one Θ for both.

The columns are those of ``discovery.weak``: each density is filtered in space once, the time integral is taken at the
sampled centres alone, and noise is taken off nonlinear densities, f − ½ Σ f_ij n_i n_j, i and j over both fields, so
that noise that the two have in common (colours share luma) counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.discovery.filtered import over_chunks
from video2pde.discovery.jets import FilmJets
from video2pde.discovery.testfunctions import choose_widths, draw_centres, interior, Widths
from video2pde.discovery.timekernels import time_kernels, TimeKernels
from video2pde.discovery.weak import filter_matrix, integrate_time, WeakSystem
from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.pair.fields import Pair
from video2pde.progress import Progress
from video2pde.settings import WeakSettings
from video2pde.terms.parse import U, U_X, U_Y, W, W_X, W_Y
from video2pde.terms.term import compile_expression, Order, Term

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
SYMBOLS = (U, U_X, U_Y, W, W_X, W_Y)
"""What a density of two fields may hold."""


@dataclass(frozen=True, eq=False)
class PairColumns:
    """Keep what any set of centres needs: the spatially filtered densities, (slot, y, x, t).

    Slots 0 and 1 hold u and w; ``slots`` gives each term's (−1: the constant 1). ``rows`` and ``columns`` are those
    of the picture that were filtered, the only ones that hold centres.
    """

    names: tuple[str, ...]
    slots: tuple[int, ...]
    filtered: Array32
    inside: NDArray[np.bool_]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    times: Array
    widths: Widths
    gradient_noise: tuple[float, float]

    @cached_property
    def kernels(self) -> TimeKernels:
        """The weights of the test functions on the frames around each centre."""
        return time_kernels(self.times, self.widths)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[WeakSystem, WeakSystem]:
        """Draw random centres and integrate there."""
        return self.sample(draw_centres(len(self.times), self.inside, self.widths, count, rng))

    def sample(self, centres: NDArray[np.int64]) -> tuple[WeakSystem, WeakSystem]:
        """Integrate over time at the given centres (t, y, x): the systems of u_t and of w_t, with the same Θ."""
        sums = self._integrate(self.filtered, centres)
        own = self._integrate(self.filtered[1:2], centres)
        ones = np.ones(len(centres))
        theta = np.stack([sums[:, slot + 1] if slot >= 0 else ones for slot in self.slots], axis=1)
        return (
            WeakSystem(self.names, theta, sums[:, 0], centres, self.widths),
            WeakSystem(self.names, theta, own[:, 0], centres, self.widths),
        )

    def _integrate(self, filtered: Array32, centres: NDArray[np.int64]) -> Array:
        in_time, rows = self.kernels, self.kernels.rows(centres[:, 0])
        sums = np.empty((len(centres), len(filtered) + 1))
        y, x = self.place(centres)
        integrate_time(filtered, centres[:, 0], y, x, rows, in_time.value, in_time.slope, sums)
        return sums

    def place(self, centres: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Say where the filtered frames hold the given centres (…, y, x)."""
        return np.searchsorted(self.rows, centres[:, -2]), np.searchsorted(self.columns, centres[:, -1])

    def series(self, centres: NDArray[np.int64], field: int, law: Mapping[str, float]) -> tuple[Array, Array]:
        """Return what a centre's place shows over time, (place, t): the field itself, and Σ c_j T_j, both filtered."""
        y, x = self.place(centres)
        total = np.zeros((len(centres), len(self.times)))
        for name, value in law.items():
            slot = self.slots[self.names.index(name)]
            if slot >= 0:
                total += value * self.filtered[slot][y, x]
        return self.filtered[field][y, x].astype(float), total


def pair_columns(
    pair: Pair,
    terms: Sequence[Term],
    settings: WeakSettings,
    total_frames: int | None = None,
    progress: Progress | None = None,
) -> PairColumns:
    """Filter the training window once for all terms of both laws.

    Parameters
    ----------
    pair : the training window alone.
    terms : every candidate.
    total_frames : frames of the whole recording, of which σ_t is a share; default: of this window.
    """
    frames, field = len(pair), pair.u
    widths = choose_widths(field.values.shape, total_frames or frames, settings, field.mask, field.uniform)
    inside = interior(field.grid.shape, widths, field.mask)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not len(rows) or frames <= 2 * widths.reach[0]:
        raise InputError("no test function fits into the training window; reduce weak.sigma_space or weak.sigma_time")
    films = [FilmJets(part, settings) for part in pair.fields]
    plan = _Plan(terms, widths, pair.grid, (rows, columns))
    filtered = np.empty((plan.slots, len(rows), len(columns), frames), np.float32)

    def assemble(window: slice) -> None:
        found = [film(window) for film in films]
        jets = tuple(part for jet, _ in found for part in jet)
        noise = [spread for _, spread in found]
        spread = None if noise[0] is None or noise[1] is None else (*noise[0], *noise[1])
        filtered[..., window] = plan.filter([part.values[window] for part in pair.fields], jets, spread)

    over_chunks(assemble, frames, progress)
    return PairColumns(
        names=tuple(term.name for term in terms),
        slots=plan.slot_of,
        filtered=filtered,
        inside=inside,
        rows=rows,
        columns=columns,
        times=field.times,
        widths=widths,
        gradient_noise=(films[0].noise, films[1].noise),
    )


class _Plan:
    """What must be filtered for a list of terms."""

    def __init__(
        self, terms: Sequence[Term], widths: Widths, grid: Grid, held: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> None:
        self.widths, self.grid, self.held = widths, grid, held
        self.parts: list[list[tuple[sympy.Expr, Order]]] = []
        slots = []
        for term in terms:
            split = [(part.density, part.derivative) for part in term.parts]
            plain = {U: 0, W: 1, sympy.Integer(1): -1} if [order for _, order in split] == [(0, 0)] else {}
            if split[0][0] in plain:
                slots.append(plain[split[0][0]])
            else:
                self.parts.append(split)
                slots.append(len(self.parts) + 1)
        self.slot_of = tuple(slots)
        self.slots = len(self.parts) + 2
        self._matrices: dict[tuple[int, int, bool], Array32] = {}

    def filter(
        self, frames: Sequence[Array32], jets: tuple[Array32, ...], spread: tuple[Array32, ...] | None
    ) -> Array32:
        """Filter a chunk of frames in space: (slot, y, x, t)."""
        held: dict[tuple[sympy.Expr, Order], Array32] = {}

        def filtered(density: sympy.Expr, order: Order) -> Array32:
            if (density, order) not in held:
                factor, linear = _linear(density)
                average = linear is None and self.grid.pitch == "cells"
                values = frames[linear] if linear is not None else evaluate(density, jets, spread)
                along = values @ self._matrix(1, order[0], average)
                held[density, order] = np.float32(factor) * np.matmul(self._matrix(0, order[1], average), along)
            return held[density, order]

        first = filtered(U, (0, 0))
        sums = np.zeros((self.slots, *first.shape), np.float32)
        sums[0], sums[1] = first, filtered(W, (0, 0))
        for slot, split in enumerate(self.parts, start=2):
            for density, order in split:
                sums[slot] += np.float32((-1) ** sum(order)) * filtered(density, order)
        return np.moveaxis(sums, 1, -1)

    def _matrix(self, axis: int, order: int, average: bool) -> Array32:
        key = (axis, order, average)
        if key not in self._matrices:
            self._matrices[key] = filter_matrix(axis, order, average, self.widths, self.grid, self.held)
        return self._matrices[key]


@lru_cache(maxsize=256)
def _linear(density: sympy.Expr) -> tuple[float, int | None]:
    """Return (k, n) where a density is k times field n, whose cell averages need no point values; else (1, None)."""
    for index, symbol in enumerate((U, W)):
        slope = sympy.diff(density, symbol)
        if slope.is_number and sympy.expand(density - slope * symbol) == 0:
            return float(slope), index
    return 1.0, None


def evaluate(density: sympy.Expr, jets: tuple[Array32, ...], spread: tuple[Array32, ...] | None) -> Array32:
    """Evaluate a density from point values of both fields, less what their noise n adds to it."""
    values = _compiled(density)(*jets) + np.zeros_like(jets[0])
    if spread is not None:
        for i, j, curvature in _curvatures(density):
            values += np.float32(-0.5 if i == j else -1.0) * curvature(*jets) * spread[i] * spread[j]
    return np.asarray(values, np.float32)


@lru_cache(maxsize=256)
def _compiled(density: sympy.Expr) -> Callable[..., Any]:
    return compile_expression(density, SYMBOLS)


@lru_cache(maxsize=256)
def _curvatures(density: sympy.Expr) -> list[tuple[int, int, Callable[..., Any]]]:
    """Compile the second derivatives of a density that are not zero."""
    pairs = [(i, j, sympy.diff(density, SYMBOLS[i], SYMBOLS[j])) for i in range(6) for j in range(i, 6)]
    return [(i, j, _compiled(second)) for i, j, second in pairs if second != 0]
