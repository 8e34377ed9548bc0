"""Replicates of a fit: a truth with errors, refitted by one Gauss–Newton step each while the frames pass by.

The truth is the fitted law's rollout, and the Jacobian's pictures are made beside it, a few frames at a time. All
replicates go through the frames together, so that nothing is kept of them but sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import LAW, Scene, Unknowns
from video2pde.calibration.carried import FLOW
from video2pde.calibration.fit import Fit
from video2pde.calibration.following import compile_following
from video2pde.calibration.growth import share_start, Shared
from video2pde.calibration.linear import Chunk, inner_products, Linear, Look
from video2pde.calibration.mapped import of_maps
from video2pde.calibration.problem import Problem
from video2pde.calibration.restart import Draw
from video2pde.calibration.window import Window
from video2pde.device import namespace, resident, to_host
from video2pde.flow.paths import take_ways
from video2pde.parallel import map_threads
from video2pde.progress import Progress
from video2pde.rollout.start import smooth_frame
from video2pde.rollout.together import SideBySide

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

FEW_FRAMES = 8
"""Frames that replicates go forward at a time: few enough to stay in the cache; a part of ``window.CHUNK``."""
LINEAR = 0.5
"""Relative change of a coefficient up to which a replicate's linear step counts as converged."""


@dataclass(frozen=True, eq=False)
class World:
    """What every replicate starts from: a truth without pixel noise, and the fit's normal equations there.

    ``scene`` rolls the truth out; ``look`` does so again, with the pictures that make the Jacobian. Neither is kept:
    they would take many times the memory of the recording. ``unknowns`` are those of ``linear``. ``mean`` (y, x) is the
    truth's over time, ``first`` (t, y, x) its frames that make the start. ``shared``: of a fit whose initial frame was
    fitted jointly, with the block that is eliminated.
    """

    problem: Problem
    fit: Fit
    scene: Scene
    look: Look
    unknowns: Unknowns
    linear: Linear
    mean: Frames
    first: Frames
    shared: Shared | None = None

    def frames(self, replicates: int = 1) -> Iterator[Passing]:
        """Roll the truth out once more and yield it with its pictures, as few frames at a time as replicates need."""
        carried = None if self.shared is None else self.shared.ways()
        few = self.problem.window.stride(FEW_FRAMES, replicates)
        for chunk in self.look.roll_out():
            truth, pictures, first = chunk.base.astype(np.float32), chunk.pictures, chunk.frames.start
            del chunk
            for begin in range(0, len(truth), few):
                part = slice(begin, min(begin + few, len(truth)))
                way = None if carried is None else take_ways(carried, part.stop - begin)
                frames = slice(first + begin, first + part.stop)
                shown = pictures[:, part]
                yield Passing(
                    frames, truth[part], np.ascontiguousarray(shown) if namespace(shown) is np else shown, way
                )


@dataclass(frozen=True, eq=False)
class Passing:
    """Some frames of the truth (t, y, x) as they pass, with the pictures (c, t, y, x) of the Jacobian.

    Where the initial frame is eliminated, one picture more is the gain, and ``way`` (t, 2, y, x) says how far each
    pixel has been carried.
    """

    frames: slice
    truth: Frames
    pictures: Frames
    way: Array | None


def linear_world(problem: Problem, fit: Fit) -> World | str:
    """Linearise around the fitted law, rolled out from a smooth start; say why where that cannot be done."""
    smooth = replace(fit, start=smooth_frame(fit.start))
    scene = problem.scene(fit.values, smooth.start)
    if fit.whole:
        truth = _Truth(problem)
        shared = share_start(problem, replace(smooth, base=smooth.start), truth.see)
        if shared is not None:
            law = (shared.look, problem.unknowns, shared.linear)
            return World(problem, fit, scene, *law, truth.mean, truth.first, shared)
    look, truth = problem.look(fit.values, smooth.start, modes=fit.modes), _Truth(problem)
    linear = look.linearise(problem.split.counted, truth.see)
    if isinstance(linear, str):
        return linear
    return World(problem, fit, scene, look, look.unknowns, linear, truth.mean, truth.first)


class _Truth:
    """What is kept of the truth while it passes: its mean over time, and the frames that make the start."""

    def __init__(self, problem: Problem) -> None:
        shape = problem.window.grid.shape
        self._starts = {int(frame): place for place, frame in enumerate(np.flatnonzero(problem.split.start))}
        self._count, self._sum = 0, np.zeros(shape, np.float32)
        self.first = np.empty((len(self._starts), *shape), np.float32)

    def see(self, chunk: Chunk) -> None:
        base = chunk.base.astype(np.float32)
        if namespace(base) is not np:
            self._sum = self._sum + base.sum(axis=0)
            self._count += len(base)
            here = [n for n in self._starts if chunk.frames.start <= n < chunk.frames.stop]
            if here:
                self.first[[self._starts[n] for n in here]] = base[np.array(here) - chunk.frames.start]
            return
        for number, frame in enumerate(base, start=chunk.frames.start):
            self._sum += frame
            self._count += 1
            if number in self._starts:
                self.first[self._starts[number]] = frame

    @property
    def mean(self) -> Frames:
        mean: Frames = (to_host(self._sum).astype(float) / self._count).astype(np.float32)
        return mean


@dataclass(frozen=True, eq=False)
class Sample:
    """Replicates that go through the frames side by side.

    Frame t of replicate m is the truth's plus size[t] · residuals[order[m, t]]; or, of a single one whose ``residuals``
    are a function of the truth, plus size[t] · residuals(truth[t]). ``window``: what their rollouts follow outside a
    mask, where that is not the recording.
    """

    residuals: Frames | Callable[[Frames], Frames]
    size: Array
    order: NDArray[np.int64]
    window: Window | None = None

    def errors(self, truth: Frames, order: NDArray[np.int64]) -> Frames:
        """Return errors in units of their size, (m, t, y, x), for frames of the truth (t, y, x): the caller's own."""
        return np.array(self.residuals(truth)[None]) if callable(self.residuals) else self.residuals[order]

    def compare(self, values: Any, truth: Any, part: slice) -> Any:
        """Return what rollouts (m, t, y, x) of some frames differ by from the replicates, in single precision."""
        size, order = self.size[part].astype(np.float32), self.order[:, part]
        if namespace(values) is np:
            # in place: what the replicates of all workers take counts
            drawn = self.errors(truth, order)
            drawn *= size[:, None, None]
            drawn += truth
            errors = values.astype(np.float32)
            errors -= drawn
            return errors
        from video2pde.calibration.jax_sums import replicate_errors

        if callable(self.residuals):
            drawn, order = self.residuals(to_host(truth)), np.arange(len(truth))[None]
            return replicate_errors(values, truth, drawn, order, size)
        return replicate_errors(values, truth, resident(self.residuals), order, size)

    def start_noise(self, world: World, workers: int = 1) -> Array:
        """Return what the fit gets wrong of each initial frame: the mean error of the first frames, (m, y, x)."""
        first = np.flatnonzero(world.problem.split.start)
        share = self.size[first] / len(first)
        if world.problem.window.on_device and not callable(self.residuals):
            from video2pde.calibration.jax_sums import start_noise

            with world.problem.window.arithmetic():
                return np.array(start_noise(resident(self.residuals), self.order[:, first], share))

        def average(drawn: NDArray[np.int64]) -> Array:
            return np.asarray(np.tensordot(share, self.errors(world.first, drawn[None, first])[0], axes=1))

        return np.stack(map_threads(average, self.order, workers))


def refit(
    world: World, samples: Sequence[Sample], workers: int = 1, progress: Progress | None = None
) -> list[list[Draw | str]]:
    """Refit to the truth plus errors: one Gauss–Newton step for each replicate, with the fit's Jacobian.

    The step is exact to first order in the errors; noise in the initial frame enters through a rollout of its own. All
    samples go through the frames together, while the truth and its pictures pass by once.
    """
    noises, passes = [sample.start_noise(world, workers) for sample in samples], 1 if world.shared is None else 2
    window, most = world.problem.window, max(len(sample.order) for sample in samples)
    total = passes * len(window.times)

    def follow(run: int, products: bool) -> list[_Side]:
        with window.arithmetic():
            sides = [_Side(world, sample, noise, products) for sample, noise in zip(samples, noises, strict=True)]
            for passing in world.frames(most):
                # all sides share a device, and its double precision is this thread's
                map_threads(partial(_Side.follow, passing=passing), sides, 1 if window.on_device else workers)
                if progress is not None:
                    progress((run * total) // passes + passing.frames.stop, total)
        return sides

    if world.shared is not None:
        # each replicate's initial frame is corrected by all of its frames, as the fit did
        noises, inverse = (
            [np.stack([smooth_frame(each) for each in noise]) for noise in noises],
            world.shared.start.inverse,
        )
        for side, noise in zip(follow(0, products=False), noises, strict=True):
            pulled = to_host(side.pulled)
            finite = np.where(np.isfinite(pulled), pulled, 0.0)
            noise -= np.stack([smooth_frame(each * inverse) for each in finite])
    sides = follow(passes - 1, products=True)
    return [[_step(world, *each) for each in zip(s.products, to_host(s.pulled), strict=True)] for s in sides]


class _Side:
    """One sample on its way through the frames, from initial frames that are wrong by ``noise`` (m, y, x).

    ``products`` (m, t, c): of its errors with the pictures; ``pulled`` (m, y, x): see ``EliminatedStart.pull``.
    """

    def __init__(self, world: World, sample: Sample, noise: Array, products: bool) -> None:
        scene, count = world.scene, len(noise)
        window = sample.window or world.problem.window
        velocity = np.broadcast_to(scene.velocity, (count, *scene.velocity.shape))
        self._world, self._sample, self._wanted = world, sample, products
        self._rollouts = window.side_by_side(
            [scene.model] * count, scene.start + noise, velocity, world.problem.rollout, rhythm=FEW_FRAMES
        )
        self.products = np.zeros((*sample.order.shape, world.linear.weights.shape[2]))
        self.pulled = np.zeros((count, *scene.start.shape))
        self._room = np.zeros((0, *scene.start.shape))

    def follow(self, passing: Passing) -> None:
        """Go on to the frames that pass, and sum up the errors of the rollouts against each replicate."""
        world, sample, weight = self._world, self._sample, self._world.problem.window.weight
        rollouts, count = self._rollouts, len(passing.truth)
        drawn = isinstance(sample.residuals, np.ndarray)
        if world.shared is None and drawn and isinstance(rollouts, SideBySide) and rollouts.stacked:
            self._follow_stacked(passing, rollouts)
            return
        part, values = rollouts.advance(count)[:2]
        errors = sample.compare(values, passing.truth, part)
        del values
        if self._wanted:
            pictures = passing.pictures[: self.products.shape[2]]
            self.products[:, part] = inner_products(errors, pictures, weight).swapaxes(0, 1)
        if world.shared is not None and passing.way is not None:
            start, gain = world.shared.start, passing.pictures[-1]
            self.pulled = start.pull(errors, part, gain, passing.way, weight, self.pulled)

    def _follow_stacked(self, passing: Passing, rollouts: SideBySide) -> None:
        """Do so in one compiled pass, which keeps a few frames of one replicate at a time."""
        world, sample = self._world, self._sample
        precision = world.problem.rollout.precision
        if len(self._room) != len(passing.truth):
            self._room = np.zeros(passing.truth.shape, precision)
        rollouts.carry_on(
            len(passing.truth),
            compile_following(precision),
            self._room,
            passing.truth,
            sample.residuals,
            sample.order,
            sample.size.astype(np.float32),
            passing.pictures,
            world.problem.window.weight.astype(np.float32),
            passing.frames.start,
            self.products,
        )


def _step(world: World, products: Array, pulled: Array) -> Draw | str:
    """Take the Gauss–Newton step of one replicate from its error's products with the pictures, (t, c)."""
    problem, linear, start = world.problem, world.linear, None if world.shared is None else world.shared.start
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
