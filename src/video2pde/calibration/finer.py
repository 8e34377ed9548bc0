"""What grid and scheme do to calibrated coefficients, found out by a fit to a finer truth.

The calibrated law is rolled out on a grid of half the pitch, averaged over the recording's cells, and put
through the same fit. The law that made these frames is known, so whatever the fit changes is its own systematic
error: differences in space and time, cell averages, and the estimate of the initial frame. The finer rollout has such
an error itself, smaller by two to the order of the differences, which is counted with it (Richardson).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import LAW
from video2pde.calibration.fit import correct_start, evaluate, Fit
from video2pde.calibration.growth import refit_with_start
from video2pde.calibration.problem import Problem
from video2pde.calibration.start import initial_frame, start_modes
from video2pde.calibration.window import Window
from video2pde.field.cells import average_cells, deconvolve_cells, halve_pitch, refine_frame
from video2pde.rollout.simulate import simulate_chunks
from video2pde.rollout.start import smooth_frame
from video2pde.rollout.task import Scheme
from video2pde.room import empty

Array = NDArray[np.float64]

CHUNK = 32
"""Frames of the finer grid that go forward together."""
ORDER = 4
"""Of a law's differences in space: on exact fields of C the error falls from 0.8 to 0.28 and 0.08 % for |∇u|² and from
1.5 to 0.65 and 0.19 % for Δu, from 64 to 84 and 112 cells."""


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
    if not all(bool(np.isfinite(frame).all()) for frame in finer):
        return nothing
    window = replace(problem.window, values=finer, outside=None)
    known = replace(problem, window=window)
    start, base = correct_start(known, fit.values, smooth_frame(initial_frame(window, problem.start_frames)))
    again = refit_with_start(known, replace(fit, start=start, base=base)) if fit.whole else None
    whole = 1 / (1 - 2.0**-ORDER)
    if again is not None:
        return np.asarray(whole * (again.coefficients - fit.coefficients))
    modes = start_modes(problem.terms, base, window.grid)
    linear = evaluate(known, known.look(fit.values, start, base, modes)).linear
    return nothing if linear is None else np.asarray(whole * linear.solve()[problem.unknowns.parts[LAW]])


def _finer_truth(problem: Problem, fit: Fit) -> NDArray[np.float32]:
    """Roll the law out on half the pitch and bring it back to the window's grid as a recording would."""
    window, grid = problem.window, problem.window.grid
    cells = grid.pitch == "cells"
    fine = halve_pitch(grid)
    start = refine_frame(smooth_frame(fit.start), fine)
    scene = problem.scene(fit.values, fit.start)
    values = empty(window.values.shape, np.float32)
    if window.device == "gpu":
        from video2pde.calibration.jax_sums import coarsen

        finer = Window(values[:, :0, :0], window.times, fine, np.zeros((0, 0)), device="gpu")
        rollouts = finer.predict([scene.model], start, scene.velocity[None], problem.rollout, chunk=CHUNK)
        with finer.arithmetic():
            for frames, (there,) in rollouts:
                values[frames] = coarsen(there) if cells else there[:, ::2, ::2]
        return values
    scheme = Scheme(problem.rollout, workers=problem.workers)
    truth = simulate_chunks([scene.model], start, window.times, fine, scene.velocity[None], scheme, CHUNK)
    for frames, (points,), _ in truth:
        values[frames] = deconvolve_cells(average_cells(points).astype(np.float32)) if cells else points[:, ::2, ::2]
    return values
