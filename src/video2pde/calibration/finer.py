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

from video2pde.calibration.blocks import LAW
from video2pde.calibration.fit import correct_start, evaluate, Fit
from video2pde.calibration.growth import refit_with_start
from video2pde.calibration.problem import Problem
from video2pde.calibration.start import initial_frame, smooth_frame, start_modes
from video2pde.calibration.window import deconvolve_cells
from video2pde.field import Grid
from video2pde.rollout.simulate import simulate_chunks

Array = NDArray[np.float64]

SPLINE = 5
"""Degree of the spline that carries the initial frame to the finer grid."""


def discretisation_bias(problem: Problem, fit: Fit) -> Array:
    """Return what the fit adds to the coefficients of a law that it is given exactly, shape (K,).

    Zero where the finer grid cannot carry the law (backward diffusion grows the faster the finer the grid). The
    picture's mask plays no part here: the finer truth has no region that does not obey the law. Between walls it would,
    and nothing is corrected.
    """
    nothing = np.zeros_like(fit.coefficients)
    if problem.window.walls:
        return nothing
    finer = _finer_truth(problem, fit)
    if not np.isfinite(finer).all():
        return nothing
    window = replace(problem.window, values=finer, outside=None)
    known = replace(problem, window=window)
    start, base = correct_start(known, fit.values, smooth_frame(initial_frame(window, problem.start_frames)))
    again = refit_with_start(known, replace(fit, start=start, base=base)) if fit.whole else None
    if again is not None:
        return again.coefficients - fit.coefficients
    modes = start_modes(problem.terms, base, window.grid)
    linear = evaluate(known, known.look(fit.values, start, base, modes)).linear
    return nothing if linear is None else linear.solve()[problem.unknowns.parts[LAW]]


def _finer_truth(problem: Problem, fit: Fit) -> NDArray[np.float32]:
    """Roll the law out on half the pitch and bring it back to the window's grid as a recording would."""
    window, grid = problem.window, problem.window.grid
    cells = grid.pitch == "cells"
    fine = _halve_pitch(grid)
    start = refine_frame(smooth_frame(fit.start), fine)
    scene = problem.scene(fit.values, fit.start)
    values = np.empty_like(window.values)
    for frames, rollouts, _ in simulate_chunks(
        [scene.model], start, window.times, fine, scene.velocity[None], problem.rollout, workers=problem.workers
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
