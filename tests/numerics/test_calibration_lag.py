"""A picture that is late: what its lag adds to the coefficients is found in what the fit leaves over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_problems import known_problem, pose, SETTINGS, truth_of
from known_fields import known_field
from numpy.typing import NDArray

from video2pde.calibration import calibrate, CODING_NOISE, Errors, FILM_FLOOR, MISFIT
from video2pde.calibration.coding import BUILDS_UP, lag_bias, SLOW
from video2pde.calibration.fit import Fit, fit_rollout, Problem
from video2pde.calibration.systematic import discretisation_bias, finer_problem
from video2pde.field import LEVEL
from video2pde.recording import read_field
from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.settings import load_settings, Settings

FILM = Errors(FILM_FLOOR, rounding=CODING_NOISE, held=0.4)
OPTIONS = SETTINGS.calibration.model_copy(update={"replicates": 8})


def hold_back(values: NDArray[np.float32], levels: float) -> NDArray[np.float32]:
    """Take off the lag that is looked for: ``levels`` where u rises, the opposite where it falls, more in the end."""
    pace = np.gradient(values, axis=0) * len(values)
    late = pace / (np.abs(pace) + SLOW * LEVEL) * np.linspace(1, 1 + BUILDS_UP, len(values))[:, None, None]
    return np.asarray(values - levels * LEVEL * late, np.float32)


def found_bias(problem: Problem, fit: Fit) -> NDArray[np.float64]:
    found = lag_bias(problem, fit, finer_problem(problem, fit))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["A", "C", "C-alt"])
def test_a_lag_is_found_and_a_prompt_picture_has_none(name: str) -> None:
    problem, guess = known_problem(name)
    prompt = fit_rollout(problem, guess, OPTIONS)
    size = np.abs(prompt.coefficients)
    assert np.all(np.abs(found_bias(problem, prompt)) < 0.005 * size)

    late = replace(problem, window=replace(problem.window, values=hold_back(problem.window.values, 0.5)))
    fit = fit_rollout(late, guess, OPTIONS)
    error = (fit.coefficients - prompt.coefficients) / size
    left = error - found_bias(late, fit) / size
    assert np.abs(error).max() > 0.005
    assert np.abs(left).max() < 0.7 * np.abs(error).max()  # the start of the rollout has some of it, too


@pytest.mark.parametrize("name", ["A", "C"])
def test_on_a_compressed_film_the_lag_is_told_from_the_law(name: str, tmp_path: Path) -> None:
    """A real encoder without noise: the law is too slow, and less so without what the lag has added."""
    case = make_case(name, background=0.1, peak=0.85)
    film = render_film(case, tmp_path, Camera(size=(360, 360), frames=160, crf=28))
    field = read_field(film, load_settings(overrides={"recording.grid": (72, 72)}))
    problem, guess = pose(field, name)
    fit = fit_rollout(problem, guess, OPTIONS)
    truth = truth_of(name, problem)
    plain = fit.coefficients - discretisation_bias(problem, fit)
    error, left = ((values - truth) / truth for values in (plain, plain - found_bias(problem, fit)))
    assert error.max() < -0.01
    assert np.abs(left).max() < 0.75 * np.abs(error).max()


def test_noise_is_no_lag() -> None:
    problem, guess = known_problem("C")
    noise = np.random.default_rng(4).normal(0, 2e-3, problem.window.values.shape).astype(np.float32)
    noisy = replace(problem, window=replace(problem.window, values=problem.window.values + noise))
    fit = fit_rollout(noisy, guess, OPTIONS)
    assert np.all(np.abs(found_bias(noisy, fit)) < 0.005 * np.abs(fit.coefficients))


def test_films_that_lag_are_corrected_and_others_are_not() -> None:
    problem, guess = known_problem("A")
    late = replace(problem, window=replace(problem.window, values=hold_back(problem.window.values, 1.0)))
    starts = {"weak": guess}
    settings, film = _with(), FILM
    plain, mended = (
        calibrate("A", late, starts, settings, errors=errors) for errors in (replace(FILM, held=0.0), film)
    )
    truth = truth_of("A", problem)
    name = problem.terms[0].name
    assert plain.lag_bias[0] == 0.0
    assert mended.lag_bias[0] < 0
    before, after = plain.estimates[name], mended.estimates[name]
    assert after.value == pytest.approx(before.value - mended.lag_bias[0])
    assert abs(after.value - truth[0]) < abs(before.value - truth[0])
    assert after.high - after.low > before.high - before.low
    assert after.low < truth[0] < after.high
    assert not before.low < truth[0] < before.high


def test_a_flat_background_that_decays_by_steps_of_a_level_is_no_lag() -> None:
    """All of its pixels round alike: it is late and early by turns, and that is not the encoder's doing."""
    problem, guess = known_problem("B")
    values = problem.window.values.copy()
    flat = np.hypot(*np.gradient(values, axis=(1, 2))) < 0.02 * LEVEL
    assert flat.mean() > 0.3
    values[flat] = np.round(values[flat] / LEVEL) * LEVEL
    stepped = replace(problem, window=replace(problem.window, values=values))
    fit = fit_rollout(stepped, guess, OPTIONS)
    assert np.all(np.abs(found_bias(stepped, fit)) < 0.002 * np.abs(fit.coefficients))


def test_a_coarse_grid_is_no_lag() -> None:
    problem, guess = known_problem("A", 48)
    fit = fit_rollout(problem, guess, OPTIONS)
    raw = lag_bias(problem, fit, None)
    assert raw is not None
    assert abs(raw[0]) > 0.01 * fit.coefficients[0]
    assert abs(found_bias(problem, fit)[0]) < 0.004 * fit.coefficients[0]


def test_a_picture_that_is_early_is_left_alone() -> None:
    problem, guess = known_problem("A")
    early = replace(problem, window=replace(problem.window, values=hold_back(problem.window.values, -1.0)))
    assert found_bias(early, fit_rollout(early, guess, OPTIONS))[0] == 0.0


def test_a_wrong_law_is_not_called_late() -> None:
    """What a law leaves over that it cannot explain is larger than any lag."""
    problem, guess = pose(known_field("B", 64, 120), "A")
    result = calibrate("A", problem, {"weak": guess}, _with(), errors=FILM)
    assert result.misfit > MISFIT
    assert np.all(result.lag_bias == 0)


def test_a_law_that_grows_has_no_lag_fitted_along() -> None:
    problem, guess = known_problem("Fisher")
    fit = fit_rollout(problem, guess, OPTIONS)
    assert lag_bias(problem, fit, None) is None
    assert lag_bias(problem, replace(fit, whole=True), None) is None


def test_the_lag_does_not_depend_on_the_bootstrap() -> None:
    problem, guess = known_problem("A")
    late = replace(problem, window=replace(problem.window, values=hold_back(problem.window.values, 1.0)))
    film = FILM
    found = [
        calibrate("A", late, {"weak": guess}, _with(replicates=count), errors=film).lag_bias[0] for count in (0, 8)
    ]
    assert found[0] == found[1] < 0
    assert np.all(calibrate("A", late, {"weak": guess}, _with(undo_coding=False), errors=film).lag_bias == 0)


def _with(**changes: object) -> Settings:
    return SETTINGS.model_copy(update={"calibration": OPTIONS.model_copy(update=changes)})
