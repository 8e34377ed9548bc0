"""Chronological block bootstrap of a rollout fit.

``residual``: the residuals of the whole-window fit are resampled in blocks of frames, added to the fitted
rollout, and the fit is repeated, the initial frame's estimate included; the bias that this shows is reported.
``restart``: the window is cut into blocks whose rollouts each restart from a frame smoothed in time; blocks
are drawn with replacement. Blocks are never concatenated into one rollout that would jump in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from video2pde.calibration.fit import Fit
from video2pde.calibration.problem import Problem
from video2pde.calibration.replicates import linear_world, refit, Sample, World
from video2pde.calibration.restart import Draw, draw_restarted, restarted_blocks
from video2pde.device import namespace, resident, to_host
from video2pde.field import Light
from video2pde.progress import Progress
from video2pde.resampling import block_length, draw_blocks, residual_sizes
from video2pde.room import empty
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

BATCH = 5
"""Replicates that read the shared pictures together, in memory; on a device it is all of them."""
OFFSET = 1e-3
"""Constant that is added to u to see how the coefficients answer."""
DIMMED = 3e-5
"""Relative change of the light for the same purpose: small, because weak growth answers strongly."""


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


def bootstrap_fit(
    problem: Problem,
    fit: Fit,
    settings: CalibrationSettings,
    workers: int = 1,
    progress: Progress | None = None,
    drawn: Callable[[Array], None] | None = None,
) -> Bootstrap:
    """Repeat a fit on resampled blocks of frames; the result depends on the seed, not on the workers.

    ``drawn`` is told the coefficients (B, K) of the converged replicates, a few at a time.
    """
    if fit.whole:
        problem = problem.unclipped()
    world = linear_world(replace(problem, workers=workers), fit)
    residuals = None if isinstance(world, str) else _residuals(world)
    if isinstance(world, str) or residuals is None:
        reason = "the fitted law's own rollout could not be completed"
        return _summarise(problem, fit, 1, [reason] * settings.replicates)
    with problem.window.arithmetic():
        length = block_length(residuals, fit.start * problem.window.weight, settings.block_length)
    frames, seeds = len(problem.window.times), [(settings.seed, index) for index in range(settings.replicates)]
    together = max(len(seeds), 1) if problem.window.on_device else BATCH
    batches = [seeds[begin : begin + together] for begin in range(0, len(seeds), together)]
    samples: list[Sample] = []
    if settings.bootstrap == "residual":
        with problem.window.arithmetic():
            size = residual_sizes(residuals, problem.window.weight, length)
            residuals /= size[:, None, None].astype(np.float32)
        for batch in batches:
            order = np.stack([draw_blocks(frames, length, np.random.default_rng(seed)) for seed in batch])
            samples.append(Sample(residuals, size, order))

    def report(done: int, total: int | None) -> None:
        if progress is not None and total:
            progress(len(seeds) * done // total, len(seeds))

    # what the coefficients answer to is asked along with the replicates: the truth passes by once
    light = problem.window.light
    asked = [_raised(world), *([] if light is None else [_dimmed(world, light)])]
    answers = refit(world, [*asked, *samples], workers, report)
    offset, *dimmed = (_answer(fit, one) for [one] in answers[: len(asked)])
    found = answers[len(asked) :]
    if settings.bootstrap == "restart":
        blocks = restarted_blocks(replace(problem, workers=1), fit, length, workers)
        found = [draw_restarted(fit, blocks, -(-frames // length), batch) for batch in batches]
    if drawn is not None:
        for ones in found:
            drawn(np.array([one[0] for one in ones if not isinstance(one, str)]).reshape(-1, len(problem.terms)))
    summary = _summarise(problem, fit, length, [one for ones in found for one in ones])
    by_light = np.zeros_like(fit.coefficients) if light is None else dimmed[0] * light.unknown / DIMMED
    return replace(summary, offset=offset / OFFSET, light=by_light)


def _raised(world: World) -> Sample:
    """Add a constant to u everywhere, to see how the coefficients answer."""
    window = world.problem.window
    everywhere, times = np.ones((1, *world.scene.start.shape), np.float32), len(window.times)
    region, raised = window.region, None
    if region is not None and region.rim is not None:
        # what lies outside a mask, and is followed there, rises with the rest
        raised = replace(window, values=window.values + np.float32(OFFSET))
    return Sample(everywhere, np.full(times, OFFSET), np.zeros((1, times), np.int64), raised)


def _dimmed(world: World, light: Light) -> Sample:
    """Let the light change evenly, to see how the coefficients answer."""
    times = world.problem.window.times
    along = np.interp(times, times[[0, -1]], (0.0, DIMMED))
    return Sample(light.share, along, np.arange(len(along))[None])


def _answer(fit: Fit, found: Draw | str) -> Array:
    """Return what an error of the recording has done to the coefficients, (K,); 0 where that is unknown."""
    return np.zeros_like(fit.coefficients) if isinstance(found, str) else found[0] - fit.coefficients


def _residuals(world: World) -> Frames | None:
    """Return what the fitted law leaves unexplained in each frame; None where it cannot be rolled out.

    The start of the fit carries the noise of its few frames through the whole rollout, where every block would draw
    it again. The start that all frames agree on (see ``start.bring_back``) does not, unless the law amplifies noise as
    it goes: the one that leaves less unexplained is taken.
    """
    window, fit, scene = world.problem.window, world.fit, world.scene
    agreed = scene.start + (window.values.mean(axis=0) - world.mean)
    if window.on_device:
        there: Frames | None = _residuals_there(world, [fit.start, agreed])
        return there
    residuals = empty(window.values.shape, np.float32)

    def leave(start: Array) -> float:
        """Write down what a start leaves unexplained, and return how much it is."""
        for frames, values in window.predict([scene.model], start, scene.velocity[None], world.problem.rollout):
            residuals[frames] = (window.seen(frames) - values[0]).astype(np.float32)
        return float(np.vdot(residuals, residuals)) if _all_finite(residuals) else np.inf

    # one after the other into the same place: two sets of residuals would take as much again
    by_fit = leave(fit.start)
    by_all = leave(agreed) if np.isfinite(agreed).all() else np.inf
    if not min(by_fit, by_all) < np.inf:
        return None
    if by_fit < by_all:
        leave(fit.start)
    # what stays the same in all frames is no noise, and would shift every replicate alike
    residuals -= residuals.mean(axis=0)
    return residuals


def _residuals_there(world: World, starts: list[Array]) -> Any:
    """Do the same on a device, where there is room for what all starts leave, and where it stays."""
    from video2pde.calibration.jax_sums import leave_over, squares

    window, scene, parts = world.problem.window, world.scene, []
    usable = [start for start in starts if np.isfinite(start).all()]
    models, velocity = [scene.model] * len(usable), np.stack([scene.velocity] * len(usable))
    with window.arithmetic():
        for frames, values in window.predict(models, np.stack(usable), velocity, world.problem.rollout):
            parts.append(leave_over(values, resident(window.values), frames.start))
        left = namespace(parts[0]).concatenate(parts, axis=1)
        costs = np.nan_to_num(to_host(squares(left)), nan=np.inf)
        # the last of those that are equal
        chosen = left[len(costs) - 1 - int(np.argmin(costs[::-1]))]
        return chosen - chosen.mean(axis=0) if costs.min() < np.inf else None


def _all_finite(frames: Frames) -> bool:
    return all(bool(np.isfinite(frame).all()) for frame in frames)


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
