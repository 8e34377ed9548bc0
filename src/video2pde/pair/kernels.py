"""Compiled passes over two pictures, generated from the definitions of the terms, as ``rollout.kernels`` does for one.

For the terms of both laws a Python module is written and compiled by numba, once: coefficients, pitch and step are
arguments. Discretisation follows ``terms.stencil``: a part D^α f is differenced as it stands, one whose density holds
gradients is expanded and evaluated from central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy
from numba import types

from video2pde.rollout.kernels import load_module, options_text, print_expression, stability_limit, symbol_peak
from video2pde.rollout.source import neighbour_name, Offset, spacing, StencilSource
from video2pde.terms import Part, Term
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.parse import U, W
from video2pde.terms.term import jet_symbol, Order

ACCURACY = 8
"""Order of the central differences. Fronts of reactions are narrower than a cell (Gray–Scott: 2.2 units in cells of
2.5): with the fourth order they are so slow that the truth leaves more than a film's noise does, and rates 1 to 2 % too
fast leave less."""
SYMBOLS = {"u": U, "w": W}
PRECISION = "float64"


class _PairSource(StencilSource):
    """Write a pass over two pictures as Python for numba: the row of a neighbour is sliced before the inner loop."""

    def __init__(self) -> None:
        self.accuracy = ACCURACY
        self.neighbours: dict[Offset, str] = {}
        self.used: dict[tuple[str, Offset], str] = {}
        self.lines: list[str] = []
        self.differences: dict[tuple[Order, sympy.Expr], str] = {}

    def value(self, field: str, offset: Offset) -> str:
        """Name the value of a field at an offset."""
        self.neighbours[offset] = neighbour_name(offset)
        self.used[field, offset] = f"{field}{neighbour_name(offset)}"
        return f"{self.used[field, offset]}[i]"

    def neighbour(self, offset: Offset) -> str:
        return self.value("u", offset)

    def define(self, name: str, value: str) -> str:
        return f"{name} = {value}"

    def number(self, value: float) -> str:
        return f"real({value!r})"

    def written(self, expression: sympy.Expr) -> str:
        return print_expression(expression)

    def density_at(self, offset: Offset, density: sympy.Expr) -> str:
        if density == W:
            return self.value("w", offset)
        name = f"f{len(self.differences)}{neighbour_name(offset)}"
        held = [field for field in FIELDS if SYMBOLS[field] in density.free_symbols]
        self.lines += [f"{field} = {self.value(field, offset)}" for field in held]
        self.lines.append(f"{name} = {print_expression(density)}")
        return name

    def differenced(self, expression: sympy.Expr) -> sympy.Expr:
        """Replace the derivatives of both fields in an expression by their differences on the grid."""
        term = Term("", (Part(expression),))
        names = {
            jet_symbol(order, field): sympy.Symbol(self.difference(order, SYMBOLS[field]))
            for field in FIELDS
            for order in term.jets_of(field)
        }
        return expression.xreplace(names)

    def tendency(self, terms: Sequence[Term], first: int) -> sympy.Expr:
        """Return Σ c_n T_n over named differences, coefficients counted from ``first``."""
        parts = [sympy.Add(*(self._discrete(part) for part in term.parts)) for term in terms]
        return sympy.Add(*(sympy.Symbol(f"c{first + n}") * part for n, part in enumerate(parts)))

    def _discrete(self, part: Part) -> sympy.Expr:
        if part.uses_gradient or part.derivative == (0, 0):
            return self.differenced(part.strong)
        return sympy.Symbol(self.difference(part.derivative, part.density))

    def loop(self, r: int, before: list[str], body: list[str]) -> list[str]:
        """Write the loop over the pixels of pictures that are padded by ``r``."""
        slices = [
            f"{name} = f{field}[j + {r + j}, {r + i}:{r + i} + nx]" for (field, (j, i)), name in self.used.items()
        ]
        rows = ["for j in range(ny):", *(f"    {line}" for line in [*slices, *before]), "    for i in range(nx):"]
        return rows + [f"        {line}" for line in [*self.lines, *body]]


def _write_stage(laws: Sequence[Sequence[Term]]) -> tuple[str, int]:
    """Write keep·base + (1 − keep)(f + h F(f)) for both fields; return the source and the radius of its stencil."""
    source = _PairSource()
    first, rates = 0, []
    for terms in laws:
        rates.append(source.tendency(terms, first))
        first += len(terms)
    replacements, reduced = sympy.cse(rates, symbols=sympy.numbered_symbols("s"))
    source.lines += [f"{name} = {print_expression(value)}" for name, value in replacements]
    own = [source.value(field, (0, 0)) for field in FIELDS]
    r = source.radius
    inner = f"j + {r}, {r}:{r} + nx"
    before = [
        f"{side}{field} = {array}{field}[{inner}]" for side, array in (("old", "b"), ("new", "o")) for field in FIELDS
    ]
    body = [
        f"new{field}[i] = keep*old{field}[i] + rest*{here} + step*({print_expression(rate)})"
        for field, here, rate in zip(FIELDS, own, reduced, strict=True)
    ]
    lines = [
        f"ny, nx = fu.shape[0] - {2 * r}, fu.shape[1] - {2 * r}",
        *(f"c{n} = c[{n}]" for n in range(first)),
        "rest = 1.0 - keep",
        "step = rest*h",
        *source.loop(r, before, body),
    ]
    return _function("stage(fu, fw, bu, bw, ou, ow, c, gx, gy, h, keep)", lines), r


def _write_bound(laws: Sequence[Sequence[Term]], radius: int) -> str:
    """Write the stability estimate: over the picture and both laws, max Σ |∂F/∂f_α| κ_α, over the method's limits.

    A row sum of absolute values bounds every eigenvalue of the coupled system (see ``rollout.kernels`` for κ).
    """
    source = _PairSource()
    rates, first = [], 0
    for terms in laws:
        tendency = sympy.Add(*(sympy.Symbol(f"c{first + n}") * term.strong for n, term in enumerate(terms)))
        first += len(terms)
        parts = ["0.0"]
        for field in FIELDS:
            for order in sorted({order for term in terms for order in term.jets_of(field)}):
                slope = sympy.diff(tendency, jet_symbol(order, field))
                weight = f"{symbol_peak(order, ACCURACY) / stability_limit(order)!r}{spacing(order)}"
                parts.append(f"{weight}*abs({print_expression(source.differenced(slope))})")
        rates.append(" + ".join(parts))
    body = [f"first = {rates[0]}", f"second = {rates[1]}", "top = first if first > top else top"]
    lines = [
        f"ny, nx = fu.shape[0] - {2 * radius}, fu.shape[1] - {2 * radius}",
        *(f"c{n} = c[{n}]" for n in range(first)),
        "top = 0.0",
        *source.loop(radius, [], [*body, "top = second if second > top else top"]),
        "return top",
    ]
    return _function("bound(fu, fw, c, gx, gy)", lines)


def _function(head: str, lines: list[str]) -> str:
    return "\n".join([f"@njit(**OPTIONS)\ndef {head}:", *(f"    {line}" for line in lines)]) + "\n"


def write_source(terms: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Write the module that is compiled for the terms of both laws."""
    laws = [[get_pair_term(name) for name in names] for names in terms]
    stage, radius = _write_stage(laws)
    head = [
        "from __future__ import annotations",
        "import math",
        "import numpy as np",
        "from video2pde.compiled import njit",
        f"real = np.{PRECISION}",
        f"RADIUS = {radius}",
        f"OPTIONS = dict({options_text()}, cache=CACHE)",
    ]
    return "\n".join(head) + f"\n\n\n{stage}\n\n{_write_bound(laws, radius)}"


def stage_type() -> Any:
    """Return the signature of a pass."""
    picture, number = types.float64[:, ::1], types.float64
    return types.void(*[picture] * 6, types.float64[::1], *[number] * 4)


def bound_type() -> Any:
    """Return the signature of a stability estimate."""
    picture, number = types.float64[:, ::1], types.float64
    return number(picture, picture, types.float64[::1], number, number)


@dataclass(frozen=True)
class PairKernel:
    """Hold the compiled functions of two laws; ``radius`` is the margin that frames are padded with."""

    radius: int
    stage: Callable[..., None]
    bound: Callable[..., float]


@lru_cache(maxsize=64)
def compile_pair(terms: tuple[tuple[str, ...], tuple[str, ...]]) -> PairKernel:
    """Compile the kernel of two laws, or take it from the cache."""
    module = load_module(write_source(terms))
    module.stage.compile(stage_type())
    module.bound.compile(bound_type())
    return PairKernel(module.RADIUS, module.stage, module.bound)
