"""Frame times as they were recorded, and the store that frames are collected in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import is_uniform
from video2pde.room import empty
from video2pde.units import require_range

CHUNK_BYTES = 16 << 20
PAUSE = 20
"""Intervals, in units of the usual one, from which a gap between two frames is a pause."""


@dataclass(frozen=True)
class TimePlan:
    """Say when the frames are: ``times`` as they are used, ``recorded`` as the container has them, s."""

    times: NDArray[np.float64]
    recorded: NDArray[np.float64]
    note: str = ""
    warning: str = ""


def plan_times(recorded: NDArray[np.float64], tick: float) -> TimePlan:
    """Take the times of frames recorded at ``recorded`` (s), known to within ``tick`` (s).

    Times within one tick of a straight line are a constant rate, written with rounding: the line is used. Others
    are kept as they are: every frame is what the camera saw at its time, and nothing is put between frames.
    """
    if len(recorded) < 2:
        return TimePlan(recorded, recorded)
    steps = np.diff(recorded)
    if steps.min() <= 0:
        at = int(np.argmin(steps)) + 1
        raise InputError(
            f"the time of frame {at} of those selected ({recorded[at]:g} s) is not later than the one before it "
            f"({recorded[at - 1]:g} s); give the frame rate (recording.fps) to override the recorded times"
        )
    require_range(float(np.median(steps)), "the time between frames", "s")
    index = np.arange(len(recorded), dtype=np.float64)
    slope, offset = np.polyfit(index, recorded, 1)
    line = offset + slope * index
    if is_uniform(recorded):
        even = np.linspace(recorded[0], recorded[-1], len(recorded))
        return TimePlan(even, recorded)
    if np.abs(recorded - line).max() <= tick:
        note = f"constant frame rate of {1 / slope:.6g}/s, its times rounded by the container to {tick:.3g} s"
        return TimePlan(line, recorded, note=note)
    note = f"uneven times: intervals from {steps.min():.4g} to {steps.max():.4g} s, kept as they are"
    longest, usual = int(np.argmax(steps)), float(np.median(steps))
    pause = ""
    if steps[longest] > PAUSE * usual:
        pause = (
            f"a pause of {steps[longest]:.4g} s after frame {longest} of those selected, {steps[longest] / usual:.0f} "
            "times the usual interval: what happened in it was not seen; cut the film there (--start, --stop)"
        )
    return TimePlan(recorded, recorded, note, pause)


class FrameStore:
    """Collect frames of one shape without knowing their number, and hand them back once, freeing memory.

    Frames lie in blocks of about 16 MB, in memory as far as there is room. ``drain`` lets go of each block when it has
    been read, so that building the final array needs one block more than the array itself.
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
            self._blocks.append(empty((self._per_block, *self.shape), np.float32))
        self._count += 1
        place: NDArray[np.float32] = self._blocks[-1][row]
        return place

    def drain(self) -> Iterator[NDArray[np.float32]]:
        """Yield the frames in order; the store is empty afterwards."""
        left, self._count = self._count, 0
        while self._blocks:
            block = self._blocks.pop(0)
            for row in range(min(left, self._per_block)):
                yield block[row]
            left -= self._per_block


def assemble(store: FrameStore) -> NDArray[np.float32]:
    """Build the array (t, y, x) of all frames; the store is empty afterwards."""
    values = empty((len(store), *store.shape), np.float32)
    for k, frame in enumerate(store.drain()):
        values[k] = frame
    return values
