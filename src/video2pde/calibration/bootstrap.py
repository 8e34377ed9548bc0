"""Chronological block bootstrap of a rollout fit.

``residual``: the residuals of the whole-window fit are resampled in blocks of frames, added to the fitted
rollout, and the fit is repeated, the initial frame's estimate included; the bias that this shows is reported.
``restart``: the window is cut into blocks whose rollouts each restart from a frame smoothed in time; blocks
are drawn with replacement. Blocks are never concatenated into one rollout that would jump in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from scipy.stats import t as student

from video2pde.calibration.fit import (
    displacement,
    evaluate,
    Fit,
    initial_frame,
    normal_matrix,
    Problem,
    relative_size,
    slopes_at,
    State,
    velocity_at,
)
from video2pde.calibration.growth import pull_errors, share_start, Shared, solve_step, unclipped
from video2pde.calibration.linearise import predict_chunks, project, tabulate, Window
from video2pde.calibration.start import smooth_frame
from video2pde.parallel import parallel_map
from video2pde.rollout.model import Model
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]

BATCH, FEW_FRAMES = 5, 8
"""Replicates that read the shared columns together, and frames of them at a time: few enough to stay in the cache.

Fixed, so that a replicate does not depend on the number of workers."""
OFFSET = 1e-3
"""Constant that is added to u to see how the coefficients answer."""
LINEAR = 0.5
"""Relative change of a coefficient up to which a replicate's linear step counts as converged."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Hold the replicates of a fit.

    ``draws`` (B, K): coefficients of the converged replicates, bias included; ``bias`` their mean less the fit's;
    ``value``, ``low``, ``high``: the fit's estimate less the bias and its 95 % interval, without the systematic floor;
    ``velocity_std`` (t, 2): the spread of v(t); ``offset`` (K,): how the coefficients answer to a constant added to u.
    """

    form: str
    block_length: int
    requested: int
    draws: Array
    bias: Array
    value: Array
    low: Array
    high: Array
    correlation: Array
    velocity_std: Array
    failures: tuple[str, ...]
    offset: Array = dataclass_field(default_factory=lambda: np.zeros(0))

    @property
    def converged(self) -> int:
        return len(self.draws)


def bootstrap_fit(
    problem: Problem,
    fit: Fit,
    settings: CalibrationSettings,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Repeat a fit on resampled blocks of frames; the result depends on the seed, not on the workers."""
    frames = len(problem.window.times)
    if fit.whole:
        problem = unclipped(problem)
    # what all replicates share is computed over the cores; each replicate then keeps to its own
    alone, together = replace(problem, workers=1), replace(problem, workers=workers)
    world = replace(linear_world(together, fit), problem=alone)
    residuals = _residuals(together, fit, world)
    if residuals is None:
        reason = "the fitted law's own rollout could not be completed"
        return _summarise(problem, fit, settings, 1, [], (reason,) * settings.replicates)
    length = _block_length(alone, fit, residuals, settings)
    seeds = [(settings.seed, index) for index in range(settings.replicates)]
    if settings.bootstrap == "residual":
        size = residual_sizes(residuals, problem.window.weight, length)
        residuals /= size[:, None, None].astype(np.float32)
        work = partial(_refit_blocks, world, residuals, size, length)
    else:
        blocks = _restarted_blocks(alone, fit, length, workers)
        work = partial(_draw_restarted_blocks, fit, blocks, -(-frames // length))
    batches = [seeds[begin : begin + BATCH] for begin in range(0, len(seeds), BATCH)]

    def report(done: int, _: int) -> None:
        if progress is not None:
            progress(min(done * BATCH, len(seeds)), len(seeds))

    results = [one for batch in parallel_map(work, batches, workers, report, kind="threads") for one in batch]
    good = [result for result in results if not isinstance(result, str)]
    failures = tuple(result for result in results if isinstance(result, str))
    return replace(_summarise(problem, fit, settings, length, good, failures), offset=_answer_to_offset(world))


def _answer_to_offset(world: World) -> Array:
    """Give ∂c/∂ε for u + ε everywhere, (K,); zero where it cannot be found."""
    window = world.problem.window
    everywhere = np.ones((1, *world.start.shape), np.float32)
    times = len(window.times)
    # what lies outside a mask, and is followed there, rises with the rest
    raised = replace(world.problem, window=replace(window, values=window.values + np.float32(OFFSET)))
    [answer] = refit(replace(world, problem=raised), everywhere, np.full(times, OFFSET), np.zeros((1, times), np.int64))
    fitted = world.fit.coefficients
    return np.zeros_like(fitted) if isinstance(answer, str) else (answer[0] - fitted) / OFFSET


def _residuals(problem: Problem, fit: Fit, world: World) -> NDArray[np.float32] | None:
    """Give what the fitted law leaves unexplained in each frame; None where it cannot be rolled out.

    The start of the fit carries the noise of its few frames through the whole rollout, where every block would draw
    it again. The start that all frames agree on (see :func:`bring_back`) does not, unless the law amplifies noise as
    it goes: the one that leaves less unexplained is taken.
    """
    window = problem.window
    agreed = world.start + (window.values.mean(axis=0) - world.truth.mean(axis=0))
    starts = np.stack([agreed if np.isfinite(agreed).all() else fit.start, fit.start])
    models = [Model(problem.terms, tuple(fit.coefficients))] * len(starts)
    velocity = np.stack([fit.velocity] * len(starts))
    left = np.empty((len(starts), *window.values.shape), np.float32)
    for frames, values in predict_chunks(window, models, starts, velocity, problem.rollout, problem.workers):
        np.subtract(window.values[frames], values, out=left[:, frames], casting="same_kind")
    finite = [residuals for residuals in left if np.isfinite(residuals).all()]
    if not finite:
        return None
    least = min(finite, key=lambda residuals: float(np.vdot(residuals, residuals)))
    # what stays the same in all frames is no noise, and would shift every replicate alike
    least -= least.mean(axis=0)
    return np.asarray(least)


def residual_sizes(residuals: NDArray[np.float32], weight: Array, length: int) -> Array:
    """Give the root mean square of the residuals around each frame, (t,), averaged over a block's length.

    Under a law that grows, what is left in late frames is larger than noise; drawn into the first frames it would be
    amplified once more. So residuals are drawn in units of their size, and take the size of the frame they are put in.
    """
    power = np.array([float(np.vdot(weight, frame**2)) for frame in residuals]) / weight.sum()
    return np.asarray(np.sqrt(np.maximum(uniform_filter1d(power, length, mode="nearest"), 1e-30)))


def draw_blocks(frames: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw contiguous blocks of frame indices with replacement until there are ``frames`` of them."""
    starts = rng.integers(0, frames - length + 1, size=-(-frames // length))
    return np.concatenate([np.arange(start, start + length) for start in starts])[:frames]


Draw = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class World:
    """What every replicate starts from: a truth without pixel noise, the fit's Jacobian there, and JᵀJ.

    ``columns`` (K + q, t, y, x): ∂û/∂c_j and the answers to the modes of the initial frame; ``truth`` (t, y, x).
    ``shared``: of a fit whose initial frame was fitted along, what that takes out.
    """

    problem: Problem
    fit: Fit
    start: Array
    truth: NDArray[np.float32]
    columns: NDArray[np.float32]
    hessian: Array
    moved: Array
    shared: Shared | None = None


def linear_world(problem: Problem, fit: Fit) -> World:
    start = smooth_frame(fit.start)
    if fit.whole:
        shared = share_start(problem, fit.coefficients, fit.drift, start)
        if shared is not None:
            return World(problem, fit, start, shared.base, shared.columns, shared.hessian, shared.moved, shared)
    modes = fit.modes if len(fit.modes) else None
    table = tabulate(
        problem.window, Model(problem.terms, tuple(fit.coefficients)), start, fit.velocity,
        slopes_at(problem, fit.drift), problem.rollout, problem.scales, modes, problem.workers,
    )  # fmt: skip
    table.linear.grams[problem.base_window] = 0.0
    state = State(fit.coefficients, fit.drift, start, None, fit.modes, table.linear)
    hessian, _ = normal_matrix(problem, state)
    return World(problem, fit, start, table.base, table.columns, hessian, displacement(problem, state))


def _refit_blocks(
    world: World, residuals: NDArray[np.float32], size: Array, length: int, seeds: Sequence[tuple[int, int]]
) -> list[Draw | str]:
    """Refit to resampled blocks of residuals, one replicate for each seed."""
    frames = len(world.problem.window.times)
    order = np.stack([draw_blocks(frames, length, np.random.default_rng(seed)) for seed in seeds])
    return refit(world, residuals, size, order)


def refit(world: World, residuals: NDArray[np.float32], size: Array, order: NDArray[np.int64]) -> list[Draw | str]:
    """Refit to the truth plus residuals: one Gauss–Newton step each, with the fit's Jacobian.

    Frame t of replicate m is the truth's plus size[t] · residuals[order[m, t]]. The step is exact to first order in the
    residuals; noise in the initial frame enters through a rollout of its own.
    """
    problem, window, shared = world.problem, world.problem.window, world.shared
    # the initial frame as the fit estimates it: the true one, plus the mean error of the first frames
    first = problem.start_window
    weights = size[first] / len(size[first])
    noise = np.stack([np.tensordot(weights, residuals[drawn[first]], axes=1) for drawn in order])
    if shared is not None:
        noise = _settle_starts(world, shared, residuals, size, order, noise)
    products = np.zeros((*order.shape, len(world.columns) + 2))
    errors = np.zeros((len(order), *world.start.shape))
    for part, values in _replicate_chunks(world, noise):
        project(world.columns, world.truth, values, part, residuals, order, size, window.weight, window.grid, products)
        if shared is not None:
            pull_errors(shared, values, part, residuals, order, size, window.weight, errors)
    taken_out = [0.0 if shared is None else shared.taken_out(error) for error in errors]
    return [_step(world, *each) for each in zip(products, taken_out, strict=True)]


def _replicate_chunks(world: World, noise: Array) -> Iterator[tuple[slice, Array]]:
    """Roll the fitted law out from the true initial frame plus each replicate's error in it, (m, y, x)."""
    models = [Model(world.problem.terms, tuple(world.fit.coefficients))] * len(noise)
    velocity = np.broadcast_to(world.fit.velocity, (len(noise), *world.fit.velocity.shape))
    return predict_chunks(
        world.problem.window, models, world.start + noise, velocity, world.problem.rollout, chunk=FEW_FRAMES
    )


def _settle_starts(
    world: World, shared: Shared, residuals: NDArray[np.float32], size: Array, order: NDArray[np.int64], noise: Array
) -> Array:
    """Put each replicate's initial frame right with all of its frames, as the fit did."""
    noise = np.stack([smooth_frame(each) for each in noise])
    errors = np.zeros_like(noise)
    for part, values in _replicate_chunks(world, noise):
        pull_errors(shared, values, part, residuals, order, size, world.problem.window.weight, errors)
    finite = np.where(np.isfinite(errors), errors, 0.0)
    return noise - np.stack([smooth_frame(error * shared.inverse) for error in finite])


def _step(world: World, products: Array, taken_out: Array | float) -> Draw | str:
    """Take the Gauss–Newton step of one replicate from its error's products with the columns, (t, columns + 2)."""
    problem, fit = world.problem, world.fit
    if not np.isfinite(products).all():
        return f"the rollout failed before frame {int(np.argmin(np.isfinite(products).all(axis=1))) + 1}"
    counted = products.copy()
    counted[problem.base_window if world.shared is None else ~world.shared.counted] = 0.0
    drift = [world.moved[:, :, axis] @ counted[:, axis - 2] for axis in range(2)]
    step = solve_step(world.hessian, np.concatenate([counted[:, :-2].sum(axis=0), *drift]) - taken_out)
    if not relative_size(problem, step) <= LINEAR:
        return f"a coefficient moved by {relative_size(problem, step):.0%}, too far for a linear step"
    terms, columns = len(problem.terms), len(world.columns)
    coefficients = fit.coefficients + step[:terms]
    return coefficients, velocity_at(problem, coefficients, fit.drift + step[columns:].reshape(2, -1).T)


def _restarted_blocks(problem: Problem, fit: Fit, length: int, workers: int) -> list[tuple[Array, Array]]:
    """Give each block's normal equations in the coefficients, from a rollout that restarts there."""
    window = problem.window
    smoothing = max(2, length // 4)
    starts = range(0, len(window.times) - length - smoothing + 1, max(1, length // 2))

    def block(start: int) -> tuple[Array, Array]:
        # the first frames make the smoothed start and are left out of the comparison
        part = slice(start, start + length + smoothing)
        inner = Window(window.values[part], window.times[part], window.grid, window.weight, window.outside)
        piece = replace(
            problem, window=inner, velocity=fit.velocity[part], reference=fit.coefficients, drift="fixed",
            velocity_slopes=problem.velocity_slopes[:, part],
        )  # fmt: skip
        state = evaluate(piece, fit.coefficients, np.zeros((0, 2)), initial_frame(inner, smoothing))
        grams = state.linear.grams[smoothing:]
        count = len(problem.terms)
        return grams[:, :count, :count].sum(axis=0), grams[:, :count, -1].sum(axis=0)

    return parallel_map(block, starts, workers, kind="threads")


def _draw_restarted_blocks(
    fit: Fit, blocks: list[tuple[Array, Array]], count: int, seeds: Sequence[tuple[int, int]]
) -> list[Draw | str]:
    draws: list[Draw | str] = []
    for seed in seeds:
        chosen = np.random.default_rng(seed).integers(0, len(blocks), size=count)
        hessian = sum(blocks[i][0] for i in chosen)
        slope = sum(blocks[i][1] for i in chosen)
        draws.append((fit.coefficients - np.linalg.solve(np.asarray(hessian), np.asarray(slope)), fit.velocity))
    return draws


def _block_length(problem: Problem, fit: Fit, residuals: NDArray[np.float32], settings: CalibrationSettings) -> int:
    frames = len(problem.window.times)
    if settings.block_length == "sqrt":
        length = round(np.sqrt(frames))
    elif settings.block_length == "automatic":
        weight = problem.window.weight
        # the error's projection on the picture itself: a series that carries its dependence in time
        series = np.einsum("tyx,yx->t", residuals, fit.start * weight)
        length = politis_white(np.asarray(series, float))
    else:
        length = settings.block_length
    return int(np.clip(length, 1, max(1, frames // 2)))


def politis_white(series: Array) -> int:
    """Choose a block length for the circular block bootstrap from the autocorrelation of a series.

    b = (2Ĝ²/D̂)^{1/3} n^{1/3}, with the flat-top lag window over the lags up to twice the first after which
    autocorrelations stay insignificant; Politis and White (2004), corrected by Patton et al. (2009).
    """
    n = len(series)
    x = series - series.mean()
    variance = float(x @ x) / n
    if variance == 0 or n < 8:
        return 1
    lags = min(n - 1, max(5, int(np.sqrt(np.log10(n)))) + int(np.ceil(np.sqrt(n))))
    covariance = np.array([float(x[: n - k] @ x[k:]) / n for k in range(lags + 1)])
    limit = 2 * np.sqrt(np.log10(n) / n)
    run = max(5, int(np.sqrt(np.log10(n))))
    small = np.abs(covariance[1:] / variance) < limit
    first = next((k for k in range(len(small) - run + 1) if small[k : k + run].all()), len(small) - 1)
    width = min(2 * max(first, 1), lags)
    k = np.arange(-width, width + 1)
    flat_top = np.clip(2 * (1 - np.abs(k) / width), 0, 1)
    values = covariance[np.abs(k)]
    g = float(np.sum(flat_top * np.abs(k) * values))
    spectrum = float(np.sum(flat_top * values))
    d = 4 / 3 * spectrum**2
    return max(1, int(np.ceil((2 * g**2 / d) ** (1 / 3) * n ** (1 / 3)))) if d > 0 else 1


def _summarise(
    problem: Problem, fit: Fit, settings: CalibrationSettings, length: int, good: list[Draw], failures: tuple[str, ...]
) -> Bootstrap:
    count = len(problem.terms)
    draws = np.array([draw[0] for draw in good]).reshape(-1, count)
    if len(draws) < 2:
        nothing = np.full(count, np.nan)
        return Bootstrap(
            settings.bootstrap, length, settings.replicates, draws, np.zeros(count), fit.coefficients, nothing, nothing,
            np.eye(count), np.zeros_like(fit.velocity), failures,
        )  # fmt: skip
    median = np.median(draws, axis=0)
    bias = draws.mean(axis=0) - fit.coefficients
    value = fit.coefficients - bias
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    # few replicates, drawn from few blocks: the outer quantiles fall short, so never narrower than Student's interval
    blocks = len(problem.window.times) / length
    half = student.ppf(0.975, max(blocks - 1, 1)) * draws.std(axis=0, ddof=1)
    spread = np.atleast_2d(np.corrcoef(draws.T)) if count > 1 else np.eye(1)
    return Bootstrap(
        settings.bootstrap, length, settings.replicates, draws, bias, value,
        value - np.maximum(half, median - low), value + np.maximum(half, high - median), spread,
        np.std([draw[1] for draw in good], axis=0), failures,
    )  # fmt: skip
