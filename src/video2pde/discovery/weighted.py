"""Weak columns with weights in space and time, ⟨D^α φ_m, w_k(x, y) θ_l(t) f(u, u_x, u_y)⟩, for many weights at once.

Flows, maps of a coefficient, sources and light are all sums of D^α[w θ f] with known weights. The weights are
separable, w_ij = A_i(y) B_j(x), and so are the test functions: a column needs one product along x and one along y.

Time comes first. Centres lie on few frames (:func:`slice_centres`), and around each of them every pixel is projected
on polynomials P_p(t) that are orthonormal under φ(t):

    G_p(y, x) = Σ_t φ(t) P_p(t) f(t, y, x),     Σ_t φ θ f = Σ_p ⟨P_p, θ⟩_φ G_p + ⟨θ − Pθ, f − Pf⟩_φ.

What is left out is a product of two remainders, each of which is small over the width of a test function. So the sum
over frames is taken once, whatever the number of weights, and time functions cost nothing.

Example: 9 × 9 divergence-free modes v = (∂ψ/∂y, −∂ψ/∂x), ψ_ij = A_i(y) B_j(x), steady and with six splines in time::

    centres = slice_centres(columns.frames, columns.inside, columns.widths, 2000, rng)
    moments = TimeMoments(train, centres, columns.widths)
    along_y, along_x = Profiles.splines(train.grid.y, 9), Profiles.splines(train.grid.x, 9)
    steady = moments.columns(stream_parts(along_y, along_x))                       # (2000, 9, 9)
    varying = moments.columns(stream_parts(along_y, along_x), in_time)             # (2000, 6, 9, 9), in_time (6, t)
    law = columns.sample(centres)                                                  # Θ and b of the law, same centres

A weighted term is a tuple of :class:`WeightedPart`, whose sum it is: ``stream_parts``, ``velocity_parts``,
``diffusivity_parts``, ``anisotropy_parts`` and ``source_parts`` write the usual ones; any other is as short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.discovery.jets import FilmJets
from video2pde.discovery.testfunctions import kernel, Widths
from video2pde.discovery.timekernels import time_kernels
from video2pde.discovery.weak import evaluate_density, is_nonlinear
from video2pde.field import Field
from video2pde.flow.profiles import Profiles
from video2pde.parallel import map_threads
from video2pde.settings import WeakSettings
from video2pde.terms.parse import U, U_X, U_Y
from video2pde.terms.term import Order

__all__ = [
    "Profiles",
    "TimeMoments",
    "WeightedPart",
    "anisotropy_parts",
    "diffusivity_parts",
    "slice_centres",
    "source_parts",
    "stream_parts",
    "velocity_parts",
]

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]

DEGREE = 4
"""Degree up to which time functions and pictures are followed within the width of a test function."""
SLICE_SPACING = 0.6
"""Distance of the frames that hold centres, in σ_t: closer ones see nothing new."""
FRAMES_AT_ONCE = 48
LEAST_KEPT, SHARE_KEPT = 1 << 26, 0.5
"""Bytes of integrals in time that are kept in any case, and of a long window as a share of its own."""
SIDE_BY_SIDE = 4
"""Runs of so many frames that threads look at before they are added up: more would take memory."""
MOST_EMPTY = 2.0
"""Crossings of rows and columns for each centre up to which all of them are computed together."""


@dataclass(frozen=True, eq=False)
class WeightedPart:
    """One part of a weighted term: factor · D^α [A_i(y) B_j(x) f(u, u_x, u_y)], ``derivative`` = α along x, along y."""

    along_y: Profiles
    along_x: Profiles
    derivative: Order = (0, 0)
    density: sympy.Expr = U
    factor: float = 1.0


def velocity_parts(along_y: Profiles, along_x: Profiles, axis: int, factor: float = 1.0) -> tuple[WeightedPart, ...]:
    """Carry u along x (axis 0) or y (axis 1) with velocity w: −factor ∂(w u)."""
    return (WeightedPart(along_y, along_x, (1, 0) if axis == 0 else (0, 1), U, -factor),)


def stream_parts(along_y: Profiles, along_x: Profiles) -> tuple[WeightedPart, ...]:
    """Carry u with v = (∂ψ/∂y, −∂ψ/∂x), which has no divergence: −∇·(v u)."""
    return (
        WeightedPart(along_y.derivative, along_x, (1, 0), U, -1.0),
        WeightedPart(along_y, along_x.derivative, (0, 1), U, 1.0),
    )


def diffusivity_parts(along_y: Profiles, along_x: Profiles) -> tuple[WeightedPart, ...]:
    """Spread u with a diffusivity w(x, y) in divergence form: ∇·(w ∇u) = Δ(w u) − ∇·(u ∇w)."""
    return (
        WeightedPart(along_y, along_x, (2, 0)),
        WeightedPart(along_y, along_x, (0, 2)),
        WeightedPart(along_y, along_x.derivative, (1, 0), U, -1.0),
        WeightedPart(along_y.derivative, along_x, (0, 1), U, -1.0),
    )


def anisotropy_parts(along_y: Profiles, along_x: Profiles, kind: str) -> tuple[WeightedPart, ...]:
    """Spread u by a traceless tensor: ``cross``: ∂_x(w u_y) + ∂_y(w u_x); ``axes``: ∂_x(w u_x) − ∂_y(w u_y)."""
    if kind == "cross":
        return (
            WeightedPart(along_y, along_x, (1, 1), U, 2.0),
            WeightedPart(along_y.derivative, along_x, (1, 0), U, -1.0),
            WeightedPart(along_y, along_x.derivative, (0, 1), U, -1.0),
        )
    return (
        WeightedPart(along_y, along_x, (2, 0)),
        WeightedPart(along_y, along_x, (0, 2), U, -1.0),
        WeightedPart(along_y, along_x.derivative, (1, 0), U, -1.0),
        WeightedPart(along_y.derivative, along_x, (0, 1), U, 1.0),
    )


def source_parts(along_y: Profiles, along_x: Profiles, density: sympy.Expr | int = 1) -> tuple[WeightedPart, ...]:
    """Add w f(u) without a derivative: a source (f = 1), a map of growth (f = u), light (f = 1 − u)."""
    return (WeightedPart(along_y, along_x, (0, 0), sympy.sympify(density)),)


def slice_centres(
    frames: int, inside: NDArray[np.bool_], widths: Widths, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw centres (t, y, x) that lie on few, evenly spaced frames."""
    first, last = widths.reach[0], frames - widths.reach[0] - 1
    slices = np.unique(np.linspace(first, last, 1 + int(np.ceil((last - first) / (SLICE_SPACING * widths.t)))).round())
    rows, columns = np.nonzero(inside)
    chosen = rng.integers(len(rows), size=count)
    times = slices[rng.integers(len(slices), size=count)].astype(np.int64)
    return np.stack([times, rows[chosen], columns[chosen]], axis=1)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where centres lie: many share a row or a column of the picture, which is then integrated over once.

    ``where``: frame (of those that hold centres), row and column of each, (3, M). ``slices``: for each frame that
    holds centres, which ones, their rows, the columns in use, and their places there.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    where: NDArray[np.int64]

    @classmethod
    def of(cls, centres: NDArray[np.int64], slice_of: NDArray[np.int64]) -> _Places:
        rows, row_of = np.unique(centres[:, 1], return_inverse=True)
        columns, column_of = np.unique(centres[:, 2], return_inverse=True)
        return cls(rows, columns, np.stack([slice_of, row_of, column_of]))

    @property
    def regular(self) -> bool:
        """Whether most crossings of a row and a column hold a centre, in most frames: a lattice."""
        crossings = len(self.rows) * len(self.columns) * (int(self.where[0].max()) + 1)
        return bool(crossings <= MOST_EMPTY * self.where.shape[1])

    @cached_property
    def slices(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        slice_of, row_of, column_of = self.where
        slices = []
        for index in range(int(slice_of.max()) + 1):
            chosen = np.flatnonzero(slice_of == index)
            used, place = np.unique(column_of[chosen], return_inverse=True)
            slices.append((chosen, row_of[chosen], used, place))
        return slices


@lru_cache(maxsize=256)
def _addends(density: sympy.Expr) -> tuple[tuple[float, sympy.Expr], ...]:
    """Take a density apart, Σ factor × piece: a polynomial into products of powers, any other into its addends."""
    sums = sympy.expand(density) if density.is_polynomial(U, U_X, U_Y) else density
    return tuple((float(factor), piece) for piece, factor in sums.as_coefficients_dict().items())


class TimeMoments:
    """Take the time integrals of a window around the frames that hold centres, and return weighted columns there.

    Parameters
    ----------
    field : the training window.
    centres : (M, 3) indices (t, y, x), best from :func:`slice_centres`: the cost grows with the number of frames.
    widths : those of the law's columns (``WeakColumns.widths``).
    settings : smoothing of gradients and noise correction, as for the law's columns.
    jets : those of the window, where they are there already.
    """

    def __init__(
        self,
        field: Field,
        centres: NDArray[np.int64],
        widths: Widths,
        settings: WeakSettings | None = None,
        jets: FilmJets | None = None,
    ) -> None:
        self.field, self.centres, self.widths = field, centres, widths
        self.settings = settings or WeakSettings()
        self.slices, self._slice_of = np.unique(centres[:, 0], return_inverse=True)
        self._moments: dict[sympy.Expr, Array32] = {}
        self._degrees: dict[sympy.Expr, int] = {}
        self._most = max(LEAST_KEPT, SHARE_KEPT * field.values.nbytes)
        self._given = jets

    @cached_property
    def _places(self) -> _Places:
        return _Places.of(self.centres, self._slice_of)

    @cached_property
    def _basis(self) -> Array:
        """φ(t) P_p(t) around each slice: (slice, degree + 1, samples), ⟨P_p, P_q⟩_φ = δ_pq, P_0 = 1."""
        kernels = time_kernels(self.field.times, self.widths)
        phi = np.maximum(kernels.value[kernels.rows(self.slices)], 0.0)
        phi /= phi.sum(axis=1, keepdims=True)
        half = kernels.half
        frames = np.clip(self.slices[:, None] + np.arange(-half, half + 1), 0, len(self.field) - 1)
        tau = self.field.times[frames] - self.field.times[self.slices][:, None]
        tau = tau / np.maximum(np.abs(tau).max(axis=1, keepdims=True), 1e-300)
        degree = min(DEGREE, int((phi > 0).sum(axis=1).min()) - 1)
        bases = []
        for weight, at in zip(phi, tau, strict=True):
            orthonormal, triangle = np.linalg.qr(np.sqrt(weight)[:, None] * np.vander(at, degree + 1, increasing=True))
            bases.append((np.sqrt(weight)[:, None] * orthonormal * np.sign(np.diag(triangle))).T)
        return np.asarray(bases)

    def _windows(self) -> NDArray[np.int64]:
        half = self._basis.shape[2] // 2
        return np.asarray(self.slices[:, None] + np.arange(-half, half + 1)[None])

    def in_time(self, functions: Array) -> Array:
        """Project time functions (l, t) on the polynomials of every centre: (M, l, degree + 1)."""
        windows = np.clip(self._windows(), 0, len(self.field) - 1)
        by_slice = np.einsum("lst,spt->slp", np.atleast_2d(functions)[:, windows], self._basis)
        return np.asarray(by_slice[self._slice_of])

    def moments(self, density: sympy.Expr = U, degrees: int | None = None) -> Array32:
        """Return G_p of a density around every slice: (slice, p, y, x), all of them or the first ``degrees``.

        Suspects ask for many densities that are sums of few products, and the sum is taken of their integrals.
        """
        wanted = self._basis.shape[1] if degrees is None else degrees
        addends = _addends(density)
        kept = self._kept([piece for _, piece in addends], wanted)
        if addends == ((1.0, density),):
            return kept[0]
        return np.asarray(sum(np.float32(n) * each[:, :wanted] for (n, _), each in zip(addends, kept, strict=True)))

    def _kept(self, densities: Sequence[sympy.Expr], wanted: int) -> list[Array32]:
        """Integrate densities, or take what is kept of them: ``wanted`` degrees of each, or more."""
        # as many as were asked for before: fewer would be rounded otherwise
        degrees = {each: max(wanted, self._degrees.get(each, 0)) for each in densities}
        found = {each: kept for each in densities if (kept := self._moments.pop(each, None)) is not None}
        missing = [each for each in densities if each not in found or found[each].shape[1] < wanted]
        bent = [each for each in missing if is_nonlinear(each)]
        found |= {each: self._integrate_flat(each, degrees[each]) for each in missing if each not in bent}
        for count in {degrees[each] for each in bent}:
            together = [each for each in bent if degrees[each] == count]
            found |= dict(zip(together, self._integrate(together, count), strict=True))
        held = {each: found[each] for each in densities if each.free_symbols}
        self._moments |= held  # the last one used is the last one to go
        self._degrees |= {each: degrees[each] for each in held}
        while len(self._moments) > 1 and sum(each.nbytes for each in self._moments.values()) > self._most:
            del self._moments[next(iter(self._moments))]
        return [found[each] for each in densities]

    def _weights(self, degrees: int) -> Array32:
        """Return φ P_p of every slice on all frames: (slice · p, t)."""
        weights = np.zeros((len(self.slices), degrees, len(self.field)), np.float32)
        for index, window in enumerate(self._windows()):
            there = (window >= 0) & (window < len(self.field))
            weights[index, :, window[there]] = self._basis[index][:degrees, there].T
        return weights.reshape(-1, len(self.field))

    def _integrate_flat(self, density: sympy.Expr, degrees: int) -> Array32:
        """Integrate a multiple of u, or a constant."""
        weights, shape = self._weights(degrees), (len(self.slices), degrees, *self.field.grid.shape)
        if not density.free_symbols:
            sums = weights.sum(axis=1).reshape(*shape[:2], 1, 1)
            return np.broadcast_to(np.float32(density) * sums, shape)
        values = self.field.values.reshape(len(self.field), -1)
        return np.asarray((np.float32(density.coeff(U)) * (weights @ values)).reshape(shape))

    def _integrate(self, densities: Sequence[sympy.Expr], degrees: int) -> list[Array32]:
        """Integrate densities of point values, all of them while the jets of some frames are there."""
        weights, shape = self._weights(degrees), (len(self.slices), degrees, *self.field.grid.shape)
        totals = [np.zeros((len(weights), shape[2] * shape[3]), np.float32) for _ in densities]
        jets = self._jets

        def part(window: slice) -> list[Array32]:
            seen = jets(window)
            values = (evaluate_density(each, *seen).reshape(-1, shape[2] * shape[3]) for each in densities)
            return [np.asarray(weights[:, window] @ each) for each in values]

        starts = range(0, len(self.field), FRAMES_AT_ONCE)
        windows = [slice(start, min(start + FRAMES_AT_ONCE, len(self.field))) for start in starts]
        for begin in range(0, len(windows), SIDE_BY_SIDE):
            # added up in their order, whichever is ready first
            for found in map_threads(part, windows[begin : begin + SIDE_BY_SIDE]):
                for total, each in zip(totals, found, strict=True):
                    total += each
        return [total.reshape(shape) for total in totals]

    @cached_property
    def _jets(self) -> FilmJets:
        return self._given or FilmJets(self.field, self.settings).keep()

    def columns(self, parts: Sequence[WeightedPart], in_time: Array | None = None) -> Array:
        """Return the weak columns of a weighted term at the centres.

        Steady: (M, i, j) for w_ij = A_i(y) B_j(x); with ``in_time`` (l, t): (M, l, i, j).
        """
        degrees = 1 if in_time is None else self._basis.shape[1]
        total: Array = sum(part.factor * (-1) ** sum(part.derivative) * self._weigh(part, degrees) for part in parts)
        if in_time is None:
            # ⟨P_0, 1⟩ is 1 and all others vanish
            return total[:, 0]
        return np.asarray(np.einsum("mlp,mpij->mlij", self.in_time(in_time), total))

    def _weigh(self, part: WeightedPart, degrees: int) -> Array:
        """Integrate D^α φ · A_i B_j · G_p over the picture: (M, p, i, j)."""
        moments = self.moments(part.density, degrees)
        places = self._places
        along_y = self._tests(0, part.derivative[1], part.along_y, part.density, places.rows)
        along_x = self._tests(1, part.derivative[0], part.along_x, part.density, places.columns)
        (ny, i, _), (nx, j, samples) = along_y.shape, along_x.shape
        if places.regular:
            across = moments[:, :degrees].astype(float) @ along_x.reshape(nx * j, samples).T
            crossings = (along_y.reshape(ny * i, -1) @ across).reshape(len(moments), degrees, ny, i, nx, j)
            frame, row, column = places.where
            return np.asarray(crossings[frame, :, row, :, column])
        result = np.empty((len(self.centres), degrees, i, j))
        for index, (chosen, row, used, place) in enumerate(places.slices):
            across = moments[index, :degrees].astype(float) @ along_x[used].reshape(-1, samples).T
            across = across.reshape(degrees, -1, len(used), j).transpose(2, 0, 1, 3)
            result[chosen] = along_y[row][:, None] @ across[place]
        return result

    def _tests(
        self, axis: int, order: int, profiles: Profiles, density: sympy.Expr, centres: NDArray[np.int64]
    ) -> Array:
        """Sample φ⁽ⁿ⁾(s − c) A_i(s) along an axis: (centre, function, sample)."""
        grid = self.field.grid
        sigma, spacing, samples = ((self.widths.y, grid.dy, grid.ny), (self.widths.x, grid.dx, grid.nx))[axis]

        def placed(n: int) -> Array:
            weights = kernel(sigma, self.widths.support, n, spacing)
            table = np.zeros(2 * samples + 1)
            half = len(weights) // 2
            table[samples - half : samples + half + 1] = weights
            return np.asarray(table[np.arange(samples)[None] - centres[:, None] + samples][:, None])

        tests = placed(order) * profiles.values()[None]
        if grid.pitch == "cells":
            # the law's columns see φ averaged over a cell; sums over cell averages of u do that to φ·w as a whole,
            # so what belongs to w is taken off, while point values of a density need φ's average added
            if density.free_symbols and not is_nonlinear(density):
                tests -= (
                    spacing**2 / 24 * (2 * placed(order + 1) * profiles.values(1) + placed(order) * profiles.values(2))
                )
            else:
                tests += spacing**2 / 24 * placed(order + 2) * profiles.values()
        return np.asarray(tests)
