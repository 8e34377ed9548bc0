"""What grid and scheme do to calibrated coefficients, found out by a fit to a finer truth.

The calibrated law is rolled out on a grid of half the pitch, averaged over the recording's cells, and put
through the same fit. The law that made these frames is known, so whatever the fit changes is its own systematic
error: differences in space and time, cell averages, and the estimate of the initial frame.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from video2pde.calibration.fit import (
    correct_start,
    damped_step,
    evaluate,
    Fit,
    initial_frame,
    Problem,
    start_modes,
)
from video2pde.calibration.growth import refit_with_start
from video2pde.calibration.linearise import deconvolve_cells, Window
from video2pde.calibration.start import smooth_frame
from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate_chunks

Array = NDArray[np.float64]

SPLINE = 5
"""Degree of the spline that carries the initial frame to the finer grid."""


LAG = 3
"""Frames between the values whose second difference shows noise: an encoder repeats what it left out over a few."""


def noise_variance(window: Window) -> float:
    """Estimate the variance of the recording's noise from second differences in time, where pixels count.

    u(t − τ) − 2u(t) + u(t + τ) has six times the variance of white noise, and next to nothing of a smooth change. The
    quiet half of the frames is taken: a shake or a flash is no noise.
    """
    lag = min(LAG, (len(window.values) - 1) // 2)
    if lag < 1:
        return 0.0
    ends = range(lag, len(window.values) - lag)
    squares = [
        float(np.vdot(window.weight, (window.values[k - lag] - 2 * window.values[k] + window.values[k + lag]) ** 2))
        for k in ends
    ]
    return float(np.median(squares)) / float(window.weight.sum()) / 6


Known = tuple[Problem, Fit]


def discretisation_bias(problem: Problem, fit: Fit) -> Array:
    """Give what the fit adds to the coefficients of a law that it is given exactly, shape (K,)."""
    return grid_bias(finer_problem(problem, fit), fit)


def grid_bias(known: Known | None, fit: Fit) -> Array:
    """Give the same from a finer problem at hand; zero where there is none."""
    nothing = np.zeros_like(fit.coefficients)
    if known is None:
        return nothing
    problem, there = known
    again = refit_with_start(problem, there) if fit.whole else None
    if again is not None:
        return again.coefficients - fit.coefficients
    state = evaluate(problem, fit.coefficients, fit.drift, there.start, start_modes(problem, there.base), there.base)
    return nothing if state.linear.failed else damped_step(problem, state)[: len(nothing)]


def finer_problem(problem: Problem, fit: Fit) -> Known | None:
    """Pose the fit to frames that the fitted law itself has made on half the pitch, and give what starts their rollout.

    None where the finer grid cannot carry the law (backward diffusion grows the faster the finer the grid). The
    picture's mask plays no part here: the finer truth has no region that does not obey the law.
    """
    finer = _finer_truth(problem, fit)
    if not np.isfinite(finer).all():
        return None
    window = replace(problem.window, values=finer, outside=None)
    known = replace(problem, window=window)
    rough = evaluate(known, fit.coefficients, fit.drift, smooth_frame(initial_frame(window, problem.start_frames)))
    if rough.linear.failed:
        return None
    start, base = correct_start(known, rough)
    return known, replace(fit, start=start, base=base)


def _finer_truth(problem: Problem, fit: Fit) -> NDArray[np.float32]:
    """Roll the law out on half the pitch and bring it back to the window's grid as a recording would."""
    window, grid = problem.window, problem.window.grid
    cells = grid.pitch == "cells"
    fine = _halve_pitch(grid)
    start = refine_frame(smooth_frame(fit.start), fine)
    model = Model(problem.terms, tuple(fit.coefficients))
    values = np.empty_like(window.values)
    for frames, rollouts, _ in simulate_chunks(
        [model], start, window.times, fine, fit.velocity[None], problem.rollout, workers=problem.workers
    ):
        points = rollouts[0]
        values[frames] = average_cells(points) if cells else points[:, ::2, ::2]
    return deconvolve_cells(values) if cells else values


def _halve_pitch(grid: Grid) -> Grid:
    more = 0 if grid.pitch == "cells" else 1
    return replace(grid, ny=2 * grid.ny - more, nx=2 * grid.nx - more)


def refine_frame(frame: Array, fine: Grid) -> Array:
    """Interpolate a frame at the samples of the grid of half the pitch."""
    cells = fine.pitch == "cells"
    rows, columns = (np.arange(n) / 2 - (0.25 if cells else 0.0) for n in fine.shape)
    places = np.meshgrid(rows, columns, indexing="ij")
    return np.asarray(map_coordinates(frame, places, order=SPLINE, mode="reflect" if cells else "mirror"))


def average_cells(points: Array) -> Array:
    """Average point values of the finer grid over the cells of the coarser one, to fourth order."""
    padded = np.pad(points, ((0, 0), (1, 1), (1, 1)), mode="symmetric")
    neighbours = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    averages = points + (neighbours - 4 * points) / 24
    count, ny, nx = averages.shape
    return np.asarray(averages.reshape(count, ny // 2, 2, nx // 2, 2).mean(axis=(2, 4)))
