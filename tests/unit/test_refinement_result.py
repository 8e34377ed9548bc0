"""The verdict on a training, and the comparison with calibrated intervals."""

import numpy as np
import pytest

from video2pde.estimate import Estimate
from video2pde.refinement.result import check_agreement, History, judge_convergence, SeedRun, summarise

STEPS = np.arange(10.0, 1001.0, 10.0)


def make_history(coefficients: np.ndarray, data: float = 0.01, held_data: float = 0.01, residual: float = 0.02):
    n = len(STEPS)
    checked = STEPS[24::25]
    ones = np.ones(len(checked))
    return History(
        np.zeros(0),
        np.zeros(0),
        STEPS,
        np.full(n, data),
        np.full(n, residual),
        coefficients,
        checked,
        held_data * ones,
        residual * ones,
    )


def settled(final: float, amplitude: float = 1.0) -> np.ndarray:
    return final - amplitude * np.exp(-STEPS / 100.0)


def make_run(seed: int, values: list[float], converged: bool = True) -> SeedRun:
    history = make_history(np.column_stack([settled(9.0), settled(0.7)]))
    return SeedRun(seed, np.array(values), history, 0.01, 0.02, converged, "why", (0, 1000), 2.0)


def test_settled_coefficients_converge():
    history = make_history(np.column_stack([settled(9.0), settled(0.7, 0.1)]))
    converged, reason = judge_convergence(history, np.array([8.0, 1.0]), 1000)
    assert converged
    assert "held-out residual 2.00%" in reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coefficients": np.column_stack([settled(9.0), 0.7 * STEPS / 1000])}, "still moved"),
        ({"held_data": 0.02}, "held-out points; lower refinement.width"),
        ({"residual": 0.7}, "unexplained"),
    ],
)
def test_what_has_not_converged_says_why(change, words):
    arguments = {"coefficients": np.column_stack([settled(9.0), settled(0.7, 0.1)]), **change}
    converged, reason = judge_convergence(make_history(**arguments), np.array([8.0, 1.0]), 1000)
    assert not converged
    assert words in reason


def test_a_stopped_run_has_not_converged():
    history = make_history(np.column_stack([settled(9.0), settled(0.7)]))
    assert judge_convergence(history, np.ones(2), 2000) == (False, "stopped after 1000 of 2000 joint steps")


def test_a_vanishing_coefficient_is_judged_by_its_scale():
    wobble = 1e-4 * np.where(STEPS > 850, 1.0, -1.0)
    history = make_history(np.column_stack([settled(9.0), wobble]))
    assert judge_convergence(history, np.array([8.0, 1.0]), 1000)[0]
    assert not judge_convergence(history, np.array([8.0, 1e-3]), 1000)[0]


def test_seeds_give_mean_and_spread():
    both = summarise(("a", "b"), (make_run(1, [9.0, 0.6]), make_run(2, [9.2, 0.8])), (1.0, 1.0), "cpu", ())
    assert both.coefficients == pytest.approx({"a": 9.1, "b": 0.7})
    assert both.spread == pytest.approx({"a": 0.2 / np.sqrt(2), "b": 0.2 / np.sqrt(2)})
    assert both.seconds == 4.0
    alone = summarise(("a", "b"), (make_run(1, [9.0, 0.6]),), None, "cpu", ())
    assert alone.spread is None
    assert alone.start is None


def test_one_unconverged_seed_is_named():
    result = summarise(("a", "b"), (make_run(1, [9.0, 0.6]), make_run(7, [9.2, 0.8], False)), None, "cpu", ())
    assert not result.converged
    assert result.reason == "seed 7: why"


def test_agreement_with_intervals():
    result = summarise(("a", "b"), (make_run(1, [9.0, 0.6]),), None, "cpu", ())
    rows = check_agreement(result, {"a": Estimate(9.1, 8.9, 9.3), "b": Estimate(0.7, 0.65, 0.75)})
    assert [(row.term, row.inside) for row in rows] == [("a", True), ("b", False)]
    assert [row.distance for row in rows] == pytest.approx([0.5, 2.0])
