"""A study of tiny films from plan to page, and once more."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from video2pde.field import Field, Grid
from video2pde.settings import load_settings
from video2pde.study.order import run_study, Study
from video2pde.study.plan import FilmPlan, Plan
from video2pde.tasks import Workforce

DIFFUSION = 0.9
QUICK = {
    "regression.law": "laplacian",
    "weak.test_functions": 300,
    "identifiability.stability_runs": 4,
    "identifiability.stability_centres": 100,
    "calibration.replicates": 8,
    "run.workers": 1,
}


def spreading(seed: int, side: int, frames: int, diffusion: float = DIFFUSION) -> Field:
    """Return a heat kernel under a drift, with a little noise; films differ in size, length and pitch."""
    rng = np.random.default_rng(seed)
    times, grid = np.linspace(0.0, 6.0 + seed, frames), Grid(side, side, 30.0, 30.0)
    drift = rng.uniform(-0.4, 0.4, 2)
    spread = 6.0 + 2 * diffusion * times[:, None, None]
    x = grid.x - 15.0 - drift[0] * (times - times.mean())[:, None]
    y = grid.y - 15.0 - drift[1] * (times - times.mean())[:, None]
    values = 4.0 / spread * np.exp(-(x[:, None, :] ** 2 + y[:, :, None] ** 2) / (2 * spread))
    return Field((values + 0.002 * rng.standard_normal(values.shape)).astype(np.float32), times, grid)


def make_plan(folder: Path, count: int = 3) -> Plan:
    settings = load_settings("quick", overrides=QUICK)
    films = []
    for k in range(count):
        path = spreading(k, (32, 36, 40)[k % 3], 48 + 6 * k).save(folder / f"film{k}.npz")
        films.append(FilmPlan(f"film{k}", path, settings, {"depth": float(k + 1)}))
    return Plan("heat", tuple(films), settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return run_study(make_plan(folder), folder / "out")


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "result.json").read_text(encoding="utf-8"))
    return found


def test_films_together_know_the_law_better_than_each(study: Study, folder: Path) -> None:
    found = result(folder)
    shared = found["selected"]["terms"]["laplacian"]
    assert found["verdict"] == "law"
    assert found["one_law"] is True
    assert shared["low"] < DIFFUSION < shared["high"]
    halves = [(f["laplacian"]["high"] - f["laplacian"]["low"]) / 2 for f in found["selected"]["films"].values()]
    assert (shared["high"] - shared["low"]) / 2 < min(halves)
    assert study.chosen is not None
    assert study.chosen.converged
    # the law that the other films ask for does not know of the one that is left out
    without = [study.chosen.without(f"film{k}")[0] for k in range(3)]
    assert without == pytest.approx([DIFFUSION] * 3, rel=0.03)
    assert len(set(without)) == 3


def test_every_film_is_a_run_of_its_own_and_every_table_is_there(study: Study, folder: Path) -> None:
    for film in study.films:
        assert (Path(film.folder) / "report.html").is_file()
        assert json.loads((Path(film.folder) / "result.json").read_text())["selected"]["terms"]["laplacian"]
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "out" / "tables").glob("*.csv")}
    rows = {name: list(csv.DictReader(text.splitlines())) for name, text in texts.items()}
    assert len(rows["transfer"]) == 9
    assert len(rows["coefficients"]) == 4
    assert {row["film"] for row in rows["leave-one-out"]} == {"film0", "film1", "film2"}
    assert [row["supports"] for row in rows["support"]] == ["true"] * 3
    assert {row["condition"] for row in rows["conditions"]} == {"depth"}
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    for title in (
        "Is it one law?",
        "Leave one film out",
        "The law of one film on another",
        "against conditions",
        "in step",
    ):
        assert title in page


@pytest.mark.usefixtures("study")
def test_a_study_goes_on_where_it_stopped_with_the_same_bytes(folder: Path) -> None:
    before = (folder / "out" / "result.json").read_bytes()
    pages = {p: p.stat().st_mtime_ns for p in (folder / "out" / "films").glob("*/report.html")}
    (folder / "out" / "stages" / "03-choice.npz").unlink()
    run_study(make_plan(folder), folder / "out")
    assert (folder / "out" / "result.json").read_bytes() == before
    assert {p: p.stat().st_mtime_ns for p in pages} == pages


@pytest.mark.usefixtures("study")
def test_a_film_that_fails_is_named_and_the_others_go_on(folder: Path) -> None:
    """A film in which nothing happens cannot be fitted; the shared law is that of the others."""
    plan = make_plan(folder)
    values = np.full((8, 12, 12), 0.5, np.float32)
    flat = Field(values, np.arange(8.0), Grid(12, 12, 30.0, 30.0)).save(folder / "flat.npz")
    more = Plan(plan.title, (*plan.films, FilmPlan("flat", flat, plan.settings, {"depth": 9.0})), plan.settings)
    before = result(folder)["selected"]
    found = run_study(more, folder / "out", Workforce(1))
    assert "flat" in found.failed or (found.chosen is not None and "flat" in found.chosen.left_out)
    assert result(folder)["selected"]["terms"] == before["terms"]


def test_the_command(folder: Path, study: Study, quick_cli: Callable[..., CompletedProcess[str]]) -> None:
    assert study.films
    overrides = [word for key, value in QUICK.items() for word in ("--set", f"{key}={value}")]
    films = [folder / f"film{k}.npz" for k in range(3)]
    done = quick_cli("study", *films, "--out", folder / "out", "--preset", "quick", *overrides, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "one law for all? nothing speaks against it" in done.stdout
    assert "Δu" in done.stdout
