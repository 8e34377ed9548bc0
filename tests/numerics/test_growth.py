"""A law that grows, fitted together with its initial frame."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from calibration_problems import known_problem, pose, SETTINGS, truth_of
from known_fields import known_field
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from video2pde.calibration import calibrate
from video2pde.calibration.blocks import LAW, Unknowns
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.growth import GROWS, largest_gain, PART, refit_growing, refit_with_start, share_start
from video2pde.calibration.problem import Problem
from video2pde.calibration.window import FrameSplit, Window
from video2pde.field import Encoding
from video2pde.recording.synth import noisy
from video2pde.settings import load_settings

OPTIONS = SETTINGS.calibration
FEW = load_settings(overrides={"run.workers": 1, "calibration.replicates": 20})
LEVEL = 1 / 255


@pytest.fixture(scope="module")
def growing() -> tuple[Problem, Fit]:
    problem, guess = known_problem("Fisher", 80, 120)
    return problem, fit_rollout(problem, guess, OPTIONS)


def errors(problem: Problem, fit: Fit) -> NDArray[np.float64]:
    found = fit.coefficients - discretisation_bias(problem, fit)
    return np.asarray(found / truth_of("Fisher", problem) - 1)


def test_only_a_law_that_grows_amplifies_its_initial_frame(growing: tuple[Problem, Fit]) -> None:
    problem, fit = growing
    # logistic growth at 0.14 a second over 60 % of 34 s, slowed down where u is large
    assert 5 < largest_gain(problem, fit) < np.exp(0.14 * 0.6 * 34.1)
    for name in ("A", "C", "C-alt"):
        other, guess = known_problem(name)
        plain = fit_rollout(other, guess, OPTIONS)
        assert largest_gain(other, plain) < GROWS
        assert refit_growing(other, plain, OPTIONS) is None


def test_an_exact_field_stays_exact(growing: tuple[Problem, Fit]) -> None:
    problem, fit = growing
    found = refit_growing(problem, fit, OPTIONS)
    assert found is not None
    assert found.problem is problem
    assert found.joint is None or np.abs(errors(problem, found.joint)).max() < 0.003


def test_a_smooth_error_of_the_initial_frame_is_eliminated(growing: tuple[Problem, Fit]) -> None:
    """With a wrong start the plain normal equations ask for another law; with the start taken out they do not."""
    problem, fit = growing
    rng = np.random.default_rng(5)
    wrong = gaussian_filter(rng.standard_normal(fit.start.shape), 6.0)
    wrong *= 0.5 * LEVEL / np.abs(wrong).max()
    shared = share_start(problem, replace(fit, start=fit.start + wrong, base=fit.start + wrong))
    assert shared is not None
    terms, start = len(problem.terms), shared.start
    step = shared.linear.solve()
    kept = shared.linear.hessian + np.einsum("cyx,dyx->cd", start.products * start.inverse, start.products)
    plain = replace(shared.linear, hessian=kept, slope=shared.linear.slope + start.taken_out(start.error)).solve()
    relative = np.abs(np.stack([step, plain])[:, :terms] / truth_of("Fisher", problem)).max(axis=1)
    assert relative[0] < 0.5 * relative[1]
    # and what was wrong is found where the plume says something about it
    found, _ = start.changes(step)
    seen = known_field("Fisher", 80, 120).values[0] > 10 * LEVEL
    assert np.corrcoef(found[seen], -wrong[seen])[0, 1] > 0.8


def test_an_edge_that_was_rounded_away_comes_back() -> None:
    """Eight bits without noise: u below half a level reads 0, and the first frames alone do not know better."""
    exact = known_field("Fisher", 200, 100)
    rounded = replace(exact, values=np.round(exact.values * 219) / np.float32(219))
    problem, guess = pose(rounded, "R")
    plain = fit_rollout(problem, guess, OPTIONS)
    found = refit_growing(problem, plain, OPTIONS)
    refitted = None if found is None else found.joint
    assert refitted is not None
    assert refitted.whole
    assert refitted.mse < 0.9 * plain.mse
    assert np.abs(errors(problem, plain)).max() > 0.02
    assert np.abs(errors(problem, refitted)).max() < 0.01


def test_residual_and_jacobian_share_no_frame(growing: tuple[Problem, Fit]) -> None:
    problem, _ = growing
    split = FrameSplit.in_turns(len(problem.window.times), problem.start_frames, PART)
    assert split.counted[problem.split.start].all()
    assert not split.counted[problem.split.base].any()
    assert 0.6 < split.counted.mean() < 0.75


def test_noise_is_no_diffusion_and_intervals_know_it() -> None:
    """Four seeds: the initial frame fitted jointly has no bias to speak of, and the bootstrap knows the spread."""
    halves, values = [], []
    for seed in range(4):
        problem, guess = pose(noisy(known_field("Fisher", 80, 120), 0.01, 40 + seed), "R")
        done = calibrate("R", problem, {"weak": guess}, SETTINGS)
        assert done.fit.whole
        assert done.bootstrap is not None
        assert done.bootstrap.converged == 50
        found = done.estimates["laplacian"]
        values.append(found.value / 0.8 - 1)
        halves.append((found.high - found.low) / 2 / 0.8)
    assert abs(np.mean(values)) < 0.025
    assert np.all(np.abs(values) < np.array(halves))
    assert np.mean(halves) < 0.08


def test_replicates_do_not_depend_on_the_workers() -> None:
    problem, guess = pose(noisy(known_field("Fisher", 48, 100), 0.01, 1), "R")
    found = refit_growing(problem, fit_rollout(problem, guess, OPTIONS), OPTIONS)
    fit = None if found is None else found.joint
    assert fit is not None
    few = OPTIONS.model_copy(update={"replicates": 10})
    one, two = (bootstrap_fit(problem, fit, few, workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert one.converged == 10


def test_what_a_camera_cut_off_is_left_out() -> None:
    """An encoder takes faint edges away with the noise that a camera clips; above that noise it takes nothing."""
    exact, noise = known_field("Fisher", 80, 120), 0.01
    faint = exact.values * (1 - 0.8 * np.maximum(1 - exact.values / (3 * noise), 0) ** 2)
    recorded = noisy(replace(exact, values=faint), 0.002, 3)
    found = {}
    for clipped in (0.0, noise):
        problem, guess = pose(replace(recorded, encoding=Encoding(LEVEL, clipped_noise=clipped)), "R")
        done = calibrate("R", problem, {"weak": guess}, FEW)
        assert done.fit.floor == (3 * clipped if clipped else -np.inf)
        found[clipped] = done.estimates["laplacian"]
    assert found[0.0].low > 0.8
    assert found[noise].value == pytest.approx(0.8, rel=0.02)
    assert found[noise].low < 0.8 < found[noise].high


def test_only_cells_above_the_floor_count(growing: tuple[Problem, Fit]) -> None:
    problem, fit = growing
    window = replace(problem.window, floor=0.05)
    above = replace(problem, window=window)
    frames = range(len(window.times))
    seen = np.stack([window.above_floor(frame) for frame in frames])
    assert 0.05 < seen.mean() < 0.6
    assert window.points == pytest.approx(float((window.weight * seen).sum()))
    # what happens below it changes nothing
    spoilt = np.where(seen, window.values, window.values * 0.5)
    same = replace(above, window=replace(window, values=spoilt.astype(np.float32)))
    assert (np.stack([same.window.above_floor(frame) for frame in frames]) == seen).mean() > 0.995
    sums = [each.look(fit.values, fit.start).sum_up() for each in (above, replace(same, window=_seeing(same, seen)))]
    np.testing.assert_array_equal(*sums)


def _seeing(problem: Problem, seen: NDArray[np.bool_]) -> Window:
    """Return the problem's window with the cells that count given, instead of told from its own values."""

    class Given(Window):
        def above_floor(self, frame: int) -> NDArray[np.bool_]:
            return seen[frame]

    window = problem.window
    return Given(**{each.name: getattr(window, each.name) for each in fields(window)})


def test_clipping_is_not_taken_for_growth() -> None:
    """A start that dips below zero is not clipped, its neighbour is: their difference would pass for a gain."""
    problem, guess = known_problem("A")
    fit = fit_rollout(problem, guess, OPTIONS)
    dipped = replace(fit, start=fit.start - fit.start.min() - 5e-6)
    assert largest_gain(problem, dipped) == pytest.approx(1.0, abs=0.01)


def test_what_drifts_out_of_the_picture_is_not_counted_again(growing: tuple[Problem, Fit]) -> None:
    problem, fit = growing
    across = problem.window.grid.width / 3 / np.ptp(problem.window.times)
    drifting = replace(problem, velocity=problem.velocity + np.array([across, 0.0]))
    shared = share_start(drifting, replace(fit, values={LAW: fit.coefficients}))
    assert shared is not None
    hessian = shared.linear.hessian
    scale = np.sqrt(np.diag(hessian))
    assert np.linalg.eigvalsh(hessian / np.outer(scale, scale)).min() > 0


def test_a_coefficient_that_must_stay_positive_does(growing: tuple[Problem, Fit]) -> None:
    problem, fit = growing
    law, *others = problem.unknowns.blocks
    positive = replace(problem, unknowns=Unknowns((replace(law, positive=(2,)), *others)))
    noise = np.random.default_rng(2).normal(0, 0.2, problem.window.values.shape).astype(np.float32)
    noisy_window = replace(problem.window, values=problem.window.values + noise)
    found = refit_with_start(replace(positive, window=noisy_window), fit)
    assert found is None or found.coefficients[2] > 0


def test_a_law_that_stays_far_behind_another_one_is_given_up() -> None:
    """Decay cannot follow logistic growth: where the right law is known, its fit does not crawl on."""
    field = noisy(known_field("Fisher", 48, 90), 0.005, 1)
    right = calibrate("R", pose(field, "R")[0], {"weak": pose(field, "R")[1]}, FEW)
    problem, guess = pose(field, "B")
    alone, beside = (fit_rollout(problem, guess, OPTIONS, rival=rival) for rival in (np.inf, right.plain_mse))
    assert not alone.beaten
    assert beside.beaten
    assert not beside.converged
    assert "another law fits far better" in beside.reason
    assert beside.rollouts < alone.rollouts
    assert beside.mse > 2 * right.plain_mse
    # no second start, no replicates
    given_up = calibrate("B", problem, {"weak": guess}, FEW, rival=right.plain_mse)
    assert [attempt.source for attempt in given_up.attempts] == ["weak"]
    assert given_up.bootstrap is None
    # one that is near goes on, and ends where it would have ended
    again = fit_rollout(*pose(field, "R"), OPTIONS, rival=0.9 * right.plain_mse)
    assert again.converged
    assert np.array_equal(again.coefficients, fit_rollout(*pose(field, "R"), OPTIONS).coefficients)


def test_a_law_that_ends_far_behind_another_one_is_fitted_from_one_start() -> None:
    field = noisy(known_field("C", 48, 60), 0.001, 1)
    right = calibrate("C", pose(field, "C")[0], {"weak": pose(field, "C")[1]}, FEW)
    problem, guess = pose(field, "C-alt")
    behind = calibrate("C-alt", problem, {"weak": guess}, FEW, rival=right.plain_mse)
    assert behind.fit.converged
    assert behind.fit.mse > 2 * right.plain_mse
    assert [attempt.source for attempt in behind.attempts] == ["weak"]
    assert [attempt.source for attempt in right.attempts] == ["weak", "poor"]
    alone = calibrate("C-alt", problem, {"weak": guess}, FEW)
    assert len(alone.attempts) == 2
    assert behind.estimates["laplacian"].value == pytest.approx(alone.estimates["laplacian"].value, rel=1e-3)
    assert behind.bootstrap is not None
