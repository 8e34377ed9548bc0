"""The error budget: shifts add up, uncertainties add in quadrature, and a film's own faults widen its intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_problems import known_problem, pose, SETTINGS, truth_of
from known_fields import known_field

from video2pde.calibration import budget, calibrate
from video2pde.calibration.budget import add_up, Correction, HALVES_LEFT, lack_of_fit, run_forward
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import compare_halves, fit_rollout, Halves
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.recording import read_field
from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE

FEW = SETTINGS.model_copy(update={"calibration": SETTINGS.calibration.model_copy(update={"replicates": 10})})


def test_shifts_add_and_uncertainties_add_in_quadrature() -> None:
    plain = np.array([9.0, 0.7])
    lines = (
        Correction(budget.STATISTICS, np.array([-0.1, 0.0]), np.array([0.3, 0.03])),
        Correction(budget.GRID, np.array([0.0, -0.02]), np.array([0.4, 0.04])),
    )
    first, second = add_up(plain, lines)
    assert (first.value, first.low, first.high) == pytest.approx((8.9, 8.4, 9.4))
    assert (second.value, second.low, second.high) == pytest.approx((0.68, 0.63, 0.73))
    # without statistics there is a value, and no interval
    (bare, _) = add_up(plain, lines[1:])
    assert bare.value == 9.0
    assert not bare.has_interval


def test_a_calibration_is_its_budget() -> None:
    problem, guess = known_problem("C")
    done = calibrate("C", problem, {"weak": guess}, FEW)
    names = [line.name for line in done.budget]
    assert names == ["statistics", "rounding", "grid", "lack of fit", "encoder"]
    assert done.correction("grid").shift == pytest.approx(-discretisation_bias(problem, done.fit))
    found = [done.estimates[term.name] for term in done.terms]
    shifts = sum(line.shift for line in done.budget)
    assert [e.value for e in found] == pytest.approx(done.fit.coefficients + shifts)
    halves = np.sqrt(sum(line.uncertainty**2 for line in done.budget))
    assert [e.high - e.value for e in found] == pytest.approx(halves)
    # a field that was never stored in whole numbers has nothing to count for that
    assert not done.correction("rounding").uncertainty.any()
    assert not done.correction("encoder").uncertainty.any()
    assert not done.correction("of nothing").shift.any()


def test_coarser_levels_and_lazier_encoders_widen_intervals() -> None:
    """Terms without gradients pay for levels; an encoder makes every term less certain."""
    problem, guess = known_problem("B")
    halves = {}
    for level, held in ((1 / 65535, 0.0), (1 / 255, 0.0), (2 / 255, 0.0), (1 / 255, 0.5)):
        window = replace(problem.window, encoding=Encoding(level, held))
        done = calibrate("B", replace(problem, window=window), {"weak": guess}, FEW)
        halves[level, held] = np.array([e.high - e.value for e in done.estimates.values()])
        assert (done.correction("encoder").uncertainty > 0).all() == (held > 0)
    assert (halves[1 / 255, 0.0] > halves[1 / 65535, 0.0]).all()
    assert (halves[2 / 255, 0.0] > halves[1 / 255, 0.0]).all()
    assert (halves[1 / 255, 0.5] > halves[1 / 255, 0.0]).all()
    film = Encoding(1 / 255, 0.0, np.zeros(len(problem.window.times), bool))
    done = calibrate("B", replace(problem, window=replace(problem.window, encoding=film)), {"weak": guess}, FEW)
    assert (done.correction("encoder").uncertainty > 0).all()


def test_halves_that_ask_for_different_laws_are_seen() -> None:
    """A film that slows down half way fits one law badly: both halves ask for laws that differ by more than noise."""
    problem, guess = known_problem("A")
    steady = compare_halves(problem, fit_rollout(problem, guess, FEW.calibration))
    times = problem.window.times.copy()
    middle = len(times) // 2
    times[middle:] = times[middle] + 1.2 * (times[middle:] - times[middle])
    slowed = replace(problem, window=replace(problem.window, times=times))
    halves = compare_halves(slowed, fit_rollout(slowed, guess, FEW.calibration))
    assert abs(steady.apart[0]) < 0.01 * guess[0]
    assert halves.apart[0] > 0.05 * guess[0]


def test_an_interval_reaches_to_the_farther_half_and_beyond_it_where_a_recording_may_be_at_fault() -> None:
    halves = Halves(np.array([0.5]), np.array([2.0]), np.array([0.4]))
    std = np.array([0.15])  # 0.3 of the 0.5 may be noise, 0.4 are not
    apart, farther = halves.beyond_noise(std), halves.reach_beyond_noise(std)
    assert (apart[0], farther[0]) == pytest.approx((0.4, 0.8 * 0.4))
    film, stack, value = Encoding(1 / 255, b_frames=np.zeros(4, bool)), Encoding(1 / 65535), np.array([1.0])
    assert lack_of_fit(film, value, apart, farther).uncertainty == pytest.approx(HALVES_LEFT * apart)
    assert lack_of_fit(stack, value, apart, farther).uncertainty == pytest.approx(farther)
    # a few per cent may be a fault of the recording, which both halves share
    assert lack_of_fit(stack, value, 0.05 * apart, 0.05 * farther).uncertainty == pytest.approx(HALVES_LEFT * 0.02)
    assert Halves(np.zeros(1), np.ones(1), np.zeros(1)).reach_beyond_noise(std) == 0


def test_an_interval_of_diffusion_ends_at_zero_unless_something_else_damps_short_waves() -> None:
    wide = {"laplacian": Estimate(0.3, -0.1, 0.7), "u": Estimate(-0.1, -0.4, 0.2), "biharmonic": Estimate(-1.0)}
    terms = [CATALOGUE[name] for name in wide]
    assert run_forward(terms[:2], wide) == {**wide, "laplacian": Estimate(0.3, 0.0, 0.7)}
    assert run_forward(terms, wide) == wide
    backward = {"laplacian": Estimate(-0.3, -0.7, 0.1)}
    assert run_forward(terms[:1], backward) == backward


def test_halves_differ_by_noise_as_much_as_they_are_said_to() -> None:
    """Forty noisy copies of one field: their halves differ as much as the error of the whole says."""
    problem, guess = known_problem("A")
    rng = np.random.default_rng(3)
    clean, law = problem.window.values, fit_rollout(problem, guess, FEW.calibration)
    apart, whole, noisier = [], [], []
    for _ in range(40):
        noisy = (clean + 0.01 * rng.standard_normal(clean.shape)).astype(np.float32)
        posed = replace(problem, window=replace(problem.window, values=noisy))
        fit = fit_rollout(posed, law.coefficients, FEW.calibration)
        halves = compare_halves(posed, fit)
        apart.append(halves.apart[0])
        whole.append(fit.coefficients[0])
        noisier.append(halves.noisier[0])
    assert np.std(apart) == pytest.approx(np.mean(noisier) * np.std(whole), rel=0.5)
    left = [
        Halves(np.array([a]), np.array([n]), np.zeros(1)).beyond_noise(np.std(whole))[0]
        for a, n in zip(apart, noisier, strict=True)
    ]
    assert np.mean(np.array(left) > 0) < 0.5


def test_a_compressed_film_shows_a_law_that_is_too_slow_and_its_interval_knows(tmp_path: Path) -> None:
    """A real encoder without noise: without its line in the budget the interval of a would not hold the truth."""
    case = make_case("C", background=0.1, peak=0.85)
    film = render_film(case, tmp_path, Camera(size=(360, 360), frames=160, crf=28))
    field = read_field(film, load_settings(overrides={"recording.grid": (72, 72)}))
    problem, guess = pose(field, "C")
    assert problem.window.encoding is not None
    assert problem.window.encoding.held_back > 0.3
    done = calibrate("C", problem, {"weak": guess}, FEW)
    truth = truth_of("C", problem)[0]
    found = done.estimates["grad_squared"]
    assert found.value < 0.99 * truth
    assert found.low < truth < found.high
    narrow = add_up(done.fit.coefficients, [line for line in done.budget if line.name != budget.ENCODER])
    assert narrow[0].high < truth


def test_a_wrong_law_leaves_more_than_noise() -> None:
    problem, guess = pose(known_field("B", 64, 120), "A")
    window = replace(problem.window, encoding=Encoding(1 / 219))
    assert calibrate("A", replace(problem, window=window), {"weak": guess}, FEW).misfit > 4
