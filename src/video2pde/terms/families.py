"""Terms with a parameter that does not enter linearly: an exponent, a half-saturation constant.

A family gives its term for every value p of the parameter, T_p, and ∂T_p/∂p as a term of its own, so that a fit of

    c T_p(u) + c′ ∂T_p/∂p (u)      means the parameter p + c′/c to first order,

with the interval that c and c′ have together. Repeated, this is Gauss–Newton in p, by coefficients alone.

Powers of u are powers of √(u² + ε²), ε being one of 256 grey levels: smooth where noise carries u through zero, and the
same as uᵐ to 0.1 % from u = 0.1 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy

from video2pde.errors import SettingsError
from video2pde.terms.parse import parse_density, U
from video2pde.terms.term import Part, Term
from video2pde.terms.text import density_text

P = sympy.Symbol("p", positive=True)
SMALLEST = sympy.Rational(1, 256)
DIGITS = 4
"""Decimals that a parameter is kept with, so that a term written as text is the same term."""
SLOPE = "_slope"
"""What the name of ∂T/∂p ends in."""


@dataclass(frozen=True)
class Family:
    """Name a family of terms.

    Parameters
    ----------
    symbol, meaning : of the parameter, in words. usual : its value where nothing is known or asked.
    density : f(u; p); ``derivatives`` act on it, and their sum is the term.
    trial : values that a profile begins with, ascending; the first and the last bound the parameter.
    """

    name: str
    symbol: str
    meaning: str
    density: sympy.Expr
    derivatives: tuple[tuple[int, int], ...]
    usual: float
    trial: tuple[float, ...]

    def member(self, value: float) -> Term:
        """Return the family's term for a value of its parameter."""
        return _make(self, self.name, self.density, round(float(value), DIGITS))

    def slope(self, value: float) -> Term:
        """Return ∂T/∂p at a value of the parameter."""
        return _make(self, self.name + SLOPE, sympy.diff(self.density, P), round(float(value), DIGITS))

    def bounded(self, value: float) -> float:
        return round(min(max(value, self.trial[0]), self.trial[-1]), DIGITS)

    def parameter(self, term: Term) -> float | None:
        """Read the parameter off a term; None where it is not one of the family."""
        if term.name != self.name:
            return None
        numbers = {sympy.Integer(1)} | term.parts[0].density.atoms(sympy.Rational)
        numbers |= {2 * number for number in numbers} | {number - 1 for number in numbers}
        numbers |= {1 / number - 1 for number in numbers if number > 0}
        candidates = {value for value in map(float, numbers) if self.trial[0] <= value <= self.trial[-1]}
        return next((value for value in sorted(candidates) if self.member(value) == term), None)


@lru_cache(maxsize=256)
def _make(family: Family, name: str, density: sympy.Expr, value: float) -> Term:
    # through text and back, so that what is stored is read as the same expression
    plain = parse_density(density_text(density.subs(P, sympy.Rational(repr(value)))))
    return Term(name, tuple(Part(plain, order) for order in family.derivatives))


POROUS_POWER = Family(
    "porous_power",
    "m",
    "exponent of u in ∇·(uᵐ∇u)",
    U * (U**2 + SMALLEST**2) ** (P / 2) / (P + 1),
    ((2, 0), (0, 2)),
    0.5,
    (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0),
)
UPTAKE = Family(
    "uptake",
    "K",
    "u at which uptake is half of its most",
    U / (P + U),
    ((0, 0),),
    0.5,
    (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 4.0),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in (POROUS_POWER, UPTAKE)}


def family_term(name: str, shapes: Mapping[str, float]) -> Term:
    """Return a family's term with the parameter that is given, or with the usual one."""
    family = FAMILIES[name]
    value = shapes.get(name, family.usual)
    if not family.trial[0] <= value <= family.trial[-1]:
        raise SettingsError(
            f"regression.shapes: {family.symbol} = {value:g} of '{name}' is out of range; "
            f"give {family.trial[0]:g} to {family.trial[-1]:g}"
        )
    return family.member(value)


def family_of(term: Term) -> tuple[Family, float] | None:
    """Return a term's family and its parameter; None for terms of no family."""
    family = FAMILIES.get(term.name)
    value = None if family is None else family.parameter(term)
    return None if family is None or value is None else (family, value)
