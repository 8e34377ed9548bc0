"""A named law, from few and uneven frames, and with edges that something enters through."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erfc

from video2pde.caveats import collect_caveats, FEW_FRAMES
from video2pde.field import Field, Grid
from video2pde.pipeline import run_pipeline
from video2pde.settings import load_settings, Settings

GRID = Grid(40, 40, 40.0, 40.0)


def named(**more: object) -> Settings:
    fixed = {"regression.law": "laplacian", "drift.flow": "none", "identifiability.stability_runs": 5}
    return load_settings("quick", None, {**fixed, **more})


@pytest.mark.parametrize("frames", [5, 12])
def test_few_frames_at_uneven_times_give_d(tmp_path: Path, frames: int) -> None:
    times = np.array([0, 1.5, 2.5, 4, 6.5, 8, 11, 15, 18.5, 24, 29, 34])[:frames]
    squared = (GRID.x - 21) ** 2 + (GRID.y[:, None] - 18) ** 2
    rng = np.random.default_rng(2)
    u = [0.7 * 16 / (16 + 1.6 * t) * np.exp(-squared / (2 * (16 + 1.6 * t))) for t in times]
    film = Field(np.array(u) + rng.normal(0, 0.003, (frames, 40, 40)), times, GRID).save(tmp_path / "field.npz")
    run = run_pipeline(film, tmp_path / "run", named(), until="test")
    assert run.chosen is not None
    estimate = run.chosen.estimates["laplacian"]
    assert estimate.value == pytest.approx(0.8, rel=0.05)
    assert set(run.calibration) == {"A"}


@pytest.mark.parametrize(("frames", "decay", "library"), [(5, 0.0, "A"), (6, 0.05, "B")])
def test_rollouts_decide_where_frames_are_too_few_for_test_functions(
    tmp_path: Path, frames: int, decay: float, library: str
) -> None:
    times = np.array([0, 2, 5, 9, 14, 20.0])[:frames]
    squared = (GRID.x - 21) ** 2 + (GRID.y[:, None] - 18) ** 2
    rng = np.random.default_rng(6)
    u = [np.exp(-decay * t) * 11.2 / (16 + 1.6 * t) * np.exp(-squared / (2 * (16 + 1.6 * t))) for t in times]
    film = Field(np.array(u) + rng.normal(0, 0.002, (frames, 40, 40)), times, GRID).save(tmp_path / "field.npz")
    settings = named(**{"regression.law": None, "calibration.replicates": 4})
    run = run_pipeline(film, tmp_path / "run", settings, until="test")
    assert run.discovery is not None
    assert run.discovery.identifiability.by_rollout
    assert run.selection is not None
    assert run.selection.chosen == library
    assert run.chosen is not None
    assert run.chosen.estimates["laplacian"].value == pytest.approx(0.8, rel=0.1)
    assert FEW_FRAMES in collect_caveats(run.discovery, run.calibration, {})


def test_long_gaps_after_short_ones_do_not_stop_the_fit(tmp_path: Path) -> None:
    """A rollout needs thirty times the substeps in the last intervals that it needs in the first."""
    times = np.array([0, 0.5, 1, 1.5, 2, 3, 5, 8, 20, 35, 50, 65, 80])
    squared = (GRID.x - 21) ** 2 + (GRID.y[:, None] - 18) ** 2
    rng = np.random.default_rng(4)
    u = [0.7 * 9 / (9 + 1.2 * t) * np.exp(-squared / (2 * (9 + 1.2 * t))) for t in times]
    film = Field(np.array(u) + rng.normal(0, 0.003, (13, 40, 40)), times, GRID).save(tmp_path / "field.npz")
    run = run_pipeline(film, tmp_path / "run", named(**{"split.by": "change"}), until="calibration")
    fit = run.calibration["A"].fit
    assert fit.converged
    assert fit.coefficients[0] == pytest.approx(0.6, rel=0.05)


def test_a_front_that_enters_needs_measured_edges(tmp_path: Path) -> None:
    """u = c erfc(x/2√(Dt)) comes in from the left: seen by itself; with a closed edge the same fit is wrong."""
    times = np.linspace(0, 30, 31)
    rng = np.random.default_rng(0)
    frames = [0.1 + 0.7 * erfc(GRID.x / (2 * math.sqrt(2.0 * (t + 4)))) * np.ones((40, 1)) for t in times]
    film = Field(np.array(frames) + rng.normal(0, 0.005, (31, 40, 40)), times, GRID).save(tmp_path / "field.npz")
    found = {}
    for edges in ("auto", "no_flux"):
        run = run_pipeline(film, tmp_path / edges, named(**{"recording.edges": edges}), until="calibration")
        found[edges] = run.calibration["A"].estimates["laplacian"].value if run.calibration else math.nan
    assert found["auto"] == pytest.approx(2.0, rel=0.05)
    assert not abs(found["no_flux"] / 2.0 - 1) < 0.1
