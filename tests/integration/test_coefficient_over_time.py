"""D(t) from a recording to the verdict, against a spreading Gaussian whose width is known at all times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from video2pde.field import Field, Grid
from video2pde.pipeline import run_pipeline
from video2pde.settings import load_settings

GRID, TIMES = Grid(48, 48, 48.0, 48.0), np.linspace(0, 30, 100)
FIRST, FALL = 0.9, 0.4


def test_a_coefficient_that_falls_is_a_law(tmp_path: Path) -> None:
    """Two spots, so that no one place decides; within a half of the window D's mean and course are not compared."""
    spread = 2 * FIRST * (TIMES - FALL * TIMES**2 / (2 * TIMES[-1]))
    u = np.full((len(TIMES), 48, 48), 0.1)
    for height, x, y, width in ((0.6, 20, 22, 16.0), (0.4, 30, 27, 9.0)):
        square = (GRID.x - x) ** 2 + (GRID.y[:, None] - y) ** 2
        variance = (width + spread)[:, None, None]
        u += height * width / variance * np.exp(-square / (2 * variance))
    u += np.random.default_rng(4).normal(0, 0.002, u.shape)
    film = Field(u, TIMES, GRID).save(tmp_path / "field.npz")
    settings = load_settings(
        "quick", None, {"maps.vary": {"laplacian": "time"}, "drift.flow": "none", "run.workers": 1}
    )
    run = run_pipeline(film, tmp_path / "run", settings, until="test")
    assert run.selection is not None
    assert (run.selection.verdict, run.selection.chosen) == ("law", "A")
    assert run.chosen is not None
    [found] = run.chosen.maps
    assert found.varies
    assert run.windows is not None
    inner = TIMES[run.windows.train][6:-6]
    course = found.course(run.chosen.estimates["laplacian"].value, inner)
    assert course == pytest.approx(FIRST * (1 - FALL * inner / TIMES[-1]), rel=0.03)
    assert run.chosen_fit is not None
    assert {part.group for part in run.chosen_fit.consistency} >= {"picture"}
    assert "time" not in {part.group for part in run.chosen_fit.consistency}
