"""Frame times: keep what was recorded, and give later stages a uniform grid in time."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError

UNIFORM_WITHIN = 1e-3  # largest relative spread of the intervals that still counts as uniform
CHUNK_BYTES = 16 << 20


@dataclass(frozen=True)
class TimePlan:
    """Say how recorded frames become frames at uniform times.

    ``times``: uniform, s. ``recorded``: as the container has them, s. ``resampled``: whether frames are
    interpolated linearly in time between their recorded neighbours; otherwise they are taken as they are.
    """

    times: NDArray[np.float64]
    recorded: NDArray[np.float64]
    resampled: bool
    note: str = ""


def plan_times(recorded: NDArray[np.float64], tick: float) -> TimePlan:
    """Find uniform times for frames recorded at ``recorded`` (s), known to within ``tick`` (s).

    Times within one tick of a straight line are a constant rate, written with rounding: the line is used.
    """
    if len(recorded) < 2:
        return TimePlan(recorded, recorded, resampled=False)
    steps = np.diff(recorded)
    if steps.min() <= 0:
        at = int(np.argmin(steps)) + 1
        raise InputError(
            f"the time of frame {at} of those selected ({recorded[at]:g} s) is not later than the one before it "
            f"({recorded[at - 1]:g} s); give the frame rate (recording.fps) to override the recorded times"
        )
    index = np.arange(len(recorded), dtype=np.float64)
    slope, offset = np.polyfit(index, recorded, 1)
    line = offset + slope * index
    if np.ptp(steps) <= UNIFORM_WITHIN * steps.mean():
        even = np.linspace(recorded[0], recorded[-1], len(recorded))
        return TimePlan(even, recorded, resampled=False)
    if np.abs(recorded - line).max() <= tick:
        note = f"constant frame rate of {1 / slope:.6g}/s, its times rounded by the container to {tick:.3g} s"
        return TimePlan(line, recorded, resampled=False, note=note)
    interval = float(np.median(steps))
    count = int(np.floor((recorded[-1] - recorded[0]) / interval * (1 + 1e-9))) + 1
    times = recorded[0] + interval * np.arange(count)
    times[-1] = min(times[-1], recorded[-1])
    note = (
        f"variable frame rate: intervals from {steps.min():.4g} to {steps.max():.4g} s, resampled linearly in time "
        f"from {len(recorded)} frames to {count} at the median interval of {interval:.6g} s"
    )
    return TimePlan(times, recorded, resampled=True, note=note)


class FrameStore:
    """Collect frames of one shape without knowing their number, and hand them back once, freeing memory.

    Frames lie in blocks of about 16 MB. ``drain`` lets go of each block when it has been read, so that
    building the final array needs one block more than the array itself.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._per_block = max(1, CHUNK_BYTES // (4 * shape[0] * shape[1]))
        self._blocks: list[NDArray[np.float32]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def slot(self) -> NDArray[np.float32]:
        """Return the next frame's place, to be written by the caller."""
        row = self._count % self._per_block
        if row == 0:
            self._blocks.append(self._new_block())
        self._count += 1
        place: NDArray[np.float32] = self._blocks[-1][row]
        return place

    def _new_block(self) -> NDArray[np.float32]:
        # Mapped, not allocated: the system gets the memory back at once when the block is let go.
        shape = (self._per_block, *self.shape)
        return np.frombuffer(mmap.mmap(-1, 4 * math.prod(shape)), dtype=np.float32).reshape(shape)

    def drain(self) -> Iterator[NDArray[np.float32]]:
        """Yield the frames in order; the store is empty afterwards."""
        left, self._count = self._count, 0
        while self._blocks:
            block = self._blocks.pop(0)
            for row in range(min(left, self._per_block)):
                yield block[row]
            left -= self._per_block


def assemble(store: FrameStore, plan: TimePlan) -> NDArray[np.float32]:
    """Build the array (t, y, x) of frames at the plan's uniform times."""
    values = np.empty((len(plan.times), *store.shape), dtype=np.float32)
    frames = store.drain()
    if not plan.resampled:
        for k, frame in enumerate(frames):
            values[k] = frame
        return values
    before, after = next(frames), next(frames)
    right = 1
    for k, time in enumerate(plan.times):
        while time > plan.recorded[right] and right < len(plan.recorded) - 1:
            before, after, right = after, next(frames), right + 1
        share = _share(time, plan.recorded[right - 1], plan.recorded[right])
        values[k] = (1 - share) * before + share * after
    return values


def _share(time: Any, left: Any, right: Any) -> np.float32:
    return np.float32(np.clip((time - left) / (right - left), 0.0, 1.0))
