"""Nelder–Mead over whole rollouts: the paper's optimiser, and one for errors that are not smooth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from video2pde.calibration.fit import evaluate, finish, Fit, Problem, velocity_at
from video2pde.calibration.linearise import predict_chunks
from video2pde.rollout.model import Model
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]


def fit_nelder_mead(
    problem: Problem, guess: Sequence[float], settings: CalibrationSettings, start: Array | None = None
) -> Fit:
    """Minimise by Nelder–Mead over the coefficients (and the drift scale); the start frame is then fixed."""
    first = np.array(problem.window.values[0]) if start is None else start
    scales = np.asarray(problem.scales)
    count = len(problem.terms)
    extra = 2 if problem.drift == "scale" else 0
    fixed = problem if problem.drift != "spline" else replace(problem, drift="fixed")
    calls = 0

    def unpack(z: Array) -> tuple[Array, Array]:
        coefficients = np.asarray(guess, float) + z[:count] * scales
        for index in problem.log_terms:
            coefficients[index] = guess[index] * np.exp(np.clip(z[index], -10, 10))
        return coefficients, z[count:].reshape(-1, 2)

    def objective(z: Array) -> float:
        nonlocal calls
        calls += 1
        coefficients, drift = unpack(z)
        return rollout_mse(fixed, coefficients, drift if extra else np.zeros((0, 2)), first)

    begin = objective(np.zeros(count + extra))
    if not np.isfinite(begin):
        state = evaluate(fixed, np.asarray(guess, float), np.zeros((extra // 2, 2)), first)
        return finish(fixed, state, False, f"at the start, {state.linear.failed}", 0, calls, [np.asarray(guess)])
    result = minimize(
        objective, np.zeros(count + extra), method="Nelder-Mead",
        # relative tolerances: an absolute 1e-4 stops where it starts to matter
        options={"maxiter": settings.max_iterations, "fatol": settings.tolerance * begin,
                 "xatol": settings.tolerance**0.5, "initial_simplex": _simplex(count + extra)},
    )  # fmt: skip
    coefficients, drift = unpack(result.x)
    state = evaluate(fixed, coefficients, drift if extra else np.zeros((0, 2)), first)
    reason = "converged" if result.success else f"not converged after {result.nit} iterations"
    return finish(fixed, state, bool(result.success), reason, int(result.nit), calls, [np.asarray(guess), coefficients])


def _simplex(size: int) -> Array:
    corners = np.zeros((size + 1, size))
    corners[1:] = 0.1 * np.eye(size)
    return corners


def rollout_mse(problem: Problem, coefficients: Array, drift: Array, start: Array) -> float:
    """Give the mean squared error of one rollout; infinite where it fails."""
    model = Model(problem.terms, tuple(coefficients))
    velocity = velocity_at(problem, coefficients, drift)[None]
    total = 0.0
    for frames, values in predict_chunks(problem.window, [model], start, velocity, problem.rollout):
        if not np.isfinite(values).all():
            return float("inf")
        total += float(np.sum(problem.window.weight * (values[0] - problem.window.values[frames]) ** 2))
    return total / problem.window.points
