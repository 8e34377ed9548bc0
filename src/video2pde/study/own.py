"""A film's own part of a joint calibration, in a worker: its own fit of a law, and what it answers to a shared one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration, Fit, Problem
from video2pde.calibration.blocks import LAW
from video2pde.calibration.budget import ENCODER, GRID, ROUNDING
from video2pde.calibration.fit import evaluate
from video2pde.calibration.growth import share_start
from video2pde.calibration.linear import Linear
from video2pde.discovery.regression import fit_library
from video2pde.drift import Drift
from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.record import load_run, Run
from video2pde.runs.archive import load_artefact, save_artefact
from video2pde.stages import calibrate_contender, Contender, Discovery
from video2pde.stages.calibration import pose_problem
from video2pde.study.equality import Asked
from video2pde.study.structure import find_terms

Array = NDArray[np.float64]

COMMON = (GRID, ROUNDING, ENCODER)
"""Lines of the error budget that may be wrong in the same way in every film: they do not shrink with their number."""
OWN_STEPS, OWN_SETTLED = 4, 1e-3
"""Most steps of a film's own unknowns at a given law; settled: its error falls by less than this share."""
LEAST_REPLICATES = 3
"""Replicates that a film's own fit needs."""
NEEDED = ("recording", "drift", "discovery", "calibration", "fit")
"""Stages of a film's run that the joint fit is made from."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What a film says of a law: curvature (K, K) and slope (K,) of its squared error over its noise, and its error."""

    film: str
    curvature: Array
    slope: Array
    mse: float


@dataclass(frozen=True, eq=False)
class Question:
    """What a worker needs to answer: the film's run, where its own fit of the law is kept, and the law (K,)."""

    film: str
    folder: str
    kept: str
    terms: tuple[str, ...]
    law: Array


@dataclass(frozen=True, eq=False)
class OwnFit:
    """A film's own calibration of a law, as the joint fit needs it.

    ``asked``: coefficients, intervals and replicates; ``shift`` (K,): what the calibration corrects of its plain fit
    (bias by noise, grid, initial frame); ``common`` (lines, K): half-widths of what may be wrong alike in every film.
    """

    asked: Asked
    shift: Array
    common: Array
    passes: bool | None


def keep_own_fit(question: Question) -> OwnFit:
    """Calibrate a law on one film, unless its run or an earlier study has; keep it, and return what it says."""
    run, path = load_run(question.folder, NEEDED), Path(question.kept)
    own = _calibrated(run, question.terms)
    if own is None:
        own = (
            load_artefact(path)
            if path.is_file()
            else calibrate_contender(*_posed(run, question.terms), None, run.settings)
        )
    boot = own.bootstrap
    if boot is None or boot.converged < LEAST_REPLICATES or not own.fit.converged:
        raise StageError(f"its own fit of the law has no interval ({own.fit.reason})")
    save_artefact(path, own)
    estimates = [own.estimates[name] for name in question.terms]
    values = np.array([estimate.value for estimate in estimates])
    half = np.array([(estimate.high - estimate.low) / 2 for estimate in estimates])
    asked = Asked(question.film, values, half, boot.draws - boot.draws.mean(axis=0))
    test = run.fit.get(own.library)
    common = np.array([own.correction(line).uncertainty for line in COMMON])
    return OwnFit(asked, values - own.fit.coefficients, common, None if test is None else test.passes)


def answer(question: Question) -> Answer:
    """Fit a film's own unknowns at the given law, and return what is left of its normal equations for the law."""
    run, own = load_run(question.folder, NEEDED), load_artefact(Path(question.kept))
    problem = _problem(run, question.terms)
    problem = replace(problem, window=replace(problem.window, floor=own.fit.floor))
    size = len(question.terms)
    noise = max(own.fit.mse, 1e-30)
    if own.fit.whole:
        # its initial frame belongs to its own law: it answers by the curvature there
        shared = share_start(problem, own.fit)
        if shared is None:
            raise StageError("the rollout of its own law failed")
        curvature, _ = eliminate_own(shared.linear, size)
        return Answer(
            question.film, curvature / noise, curvature @ (question.law - own.fit.coefficients) / noise, own.fit.mse
        )
    linear = settle_own(problem, own.fit, question.law)
    curvature, slope = eliminate_own(linear, size)
    return Answer(question.film, curvature / noise, slope / noise, linear.cost / problem.window.points)


def settle_own(problem: Problem, fit: Fit, law: Array) -> Linear:
    """Fit drift, flow and initial frame to a given law; return the normal equations there."""
    state = evaluate(problem, problem.look({**fit.values, LAW: law}, fit.start, fit.base, fit.modes))
    for _ in range(OWN_STEPS):
        if state.linear is None:
            raise StageError(f"with the shared law, {state.failed}")
        own = np.arange(len(law), len(state.look.vector))
        if not len(own):
            break
        vector = state.look.vector.copy()
        vector[own] += state.linear.only(own).solve()
        there = evaluate(problem, replace(state.look, vector=vector))
        if there.linear is None or there.cost > state.cost * (1 + OWN_SETTLED):
            break
        settled = there.cost > state.cost * (1 - OWN_SETTLED)
        state = there
        if settled:
            break
    assert state.linear is not None
    return state.linear


def eliminate_own(linear: Linear, size: int) -> tuple[Array, Array]:
    """Take a film's own unknowns out of its normal equations: curvature (K, K) and slope (K,) of the law alone."""
    hessian, slope = linear.hessian, linear.slope
    law, own = slice(0, size), slice(size, len(slope))
    if len(slope) == size:
        return hessian, slope
    scale = np.sqrt(np.where(np.diag(hessian) > 0, np.diag(hessian), 1.0))
    unit = hessian / np.outer(scale, scale)
    inverse = np.linalg.pinv(unit[own, own], hermitian=True)
    cross = unit[law, own] @ inverse
    curvature = (unit[law, law] - cross @ unit[own, law]) * np.outer(scale[law], scale[law])
    return curvature, slope[law] - scale[law] * (cross @ (slope[own] / scale[own]))


def _calibrated(run: Run, terms: Sequence[str]) -> Calibration | None:
    """Return the run's own calibration of a law, widened by its lack of fit."""
    return next((law for law in run.laws.values() if tuple(t.name for t in law.terms) == tuple(terms)), None)


def _posed(run: Run, names: Sequence[str]) -> tuple[Contender, Field, Drift, Discovery]:
    """Return what a calibration of a law on this film is posed from."""
    assert run.discovery is not None
    assert run.field is not None
    assert run.windows is not None
    assert run.drift is not None
    part = run.windows.train
    found = next((c for c in run.discovery.contenders if tuple(t.name for t in c.terms) == tuple(names)), None)
    if found is None:
        whole = run.settings.regression.model_copy(update={"threshold": 0.0})
        fit = fit_library("", list(names), run.discovery.system, whole)
        flow = next((c.flow for c in run.discovery.contenders if c.flow is not None), None)
        terms = find_terms(names, run.settings)
        found = Contender("", terms, dict(fit.coefficients), (1.0, 1.0), fit.explained, flow)
    return found, run.field.frames(part), run.drift.frames(part), run.discovery


def _problem(run: Run, names: Sequence[str]) -> Problem:
    return pose_problem(*_posed(run, names), run.settings)
