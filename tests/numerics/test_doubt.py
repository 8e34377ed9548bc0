"""Intervals that reach as far as effects may lie which do not show beyond doubt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from video2pde.calibration import Calibration
from video2pde.estimate import Estimate
from video2pde.fit.consistency import disagreement
from video2pde.fit.doubt import reach_of_doubt, weigh
from video2pde.fit.law import LawFit
from video2pde.fit.score import Score, score

ROWS = 120
PLAIN = Score(
    removes=0.01,
    chance=0.01,
    log_chance=-0.3,
    statistic=1.0,
    columns=1,
    unknowns=1,
    after=0.0,
    coefficients={"laplacian": 1.0},
    shift_errors={"laplacian": 0.005},
    amplitudes=np.zeros(1),
)


def fitted(target: np.ndarray, design: np.ndarray, spread: np.ndarray) -> LawFit:
    found, *_ = np.linalg.lstsq(design, target, rcond=None)
    return LawFit(("laplacian",), {"laplacian": float(found[0])}, design, target, target - design @ found, spread)


def test_effects_that_do_not_stir_are_unlikely_and_leave_the_interval_alone() -> None:
    scores = [PLAIN] * 30
    weights = weigh(scores, ROWS)
    assert weights.sum() < 0.2
    reach = reach_of_doubt(scores, weights, {"laplacian": 1.0}, {"laplacian": 0.02})
    assert np.hypot(reach["laplacian"], 0.02) < 1.05 * 0.02


def test_an_effect_beyond_doubt_has_all_the_weight() -> None:
    assert weigh([PLAIN, replace(PLAIN, statistic=60.0)], ROWS)[1] > 0.999
    # the same evidence from many unknowns is none
    assert weigh([replace(PLAIN, statistic=60.0, unknowns=30)], ROWS)[0] < 0.01
    # beyond what a double can hold
    assert weigh([replace(PLAIN, statistic=1e5), PLAIN], ROWS)[0] == pytest.approx(1.0)


def test_an_interval_reaches_to_an_effect_that_may_be_there() -> None:
    likely = replace(PLAIN, statistic=10.0, coefficients={"laplacian": 1.1}, shift_errors={"laplacian": 0.03})
    scores = [likely, *[PLAIN] * 20]
    weights = weigh(scores, ROWS)
    assert 0.05 < weights[0] < 0.9
    reach = reach_of_doubt(scores, weights, {"laplacian": 1.0}, {"laplacian": 0.02})
    assert 0.1 < np.hypot(reach["laplacian"], 0.02) < 0.2


def test_intervals_hold_whether_there_is_an_effect_or_not() -> None:
    rng = np.random.default_rng(4)
    held, own_held = [], []
    for _ in range(400):
        law = rng.standard_normal(ROWS)
        effect = 0.7 * law + 0.7 * rng.standard_normal(ROWS)
        # as likely as not there is an effect, and then about as strong as one test function would show it
        amount = rng.standard_normal() if rng.random() < 0.5 else 0.0
        target = law + amount * effect + rng.standard_normal(ROWS)
        fit = fitted(target, law[:, None], np.eye(ROWS))
        half = 1.96 * float(fit.coefficient_errors[0])
        found = score(fit, effect[:, None])
        assert found is not None
        reach = reach_of_doubt([found], weigh([found], ROWS), fit.coefficients, {"laplacian": half})
        miss = abs(fit.coefficients["laplacian"] - 1.0)
        own_held.append(miss <= half)
        held.append(miss <= np.hypot(half, reach["laplacian"]))
    assert np.mean(own_held) < 0.7
    assert np.mean(held) > 0.93


def test_an_interval_holds_both_fits_where_they_disagree() -> None:
    rng = np.random.default_rng(5)
    column = rng.standard_normal(ROWS)
    fit = fitted(column + 0.1 * rng.standard_normal(ROWS), column[:, None], 0.01 * np.eye(ROWS))
    weak, error = fit.coefficients["laplacian"], float(fit.coefficient_errors[0])
    near, far = (calibrated(weak + gap, half=0.03) for gap in (0.02, 0.1))
    assert disagreement(fit, near) == {}
    assert disagreement(fit, far)["laplacian"] == pytest.approx(0.1 + 1.96 * error)


def calibrated(value: float, half: float) -> Calibration:
    """Return a stand-in with the one thing that is asked of it."""
    estimates = {"laplacian": Estimate(value, value - half, value + half)}
    return cast(Calibration, SimpleNamespace(estimates=estimates))
