"""∫ g(u) du for the densities that a response curve meets, against differences of what is returned."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from video2pde.fit.antiderivative import antiderivative
from video2pde.terms.families import POROUS_POWER, UPTAKE
from video2pde.terms.parse import U

POWER, TAKEN = (family.member(value).parts[0].density for family, value in ((POROUS_POWER, 1.4), (UPTAKE, 0.25)))
SLOPE = 1 - 2 * U
INTEGRANDS = {
    "polynomial": (SLOPE * 3 * U**2, 1e-12),
    "rational": (SLOPE * sympy.diff(TAKEN, U), 1e-12),
    "power": (SLOPE * sympy.diff(POWER, U), 2e-4),
    "by rules": (SLOPE * sympy.exp(U), 1e-12),
    "without a rule": (sympy.exp(-(U**3)) * sympy.sqrt(1 + U**4), 1e-4),
}


@pytest.mark.parametrize(("integrand", "tolerance"), INTEGRANDS.values(), ids=list(INTEGRANDS))
def test_its_derivative_is_the_integrand(integrand: sympy.Expr, tolerance: float) -> None:
    at = np.linspace(0.1, 0.95, 60)
    derivative = sympy.lambdify(U, sympy.diff(antiderivative(integrand), U), "numpy")(at)
    wanted = sympy.lambdify(U, integrand, "numpy")(at)
    assert np.abs(derivative - wanted).max() < tolerance * np.abs(wanted).max()


def test_the_power_of_another_density_is_not_taken_for_one_of_u() -> None:
    integrand = (U**2 + sympy.Rational(1, 4)) ** sympy.Rational(7, 10)
    at = np.linspace(0.1, 0.95, 60)
    wrong = sympy.lambdify(U, sympy.diff(U * integrand / sympy.Rational(12, 5), U), "numpy")(at)
    right = sympy.lambdify(U, sympy.diff(antiderivative(integrand), U), "numpy")(at)
    wanted = sympy.lambdify(U, integrand, "numpy")(at)
    assert np.abs(right - wanted).max() < 1e-4 < np.abs(wrong - wanted).max()
