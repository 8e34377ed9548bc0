"""What an encoder's lag does to calibrated coefficients.

An encoder leaves small changes out until they are worth their bits. Where no noise carries them over, the film shows
a picture that is late, by up to half a level or more, and a law fitted to it is too slow. How much of the change is
missing cannot be read from the film, but part of it shows in what the fit leaves over: too much where u rises, too
little where it falls. That part is fitted along, as a pattern u_t / (|u_t| + s) of free size, which grows over the
window: pictures that spread become slow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.bootstrap import linear_world, World
from video2pde.calibration.fit import Fit, Problem
from video2pde.calibration.growth import GROWS, largest_gain, solve_step
from video2pde.calibration.linearise import Window
from video2pde.calibration.systematic import Known
from video2pde.field import LEVEL

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

SLOW = 10.0
"""Levels by which a cell must change over the window, at its present pace, to be late by half of what fast ones are."""
BUILDS_UP = 0.5
"""By how much the lag grows over the window, as a share of what it begins with; on films, none to 1.5."""
FLAT = 0.1
"""Levels from cell to cell below which there is nothing to see but rounding: all pixels have the same value."""
LARGEST = 2.0
"""Levels beyond which what is left over is no lag; films showed up to 1.6."""


def lag_bias(problem: Problem, fit: Fit, known: Known | None) -> Array | None:
    """Give what the lag of a film has added to the coefficients, (K,).

    None for laws that grow, whose first frame takes the lag up, and where taking it off would turn the sign of a
    coefficient: then the law is wrong, not late. What the grid leaves over looks like lag, too; it is found on frames
    that the law itself has made on a finer grid (``known``, from ``systematic.finer_problem``), and counted off.
    """
    if fit.whole or largest_gain(problem, fit) >= GROWS:
        return None
    size, answer = fit_lag(linear_world(problem, fit))
    if known is not None:
        size -= fit_lag(linear_world(*known))[0]
    added = float(np.clip(size, -LARGEST * LEVEL, 0.0)) * answer
    kept = np.isfinite(added).all() and np.all((fit.coefficients - added) * fit.coefficients > 0)
    return added if kept else None


def fit_lag(world: World) -> tuple[float, Array]:
    """Give the size of the lag, negative where the film is late, and what each unit of it adds to the coefficients."""
    window, truth, columns = world.problem.window, world.truth, world.columns
    left_out, count = world.problem.base_window, len(world.columns)
    cross, slope = np.zeros(len(world.hessian)), np.zeros(len(world.hessian))
    power = error = 0.0
    for index in range(len(truth)):
        if left_out.start <= index < left_out.stop:
            continue
        pattern = _pattern(window, truth, index)
        behind = truth[index].astype(np.float64) - window.values[index]
        down, across = np.gradient(truth[index].astype(np.float64), window.grid.dy, window.grid.dx)
        parts = np.stack([*columns[:, index], -across, -down]) * window.weight
        answers = np.tensordot(parts, np.stack([pattern, behind]), axes=([1, 2], [1, 2]))
        drift = [np.outer(world.moved[:, index, axis], answers[count + axis]) for axis in (0, 1)]
        rows = np.concatenate([answers[:count], *drift])
        cross += rows[:, 0]
        slope += rows[:, 1]
        power += float(np.vdot(pattern * window.weight, pattern))
        error += float(np.vdot(pattern * window.weight, behind))
    answer = -solve_step(world.hessian, cross)
    # the pattern, less what the law and its drift make of it, against what they leave over
    rest = power - float(cross @ answer)
    size = -(error - float(slope @ answer)) / rest if rest > 0 else 0.0
    return size, answer[: len(world.problem.terms)]


def _pattern(window: Window, truth: Frames, index: int) -> Array:
    """Give where the picture is late in one frame, (y, x), up to a factor."""
    last = len(truth) - 1
    before, after = max(index - 1, 0), min(index + 1, last)
    share = (window.times[after] - window.times[before]) / (window.times[-1] - window.times[0])
    pace = (truth[after].astype(np.float64) - truth[before]) / share
    sloped = np.hypot(*np.gradient(truth[index])) > FLAT * LEVEL
    return np.asarray(sloped * pace / (np.abs(pace) + SLOW * LEVEL) * (1 + BUILDS_UP * index / last))
