"""Rollouts of the true law by three simulators, as tasks like those of :mod:`benchmarks.support.tasks`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.support.tasks import Finding, Fit, Given, make_film, Task
from video2pde.field import Field


def rollout_error(values: Any, exact: Field) -> Finding:
    """Compare predicted frames with the exact ones: rRMSE in per cent, as the only entry."""
    error = np.sqrt(np.mean((values - exact.values) ** 2) / np.mean(np.square(exact.values, dtype=float)))
    return Finding({"error": 100 * float(error)}, {})


def prepare_our_rollout(given: Given) -> Fit:
    """Order 4 in the moving frame."""
    from video2pde.rollout.model import Model
    from video2pde.rollout.simulate import simulate

    law = Model.of(given.law)
    exact, velocity = given.exact, np.tile(given.drift, (len(given.exact), 1))
    simulate(law, exact.values[0], exact.times[:3], exact.grid, velocity[:3])
    return lambda: rollout_error(simulate(law, exact.values[0], exact.times, exact.grid, velocity).values, exact)


def prepare_plain_rollout(given: Given) -> Fit:
    """First-order upwind with ε_visc = 0.01."""
    from benchmarks.support import plain

    film, velocity = make_film(given.exact), np.tile(given.drift, (len(given.exact), 1))
    return lambda: rollout_error(plain.roll_out(film.u[0], given.law, velocity, film), given.exact)


def prepare_py_pde(given: Given) -> Fit:
    """Second-order differences compiled by numba, explicit Runge–Kutta with adaptive steps."""
    import pde

    exact, grid = given.exact, given.exact.grid
    domain = pde.CartesianGrid([[0, grid.width], [0, grid.height]], [grid.nx, grid.ny])
    v_x, v_y = given.drift
    forms = {"grad_squared": "gradient_squared(u)", "laplacian": "laplace(u)"}
    terms = " + ".join(f"{value}*{forms[name]}" for name, value in given.law.items())
    equation = pde.PDE({"u": f"{terms} - {v_x}*d_dx(u) - {v_y}*d_dy(u)"}, bc={"derivative": 0})
    start = pde.ScalarField(domain, exact.values[0].T.astype(float))

    def fit() -> Finding:
        storage = pde.MemoryStorage()
        tracker = storage.tracker(exact.dt)
        equation.solve(start, exact.duration + 1e-9, dt=0.01, adaptive=True, solver="runge-kutta", tracker=tracker)
        # every call compiles anew, which takes longer than the steps
        clock = equation.diagnostics["controller"]["profiler"]
        frames = np.swapaxes(np.array(storage.data[: len(exact)]), 1, 2)
        return replace(rollout_error(frames, exact), seconds=clock["solver"] + clock["tracker"])

    return fit


TRUTH = "the true law and drift, the first frame"
ROLLOUTS = (
    Task("our-rollout", "video2pde, order 4, moving frame", prepare_our_rollout, given=TRUTH),
    Task("plain-rollout", "the paper's text in NumPy, upwind", prepare_plain_rollout, given=TRUTH),
    Task("py-pde", "py-pde, order 2, adaptive Runge–Kutta", prepare_py_pde, ("pde",), TRUTH),
)
