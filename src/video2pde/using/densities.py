"""Densities as text that ``terms.parse`` reads back to the same expression."""

from __future__ import annotations

import sympy
from sympy.printing.str import StrPrinter

from video2pde.errors import InputError
from video2pde.terms.parse import DENSITY_SYMBOLS, MAX_LENGTH, MAX_NUMBER, parse_density


class _Printer(StrPrinter):  # type: ignore[misc]
    """Write half powers by sqrt and e by exp(1): the whitelist knows whole powers and functions alone."""

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        power = expr.exp
        if power.is_Rational and power.q == 2 and abs(power) != sympy.Rational(1, 2):
            base = self.parenthesize(expr.base, 1000)
            whole = (power.p - 1) // 2
            return f"({base}**{whole}*sqrt({self._print(expr.base)}))"
        return str(super()._print_Pow(expr, rational=rational))

    def _print_Exp1(self, _expr: sympy.Expr) -> str:
        return "exp(1)"


def write_density(density: sympy.Expr) -> str:
    """Write a density as text; refuse one that could not be read back."""
    large = {
        number: sympy.Float(float(number))
        for number in density.atoms(sympy.Rational)
        if max(abs(number.p), number.q) > MAX_NUMBER
    }
    text = str(_Printer().doprint(density.xreplace(large)))
    if len(text) > MAX_LENGTH:
        raise InputError(f"the density '{text[:60]}…' is longer than the {MAX_LENGTH} characters of a model file")
    if sympy.expand(parse_density(text, DENSITY_SYMBOLS) - density) != 0:
        raise InputError(f"the density '{text}' cannot be written to a model file")
    return text


def degree(density: sympy.Expr) -> int:
    """Bound the degree of a density, functions counting as one more than their argument."""
    if density.is_Add:
        return max(degree(part) for part in density.args)
    if density.is_Mul:
        return sum(degree(part) for part in density.args)
    if density.is_Pow and density.exp.is_Rational:
        return int(sympy.ceiling(abs(density.exp) * degree(density.base)))
    if density.is_Symbol:
        return 1
    return 1 + max((degree(part) for part in density.args), default=-1)
