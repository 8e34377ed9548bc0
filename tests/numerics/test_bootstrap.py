"""Block bootstrap: blocks that never jump, intervals of the right width, the same draws on any number of workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_problems import pose, SETTINGS, truth_of
from hypothesis import given
from hypothesis import strategies as st
from known_fields import known_field

from video2pde.calibration import budget, calibrate
from video2pde.calibration.blocks import DRIFT
from video2pde.calibration.bootstrap import Bootstrap, bootstrap_fit
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.problem import Problem
from video2pde.calibration.replicates import linear_world, refit, Sample
from video2pde.field import Light
from video2pde.recording.synth import noisy
from video2pde.resampling import draw_blocks, politis_white
from video2pde.rollout.together import SideBySide

OPTIONS = SETTINGS.calibration
Posed = tuple[Problem, list[float], Fit]


@pytest.fixture(scope="module")
def posed() -> Posed:
    problem, guess = pose(noisy(known_field("C", 64, 120), 0.01, 3), "C")
    return problem, guess, fit_rollout(problem, guess, OPTIONS)


@pytest.fixture(scope="module")
def booted(posed: Posed) -> Bootstrap:
    return bootstrap_fit(posed[0], posed[2], OPTIONS)


@given(st.integers(4, 200), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_blocks_are_runs_of_frames(frames: int, length: int, seed: int) -> None:
    length = min(length, frames)
    order = draw_blocks(frames, length, np.random.default_rng(seed))
    assert len(order) == frames
    assert order.min() >= 0
    assert order.max() < frames
    steps = np.diff(order)
    inside = np.arange(1, frames) % length != 0
    assert (steps[inside] == 1).all()


def test_every_frame_is_drawn_about_as_often() -> None:
    counts = np.zeros(100)
    for seed in range(400):
        np.add.at(counts, draw_blocks(100, 10, np.random.default_rng(seed)), 1)
    inner = counts[10:-10]
    assert np.abs(inner / inner.mean() - 1).max() < 0.3


def test_sums_of_the_compiled_pass_are_those_of_frames_written_down(
    posed: Posed, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, _, fit = posed
    world = linear_world(problem, fit)
    assert not isinstance(world, str)
    frames, rng = len(problem.window.times), np.random.default_rng(2)
    residuals = rng.normal(0, 1, problem.window.values.shape).astype(np.float32)
    sample = Sample(residuals, rng.uniform(0.005, 0.02, frames), rng.integers(0, frames, (3, frames)))
    [quick] = refit(world, [sample])
    monkeypatch.setattr(SideBySide, "stacked", property(lambda _: False))
    [plain] = refit(world, [sample])
    for one, other in zip(quick, plain, strict=True):
        assert not isinstance(one, str)
        assert not isinstance(other, str)
        np.testing.assert_allclose(one[0], other[0], rtol=1e-6)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-5, atol=1e-7)
    assert np.ptp([draw[0][0] for draw in quick if not isinstance(draw, str)]) > 1e-4


def test_a_replicate_whose_rollout_fails_is_told_with_its_frame(posed: Posed) -> None:
    problem, _, fit = posed
    world = linear_world(problem, fit)
    assert not isinstance(world, str)
    frames = len(problem.window.times)
    wild = np.random.default_rng(4).normal(0, 1e6, problem.window.values.shape).astype(np.float32)
    told, fine = refit(world, [Sample(wild, np.full(frames, size), np.zeros((1, frames), int)) for size in (1.0, 0.0)])
    assert isinstance(told[0], str)
    assert "failed before frame" in told[0]
    assert not isinstance(fine[0], str)


def test_automatic_blocks_grow_with_the_memory_of_a_series() -> None:
    rng = np.random.default_rng(5)
    lengths = []
    for memory in (0.0, 0.5, 0.9):
        found = []
        for _ in range(10):
            series = np.zeros(600)
            for k in range(1, 600):
                series[k] = memory * series[k - 1] + rng.standard_normal()
            found.append(politis_white(series))
        lengths.append(float(np.median(found)))
    assert lengths[0] <= 4
    assert lengths[0] < lengths[1] < lengths[2]
    # b = (2Ĝ²/D̂)^⅓ n^⅓ with the true autocovariances of memory 0.5
    assert lengths[1] == pytest.approx((1.5 * (2 * 0.5 / 0.75) ** 2 * 600) ** (1 / 3), rel=0.5)
    assert politis_white(np.zeros(50)) == 1


def test_replicates_are_kept_and_counted(posed: Posed, booted: Bootstrap) -> None:
    problem, _, fit = posed
    assert booted.requested == booted.converged == 50
    assert booted.failures == ()
    assert booted.block_length == round(np.sqrt(len(problem.window.times)))
    assert booted.draws.shape == (50, 2)
    assert booted.velocity_std.shape == fit.velocity.shape
    assert 0 < booted.velocity_std.max() < 0.05
    assert booted.value == pytest.approx(fit.coefficients - booted.bias)


def test_draws_do_not_depend_on_the_workers(posed: Posed, booted: Bootstrap) -> None:
    problem, _, fit = posed
    told: list[np.ndarray] = []
    again = bootstrap_fit(replace(problem, workers=2), fit, OPTIONS, workers=2, drawn=told.append)
    assert np.array_equal(again.draws, booted.draws)
    # what is told on the way are the same draws, in some order
    assert np.array_equal(np.sort(np.concatenate(told), axis=0), np.sort(booted.draws, axis=0))
    other = bootstrap_fit(problem, fit, OPTIONS.model_copy(update={"seed": 43, "replicates": 3}))
    assert not np.array_equal(other.draws, booted.draws[:3])


def test_restarted_blocks_find_the_law_too(posed: Posed) -> None:
    problem, _, fit = posed
    restarted = bootstrap_fit(problem, fit, OPTIONS.model_copy(update={"bootstrap": "restart", "block_length": 20}))
    assert restarted.converged == 50
    assert restarted.velocity_std.max() < 1e-12
    assert np.median(restarted.draws[:, 0]) == pytest.approx(9.005, rel=0.1)
    # its starts are smoothed over a few frames only, and noise in a start passes for diffusion
    assert 0.5 < np.median(restarted.draws[:, 1]) / 0.666 < 2


def test_concatenated_blocks_are_wrong(posed: Posed, booted: Bootstrap) -> None:
    """One rollout through frames that jump in time, as published, ends far from the law; residual blocks do not."""
    problem, guess, _ = posed
    truth = truth_of("C", problem)
    order = draw_blocks(len(problem.window.times), booted.block_length, np.random.default_rng(42))
    window = problem.window
    jumping = replace(
        problem.without(DRIFT), window=replace(window, values=window.values[order]), velocity=problem.velocity[order]
    )
    wrong = fit_rollout(jumping, guess, OPTIONS.model_copy(update={"max_iterations": 40}))
    assert np.abs(wrong.coefficients / truth - 1).max() > 0.1
    assert np.abs(np.median(booted.draws, axis=0) / truth - 1).max() < 0.05


def test_intervals_hold_and_are_no_wider_than_needed() -> None:
    """A small version of the coverage table; the whole of it is among the recoveries."""
    field = known_field("C", 80, 120)
    values, halves, held = [], [], []
    for seed in range(8):
        problem, guess = pose(noisy(field, 0.01, seed), "C")
        fit = fit_rollout(problem, guess, OPTIONS)
        boot = bootstrap_fit(problem, fit, OPTIONS)
        grid = budget.grid(discretisation_bias(problem, fit), fit.coefficients)
        found = budget.add_up(fit.coefficients, [budget.statistics(boot), grid])
        truth = truth_of("C", problem)
        values.append([e.value for e in found] / truth)
        halves.append([(e.high - e.low) / 2 for e in found] / truth)
        held.append([e.low <= t <= e.high for e, t in zip(found, truth, strict=True)])
    assert (np.sum(held, axis=0) >= 6).all()
    assert (np.mean(halves, axis=0) < 4 * np.std(values, axis=0, ddof=1)).all()
    # intervals that forget the start's noise or the noise's size would be caught here
    assert (np.mean(halves, axis=0) > 1.2 * np.std(values, axis=0, ddof=1)).all()


def test_noise_widens_intervals_in_proportion() -> None:
    widths = []
    for level in (0.005, 0.02):
        problem, guess = pose(noisy(known_field("C", 64, 120), level, 1), "C")
        boot = bootstrap_fit(problem, fit_rollout(problem, guess, OPTIONS), OPTIONS)
        widths.append(boot.draws.std(axis=0))
    assert widths[1] / widths[0] == pytest.approx([4.0, 4.0], rel=0.5)


def test_without_replicates_there_is_no_interval(posed: Posed) -> None:
    problem, guess, _ = posed
    settings = SETTINGS.model_copy(update={"calibration": OPTIONS.model_copy(update={"replicates": 0})})
    done = calibrate("C", problem, {"weak": guess}, settings)
    assert done.bootstrap is None
    assert all(np.isnan([e.low, e.high]).all() for e in done.estimates.values())


def test_a_constant_added_to_the_picture_moves_terms_without_gradients(posed: Posed) -> None:
    """Diffusion and |∇u|² do not care where u = 0 is; decay does, as a fit to the shifted field shows."""
    boot = bootstrap_fit(posed[0], posed[2], OPTIONS.model_copy(update={"replicates": 2}))
    assert np.abs(boot.offset / truth_of("C", posed[0])).max() < 0.05
    field = known_field("B", 64, 120)
    problem, guess = pose(field, "B")
    fit = fit_rollout(problem, guess, OPTIONS)
    offset = bootstrap_fit(problem, fit, OPTIONS.model_copy(update={"replicates": 2})).offset
    shifted, again = pose(replace(field, values=field.values + np.float32(2e-3)), "B")
    seen = (fit_rollout(shifted, again, OPTIONS).coefficients - fit.coefficients) / 2e-3
    assert offset == pytest.approx(seen, rel=0.15)
    assert abs(offset[0] / guess[0]) > 5


@pytest.mark.parametrize("observable", ["dark", "bright"])
def test_light_that_may_have_changed_widens_what_it_would_move(observable: str) -> None:
    """The budget's line is what a fit to the same field in such light finds; weak decay answers as strongly."""
    field, unknown = known_field("B", 64, 120), 2e-3
    problem, guess = pose(replace(field, light=Light(unknown, observable)), "B")
    fit = fit_rollout(problem, guess, OPTIONS)
    boot = bootstrap_fit(problem, fit, OPTIONS.model_copy(update={"replicates": 2}))
    along = np.linspace(0, unknown, len(field), dtype=np.float32)[:, None, None]
    share = 1 - field.values if observable == "dark" else field.values
    changed, again = pose(replace(field, values=field.values + along * share), "B")
    moved = fit_rollout(changed, again, OPTIONS).coefficients - fit.coefficients
    assert (np.abs(boot.light - moved) < 0.1 * np.abs(moved) + 5e-4 * np.abs(guess)).all()
    assert abs(moved[0] / guess[0]) > 2e-3
    [line] = [line for line in calibrate("B", problem, {"weak": guess}, SETTINGS).budget if line.name == budget.LIGHT]
    assert line.uncertainty == pytest.approx(np.abs(boot.light), rel=0.05)
    unlit, _ = pose(field, "B")
    assert all(line.name != budget.LIGHT for line in calibrate("B", unlit, {"weak": guess}, SETTINGS).budget)


def test_what_lies_outside_a_mask_rises_with_a_constant(posed: Posed) -> None:
    """A round core: pixels around it follow the recording, and must not stand as a step beside what was raised."""
    problem, guess, _ = posed
    y, x = np.indices(problem.window.grid.shape)
    outside = np.hypot(y - 32, x - 32) > 26
    masked = replace(problem, window=replace(problem.window, outside=outside, weight=(~outside).astype(float)))
    fit = fit_rollout(masked, guess, OPTIONS)
    boot = bootstrap_fit(masked, fit, OPTIONS.model_copy(update={"replicates": 2}))
    assert np.abs(boot.offset / truth_of("C", problem)).max() < 0.2


def test_nelder_mead_leaves_a_spline_of_the_drift_alone() -> None:
    problem, guess = pose(known_field("A", 32, 60), "A")
    options = OPTIONS.model_copy(update={"optimizer": "nelder-mead", "replicates": 4, "max_iterations": 60})
    done = calibrate("A", problem, {"weak": guess}, SETTINGS.model_copy(update={"calibration": options}))
    assert done.bootstrap is not None
    assert done.bootstrap.converged == 4


def test_jacobian_and_slope_leave_the_same_frames_out(posed: Posed) -> None:
    """The replicates' step solves JᵀJ x = −Jᵀr: a residual that is a column must be answered by that column's step."""
    problem, _, fit = posed
    world = linear_world(problem, fit)
    assert not isinstance(world, str)
    step = 1e-4 * np.abs(fit.coefficients)
    pictures = np.concatenate([passing.pictures for passing in world.frames()], axis=1)
    residuals = pictures[: len(step)] * step[:, None, None, None].astype(np.float32)
    times = len(problem.window.times)
    # a change of the law shows in no frame that makes the start
    residuals[:, problem.split.start] = 0.0
    order = np.arange(len(step) * times).reshape(len(step), times)
    whole = residuals.reshape(-1, *residuals.shape[2:])
    [draws] = refit(world, [Sample(whole, np.ones(times), order)])
    for index, draw in enumerate(draws):
        assert not isinstance(draw, str)
        change = draw[0] - fit.coefficients
        assert change[index] == pytest.approx(step[index], rel=0.05)
