"""The scores of the benchmarks: E∞, TPR, structure, and the closed forms that they are applied to."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import literature
from benchmarks.growth import Growth
from benchmarks.support.scores import active_terms, largest_error, positivity_ratio, same_structure

TRUTH = {"a": 2.0, "b": -0.5}


def test_the_exact_law_scores_perfectly() -> None:
    assert largest_error(TRUTH, TRUTH) == 0.0
    assert positivity_ratio(TRUTH, TRUTH) == 1.0
    assert same_structure(TRUTH, TRUTH)


def test_the_largest_relative_error_counts() -> None:
    assert largest_error({"a": 2.2, "b": -0.4}, TRUTH) == pytest.approx(0.2)


def test_a_dropped_term_is_off_by_one() -> None:
    assert largest_error({"a": 2.0}, TRUTH) == 1.0
    assert largest_error({"a": 2.0, "b": 0.0}, TRUTH) == 1.0


def test_false_terms_leave_the_error_alone_but_not_the_ratio() -> None:
    found = {**TRUTH, "c": 0.1, "d": 0.1}
    assert largest_error(found, TRUTH) == 0.0
    assert positivity_ratio(found, TRUTH) == pytest.approx(2 / 4)
    assert not same_structure(found, TRUTH)


def test_the_ratio_counts_missed_and_false_terms() -> None:
    assert positivity_ratio({"a": 1.0, "c": 1.0}, TRUTH) == pytest.approx(1 / 3)
    assert positivity_ratio({}, TRUTH) == 0.0
    assert positivity_ratio({}, {}) == 1.0


def test_a_coefficient_of_zero_is_no_term() -> None:
    assert active_terms({"a": 0.0, "b": 1e-13, "c": -1e-6}) == {"c"}
    assert same_structure({**TRUTH, "c": 0.0}, TRUTH)


def test_an_error_needs_a_true_term() -> None:
    with pytest.raises(ValueError, match="needs a true term"):
        largest_error({"a": 1.0}, {"a": 0.0})


def test_a_slope_is_the_power_of_the_growth() -> None:
    sizes = (100.0, 200.0, 400.0)
    assert Growth("", "", sizes, tuple(3e-4 * n**1.5 for n in sizes)).slope == pytest.approx(1.5)


def flux_residual(benchmark: literature.Benchmark, law: dict[str, float], t: float, x: float, y: float) -> float:
    """Difference the closed form at a smooth point: u_t less the law's right-hand side, over the size of u_t."""
    h = 1e-3
    step = {"x": (h, 0.0), "y": (0.0, h)}

    def power(n: int, dx: float, dy: float) -> float:
        return float(benchmark.solution(np.array([[x + dx]]), np.array([[y + dy]]), t)[0, 0] ** n)

    def differ(n: int, order: str, dx: float = 0.0, dy: float = 0.0) -> float:
        if not order:
            return power(n, dx, dy)
        i, j = step[order[0]]
        return (differ(n, order[1:], dx + i, dy + j) - differ(n, order[1:], dx - i, dy - j)) / (2 * h)

    at = np.array([[x]]), np.array([[y]])
    rate = float((benchmark.solution(*at, t + h) - benchmark.solution(*at, t - h))[0, 0] / (2 * h))
    assert abs(rate) > 1e-3, "the point says nothing: choose one where u changes"
    names = {literature.term_name(n, order): (n, order) for n in literature.POWERS for order in literature.ORDERS}
    return abs(rate - sum(c * differ(*names[name]) for name, c in law.items())) / abs(rate)


@pytest.mark.parametrize("benchmark", literature.BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_closed_forms_obey_their_law(benchmark: literature.Benchmark) -> None:
    x, y, t = {"anisotropic porous medium": (0.3, -0.4, 1.3), "inviscid Burgers": (-1.2, 0.1, 1.5)}.get(
        benchmark.name, (-0.3, 0.2, 0.9)
    )
    assert flux_residual(benchmark, benchmark.law, t, x, y) < 1e-4
    name = next(iter(benchmark.law))
    wrong = {**benchmark.law, name: 1.1 * benchmark.law[name]}
    assert flux_residual(benchmark, wrong, t, x, y) > 1e-2


def test_the_library_of_the_public_fields_holds_every_true_term_and_false_ones() -> None:
    terms = literature.make_settings({}).libraries[literature.LIBRARY]
    assert len(terms) == 18
    for benchmark in literature.BENCHMARKS:
        assert set(benchmark.law) < set(terms)
