"""Sparse regression: thresholds, ridge, signs, drift modes, and standard errors that hold over noise seeds."""

from __future__ import annotations

import numpy as np
import pytest
from known_fields import assemble, known_analysis, known_field
from pydantic import ValidationError

from video2pde.discovery.regression import fit_library, normal_equations, solve_sparse, SparseFit
from video2pde.discovery.testfunctions import Widths
from video2pde.discovery.weak import WeakSystem
from video2pde.recording.synth import noisy
from video2pde.settings import RegressionSettings

C = ("grad_squared", "laplacian")
FULL = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian")


@pytest.fixture(scope="module")
def system() -> WeakSystem:
    return known_analysis("C")[1].system


def small_system(columns: dict[str, np.ndarray], b: np.ndarray) -> WeakSystem:
    """A weak system whose test functions lie far apart."""
    centres = 100 * np.arange(3 * len(b)).reshape(-1, 3)
    theta = np.stack(list(columns.values()), axis=1)
    return WeakSystem(tuple(columns), theta, b, centres, Widths(1.0, 1.0, 1.0, 4.0))


def test_without_threshold_it_is_least_squares(system: WeakSystem) -> None:
    fit = fit_library("Full", FULL, system, RegressionSettings(threshold=0.0, ridge=0.0))
    expected = np.linalg.lstsq(system.columns(fit.names), system.b, rcond=None)[0]
    assert [fit.coefficients[n] for n in fit.names] == pytest.approx(list(expected), rel=1e-4)


def test_ridge_shrinks() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(400)
    system = small_system({"u": x}, 3 * x)
    fits = [fit_library("L", ("u",), system, RegressionSettings(ridge=r)).coefficients["u"] for r in (0.0, 1e-6, 1.0)]
    assert fits[0] == pytest.approx(3, rel=1e-12)
    assert fits[1] == pytest.approx(3 / (1 + 1e-6), rel=1e-9)
    assert fits[2] == pytest.approx(1.5, rel=1e-9)


def test_share_threshold_ignores_units_and_keeps_what_carries_signal() -> None:
    rng = np.random.default_rng(1)
    big, small, noise = rng.standard_normal((3, 500))
    for unit in (1e-6, 1.0, 1e6):
        system = small_system({"u": big, "u_squared": unit * small}, big + 0.01 * small + 0.03 * noise)
        fit = fit_library("L", ("u", "u_squared"), system, RegressionSettings(threshold=0.02))
        assert fit.active_terms == ("u",)
        fit = fit_library("L", ("u", "u_squared"), system, RegressionSettings(threshold=0.005))
        assert fit.active_terms == ("u", "u_squared")


def test_a_small_term_comes_back_where_nothing_else_explains_its_part() -> None:
    """A background that grows carries nearly all of the signal; a term that shapes the plume is still needed."""
    rng = np.random.default_rng(4)
    big, small = rng.standard_normal((2, 500))
    system = small_system({"u": big, "u_squared": small}, big + 0.01 * small)
    assert fit_library("L", ("u", "u_squared"), system).active_terms == ("u", "u_squared")
    noisy = small_system({"u": big, "u_squared": small}, big + 0.01 * small + 0.03 * rng.standard_normal(500))
    assert fit_library("L", ("u", "u_squared"), noisy).active_terms == ("u",)


def test_coefficient_threshold_is_the_papers() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.standard_normal((2, 500))
    system = small_system({"u": first, "u_squared": 1e4 * second}, first + second)
    paper = RegressionSettings(threshold_on="coefficient", threshold=1e-3)
    assert fit_library("L", ("u", "u_squared"), system, paper).active_terms == ("u",)
    assert fit_library("L", ("u", "u_squared"), system).active_terms == ("u", "u_squared")


def test_thresholding_repeats_until_the_support_settles() -> None:
    """What a dropped column had taken from its neighbour must come back: the rest is solved again."""
    rng = np.random.default_rng(3)
    shared, other, rest = rng.standard_normal((3, 800))
    system = small_system({"u": shared, "u_squared": shared + other}, shared + 0.03 * rest)
    fit = fit_library("L", ("u", "u_squared"), system)
    assert fit.active_terms == ("u",)
    assert fit.coefficients["u"] == pytest.approx(1, rel=2e-3)
    assert fit.iterations == 2
    assert fit_library("L", ("u", "u_squared"), system, RegressionSettings(max_iterations=1)).iterations == 1


def test_sign_constraints_hold_inside_the_regression(system: WeakSystem) -> None:
    free = fit_library("A", ("laplacian",), system)
    assert free.coefficients["laplacian"] < 0
    bound = fit_library("A", ("laplacian",), system, RegressionSettings(signs={"laplacian": "positive"}))
    assert bound.coefficients["laplacian"] == 0
    assert "laplacian" not in bound.active
    # in the right library the constraint changes nothing
    right, signed = (
        fit_library("C", C, system, RegressionSettings(signs=signs))
        for signs in ({}, {"laplacian": "positive", "grad_squared": "positive"})
    )
    assert signed.coefficients == pytest.approx(right.coefficients, rel=1e-4)
    negative = fit_library("C", C, system, RegressionSettings(signs={"grad_squared": "negative"}))
    assert negative.coefficients["grad_squared"] == 0
    with pytest.raises(ValidationError):
        RegressionSettings(signs={"laplacian": "upwards"})  # type: ignore[dict-item]


def test_constrained_solution_is_the_constrained_optimum() -> None:
    rng = np.random.default_rng(4)
    theta = rng.standard_normal((300, 3)) + 0.8 * rng.standard_normal((300, 1))
    system = small_system(dict(zip(("u", "u_squared", "dx"), theta.T, strict=True)), theta @ [1.0, -2.0, 0.5])
    settings = RegressionSettings(threshold=0.0, signs={"u_squared": "positive"})
    fit = fit_library("L", ("u", "u_squared", "dx"), system, settings)
    reduced = np.linalg.lstsq(theta[:, [0, 2]], system.b, rcond=None)[0]
    assert [fit.coefficients[n] for n in ("u", "dx")] == pytest.approx(list(reduced), rel=1e-4)


@pytest.mark.parametrize("mode", ["axes", "scale", "fixed"])
def test_drift_modes(system: WeakSystem, mode: str) -> None:
    fit = fit_library("C", C, system, RegressionSettings(drift=mode))  # type: ignore[arg-type]
    assert fit.names[2:] == {"axes": ("drift_x", "drift_y"), "scale": ("drift",), "fixed": ()}[mode]
    assert fit.coefficients["grad_squared"] == pytest.approx(9.005, rel=0.003)
    assert fit.coefficients["laplacian"] == pytest.approx(0.666, rel=0.003)
    for name in fit.names[2:]:
        assert fit.coefficients[name] == pytest.approx(1, abs=0.003)
    assert all(fit.errors[name] > 0 for name in fit.names)


def test_normal_equations_are_normalised(system: WeakSystem) -> None:
    normal = normal_equations(system)
    assert np.diag(normal.gram) == pytest.approx(np.ones(len(normal.names)))
    assert np.abs(normal.gram).max() <= 1 + 1e-12
    part = normal.take(("laplacian", "drift_x"))
    i, j = normal.names.index("laplacian"), normal.names.index("drift_x")
    assert part.gram[0, 1] == normal.gram[i, j]


def test_explained_is_the_share_of_the_signal(system: WeakSystem) -> None:
    solution = solve_sparse(normal_equations(system).take(("laplacian",)), RegressionSettings(threshold=0.0))
    residual = system.b - system.columns(("laplacian",)) @ solution.coefficients
    assert solution.explained == pytest.approx(1 - residual @ residual / (system.b @ system.b), abs=1e-6)


def test_nothing_is_active_on_an_empty_signal() -> None:
    system = small_system({"u": np.zeros(50), "dx": np.ones(50)}, np.zeros(50))
    fit = fit_library("L", ("u", "dx"), system)
    assert fit.active == ()
    assert fit.explained == 0
    assert fit.errors == {"u": 0.0, "dx": 0.0}
    assert "nothing active" in repr(fit)


# ----------------------------------------------------------------------------- standard errors


def independent_errors(system: WeakSystem, fit: SparseFit) -> list[float]:
    """The textbook formula, which takes overlapping test functions for independent measurements."""
    theta = system.columns(fit.names)
    residual = system.b - theta @ [fit.coefficients[n] for n in fit.names]
    return list(np.sqrt(np.diag(np.linalg.inv(theta.T @ theta)) * residual.var()))


@pytest.mark.parametrize(("name", "terms"), [("C", C), ("A", ("laplacian",))])
def test_standard_errors_match_the_spread_over_noise(name: str, terms: tuple[str, ...]) -> None:
    found, stated, textbook = [], [], []
    for seed in range(12):
        weak, _ = assemble(noisy(known_field(name), 0.02, seed))
        fit = fit_library(name, terms, weak.system)
        found.append([fit.coefficients[n] for n in fit.names])
        stated.append([fit.errors[n] for n in fit.names])
        textbook.append(independent_errors(weak.system, fit))
    spread = np.std(found, axis=0, ddof=1)
    ratio, broken = np.mean(stated, axis=0) / spread, np.mean(textbook, axis=0) / spread
    assert ratio.min() > 0.5
    assert ratio.max() < 2.5
    assert 0.6 < np.exp(np.log(ratio).mean()) < 1.9
    assert np.exp(np.log(broken).mean()) < 0.55
