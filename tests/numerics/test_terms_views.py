"""Every view of every catalogue term agrees with the term's mathematics, at the expected order."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import sympy
from manufactured import BASE, fitted_order, LENGTHS, sample_field, velocity, WAVES, Waves

from video2pde.discovery.testfunctions import kernel
from video2pde.discovery.weak import weak_columns, WeakColumns
from video2pde.settings import WeakSettings
from video2pde.terms import CATALOGUE, Part, Term
from video2pde.terms.families import FAMILIES
from video2pde.terms.parse import U, U_X, U_Y, V_X, V_Y
from video2pde.terms.stencil import apply_term

SETTINGS = WeakSettings(sigma_space=0.08, sigma_time=0.08, gradient_sigma=0.0, noise_correction=False)
FRAMES = 61
X, Y = sympy.symbols("x y", real=True)
TERMS = pytest.mark.parametrize("name", list(CATALOGUE))
# the catalogue in a mathematician's hand, written without looking at its parts
WRITTEN_OUT = {
    "constant": lambda u: u - u + 1,
    "u": lambda u: u,
    "u_squared": lambda u: u**2,
    "u_cubed": lambda u: u**3,
    "grad_squared": lambda u: u.diff(X) ** 2 + u.diff(Y) ** 2,
    "u_grad_squared": lambda u: u * (u.diff(X) ** 2 + u.diff(Y) ** 2),
    "laplacian": lambda u: u.diff(X, 2) + u.diff(Y, 2),
    "porous": lambda u: (u * u.diff(X)).diff(X) + (u * u.diff(Y)).diff(Y),
    "porous_squared": lambda u: (u**2 * u.diff(X)).diff(X) + (u**2 * u.diff(Y)).diff(Y),
    "u_laplacian": lambda u: u * (u.diff(X, 2) + u.diff(Y, 2)),
    "biharmonic": lambda u: u.diff(X, 4) + 2 * u.diff(X, 2, Y, 2) + u.diff(Y, 4),
    "saturation": lambda u: u / (1 + u),
    "uptake": lambda u: u / (sympy.Rational(1, 2) + u),
    "dx": lambda u: u.diff(X),
    "dy": lambda u: u.diff(Y),
    "dxx": lambda u: u.diff(X, 2),
    "dyy": lambda u: u.diff(Y, 2),
    "dxy": lambda u: u.diff(X, Y),
    "drift_x": lambda u: -V_X * u.diff(X),
    "drift_y": lambda u: -V_Y * u.diff(Y),
}


def smooth_expression() -> sympy.Expr:
    """The manufactured field at t = 0, symbolically."""
    return sympy.Float(BASE) + sum(
        sympy.Float(a) * sympy.sin(sympy.Float(k) * X + sympy.Float(l) * Y + sympy.Float(p)) for a, k, l, p, _ in WAVES
    )


def exact_values(term: Term, t: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The residual view on exact derivatives, (t, y, x)."""
    v = velocity(t)[:, :, None, None]
    return term.evaluate(Waves().jets(term.jets, t, y, x), v[:, 0], v[:, 1]) + np.zeros((len(t), len(y), len(x)))


def carry_out(term: Term, u: sympy.Expr) -> sympy.Expr:
    """Differentiate the parts on an explicit field, without the term's own chain rule."""
    total = sympy.Integer(0)
    for part in term.parts:
        value = part.density.subs({U: u, U_X: u.diff(X), U_Y: u.diff(Y)}, simultaneous=True)
        for symbol, times in zip((X, Y), part.derivative, strict=True):
            value = value.diff(symbol, times) if times else value
        total += value
    return total


# ----------------------------------------------------------------------------- the residual view


@TERMS
def test_residual_is_the_term_carried_out(name: str) -> None:
    term, u = CATALOGUE[name], smooth_expression()
    points = np.array([[0.7, 1.1], [3.3, 5.2], [6.1, 2.4], [8.2, 0.3]])
    expected = sympy.lambdify((X, Y, V_X, V_Y), carry_out(term, u))
    v_x, v_y = velocity(np.zeros(1))[0]
    for x, y in points:
        found = exact_values(term, np.zeros(1), np.array([y]), np.array([x]))[0, 0, 0]
        assert found == pytest.approx(expected(x, y, v_x, v_y), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("name", list(WRITTEN_OUT))
def test_catalogue_means_what_its_names_say(name: str) -> None:
    u = sympy.Function("f")(X, Y)
    assert sympy.simplify(carry_out(CATALOGUE[name], u) - WRITTEN_OUT[name](u).doit()) == 0


@pytest.mark.parametrize("m", [0.25, 1.0, 1.7345, 2.0, 4.0])
def test_a_power_of_u_is_one_where_there_is_something_to_see(m: float) -> None:
    """∇·(uᵐ∇u) = uᵐΔu + m uᵐ⁻¹|∇u|², to the thousandth that a smooth power near zero costs."""
    jets = Waves().jets(((1, 0), (0, 1), (2, 0), (0, 2)), np.zeros(1), np.linspace(0, 7, 9), np.linspace(0, 9, 11))
    u, u_x, u_y = jets[0, 0], jets[1, 0], jets[0, 1]
    assert u.min() > 0.15
    truth = u**m * (jets[2, 0] + jets[0, 2]) + m * u ** (m - 1) * (u_x**2 + u_y**2)
    found = FAMILIES["porous_power"].member(m).evaluate(jets)
    assert np.abs(found - truth).max() < 1e-3 * np.abs(truth).max()


@pytest.mark.parametrize(("name", "value"), [("porous_power", 0.75), ("porous_power", 2.0), ("uptake", 0.3)])
def test_the_slope_of_a_family_is_what_its_parameter_changes(name: str, value: float) -> None:
    family, step = FAMILIES[name], 0.01
    orders = {order for term in (family.member(value), family.slope(value)) for order in term.jets}
    jets = Waves().jets(tuple(orders), np.zeros(1), np.linspace(0, 7, 9), np.linspace(0, 9, 11))
    high, low = (family.member(value + sign * step).evaluate(jets) for sign in (1, -1))
    slope = family.slope(value).evaluate(jets)
    assert np.abs((high - low) / (2 * step) - slope).max() < 2e-3 * np.abs(slope).max()
    assert (
        np.abs((high - low) / (2 * step) - family.slope(value + 0.3).evaluate(jets)).max() > 0.05 * np.abs(slope).max()
    )


@TERMS
def test_jax_residual_equals_numpy_residual(name: str) -> None:
    term = CATALOGUE[name]
    t, y, x = np.zeros(1), np.linspace(0, 7, 5), np.linspace(0, 9, 6)
    jets = Waves().jets(term.jets, t, y, x)
    numpy_value, jax_value = (term.evaluate(jets, 0.6, -0.4, backend) for backend in ("numpy", "jax"))
    assert np.allclose(numpy_value, np.asarray(jax_value), rtol=2e-5, atol=1e-6)


# ----------------------------------------------------------------------------- the stencil view


def stencil_errors(term: Term, truth: Term, accuracy: int, sizes: tuple[int, ...]) -> np.ndarray:
    """Largest error of the stencil of ``term`` against the residual of ``truth``, relative to its size, inside."""
    errors = []
    for n in sizes:
        t, y, x = np.zeros(1), np.linspace(0, LENGTHS[1], n), np.linspace(0, LENGTHS[0], n)
        v_x, v_y = velocity(t)[0]
        exact = exact_values(truth, t, y, x)[0]
        values = Waves().jet((0, 0), t, y, x)[0]
        found = apply_term(term, values, x[1], y[1], (v_x, v_y), accuracy=accuracy)
        inner = (slice(8, -8), slice(8, -8))
        errors.append(np.abs(found - exact)[inner].max() / np.abs(exact).max())
    return np.array(errors)


@TERMS
@pytest.mark.parametrize("accuracy", [2, 4])
def test_stencil_converges_to_the_residual(name: str, accuracy: int) -> None:
    term, sizes = CATALOGUE[name], (72, 108, 162)
    errors = stencil_errors(term, term, accuracy, sizes)
    if term.jets in ((), ((0, 0),)):
        assert errors.max() < 1e-13
    else:
        assert abs(fitted_order(np.array(sizes), errors) - accuracy) < 0.25
        assert errors[-1] < 0.02


# ----------------------------------------------------------------------------- the weak view


@lru_cache(maxsize=8)
def columns_of(n: int, pitch: str, terms: tuple[Term, ...]) -> WeakColumns:
    field = sample_field(n, FRAMES, pitch)
    return weak_columns(field, velocity(field.times), terms, SETTINGS)


def weak_errors(term: Term, truth: Term, sizes: tuple[int, ...], pitch: str = "cells") -> np.ndarray:
    """Error of the weak column of ``term`` against ⟨φ, truth⟩ by quadrature of the exact term, relative to its size."""
    errors = []
    for n in sizes:
        field = sample_field(n, FRAMES, pitch)
        columns = columns_of(n, pitch, (term,))
        rng = np.random.default_rng(3)
        system = columns.draw(12, rng)
        exact = np.array([weak_truth(truth, field, columns, centre) for centre in system.centres])
        errors.append(np.abs(system.theta[:, 0] - exact).max() / max(np.abs(exact).max(), 1e-3))
    return np.array(errors)


def weak_truth(term: Term, field, columns: WeakColumns, centre: np.ndarray) -> float:
    """Integrate φ × T(u) around one centre; over cells, T is averaged by three-point Gauss in each direction."""
    widths, grid = columns.widths, field.grid
    weights = [kernel(s, widths.support, 0, 1.0) for s in (widths.t, widths.y, widths.x)]
    index = [np.arange(c - len(w) // 2, c + len(w) // 2 + 1) for c, w in zip(centre, weights, strict=True)]
    nodes, gauss = np.polynomial.legendre.leggauss(3) if grid.pitch == "cells" else (np.zeros(1), np.array([2.0]))
    total = np.zeros([len(i) for i in index])
    for node_y, weight_y in zip(nodes, gauss / 2, strict=True):
        for node_x, weight_x in zip(nodes, gauss / 2, strict=True):
            y, x = grid.y[index[1]] + node_y * grid.dy / 2, grid.x[index[2]] + node_x * grid.dx / 2
            total += weight_y * weight_x * exact_values(term, field.times[index[0]], y, x)
    return float(np.einsum("tyx,t,y,x->", total, *weights))


def is_linear(term: Term) -> bool:
    return all(sympy.diff(part.density, U, 2) == 0 and not part.uses_gradient for part in term.parts)


@TERMS
def test_weak_column_converges_to_the_residual(name: str) -> None:
    term = CATALOGUE[name]
    sizes = (28, 38, 52)
    errors = weak_errors(term, term, sizes)
    if is_linear(term):
        # all derivatives sit on the test function: sums over cells are exact but for single precision
        assert errors.max() < 3e-4
        assert errors[-1] < 5e-5
    else:
        # point values from cell averages, and back: fourth order
        assert 3.3 < fitted_order(np.array(sizes), errors) < 6.5
        assert errors[-1] < 1e-3


@pytest.mark.parametrize("name", ["grad_squared", "laplacian", "u_laplacian", "drift_y"])
def test_weak_column_of_point_samples(name: str) -> None:
    assert weak_errors(CATALOGUE[name], CATALOGUE[name], (60,), "nodes").max() < 1e-3


def test_left_side_is_the_time_derivative() -> None:
    field = sample_field(42, FRAMES)
    columns = columns_of(42, "cells", (CATALOGUE["u"],))
    system = columns.draw(40, np.random.default_rng(1))
    widths = columns.widths
    weights = [kernel(s, widths.support, 0, 1.0) for s in (widths.t, widths.y, widths.x)]
    rate = Waves((field.grid.dx, field.grid.dy)).jet((0, 0), field.times, field.grid.y, field.grid.x, time_order=1)
    for centre, b in zip(system.centres, system.b, strict=True):
        box = tuple(slice(c - len(w) // 2, c + len(w) // 2 + 1) for c, w in zip(centre, weights, strict=True))
        assert b == pytest.approx(float(np.einsum("tyx,t,y,x->", rate[box], *weights)), abs=2e-5)


# ----------------------------------------------------------------------------- broken variants must be rejected


def swapped(term: Term) -> Term:
    """Exchange x and y in the derivatives."""
    return replace(term, parts=tuple(Part(p.density, (p.derivative[1], p.derivative[0])) for p in term.parts))


def negated(term: Term) -> Term:
    return replace(term, parts=tuple(Part(-p.density, p.derivative) for p in term.parts))


@pytest.mark.parametrize(
    ("broken", "name"),
    [(swapped, "dx"), (swapped, "dyy"), (swapped, "drift_x"), (negated, "laplacian"), (negated, "u_laplacian")],
)
def test_broken_terms_are_rejected(broken, name: str) -> None:
    truth, wrong = CATALOGUE[name], broken(CATALOGUE[name])
    assert stencil_errors(wrong, truth, 4, (72,))[0] > 0.1
    assert weak_errors(wrong, truth, (42,))[0] > 0.1


def test_dropped_part_is_rejected() -> None:
    truth = CATALOGUE["u_laplacian"]
    wrong = replace(truth, parts=truth.parts[:2])
    sizes = (48, 72, 108)
    assert abs(fitted_order(np.array(sizes), stencil_errors(wrong, truth, 4, sizes))) < 0.5
    assert weak_errors(wrong, truth, (42,))[0] > 0.1
