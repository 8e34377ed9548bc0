"""The course of a flow's strength: few levels where it has them, any course where it has not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from video2pde.discovery.steps import choose_course, Course, fit_steps, Misfit, Splines

Array = NDArray[np.float64]
TIMES = np.linspace(0.0, 20.0, 121)
COUNT = 24


def make_splines() -> Splines:
    knots = np.concatenate([[0.0] * 3, np.linspace(0, 20, COUNT - 2), [20.0] * 3])
    return Splines(BSpline.design_matrix(TIMES, knots, 3).toarray(), TIMES)


def observe(course: Array, noise: float, seed: int) -> list[Misfit]:
    """Show a course (t,) in four quarters of a picture, with noise: rows are values at times, of different size."""
    rng = np.random.default_rng(seed)
    splines, folds = make_splines(), []
    for _ in range(4):
        size = rng.uniform(0.2, 1.0, (len(TIMES), 1))
        seen = size[:, 0] * course + noise * rng.standard_normal(len(TIMES))
        rows = size * splines.values
        folds.append(Misfit(rows.T @ rows, rows.T @ seen, float(seen @ seen)))
    return folds


def free(misfit: Misfit) -> Array:
    return misfit.least(np.eye(COUNT))


def any_course(misfit: Misfit) -> Course:
    return Course(free(misfit))


def rms(course: Array) -> float:
    return float(np.sqrt(np.mean(course**2)))


def on_and_off(on: float = 6.0, off: float = 15.0, width: float = 0.8) -> Array:
    return 0.5 * (np.tanh((TIMES - on) / width) - np.tanh((TIMES - off) / width))


def test_what_is_turned_on_and_off_has_levels() -> None:
    """Seven unknowns instead of 24: the error falls by about √(7/24) = 0.54."""
    splines, course = make_splines(), on_and_off()
    errors, flat = [], 0
    for seed in range(5):
        folds = observe(course, 0.1, seed)
        loose = free(folds[0] + folds[1] + folds[2] + folds[3])
        found = splines.values @ choose_course(folds, splines, any_course, loose).values
        errors.append((rms(found - course), rms(splines.values @ loose - course)))
        flat += np.ptp(found[(TIMES > 8.5) & (TIMES < 12.5)]) < 1e-2
    levels, without = np.sqrt(np.mean(np.square(errors), axis=0))
    assert levels < 0.65 * without
    assert flat >= 4


def test_what_wavers_keeps_its_course() -> None:
    splines, course = make_splines(), 1 + 0.8 * np.sin(2 * np.pi * TIMES / 7.0)
    folds = observe(course, 0.02, seed=2)
    total = folds[0] + folds[1] + folds[2] + folds[3]
    chosen = choose_course(folds, splines, any_course, free(total))
    assert chosen.values == pytest.approx(free(total))
    assert chosen.ramps == ()


@pytest.mark.parametrize("on", [3.0, 10.0, 17.0])
def test_one_ramp_is_found_wherever_it_is(on: float) -> None:
    splines, course = make_splines(), 0.5 * (1 + np.tanh((TIMES - on) / 0.8))
    folds = observe(course, 0.05, seed=3)
    found = fit_steps(splines, free(folds[0]), 1, folds[0] + folds[1])
    assert rms(splines.values @ found.values - course) < 0.03
    [(centre, width)] = found.ramps
    assert centre == pytest.approx(on, abs=0.15)
    assert 0.4 < width < 0.8


def test_an_error_that_all_quarters_share_is_no_level() -> None:
    """A drift that is off, or an encoder that lags, pushes every tile alike: tiles agree on a ramp that is none."""
    splines, course = make_splines(), on_and_off()
    shared = 0.03 * np.exp(-(((TIMES - 8.5) / 1.0) ** 2))
    folds = observe(course + shared, 0.05, seed=4)
    chosen = choose_course(folds, splines, any_course, free(folds[0] + folds[1] + folds[2] + folds[3]))
    assert [centre for centre, _ in chosen.ramps] == pytest.approx([6.0, 15.0], abs=0.2)
