"""Calibration problems on known-truth fields, from the field to the weak fit, for the tests."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from known_fields import known_field, LAWS

from video2pde.calibration import make_problem, Problem
from video2pde.discovery import discover, weak_system
from video2pde.discovery.moments import law_velocity
from video2pde.drift import estimate_drift
from video2pde.field import Field, Windows
from video2pde.recording.synth import find_preset
from video2pde.settings import load_settings, Settings
from video2pde.terms import libraries

SETTINGS = load_settings(overrides={"run.workers": 1})


def pose(field: Field, library: str, settings: Settings = SETTINGS) -> tuple[Problem, list[float]]:
    """Go from a field to the calibration of a library, and its start from the weak fit."""
    windows = Windows.split(len(field))
    train = field.frames(windows.train)
    drift = estimate_drift(field.frames(slice(0, windows.validation_end)), settings.drift).frames(windows.train)
    weak = weak_system(train, drift, settings, len(field))
    found = discover(weak, settings)[library].coefficients
    terms = libraries(settings)[library]
    start = {term.name: found[term.name] or 1e-3 for term in terms}
    velocity = law_velocity(drift, weak.moments, start)
    return make_problem(train, terms, start, velocity, weak.moments, settings), list(start.values())


@lru_cache(maxsize=20)
def known_problem(name: str, n: int = 64, frames: int = 120) -> tuple[Problem, list[float]]:
    """Pose the calibration of a preset's own law on its exact field."""
    return pose(known_field(name, n, frames), LAWS[name])


def truth_of(name: str, problem: Problem) -> np.ndarray:
    """Return the true coefficients in the order of the problem's terms."""
    law = find_preset(name).law.coefficients
    return np.array([law[term.name] for term in problem.terms])
