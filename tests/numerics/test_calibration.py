"""Rollout calibration: exact sums, known laws found again, noise that must not pass for diffusion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_problems import known_problem, pose, SETTINGS, truth_of
from known_fields import known_field, rescaled
from numpy.typing import NDArray

from video2pde.calibration import calibrate
from video2pde.calibration.blocks import DRIFT, Drift, LAW, Law, Unknowns, Values
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import evaluate, Fit, fit_rollout
from video2pde.calibration.linear import Linear
from video2pde.calibration.problem import Problem
from video2pde.calibration.simplex import fit_nelder_mead
from video2pde.calibration.window import FrameSplit, prepare_window
from video2pde.errors import StageError
from video2pde.field import Field, Grid
from video2pde.field.cells import average_cells, deconvolve_cells, refine_frame
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.rollout.start import smooth_frame

LAWS = ("A", "B", "C", "C-alt", "Fisher")
OPTIONS = SETTINGS.calibration


def corrected(problem: Problem, fit: Fit) -> NDArray[np.float64]:
    return fit.coefficients - discretisation_bias(problem, fit)


@pytest.fixture(scope="module")
def small() -> tuple[Problem, dict[str, NDArray[np.float64]]]:
    """A short window on few pixels, a point beside the truth, and a drift that is not zero."""
    problem, guess = pose(known_field("C", 100, 60), "C")
    drift = np.linspace(-0.05, 0.08, problem.unknowns.blocks[1].size)
    return problem, {LAW: 1.05 * np.array(guess), DRIFT: drift}


def frames_of(problem: Problem, values: Values, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roll a point out without any help from the calibration."""
    window, drift = problem.window, problem.unknowns.blocks[1]
    assert isinstance(drift, Drift)
    assert drift.basis is not None
    velocity = problem.velocity + drift.basis.T @ values[DRIFT].reshape(2, -1).T
    model = Model(problem.terms, tuple(values[LAW]))
    return np.asarray(simulate(model, start, window.times, window.grid, velocity, problem.rollout).values, float)


def columns_by_differences(problem: Problem, values: Values, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the derivative of the rollout by every unknown, one central difference after another."""
    columns = []
    for block in problem.unknowns.blocks:
        for index in range(block.size):
            step = np.zeros(block.size)
            step[index] = 1e-4 * block.scale[index]
            ends = [
                frames_of(problem, {**values, block.name: values[block.name] + way * step}, start) for way in (1, -1)
            ]
            columns.append((ends[0] - ends[1]) / (2 * step[index]))
    return np.stack([column.ravel() for column in columns])


Small = tuple[Problem, dict[str, NDArray[np.float64]]]


def test_normal_equations_are_those_of_the_rollouts(small: Small) -> None:
    problem, values = small
    start = np.array(problem.window.values[0], float)
    linear = evaluate(problem, problem.look(values, start)).linear
    assert linear is not None
    columns = columns_by_differences(problem, values, start)
    residual = (frames_of(problem, values, start) - problem.window.values).ravel()
    size = np.sqrt(np.diag(columns @ columns.T))
    # the drift's columns −∇u·∫B dt are exact where nothing leaves the picture, up to the differences of u
    assert linear.hessian / np.outer(size, size) == pytest.approx(columns @ columns.T / np.outer(size, size), abs=0.04)
    assert linear.slope / size == pytest.approx(columns @ residual / size, abs=0.02 * float(np.linalg.norm(residual)))
    assert linear.cost == pytest.approx(residual @ residual, rel=1e-6)
    k = len(problem.terms)
    assert linear.hessian[:k, :k] == pytest.approx(columns[:k] @ columns[:k].T, rel=1e-3)


def test_a_drift_unknown_moves_the_picture_by_its_integral(small: Small) -> None:
    problem, values = small
    drift = problem.unknowns.blocks[1]
    assert isinstance(drift, Drift)
    assert drift.basis is not None
    moved = drift.weigh(problem.scene(values, problem.window.values[0]), problem.window.times)
    seconds = np.diff(problem.window.times)
    by_hand = np.cumsum((drift.basis[:, 1:] + drift.basis[:, :-1]) / 2 * seconds, axis=1)
    knots = len(drift.basis)
    assert moved[:, 0] == pytest.approx(0.0)
    assert moved[:knots, 1:, 0] == pytest.approx(by_hand)
    assert moved[knots:, 1:, 1] == pytest.approx(by_hand)
    # an unknown of one axis does not move the other
    assert not moved[:knots, :, 1].any()
    assert not moved[knots:, :, 0].any()


def test_equations_of_two_windows_add_up(small: Small) -> None:
    problem, values = small
    start = np.array(problem.window.values[0], float)
    look = problem.look(values, start)
    first = np.arange(len(problem.window.times)) < 15
    parts = [look.linearise(chosen) for chosen in (first, ~first, first | ~first)]
    assert all(isinstance(part, Linear) for part in parts)
    both = parts[0] + parts[1]
    assert both.hessian == pytest.approx(parts[2].hessian, rel=1e-9)
    assert both.solve() == pytest.approx(parts[2].solve(), rel=1e-6)


def test_eliminated_unknowns_leave_the_same_solution() -> None:
    """Schur's complement: what is eliminated need not be solved for."""
    rng = np.random.default_rng(1)
    jacobian = rng.standard_normal((60, 10))
    # the last seven columns have rows of their own, so that their JᵀJ is diagonal
    jacobian[:, 3:] = 0.0
    jacobian[np.arange(56), 3 + np.arange(56) % 7] = rng.standard_normal(56)
    residual = rng.standard_normal(60)
    hessian, slope = jacobian.T @ jacobian, jacobian.T @ residual
    whole = -np.linalg.solve(hessian, slope)
    power = np.diag(hessian)[3:]
    ours = Linear(np.zeros((3, 1, 1)), np.ones(1, bool), hessian[:3, :3], slope[:3])
    taken = hessian[:3, 3:] @ (slope[3:] / power)
    assert ours.eliminate(hessian[:3, 3:], 1 / power, taken).solve() == pytest.approx(whole[:3])
    assert ours.solve() != pytest.approx(whole[:3], rel=1e-3)


def test_a_prior_holds_what_the_frames_do_not_know() -> None:
    """Two equal columns: only their sum is known; a prior on the second gives the first everything."""
    hessian = np.ones((2, 2))
    linear = Linear(np.zeros((2, 1, 1)), np.ones(1, bool), hessian, np.array([-3.0, -3.0]))
    blocks = (Law("free", np.ones(1)), Law("known", np.ones(1), prior=np.array([1e-3])))
    weight = Unknowns(blocks).prior_weight
    assert weight == pytest.approx([0.0, 1e6])
    assert linear.with_prior(weight, np.zeros(2), 0.01).solve() == pytest.approx([3.0, 0.0], abs=1e-3)


def test_no_frame_serves_residual_and_jacobian() -> None:
    for split in (FrameSplit.in_order(72, 7), FrameSplit.in_turns(72, 7, 3)):
        assert not (split.start & split.base).any()
        assert not (split.counted & split.base).any()
        assert split.start[0]


def test_point_values_from_cell_averages_to_fourth_order() -> None:
    errors, crude = [], []
    for n in (40, 80, 160):
        grid = Grid(n, n, 200.0, 200.0)
        averages, points = (exact_field(find_preset("C"), grid, [0.0], cell_average=on).values for on in (True, False))
        errors.append(float(np.abs(deconvolve_cells(averages) - points).max()))
        crude.append(float(np.abs(averages - points).max()))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert 3.5 < orders[-1] < 4.7
    # taking averages for point values is second order only
    assert np.log2(crude[-2] / crude[-1]) < 2.3


def test_a_refined_frame_averages_back_to_itself() -> None:
    field = known_field("C", 64, 120)
    points = np.asarray(deconvolve_cells(field.values[:1])[0], float)
    fine = refine_frame(points, replace(field.grid, ny=128, nx=128))
    back = deconvolve_cells(average_cells(fine[None]).astype(np.float32))[0]
    assert back == pytest.approx(points, abs=3e-3)


@pytest.mark.parametrize("name", LAWS)
def test_exact_law_is_found(name: str) -> None:
    problem, guess = known_problem(name)
    fit = fit_rollout(problem, guess, OPTIONS)
    truth = truth_of(name, problem)
    assert fit.converged
    assert corrected(problem, fit) == pytest.approx(truth, rel=0.003)


def test_the_grid_is_told_from_the_law() -> None:
    """Coarse pixels add more than a per cent to β; the finer truth knows nine tenths of it and more."""
    problem, guess = known_problem("C")
    fit = fit_rollout(problem, guess, OPTIONS)
    truth = truth_of("C", problem)
    raw = fit.coefficients / truth - 1
    left = corrected(problem, fit) / truth - 1
    assert raw[1] > 0.01
    assert np.all(np.abs(left) < 0.2 * np.abs(raw))


def test_a_window_of_nodes_knows_its_own_grid_bias() -> None:
    """Where samples are point values, nothing is averaged, on the finer grid either."""
    grid = Grid(65, 65, 200.0, 200.0, pitch="nodes")
    field = exact_field(find_preset("C"), grid, np.linspace(0, 34, 120), cell_average=False)
    problem, guess = pose(field, "C")
    fit = fit_rollout(problem, guess, OPTIONS)
    assert corrected(problem, fit) == pytest.approx(truth_of("C", problem), rel=0.004)


def test_all_starts_end_at_the_same_place_and_the_drift_is_refined() -> None:
    problem, guess = known_problem("C")
    settings = SETTINGS.model_copy(update={"calibration": OPTIONS.model_copy(update={"replicates": 0})})
    done = calibrate("C", problem, {"weak": guess, "other": [0.7 * guess[0], 1.4 * guess[1]]}, settings)
    assert [attempt.source for attempt in done.attempts] == ["weak", "other", "poor"]
    assert all(attempt.converged for attempt in done.attempts)
    assert done.starts_agree
    truth = np.stack(find_preset("C").drift.velocity(problem.window.times), 1)
    error = np.linalg.norm(done.fit.velocity - truth) / np.linalg.norm(truth)
    assert error < 0.01
    still = replace(problem, velocity=np.zeros_like(problem.velocity))
    from_zero = fit_rollout(still, guess, OPTIONS)
    assert from_zero.coefficients == pytest.approx(done.fit.coefficients, rel=2e-3)
    assert np.linalg.norm(from_zero.velocity - truth) / np.linalg.norm(truth) < 0.02


def test_levenberg_marquardt_and_nelder_mead_agree() -> None:
    settings = SETTINGS.model_copy(
        update={
            "calibration": OPTIONS.model_copy(update={"drift": "fixed"}),
            "drift": SETTINGS.drift.model_copy(update={"law_correction": True}),
        }
    )
    problem, guess = pose(known_field("C", 80, 120), "C", settings)
    start = np.array(problem.window.values[0], float)
    ours = fit_rollout(problem, guess, settings.calibration, start=start)
    theirs = fit_nelder_mead(problem, guess, settings.calibration, start=start)
    assert ours.converged
    assert theirs.converged
    # ours lets the initial frame change as well, and cannot end with a larger error
    assert ours.coefficients == pytest.approx(theirs.coefficients, rel=0.01)
    assert ours.mse <= theirs.mse * 1.001
    assert ours.rollouts < theirs.rollouts


def test_noise_does_not_pass_for_diffusion() -> None:
    """With a Jacobian that starts on the rollout's own noisy frame, β comes out several per cent too large."""
    field = known_field("C", 64, 120)
    clean = fit_rollout(*known_problem("C"), OPTIONS).coefficients
    good, shared = [], []
    for seed in range(4):
        problem, guess = pose(noisy(field, 0.02, seed), "C")
        fit = fit_rollout(problem, guess, OPTIONS)
        good.append(fit.coefficients / clean - 1)
        look = problem.look(fit.values, fit.start, modes=fit.modes)
        for _ in range(3):
            # the broken variant: least squares with noise in residual and Jacobian alike
            linear = evaluate(problem, look).linear
            assert linear is not None
            look = replace(look, vector=look.vector + linear.solve())
        point = look.vector[look.unknowns.parts[LAW]]
        shared.append(point / clean - 1)
    assert abs(np.mean(good, axis=0)[1]) < 0.025
    assert np.mean(shared, axis=0)[1] > 0.04


def test_units_change_coefficients_by_their_units_alone() -> None:
    field = known_field("C", 48, 80)
    plain = fit_rollout(*pose(field, "C"), OPTIONS)
    other = fit_rollout(*pose(rescaled(field, length=7.0, time=3.0), "C"), OPTIONS)
    assert other.coefficients / plain.coefficients == pytest.approx([49 / 3, 49 / 3], rel=2e-3)


def test_only_chosen_pixels_count() -> None:
    field = known_field("A", 64, 120)
    y, x = np.mgrid[:64, :64]
    mask = (y - 32) ** 2 + (x - 32) ** 2 < 26**2
    spoilt = field.values.copy()
    spoilt[:, :3, :3] += 0.5
    masked = Field(spoilt, field.times, field.grid, mask)
    window = prepare_window(masked)
    # the mask's edge is left out: beyond it lies what does not obey the law
    assert masked.core is not None
    assert window.weight.sum() == masked.core.sum() < mask.sum()
    assert window.outside is not None
    assert np.array_equal(window.outside, ~masked.core)
    settings = SETTINGS.model_copy(update={"calibration": OPTIONS.model_copy(update={"max_points": 30_000})})
    few, guess = pose(field, "A", settings)
    assert few.window.points <= 30_000
    again, _ = pose(field, "A", settings)
    assert np.array_equal(few.window.weight, again.window.weight)
    fit = fit_rollout(few, guess, settings.calibration)
    assert fit.coefficients == pytest.approx(truth_of("A", few), rel=0.02)
    masked_problem = replace(few, window=prepare_window(masked.frames(slice(0, len(few.window.times)))))
    assert fit_rollout(masked_problem, guess, OPTIONS).coefficients == pytest.approx(truth_of("A", few), rel=0.02)


def test_a_positive_coefficient_stays_positive_on_the_way() -> None:
    settings = SETTINGS.model_copy(update={"calibration": OPTIONS.model_copy(update={"positive": ("laplacian",)})})
    problem, guess = pose(known_field("C", 64, 120), "C", settings)
    free, _ = known_problem("C")
    assert problem.unknowns.positive.tolist() == [1]
    fit = fit_rollout(problem, [guess[0], 20 * guess[1]], settings.calibration)
    assert fit.converged
    assert problem.unknowns.move(np.array(guess), np.array([0.0, -1e9]))[1] > 0
    assert fit.coefficients == pytest.approx(fit_rollout(free, guess, OPTIONS).coefficients, rel=2e-3)


def test_a_rollout_that_cannot_be_done_is_said() -> None:
    problem, _ = known_problem("C")
    fit = fit_rollout(problem, [9.0, -60.0], OPTIONS)
    assert not fit.converged
    assert fit.reason.startswith("at the start, the rollout failed")
    with pytest.raises(StageError, match="no rollout of C could be completed"):
        calibrate("C", problem, {"weak": [9.0, -600.0], "poor": [9.0, -900.0]}, SETTINGS)


def test_too_few_iterations_are_no_convergence() -> None:
    problem, guess = known_problem("C")
    fit = fit_rollout(problem, [0.3 * guess[0], 3 * guess[1]], OPTIONS.model_copy(update={"max_iterations": 1}))
    assert not fit.converged
    assert "not converged after 1 iterations" in fit.reason


def test_smoothing_keeps_slow_waves() -> None:
    wave = np.cos(2 * np.pi * (np.arange(64) + 0.5) / 16)
    smooth = smooth_frame(np.outer(wave, np.ones(64)))[:, 32]
    assert smooth == pytest.approx(wave, abs=2e-3)
    noise = np.random.default_rng(0).standard_normal((64, 64))
    assert smooth_frame(noise).std() < 0.7
