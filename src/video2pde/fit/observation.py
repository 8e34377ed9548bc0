"""What a camera that does not show u itself does to a law: response curves and uneven light, as weak columns.

A film that shows u + ε g(x, y, u) instead of u, where u_t = L(u), follows to first order in ε

    u_t = L(u) + ε [g_u L(u) − L′(u) g],      L′(u) g = Σ_j c_j D^α [f_u g + f_{u_x} g_x + f_{u_y} g_y].

For g = h(u) this is a response curve; for g = w(x, y) h(u) uneven light. The brackets are sums of D^α [w f] again, so
that they have weak columns like any other term. They are derived here from the terms' definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import comb

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.discovery.weighted import Profiles, WeightedPart
from video2pde.fit.antiderivative import antiderivative
from video2pde.fit.view import View
from video2pde.terms.parse import U, U_X, U_Y
from video2pde.terms.term import Order, Part, Term

Array = NDArray[np.float64]

LIGHT = {"dark": U - 1, "bright": U, "absorbance": sympy.Integer(1)}
"""How u answers to more light, h(u), by observable: u = 1 − I falls by 1 − u, u = I rises by u, a logarithm shifts."""
HIGHEST = 2
"""Derivative outside a density up to which columns are made; higher ones are left out of the bracket."""


def response_columns(view: View, law: Mapping[str, float], curves: Sequence[sympy.Expr]) -> Array:
    """Return the columns of response curves h(u), (M, curves)."""
    columns = []
    for curve in curves:
        parts = [
            value * view.once(("response", curve, name), partial(bent_columns, view, view.terms[name], curve))[:, 0]
            for name, value in law.items()
        ]
        columns.append(np.sum(parts, axis=0))
    return np.stack(columns, axis=1)


def bent_columns(view: View, term: Term, curve: sympy.Expr, in_time: Array | None = None) -> Array:
    """Return a term's part of the bracket for g = h(u), (M, 1), or for g = h(u) θ_l(t), (M, l)."""
    grid = view.film.grid
    flat = Profiles.powers(grid.y, 0), Profiles.powers(grid.x, 0)
    total = np.zeros((len(view.centres), 1 if in_time is None else len(in_time)))
    for part in _ordinary(term):
        for density, order in _bent(part, curve):
            total += _column(view, flat, order, density, in_time).reshape(total.shape)
    return total


def _ordinary(term: Term) -> list[Part]:
    return [part for part in term.parts if sum(part.derivative) <= HIGHEST]


@cache
def _bent(part: Part, curve: sympy.Expr) -> list[tuple[sympy.Expr, Order]]:
    """Return h′ D^α f − D^α [f_u h + h′ (f_{u_x} u_x + f_{u_y} u_y)] as densities and derivatives."""
    f, order = part.density, part.derivative
    slope = sympy.diff(curve, U)
    pulled = f.diff(U) * curve + slope * (f.diff(U_X) * U_X + f.diff(U_Y) * U_Y)
    pieces = [(-pulled, order)]
    if sum(order) == 0:
        return [(slope * f - pulled, order)]
    # h′(u) ∂F(u) = ∂H(u), H = ∫h′F′du; a second derivative leaves −h″F′ u_i u_j behind
    pieces.append((antiderivative(slope * f.diff(U)), order))
    if sum(order) == 2:
        first, second = (U_X, U_X) if order == (2, 0) else (U_Y, U_Y) if order == (0, 2) else (U_X, U_Y)
        pieces.append((-sympy.diff(curve, U, 2) * f.diff(U) * first * second, (0, 0)))
    return pieces


def light_columns(view: View, law: Mapping[str, float], along_y: Profiles, along_x: Profiles, observable: str) -> Array:
    """Return the columns of light that is uneven by w_ij = A_i(y) B_j(x), (M, i·j)."""
    pair = along_y, along_x
    total = view.once(("light", observable), partial(_drifting_light, view, pair, observable)).copy()
    for name, value in law.items():
        total += value * view.once(
            ("light", observable, name), partial(_light_column, view, view.terms[name], pair, observable)
        )
    return total.reshape(len(total), -1)


def _light_column(view: View, term: Term, pair: tuple[Profiles, Profiles], observable: str) -> Array:
    along_y, along_x = pair
    answer = LIGHT[observable]
    slope = sympy.diff(answer, U)
    total = np.zeros((len(view.centres), along_y.count, along_x.count))
    for part in _ordinary(term):
        f, order = part.density, part.derivative
        pulled = f.diff(U) * answer + slope * (f.diff(U_X) * U_X + f.diff(U_Y) * U_Y)
        total -= _column(view, pair, order, pulled)
        total -= _column(view, (along_y, along_x.derivative), order, f.diff(U_X) * answer)
        total -= _column(view, (along_y.derivative, along_x), order, f.diff(U_Y) * answer)
        total += _weight_outside(view, pair, order, slope * f)
    return total


def _drifting_light(view: View, pair: tuple[Profiles, Profiles], observable: str) -> Array:
    """The drift carries u past the light: −v·∇u becomes −v·∇u + h v·∇w."""
    along_y, along_x = pair
    total = np.zeros((len(view.centres), along_y.count, along_x.count))
    for axis, sloped in enumerate(((along_y, along_x.derivative), (along_y.derivative, along_x))):
        total += _column(view, sloped, (0, 0), LIGHT[observable], view.velocity[None, :, axis])[:, 0]
    return total


def _weight_outside(view: View, pair: tuple[Profiles, Profiles], order: Order, density: sympy.Expr) -> Array:
    """Return w D^α f as Σ_β (−1)^|β| (α over β) D^{α−β} [(D^β w) f]."""
    total = np.zeros((len(view.centres), pair[0].count, pair[1].count))
    for i in range(order[0] + 1):
        for j in range(order[1] + 1):
            along_y, along_x = pair
            for _ in range(i):
                along_x = along_x.derivative
            for _ in range(j):
                along_y = along_y.derivative
            factor = (-1) ** (i + j) * comb(order[0], i) * comb(order[1], j)
            total += factor * _column(view, (along_y, along_x), (order[0] - i, order[1] - j), density)
    return total


def _column(
    view: View, pair: tuple[Profiles, Profiles], order: Order, density: sympy.Expr, in_time: Array | None = None
) -> Array:
    """Return the weak columns of D^α [w f], (M, i, j), or of D^α [w θ_l f], (M, l, i, j).

    A constant in f has a column of its own.
    """
    functions = () if in_time is None else (len(in_time),)
    total = np.zeros((len(view.centres), *functions, pair[0].count, pair[1].count))
    for piece in _pieces(density):
        total += view.moments.columns((WeightedPart(*pair, order, piece),), in_time)
    return total


@cache
def _pieces(density: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Return the constant in a density, and the rest; those that are there."""
    both = sympy.expand(density).as_independent(U, U_X, U_Y, as_Add=True)
    return tuple(piece for piece in both if piece != 0)
