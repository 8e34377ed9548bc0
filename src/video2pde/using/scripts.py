"""A term as a line of code: how densities and derivatives are written in py-pde, SymPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy
from sympy.printing.str import StrPrinter

from video2pde.terms import CATALOGUE, Term
from video2pde.terms.term import Order, Part
from video2pde.terms.words import describe
from video2pde.using.modelfile import SavedModel

KNOT_COUNTS = (2, 9, 17, 33, 65, 129, 257)
KNOT_ERROR = 1e-3
"""Largest error of the drift table in a script, relative to the largest speed, at which fewer rows are kept."""


@dataclass(frozen=True)
class Dialect:
    """Say how a language writes D^order of an expression, u itself, and functions.

    ``operators`` are whole terms of the catalogue that have a name of their own there.
    """

    differentiate: Callable[[str, Order], str]
    functions: str = ""
    operators: tuple[tuple[str, str], ...] = ()

    def term(self, term: Term) -> str:
        """Write a whole term."""
        named = dict(self.operators)
        if term.name in named and CATALOGUE.get(term.name) == term:
            return named[term.name]
        return " + ".join(self._part(part) for part in term.parts)

    def expression(self, expression: sympy.Expr) -> str:
        """Write an expression over u and its derivatives."""
        return _Code(self).doprint(expression)  # type: ignore[no-any-return]

    def _part(self, part: Part) -> str:
        # a derivative of a density with gradients is carried out: mirrored edges know what u does there, not what
        # the density does
        if part.uses_gradient or part.derivative == (0, 0):
            return self.expression(part.strong)
        return self.differentiate(self.expression(part.density), part.derivative)


class _Code(StrPrinter):  # type: ignore[misc]
    """Print an expression as code, derivatives of u through the dialect."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        head, _, letters = expr.name.partition("_")
        if head == "u" and letters and not set(letters) - {"x", "y"}:
            return self._dialect.differentiate("u", (letters.count("x"), letters.count("y")))
        return str(expr.name)

    def _print_Function(self, expr: sympy.Function) -> str:
        inner = ", ".join(self._print(argument) for argument in expr.args)
        return f"{self._dialect.functions}{expr.func.__name__}({inner})"

    def _print_exp(self, expr: sympy.Expr) -> str:
        return f"{self._dialect.functions}exp({self._print(expr.args[0])})"

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        if expr.exp == sympy.Rational(1, 2):
            return f"{self._dialect.functions}sqrt({self._print(expr.base)})"
        if expr.exp == -sympy.Rational(1, 2):
            return f"1/{self._dialect.functions}sqrt({self._print(expr.base)})"
        return str(super()._print_Pow(expr, rational=rational))

    def _print_Exp1(self, _expr: sympy.Expr) -> str:
        return repr(float(np.e))


def coefficient_name(term: Term) -> str:
    """Name a term's coefficient in a script."""
    return f"c_{term.name}"


def coefficient_lines(model: SavedModel) -> list[str]:
    """Write one assignment for each coefficient, its interval and term in the comment; UNITS holds the units."""
    lines = []
    for entry in model.terms:
        known = entry.low is not None and entry.high is not None
        interval = f", 95 % interval [{entry.low:.5g}, {entry.high:.5g}]" if known else ""
        words = describe(entry.term).text
        lines.append(f"{coefficient_name(entry.term)} = {entry.value!r}  # {words}{interval}")
    return [*lines, f"UNITS = { ({coefficient_name(entry.term): entry.units for entry in model.terms})!r}"]


def drift_table(model: SavedModel) -> list[tuple[float, float, float]]:
    """Return rows (t, v_x, v_y) between which the drift is linear, as few as reproduce it; its scale is included."""
    times, velocity = model.times, np.array(model.drift.velocity) * model.drift.scale
    fastest = max(float(np.abs(velocity).max()), 1e-300)
    for count in KNOT_COUNTS:
        if count >= len(times):
            break
        kept = np.unique(np.round(np.linspace(0, len(times) - 1, count)).astype(int))
        rebuilt = np.stack([np.interp(times, times[kept], velocity[kept, axis]) for axis in range(2)], axis=1)
        if np.abs(rebuilt - velocity).max() <= KNOT_ERROR * fastest:
            times, velocity = times[kept], velocity[kept]
            break
    return [(float(t), float(vx), float(vy)) for t, (vx, vy) in zip(times, velocity, strict=True)]


def drift_lines(model: SavedModel) -> list[str]:
    """Write the drift's table and its continuation after the film."""
    rows = [f"    [{t:.8g}, {vx:.8g}, {vy:.8g}]," for t, vx, vy in drift_table(model)]
    final = model.final_velocity
    return [
        "# Drift measured on the film: t in s, v_x and v_y in UNIT/s, linear in between.",
        "DRIFT = np.array([",
        *rows,
        "])",
        f"AFTER_FILM = ({final[0]:.8g}, {final[1]:.8g})  # mean drift of the film's last tenth, which continues",
    ]
