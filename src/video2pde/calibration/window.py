"""What a fit compares its rollouts with: the frames, which pixels count, and which frame serves what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from video2pde.device import Device, double, resident
from video2pde.field import Encoding, Field, Grid, Light
from video2pde.field.cells import deconvolve_cells
from video2pde.flow import Flow
from video2pde.flow.paths import never_entered
from video2pde.parallel import map_threads
from video2pde.recording.encoding import correct_b_frames
from video2pde.rollout.batching import frames_at_once
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.task import Scheme
from video2pde.rollout.together import SideBySide
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

CHUNK = 8
"""Frames that rollouts go forward together."""
CLIPPED = 3.0
"""Level, in units of the noise that a camera cut off, below which u says too little to fit growth to."""
AROUND = 5
"""Cells a side over which u is averaged to tell its level."""
NOISE_LAG = 3
"""Frames to either side that a frame is compared with to see noise: an encoder repeats what it left out over a few."""


class Stream(Protocol):
    """Rollouts that go forward together; what they give lies in memory, or on a device as an array of JAX."""

    @property
    def done(self) -> bool: ...

    def advance(self, chunk: int) -> Any:
        """Return the slice and the values (model, frame, y, x) of the next frames, and whatever follows them."""


@dataclass(frozen=True, eq=False)
class Window:
    """Hold what a fit compares with: point values of the field, and which pixels count.

    ``values`` (t, y, x) float32, ``weight`` (y, x) 1 where a pixel counts and 0 elsewhere; ``outside``
    marks the pixels that do not obey the law: there a rollout follows the recording, or there are ``walls`` between;
    ``encoding``: what storing the recording did to it; ``light``: how well its light is known; ``device``: where
    rollouts run and are compared with it; ``floor``: the level that u must reach for a pixel of a frame to count.
    """

    values: Frames
    times: Array
    grid: Grid
    weight: Array
    outside: NDArray[np.bool_] | None = None
    encoding: Encoding | None = None
    walls: bool = False
    light: Light | None = None
    device: Device = "cpu"
    floor: float = -np.inf

    @property
    def on_device(self) -> bool:
        """Whether rollouts stay on a device; regions run in memory, wherever the rest does."""
        return self.device == "gpu" and self.outside is None

    def arithmetic(self) -> AbstractContextManager[None]:
        """Return what whoever computes with rollouts does it in: on a device, double precision."""
        return double() if self.on_device else nullcontext()

    def seen(self, frames: slice) -> Any:
        """Return recorded frames where the rollouts are."""
        return (resident(self.values) if self.on_device else self.values)[frames]

    def stride(self, frames: int, batch: int = 1) -> int:
        """Return how many frames of ``batch`` rollouts are taken at a time: ``frames`` in memory, more on a device."""
        return frames_at_once(batch, self.grid.ny * self.grid.nx) if self.on_device else frames

    @property
    def region(self) -> Region | None:
        """Where the law holds; None: everywhere."""
        return None if self.outside is None else Region(~self.outside, None if self.walls else self.values)

    @property
    def points(self) -> float:
        """How many space-time points count."""
        if self.floor == -np.inf:
            return float(self.weight.sum()) * len(self.times)
        return sum(float(np.vdot(self.weight, self.above_floor(frame))) for frame in range(len(self.times)))

    def above_clipping(self) -> Window:
        """Leave out what lies near the empty end of a camera's range, where it cut off its noise.

        There u is read through the inverse of a curve that is nearly flat, which takes little off the camera's error
        but multiplies an encoder's.
        """
        noise = 0.0 if self.encoding is None else self.encoding.clipped_noise
        return self if noise == 0 else replace(self, floor=CLIPPED * noise)

    def above_floor(self, frame: int) -> NDArray[np.bool_]:
        """Tell which pixels (y, x) of a frame lie above the floor."""
        return np.asarray(uniform_filter(self.values[frame], AROUND, mode="nearest") > self.floor)

    def carried_by(self, flow: Flow | None, drift: Array) -> Window:
        """Leave out what a flow beside the drift (t, 2) brings in from outside the picture."""
        if flow is None:
            return self
        return replace(self, weight=self.weight * never_entered(flow, drift, self.times, self.grid))

    def predict(
        self,
        models: Sequence[Model],
        start: Array,
        velocity: Array,
        settings: RolloutSettings,
        workers: int = 1,
        chunk: int = CHUNK,
    ) -> Iterator[tuple[slice, Array]]:
        """Roll models out side by side and yield (frames, values (model, frame, y, x)), a chunk at a time.

        ``start`` (y, x) or (model, y, x), ``velocity`` (model, t, 2). Where a mask marks the region of the law, the
        rest of the picture follows the recording, or lies behind walls.
        """
        rollouts = self.side_by_side(models, start, velocity, settings, workers, chunk)
        while not rollouts.done:
            yield rollouts.advance(self.stride(chunk, len(models)))[:2]

    def side_by_side(
        self,
        models: Sequence[Model],
        start: Array,
        velocity: Array,
        settings: RolloutSettings,
        workers: int = 1,
        rhythm: int = CHUNK,
    ) -> Stream:
        """Return the rollouts of :meth:`predict`, to be carried on by whoever asks, ``rhythm`` frames at a time or,
        on a device, as many as :meth:`stride` says."""
        scheme = Scheme(settings, region=self.region, workers=workers, device=self.device)
        rollouts = (models, start, self.times, self.grid, velocity, scheme)
        if not self.on_device:
            return SideBySide(*rollouts)
        # JAX takes a second to load, and most runs do without it
        from video2pde.rollout.jax_stream import DeviceSideBySide

        stream: Stream = DeviceSideBySide(*rollouts, rhythm)
        return stream


@dataclass(frozen=True, eq=False)
class FrameSplit:
    """Deal frames out, so that no noise is in the residual and in its Jacobian alike: it would pass for diffusion.

    ``start`` (t,): the frames that estimate the rollout's initial frame; ``base`` (t,): those that estimate the
    initial frame of the Jacobian, and count for nothing else.
    """

    start: NDArray[np.bool_]
    base: NDArray[np.bool_]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """The frames whose residuals meet the Jacobian."""
        return ~self.base

    @classmethod
    def in_order(cls, frames: int, run: int) -> FrameSplit:
        """The first ``run`` frames start the rollout, the next ones the Jacobian."""
        run = max(1, min(run, frames // 2))
        index = np.arange(frames)
        return cls(index < run, (index >= run) & (index < 2 * run))

    @classmethod
    def in_turns(cls, frames: int, run: int, part: int) -> FrameSplit:
        """Of every ``part`` runs of frames the second makes the Jacobian's start, the others the rollout's."""
        run = max(1, min(run, frames // 2))
        base = np.arange(frames) // run % part == 1
        return cls(~base, base)


def prepare_window(field: Field, max_points: int | None = None, seed: int = 0, undo_coding: bool = True) -> Window:
    """Take point values from cell averages, u − (Δx² u_xx + Δy² u_yy)/24, and choose the pixels that count.

    ``undo_coding``: correct frames that an encoder made from others, where they are late (see ``recording.encoding``).
    """
    values = deconvolve_cells(field.values) if field.grid.pitch == "cells" else field.values
    encoding = field.encoding
    if undo_coding and encoding is not None and encoding.late_b_frames and encoding.b_frames is not None:
        values = values if values.flags.writeable else values.copy()
        correct_b_frames(values, encoding.b_frames)
    weight = np.ones(field.grid.shape) if field.counted is None else field.counted.astype(float)
    if max_points is not None and max_points < weight.sum() * len(field):
        rng = np.random.default_rng([seed, 3])
        chosen = np.flatnonzero(weight.ravel())
        keep = rng.choice(chosen, max(16, max_points // len(field)), replace=False)
        weight = np.zeros(field.grid.shape)
        weight.flat[keep] = 1.0
    outside = None if field.core is None else ~field.core
    return Window(values, field.times, field.grid, weight, outside, encoding, field.walls, field.light)


def noise_variance(window: Window) -> float:
    """Estimate the variance of the recording's noise from differences in time, where pixels count.

    A frame less the straight line through those a few before and after it holds next to nothing of a smooth change; of
    white noise it has 1 + (1 − s)² + s² times the variance, with s where it lies between the two. The quiet half of the
    frames is taken: a shake or a flash is no noise.
    """
    lag = min(NOISE_LAG, (len(window.values) - 1) // 2)
    if lag < 1:
        return 0.0

    def square(k: int) -> float:
        before, now, after = window.times[[k - lag, k, k + lag]]
        s = (now - before) / (after - before)
        departure = window.values[k] - (1 - s) * window.values[k - lag] - s * window.values[k + lag]
        return float(_mean_over(window, k, departure**2) / (1 + (1 - s) ** 2 + s**2))

    squares = map_threads(square, range(lag, len(window.values) - lag))
    return float(np.median(squares))


def _mean_over(window: Window, frame: int, picture: NDArray[np.floating]) -> float:
    """Average a picture (y, x) over the pixels of a frame that count; 0 where none does."""
    weight = window.weight if window.floor == -np.inf else window.weight * window.above_floor(frame)
    return float(np.vdot(weight, picture)) / max(float(weight.sum()), 1e-30)
