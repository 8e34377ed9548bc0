"""A named law's coefficients in parts of the training window: steady where they are, and not where they are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from video2pde.calibration.budget import Correction, enclose, LACK_OF_FIT, STATISTICS
from video2pde.calibration.parts import divide_frames, InParts, reach_to_parts
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid
from video2pde.pipeline import run_pipeline
from video2pde.record import load_run
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.settings import load_settings

QUICK = {"run.workers": 1, "calibration.replicates": 8, "identifiability.stability_runs": 4, "drift.flow": "none"}
D = 1.5


def film(slowed: float, frames: int = 60) -> Field:
    """A plume whose D falls to a share ``slowed`` of itself half way through the training window."""
    case = make_case("A", drift=(0.0, 0.0))
    recorded = np.linspace(0, case.duration, frames)
    middle = recorded[round(0.3 * frames)]
    lived = np.where(recorded < middle, recorded, middle + slowed * (recorded - middle))
    seen = exact_field(case, Grid(40, 40, 200.0, 200.0), lived)
    return noisy(Field(seen.values, recorded, seen.grid, provenance=seen.provenance), 0.001, 5)


def follow(field: Field, folder: Path) -> InParts:
    folder.mkdir()
    settings = load_settings("quick", overrides={**QUICK, "regression.law": "laplacian"})
    run_pipeline(field.save(folder / "field.npz"), folder / "run", settings, figures=False)
    found = load_run(folder / "run").steadiness
    assert isinstance(found, InParts)
    return found


def test_a_steady_coefficient_and_one_that_falls(tmp_path: Path) -> None:
    steady, falls = follow(film(1.0), tmp_path / "steady"), follow(film(0.6), tmp_path / "falls")
    assert len(steady.spans) == 4
    assert steady.unsteady == ()
    law = load_run(tmp_path / "steady" / "run").calibration[steady.library]
    none, value = np.zeros(1), law.estimates["laplacian"].value
    lines = (Correction(STATISTICS, none, none + 0.03), Correction(LACK_OF_FIT, none, none + 2.0))
    wide = replace(law, budget=lines, estimates={"laplacian": enclose(none + value, lines)[0]})
    apart = replace(steady, estimates={"laplacian": (Estimate(value - 0.4), Estimate(value + 0.3))}, encoded=False)
    assert wide.estimates["laplacian"].high - value > 2
    assert reach_to_parts(wide, apart).estimates["laplacian"].high - value == pytest.approx(np.hypot(0.03, 0.4))
    assert reach_to_parts(wide, replace(apart, encoded=True)) is wide
    assert falls.unsteady == ("laplacian",)
    for truth, estimate in zip((D, D, 0.6 * D, 0.6 * D), falls.estimates["laplacian"], strict=True):
        assert estimate.low <= truth <= estimate.high
        assert estimate.high - estimate.low < 0.6 * truth
    told = json.loads((tmp_path / "falls" / "run" / "result.json").read_text(encoding="utf-8"))
    assert told["steadiness"]["steady"] == {"laplacian": False}
    assert len(told["steadiness"]["parts"]) == 4
    assert any("Δu is not steady over the training window" in text for text in told["warnings"])
    page = (tmp_path / "falls" / "run" / "report.html").read_text(encoding="utf-8")
    assert "something is missing from the law" in page
    assert (tmp_path / "falls" / "run" / "tables" / "steadiness.csv").is_file()


def test_few_frames_are_not_divided() -> None:
    assert divide_frames(9, 4) == [slice(0, 5), slice(4, 9)]
    with pytest.raises(StageError, match="too few to be divided"):
        divide_frames(8, 4)
