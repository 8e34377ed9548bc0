"""Rollouts: batches, chunks, restarts, and failures that are told."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.flow import Flow, FlowShape
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import predict_one_step, simulate, simulate_batch, simulate_chunks
from video2pde.rollout.task import Scheme
from video2pde.rollout.together import SideBySide
from video2pde.settings import RolloutSettings

GRID = Grid(24, 32, 24.0, 32.0)
TIMES = np.linspace(0, 2, 11)
DRIFT = np.stack([0.3 + 0.1 * TIMES, -0.2 + 0 * TIMES], 1)
LAW = Model.of({"grad_squared": 3.0, "laplacian": 0.4})


@pytest.fixture
def u0() -> np.ndarray:
    y, x = np.meshgrid(GRID.y, GRID.x, indexing="ij")
    return 0.1 + 0.6 * np.exp(-((x - 14) ** 2 / 30 + (y - 11) ** 2 / 18))


def test_a_batch_equals_single_runs_on_any_number_of_threads(u0: np.ndarray) -> None:
    models = [
        Model.of({"grad_squared": a, "laplacian": 0.4}, (1.0, s)) for a, s in ((1.0, 1.0), (3.0, 0.8), (5.0, 1.2))
    ]
    models.append(Model())
    starts = np.stack([u0, 0.9 * u0, u0[::-1], u0])
    singles = [simulate(m, s, TIMES, GRID, DRIFT).values for m, s in zip(models, starts, strict=True)]
    for workers in (1, 2, 5):
        batch = simulate_batch(models, starts, TIMES, GRID, DRIFT, Scheme(workers=workers))
        for single, rollout in zip(singles, batch, strict=True):
            np.testing.assert_array_equal(rollout.values, single)
    assert np.abs(singles[0] - singles[1]).max() > 1e-2


def test_each_model_of_a_batch_may_have_its_own_drift(u0: np.ndarray) -> None:
    batch = simulate_batch([LAW, LAW], u0, TIMES, GRID, np.stack([DRIFT, -DRIFT]))
    np.testing.assert_array_equal(batch[1].values, simulate(LAW, u0, TIMES, GRID, -DRIFT).values)


def test_chunks_add_up_to_the_whole(u0: np.ndarray) -> None:
    models = [LAW, Model.of({"grad_squared": 1.0, "laplacian": -2.0})]
    whole = simulate_batch(models, u0, TIMES * 10, GRID, DRIFT)
    pieces = list(simulate_chunks(models, u0, TIMES * 10, GRID, DRIFT, chunk=4))
    assert [window.stop - window.start for window, _, _ in pieces] == [4, 4, 3]
    joined = np.concatenate([values[0] for _, values, _ in pieces])
    np.testing.assert_allclose(joined, whole[0].values, rtol=0, atol=1e-6)
    assert whole[1].failed
    last = pieces[-1][2][1]
    assert last.failed
    assert last.failed_frame == whole[1].failed_frame
    assert np.isnan(last.values).all()


def test_laws_of_several_kinds_go_forward_together_on_any_number_of_threads(u0: np.ndarray) -> None:
    """Those that share all but their numbers, one with a flow of its own, one of other terms, and one that fails."""
    turning = Flow(FlowShape("affine", (24.0, 32.0), (0.0, 20.0)), np.array([[0.1, 0.0, 0.02]]), np.zeros((1, 3)))
    models = [
        LAW,
        Model.of({"u": 0.01, "laplacian": 0.3}, (0.5, 1.0)),
        Model(LAW.terms, LAW.coefficients, flow=turning),
        Model.of({"grad_squared": 2.0, "laplacian": 0.9}),
        Model.of({"grad_squared": 1.0, "laplacian": -2.0}),
    ]
    starts, drifts = np.stack([u0, 0.9 * u0, u0, u0[::-1], u0]), np.stack([DRIFT, -DRIFT, DRIFT, 2 * DRIFT, DRIFT])
    alone = [simulate(m, s, TIMES * 10, GRID, v) for m, s, v in zip(models, starts, drifts, strict=True)]
    for workers in (1, 3):
        together = SideBySide(models, starts, TIMES * 10, GRID, drifts, Scheme(workers=workers))
        assert not together.stacked
        pieces, told = [], []
        while not together.done:
            _, values, rollouts = together.advance(3)
            pieces.append(values)
            told = [rollout.reason for rollout in rollouts]
        for values, single in zip(np.concatenate(pieces, axis=1), alone, strict=True):
            np.testing.assert_allclose(values, single.values, rtol=0, atol=1e-6)
        assert told == [single.reason for single in alone]
    assert told[:4] == [""] * 4
    assert "of 10" in told[4]


def test_frames_and_output_type_can_be_chosen(u0: np.ndarray) -> None:
    whole = simulate(LAW, u0, TIMES, GRID, DRIFT)
    some = simulate(LAW, u0, TIMES, GRID, DRIFT, frames=[0, 4, 10], output="float32")
    assert some.values.dtype == np.float32
    np.testing.assert_array_equal(some.values, whole.values[[0, 4, 10]].astype(np.float32))


def test_one_step_predictions_start_from_each_observed_frame(u0: np.ndarray) -> None:
    observed = np.stack([u0 * (1 - 0.02 * k) for k in range(len(TIMES))])
    values = np.concatenate([part[0] for _, part in predict_one_step([LAW], observed, TIMES, GRID, DRIFT, chunk=3)])
    np.testing.assert_array_equal(values[0], observed[0])
    for k in (1, 5, 10):
        alone = simulate(LAW, observed[k - 1], TIMES[k - 1 : k + 1], GRID, DRIFT[k - 1 : k + 1])
        np.testing.assert_allclose(values[k], alone.values[1], rtol=0, atol=1e-15)


def test_a_mirrored_problem_has_the_mirrored_solution(u0: np.ndarray) -> None:
    plain = simulate(LAW, u0, TIMES, GRID, DRIFT).values
    mirrored = simulate(LAW, u0[:, ::-1], TIMES, GRID, DRIFT * [-1, 1]).values
    np.testing.assert_allclose(mirrored[:, :, ::-1], plain, rtol=0, atol=1e-13)
    turned = simulate(LAW, u0.T, TIMES, Grid(32, 24, 32.0, 24.0), DRIFT[:, ::-1]).values
    np.testing.assert_allclose(np.swapaxes(turned, 1, 2), plain, rtol=0, atol=1e-13)


def test_units_of_length_and_time_do_not_matter(u0: np.ndarray) -> None:
    plain = simulate(LAW, u0, TIMES, GRID, DRIFT).values
    length, duration = 7.0, 3.0
    scaled = Model.of({"grad_squared": 3.0 * length**2 / duration, "laplacian": 0.4 * length**2 / duration})
    other = simulate(
        scaled, u0, TIMES * duration, Grid(24, 32, 24 * length, 32 * length), DRIFT * length / duration
    ).values
    np.testing.assert_allclose(other, plain, rtol=0, atol=1e-12)


def test_backward_diffusion_fails_with_frame_and_reason(u0: np.ndarray) -> None:
    times = np.linspace(0, 40, 41)
    backward = Model.of({"grad_squared": 0.0, "laplacian": -0.4})
    for clip, words in (("auto", r"clipping to \[0, 1\]"), ("off", "blew up")):
        rollout = simulate(backward, u0, times, GRID, settings=RolloutSettings(clip=clip))
        assert rollout.failed
        assert rollout.failed_frame is not None
        assert 1 < rollout.failed_frame < 40
        assert np.isnan(rollout.values[rollout.failed_frame :]).all()
        assert np.isfinite(rollout.values[: rollout.failed_frame]).all()
        assert re.search(words, rollout.reason)
        assert f"frame {rollout.failed_frame} of 40" in rollout.reason
    # over a short time it is a legitimate diagnostic
    assert not simulate(backward, u0, [0.0, 0.05], GRID).failed


def test_absurd_coefficients_end_at_once(u0: np.ndarray) -> None:
    begin = time.perf_counter()
    stiff = simulate(Model.of({"grad_squared": 1.0, "laplacian": 1e9}), u0, TIMES, GRID)
    assert (stiff.failed, stiff.failed_frame) == (True, 1)
    assert "more than 2000 substeps" in stiff.reason
    wild = simulate(Model.of({"grad_squared": 1e12, "laplacian": 1.0}), u0, TIMES, GRID)
    assert wild.failed
    assert time.perf_counter() - begin < 20


def test_growth_without_clipping_is_reported_as_blow_up(u0: np.ndarray) -> None:
    model = Model.of({"u": 3.0, "u_squared": 5.0, "laplacian": 0.1})
    rollout = simulate(model, u0, TIMES, GRID, settings=RolloutSettings(clip="off"))
    assert rollout.failed
    assert "blew up" in rollout.reason or "substeps" in rollout.reason


def test_substantial_clipping_is_no_success(u0: np.ndarray) -> None:
    rising = Model.of({"u": 1.0, "u_squared": 0.0, "laplacian": 0.1})
    rollout = simulate(rising, u0, TIMES, GRID)
    assert rollout.failed
    assert "clipping" in rollout.reason
    gentle = Model.of({"u": 0.3, "u_squared": 0.0, "laplacian": 0.0})
    slight = simulate(gentle, u0 / 0.7 * 0.9, [0.0, 0.5], GRID)
    assert not slight.failed
    assert 0 < slight.clipped < 0.1


def test_data_that_are_not_normalised_are_not_clipped(u0: np.ndarray) -> None:
    rollout = simulate(LAW, u0 - 0.5, TIMES, GRID)
    assert not rollout.failed
    np.testing.assert_allclose(rollout.values, simulate(LAW, u0, TIMES, GRID).values - 0.5, rtol=0, atol=1e-12)


def test_viscosity_adds_to_the_diffusion(u0: np.ndarray) -> None:
    thick = simulate(LAW, u0, TIMES, GRID, settings=RolloutSettings(viscosity=0.1))
    np.testing.assert_array_equal(
        thick.values, simulate(Model.of({"grad_squared": 3.0, "laplacian": 0.5}), u0, TIMES, GRID).values
    )


def test_bad_input_is_named(u0: np.ndarray) -> None:
    with pytest.raises(InputError, match="must increase"):
        simulate(LAW, u0, [0.0, 0.0], GRID)
    with pytest.raises(InputError, match="do not fit"):
        simulate(LAW, u0[:, :-1], TIMES, GRID)
    with pytest.raises(InputError, match="missing values"):
        simulate(LAW, np.full(GRID.shape, np.nan), TIMES, GRID)
    with pytest.raises(InputError, match="drift velocity"):
        simulate(LAW, u0, TIMES, GRID, DRIFT[:-1])
    with pytest.raises(InputError, match="as many first frames"):
        simulate_batch([LAW], np.stack([u0, u0]), TIMES, GRID)
    with pytest.raises(InputError, match="smaller than the stencil"):
        simulate(LAW, np.zeros((1, 32)), TIMES, Grid(1, 32, 1.0, 32.0))
