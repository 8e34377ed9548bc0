"""Calibration of C on the paper's window: rollouts used, what a bootstrap costs, and Nelder–Mead beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from video2pde.calibration import make_problem, Problem
from video2pde.calibration.blocks import DRIFT
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.simplex import fit_nelder_mead
from video2pde.discovery import discover, weak_system
from video2pde.discovery.moments import law_velocity
from video2pde.drift import estimate_drift
from video2pde.field import Grid, Windows
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.resampling import draw_blocks
from video2pde.settings import load_settings, Settings
from video2pde.terms import libraries

Row = dict[str, Any]
FRAMES, SIZE, NOISE = 1009, 200, 0.005
"""The paper's recording: 605 of 1009 frames train."""
FEW = 61
"""Frames of a fit that is made once, before anything is timed, so that all is compiled."""
NELDER_MEAD_REPLICATES = 2
PAIRS = 3
"""How often one worker and two are timed in turn; the pair with the middle ratio counts."""


def pose(settings: Settings, frames: int = FRAMES) -> tuple[Problem, list[float]]:
    """Make the field of C with a little noise and go through drift and weak fit."""
    case = find_preset("C")
    exact = exact_field(case, Grid(SIZE, SIZE, 200.0, 200.0), np.linspace(0, case.duration, frames))
    field = noisy(exact, NOISE, 1)
    windows = Windows.split(len(field))
    train = field.frames(windows.train)
    drift = estimate_drift(field.frames(slice(0, windows.validation_end)), settings.drift).frames(windows.train)
    weak = weak_system(train, drift, settings, len(field))
    terms = libraries(settings)["C"]
    found = discover(weak, settings)["C"].coefficients
    start = {term.name: found[term.name] for term in terms}
    velocity = law_velocity(drift, weak.moments, start)
    return make_problem(train, terms, start, velocity, weak.moments, settings), list(start.values())


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def run() -> list[Row]:
    """Measure fit, grid bias and bootstrap, with one worker and with two, and Nelder–Mead beside them."""
    settings = load_settings(overrides={"run.workers": 1})
    options = settings.calibration
    problem, guess = pose(settings)
    truth = np.array([find_preset("C").law.coefficients[term.name] for term in problem.terms])
    fit_rollout(*pose(settings, FEW), options)  # compiles
    seconds, fit = timed(lambda: fit_rollout(problem, guess, options))
    poor_seconds, poor = timed(lambda: fit_rollout(problem, [0.1 * c for c in guess], options))
    grid_seconds, bias = timed(lambda: discretisation_bias(problem, fit))
    pairs = []
    for _ in range(PAIRS):
        one, boot = timed(lambda: bootstrap_fit(problem, fit, options, workers=1))
        pairs.append((one, timed(lambda: bootstrap_fit(problem, fit, options, workers=2))[0]))
    one, two = sorted(pairs, key=lambda pair: pair[1] / pair[0])[PAIRS // 2]
    errors = np.abs((fit.coefficients - bias) / truth - 1)
    return [
        {"name": "fit of C, 605 frames, from the weak fit: rollouts", "value": fit.rollouts, "unit": "", "limit": 20},
        {"name": "fit of C, from the weak fit", "value": seconds, "unit": "s"},
        {"name": "fit of C, from a tenth of the weak fit: rollouts", "value": poor.rollouts, "unit": ""},
        {"name": "fit of C, from a tenth of the weak fit", "value": poor_seconds, "unit": "s"},
        {"name": "grid bias from a finer truth", "value": grid_seconds, "unit": "s"},
        {"name": "largest error of a coefficient, noise 0.5 %", "value": 100 * float(errors.max()), "unit": "%"},
        {"name": "bootstrap, B = 50, one worker", "value": one, "unit": "s"},
        {"name": "bootstrap / one fit", "value": one / seconds, "unit": "×", "limit": 100},
        {"name": "bootstrap, B = 50, two workers", "value": two, "unit": "s"},
        {"name": "bootstrap, two workers / one", "value": two / one, "unit": "×", "limit": 1 / 1.7},
        {"name": "bootstrap, replicates converged", "value": boot.converged, "unit": "of 50"},
        *beside_nelder_mead(problem, fit, guess, settings, one),
    ]


def beside_nelder_mead(problem: Problem, fit: Fit, guess: list[float], settings: Settings, ours: float) -> list[Row]:
    """Fit the same residual blocks by Nelder–Mead, a few of them, and compare both optimisers.

    Nelder–Mead fits the coefficients alone: the refined drift and the initial frame are given to it.
    """
    options = settings.calibration
    problem = replace(problem.without(DRIFT), velocity=fit.velocity)
    start = fit.start
    lm_seconds, lm = timed(lambda: fit_rollout(problem, guess, options, start=start))
    nm_seconds, nm = timed(lambda: fit_nelder_mead(problem, guess, options, start=start))
    window = problem.window
    noise = np.random.default_rng(0).normal(0, NOISE, window.values.shape).astype(np.float32)
    replicates = []
    for seed in range(NELDER_MEAD_REPLICATES):
        order = draw_blocks(len(window.times), round(np.sqrt(len(window.times))), np.random.default_rng(seed))
        drawn = replace(problem, window=replace(window, values=window.values + noise[order]))
        replicates.append(timed(lambda drawn=drawn: fit_nelder_mead(drawn, guess, options, start=start))[0])
    whole = 50 * float(np.mean(replicates))
    apart = np.abs(lm.coefficients / nm.coefficients - 1).max()
    return [
        {"name": "Nelder–Mead, drift and start fixed: rollouts", "value": nm.rollouts, "unit": ""},
        {"name": "Nelder–Mead, one fit", "value": nm_seconds, "unit": "s"},
        {"name": "Levenberg–Marquardt, the same, one fit", "value": lm_seconds, "unit": "s"},
        {"name": "the two apart, largest relative difference", "value": 100 * float(apart), "unit": "%", "limit": 1.0},
        {
            "name": f"bootstrap by Nelder–Mead, B = 50, extrapolated from {NELDER_MEAD_REPLICATES}",
            "value": whole,
            "unit": "s",
        },
        {"name": "bootstrap by Nelder–Mead / ours, one worker", "value": whole / ours, "unit": "×"},
    ]
