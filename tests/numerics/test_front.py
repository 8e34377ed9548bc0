"""Front-aware recalibration: soft radii, the objective's parts, a Laplacian that stays positive."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_problems import known_problem, pose, SETTINGS, truth_of
from known_fields import known_field

from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.problem import Problem
from video2pde.front import _Target, _Unknowns, fit_front, FrontFit
from video2pde.rollout.metrics import front_radii
from video2pde.settings import load_settings

Posed = tuple[Problem, list[float], Fit]


@pytest.fixture(scope="module")
def posed() -> Posed:
    problem, guess = known_problem("C")
    return problem, guess, fit_rollout(problem, guess, SETTINGS.calibration)


@pytest.fixture(scope="module")
def fronts(posed: Posed) -> tuple[FrontFit, ...]:
    problem, guess, fit = posed
    starts = {"calibrated": list(fit.coefficients), "pinn": [0.9 * guess[0], 1.3 * guess[1]]}
    background = np.full(len(problem.window.times), 0.1)
    return fit_front(problem, fit, starts, SETTINGS.front, SETTINGS.rollout, background)


def test_both_starts_end_at_the_law(posed: Posed, fronts: tuple[FrontFit, ...]) -> None:
    truth = dict(zip(("grad_squared", "laplacian"), truth_of("C", posed[0]), strict=True))
    assert [(f.source, f.positive) for f in fronts] == [("calibrated", True), ("pinn", True), ("calibrated", False)]
    assert all(f.converged for f in fronts)
    for found in fronts:
        assert found.coefficients == pytest.approx(truth, rel=0.05)
        assert found.coefficients == pytest.approx(fronts[0].coefficients, rel=2e-3)


def test_parts_make_up_the_objective(fronts: tuple[FrontFit, ...]) -> None:
    front = SETTINGS.front
    for found in fronts:
        total = found.pixel + front.radius_weight * found.radius + front.growth_weight * found.growth
        assert found.objective == pytest.approx(total)
        assert min(found.pixel, found.radius, found.growth) > 0


def test_a_wrong_law_has_a_larger_objective(posed: Posed, fronts: tuple[FrontFit, ...]) -> None:
    problem, _, fit = posed
    background = np.full(len(problem.window.times), 0.1)
    target = _Target(problem, fit, SETTINGS.front, SETTINGS.rollout, background)
    best = np.array(list(fronts[0].coefficients.values()))
    found = [target.sum_up([point]) for point in (best, best * [1.05, 1.0], best * [1.0, 1.2])]
    costs = [sums.objective for sums in found if sums is not None]
    assert len(costs) == 3
    assert costs[0] < min(costs[1:])


def test_the_sums_are_those_of_the_residuals(posed: Posed) -> None:
    """Slope and objective, summed chunk by chunk, against differences of the objective."""
    problem, guess, fit = posed
    background = np.full(len(problem.window.times), 0.1)
    target = _Target(problem, fit, SETTINGS.front, SETTINGS.rollout, background)
    unknowns = _Unknowns(problem.law.scale, np.zeros(2, bool))
    z = unknowns.begin(1.1 * np.asarray(guess))
    sums = target.sum_up(unknowns.neighbours(z))
    assert sums is not None
    for index, row in enumerate(np.eye(2)):
        ahead, behind = (target.sum_up([unknowns.coefficients(z + side * 1e-3 * row)]) for side in (1, -1))
        assert ahead is not None
        assert behind is not None
        slope = (ahead.objective - behind.objective) / 2e-3
        assert 2 * sums.slope[index] == pytest.approx(slope, rel=0.01)


def test_soft_radii_are_those_of_the_fronts(posed: Posed) -> None:
    problem, _, fit = posed
    background = np.full(len(problem.window.times), 0.1)
    target = _Target(problem, fit, SETTINGS.front, SETTINGS.rollout, background)
    assert len(target.frames) == 40
    observed = np.asarray(target.observed, float)
    sharp = front_radii(observed, problem.window.grid, SETTINGS.rollout.levels, background=target.background)
    wide = target.radii[:, 2:]
    # a soft edge smears the radius by little where the front is steep
    assert np.abs(wide / sharp[:, 2:] - 1).max() < 0.15
    hard = SETTINGS.front.model_copy(update={"softness": 2e-4})
    narrow = _Target(problem, fit, hard, SETTINGS.rollout, background)
    above = observed[:, None] - 0.1 >= narrow.levels[:, None, None]
    cell = problem.window.grid.dx * problem.window.grid.dy
    assert narrow.radii == pytest.approx(np.sqrt(above.sum(axis=(2, 3)) * cell / np.pi), rel=0.005)


def test_a_start_that_cannot_be_rolled_out_is_no_convergence(posed: Posed) -> None:
    """Backward diffusion blows up on the way; in log-space the same start turns positive and finds the law."""
    problem, guess, fit = posed
    background = np.full(len(problem.window.times), 0.1)
    found = fit_front(problem, fit, {"far": [guess[0], -5.0]}, SETTINGS.front, SETTINGS.rollout, background)
    positive, free = found
    assert positive.positive
    assert positive.converged
    assert positive.coefficients == pytest.approx(dict(zip(fit.terms, fit.coefficients, strict=True)), rel=0.05)
    assert not free.converged
    assert free.reason == "no rollout could be completed from this start"


def test_a_diffusion_of_ones_own_stays_positive_too() -> None:
    own = {"half": [{"density": "u/2", "derivative": "xx"}, {"density": "u/2", "derivative": "yy"}]}
    settings = load_settings(
        overrides={
            "run.workers": 1,
            "terms": own,
            "libraries": {"Mine": ["grad_squared", "half"]},
            "front.times": 8,
        }
    )
    problem, guess = pose(known_field("C", 48, 60), "Mine", settings)
    fit = fit_rollout(problem, guess, settings.calibration)
    background = np.full(len(problem.window.times), 0.1)
    starts = {"far": [guess[0], -5.0]}
    positive, free = fit_front(problem, fit, starts, settings.front, settings.rollout, background)
    assert positive.positive
    assert positive.converged
    assert positive.coefficients["half"] == pytest.approx(2 * 0.666, rel=0.05)
    assert not free.positive
