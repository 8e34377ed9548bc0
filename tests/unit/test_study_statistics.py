"""Statistics over recordings: against a published worked example, and against known truths."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.study.equality import Asked, find_outliers, judge_equality
from video2pde.study.meta import pool
from video2pde.study.trends import find_trend

# Thirteen trials of the BCG vaccine (Colditz et al. 1994): cases and others, treated and not, and the latitude.
# The numbers below were published for the R package metafor (Viechtbauer 2010, Journal of Statistical Software 36/3).
BCG = np.array(
    [
        (4, 119, 11, 128, 44),
        (6, 300, 29, 274, 55),
        (3, 228, 11, 209, 42),
        (62, 13536, 248, 12619, 52),
        (33, 5036, 47, 5761, 13),
        (180, 1361, 372, 1079, 44),
        (8, 2537, 10, 619, 19),
        (505, 87886, 499, 87892, 13),
        (29, 7470, 45, 7232, 27),
        (17, 1699, 65, 1600, 42),
        (186, 50448, 141, 27197, 18),
        (5, 2493, 3, 2338, 33),
        (27, 16886, 29, 17825, 33),
    ],
    float,
)


def trials() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log relative risks, their variances, and the latitudes."""
    a, b, c, d, latitude = BCG.T
    return np.log(a / (a + b) / (c / (c + d))), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d), latitude


def test_mean_and_heterogeneity_are_the_published_ones() -> None:
    values, variances, _ = trials()
    found = pool(values, variances)
    assert found.mean.value == pytest.approx(-0.7145, abs=5e-5)
    assert found.errors[0] == pytest.approx(0.1798, abs=5e-5)
    assert found.tau.value**2 == pytest.approx(0.3132, abs=5e-5)
    assert found.i_squared == pytest.approx(0.9222, abs=5e-5)
    assert found.q == pytest.approx(152.2330, abs=5e-5)
    assert found.freedom == 12
    assert found.tau.low**2 == pytest.approx(0.1197, abs=5e-5)
    assert found.tau.high**2 == pytest.approx(1.1115, abs=5e-5)


def test_regression_on_a_condition_is_the_published_one() -> None:
    values, variances, latitude = trials()
    found = pool(values, variances, np.column_stack([np.ones(13), latitude]))
    assert [c.value for c in found.coefficients] == pytest.approx([0.2515, -0.0291], abs=5e-5)
    assert found.errors == pytest.approx([0.2491, 0.0072], abs=5e-5)
    assert found.tau.value**2 == pytest.approx(0.0764, abs=1e-4)  # metafor's own iteration stops within 1e-5
    assert found.q == pytest.approx(30.7331, abs=5e-5)
    line = find_trend("y", "latitude", latitude.tolist(), values, variances).line
    assert line is not None
    assert line.slope.value == pytest.approx(-0.0291, abs=5e-5)
    assert line.intercept.value == pytest.approx(0.2515, abs=5e-5)
    assert line.slope.high < 0


def test_estimates_that_agree_have_no_scatter_of_their_own() -> None:
    found = pool(np.array([1.0, 1.01, 0.99, 1.0]), np.full(4, 0.01))
    assert found.tau.value == 0.0
    assert found.i_squared == 0.0
    assert found.mean.low < 1.0 < found.mean.high


def test_the_interval_of_the_mean_holds_in_95_percent() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        variances = rng.uniform(0.5, 2.0, 8)
        values = 3.0 + rng.normal(0, 1.0, 8) + rng.normal(0, np.sqrt(variances))
        mean = pool(values, variances).mean
        held += mean.low <= 3.0 <= mean.high
    assert 0.92 <= held / 400 <= 0.99


def test_too_few_recordings_are_refused() -> None:
    with pytest.raises(InputError, match="1 recordings cannot tell"):
        pool(np.ones(1), np.ones(1))


def test_a_power_law_is_found() -> None:
    depth = np.array([1.0, 2.0, 3.0, 5.0, 8.0])
    values = -0.4 * depth**1.5 * (1 + 0.001 * np.array([1, -1, 1, -1, 1]))
    found = find_trend("c", "depth", depth.tolist(), values, (0.01 * values) ** 2).power
    assert found is not None
    assert found.exponent.value == pytest.approx(1.5, abs=0.01)
    assert found.factor.value == pytest.approx(-0.4, rel=0.02)
    assert found.factor.low < -0.4 < found.factor.high


def test_labels_are_compared_as_groups() -> None:
    values = np.array([1.0, 1.1, 0.9, 2.0, 2.1, 1.9])
    apart = find_trend("c", "dye", ["a"] * 3 + ["b"] * 3, values, np.full(6, 0.01)).groups
    alike = find_trend("c", "dye", ["a", "b"] * 3, np.ones(6) + 0.01 * values, np.full(6, 0.01)).groups
    assert apart is not None
    assert alike is not None
    assert apart.means["b"].value == pytest.approx(2.0)
    assert apart.chance < 0.01 < alike.chance


# --- equality ---------------------------------------------------------------------------------------------------


def films(rng: np.random.Generator, shifts: np.ndarray, draws: int = 50) -> list[Asked]:
    """Make films that ask for (9, 0.7) plus ``shifts`` (n, 2), with errors that are correlated as in a calibration."""
    made = []
    for number, shift in enumerate(shifts):
        error = np.array([0.05, 0.004]) * rng.uniform(0.7, 1.5)
        covariance = np.outer(error, error) * np.array([[1.0, -0.8], [-0.8, 1.0]])
        values = rng.multivariate_normal([9.0, 0.7], covariance) + shift
        replicates = rng.multivariate_normal([0.0, 0.0], covariance, draws)
        made.append(Asked(f"film {number}", values, 1.96 * error, replicates))
    return made


def test_one_law_is_seldom_rejected_and_two_always() -> None:
    rng = np.random.default_rng(4)
    chances = np.array([judge_equality(films(rng, np.zeros((12, 2)))).chance for _ in range(100)])
    assert np.mean(chances < 0.05) <= 0.12  # 0.05, and what a hundred trials scatter
    assert 0.3 <= np.mean(chances) <= 0.65
    few = np.array([judge_equality(films(rng, np.zeros((12, 2)), draws=12)).chance for _ in range(60)])
    assert np.mean(few < 0.05) <= 0.2  # errors from a dozen replicates are rough themselves
    growing = np.linspace(0, 0.5, 12)[:, None] * [1.0, 0.0]
    assert all(judge_equality(films(rng, growing)).rejected for _ in range(10))


def test_replicates_in_other_units_change_nothing() -> None:
    seen = films(np.random.default_rng(5), np.zeros((5, 2)))
    small = [Asked(f.film, 1e-6 * f.values, 1e-6 * f.half, 1e-6 * f.draws) for f in seen]
    assert judge_equality(small).chance == judge_equality(seen).chance


def test_a_film_of_another_law_is_named_and_no_other() -> None:
    rng = np.random.default_rng(6)
    shifts = np.zeros((12, 2))
    shifts[7] = [0.0, 0.08]
    ranked = find_outliers(films(rng, shifts))
    assert ranked[0].film == "film 7"
    assert [outlier.stands_out for outlier in ranked] == [True, *[False] * 11]


def test_films_that_scatter_have_no_outlier() -> None:
    rng = np.random.default_rng(7)
    ranked = find_outliers(films(rng, rng.normal(0, 0.5, (12, 2)) * [1.0, 0.05]))
    assert not any(outlier.stands_out for outlier in ranked)


def test_three_films_have_no_outlier() -> None:
    assert find_outliers(films(np.random.default_rng(8), np.zeros((3, 2)))) == []
