"""A rollout fit of two laws, posed: the frames, how they are weighed, the start, and the normal equations at a point.

The same precautions as in ``calibration``: the initial frames are estimated by several frames under the current laws,
the Jacobian starts from frames of its own, so that noise is not in the residual and in its derivatives alike, and the
amplitudes of the changes of the start that look like a change of a coefficient, T_j(u₀, w₀), are fitted jointly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from video2pde.calibration.linear import Linear
from video2pde.calibration.start import initial_frame, MODE_SMOOTHING
from video2pde.calibration.window import FrameSplit, noise_variance, prepare_window, Window
from video2pde.pair.fields import Pair
from video2pde.pair.kernels import compile_pair
from video2pde.pair.law import PairLaw
from video2pde.pair.rollout import EDGES, roll_chunks, Scene
from video2pde.rollout.driver import pad
from video2pde.rollout.start import smooth_frame
from video2pde.settings import Settings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

LEAST_NOISE = 0.002
"""Noise that is at least counted, as a share of a field's range: a law is never better than that."""
CALM = 0.05
"""Change (rms) since the first frame, as a share of a field's range, up to which a frame helps to estimate it: what is
brought back over more would carry the start's own errors along, which reactions multiply."""
LAW_STEP, MODE_STEP = 3e-6, 3e-5
"""Steps of the differences that make the Jacobian: of coefficients, relative to their scale, and along a mode of the
start, as a share of the field's range. Reactions multiply a step until it is no longer small: with 1e-4 curvature made
up a third of how Gray–Scott's fit answers to its speed. Rollouts are double precision, so that these are not too small;
where a step makes another substep, the error in time changes by 5e-8."""


@dataclass(frozen=True, eq=False)
class PairProblem:
    """Pose the fit of two laws to a window of frames.

    ``windows``: point values of u and w; ``weights`` (2,): one over the variance of each field's noise; ``ranges``
    (2,): how far each field reaches.
    """

    windows: tuple[Window, Window]
    scene: Scene
    split: FrameSplit
    weights: Array
    ranges: Array
    start_frames: int

    @classmethod
    def of(cls, train: Pair, settings: Settings) -> PairProblem:
        """Prepare the training window: point values, which pixels count, and the noise of both fields."""
        windows = [prepare_window(part, undo_coding=settings.calibration.undo_coding) for part in train.fields]
        ranges = np.array([float(np.quantile(w.values, 0.999) - np.quantile(w.values, 0.001)) for w in windows])
        noise = np.array([noise_variance(window) for window in windows])
        weights = 1 / np.maximum(noise, (LEAST_NOISE * ranges) ** 2 + 1e-300)
        count = max(1, min(settings.rollout.start_frames, len(train) // 8, _calm_frames(windows, ranges)))
        scene = Scene.of(train, settings.rollout, settings.run.workers)
        return cls((windows[0], windows[1]), scene, FrameSplit.in_order(len(train), count), weights, ranges, count)

    def first(self, share: float) -> PairProblem:
        """Take the first part of the window, as much as a fit needs at least."""
        count = min(len(self.times), max(round(share * len(self.times)), 4 * self.start_frames, 8))
        windows = [replace(w, values=w.values[:count], times=w.times[:count]) for w in self.windows]
        rim = None if self.scene.rim is None else self.scene.rim[:, :count]
        return replace(
            self,
            windows=(windows[0], windows[1]),
            scene=replace(self.scene, rim=rim),
            split=FrameSplit.in_order(count, self.start_frames),
        )

    @property
    def times(self) -> Array:
        return self.windows[0].times

    @cached_property
    def values(self) -> Frames:
        """Both fields as they were observed, point values (2, t, y, x)."""
        return np.stack([window.values for window in self.windows])

    @cached_property
    def scale(self) -> Array:
        """The square root of each point's weight, (2, y, x)."""
        return np.asarray(np.sqrt(self.weights)[:, None, None] * np.sqrt(self.windows[0].weight))

    @property
    def points(self) -> float:
        return 2.0 * self.windows[0].points

    def first_start(self) -> Array:
        """Estimate the initial frames by straight lines through the first few."""
        return _smooth(np.stack([initial_frame(window, self.start_frames) for window in self.windows]))

    def corrected_start(self, law: PairLaw, start: Array) -> tuple[Array, Array]:
        """Estimate the initial frames twice: from the first frames for the rollout, from the next for the Jacobian."""
        better = self._bring_back(law, _smooth(start), self.split.start)
        return better, _smooth(self._bring_back(law, _smooth(better), self.split.base))

    def _bring_back(self, law: PairLaw, start: Array, frames: NDArray[np.bool_]) -> Array:
        """Return mean_k [u_k − (û_k − û_0)] over some frames: what they were at the initial time, by the law."""
        stop = int(np.flatnonzero(frames)[-1]) + 1
        total = np.zeros_like(start)
        for part, found, _ in roll_chunks([law], start[None], self.times[:stop], self.scene):
            wanted = frames[part]
            total += (self.values[:, part][:, wanted] - (found[0][:, wanted] - start[:, None])).sum(axis=1)
        return total / frames.sum() if np.isfinite(total).all() else start

    def modes(self, law: PairLaw, base: Array) -> Array:
        """Return the changes of the start that look most like a change of a coefficient, (K, 2, y, x)."""
        smooth = np.stack([gaussian_filter(part, MODE_SMOOTHING) for part in base])
        found = []
        for index in range(len(law.vector)):
            unit = np.zeros(len(law.vector))
            unit[index] = 1.0
            change = tendency(law.moved(unit), smooth, self.scene)
            size = float(np.abs(change / self.ranges[:, None, None]).max())
            found.append(change / size if size > 0 else change)
        return np.stack(found)

    def steps(self, law: PairLaw) -> Array:
        """Return how far each coefficient is moved for the Jacobian, (K,)."""
        vector = np.abs(law.vector)
        return np.asarray(LAW_STEP * np.maximum(vector, 1e-3 * vector.max()) + 1e-300)

    def laws_around(self, law: PairLaw, base: Array, modes: Array) -> tuple[list[PairLaw], Array]:
        """Return the rollouts that make a Jacobian: the law from ``base``, each coefficient moved, each mode added."""
        steps = self.steps(law)
        moved = [law.moved(law.vector + step * unit) for step, unit in zip(steps, np.eye(len(steps)), strict=True)]
        laws = [law, *moved, *[law] * len(modes)]
        starts = np.concatenate([np.stack([base] * (1 + len(moved))), base + MODE_STEP * modes])
        return laws, starts

    def derivatives(self, rollouts: Array, steps: Array) -> Array:
        """Turn those rollouts (1 + K + modes, …) into the Jacobian's pictures (K + modes, …)."""
        sizes = np.concatenate([steps, np.full(len(rollouts) - 1 - len(steps), MODE_STEP)])
        return np.asarray((rollouts[1:] - rollouts[0]) / sizes.reshape(-1, *[1] * (rollouts.ndim - 1)))


def _smooth(frames: Array) -> Array:
    """Take pixel noise off both fields' initial frames."""
    return np.stack([smooth_frame(part) for part in frames])


def _calm_frames(windows: Sequence[Window], ranges: Array) -> int:
    """Count the frames, from the first on, in which neither field has changed much."""
    count = min(len(window.values) for window in windows)
    for window, reach in zip(windows, ranges, strict=True):
        for frame in range(1, count):
            if float(np.sqrt(np.mean((window.values[frame] - window.values[0]) ** 2))) > CALM * reach:
                count = frame
                break
    return count


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the fit: the laws, the initial frames with the modes' amplitudes, and the normal equations there.

    ``grams`` (t, P + 1, P + 1): inner products per frame of the Jacobian's pictures and, last, of the error.
    ``failure`` says why there are none.
    """

    law: PairLaw
    start: Array
    base: Array
    modes: Array
    amplitudes: Array
    grams: Array
    failure: str = ""

    @property
    def initial(self) -> Array:
        """The initial frames with what the modes change, (2, y, x)."""
        return np.asarray(self.start + np.tensordot(self.amplitudes, self.modes, axes=1))

    @property
    def jacobian_start(self) -> Array:
        """The frames that the Jacobian starts from, with what the modes change, (2, y, x)."""
        return np.asarray(self.base + np.tensordot(self.amplitudes, self.modes, axes=1))

    @property
    def cost(self) -> float:
        return float("inf") if self.failure else float(self.grams[:, -1, -1].sum())

    def linear(self, counted: NDArray[np.bool_]) -> Linear:
        """Return the normal equations over some frames."""
        size, frames = self.grams.shape[1] - 1, len(self.grams)
        identity = np.broadcast_to(np.eye(size)[:, None, :], (size, frames, size))
        return Linear.of(self.grams, identity, counted)


def evaluate(problem: PairProblem, law: PairLaw, start: Array, base: Array, modes: Array, amplitudes: Array) -> Point:
    """Roll out at a point of the fit, and sum up its normal equations while the frames stream by."""
    point = Point(law, start, base, modes, amplitudes, np.zeros((0, 1, 1)))
    laws, starts = problem.laws_around(law, point.jacobian_start, modes)
    steps = problem.steps(law)
    grams = np.empty((len(problem.times), len(laws), len(laws)))
    for part, found, reasons in roll_chunks(
        [law, *laws], np.concatenate([point.initial[None], starts]), problem.times, problem.scene
    ):
        failed = next((reason for reason in reasons if reason), "")
        if failed:
            return Point(law, start, base, modes, amplitudes, np.zeros((0, 1, 1)), failed)
        error = found[0] - problem.values[:, part]
        pictures = np.concatenate([problem.derivatives(found[1:], steps), error[None]])
        grams[part] = inner_products(pictures, pictures, problem.scale)
    return Point(law, start, base, modes, amplitudes, grams)


def inner_products(a: Array, b: Array, scale: Array) -> Array:
    """Return Σ scale² a b over both fields and pixels, (t, n, m), of pictures (n, 2, t, y, x) and (m, 2, t, y, x)."""
    frames = a.shape[2]
    first, second = ((part * scale[:, None]).swapaxes(1, 2).reshape(len(part), frames, -1) for part in (a, b))
    return np.asarray(np.matmul(first.swapaxes(0, 1), second.transpose(1, 2, 0)))


def tendency(law: PairLaw, state: Array, scene: Scene) -> Array:
    """Return the rates of change (2, y, x) of both fields as the compiled pass computes them."""
    kernel, grid = compile_pair(law.terms), scene.grid
    r = kernel.radius
    padded = np.zeros((6, grid.ny + 2 * r, grid.nx + 2 * r))
    inner = (slice(r, r + grid.ny), slice(r, r + grid.nx))
    for index in (0, 1):
        padded[(index, *inner)] = state[index]
        pad(padded[index], r, EDGES[scene.settings.boundary])
    frames = [np.ascontiguousarray(part) for part in padded]
    kernel.stage(*frames[:2], *frames[:2], *frames[2:4], law.vector, 1 / grid.dx, 1 / grid.dy, 1.0, 0.0)
    return np.stack([frames[2][inner] - state[0], frames[3][inner] - state[1]])
