"""One pass over a batch of pictures through JAX: the law's tendency and its stability bound.

Discretisation and bound are those of ``kernels.py``. Pictures are (m, y, x), a simulation each, and every neighbour is
read as a shifted picture, which XLA fuses into one pass with all that is made of it. Laws of several structures run as
one, with the terms of all and coefficients of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy

from video2pde.maps import in_divergence_form
from video2pde.rollout.kernels import stability_limit, Structure, symbol_peak
from video2pde.rollout.mapped import corners
from video2pde.terms import Part, Term
from video2pde.terms.parse import U, U_X, U_Y
from video2pde.terms.stencil import radius, stencil
from video2pde.terms.term import compile_expression, jet_symbol, Order

Offset = tuple[int, int]
Read = Callable[[Offset], jax.Array]


def written_out(values: jax.Array) -> jax.Array:
    """Have XLA write values out, instead of computing them again wherever they are read."""
    there: jax.Array = jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]
    return there


class Padded:
    """Neighbours as slices of pictures (m, y, x) that go on beyond their edges, by ``reach`` cells."""

    def __init__(self, u: jax.Array, boundary: str, reach: int) -> None:
        around = ((0, 0), (reach, reach), (reach, reach))
        if boundary == "open":
            padded = jnp.pad(u, around, mode="reflect", reflect_type="odd")
        else:
            padded = jnp.pad(u, around, mode="wrap" if boundary == "periodic" else "symmetric")
        self._padded, self._reach, self._shape = written_out(padded), reach, u.shape

    def __call__(self, offset: Offset) -> jax.Array:
        (rows, columns), (_, ny, nx) = (self._reach + step for step in offset), self._shape
        return self._padded[:, rows : rows + ny, columns : columns + nx]


class Gathered:
    """Neighbours of pictures (m, y, x) looked up by their rows and columns, which XLA fuses into a single pass."""

    def __init__(self, u: jax.Array, boundary: str, reach: int) -> None:  # noqa: ARG002 - as far as is asked for
        self._boundary, self._there = boundary, {(0, 0): u}

    def __call__(self, offset: Offset) -> jax.Array:
        if offset not in self._there:
            rows, columns = offset
            value = self._there[0, 0]
            value = self._look_up(value, columns, 2)
            self._there[offset] = self._look_up(value, rows, 1)
        return self._there[offset]

    def _look_up(self, value: jax.Array, step: int, axis: int) -> jax.Array:
        if step == 0:
            return value
        size = value.shape[axis]
        there = np.arange(step, size + step, dtype=np.int32)
        if self._boundary == "periodic":
            there %= size
        else:
            there = np.where(there < 0, -1 - there, np.where(there >= size, 2 * size - 1 - there, there))
        # all of them are there: nothing has to be looked after
        place = (slice(None),) * axis + (there,)
        return value.at[place].get(mode="promise_in_bounds")


READERS: dict[str, Callable[[jax.Array, str, int], Read]] = {"padded": Padded, "gathered": Gathered}
"""Ways to read neighbours; all give the same."""


def reach(structure: Structure) -> int:
    """Return how far the stencil of a structure reaches, in cells."""
    return max([1, structure.accuracy // 2, *(radius(term, structure.accuracy) for term in structure.terms)])


@lru_cache(maxsize=1024)
def is_polynomial(term: Term) -> bool:
    """Tell whether a term is made of powers of u and its slopes: zero times it is zero, whatever they are."""
    return all(part.density.is_polynomial(U, U_X, U_Y) for part in term.parts)


def wide(values: jax.Array) -> jax.Array:
    """Give numbers (m,) of simulations the axes of a picture."""
    return values[:, None, None]


def differ(read: Read, order: Order, g: Any, accuracy: int) -> jax.Array:
    """Apply the central difference of D^order; ``g`` (2,): 1/Δx, 1/Δy."""
    total: Any = 0.0
    for offset, weight in stencil(order, 1.0, 1.0, accuracy).items():
        total = total + weight * read(offset)
    result: jax.Array = total * (g[0] ** order[0] * g[1] ** order[1])
    return result


class Stage:
    """The tendency of a structure, and its bound, as JAX traces them."""

    def __init__(self, structure: Structure, boundary: str, reader: str) -> None:
        self.terms, self.accuracy, self.mapped = structure.terms, structure.accuracy, structure.mapped
        self._reach = reach(structure)
        self._around = "periodic" if boundary == "periodic" else "replicate"
        # straight on beyond the edge, which no place of a picture is
        self._boundary, self._reader = boundary, READERS["padded" if boundary == "open" else reader]
        self._orders = tuple(sorted({o for term in self.terms for o in term.jets}, key=lambda o: (sum(o), o)))
        self._slopes = self._write_slopes()

    def tendency(
        self, u: jax.Array, v: jax.Array, flow: jax.Array | None, c: jax.Array, maps: jax.Array, g: jax.Array
    ) -> jax.Array:
        """Return u_t of pictures under velocities v (m, 2), a flow (m, 2, y, x), coefficients c (m, K) and maps."""
        read = self._reader(u, self._boundary, self._reach)
        along = [wide(v[:, n]) if flow is None else wide(v[:, n]) + flow[:, n] for n in (0, 1)]
        total = self.change(read, along, {n: wide(c[:, n]) for n in range(len(self.terms)) if n not in self.mapped}, g)
        for place, n in enumerate(self.mapped):
            field = self._reader(maps[:, place], self._around, self._reach)
            for part in self.terms[n].parts:
                total = total + self._apply_mapped(part, read, field, g)
        return total

    def change(self, read: Read, along: Sequence[jax.Array], c: Mapping[int, jax.Array], g: Any) -> jax.Array:
        """Return u_t of what is read, under velocities along x and y and the coefficients of terms, by their place."""
        total = -along[0] * differ(read, (1, 0), g, self.accuracy) - along[1] * differ(read, (0, 1), g, self.accuracy)
        for n, coefficient in c.items():
            value: Any = 0.0
            for part in self.terms[n].parts:
                value = value + self._apply_part(part, read, g)
            total = total + coefficient * value
        return total

    def _apply_part(self, part: Part, read: Read, g: Any) -> jax.Array:
        if not part.uses_gradient:
            return differ(_density(part, read), part.derivative, g, self.accuracy)
        orders = Term("", (part,)).jets
        jets = [differ(read, order, g, self.accuracy) for order in orders]
        value: jax.Array = compile_expression(part.strong, tuple(jet_symbol(o) for o in orders), "jax")(*jets)
        return value

    def _apply_mapped(self, part: Part, read: Read, field: Read, g: jax.Array) -> jax.Array:
        """Apply a part whose coefficient varies in space; see ``rollout.mapped``."""
        here = field((0, 0))
        if not in_divergence_form(part):
            return here * self._apply_part(part, read, g)
        density, total = _density(part, read), jnp.zeros_like(here)
        for offset, weight in stencil(part.derivative, 1.0, 1.0, self.accuracy).items():
            difference = density(offset) - density((0, 0))
            total = total + 0.5 * weight * (here + field(offset)) * difference
        return total * (g[0] ** part.derivative[0] * g[1] ** part.derivative[1])

    def _write_slopes(self) -> list[list[Callable[..., Any]]]:
        """Compile ∂F/∂u_α by order, one for each combination of the maps' ends."""
        names = tuple(sympy.Symbol(f"c{n}") for n in range(len(self.terms) + 2 * len(self.mapped)))
        tendency = sympy.Add(*(c * term.strong for c, term in zip(names, self.terms, strict=False)))
        arguments = (*names, *(jet_symbol(order) for order in self._orders))
        return [
            [compile_expression(end, arguments, "jax") for end in corners(slope, self.mapped, len(self.terms))]
            for slope in (sympy.diff(tendency, jet_symbol(order)) for order in self._orders)
        ]

    def bound(self, u: jax.Array, c: jax.Array, g: jax.Array) -> jax.Array:
        """Return the largest growth rate over each picture, (m,), over the Runge–Kutta method's limits."""
        read = self._reader(u, self._boundary, self._reach)
        return jnp.max(self.growth(read, [wide(c[:, n]) for n in range(c.shape[1])], g), axis=(1, 2))

    def growth(self, read: Read, c: Sequence[jax.Array], g: Any) -> jax.Array:
        """Return the growth rate over the method's limits, point by point, of what is read."""
        jets = [differ(read, order, g, self.accuracy) for order in self._orders]
        total = 0 * read((0, 0))
        for order, ends in zip(self._orders, self._slopes, strict=True):
            weight = symbol_peak(order, self.accuracy) / stability_limit(order) * g[0] ** order[0] * g[1] ** order[1]
            largest = jnp.abs(ends[0](*c, *jets))
            for end in ends[1:]:
                largest = jnp.maximum(largest, jnp.abs(end(*c, *jets)))
            total = total + weight * largest
        return total


def _density(part: Part, read: Read) -> Read:
    """Return the density of a part at an offset: u itself, or what is computed from it."""
    if part.density == U:
        return read
    value = compile_expression(part.density, (U,), "jax")
    return lambda offset: value(read(offset)) + 0 * read(offset)
