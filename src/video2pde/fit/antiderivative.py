"""∫ g(u) du of densities, in bounded time whatever g is.

SymPy's own search does not end for powers such as u (u² + ε²)^0.7: it looks for the exact hypergeometric function.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import sympy
from numpy.polynomial import Chebyshev, Polynomial
from sympy.integrals.manualintegrate import manualintegrate

from video2pde.terms.families import SMALLEST
from video2pde.terms.parse import U

DEGREE, FITTED = 16, (-0.25, 1.5)
"""Degree of the polynomial that stands for a density no rule integrates, and the values of u that it is made for."""


@cache
def antiderivative(integrand: sympy.Expr) -> sympy.Expr:
    """Return G(u) with G′ = g: exact for rational g, up to ε²/u² for powers of u² + ε².

    Those are ∫ u^k (u² + ε²)^q du ≈ u^{k+1} (u² + ε²)^q / (k + 1 + 2q), ε being a grey level. Anything else is
    integrated by rules, and where no rule fits as a polynomial through g.
    """
    whole = sympy.together(integrand)
    if whole.is_rational_function(U):
        return sympy.integrate(sympy.expand(integrand), U)
    total = sympy.Integer(0)
    for summand in sympy.Add.make_args(sympy.expand(integrand)):
        constant, varying = summand.as_independent(U, as_Add=False)
        total += constant * _integrate(varying)
    return total


def _integrate(varying: sympy.Expr) -> sympy.Expr:
    degree = _degree(varying)
    if degree is not None:
        return U * varying / (degree + 1)
    found = manualintegrate(varying, U)
    return _fit(varying) if found.has(sympy.Integral) else found


def _degree(varying: sympy.Expr) -> sympy.Expr | None:
    """Return k + 2q of u^k (u² + ε²)^q; None where it is not that, or where it is −1."""
    degree = sympy.Integer(0)
    for base, exponent in varying.as_powers_dict().items():
        near = sympy.expand(base - U**2)
        smoothed = near.is_number and bool(0 < near <= SMALLEST**2)
        if not exponent.is_number or not (base == U or smoothed):
            return None
        degree += exponent if base == U else 2 * exponent
    return None if degree == -1 else degree


def _fit(varying: sympy.Expr) -> sympy.Expr:
    evaluate = np.vectorize(sympy.lambdify(U, varying, "math"), otypes=[float])
    curve = Chebyshev.interpolate(evaluate, DEGREE, domain=FITTED).integ().convert(kind=Polynomial)
    return sympy.Poly.from_list([float(c) for c in curve.coef[::-1]], U).as_expr()
