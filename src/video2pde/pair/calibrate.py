"""Fit two laws to the rollout of the whole training window, with intervals.

Levenberg–Marquardt on the normal equations of ``problem``; a residual block bootstrap, whose replicates are one
Gauss–Newton step each, the noise of the initial frames carried through a rollout of its own; and the error budget of
``calibration.budget``: statistics, grid, rounding, encoder, and halves of the window that ask for different laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from video2pde.calibration import budget
from video2pde.calibration.budget import Correction
from video2pde.calibration.fit import Halves
from video2pde.calibration.linear import Linear
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.field.cells import average_cells, deconvolve_cells, halve_pitch, refine_frame
from video2pde.pair.law import PairLaw
from video2pde.pair.problem import evaluate, inner_products, PairProblem, Point
from video2pde.pair.rollout import roll_chunks, Scene
from video2pde.progress import Progress
from video2pde.resampling import block_length, draw_blocks, residual_sizes
from video2pde.rollout.start import smooth_frame
from video2pde.settings import CalibrationSettings, Settings
from video2pde.terms.pairs import FIELDS

Array = NDArray[np.float64]
Frames = NDArray[np.float32]
Noise = Callable[[NDArray[np.int64]], Array]
"""Gives an error of the recording, (2, n, y, x), in frames by their numbers."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e6
SLACK = 0.1
"""Relative rise over the lowest error that a step may cause: the Jacobian's start is not quite the rollout's."""
HORIZONS = (0.25, 0.5)
"""Shares of the window that are fitted before the whole of it."""
FITTING = 3.0
"""Squared error, in units of noise, below which laws fit so well that the initial frames can be estimated by them."""
ROUGHLY = 0.02
"""Relative change of the coefficients up to which a part of the window is fitted well enough, and beyond which the
initial frames are estimated again."""
BATCH = 26
"""Replicates that are rolled out together."""
OFFSET = 1e-3
"""Constant that is added to a field to see how the coefficients answer."""


@dataclass(frozen=True, eq=False)
class PairCalibration:
    """Hold two calibrated laws.

    ``estimates`` by field and term; ``draws`` (B, K): the replicates' coefficients; ``budget``: the lines of the error
    budget; ``misfit`` (2,): squared error that the laws leave of each field in the training window, in units of its
    noise; ``start`` (2, y, x): the initial frames that were fitted.
    """

    name: str
    law: PairLaw
    estimates: Mapping[str, Mapping[str, Estimate]]
    draws: Array
    budget: tuple[Correction, ...]
    misfit: tuple[float, float]
    start: Array
    converged: bool
    reason: str
    iterations: int
    block_length: int = 0
    failures: int = 0

    def law_within(self) -> PairLaw:
        """Return the laws with the estimates' values."""
        return PairLaw.of(*({n: e.value for n, e in self.estimates[field].items()} for field in FIELDS))


def calibrate_pair(
    name: str, problem: PairProblem, law: PairLaw, settings: Settings, progress: Progress | None = None
) -> PairCalibration:
    """Fit the coefficients of both laws, and say how well they are known.

    Parameters
    ----------
    name : of the system.
    problem : the training window.
    law : the terms, with the coefficients that the fit starts from.
    settings : those of the calibration.
    progress : called with the replicates done and in all.

    Returns
    -------
    Estimates with 95 % intervals.
    """
    options = settings.calibration
    point, converged, reason, iterations = _minimise(problem, law, options)
    counted = problem.split.counted
    linear = point.linear(counted)
    count, found = len(law.vector), point.law.vector
    if converged:
        boot = _bootstrap(problem, point, linear, options, progress)
    else:
        boot = _Replicates(np.zeros((0, count)), np.zeros(count), 0, 0)
    lines = _draw_up(problem, point, linear, boot)
    estimates = budget.add_up(found, lines)
    by_field: dict[str, dict[str, Estimate]] = {field: {} for field in FIELDS}
    for (field, term), estimate in zip(point.law.keys, estimates, strict=True):
        by_field[field][term] = estimate
    return PairCalibration(
        name=name,
        law=point.law,
        estimates=by_field,
        draws=boot.draws,
        budget=lines,
        misfit=_misfit(problem, point),
        start=point.initial,
        converged=converged,
        reason=reason,
        iterations=iterations,
        block_length=boot.length,
        failures=boot.failures,
    )


def _minimise(problem: PairProblem, law: PairLaw, options: CalibrationSettings) -> tuple[Point, bool, str, int]:
    """Fit more and more of the window; return the end, whether it converged, why, and the steps.

    Reactions amplify: over a whole window, laws a few per cent off may end in quite another pattern, from which no
    gradient leads back. Over a part of it they do not.
    """
    total = 0
    for share in HORIZONS:
        part = problem.first(share)
        if len(part.times) < len(problem.times):
            point, *_, steps = _walk(part, law, options.max_iterations, ROUGHLY)
            law, total = point.law, total + steps
    point, converged, reason, steps = _walk(problem, law, options.max_iterations, options.tolerance**0.5)
    return point, converged, reason, total + steps


def _walk(problem: PairProblem, law: PairLaw, most: int, near: float) -> tuple[Point, bool, str, int]:
    """Walk to the least error by Levenberg–Marquardt, until a step changes no coefficient by more than ``near``."""
    point = _start_at(problem, law, problem.first_start())
    if point.failure:
        raise StageError(f"the system cannot be rolled out from its weak coefficients: {point.failure}")
    count, counted = len(law.vector), problem.split.counted
    damping, lowest, corrected_at = FIRST_DAMPING, point.cost, law.vector
    for iteration in range(1, most + 1):
        linear = point.linear(counted)
        # a damped step is small where laws and starts nearly make up for each other, however far the way is
        step = linear.solve(damping=LEAST_DAMPING)
        if _relative(step[:count], point.law.vector) < near:
            # the next error would be the square of this step: take it, and need no further rollout
            there = point.law.moved(point.law.vector + step[:count])
            end = replace(point, law=there, amplitudes=point.amplitudes + step[count:])
            return end, True, "converged", iteration
        step = linear.solve(damping=damping)
        there = point.law.moved(point.law.vector + step[:count])
        trial = evaluate(problem, there, point.start, point.base, point.modes, point.amplitudes + step[count:])
        # with a Jacobian free of noise the solution is not quite the least error: near it a little more is allowed
        slack = SLACK if lowest < FITTING * problem.points else 0.0
        if trial.cost < lowest * (1 + slack):
            point, damping, lowest = trial, max(damping / 10, LEAST_DAMPING), min(lowest, trial.cost)
            if lowest < FITTING * problem.points and _relative(point.law.vector - corrected_at, corrected_at) > ROUGHLY:
                point, corrected_at = _start_at(problem, point.law, point.initial), point.law.vector
                lowest = point.cost
        else:
            damping *= 10
        if damping > MOST_DAMPING:
            return point, False, "no step lowers the error any further, yet the gradient is not zero", iteration
    return point, False, f"not converged after {most} iterations", most


def _start_at(problem: PairProblem, law: PairLaw, start: Array) -> Point:
    better, base = problem.corrected_start(law, start)
    modes = problem.modes(law, base)
    return evaluate(problem, law, better, base, modes, np.zeros(len(modes)))


def _relative(change: Array, vector: Array) -> float:
    return float(np.max(np.abs(change) / np.maximum(np.abs(vector), 1e-3 * np.abs(vector).max() + 1e-300)))


def _misfit(problem: PairProblem, point: Point) -> tuple[float, float]:
    """Return the squared error of each field over the window in units of its noise."""
    total = np.zeros(2)
    for part, found, _ in roll_chunks([point.law], point.initial[None], problem.times, problem.scene):
        total += np.einsum("ftyx,fyx->f", (found[0] - problem.values[:, part]) ** 2, problem.scale**2)
    each = total / (problem.points / 2)
    return float(each[0]), float(each[1])


@dataclass(frozen=True, eq=False)
class _World:
    """What replicates are made of: the fitted rollout and what it leaves, in units of its size around each frame.

    ``truth``, ``left`` (2, t, y, x); ``sizes`` (2, t); ``length``: frames in a block.
    """

    problem: PairProblem
    point: Point
    linear: Linear
    truth: Frames
    left: Frames
    sizes: Frames
    length: int

    @classmethod
    def of(cls, problem: PairProblem, point: Point, linear: Linear, wanted: int | str) -> _World:
        truth = np.empty_like(problem.values)
        for part, found, _ in roll_chunks([point.law], point.initial[None], problem.times, problem.scene):
            truth[:, part] = found[0]
        left = problem.values - truth
        # what stays the same in all frames is no noise, and would shift every replicate alike
        left -= left.mean(axis=1, keepdims=True)
        weight = problem.windows[0].weight
        length = block_length(left[0], point.initial[0] * weight, wanted)
        sizes = np.stack([residual_sizes(part, weight, length) for part in left]).astype(np.float32)
        left /= sizes[:, :, None, None]
        return cls(problem, point, linear, truth, left, sizes, length)

    @property
    def frames(self) -> int:
        return len(self.problem.times)

    def drawn(self, order: NDArray[np.int64], frames: NDArray[np.int64]) -> Array:
        """Return the noise (2, n, y, x) of a replicate in some frames."""
        return np.asarray(self.sizes[:, frames, None, None] * self.left[:, order[frames]])

    def answers(self, noises: Sequence[Noise]) -> list[Array | None]:
        """Return what errors of the recording do to the coefficients, (K,) each; None where a rollout failed.

        The initial frames take over the mean error of the frames that estimate them, as in the fit.
        """
        problem, point, count = self.problem, self.point, len(noises)
        first = np.flatnonzero(problem.split.start)
        starts = np.stack([point.initial + noise(first).mean(axis=1) for noise in noises])
        laws, around = problem.laws_around(point.law, point.jacobian_start, point.modes)
        slopes = np.zeros((count, len(laws) - 1))
        failed = [""] * count
        rollouts = [*laws, *[point.law] * count]
        for part, found, reasons in roll_chunks(
            rollouts, np.concatenate([around, starts]), problem.times, problem.scene
        ):
            frames = np.arange(part.start, part.stop)
            pictures = problem.derivatives(found[: len(laws)], problem.steps(point.law))
            errors = np.stack(
                [
                    own - self.truth[:, part] - noise(frames)
                    for own, noise in zip(found[len(laws) :], noises, strict=True)
                ]
            )
            failed = reasons[len(laws) :]
            products = inner_products(pictures, np.where(np.isfinite(errors), errors, 0.0), problem.scale)
            slopes += np.where(problem.split.counted[part, None, None], products, 0.0).sum(axis=0).T
        size = len(point.law.vector)
        return [None if bad else self.linear.solve(slope)[:size] for slope, bad in zip(slopes, failed, strict=True)]


def _constant(picture: Array, frames: NDArray[np.int64]) -> Array:
    """Return a picture (2, 1, y, x) in every frame."""
    return np.broadcast_to(picture, (2, len(frames), *picture.shape[2:]))


@dataclass(frozen=True, eq=False)
class _Replicates:
    """What the bootstrap has found: coefficients (B, K), how they answer to an offset (K,), blocks, failures."""

    draws: Array
    offset: Array
    length: int
    failures: int


def _bootstrap(
    problem: PairProblem, point: Point, linear: Linear, options: CalibrationSettings, progress: Progress | None
) -> _Replicates:
    """Repeat the fit with residuals drawn in blocks, and with a constant added to either field."""
    count = len(point.law.vector)
    if options.replicates == 0:
        return _Replicates(np.zeros((0, count)), np.zeros(count), 0, 0)
    world = _World.of(problem, point, linear, options.block_length)
    shape = problem.values.shape
    noises: list[Noise] = []
    for index in (0, 1):
        raised = np.zeros((2, 1, *shape[2:]))
        raised[index] = OFFSET
        noises.append(partial(_constant, raised))
    for seed in range(options.replicates):
        order = draw_blocks(world.frames, world.length, np.random.default_rng((options.seed, seed)))
        noises.append(partial(world.drawn, order))
    found: list[Array | None] = []
    for first in range(0, len(noises), BATCH):
        found += world.answers(noises[first : first + BATCH])
        if progress is not None:
            progress(max(0, len(found) - 2), options.replicates)
    offsets = [step for step in found[:2] if step is not None]
    offset = np.sqrt(np.sum(np.square(offsets), axis=0)) / OFFSET if offsets else np.zeros(count)
    good = [step for step in found[2:] if step is not None]
    draws = np.array([point.law.vector + step for step in good]).reshape(-1, count)
    return _Replicates(draws, np.asarray(offset), world.length, len(found) - 2 - len(good))


def _draw_up(problem: PairProblem, point: Point, linear: Linear, boot: _Replicates) -> tuple[Correction, ...]:
    """Draw up the budget of the coefficients, line by line."""
    found, encoding = point.law.vector, _encoding(problem)
    lines = []
    std = np.zeros(len(found))
    if len(boot.draws) >= 2:
        std = boot.draws.std(axis=0, ddof=1)
        lines.append(_statistics(boot.draws, found, len(problem.times) / boot.length))
        lines.append(budget.rounding(encoding, boot.offset))
    lines.append(budget.grid(discretisation_bias(problem, point), found))
    halves = _compare_halves(problem, point, linear)
    lines.append(budget.lack_of_fit(encoding, found, halves.beyond_noise(std), halves.reach_beyond_noise(std)))
    lines.append(budget.encoder(encoding, found))
    return tuple(lines)


def _encoding(problem: PairProblem) -> Encoding:
    """Take what an encoder did to the field that suffered most."""
    known = [window.encoding or Encoding(0.0) for window in problem.windows]
    worst = max(known, key=lambda each: (each.held_back, each.b_frames is not None))
    return Encoding(max(each.level for each in known), worst.held_back, worst.b_frames)


def _statistics(draws: Array, found: Array, blocks: float) -> Correction:
    """Take the bias by noise off; the half-width is Student's, or that of the quantiles where it is larger."""
    bias, median = draws.mean(axis=0) - found, np.median(draws, axis=0)
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    half = student.ppf(0.975, max(blocks - 1, 1)) * draws.std(axis=0, ddof=1)
    return Correction(budget.STATISTICS, -bias, np.maximum.reduce([half, median - low, high - median]))


def _compare_halves(problem: PairProblem, point: Point, whole: Linear) -> Halves:
    """Ask both halves of the frames for the laws: under laws that say everything they differ by noise alone."""
    counted, count = problem.split.counted, len(point.law.vector)
    first = np.cumsum(counted) <= counted.sum() / 2
    halves = [point.linear(frames) for frames in (counted & first, counted & ~first)]
    steps = [half.solve()[:count] for half in halves]
    noisier = np.sqrt((halves[0].variances + halves[1].variances) / whole.variances)[:count]
    farther = np.maximum(np.abs(steps[0]), np.abs(steps[1]))
    return Halves(np.asarray(steps[0] - steps[1]), np.asarray(noisier), np.asarray(farther))


def discretisation_bias(problem: PairProblem, point: Point) -> Array:
    """Return what grid and scheme add to the coefficients of laws that are given exactly, (K,).

    The laws are rolled out on half the pitch and put through the same fit (see ``calibration.finer``), without a mask:
    the finer truth has no part that does not obey them. Zero where the finer grid cannot carry them.
    """
    nothing = np.zeros(len(point.law.vector))
    truth = _finer_truth(problem, point)
    if not np.isfinite(truth).all():
        return nothing
    windows = [replace(window, values=own, outside=None) for window, own in zip(problem.windows, truth, strict=True)]
    scene = Scene(problem.scene.grid, problem.scene.settings, workers=problem.scene.workers)
    known = replace(problem, windows=(windows[0], windows[1]), scene=scene)
    found = _start_at(known, point.law, known.first_start())
    return nothing if found.failure else found.linear(problem.split.counted).solve()[: len(nothing)]


def _finer_truth(problem: PairProblem, point: Point) -> Frames:
    """Roll the laws out on half the pitch, and bring them back to the window's grid as a recording would."""
    grid = problem.scene.grid
    fine, cells = halve_pitch(grid), grid.pitch == "cells"
    start = np.stack([refine_frame(smooth_frame(part), fine) for part in point.initial])
    truth = np.empty_like(problem.values)
    scene = Scene(fine, problem.scene.settings, workers=problem.scene.workers)
    for part, found, _ in roll_chunks([point.law], start[None], problem.times, scene):
        for index, values in enumerate(found[0]):
            truth[index, part] = (
                deconvolve_cells(average_cells(values).astype(np.float32)) if cells else values[:, ::2, ::2]
            )
    return truth
