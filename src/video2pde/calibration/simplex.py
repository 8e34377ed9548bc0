"""Nelder–Mead over whole rollouts: the paper's optimiser, and one for errors that are not smooth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from video2pde.calibration.blocks import DRIFT, Drift, LAW, Scene
from video2pde.calibration.fit import evaluate, finish, Fit
from video2pde.calibration.problem import Problem
from video2pde.device import namespace
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]

CORNER = 0.1
"""Size of the first simplex, in units of the unknowns' scales."""


def fit_nelder_mead(
    problem: Problem, guess: Sequence[float], settings: CalibrationSettings, start: Array | None = None
) -> Fit:
    """Minimise by Nelder–Mead over the coefficients (and a scale of the drift); the start frame is then fixed."""
    first = np.array(problem.window.values[0], float) if start is None else start
    if any(isinstance(block, Drift) and block.basis is not None for block in problem.unknowns.blocks):
        problem = problem.without(DRIFT)
    unknowns = problem.unknowns
    begin_at = unknowns.vector({LAW: np.asarray(guess, float)})
    # positive unknowns move by factors, the others in units of their scale
    units = unknowns.scale.copy()
    units[unknowns.positive] = 1.0
    units[unknowns.held] = 0.0
    calls = 0

    def objective(z: Array) -> float:
        nonlocal calls
        calls += 1
        return rollout_mse(problem, unknowns.scene(unknowns.move(begin_at, z * units), problem.given(first)))

    begin = objective(np.zeros(len(begin_at)))
    reason, converged, found = "", False, begin_at
    if np.isfinite(begin):
        result = minimize(
            objective,
            np.zeros(len(begin_at)),
            method="Nelder-Mead",
            # relative tolerances: an absolute 1e-4 stops where it starts to matter
            options={
                "maxiter": settings.max_iterations,
                "fatol": settings.tolerance * begin,
                "xatol": settings.tolerance**0.5,
                "initial_simplex": _simplex(len(begin_at)),
            },
        )
        converged = bool(result.success)
        reason = "converged" if converged else f"not converged after {result.nit} iterations"
        found = unknowns.move(begin_at, result.x * units)
    state = evaluate(problem, problem.look(unknowns.values(found), first))
    return finish(problem, state, converged, reason or f"at the start, {state.failed}", calls)


def _simplex(size: int) -> Array:
    corners = np.zeros((size + 1, size))
    corners[1:] = CORNER * np.eye(size)
    return corners


def rollout_mse(problem: Problem, scene: Scene) -> float:
    """Return the mean squared error of one rollout; infinite where it fails."""
    window = problem.window
    total = 0.0
    with window.arithmetic():
        for frames, values in window.predict([scene.model], scene.start, scene.velocity[None], problem.rollout):
            if not namespace(values).isfinite(values).all():
                return float("inf")
            total += float((window.weight * (values[0] - window.seen(frames)) ** 2).sum())
    return total / window.points
