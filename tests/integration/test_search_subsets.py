"""A whole run with a search over sets of terms: a tensor that nobody named is found, told and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video2pde.field import Grid, Provenance
from video2pde.pipeline import run_pipeline
from video2pde.record import Run
from video2pde.recording.synth import exact_field, make_case, Medium, noisy
from video2pde.report.content import compose_page, Story
from video2pde.report.figures import collect_figures
from video2pde.settings import load_settings

QUICK = {
    "weak.test_functions": 500,
    "identifiability.stability_runs": 8,
    "identifiability.stability_centres": 300,
    "calibration.replicates": 10,
    "run.workers": 1,
    "search.over": "subsets",
    "search.laws": 3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("oblique")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Run a field that spreads twice as fast at 30 degrees as across that."""
    case = replace(make_case("A"), medium=Medium(anisotropy=1 / 3, turned=30.0))
    field = exact_field(case, Grid(48, 48, 200.0, 200.0), np.linspace(0, case.duration, 80))
    film = folder / "oblique.npz"
    replace(noisy(field, 0.002, 1), provenance=Provenance(path=str(film))).save(film)
    return run_pipeline(film, folder / "run", load_settings("quick", overrides=QUICK), figures=False)


@pytest.fixture(scope="module")
def result(run: Run, folder: Path) -> dict[str, Any]:
    assert run.selection is not None
    return json.loads((folder / "run" / "result.json").read_text())


def test_the_tensor_is_chosen_and_its_directions_hold(run: Run, result: dict[str, Any]) -> None:
    assert result["verdict"] == "law"
    assert set(result["selected"]["terms"]) == {"dxx", "dyy", "dxy"}
    found = result["selected"]["directions"]
    for entry, truth in (("along", 2.0), ("across", 1.0), ("angle_deg", 30.0)):
        assert found[entry]["value"] == pytest.approx(truth, rel=0.05)
        assert found[entry]["low"] <= truth <= found[entry]["high"]
    assert found["positive"]
    assert found["anisotropic"]
    assert "degrees from x towards y" in run.summary()


def test_the_front_is_in_result_tables_figures_and_page(run: Run, result: dict[str, Any], folder: Path) -> None:
    front = result["search"]["front"]
    sizes = [law["size"] for law in front]
    assert sizes == sorted(set(sizes))
    three = next(law for law in front if law["size"] == 3)
    assert set(three["terms"]) == {"dxx", "dyy", "dxy"}
    assert three["frequency"] > 0.8
    assert three["goes_on"]
    # never more rollouts than were asked for
    going_on = [law["name"] for law in (*front, *result["search"]["others"]) if law["goes_on"]]
    assert len(going_on) <= 3
    assert set(result["validation"]["libraries"]) == set(result["libraries"]) == set(going_on)
    assert ["laplacian", "dxx", "dyy", "dxy"] in result["search"]["inseparable"]
    assert "dxx, dyy, dxy" in (folder / "run" / "tables" / "search.csv").read_text()
    drawings = dict(collect_figures(run))
    axes = drawings["search-front"]().axes[0]
    assert axes.get_yscale() == "log"
    section = next(each for each in compose_page(Story(run)).sections if each.id == "search")
    assert f"Of {result['search']['subsets']} sets of 14 terms" in str(section.sentence)
