"""Compare artefacts part by part, and make real ones of every kind from one small recording."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any

import numpy as np

from video2pde.calibration import make_problem
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.fit import fit_rollout
from video2pde.discovery import diagnose, weak_system
from video2pde.drift import estimate_drift
from video2pde.field import Grid, Windows
from video2pde.recording.synth import exact_field, find_preset
from video2pde.refinement.result import History, SeedRun, summarise
from video2pde.rollout.model import Model
from video2pde.rollout.validate import validate
from video2pde.settings import load_settings


def same(a: Any, b: Any) -> bool:
    """Tell whether two artefacts are the same, types, number types and NaN included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return bool(a.dtype == b.dtype and a.shape == b.shape and np.asarray(a).tobytes() == np.asarray(b).tobytes())
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if dataclasses.is_dataclass(a) and type(a).__name__ != "Term":
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a == b)


@lru_cache(maxsize=1)
def real_artefacts() -> dict[str, Any]:
    """Take a small film with a known law through the stages, and keep what each one gives."""
    options = [
        "identifiability.stability_runs=3",
        "weak.test_functions=100",
        "identifiability.stability_centres=60",
        "calibration.replicates=2",
        "run.workers=1",
    ]
    settings = load_settings(overrides=options)
    case = find_preset("C")
    field = exact_field(case, Grid(40, 44, 200.0, 220.0), np.linspace(0, case.duration, 60))
    windows = Windows.split(len(field))
    drift = estimate_drift(field, settings.drift)
    train, train_drift = field.frames(windows.train), drift.frames(windows.train)
    weak = weak_system(train, train_drift, settings, len(field))
    law = {"grad_squared": 9.0, "laplacian": 0.7}
    model = Model.of(law)
    problem = make_problem(train, model.terms, law, train_drift.velocity, weak.moments, settings)
    fit = fit_rollout(problem, [9.0, 0.7], settings.calibration)
    return {
        "field": field,
        "windows": (windows, windows.test),
        "drift": drift,
        "weak system": weak.system,
        "identifiability": diagnose(weak, settings),
        "validation": validate(
            field.frames(windows.validation), {"C": model}, drift.frames(windows.validation).velocity, diffusion=0.7
        ),
        "refinement": _refinement(),
        "fit": fit,
        "bootstrap": bootstrap_fit(problem, fit, settings.calibration),
        "settings": settings,
    }


def _refinement() -> Any:
    """Put a refinement together as the training does, with the gaps that it may have."""
    steps = np.arange(3.0)
    history = History(steps, steps, steps, steps, np.full(3, np.nan), np.ones((3, 2)), steps[:1], steps[:1], steps[:1])
    run = SeedRun(7, np.array([9.0, 0.7]), history, 0.01, np.inf, False, "stopped", (10, 20), 1.5, True)
    return summarise(("grad_squared", "laplacian"), (run,), (9.0, 0.7), "cpu", ("short",))
