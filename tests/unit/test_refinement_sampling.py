"""The points that the refinement trains on and holds out."""

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.refinement.sampling import average_neighbours, draw_samples

GRID = Grid(20, 30, 40.0, 60.0)
TIMES = np.linspace(2.0, 4.0, 9)


def plume(mask=None, grid=GRID, times=TIMES) -> Field:
    y, x = grid.y[:, None] - 20.0, grid.x[None, :] - 30.0
    values = np.exp(-(x**2 + y**2) / 50.0)[None] * (1 + 0.1 * times[:, None, None])
    return Field(values, times, grid, mask)


def test_points_carry_the_field_at_their_place():
    field, velocity = plume(), np.tile([1.5, -0.5], (9, 1))
    samples = draw_samples(field, velocity, "moving", seed=3)
    x, y, t = samples.held_out.inputs.astype(float).T
    seconds = TIMES[0] + (t + 1) * samples.duration
    shift = np.outer(seconds - TIMES[0], [1.5, -0.5])
    path = np.array([[1.5, -0.5]]) * 2.0
    middle = 0.5 * (np.array([GRID.x.max() + GRID.x.min(), GRID.y.max() + GRID.y.min()]) - path[0])
    column = (x * samples.length + middle[0] + shift[:, 0]) / GRID.dx - 0.5
    row = (y * samples.length + middle[1] + shift[:, 1]) / GRID.dy - 0.5
    frame = (seconds - TIMES[0]) / field.dt
    for index in (column, row, frame):
        assert np.abs(index - np.round(index)).max() < 1e-4
    where = tuple(np.round(index).astype(int) for index in (frame, row, column))
    assert np.array_equal(field.values[where], samples.held_out.values)
    assert np.abs(samples.pool.inputs).max() <= 1.0 + 1e-6


def test_held_out_points_are_never_trained_on():
    samples = draw_samples(plume(), np.zeros((9, 2)), "fixed", seed=1)
    trained = {tuple(point) for point in np.unique(samples.pool.inputs, axis=0)}
    held = {tuple(point) for point in np.unique(samples.held_out.inputs, axis=0)}
    assert held
    assert not trained & held


def test_points_lie_inside_the_mask():
    mask = np.zeros(GRID.shape, bool)
    mask[5:12, 8:20] = True
    samples = draw_samples(plume(mask), np.zeros((9, 2)), "fixed", seed=1)
    middle = 0.5 * (GRID.x.max() + GRID.x.min())
    x = samples.pool.inputs[:, 0] * samples.length + middle
    assert x.min() == pytest.approx(GRID.x[8], abs=1e-3)
    assert x.max() == pytest.approx(GRID.x[19], abs=1e-3)


def test_points_concentrate_where_the_plume_is():
    field = plume()
    even = draw_samples(field, np.zeros((9, 2)), "fixed", 1, concentration=0.0)
    dense = draw_samples(field, np.zeros((9, 2)), "fixed", 1, concentration=0.75)
    assert even.pool.values.mean() == pytest.approx(field.values.mean(), rel=0.03)
    assert dense.pool.values.mean() > 2 * even.pool.values.mean()


def test_averaging_keeps_means_and_respects_the_mask():
    grid, times = Grid(200, 240, 50.0, 60.0), np.linspace(0, 1, 205)
    mask = np.ones(grid.shape, bool)
    mask[:, 101:] = False
    field = plume(mask, grid, times)
    coarse, velocity = average_neighbours(field, np.column_stack([times * 0.01, 0 * times]))
    assert coarse.values.shape == (102, 100, 120)
    assert coarse.grid.dx == pytest.approx(0.5)
    assert coarse.values[7, 30, 41] == pytest.approx(field.values[14:16, 60:62, 82:84].mean(), rel=1e-6)
    assert coarse.times[3] == pytest.approx(times[6:8].mean())
    assert velocity[3, 0] == pytest.approx(0.01 * times[6:8].mean())
    assert coarse.mask is not None
    assert coarse.mask[:, :50].all()
    assert not coarse.mask[:, 50:].any()


def test_a_fast_plume_is_not_smeared_by_averaging():
    times = np.linspace(0, 1, 400)
    field = plume(None, GRID, times)
    slow, _ = average_neighbours(field, np.full((400, 2), 1.0))
    fast, _ = average_neighbours(field, np.full((400, 2), 250.0))
    assert len(slow) == 100
    assert len(fast) == 400


def test_a_small_recording_stays_as_it_is():
    field, velocity = plume(), np.zeros((9, 2))
    assert average_neighbours(field, velocity) == (field, velocity)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (Field(np.full((9, 20, 30), 0.3), TIMES, GRID), "constant"),
        (plume().frames(slice(0, 2)), "at least 3"),
    ],
)
def test_what_cannot_be_refined_is_refused(field, words):
    with pytest.raises(InputError, match=words):
        draw_samples(field, np.zeros((len(field), 2)), "moving", 0)
