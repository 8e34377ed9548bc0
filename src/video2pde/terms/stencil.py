"""Finite-difference view of a term on the picture's grid.

A part D^α f(u) without gradients is differenced as it stands: the stencil of D^α acts on f(u), which
keeps divergence forms conservative. Parts whose density holds gradients are expanded by the chain rule
and evaluated from central differences of u.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import StageError
from video2pde.terms.parse import V_X, V_Y
from video2pde.terms.term import compile_density, compile_expression, jet_symbol, Order, Part, Term

Array = NDArray[np.floating]


@lru_cache(maxsize=64)
def central_weights(derivative: int, accuracy: int) -> tuple[float, ...]:
    """Return central-difference weights on unit spacing, exact to ``accuracy`` (an even order).

    Solves Σ_m w_m m^p = p! δ_{p,derivative} for the offsets −r … r.
    """
    if accuracy < 2 or accuracy % 2:
        raise StageError(f"the order of a central stencil must be even and at least 2, not {accuracy}")
    if derivative == 0:
        return (1.0,)
    radius = (derivative + 1) // 2 + accuracy // 2 - 1
    offsets = np.arange(-radius, radius + 1, dtype=float)
    powers = np.vander(offsets, increasing=True).T
    target = np.zeros(2 * radius + 1)
    target[derivative] = float(np.prod(np.arange(1, derivative + 1)))
    weights = np.linalg.solve(powers, target)
    symmetric = 0.5 * (weights + (-1) ** derivative * weights[::-1])
    return tuple(float(w) for w in np.where(np.abs(symmetric) < 1e-13, 0.0, symmetric))


def stencil(order: Order, dx: float, dy: float, accuracy: int = 4) -> dict[tuple[int, int], float]:
    """Return the weights of D^order by offset (dy-index, dx-index)."""
    along_x, along_y = central_weights(order[0], accuracy), central_weights(order[1], accuracy)
    rx, ry = len(along_x) // 2, len(along_y) // 2
    scale = dx ** -order[0] * dy ** -order[1]
    return {
        (j - ry, i - rx): wy * wx * scale
        for (j, wy), (i, wx) in product(enumerate(along_y), enumerate(along_x))
        if wx * wy != 0.0
    }


def radius(term: Term, accuracy: int = 4) -> int:
    """Return how far the term's stencil reaches, in pixels."""
    orders = [part.derivative for part in term.parts] + list(term.jets)
    return max(len(central_weights(n, accuracy)) // 2 for order in orders for n in order)


def apply_term(
    term: Term,
    u: Array,
    dx: float,
    dy: float,
    velocity: tuple[float, float] = (0.0, 0.0),
    *,
    accuracy: int = 4,
    boundary: str = "replicate",
) -> Array:
    """Evaluate the discrete term on one frame u (y, x): the reference for every faster implementation."""
    reach = radius(term, accuracy)
    if boundary == "open":
        padded = np.pad(u, reach, mode="reflect", reflect_type="odd")
    else:
        padded = np.pad(u, reach, mode="symmetric" if boundary == "replicate" else "wrap")
    total = np.zeros_like(u)

    def differentiate(values: Array, order: Order) -> Array:
        return difference(values, reach, order, dx, dy, accuracy)

    for part in term.parts:
        total += _apply_part(part, padded, velocity, differentiate)
    return total


def _apply_part(
    part: Part, padded: Array, velocity: tuple[float, float], differentiate: Callable[[Array, Order], Array]
) -> Array:
    if not part.uses_gradient:
        density = compile_density(part.density)(padded, 0.0, 0.0, *velocity) + 0 * padded
        return differentiate(density, part.derivative)
    term = Term("", (part,))
    jets = [differentiate(padded, order) for order in term.jets]
    function = compile_expression(part.strong, (*(jet_symbol(order) for order in term.jets), V_X, V_Y))
    value: Array = function(*jets, *velocity)
    return value


def difference(padded: Array, reach: int, order: Order, dx: float, dy: float, accuracy: int = 4) -> Array:
    """Apply the stencil of D^order to an array padded by ``reach`` on each side."""
    ny, nx = padded.shape[0] - 2 * reach, padded.shape[1] - 2 * reach
    result = np.zeros((ny, nx), padded.dtype)
    for (j, i), weight in stencil(order, dx, dy, accuracy).items():
        result += weight * padded[reach + j : reach + j + ny, reach + i : reach + i + nx]
    return result
