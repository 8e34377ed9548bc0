"""Ensembles over bootstrap draws bracket the held-out frames at about their nominal rate."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from using_laws import LAWS, make_model, skewed_plume, TIMES

from video2pde.calibration import calibrate, make_problem
from video2pde.errors import InputError, StageError
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.settings import load_settings
from video2pde.terms import get_term
from video2pde.using import SavedModel, simulate_ensemble

NOISE = 0.01
MEMBERS = 40


@lru_cache(maxsize=2)
def calibrated(seed: int) -> tuple[SavedModel, Field, Field, Windows]:
    """Calibrate law C on a noisy known-truth field; give model, noisy and true field, windows."""
    case = make_case("C", duration=20.0)
    grid, times = Grid(64, 64, 128.0, 128.0), np.linspace(0, 20, 81)
    truth = exact_field(case, grid, times)
    film = noisy(truth, NOISE, seed)
    windows = Windows.split(len(film))
    velocity = np.stack(case.drift.velocity(times), axis=1)
    terms = [get_term(name) for name in LAWS["C"]]
    settings = load_settings(overrides={"calibration.replicates": 20, "run.workers": 1})
    still = {name: np.zeros((windows.train_end, 2)) for name in LAWS["C"]}
    problem = make_problem(film.frames(windows.train), terms, LAWS["C"], velocity[windows.train], still, settings)
    fit = calibrate("C", problem, {"weak": list(LAWS["C"].values())}, settings)
    assert fit.bootstrap is not None
    draws = fit.bootstrap.draws - fit.bootstrap.bias
    model = SavedModel.of(terms, fit.estimates, grid, windows, times, velocity, draws=draws, noise=NOISE)
    return model, film, truth, windows


@pytest.mark.parametrize("seed", [3, 11])
def test_the_band_holds_the_held_out_frames_at_about_its_nominal_rate(seed: int) -> None:
    model, film, truth, windows = calibrated(seed)
    first = windows.validation_end
    band = simulate_ensemble(model, film.values[first], film.times[first:], MEMBERS, seed=1)
    assert band.members == MEMBERS
    assert 0.88 < band.coverage(film.values[first:]) < 0.92
    # the field itself, without the camera's noise, lies inside the narrower band of the ensemble
    inside = (truth.values[first:] >= band.low) & (truth.values[first:] <= band.high)
    assert 0.8 < inside[2:].mean() < 0.95


def test_an_ensemble_that_takes_the_first_frame_as_exact_is_too_sure_of_itself() -> None:
    model, film, truth, windows = calibrated(3)
    first = windows.validation_end
    band = simulate_ensemble(model, film.values[first], film.times[first:], MEMBERS, seed=1, noise=0.0)
    inside = (truth.values[first:] >= band.low) & (truth.values[first:] <= band.high)
    assert inside[2:].mean() < 0.2


def test_an_ensemble_depends_on_its_seed_alone() -> None:
    draws = np.array([[9.0, 0.6], [9.4, 0.7], [8.7, 0.65]])
    model, u0 = make_model(LAWS["C"], draws=draws), skewed_plume()
    one, two = (simulate_ensemble(model, u0, TIMES, 3, seed=5, workers=n) for n in (1, 2))
    np.testing.assert_array_equal(one.high, two.high)
    several = [make_model({"grad_squared": a, "laplacian": b}).simulate(u0, TIMES).values for a, b in draws]
    np.testing.assert_allclose(one.mean, np.mean(several, axis=0), atol=1e-12)
    np.testing.assert_allclose(one.low, np.quantile(several, 0.05, axis=0), atol=1e-12)
    noisy_one = simulate_ensemble(model, u0, TIMES, 8, seed=6, noise=0.02)
    assert not np.array_equal(noisy_one.mean[0], u0)


def test_what_cannot_be_an_ensemble_is_said() -> None:
    u0 = skewed_plume()
    with pytest.raises(InputError, match="no bootstrap draws"):
        simulate_ensemble(make_model(LAWS["C"]), u0, TIMES, 5)
    with pytest.raises(InputError, match="at least 2"):
        simulate_ensemble(make_model(LAWS["C"], draws=np.ones((4, 2))), u0, TIMES, 1)
    with pytest.raises(StageError, match="failed"):
        simulate_ensemble(make_model(LAWS["C"], draws=-5 * np.ones((4, 2))), u0, 100 * TIMES, 3)
