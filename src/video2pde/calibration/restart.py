"""The bootstrap's other form: the window in blocks whose rollouts each restart from a frame smoothed in time."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import Unknowns
from video2pde.calibration.carried import FLOW
from video2pde.calibration.fit import Fit
from video2pde.calibration.linear import Linear, Look
from video2pde.calibration.mapped import of_maps
from video2pde.calibration.problem import Problem
from video2pde.calibration.start import initial_frame
from video2pde.parallel import parallel_map

Array = NDArray[np.float64]
Draw = tuple[Array, Array, Array, Array]
"""Coefficients, drift, the flow's unknowns and those of maps of one replicate."""


def restarted_blocks(problem: Problem, fit: Fit, length: int, workers: int) -> list[Linear]:
    """Return each block's normal equations in the coefficients, from a rollout that restarts there."""
    window, law = problem.window, problem.law
    smoothing = max(2, length // 4)
    starts = range(0, len(window.times) - length - smoothing + 1, max(1, length // 2))
    # the first frames make the smoothed start and are left out of the comparison
    counted = np.arange(length + smoothing) >= smoothing

    def block(start: int) -> Linear | str:
        part = slice(start, start + length + smoothing)
        inner = replace(window, values=window.values[part], times=window.times[part])
        follow = None if law.follow is None else law.follow[:, part]
        here = replace(law, reference=fit.coefficients, follow=follow)
        fitted = problem.scene(fit.values, initial_frame(inner, smoothing))
        given = replace(fitted, velocity=fit.velocity[part])
        return Look(inner, Unknowns((here,)), fit.coefficients, given, problem.rollout).linearise(counted)

    return [found for found in parallel_map(block, starts, workers, kind="threads") if not isinstance(found, str)]


def draw_restarted(fit: Fit, blocks: list[Linear], count: int, seeds: Sequence[tuple[int, int]]) -> list[Draw | str]:
    """Draw blocks with replacement and solve their equations, added up, once for each seed."""
    if not blocks:
        return ["no block could be rolled out"] * len(seeds)
    draws: list[Draw | str] = []
    for seed in seeds:
        chosen = np.random.default_rng(seed).integers(0, len(blocks), size=count)
        step = reduce(operator.add, (blocks[index] for index in chosen)).solve()
        fixed = fit.values.get(FLOW, np.zeros(0)), of_maps(fit.values)
        draws.append((fit.coefficients + step, fit.velocity, *fixed))
    return draws
