"""Terms whose coefficient varies in space, as passes over the picture write them.

A part D^α f(u) with |α| = 2 acts in divergence form. With w_k the weights of the difference D^α,

    ½[D^α(c f) + c D^α f − f D^α c]  →  Σ_k w_k ½(c_0 + c_k)(f_k − f_0),

an exchange between pairs of cells: what one loses the other gains, for any c, and the order is that of D^α. It is
c D^α f where c is constant. Every other part is multiplied by c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product

import sympy

from video2pde.maps import in_divergence_form
from video2pde.rollout.source import neighbour_name, Offset, spacing, StencilSource
from video2pde.terms import Part, Term
from video2pde.terms.parse import U
from video2pde.terms.stencil import stencil

Read = Callable[[int, Offset], str]
"""Writes the coefficient of a map at a neighbour."""


def plain_terms(terms: tuple[Term, ...], mapped: tuple[int, ...]) -> tuple[Term, ...]:
    """Empty the terms that have a map, so that the others keep their places."""
    return tuple(Term(term.name, ()) if n in mapped else term for n, term in enumerate(terms))


def write_mapped(source: StencilSource, terms: tuple[Term, ...], mapped: tuple[int, ...], read: Read) -> str:
    """Write Σ of all terms that have a map, as a summand of u_t; an empty text where there is none."""
    total = ""
    for m, n in enumerate(mapped):
        for part in terms[n].parts:
            if in_divergence_form(part):
                total += f" + {_exchange(source, part, m, read)}"
            else:
                total += f" + {read(m, (0, 0))}*({_value(source, part)})"
    return total


def _value(source: StencilSource, part: Part) -> str:
    """Name the value of a part that is multiplied."""
    if part.uses_gradient or part.derivative == (0, 0):
        return source.written(source.jets(part.strong, Term("", (part,)).jets))
    return source.difference(part.derivative, part.density)


def _exchange(source: StencilSource, part: Part, m: int, read: Read) -> str:
    def density(offset: Offset) -> str:
        return source.neighbour(offset) if part.density == U else source.density_at(offset, part.density)

    name = f"x{m}{part.derivative[0]}{part.derivative[1]}n{len(source.lines)}"
    here = density((0, 0))
    groups: dict[float, list[str]] = {}
    for offset, weight in stencil(part.derivative, 1.0, 1.0, source.accuracy).items():
        if offset != (0, 0):
            shared = next((known for known in groups if math.isclose(known, weight, rel_tol=1e-12)), weight)
            pair = f"({read(m, (0, 0))} + {read(m, offset)})*({density(offset)} - {here})"
            groups.setdefault(shared, []).append(pair)
    total = " + ".join(f"{source.number(weight / 2)}*({' + '.join(pairs)})" for weight, pairs in groups.items())
    source.lines.append(source.define(name, f"({total}){spacing(part.derivative)}"))
    return name


def corners(expression: sympy.Expr, mapped: tuple[int, ...], count: int) -> list[sympy.Expr]:
    """Put the lowest and the highest coefficient of every map into an expression, in all combinations.

    Coefficients are c0, c1, …; those of the maps' ends follow the law's own ``count``. What is linear in them is
    largest at one of these.
    """
    found = []
    for ends in product((0, 1), repeat=len(mapped)):
        put: Mapping[sympy.Symbol, sympy.Symbol] = {
            sympy.Symbol(f"c{n}"): sympy.Symbol(f"c{count + 2 * m + end}")
            for m, (n, end) in enumerate(zip(mapped, ends, strict=True))
        }
        found.append(expression.xreplace(put))
    return list(dict.fromkeys(found))


def map_name(m: int, offset: Offset) -> str:
    """Name the row of a map at a neighbour."""
    return f"q{m}{neighbour_name(offset)}"
