"""Joint calibration on films of one known law: normal equations that add up, and what they find."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_problems import known_problem

from video2pde.agreement import NORMAL
from video2pde.calibration import Fit
from video2pde.calibration.fit import evaluate, fit_rollout
from video2pde.calibration.linear import Linear
from video2pde.settings import CalibrationSettings
from video2pde.study.equality import Asked
from video2pde.study.joint import joint_weights, solve_jointly, weigh
from video2pde.study.own import Answer, eliminate_own, OwnFit, settle_own


@pytest.fixture(scope="module")
def fit() -> Fit:
    problem, start = known_problem("C", 48, 60)
    return fit_rollout(problem, start, CalibrationSettings())


def test_what_is_left_of_the_equations_has_the_same_solution() -> None:
    rng = np.random.default_rng(2)
    columns, error = rng.normal(size=(60, 7)) * [1, 1e3, 1e-3, 1, 5, 1e4, 2], rng.normal(size=60)
    linear = Linear(np.zeros((7, 1, 1)), np.ones(1, bool), columns.T @ columns, columns.T @ error)
    curvature, slope = eliminate_own(linear, 2)
    assert -np.linalg.solve(curvature, slope) == pytest.approx(linear.solve()[:2], rel=1e-6)
    assert np.diag(np.linalg.inv(curvature)) == pytest.approx(linear.variances[:2], rel=1e-6)


def test_own_unknowns_follow_the_law_that_is_given(fit: Fit) -> None:
    """Drift and initial frame make up for part of a law that is not theirs, and the way back leads to their own."""
    problem, _ = known_problem("C", 48, 60)
    law = fit.coefficients * [1.02, 0.97]
    fixed = evaluate(problem, problem.look({**fit.values, "law": law}, fit.start, fit.base, fit.modes))
    linear = settle_own(problem, fit, law)
    assert linear.cost < fixed.cost
    asked = solve_jointly(law, [Answer("a", *eliminate_own(linear, 2), 1.0)])
    assert asked == pytest.approx(fit.coefficients, rel=0.005)


def test_films_that_know_more_count_more() -> None:
    def film(name: str, wants: list[float], curvature: list[list[float]]) -> Answer:
        matrix = np.array(curvature)
        return Answer(name, matrix, matrix @ (np.zeros(2) - np.array(wants)), 1.0)

    sure, unsure = film("a", [1.0, 2.0], [[9.0, 1.0], [1.0, 9.0]]), film("b", [2.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    found = solve_jointly(np.zeros(2), [sure, unsure])
    assert found == pytest.approx(
        joint_weights([sure, unsure])[0] @ [1.0, 2.0] + joint_weights([sure, unsure])[1] @ [2.0, 2.0]
    )
    assert 1.0 < found[0] < 1.15
    shifted = solve_jointly(np.zeros(2), [sure, unsure], [np.array([0.1, 0.0]), np.array([0.1, 0.0])])
    assert shifted - found == pytest.approx([0.1, 0.0], abs=1e-12)


def own_fit(name: str, half: float) -> OwnFit:
    """Return what a film says of one coefficient with this half-width."""
    asked = Asked(name, np.zeros(1), np.array([half]), np.ones((4, 1)))
    return OwnFit(asked, np.zeros(1), np.zeros((3, 1)), None)


def test_a_film_whose_interval_is_wider_than_noise_alone_counts_less() -> None:
    same = [Answer(name, np.array([[4.0]]), np.array([2.0]), 1.0) for name in "ab"]
    weighted = weigh(same, {"a": own_fit("a", 1.0), "b": own_fit("b", 4.0)})
    # variances differ by 16, and so do weights; each film by itself asks for the same law as before
    assert weighted[0].curvature / weighted[1].curvature == pytest.approx(16.0)
    assert [float(w.slope[0] / w.curvature[0, 0]) for w in weighted] == pytest.approx([0.5, 0.5])
    alike = weigh(same, {"a": own_fit("a", 2.0), "b": own_fit("b", 2.0)})
    assert np.linalg.inv(alike[0].curvature)[0, 0] == pytest.approx((2.0 / NORMAL) ** 2)


def test_little_noise_counts_for_nothing_where_the_interval_is_as_wide() -> None:
    """Beside much lack of fit a film with a ninth of the noise knows no more than another."""
    clear, noisy = (Answer(n, np.array([[c]]), np.array([c]), 1.0) for n, c in (("a", 36.0), ("b", 4.0)))
    weighted = weigh([clear, noisy], {name: own_fit(name, 1.0) for name in "ab"})
    assert weighted[0].curvature == pytest.approx(weighted[1].curvature)
