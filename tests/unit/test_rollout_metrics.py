"""Metrics on pictures whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.rollout.metrics import centroid, front_radii, measure

GRID = Grid(80, 100, 40.0, 50.0)
LEVELS = (0.05, 0.10, 0.15, 0.20, 0.25)
Y, X = np.meshgrid(GRID.y, GRID.x, indexing="ij")


def cone(cx: float = 24.3, cy: float = 19.1, reach: float = 15.0) -> np.ndarray:
    """Return a cone of height 0.5: u ≥ γ is a disc of radius reach·(1 − 2γ)."""
    return np.maximum(0.5 * (1 - np.hypot(X - cx, Y - cy) / reach), 0.0)


def test_front_radius_is_finer_than_a_pixel() -> None:
    radii = front_radii(cone()[None], GRID, LEVELS)[0]
    expected = [15 * (1 - 2 * level) for level in LEVELS]
    np.testing.assert_allclose(radii, expected, atol=0.01)
    # counting whole pixels jumps: it cannot see a front that moves by a hundredth of a pixel
    moved = front_radii(cone(reach=15.005)[None], GRID, LEVELS)[0]
    np.testing.assert_allclose(moved - radii, [0.005 * (1 - 2 * level) for level in LEVELS], rtol=0.2)


def test_levels_may_come_in_any_order() -> None:
    shuffled = (0.2, 0.05, 0.25, 0.1, 0.15)
    radii = dict(zip(shuffled, front_radii(cone()[None], GRID, shuffled)[0], strict=True))
    np.testing.assert_array_equal([radii[level] for level in LEVELS], front_radii(cone()[None], GRID, LEVELS)[0])


def test_shares_of_pixels_are_those_of_planes() -> None:
    """Pixel by pixel and level by level: above, below, or the linear share of one that the front crosses."""
    rng = np.random.default_rng(4)
    frame = rng.uniform(0, 0.3, GRID.shape)
    slope_y, slope_x = (np.gradient(frame, axis=axis) for axis in (0, 1))
    spread = np.hypot(slope_x, slope_y)
    expected = [np.clip(0.5 + (frame - level) / spread, 0, 1).sum() for level in LEVELS]
    radii = front_radii(frame[None], GRID, LEVELS)[0]
    np.testing.assert_allclose(radii**2 * np.pi / (GRID.dx * GRID.dy), expected, rtol=1e-12)


def test_front_lies_above_the_background() -> None:
    raised = front_radii((cone() + 0.3)[None], GRID, LEVELS, background=np.array([0.3]))
    np.testing.assert_allclose(raised, front_radii(cone()[None], GRID, LEVELS), atol=1e-9)


def test_centroid_follows_the_plume_once_the_background_is_gone() -> None:
    there, here = cone(26.3, 18.1), cone()
    frames = np.stack([here, there]) + 0.25
    moved = np.diff(centroid(frames, GRID, np.full(2, 0.25)), axis=0)[0]
    np.testing.assert_allclose(moved, [2.0, -1.0], atol=0.01)
    raw = np.diff(centroid(frames, GRID, np.zeros(2)), axis=0)[0]
    assert np.hypot(*raw) < 0.5 * np.hypot(*moved)


def test_errors_by_hand() -> None:
    observed = np.stack([np.full(GRID.shape, 0.4), np.full(GRID.shape, 0.2)])
    predicted = observed + np.array([0.0, 0.1])[:, None, None]
    metrics = measure(predicted, observed, GRID, LEVELS)
    assert metrics.rrmse == pytest.approx(np.sqrt(0.01 / (0.16 + 0.04)))
    np.testing.assert_allclose(metrics.mse, [0.0, 0.01], atol=1e-15)
    np.testing.assert_allclose(metrics.rrmse_over_time, [0.0, 0.5], atol=1e-12)


def test_front_and_centroid_summaries() -> None:
    observed = np.stack([cone(), cone()])
    predicted = np.stack([cone(), cone(24.6, 19.5, 15.6)])
    metrics = measure(predicted, observed, GRID, LEVELS)
    assert metrics.centroid_rmse == pytest.approx(0.5 / np.sqrt(2), rel=0.01)
    assert metrics.centroid_mae == pytest.approx(0.25, rel=0.01)
    growth = np.array([0.6 * (1 - 2 * level) for level in LEVELS])
    np.testing.assert_allclose(metrics.front_mae_by_level, growth / 2, rtol=0.03)
    np.testing.assert_allclose(metrics.front_rmse_by_level, growth / np.sqrt(2), rtol=0.03)
    assert metrics.front_mae == pytest.approx(growth.mean() / 2, rel=0.03)
    assert metrics.front_rmse > metrics.front_mae


def test_only_the_mask_counts() -> None:
    mask = X < 25
    observed = cone()[None]
    wrong_outside = np.where(mask, observed, 0.9)
    assert measure(wrong_outside, observed, GRID, LEVELS, mask).rrmse == 0.0
    metrics = measure(wrong_outside, observed, GRID, LEVELS, mask)
    assert metrics.centroid_rmse == 0.0
    assert measure(wrong_outside, observed, GRID, LEVELS).rrmse > 1.0


def test_a_rollout_that_failed_is_infinitely_wrong() -> None:
    observed = np.stack([cone(), cone()])
    predicted = observed.copy()
    predicted[1] = np.nan
    metrics = measure(predicted, observed, GRID, LEVELS)
    assert metrics.rrmse == metrics.front_rmse == metrics.centroid_rmse == np.inf
    assert metrics.mse[0] == 0.0
    assert metrics.mse[1] == np.inf


def test_an_empty_picture_has_a_centroid_and_fronts() -> None:
    metrics = measure(np.zeros((1, *GRID.shape)), np.zeros((1, *GRID.shape)), GRID, LEVELS)
    assert (metrics.rrmse, metrics.centroid_rmse, metrics.front_rmse) == (0.0, 0.0, 0.0)


def test_shapes_must_match() -> None:
    with pytest.raises(InputError, match="do not match"):
        measure(np.zeros((2, *GRID.shape)), np.zeros((1, *GRID.shape)), GRID, LEVELS)
