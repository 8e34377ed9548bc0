"""The whole way, recording to result, in other units of length and time: the same law with the same digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from video2pde.field import Field, Grid
from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE
from video2pde.terms.words import rescaling

SETTINGS = {
    "calibration.replicates": 3,
    "identifiability.stability_runs": 4,
    "weak.test_functions": 400,
    "front.enabled": True,
    "front.times": 4,
    "front.contenders": 1,
}
LENGTHS = {"nm": 1e9, "µm": 1e6, "mm": 1e3, "km": 1e-3, "a picture of 200 nm, in m": 1e-9}
TIMES = {"ns": 1e-9, "days": 86400.0}
SAME = 1e-7
"""Relative difference up to which digits are the same; single precision in the weak system leaves about 5e-9."""

Runner = Callable[[float, float], dict[str, Any]]


@pytest.fixture(scope="module")
def run_in(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Run one small recording with its lengths and times multiplied, and return result.json."""
    field = noisy(exact_field(make_case("C"), Grid(40, 40, 200.0, 200.0, "m"), np.linspace(0, 30, 61)), 0.003, seed=1)
    done: dict[tuple[float, float], dict[str, Any]] = {}

    def run(length: float, time: float) -> dict[str, Any]:
        if (length, time) not in done:
            folder = tmp_path_factory.mktemp("units")
            path = scaled(field, length, time).save(folder / "field.npz")
            run_pipeline(path, folder / "run", load_settings("quick", overrides=SETTINGS), figures=False)
            done[length, time] = json.loads((folder / "run" / "result.json").read_text(encoding="utf-8"))
        return done[length, time]

    return run


def scaled(field: Field, length: float, time: float) -> Field:
    grid = replace(field.grid, height=field.grid.height * length, width=field.grid.width * length)
    return replace(field, grid=grid, times=field.times * time)


UNITS = [(f, 1.0) for f in LENGTHS.values()] + [(1.0, f) for f in TIMES.values()] + [(1e-9, 86400.0), (1e9, 1e-9)]


@pytest.mark.parametrize(("length", "time"), UNITS)
def test_units_change_no_law_and_no_digit(run_in: Runner, length: float, time: float) -> None:
    plain, other = run_in(1.0, 1.0), run_in(length, time)
    assert plain["verdict"] == other["verdict"] == "law"
    assert plain["selected"]["library"] == other["selected"]["library"] == "C"
    for law, same in zip(laws(plain), laws(other), strict=True):
        assert law["library"] == same["library"]
        # what does not describe the film is not well determined by it: its fit stops somewhere near the least error
        digits = SAME if law["library"] == "C" else 1e-3
        for name, estimate in law["terms"].items():
            factor = rescaling(CATALOGUE[name], length, time)
            assert factor is not None
            for key in ("value", "low", "high"):
                assert same["terms"][name][key] == pytest.approx(estimate[key] * factor, rel=digits), (name, key)
    assert other["test"]["rrmse"] == pytest.approx(plain["test"]["rrmse"], rel=SAME)
    assert other["test"]["front_rmse"] == pytest.approx(plain["test"]["front_rmse"] * length, rel=1e-5)
    for name, library in plain["libraries"].items():
        assert other["libraries"][name]["active"] == library["active"]
        assert other["libraries"][name]["condition"] == pytest.approx(library["condition"], rel=1e-5)
    assert len(other["warnings"]) == len(plain["warnings"])


def laws(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [result["selected"], *result["alternatives"]]


def test_a_floor_in_the_units_of_the_film_would_be_seen(run_in: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that was there: no coefficient's scale below 1e-9, whatever its unit."""
    import video2pde.calibration.problem as problem

    def floored(_window: Any, _terms: Any, values: Any) -> Any:
        return np.maximum(np.abs(values), 1e-9)

    plain = run_in(1.0, 1.0)["selected"]["terms"]["laplacian"]["value"]
    monkeypatch.setattr(problem, "coefficient_scales", floored)
    broken = run_in(1e-8, 1.0)["selected"]
    wrong = broken is None or broken["terms"].get("laplacian", {}).get("value", 0.0) != pytest.approx(
        plain * 1e-16, rel=1e-3
    )
    assert wrong
