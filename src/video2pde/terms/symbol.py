"""What a term does to small disturbances of a uniform state, derived from its definition.

Around u = level a term acts as Σ_α s_α D^α with s_α = ∂T/∂u_α, and on a wave exp(i k·x) as the number
λ(k) = Σ s_α (ik)^α. Its derivatives of highest even order decide about the shortest waves: −Re λ > 0 damps them, as
diffusion does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import cos, pi, sin

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.terms.parse import U
from video2pde.terms.term import jet_symbol, Order, Term

Array = NDArray[np.float64]
DIRECTIONS: tuple[tuple[float, float], ...] = ((1.0, 0.0), (0.0, 1.0), (0.5**0.5, 0.5**0.5), (0.5**0.5, -(0.5**0.5)))
"""Unit vectors along which waves are tried."""
ALL_ROUND: tuple[tuple[float, float], ...] = tuple((cos(n * pi / 36), sin(n * pi / 36)) for n in range(36))
"""The same for terms that differ with direction, five degrees apart."""
LEVELS = (0.25, 0.5, 0.75)
"""Values of u at which a term must damp short waves to be called diffusion."""
EMPTY_TO_FULL = (0.0, 0.5, 1.0)
"""The same for diffusion that does not vanish with u."""


@lru_cache(maxsize=2048)
def linearise(term: Term, level: float) -> Mapping[Order, float]:
    """Return ∂T/∂u_α at the uniform state u = level, by the order α of the derivative; infinite slopes are left out."""
    flat = {jet_symbol(order): 0 for order in term.jets if order != (0, 0)} | {U: level}
    slopes = {order: sympy.diff(term.strong, jet_symbol(order)).subs(flat) for order in term.jets}
    return {order: float(slope) for order, slope in slopes.items() if slope.is_finite}


def growth_rate(slopes: Mapping[Order, float], k_x: float, k_y: float) -> float:
    """Return Re λ (1/s) of exp(i(k_x x + k_y y)) on a uniform state, of which ``slopes`` is the linearisation."""
    return float(sum(c * ((1j * k_x) ** i * (1j * k_y) ** j).real for (i, j), c in slopes.items()))


def smoothing_order(term: Term) -> int:
    """Return the highest even order of a term's derivatives of u at a uniform state; 0 where it has none.

    Examples
    --------
    >>> from video2pde.terms import CATALOGUE
    >>> [smoothing_order(CATALOGUE[name]) for name in ("laplacian", "grad_squared", "biharmonic")]
    [2, 0, 4]
    """
    orders = {sum(order) for level in LEVELS for order, slope in linearise(term, level).items() if slope != 0}
    return max((order for order in orders if order % 2 == 0), default=0)


def damping(term: Term, level: float, order: int, directions: Sequence[tuple[float, float]] = DIRECTIONS) -> Array:
    """Return −Re λ of unit waves along ``directions``, by the term's derivatives of one order at u = level."""
    slopes = {alpha: slope for alpha, slope in linearise(term, level).items() if sum(alpha) == order}
    return np.array([-growth_rate(slopes, *k) for k in directions])


@lru_cache(maxsize=512)
def wave_directions(terms: tuple[Term, ...]) -> tuple[tuple[float, float], ...]:
    """Return the directions in which a law's waves must be tried: few, unless one of its terms differs with them."""
    orders = {(term, smoothing_order(term)) for term in terms}
    by_term = [damping(term, level, order) for term, order in orders if order for level in EMPTY_TO_FULL]
    same = all(np.ptp(found) <= 1e-9 * np.abs(found).max(initial=0.0) for found in by_term)
    return DIRECTIONS if same else ALL_ROUND


def damps(terms: Sequence[Term], coefficients: Sequence[float]) -> bool:
    """Tell whether a law damps short waves, or leaves them alone, at one level of u at least: else none can run it.

    Examples
    --------
    >>> from video2pde.terms import CATALOGUE
    >>> law = [CATALOGUE["laplacian"], CATALOGUE["porous"]]
    >>> damps(law, (-0.1, 1.0)), damps(law, (-0.1, -1.0))
    (True, False)
    """
    order = max((smoothing_order(term) for term in terms), default=0)
    if order == 0:
        return True
    directions = wave_directions(tuple(terms))
    found = np.zeros((len(EMPTY_TO_FULL), len(directions)))
    for term, value in zip(terms, coefficients, strict=True):
        found += value * np.stack([damping(term, level, order, directions) for level in EMPTY_TO_FULL])
    return bool((found.min(axis=1) >= 0).any())


def is_diffusion(term: Term, levels: tuple[float, ...] = LEVELS) -> bool:
    """Tell whether a positive coefficient damps short waves at all levels of u, and in no direction feeds them.

    Examples
    --------
    >>> from video2pde.terms import CATALOGUE
    >>> [name for name in ("laplacian", "porous", "grad_squared", "biharmonic") if is_diffusion(CATALOGUE[name])]
    ['laplacian', 'porous']
    >>> is_diffusion(CATALOGUE["porous"], EMPTY_TO_FULL)
    False
    >>> is_diffusion(Term.of("mine", ("xx", "u"), ("yy", "2*u")))
    True
    """
    order = smoothing_order(term)
    if order == 0:
        return False
    found = np.stack([damping(term, level, order) for level in levels])
    return bool((found >= 0).all() and (found.max(axis=1) > 0).all())


@lru_cache(maxsize=2048)
def multiple_of(term: Term, known: Term) -> float:
    """Return c where a term, written out, is c times a known one; 0 where it is no multiple of it.

    Examples
    --------
    >>> from video2pde.terms import CATALOGUE
    >>> multiple_of(Term.of("mine", ("xx", "u/2"), ("yy", "u/2")), CATALOGUE["laplacian"])
    0.5
    >>> multiple_of(CATALOGUE["porous"], CATALOGUE["laplacian"])
    0.0
    """
    ratio = sympy.cancel(term.strong / known.strong)
    return float(ratio) if ratio.is_number else 0.0
