"""A field along whose gradient u is carried: what is read, and what is refused with its cause."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile

from video2pde.errors import InputError, SettingsError
from video2pde.field import Grid
from video2pde.flow.given import read_potential
from video2pde.flow.words import describe_flow, left_side, summarise_flow
from video2pde.settings import load_settings

GRID = Grid(20, 30, 40.0, 60.0, "mm")


def test_the_velocity_is_minus_the_gradient(tmp_path: Path) -> None:
    """From other cells than the recording's, by positions or by cells that cover the picture; along x and y."""
    y, x = np.linspace(0, 40, 33), np.linspace(0, 60, 41)
    g = 0.02 * (y[:, None] - 10) ** 2 + 0.3 * x[None, :]
    np.savez(tmp_path / "g.npz", g=g, x=x, y=y)
    flow = read_potential(tmp_path / "g.npz", GRID, (0.0, 1.0))
    v_x, v_y = flow.velocity(np.array([0.0]), GRID)[0]
    np.testing.assert_allclose(v_x, -0.3, rtol=1e-5)
    np.testing.assert_allclose(v_y, np.broadcast_to(-0.04 * (GRID.y[:, None] - 10), GRID.shape), atol=1e-6)
    cells = 0.3 * (np.arange(24) + 0.5) / 24 * 60 + np.zeros((10, 1))
    tifffile.imwrite(tmp_path / "g.tif", cells.astype(np.float32))
    v_x, v_y = read_potential(tmp_path / "g.tif", GRID, (0.0, 1.0)).velocity(np.array([0.0]), GRID)[0]
    np.testing.assert_allclose(v_x[:, 2:-2], -0.3, rtol=1e-4)
    np.testing.assert_allclose(v_y, 0.0, atol=1e-5)


def test_it_is_said_what_carries_u(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", np.add.outer(np.arange(9.0), np.zeros(9)))
    flow = read_potential(tmp_path / "g.npz", GRID, (0.0, 1.0)).scaled((2.5, 2.5))
    assert left_side(flow).text == "u_t − χ ∇g·∇u"
    assert "χ = 2.5" in describe_flow(flow, GRID)
    assert summarise_flow(flow, GRID)["mobility"]["value"] == 2.5


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"g": np.zeros((9, 9))}, "the same everywhere"),
        ({"g": np.full((9, 9), np.nan)}, "100.0% of g is missing"),
        ({"g": np.zeros((9, 3))}, "more than 3 rows and columns"),
        ({"a": np.eye(9), "b": np.eye(9)}, "needs a field g"),
        ({"g": np.eye(9), "x": np.zeros(9)}, "increasing positions"),
    ],
)
def test_what_is_no_field_is_refused(arrays: dict[str, np.ndarray], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=said):
        read_potential(tmp_path / "g.npz", GRID, (0.0, 1.0))


def test_one_factor_and_one_way_to_say_it() -> None:
    assert load_settings(overrides={"drift.potential": "g.npz"}).regression.drift == "scale"
    with pytest.raises(SettingsError, match="two ways to say"):
        load_settings(overrides={"drift.potential": "g.npz", "drift.velocity": "v.npz"})
    with pytest.raises(SettingsError, match="one factor for both axes"):
        load_settings(overrides={"drift.potential": "g.npz", "regression.drift": "axes"})
    with pytest.raises(InputError, match="no such file"):
        read_potential(Path("missing.tif"), GRID, (0.0, 1.0))
