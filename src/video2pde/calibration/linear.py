"""The linear least-squares problem at a point of a fit: pictures, their sums per frame, normal equations.

With r = û − u the error of a rollout and J its derivatives (``blocks``: weights in time × pictures), every fit needs no
more than the inner products of pictures and errors in each frame. They are summed while the rollouts stream by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import Scene, Unknowns
from video2pde.calibration.pictures import draw_error
from video2pde.calibration.window import CHUNK, Stream, Window
from video2pde.compiled import njit
from video2pde.device import namespace, resident
from video2pde.parallel import map_threads
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

RELATIVE_STEP = 1e-4
"""Step of the differences that give the Jacobian, relative to an unknown's scale."""
HELD, LEAST_FRAMES = 2**26, 2
"""Bytes that rollouts and pictures of some frames may take together, and frames that are taken in any case."""
RIDGE = 1e-12
"""Added to the normal equations, whose diagonal is scaled to one: enough for a column of zeros."""


@dataclass(frozen=True, eq=False)
class Linear:
    """The normal equations JᵀJ x = −Jᵀr of a fit.

    ``weights`` (n, t, c): unknown n adds weights[n, t, c] × picture c to frame t; ``counted`` (t,): the frames that
    take part; ``hessian`` (n, n) is JᵀJ, ``slope`` (n,) Jᵀr; ``cost`` the sum of squared errors over all frames.
    Equations of recordings that share unknowns are added.
    """

    weights: Array
    counted: NDArray[np.bool_]
    hessian: Array
    slope: Array
    cost: float = float("inf")

    @classmethod
    def of(cls, grams: Array, weights: Array, counted: NDArray[np.bool_]) -> Linear:
        """Assemble from inner products per frame (t, c + 1, c + 1) of the pictures and, last, of the error."""
        used = np.where(counted[:, None, None], grams, 0.0)
        rows = np.einsum("ntc,tcd->ntd", weights, used[:, :-1, :-1])
        hessian = np.tensordot(rows, weights, axes=([1, 2], [1, 2]))
        slope = np.tensordot(weights, used[:, :-1, -1], axes=([1, 2], [0, 1]))
        return cls(weights, counted, hessian, slope, float(grams[:, -1, -1].sum()))

    def __add__(self, other: Linear) -> Linear:
        """Join the equations of two recordings, or windows, for the same unknowns."""
        weights = np.concatenate([self.weights, other.weights], axis=1)
        counted = np.concatenate([self.counted, other.counted])
        hessian, slope = self.hessian + other.hessian, self.slope + other.slope
        return Linear(weights, counted, hessian, slope, self.cost + other.cost)

    def slope_of(self, products: Array) -> Array:
        """Return Jᵀr of another error, from its inner products (t, c) with the pictures."""
        return np.tensordot(self.weights, np.where(self.counted[:, None], products, 0.0), axes=([1, 2], [0, 1]))

    def only(self, chosen: NDArray[np.int64]) -> Linear:
        """Keep some of the unknowns, the others being given."""
        square = np.ix_(chosen, chosen)
        return replace(self, weights=self.weights[chosen], hessian=self.hessian[square], slope=self.slope[chosen])

    def with_prior(self, prior_weight: Array, vector: Array, variance: float) -> Linear:
        """Add what is known beforehand: unknowns near zero, 1/σ² = ``prior_weight``, against noise of ``variance``."""
        added = variance * prior_weight
        return replace(self, hessian=self.hessian + np.diag(added), slope=self.slope + added * vector)

    def eliminate(self, products: Array, inverse: Array, taken_out: Array) -> Linear:
        """Take out further unknowns, each with equations of its own alone: JᵀJ is diagonal among them.

        ``products`` (n, …): JᵀJ between ours and theirs, ``inverse`` (…): one over theirs, ``taken_out`` (n,): the part
        of Jᵀr that is theirs.
        """
        flat = (products * np.sqrt(inverse)).reshape(len(products), -1)
        return replace(self, hessian=self.hessian - flat @ flat.T, slope=self.slope - taken_out)

    def solve(self, slope: Array | None = None, damping: float = 0.0, relative: Array | None = None) -> Array:
        """Return the step that the equations ask for, with ``damping`` relative to the diagonal (Levenberg–Marquardt).

        ``relative`` (n,): factors on the unknowns; a positive one times its logarithm's step is its own step.
        """
        factor = np.ones(len(self.hessian)) if relative is None else relative
        hessian = self.hessian * np.outer(factor, factor)
        right = (self.slope if slope is None else slope) * factor
        scale, matrix = _scaled(hessian, damping)
        return np.asarray(-np.linalg.solve(matrix, right / scale) / scale)

    @property
    def variances(self) -> Array:
        """The variances of the unknowns, (n,), in units of the noise's."""
        scale, matrix = _scaled(self.hessian)
        return np.asarray(np.diag(np.linalg.inv(matrix)) / scale**2)


def _scaled(hessian: Array, damping: float = 0.0) -> tuple[Array, Array]:
    """Return the unknowns' scales, and the matrix with a diagonal of one, ``damping`` and the ridge added."""
    diagonal = np.diag(hessian)
    # 1 where there is no column at all: no length in the recording's units is small in itself
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return scale, hessian / np.outer(scale, scale) + (damping + RIDGE) * np.eye(len(scale))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some frames: the rollout from its own initial frame and that of the Jacobian, (t, y, x).

    They lie in memory, where they hold the rollouts of all neighbours (who keeps them copies them), or on a device as
    arrays of JAX. ``columns`` (c + 1, t, y, x): the pictures and, last, the error; empty where a rollout has
    ``failed``.
    """

    frames: slice
    rollout: Array
    base: Array
    columns: Array
    failed: str = ""

    @property
    def pictures(self) -> Frames:
        """The pictures (c, t, y, x) in single precision, for what is summed from them later."""
        pictures = self.columns[:-1]
        if namespace(pictures) is not np:
            return pictures.astype(np.float32)
        single = np.empty(pictures.shape, np.float32)
        map_threads(lambda n: np.copyto(single[n], pictures[n], casting="same_kind"), range(len(single)))
        return single


@dataclass(frozen=True, eq=False)
class Look:
    """A point of a fit that is to be looked at: unknowns, their values, and what the rest of a rollout is made from.

    ``given`` starts the rollout, ``base`` (y, x) that of the Jacobian; none: the same. Noise that residual and Jacobian
    share would pass for diffusion, so a start that holds noise needs a base without.
    """

    window: Window
    unknowns: Unknowns
    vector: Array
    given: Scene
    settings: RolloutSettings
    base: Array | None = None
    workers: int = 1

    @property
    def clean(self) -> Scene:
        return self.given if self.base is None else replace(self.given, start=self.base)

    @property
    def weights(self) -> Array:
        return self.unknowns.weights(self.vector, self.given, self.window.times)

    def roll_out(self) -> Iterator[Chunk]:
        """Roll out the point itself, and a neighbour for each unknown that needs one, a few frames at a time."""
        neighbours, steps = self.unknowns.neighbours(self.vector, self.clean, RELATIVE_STEP)
        scenes = [self.unknowns.scene(self.vector, self.clean), *neighbours]
        if self.base is not None:
            scenes.append(self.unknowns.scene(self.vector, self.given))
        models, starts = [scene.model for scene in scenes], np.stack([scene.start for scene in scenes])
        velocity = np.stack([scene.velocity for scene in scenes])
        rollouts = self.window.side_by_side(models, starts, velocity, self.settings, self.workers)
        stride = self.window.stride(self._frames_at_once(len(scenes)), len(scenes))
        while not rollouts.done:
            # nothing of a chunk is held here while the next one is made
            yield self._next(rollouts, stride, steps)

    def _next(self, rollouts: Stream, stride: int, steps: Array) -> Chunk:
        frames, values = rollouts.advance(stride)[:2]
        return self._compare(frames, values, steps)

    def _frames_at_once(self, scenes: int) -> int:
        """Return how many frames are taken at a time: fewer where many unknowns make many pictures."""
        grid, pictures = self.window.grid, scenes + self.unknowns.pictures + 1
        frames = max(LEAST_FRAMES, min(CHUNK, HELD // (8 * pictures * grid.ny * grid.nx)))
        return 1 << (frames.bit_length() - 1)  # replicates take a part of them at a time

    def _compare(self, frames: slice, values: Array, steps: Array) -> Chunk:
        """Take the error and the pictures of some frames from the rollouts (model, t, y, x)."""
        if self.window.on_device:
            return self._compare_there(frames, values, steps)
        # what has failed stays missing to the last frame
        if not np.isfinite(values[:, -1]).all():
            return _failed(frames, values, np.asarray(np.isfinite(values).all(axis=(0, 2, 3))))
        observed, last = self.window.seen(frames), len(values) - 1 if self.base is not None else 0
        columns = np.empty((self.unknowns.pictures + 1, *values.shape[1:]), values.dtype)

        def draw(piece: tuple[int, int]) -> None:
            self.unknowns.draw(values, steps, self.window, *piece, columns[:-1])
            draw_error(values, last, observed, *piece, columns[-1])

        map_threads(draw, _pieces(values.shape[1], self.workers), self.workers)
        return Chunk(frames, values[last], values[0], self._above_floor(frames, columns))

    def _compare_there(self, frames: slice, values: Any, steps: Array) -> Chunk:
        """Do the same on a device, in few programs: each call of one takes as long as a pass over small pictures."""
        from video2pde.calibration import jax_sums

        reached = np.asarray(jax_sums.reached(values))
        if not reached[-1]:
            return _failed(frames, values, reached)
        base, differences, last = jax_sums.take_apart(values, steps)
        rollout: Any = base if self.base is None else last
        pictures: Any = self.unknowns.draw_there(differences, base, self.window)
        columns: Any = jax_sums.columns(pictures, rollout, resident(self.window.values), frames.start)
        return Chunk(frames, rollout, base, self._above_floor(frames, columns))

    def _above_floor(self, frames: slice, columns: Array) -> Array:
        """Leave out what lies below the window's floor, of pictures and error alike."""
        if self.window.floor == -np.inf:
            return columns
        return columns * np.stack([self.window.above_floor(frame) for frame in range(frames.start, frames.stop)])

    def linearise(self, counted: NDArray[np.bool_], keep: Callable[[Chunk], None] | None = None) -> Linear | str:
        """Return the normal equations, or why the rollout could not be completed; ``keep`` is given every chunk."""
        sums = self.sum_up(keep)
        return sums if isinstance(sums, str) else Linear.of(sums, self.weights, counted)

    def sum_up(self, keep: Callable[[Chunk], None] | None = None) -> Array | str:
        """Return the inner products per frame (t, c + 1, c + 1) of pictures and error, or why there are none."""
        count = self.weights.shape[2] + 1
        grams = np.zeros((len(self.window.times), count, count))
        with self.window.arithmetic():
            for chunk in self.roll_out():
                if chunk.failed:
                    return chunk.failed
                grams[chunk.frames] = inner_products(chunk.columns, chunk.columns, self.window.weight, self.workers)
                if keep is not None:
                    keep(chunk)
                del chunk
        return grams


def _failed(frames: slice, values: Array, reached: NDArray[np.bool_]) -> Chunk:
    """Say which frame was the first that not all rollouts (model, t, y, x) have reached."""
    failed = frames.start + int(np.argmin(reached))
    return Chunk(frames, values[-1], values[0], values[:0], f"the rollout failed before frame {failed}")


def inner_products(left: Any, right: Any, weight: Array, workers: int = 1) -> Array:
    """Sum weight × left × right over the pixels of each frame: (m, t, y, x) and (c, t, y, x) to (t, m, c)."""
    if namespace(left) is not np:
        from video2pde.calibration.jax_sums import device_products

        return device_products(left, right, weight)
    out = np.zeros((left.shape[1], len(left), len(right)))
    light = weight.astype(left.dtype)

    def work(piece: tuple[int, int]) -> None:
        # whole arrays, not slices of them: slices are compiled for another layout, and round in another order
        _inner_products(left, right, light, left is right, *piece, out)

    map_threads(work, _pieces(len(out), workers), workers)
    return out


@cache
def _pieces(count: int, workers: int) -> tuple[tuple[int, int], ...]:
    """Share frames out to threads: where each begins and ends."""
    return tuple(pairwise(np.linspace(0, count, min(workers, count) + 1).astype(int).tolist()))


# rows are sliced before the loop along them, as in ``pictures``: with four indices in it no processor takes several
# pixels at a time, and a pass takes twice as long
jit: Callable[..., Any] = njit(nogil=True, fastmath=True)


@jit
def _inner_products(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    left, right, weight, symmetric, begin, end, out
):
    rows, _, ny, nx = left.shape
    weighted = np.empty(nx, left.dtype)
    for t in range(begin, end):
        for j in range(ny):
            light = weight[j]
            for m in range(rows):
                row = left[m, t, j]
                for i in range(nx):
                    weighted[i] = row[i] * light[i]
                for c in range(m + 1 if symmetric else len(right)):
                    other = right[c, t, j]
                    total = weighted[0] * 0
                    for i in range(nx):
                        total += weighted[i] * other[i]
                    out[t, m, c] += total
        if symmetric:
            for m in range(rows):
                for c in range(m):
                    out[t, c, m] = out[t, m, c]
