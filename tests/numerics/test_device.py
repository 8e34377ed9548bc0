"""The same numbers from a device: JAX's own processor stands for a GPU here, and is held against compiled code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_problems import known_problem, SETTINGS

from video2pde.calibration import Problem
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import compare_halves, fit_rollout
from video2pde.calibration.growth import largest_gain, refit_with_start
from video2pde.calibration.simplex import rollout_mse
from video2pde.device import choose_device, find_gpu
from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.front import fit_front
from video2pde.rollout.batching import batch_size, frames_at_once
from video2pde.rollout.jax_loop import compile_loop
from video2pde.rollout.kernels import Structure
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import SideBySide, simulate_batch
from video2pde.rollout.task import Scheme
from video2pde.settings import RolloutSettings

SAME = 1e-6
OPTIONS = SETTINGS.calibration.model_copy(update={"replicates": 4})
GRID = Grid(20, 24, 20.0, 24.0)


def noisy(name: str) -> tuple[Problem, list[float]]:
    """Pose a small calibration with noise, which would show where both disagree on who sees which frame."""
    problem, guess = known_problem(name, 32, 60)
    values = problem.window.values
    noise = 0.01 * np.random.default_rng(7).standard_normal(values.shape)
    return replace(problem, window=replace(problem.window, values=(values + noise).astype(np.float32))), guess


def on_both(problem: Problem) -> tuple[Problem, Problem]:
    return problem, replace(problem, window=replace(problem.window, device="gpu"))


def assert_same(ours: np.ndarray, theirs: np.ndarray, within: float = SAME) -> None:
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=within * np.abs(ours).max())


def test_a_fit_its_replicates_and_its_front() -> None:
    problem, guess = noisy("C")
    fit, theirs = (fit_rollout(each, guess, OPTIONS) for each in on_both(problem))
    assert fit.converged
    assert fit.rollouts == theirs.rollouts
    assert_same(fit.coefficients, theirs.coefficients, 1e-10)
    assert_same(fit.velocity, theirs.velocity, 1e-10)
    assert_same(fit.start, theirs.start, 1e-10)
    boots = [bootstrap_fit(each, fit, OPTIONS) for each in on_both(problem)]
    assert boots[0].converged == OPTIONS.replicates
    for name in ("draws", "high", "offset"):
        assert_same(*(getattr(boot, name) for boot in boots))
    starts, background = {"calibrated": fit.coefficients.tolist()}, np.zeros(len(problem.window.times))
    fronts = [fit_front(each, fit, starts, SETTINGS.front, SETTINGS.rollout, background) for each in on_both(problem)]
    for one, other in zip(*fronts, strict=True):
        assert_same(*(np.array(list(each.coefficients.values())) for each in (one, other)))
    assert_same(*(compare_halves(each, fit).apart for each in on_both(problem)))
    assert_same(*(fit.coefficients + discretisation_bias(each, fit) for each in on_both(problem)))
    errors = [rollout_mse(each, each.scene(fit.values, fit.start)) for each in on_both(problem)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-10)


def test_a_fit_with_its_initial_frame() -> None:
    problem, guess = noisy("C")
    fit = fit_rollout(problem, guess, OPTIONS)
    gains = [largest_gain(each, fit) for each in on_both(problem)]
    assert gains[1] == pytest.approx(gains[0], rel=SAME)
    ours, theirs = (refit_with_start(each, fit) for each in on_both(problem))
    assert ours is not None
    assert theirs is not None
    assert_same(ours.coefficients, theirs.coefficients)
    assert_same(ours.start, theirs.start)
    boots = [bootstrap_fit(each, ours, OPTIONS) for each in on_both(problem)]
    assert_same(boots[0].draws, boots[1].draws)


def plume() -> np.ndarray:
    y, x = np.meshgrid(GRID.y, GRID.x, indexing="ij")
    return 0.1 + 0.6 * np.exp(-((x - 9) ** 2 + (y - 13) ** 2) / 20)


@pytest.mark.parametrize("boundary", ["replicate", "periodic"])
@pytest.mark.parametrize("reader", ["gathered", "tiled"])
def test_looking_neighbours_up_gives_the_same(reader: str, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times, models = np.linspace(0, 1, 6), [Model.of({"porous": 0.4}), Model.of({"laplacian": 1.5})]
    settings = RolloutSettings(boundary=boundary)

    def looked_up(structure: Structure, boundary: str, restart: bool) -> object:
        return compile_loop(structure, boundary, restart, reader)

    monkeypatch.setattr("video2pde.rollout.jax_backend.compile_loop", looked_up)
    ours, theirs = (
        simulate_batch(models, plume(), times, GRID, None, Scheme(settings, device=device)) for device in ("cpu", "gpu")
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.substeps, other.substeps)
        np.testing.assert_allclose(other.values, one.values, rtol=0, atol=1e-13)


def test_laws_of_a_vocabulary_share_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    times, structures = np.linspace(0, 1, 6), set()
    laws = [Model.of({"laplacian": 0.4}), Model.of({"grad_squared": 2.0, "laplacian": 0.3})]
    words = tuple(dict.fromkeys(term for law in laws for term in law.terms))

    def seen(structure: Structure, boundary: str, restart: bool) -> object:
        structures.add(structure)
        return compile_loop(structure, boundary, restart)

    monkeypatch.setattr("video2pde.rollout.jax_backend.compile_loop", seen)
    for law in laws:
        [theirs] = simulate_batch([law], plume(), times, GRID, None, Scheme(device="gpu", vocabulary=words))
        [ours] = simulate_batch([law], plume(), times, GRID)
        np.testing.assert_array_equal(ours.substeps, theirs.substeps)
        np.testing.assert_allclose(theirs.values, ours.values, rtol=0, atol=1e-13)
    assert len(structures) == 1


def test_one_that_fails_does_not_disturb_the_others() -> None:
    times, models = np.linspace(0, 12, 40), [Model.of({"laplacian": -0.9}), Model.of({"laplacian": 0.3})]
    ours, theirs = (SideBySide(models, plume(), times, GRID, None, Scheme(device=each)) for each in ("cpu", "gpu"))
    while not ours.done:
        (_, one, told), (_, other, said) = ours.advance(16), theirs.advance(16)
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_allclose(other[1], one[1], rtol=0, atol=1e-13)
        assert [rollout.reason for rollout in told] == [rollout.reason for rollout in said]
    assert told[0].failed
    assert not told[1].failed


def test_auto_needs_a_gpu_and_a_picture_that_is_worth_it() -> None:
    assert choose_device("cpu", 10**9) == "cpu"
    assert choose_device("auto", 64) == "cpu"
    if find_gpu() is None:
        assert choose_device("auto", 10**9) == "cpu"
        with pytest.raises(InputError, match="JAX finds no gpu"):
            choose_device("gpu", 10**9)


def test_batches_and_frames_have_few_sizes() -> None:
    assert {batch_size(count, 200 * 200) for count in range(1, 9)} == {8}
    assert batch_size(50, 200 * 200) == 64
    assert batch_size(3, 1024 * 1024) == 4
    assert frames_at_once(8, 200 * 200) == 64
    assert frames_at_once(64, 1024 * 1024) == 4
