"""Regions: walls that nothing passes, rims that follow the recording, pictures that go straight on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_using_exports import run_numpy_script

from video2pde.calibration.window import prepare_window
from video2pde.field import Field, Grid, Windows
from video2pde.recording.mask import enclose
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.simulate import simulate, simulate_batch, simulate_chunks
from video2pde.rollout.task import Scheme
from video2pde.rollout.validate import validate
from video2pde.settings import load_settings, RolloutSettings
from video2pde.using import SavedModel
from video2pde.using.schema import SavedRegion

GRID = Grid(30, 34, 30 * 0.5, 34 * 0.5, "µm")
OFF = RolloutSettings(clip="off")
DIFFUSION = Model.of({"laplacian": 1.2})
TIMES = np.linspace(0, 4, 9)


def droplet() -> np.ndarray:
    """A disc with a notch, a bump of one cell and a gap of one cell: no convex region."""
    y, x = np.indices(GRID.shape)
    inside = (x - 16) ** 2 + (y - 14) ** 2 < 11.5**2
    inside[10:13, 20:30] = False
    inside[14, 2:5] = True
    inside[:8, 16] = False
    return inside


def half_bleached() -> np.ndarray:
    y, x = np.indices(GRID.shape)
    return np.where(x > 15, 0.2, 0.9) + 0.02 * np.sin(y)


def inside_mass(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:, droplet()], float).sum(axis=1)


def test_walls_conserve_what_is_inside() -> None:
    inside = droplet()
    rollout = simulate(DIFFUSION, half_bleached(), TIMES, GRID, None, OFF, region=Region(inside))
    mass = inside_mass(rollout.values)
    assert np.ptp(mass) < 1e-11 * mass[0]
    moved = np.abs(rollout.values[-1] - rollout.values[0])[inside].max()
    assert moved > 0.1
    leaking = simulate(DIFFUSION, half_bleached(), TIMES, GRID, None, OFF)
    assert np.ptp(inside_mass(leaking.values)) > 1e-3 * mass[0]


def test_walls_see_nothing_of_the_outside() -> None:
    inside, start = droplet(), half_bleached()
    law = Model.of({"grad_squared": 0.5, "u": 0.1, "laplacian": 1.2})
    other = np.where(inside, start, np.random.default_rng(0).random(GRID.shape))
    one, two = (simulate(law, u, TIMES, GRID, None, OFF, region=Region(inside)).values for u in (start, other))
    np.testing.assert_array_equal(one[:, inside], two[:, inside])


def test_walls_around_the_whole_picture_are_its_own_edges() -> None:
    everywhere = Region(np.ones(GRID.shape, bool))
    walled = simulate(DIFFUSION, half_bleached(), TIMES, GRID, None, OFF, region=everywhere).values
    np.testing.assert_allclose(walled, simulate(DIFFUSION, half_bleached(), TIMES, GRID, None, OFF).values, atol=1e-13)


def test_a_cosine_decays_between_walls_as_it_must() -> None:
    """The slowest mode of a strip, which is a part of the picture: exp(−Dk²t)."""
    inside = np.zeros(GRID.shape, bool)
    inside[:, 5:25] = True
    length = 20 * GRID.dx
    wave = np.cos(np.pi * (np.arange(34) - 5 + 0.5) * GRID.dx / length)
    start = 0.5 + 0.3 * np.broadcast_to(wave, GRID.shape)
    end = simulate(DIFFUSION, start, TIMES, GRID, None, OFF, region=Region(inside)).values[-1]
    decay = float(np.exp(-1.2 * (np.pi / length) ** 2 * TIMES[-1]))
    np.testing.assert_allclose((end - 0.5)[:, 5:25], 0.3 * decay * np.broadcast_to(wave[5:25], (30, 20)), atol=2e-5)


def test_a_rim_drives_what_is_inside_between_frames() -> None:
    """u = x² + 2Dt solves u_t = DΔu: a rim that is linear in time is followed exactly, however rare the frames."""
    x = GRID.x[None, :]
    exact = np.stack([np.broadcast_to(0.01 * x**2 + 0.02 * 1.2 * t, GRID.shape) for t in TIMES])
    inside = np.zeros(GRID.shape, bool)
    inside[3:-3, 3:-3] = True
    region = Region(inside, exact.astype(np.float32))
    rollout = simulate(DIFFUSION, exact[0], TIMES, GRID, None, OFF, region=region)
    np.testing.assert_allclose(rollout.values, exact, atol=1e-6)
    pieces = [v for _, v, _ in simulate_chunks([DIFFUSION], exact[0], TIMES, GRID, None, Scheme(OFF, region=region), 2)]
    np.testing.assert_allclose(np.concatenate(pieces, axis=1)[0], rollout.values, atol=1e-9)


def test_a_rollout_that_fails_beside_a_rim_ends_in_words() -> None:
    """Where no law of a streamed window is left, what is left of the window has no rollouts to be run."""
    growing = Model.of({"u_squared": 40.0})
    rim = np.repeat(half_bleached()[None], len(TIMES), axis=0)
    scheme = Scheme(OFF, region=Region(droplet(), rim))
    *_, (_, values, (rollout,)) = simulate_chunks([growing], half_bleached(), TIMES, GRID, None, scheme, 2)
    assert rollout.failed
    assert not np.isfinite(values).all()


def test_open_edges_go_straight_on() -> None:
    """A slope stays a slope, where mirrored edges flatten it; both on the CPU and through JAX."""
    slope = np.broadcast_to(0.1 + 0.03 * GRID.x, GRID.shape)
    opened, mirrored = (RolloutSettings(clip="off", boundary=b) for b in ("open", "replicate"))
    np.testing.assert_allclose(simulate(DIFFUSION, slope, TIMES, GRID, None, opened).values[-1], slope, atol=1e-12)
    assert np.abs(simulate(DIFFUSION, slope, TIMES, GRID, None, mirrored).values[-1] - slope).max() > 0.01
    ours, theirs = (
        simulate_batch([DIFFUSION], half_bleached(), TIMES, GRID, None, Scheme(opened, device=device))[0].values
        for device in ("cpu", "gpu")
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def saved(edge: str) -> SavedModel:
    return SavedModel.of(
        ["laplacian"],
        {"laplacian": 1.2},
        GRID,
        Windows.split(9),
        TIMES,
        np.zeros((9, 2)),
        region=SavedRegion.of(droplet(), edge),  # type: ignore[arg-type]
        rollout=OFF,
    )


@pytest.mark.parametrize("edge", ["walls", "held"])
def test_the_model_file_and_the_script_keep_the_region(edge: str, tmp_path: Path) -> None:
    model = SavedModel.parse(saved(edge).to_json())
    ours = model.simulate(half_bleached(), TIMES).values
    theirs = run_numpy_script(model, half_bleached(), tmp_path, "--duration", "4", "--frames", "8")
    np.testing.assert_allclose(ours[:, droplet()], theirs[:, droplet()], atol=2e-4)
    if edge == "walls":
        for values in (ours, theirs):
            mass = inside_mass(values)
            assert np.ptp(mass) < 1e-11 * mass[0]


def test_a_region_that_does_not_fill_the_grid_is_refused() -> None:
    from video2pde.errors import InputError

    text = saved("walls").to_json().replace('"runs": [', '"runs": [7, ')
    with pytest.raises(InputError, match="region"):
        SavedModel.parse(text)


def test_validation_scores_a_walled_law_right() -> None:
    inside = droplet()
    truth = simulate(DIFFUSION, half_bleached(), TIMES, GRID, None, OFF, region=Region(inside)).values
    field = Field(np.where(inside, truth, 0.0), TIMES, GRID, inside, walls=True)
    row = validate(field, {"A": DIFFUSION}, np.zeros((9, 2)), OFF).rows[0]
    assert row.measured.full.rrmse < 1e-6
    assert row.measured.one_step.rrmse < 1e-6


def test_cells_at_a_wall_hold_nothing_of_the_outside() -> None:
    y, x = np.indices(GRID.shape)
    disc = (x - 16.3) ** 2 + (y - 14.2) ** 2 < 10**2
    mixed = np.where((x - 16.3) ** 2 + (y - 14.2) ** 2 < 9.5**2, 0.8, 0.3)
    field = enclose(Field(mixed[None] * np.ones((2, 1, 1)), TIMES[:2], GRID, disc))
    assert field.walls
    assert (field.core == disc).all()
    np.testing.assert_allclose(field.values, 0.8, atol=1e-6)


def test_open_edges_reach_the_rollouts_from_the_settings() -> None:
    from video2pde.errors import SettingsError

    assert load_settings(overrides=["recording.edges=open"]).rollout.boundary == "open"
    with pytest.raises(SettingsError, match="mask"):
        load_settings(overrides=["recording.edges=open", "recording.mask=u>0.3"])


def test_cells_at_walls_are_no_data_of_their_own() -> None:
    inside = droplet()
    closed = enclose(Field(np.stack([half_bleached()] * 3), TIMES[:3], GRID, inside))
    assert closed.counted is not None
    assert not (closed.counted & ~inside).any()
    beside = closed.counted & ~np.roll(inside, 1, axis=1)
    assert not beside.any()
    assert (prepare_window(closed).weight == closed.counted).all()
    open_rim = Field(closed.values, TIMES[:3], GRID, inside)
    assert open_rim.counted is open_rim.core
