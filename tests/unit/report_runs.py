"""Tiny runs whose reports are looked at: a law, none at all, and one that stopped half way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.field import Field, Grid, Provenance
from video2pde.pipeline import run_pipeline
from video2pde.record import Run
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.refinement.result import History, SeedRun, summarise
from video2pde.settings import load_settings
from video2pde.stages import REFINED, WEAK

SIDE, FRAMES = 48, 60
HOSTILE = "<img src=x onerror=alert(1)>.npz"
QUICK = {
    "weak.test_functions": 300,
    "identifiability.stability_runs": 8,
    "identifiability.stability_centres": 200,
    "calibration.replicates": 6,
    "run.workers": 1,
}
LAW_SECTIONS = [
    "preprocessing",
    "drift",
    "conditioning",
    "sweep",
    "stability",
    "validation",
    "calibration",
    "fit",
    "front",
    "selection",
    "test",
    "refinement",
    "analysis",
    "settings",
    "provenance",
    "timings",
    "warnings",
]
"""The sections of a page that tells a law, in their order."""
FRONT = {"front.enabled": True, "front.times": 8}


def spreading_field() -> Field:
    """Return a small plume that follows |∇u|² and Δu, with a little noise."""
    grid = Grid(SIDE, SIDE, 200.0, 200.0)
    case = make_case("C", background=0.1, drift=(0.25, -0.1), seed=3)
    return noisy(exact_field(case, grid, np.linspace(0.0, 34.0, FRAMES)), 0.002, 1)


def noise_field() -> Field:
    """Return frames of nothing but noise."""
    rng = np.random.default_rng(5)
    values = 0.3 + 0.02 * rng.standard_normal((FRAMES, SIDE, SIDE))
    return Field(values.astype(np.float32), np.linspace(0.0, 10.0, FRAMES), Grid(SIDE, SIDE, 200.0, 200.0))


def make_run(field: Field, folder: Path, name: str, until: str | None = None) -> Path:
    """Save a field under a name and run the pipeline on it; return the run's folder."""
    film = folder / name
    replace(field, provenance=Provenance(path=str(film))).save(film)
    out = folder / "run"
    settings = load_settings("quick", overrides={**QUICK, **FRONT})
    run_pipeline(film, out, settings, until=until, figures=False)
    return out


def add_refinement(run: Run) -> Run:
    """Put a made-up inverse PINN beside a run: the report draws it, whatever it was trained on."""
    assert run.discovery is not None
    assert run.validation is not None
    contender = run.discovery.contenders[0]
    names = tuple(term.name for term in contender.terms)
    steps = np.arange(10.0, 210.0, 10.0)
    values = np.array([contender.coefficients[name] for name in names])
    path = values * (1 + 0.1 * np.exp(-steps / 50.0))[:, None]
    fall = np.exp(-steps / 80.0)
    history = History(steps, fall, steps, 0.1 * fall, 0.3 * fall + 0.1, path, steps[::5], 0.1 * fall[::5], fall[::5])
    reason = "a coefficient still moved by 9.7% over the last fifth"
    seeds = tuple(SeedRun(seed, path[-1], history, 0.02, 0.1, False, reason, (200, 200), 1.0) for seed in (1, 2))
    refinement = summarise(names, seeds, tuple(values.tolist()), "cpu", ())
    kept = run.validation.rows[:1]
    rows = tuple(replace(row, library=f"{contender.library}, {kind}") for row in kept for kind in (WEAK, REFINED))
    timings = {**run.timings, "refinement": 1.0, "comparison": 1.0}
    comparison = replace(run.validation, rows=rows)
    return replace(run, timings=timings, refinement={contender.library: refinement}, comparison=comparison)


def walk(value: Any) -> Iterator[Any]:
    """Yield every value in a document, one after the other."""
    yield value
    if is_dataclass(value):
        for entry in fields(value):
            yield from walk(getattr(value, entry.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from walk(item)


def words(value: Any) -> str:
    """Return all text of a document."""
    return " ".join(v for v in walk(value) if isinstance(v, str))


def keep_stages(run: Run, names: Sequence[str]) -> Run:
    """Take a run back to some of its stages."""
    return Run(
        run.settings, {name: run.timings[name] for name in names}, **{name: getattr(run, name) for name in names}
    )
