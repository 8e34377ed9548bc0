"""Chronological block bootstrap of a rollout fit.

``residual``: the residuals of the whole-window fit are resampled in blocks of frames, added to the fitted
rollout, and the fit is repeated, the initial frame's estimate included; the bias that this shows is reported.
``restart``: the window is cut into blocks whose rollouts each restart from a frame smoothed in time; blocks
are drawn with replacement. Blocks are never concatenated into one rollout that would jump in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from video2pde.calibration.blocks import LAW, Scene, Unknowns
from video2pde.calibration.carried import FLOW
from video2pde.calibration.fit import Fit
from video2pde.calibration.growth import EliminatedStart, share_start
from video2pde.calibration.linear import inner_products, Linear
from video2pde.calibration.mapped import of_maps
from video2pde.calibration.problem import Problem
from video2pde.calibration.restart import Draw, draw_restarted, restarted_blocks
from video2pde.parallel import parallel_map
from video2pde.progress import Progress
from video2pde.resampling import block_length, draw_blocks, residual_sizes
from video2pde.rollout.start import smooth_frame
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

BATCH, FEW_FRAMES = 5, 8
"""Replicates that read the shared pictures together, and frames of them at a time: few enough to stay in the cache.

Fixed, so that a replicate does not depend on the number of workers."""
OFFSET = 1e-3
"""Constant that is added to u to see how the coefficients answer."""
DIMMED = 3e-5
"""Relative change of the light for the same purpose: small, because weak growth answers strongly."""
LINEAR = 0.5
"""Relative change of a coefficient up to which a replicate's linear step counts as converged."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Hold the replicates of a fit.

    ``draws`` (B, K): coefficients of the converged replicates, bias included; ``bias`` their mean less the fit's;
    ``value``, ``low``, ``high``: the fit's estimate less the bias and its 95 % interval by statistics alone;
    ``velocity_std`` (t, 2): the spread of v(t); ``offset`` (K,): how the coefficients answer to a constant added to u;
    ``light`` (K,): how they answer to what is not known of the light; ``flow_std``: the spread of the flow's unknowns;
    ``maps`` (B, n): those of all maps, in the order of their blocks.
    """

    block_length: int
    requested: int
    draws: Array
    bias: Array
    value: Array
    low: Array
    high: Array
    velocity_std: Array
    failures: tuple[str, ...]
    offset: Array = field(default_factory=lambda: np.zeros(0))
    light: Array = field(default_factory=lambda: np.zeros(0))
    flow_std: Array = field(default_factory=lambda: np.zeros(0))
    maps: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def converged(self) -> int:
        return len(self.draws)


@dataclass(frozen=True, eq=False)
class World:
    """What every replicate starts from: a truth without pixel noise, (t, y, x), and the fit's normal equations there.

    ``scene`` rolls the truth out; ``pictures`` (c, t, y, x) make the Jacobian; ``unknowns`` are those of ``linear``.
    ``start``: of a fit whose initial frame was fitted jointly, the block that is eliminated.
    """

    problem: Problem
    fit: Fit
    scene: Scene
    truth: Frames
    pictures: Frames
    unknowns: Unknowns
    linear: Linear
    start: EliminatedStart | None = None


def linear_world(problem: Problem, fit: Fit) -> World | str:
    """Linearise around the fitted law, rolled out from a smooth start; say why where that cannot be done."""
    smooth = replace(fit, start=smooth_frame(fit.start))
    scene = problem.scene(fit.values, smooth.start)
    if fit.whole:
        shared = share_start(problem, replace(smooth, base=smooth.start))
        if shared is not None:
            base, pictures = shared.table.base, shared.table.pictures
            return World(problem, fit, scene, base, pictures, problem.unknowns, shared.linear, shared.start)
    look = problem.look(fit.values, smooth.start, modes=fit.modes)
    table = look.tabulate(problem.split.counted)
    if isinstance(table, str):
        return table
    return World(problem, fit, scene, table.base, table.pictures, look.unknowns, table.linear)


def bootstrap_fit(
    problem: Problem,
    fit: Fit,
    settings: CalibrationSettings,
    workers: int = 1,
    progress: Progress | None = None,
    drawn: Callable[[Array], None] | None = None,
) -> Bootstrap:
    """Repeat a fit on resampled blocks of frames; the result depends on the seed, not on the workers.

    ``drawn`` is told the coefficients (B, K) of the converged replicates, a few at a time, in whatever order they come.
    """
    if fit.whole:
        problem = problem.unclipped()
    # what all replicates share is computed over the cores; each replicate then keeps to its own
    together, frames = replace(problem, workers=workers), len(problem.window.times)
    world = linear_world(together, fit)
    residuals = None if isinstance(world, str) else _residuals(together, fit, world)
    if isinstance(world, str) or residuals is None:
        reason = "the fitted law's own rollout could not be completed"
        return _summarise(problem, fit, 1, [reason] * settings.replicates)
    world = replace(world, problem=replace(problem, workers=1))
    length = block_length(residuals, fit.start * problem.window.weight, settings.block_length)
    seeds = [(settings.seed, index) for index in range(settings.replicates)]
    if settings.bootstrap == "residual":
        size = residual_sizes(residuals, problem.window.weight, length)
        residuals /= size[:, None, None].astype(np.float32)

        def work(seeds: Sequence[tuple[int, int]]) -> list[Draw | str]:
            order = np.stack([draw_blocks(frames, length, np.random.default_rng(seed)) for seed in seeds])
            return refit(world, residuals, size, order)

    else:
        blocks = restarted_blocks(world.problem, fit, length, workers)
        work = partial(draw_restarted, fit, blocks, -(-frames // length))

    def draw(seeds: Sequence[tuple[int, int]]) -> list[Draw | str]:
        found = work(seeds)
        if drawn is not None:
            drawn(np.array([one[0] for one in found if not isinstance(one, str)]).reshape(-1, len(problem.terms)))
        return found

    batches = [seeds[begin : begin + BATCH] for begin in range(0, len(seeds), BATCH)]

    def report(done: int, _: int | None) -> None:
        if progress is not None:
            progress(min(done * BATCH, len(seeds)), len(seeds))

    results = [one for batch in parallel_map(draw, batches, workers, report, kind="threads") for one in batch]
    summary = _summarise(problem, fit, length, results)
    return replace(summary, offset=_answer_to_offset(world), light=_answer_to_light(world))


def _answer_to_offset(world: World) -> Array:
    """Return ∂c/∂ε for u + ε everywhere, (K,); zero where it cannot be found."""
    window = world.problem.window
    everywhere = np.ones((1, *world.scene.start.shape), np.float32)
    times = len(window.times)
    # what lies outside a mask, and is followed there, rises with the rest
    raised = replace(world.problem, window=replace(window, values=window.values + np.float32(OFFSET)))
    order = np.zeros((1, times), np.int64)
    return _answer(replace(world, problem=raised), everywhere, np.full(times, OFFSET), order) / OFFSET


def _answer_to_light(world: World) -> Array:
    """Return how the coefficients change, (K,), if the light changed evenly by what is not known of it."""
    window = world.problem.window
    if window.light is None:
        return np.zeros_like(world.fit.coefficients)
    along = np.interp(window.times, window.times[[0, -1]], (0.0, DIMMED))
    answer = _answer(world, window.light.share(world.truth), along, np.arange(len(along))[None])
    return answer * window.light.unknown / DIMMED


def _answer(world: World, error: Frames, size: Array, order: NDArray[np.int64]) -> Array:
    """Return what an error of the recording, as ``refit`` takes it, does to the coefficients; 0 where unknown, (K,)."""
    [answer] = refit(world, error, size, order)
    fitted = world.fit.coefficients
    return np.zeros_like(fitted) if isinstance(answer, str) else answer[0] - fitted


def _residuals(problem: Problem, fit: Fit, world: World) -> Frames | None:
    """Return what the fitted law leaves unexplained in each frame; None where it cannot be rolled out.

    The start of the fit carries the noise of its few frames through the whole rollout, where every block would draw
    it again. The start that all frames agree on (see ``start.bring_back``) does not, unless the law amplifies noise as
    it goes: the one that leaves less unexplained is taken.
    """
    window = problem.window
    agreed = world.scene.start + (window.values.mean(axis=0) - world.truth.mean(axis=0))
    starts = np.stack([agreed if np.isfinite(agreed).all() else fit.start, fit.start])
    left = np.empty((len(starts), *window.values.shape), np.float32)
    models, velocity = [world.scene.model] * len(starts), np.stack([world.scene.velocity] * len(starts))
    for frames, values in window.predict(models, starts, velocity, problem.rollout, problem.workers):
        np.subtract(window.values[frames], values, out=left[:, frames], casting="same_kind")
    finite = [residuals for residuals in left if np.isfinite(residuals).all()]
    if not finite:
        return None
    least = min(finite, key=lambda residuals: float(np.vdot(residuals, residuals)))
    # what stays the same in all frames is no noise, and would shift every replicate alike
    least -= least.mean(axis=0)
    return np.asarray(least)


def refit(world: World, residuals: Frames, size: Array, order: NDArray[np.int64]) -> list[Draw | str]:
    """Refit to the truth plus residuals: one Gauss–Newton step each, with the fit's Jacobian.

    Frame t of replicate m is the truth's plus size[t] · residuals[order[m, t]]. The step is exact to first order in the
    residuals; noise in the initial frame enters through a rollout of its own.
    """
    window = world.problem.window
    # the initial frame as the fit estimates it: the true one, plus the mean error of the first frames
    first = np.flatnonzero(world.problem.split.start)
    noise = np.stack([np.tensordot(size[first] / len(first), residuals[drawn[first]], axes=1) for drawn in order])
    drawn = partial(_errors, world, residuals, size, order)
    if world.start is not None:
        noise = _settle_starts(world, world.start, drawn, noise)
    products = np.zeros((*order.shape, len(world.pictures)))
    pulled = np.zeros((len(order), *world.scene.start.shape))
    for part, errors in drawn(noise):
        pictures = np.ascontiguousarray(world.pictures[:, part])
        products[:, part] = inner_products(errors, pictures, window.weight).swapaxes(0, 1)
        if world.start is not None:
            world.start.pull(errors, part, window.weight, pulled)
    return [_step(world, *each) for each in zip(products, pulled, strict=True)]


def _errors(
    world: World, residuals: Frames, size: Array, order: NDArray[np.int64], noise: Array
) -> Iterator[tuple[slice, Frames]]:
    """Yield the errors (m, t, y, x) of the truth's rollout against each replicate, from starts wrong by ``noise``."""
    scene, count = world.scene, len(noise)
    velocity = np.broadcast_to(scene.velocity, (count, *scene.velocity.shape))
    for part, values in world.problem.window.predict(
        [scene.model] * count, scene.start + noise, velocity, world.problem.rollout, chunk=FEW_FRAMES
    ):
        drawn = size[part, None, None].astype(np.float32) * residuals[order[:, part]]
        yield part, values.astype(np.float32) - (world.truth[part] + drawn)


def _settle_starts(
    world: World, start: EliminatedStart, drawn: Callable[[Array], Iterator[tuple[slice, Frames]]], noise: Array
) -> Array:
    """Correct each replicate's initial frame by all of its frames, as the fit did."""
    noise = np.stack([smooth_frame(each) for each in noise])
    pulled = np.zeros_like(noise)
    for part, errors in drawn(noise):
        start.pull(errors, part, world.problem.window.weight, pulled)
    finite = np.where(np.isfinite(pulled), pulled, 0.0)
    return noise - np.stack([smooth_frame(each * start.inverse) for each in finite])


def _step(world: World, products: Array, pulled: Array) -> Draw | str:
    """Take the Gauss–Newton step of one replicate from its error's products with the pictures, (t, c)."""
    problem, linear, start = world.problem, world.linear, world.start
    if not np.isfinite(products).all():
        return f"the rollout failed before frame {int(np.argmin(np.isfinite(products).all(axis=1))) + 1}"
    slope = linear.slope_of(products) - (0.0 if start is None else start.taken_out(pulled))
    fitted = world.unknowns.vector(world.fit.values)
    there = fitted + linear.solve(slope)
    change = problem.relative_change(fitted, there)
    if not change <= LINEAR:
        return f"a coefficient moved by {change:.0%}, too far for a linear step"
    values = world.unknowns.values(there)
    velocity = problem.scene(values, world.scene.start).velocity
    return values[LAW], velocity, values.get(FLOW, np.zeros(0)), of_maps(values)


def _summarise(problem: Problem, fit: Fit, length: int, results: Sequence[Draw | str]) -> Bootstrap:
    """Sum up the replicates, drawn in blocks of ``length`` frames; a text says why one failed."""
    good = [result for result in results if not isinstance(result, str)]
    count = len(problem.terms)
    draws = np.array([draw[0] for draw in good]).reshape(-1, count)
    nothing = np.full(count, np.nan)
    few = Bootstrap(
        block_length=length,
        requested=len(results),
        draws=draws,
        bias=np.zeros(count),
        value=fit.coefficients,
        low=nothing,
        high=nothing,
        velocity_std=np.zeros_like(fit.velocity),
        failures=tuple(result for result in results if isinstance(result, str)),
    )
    if len(draws) < 2:
        return few
    median, bias = np.median(draws, axis=0), draws.mean(axis=0) - fit.coefficients
    value = fit.coefficients - bias
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    # few replicates, drawn from few blocks: the outer quantiles fall short, so never narrower than Student's interval
    blocks = len(problem.window.times) / length
    half = student.ppf(0.975, max(blocks - 1, 1)) * draws.std(axis=0, ddof=1)
    return replace(
        few,
        bias=bias,
        value=value,
        low=value - np.maximum(half, median - low),
        high=value + np.maximum(half, high - median),
        velocity_std=np.std([draw[1] for draw in good], axis=0),
        flow_std=np.std([draw[2] for draw in good], axis=0),
        maps=np.array([draw[3] for draw in good]),
    )
