"""The law as JavaScript: the same scheme as the compiled rollouts, generated from the definitions of the terms.

The script sets ``video2pdeLaws`` to a table of laws; each has ``stage`` (one fused Runge–Kutta stage over the
picture) and ``bound`` (the stability estimate), as the kernels of ``rollout.kernels`` have. The loop around them is
the page's (``web/src/play/rollout.ts``), the counterpart of ``rollout.driver``. Nothing of a user's text reaches the
script: densities have been parsed against a whitelist and are printed anew, symbol by symbol.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import sympy
from sympy.printing.codeprinter import CodePrinter
from sympy.printing.jscode import JavascriptCodePrinter

from video2pde.errors import StageError
from video2pde.rollout.kernels import stability_limit, symbol_peak
from video2pde.rollout.source import neighbour_name, Offset, spacing, StencilSource
from video2pde.terms import Term
from video2pde.terms.parse import FUNCTIONS, U
from video2pde.terms.term import jet_symbol, Order

ACCURACY = 4


class _Printer(JavascriptCodePrinter):  # type: ignore[misc]
    """Print expressions with whole powers as products, as the compiled kernels have them."""

    def _print_Pow(self, expr: Any, **_: Any) -> str:
        base, exponent = f"({self._print(expr.base)})", expr.exp
        if exponent.is_Integer or (exponent.is_Rational and exponent.q == 2):
            factor = base if exponent.is_Integer else f"Math.sqrt{base}"
            product = "*".join([factor] * abs(int(exponent if exponent.is_Integer else exponent.p)))
            return f"({product})" if exponent > 0 else f"(1/({product}))"
        return f"Math.exp({self._print(exponent)}*Math.log{base})"

    def _print_Rational(self, expr: Any) -> str:
        return f"({int(expr.p)}/{int(expr.q)})"


def _print(expression: sympy.Expr) -> str:
    """Turn an expression into source, after checking that only whitelisted names and functions occur."""
    functions = {type(f) for f in expression.atoms(sympy.Function)}
    strange = functions - {function for function in FUNCTIONS.values() if isinstance(function, type)}
    names = {str(s) for s in expression.free_symbols}
    if strange or not all(name.isidentifier() and name.isascii() for name in names):
        raise StageError(f"the expression {expression} holds something that no density may hold")
    printer: CodePrinter = _Printer()
    return str(printer.doprint(expression))


class _Pass(StencilSource):
    """Write a pass as JavaScript: a neighbour is read once for each pixel."""

    def __init__(self) -> None:
        self.accuracy = ACCURACY
        self.neighbours: dict[Offset, str] = {}
        self.lines: list[str] = []
        self.differences: dict[tuple[Order, sympy.Expr], str] = {}

    def neighbour(self, offset: Offset) -> str:
        self.neighbours[offset] = neighbour_name(offset)
        return self.neighbours[offset]

    def define(self, name: str, value: str) -> str:
        return f"const {name} = {value};"

    def number(self, value: float) -> str:
        return f"{value!r}" if value >= 0 else f"({value!r})"

    def written(self, expression: sympy.Expr) -> str:
        return _print(expression)

    def density_at(self, offset: Offset, density: sympy.Expr) -> str:
        value = self.neighbour(offset)
        name = f"fd{len(self.differences) - 1}{value}"
        self.lines.append(self.define(name, _print(density.xreplace({U: sympy.Symbol(value, real=True)}))))
        return name

    def reads(self) -> list[str]:
        """Write the lines that read the neighbours of a pixel."""
        return [f"const {name} = w[p + ({j})*s + ({i})];" for (j, i), name in self.neighbours.items()]


def _carried(flows: bool, over: _Pass) -> str:
    """Write −v·∇u of a velocity field: the summand of a pixel, as the compiled kernels have it."""
    if not flows:
        return ""
    return f" - wind[q]*{over.difference((1, 0))} - wind[q + size]*{over.difference((0, 1))}"


def _loop(over: _Pass, radius: int, body: list[str]) -> list[str]:
    inside = [*over.reads(), *over.lines, *body]
    return [
        f"for (let j = 0; j < ny; j += 1) {{ let p = (j + {radius})*s + {radius};",
        "for (let i = 0, q = j*nx; i < nx; i += 1, p += 1, q += 1) {",
        *inside,
        "} }",
    ]


def _stage(terms: tuple[Term, ...], flows: bool) -> tuple[list[str], int]:
    """Write the fused pass out = keep·base + (1 − keep)·(w + h·F(w)), clipped; it gives Σ|clipped|."""
    over = _Pass()
    weights = over.linear_weights(terms, lambda n: f"c[{n}]")
    before = [f"const k{over.neighbour(offset)} = {' + '.join(parts)};" for offset, parts in weights.items()]
    products = [f"k{over.neighbour(offset)}*{over.neighbour(offset)}" for offset in weights]
    nonlinear = over.nonlinear(terms)
    carried = _carried(flows, over)
    replacements, (reduced,) = sympy.cse(nonlinear, symbols=sympy.numbered_symbols("s_"))
    over.lines += [f"const {name} = {_print(value)};" for name, value in replacements]
    radius = over.radius
    body = [
        f"const value = keep*base[p] + {' + '.join(products)} + step*({_print(reduced)}{carried});",
        "let kept = value > low ? value : low;",
        "kept = kept < high ? kept : high;",
        "lost += Math.abs(value - kept);",
        "out[p] = kept;",
    ]
    lines = [
        "stage(w, base, out, ny, nx, c, vx, vy, wind, gx, gy, h, keep, low, high) {",
        f"const s = nx + {2 * radius}, size = ny*nx, rest = 1 - keep, step = rest*h;",
        *(f"const c{n} = c[{n}];" for n in range(len(terms))),
        *before,
        "let lost = 0;",
        *_loop(over, radius, body),
        "return lost; }",
    ]
    return lines, radius


def _bound(terms: tuple[Term, ...], radius: int) -> list[str]:
    """Write max over the picture of Σ_α |∂F/∂u_α| κ_α over the method's limits, as the compiled kernels have it."""
    over = _Pass()
    orders = sorted({order for term in terms for order in term.jets}, key=lambda o: (sum(o), o))
    tendency = sympy.Add(*(sympy.Symbol(f"c{n}") * term.strong for n, term in enumerate(terms)))
    fixed, varying = ["0"], list[str]()
    for order in orders:
        slope = sympy.diff(tendency, jet_symbol(order))
        needed = [other for other in orders if jet_symbol(other) in slope.free_symbols]
        weight = f"{symbol_peak(order, ACCURACY) / stability_limit(order)!r}{spacing(order)}"
        (varying if needed else fixed).append(f"{weight}*Math.abs({_print(over.jets(slope, needed))})")
    lines = [
        "bound(w, ny, nx, c, gx, gy) {",
        f"const s = nx + {2 * radius};",
        *(f"const c{n} = c[{n}];" for n in range(len(terms))),
        f"const fixed = {' + '.join(fixed)};",
    ]
    if not varying:
        return [*lines, "return fixed; }"]
    body = [f"const rate = {' + '.join(varying)};", "if (rate > peak) peak = rate;"]
    return [*lines, "let peak = 0;", *_loop(over, radius, body), "return fixed + peak; }"]


def write_law(terms: tuple[Term, ...], flows: bool = False) -> str:
    """Write one law as a JavaScript object: radius of its stencil, its stage, its stability bound.

    ``flows``: whether a velocity field acts beside the uniform drift.
    """
    stage, radius = _stage(terms, flows)
    advection = symbol_peak((1, 0), ACCURACY) / stability_limit((1, 0))
    body = "\n".join([*stage, ",", *_bound(terms, radius)])
    return f"{{ radius: {radius}, advection: {advection!r},\n{body}\n}}"


def law_key(terms: tuple[Term, ...], flows: bool = False) -> str:
    """Return the key of a law in a script: the same terms have the same one."""
    return f"law-{hashlib.sha256(write_law(terms, flows).encode()).hexdigest()[:12]}"


def write_script(laws: Sequence[tuple[tuple[Term, ...], bool]]) -> str:
    """Write the script that defines several laws, each under its key."""
    entries = ",\n".join(f'"{law_key(*law)}": {write_law(*law)}' for law in laws)
    table = "globalThis.video2pdeLaws"
    return f'"use strict";\n{table} = Object.assign({table} ?? {{}}, {{\n{entries}\n}});\n'
