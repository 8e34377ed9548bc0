"""The columns of effects in the weak system: flows, light, sources, coefficients that vary, memory.

None of them is in the model; ``suspects`` says what each means. Columns are in physical units, so that their amplitudes
mean something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import minimize

from video2pde.discovery.weighted import (
    anisotropy_parts,
    Profiles,
    source_parts,
    stream_parts,
    velocity_parts,
    WeightedPart,
)
from video2pde.fit.law import LawFit, RANK
from video2pde.fit.observation import bent_columns, LIGHT, light_columns, response_columns
from video2pde.fit.view import spline_basis, STAYS, View
from video2pde.rollout.model import Model
from video2pde.terms.parse import U

Array = NDArray[np.float64]

GAIN_KNOTS, SLOW_KNOTS = 6, 3
"""Splines in time of light and offset, and of a coefficient."""
FLOW_MODES, SOURCE_MODES, MAP_MODES = 5, 6, 3
"""Splines along each axis of a stream function, of sources, of a map of a coefficient."""
PLACES, SOURCE_WIDTHS, PLACING = 24, (0.01, 0.03, 0.08), 60
"""Places along each axis and widths (as shares of the picture) that are tried for one source, and steps to the best."""
SINGLE = 2
"""Derivative up to which a column of the weak system, in single precision, is as good as any."""
MEMORIES = (0.08, 0.3)
"""Times over which the past is remembered, as shares of the window."""


@dataclass(frozen=True)
class Context:
    """What columns are made from: the view, the law in it, and what the pixels show (``recording.observable``)."""

    view: View
    law: LawFit
    observable: str = "dark"

    @property
    def times(self) -> Array:
        return self.view.film.times

    @property
    def model(self) -> Model:
        """The law with its weak coefficients."""
        names, values = self.law.names, self.law.coefficients
        return Model(tuple(self.view.terms[name] for name in names), tuple(values[name] for name in names))

    def flat(self) -> tuple[Profiles, Profiles]:
        grid = self.view.film.grid
        return Profiles.powers(grid.y, 0), Profiles.powers(grid.x, 0)

    def linear(self) -> tuple[Profiles, Profiles]:
        """y and x, from the picture's centre."""
        grid = self.view.film.grid
        return tuple(Profiles.powers(s, 1, float(s.mean())).take(1) for s in (grid.y, grid.x))  # type: ignore[return-value]

    def splines(self, count: int) -> tuple[Profiles, Profiles]:
        grid = self.view.film.grid
        return Profiles.splines(grid.y, count), Profiles.splines(grid.x, count)

    def columns(self, parts: tuple[WeightedPart, ...], in_time: Array | None = None) -> Array:
        found = self.view.moments.columns(parts, in_time)
        return found.reshape(len(found), -1)


Columns = Callable[[Context], Array]


def contrasts(count: int) -> Array:
    """Return (count, count − 1): the directions other than all alike, so that a constant is not among them."""
    full, _ = np.linalg.qr(np.concatenate([np.ones((count, 1)), np.eye(count)[:, 1:]], axis=1))
    return np.asarray(full[:, 1:])


def uneven_drift(c: Context) -> Array:
    flat = c.flat()
    knots = 2 * max(c.view.drift.shape[1] // 2, GAIN_KNOTS)
    basis = spline_basis(c.times, knots)
    return np.concatenate([c.columns(velocity_parts(*flat, axis), basis) for axis in (0, 1)], axis=1)


def rotation(c: Context) -> Array:
    (one_y, one_x), (y, x) = c.flat(), c.linear()
    return c.columns((WeightedPart(y, one_x, (1, 0), U, 1.0), WeightedPart(one_y, x, (0, 1), U, -1.0)))


def strain(c: Context) -> Array:
    (one_y, one_x), (y, x) = c.flat(), c.linear()
    stretch = c.columns((WeightedPart(one_y, x, (1, 0), U, -1.0), WeightedPart(y, one_x, (0, 1), U, 1.0)))
    shear = c.columns((WeightedPart(y, one_x, (1, 0), U, -1.0), WeightedPart(one_y, x, (0, 1), U, -1.0)))
    return np.concatenate([stretch, shear], axis=1)


def thinning(c: Context) -> Array:
    """A surface that spreads, on which u is an amount: −∇·(v u)."""
    (one_y, one_x), (y, x) = c.flat(), c.linear()
    return c.columns((WeightedPart(one_y, x, (1, 0), U, -0.5), WeightedPart(y, one_x, (0, 1), U, -0.5)))


def spreading(c: Context) -> Array:
    """A surface that spreads, fed from below, so that u is carried and not thinned: −v·∇u."""
    return thinning(c) + c.columns(source_parts(*c.flat(), U))


def flow(c: Context) -> Array:
    return c.columns(stream_parts(*c.splines(FLOW_MODES)))


def changing_flow(c: Context) -> Array:
    return c.columns(stream_parts(*c.splines(FLOW_MODES)), spline_basis(c.times, SLOW_KNOTS))


def _light(c: Context, in_time: Array) -> Array:
    """Light times a function of time: u changes by h(u) ġ/g."""
    flat, answer = c.flat(), LIGHT[c.observable]
    constant = float(answer.subs(U, 0))
    slope = float(answer.diff(U))
    total = np.zeros((len(c.view.centres), len(in_time)))
    if constant:
        total += constant * c.columns(source_parts(*flat, 1), in_time)
    if slope:
        total += slope * c.columns(source_parts(*flat, U), in_time)
    return total


def _lasting_light(c: Context, in_time: Array) -> Array:
    """The same, with what the light that has changed since the first frame does to the law from then on."""
    since = cumulative_trapezoid(in_time, c.times, axis=1, initial=0.0)
    answer = LIGHT[c.observable]
    total = _light(c, in_time)
    for name, value in c.law.coefficients.items():
        total += value * c.view.once(
            ("lasting light", c.observable, name, len(in_time)),
            partial(bent_columns, c.view, c.view.terms[name], answer, since),
        )
    return total


def gain(c: Context) -> Array:
    return _lasting_light(c, spline_basis(c.times, GAIN_KNOTS))


def steady_gain(c: Context) -> Array:
    return _lasting_light(c, np.ones((1, len(c.times))))


def flicker(c: Context) -> Array:
    """Light that differs from time to time at will: one column for each time of the lattice."""
    steady = _light(c, np.ones((1, len(c.times))))
    moments, place = np.unique(c.view.centres[:, 0], return_inverse=True)
    return np.asarray(steady * (place.reshape(-1)[:, None] == np.arange(len(moments))[None]))


def offset(c: Context) -> Array:
    return c.columns(source_parts(*c.flat(), 1), spline_basis(c.times, GAIN_KNOTS))


def uneven_light(c: Context) -> Array:
    grid = c.view.film.grid
    along = Profiles.splines(grid.y, MAP_MODES, 2), Profiles.splines(grid.x, MAP_MODES, 2)
    columns = light_columns(c.view, c.law.coefficients, *along, c.observable)
    # the splines add up to one: where the plume is, the light is called even, so that coefficients keep their meaning
    level = c.view.film.values.mean(axis=0)
    plume = np.abs(level - np.median(level))
    mean = np.einsum("yx,iy,jx->ij", plume, along[0].values(), along[1].values()).ravel() / max(plume.sum(), 1e-300)
    return np.asarray((columns - mean * columns.sum(axis=1, keepdims=True)) @ contrasts(MAP_MODES**2))


def response(c: Context) -> Array:
    return response_columns(c.view, c.law.coefficients, (U * (1 - U), U * (1 - U) * (1 - 2 * U)))


def source(c: Context) -> Array:
    return c.columns(source_parts(*c.splines(SOURCE_MODES), 1))


def local_source(c: Context) -> Array:
    """A round source, of the place and width with which it takes most away, that changes slowly."""
    return _best_source(c, SLOW_KNOTS)


def passing_source(c: Context) -> Array:
    """The same, free in time: it may begin or end in between."""
    return _best_source(c, GAIN_KNOTS)


def _best_source(c: Context, knots: int) -> Array:
    in_time = c.view.moments.in_time(spline_basis(c.times, knots))[:, :, 0]

    def columns(place: Array) -> Array:
        return _bump(c, place[:1], place[1:2], float(np.exp(place[2]))) * in_time

    def kept(place: Array) -> float:
        beside = c.law.without(columns(place))
        told = beside.T @ c.law.residual
        return -float(told @ np.linalg.pinv(beside.T @ beside, rcond=RANK, hermitian=True) @ told)

    best = minimize(kept, _likeliest_place(c), method="Nelder-Mead", options={"maxfev": PLACING})
    return columns(best.x)


def _likeliest_place(c: Context) -> Array:
    """Return y, x and the logarithm of the width of the steady source that takes most away, from a lattice of them."""
    grid = c.view.film.grid
    across = [np.linspace(s[0], s[-1], PLACES) for s in (grid.y, grid.x)]
    rows, columns = (each.ravel() for each in np.meshgrid(*across, indexing="ij"))
    found = []
    for share in SOURCE_WIDTHS:
        width = share * min(grid.width, grid.height)
        steady = c.law.without(c.view.once(("places", share), partial(_bump, c, rows, columns, width)))
        size = np.sum(steady**2, axis=0)
        taken = (steady.T @ c.law.residual) ** 2 / np.where(size > 0, size, np.inf)
        best = int(np.argmax(taken))
        found.append((float(taken[best]), np.array([rows[best], columns[best], np.log(width)])))
    return max(found, key=lambda each: each[0])[1]


def _bump(c: Context, rows: Array, columns: Array, width: float) -> Array:
    """Return the columns of steady sources exp(−r²/2w²) around places, (M, places): a Gaussian of a Gaussian."""
    grid, widths, centres = c.view.film.grid, c.view.widths, c.view.centres
    total = np.ones((len(centres), len(rows)))
    axes = ((rows, grid.y, centres[:, 1], widths.y * grid.dy), (columns, grid.x, centres[:, 2], widths.x * grid.dx))
    for places, samples, index, sigma in axes:
        variance = width**2 + sigma**2
        apart = samples[:, None] - places[None]
        total *= (width / np.sqrt(variance) * np.exp(-0.5 * apart**2 / variance))[index]
    return total


def changing_source(c: Context) -> Array:
    return c.columns(source_parts(*c.splines(SOURCE_MODES - 2), 1), spline_basis(c.times, SLOW_KNOTS))


def in_space(c: Context) -> Array:
    """Every coefficient of the law as a map; a derivative outside acts on the map, too (divergence form)."""

    def column(name: str) -> Array:
        return _mapped(c, name, *c.splines(MAP_MODES)) @ contrasts(MAP_MODES**2)

    return np.concatenate([c.view.once(("in space", n), partial(column, n)) for n in c.law.names], axis=1)


def along_space(c: Context) -> Array:
    """Every coefficient of the law rising evenly along x and y."""
    (one_y, one_x), (y, x) = c.flat(), c.linear()

    def column(name: str) -> Array:
        return np.concatenate([_mapped(c, name, one_y, x), _mapped(c, name, y, one_x)], axis=1)

    return np.concatenate([c.view.once(("along space", n), partial(column, n)) for n in c.law.names], axis=1)


def _mapped(c: Context, name: str, along_y: Profiles, along_x: Profiles) -> Array:
    weighted = []
    for part in c.view.terms[name].parts:
        weighted.append(WeightedPart(along_y, along_x, part.derivative, part.density))
        if part.derivative == (2, 0):
            weighted.append(WeightedPart(along_y, along_x.derivative, (1, 0), part.density, -1.0))
        elif part.derivative == (0, 2):
            weighted.append(WeightedPart(along_y.derivative, along_x, (0, 1), part.density, -1.0))
    return c.columns(tuple(weighted))


def in_time(c: Context) -> Array:
    return np.concatenate([c.view.once(("in time", n), partial(_term_in_time, c, n)) for n in c.law.names], axis=1)


def _term_in_time(c: Context, name: str) -> Array:
    basis = contrasts(SLOW_KNOTS).T @ spline_basis(c.times, SLOW_KNOTS)
    parts = tuple(WeightedPart(*c.flat(), part.derivative, part.density) for part in c.view.terms[name].parts)
    return c.columns(parts, basis)


def anisotropy(c: Context) -> Array:
    return np.concatenate([c.columns(anisotropy_parts(*c.flat(), kind)) for kind in ("axes", "cross")], axis=1)


def memory(c: Context) -> Array:
    """What the law did in the past goes on: ∫ exp(−(t − s)/τ) L(u)(s) ds, for two τ.

    Less as much of the law itself as that is on average, so that coefficients keep their meaning: the mean rate.
    """
    rate = c.view.law_series(c.law.coefficients)
    value, _ = c.view.kernels
    half = len(value) // 2
    columns = []
    for share in MEMORIES:
        keep = np.exp(-1 / (share * rate.shape[1]))
        past = np.zeros_like(rate)
        for k in range(1, rate.shape[1]):
            past[:, k] = keep * past[:, k - 1] + (1 - keep) * rate[:, k - 1]
        past -= rate * np.mean(1 - keep ** np.arange(rate.shape[1]))
        windows = c.view.centres[:, :1] + np.arange(-half, half + 1)[None]
        columns.append(past[c.view.place[:, None], windows] @ value)
    return np.stack(columns, axis=1)


def immobile(c: Context) -> Array:
    """A part that stays where it was at first: law and drift act on the rest alone.

    With s the first frames and w = (u − ms)/(1 − m) the rest, u_t = (1 − m) L(w): what that adds to L(u).
    """
    total = sum(
        value * c.view.once(("rest", name), partial(_of_rest, c, name)) for name, value in c.law.coefficients.items()
    )
    return np.asarray(total + c.view.once(("rest", "drift"), partial(_drift_of_rest, c)))


def _of_rest(c: Context, name: str) -> Array:
    parts = tuple(WeightedPart(*c.flat(), part.derivative, part.density) for part in c.view.terms[name].parts)
    return _by_rest(c, parts, None)


def _drift_of_rest(c: Context) -> Array:
    columns = [_by_rest(c, velocity_parts(*c.flat(), axis), c.view.velocity[None, :, axis]) for axis in (0, 1)]
    return np.asarray(columns[0] + columns[1])


def _by_rest(c: Context, parts: tuple[WeightedPart, ...], in_time: Array | None) -> Array:
    """Return [(1 − m) T(w) − T(u)]/m of a term, (M, 1)."""
    left = (1 - STAYS) * c.view.rest.columns(parts, in_time)
    return np.asarray((left.reshape(len(left), -1) - c.columns(parts, in_time)) / STAYS)


def missing(*names: str) -> Columns:
    def columns(c: Context) -> Array:
        absent = [name for name in names if name not in c.law.names]
        found = [c.view.once(("missing", name), partial(_missing_term, c, name)) for name in absent]
        return np.concatenate(found, axis=1) if found else np.zeros((len(c.view.centres), 0))

    return columns


def _missing_term(c: Context, name: str) -> Array:
    """Return a term's column; of a fourth derivative in double precision: in nm it is too small for single."""
    term = c.view.terms[name]
    if max(sum(part.derivative) for part in term.parts) <= SINGLE:
        return c.view.columns([name])
    return c.columns(tuple(WeightedPart(*c.flat(), part.derivative, part.density) for part in term.parts))
