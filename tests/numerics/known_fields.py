"""Exact-law fields for the tests, made once per test process, and the stages up to the diagnosis."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from video2pde.discovery import diagnose, Identifiability, Weak, weak_system
from video2pde.drift import Drift, estimate_drift
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import Case, exact_field, find_preset
from video2pde.settings import load_settings, Settings

LAWS = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
"""Known-truth cases and the library that holds their law."""
SETTINGS = load_settings()


@lru_cache(maxsize=20)
def known_field(name: str, n: int = 100, frames: int = 300) -> Field:
    """Return the true field of a preset case on n × n cells."""
    case = find_preset(name)
    return exact_field(case, Grid(n, n, 200.0, 200.0), np.linspace(0, case.duration, frames))


def assemble(field: Field, settings: Settings = SETTINGS) -> tuple[Weak, Drift]:
    """Measure the drift and assemble the weak system of the training window."""
    train = Windows.split(len(field)).train
    drift = estimate_drift(field, settings.drift)
    return weak_system(field.frames(train), drift.frames(train), settings, len(field)), drift.frames(train)


def analyse(field: Field, settings: Settings = SETTINGS) -> tuple[Identifiability, Weak, Drift]:
    """Go on to the diagnosis."""
    weak, drift = assemble(field, settings)
    return diagnose(weak, settings), weak, drift


@lru_cache(maxsize=20)
def known_analysis(name: str, n: int = 100, frames: int = 300) -> tuple[Identifiability, Weak, Drift]:
    """Analyse a preset's true field with the default settings."""
    return analyse(known_field(name, n, frames))


def rescaled(field: Field, length: float = 1.0, time: float = 1.0, gain: float = 1.0, offset: float = 0.0) -> Field:
    """Express the same recording in other units."""
    grid = replace(field.grid, height=length * field.grid.height, width=length * field.grid.width)
    return Field(np.float32(gain) * field.values + np.float32(offset), time * field.times, grid)


def relative_errors(found: Identifiability, case: Case, library: str) -> dict[str, float]:
    """Compare a library's coefficients with the case's law."""
    fit = found.libraries[library].fit
    return {name: fit.coefficients[name] / value - 1 for name, value in case.law.coefficients.items()}
