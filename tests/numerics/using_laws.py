"""Saved models of the known laws on a small grid, for the tests of what they are used for."""

from __future__ import annotations

import numpy as np

from video2pde.field import Grid, Windows
from video2pde.flow import Flow, FlowShape
from video2pde.using import SavedModel

LAWS = {
    "A": {"laplacian": 1.5},
    "B": {"u": -0.02, "laplacian": 1.2},
    "C": {"grad_squared": 9.005, "laplacian": 0.666},
    "C-alt": {"u_grad_squared": 12.0, "laplacian": 0.8},
    "Fisher": {"u": 0.14, "u_squared": -0.16, "laplacian": 0.8},
    "porous": {"porous": 2.0, "laplacian": 0.3},
}
TIMES = np.linspace(0.0, 3.0, 31)
VELOCITY = np.stack([0.5 + 0.2 * np.sin(TIMES), -0.3 + 0 * TIMES], axis=1)
SMALL = Grid(20, 24, 40.0, 48.0)
WIDE = Grid(40, 50, 160.0, 200.0)


def make_model(law: dict[str, float], grid: Grid = SMALL, **more: object) -> SavedModel:
    """Save a law with the drift of these tests."""
    return SavedModel.of(list(law), law, grid, Windows.split(len(TIMES)), TIMES, VELOCITY, **more)  # type: ignore[arg-type]


def make_flow(kind: str, grid: Grid = SMALL) -> Flow:
    """Return a flow that turns and strains: steady, changing, diverging, or on a stream function that may pulse."""
    shapes = {
        "affine": {},
        "changing": {"in_time": 4},
        "diverging": {"divergence": True},
        "stream": {"kind": "stream", "splines": (7, 8), "in_time": 3},
        "pulsing": {"kind": "stream", "splines": (7, 8), "course": (0.0, 0.2, 1.0, 0.9, 0.1)},
    }
    shape = FlowShape(**{"kind": "affine", "extent": (grid.height, grid.width), "span": (0.3, 2.6)} | shapes[kind])
    rng = np.random.default_rng(3)
    size = (shape.in_time, len(shape.names))
    values = rng.normal(0.08, 0.05, size) if shape.kind == "affine" else rng.normal(0.0, 12.0, size)
    return Flow(shape, values, 0.01 * np.ones(size))


def skewed_plume(grid: Grid = SMALL) -> np.ndarray:
    """Return an asymmetric plume that stays away from the edges."""
    y, x = grid.y[:, None], grid.x[None, :]
    slanted = (x - 22) ** 2 / 98 + (y - 21) ** 2 / 72 + (x - 22) * (y - 21) / 80
    return np.asarray(0.1 + 0.5 * np.exp(-slanted))
