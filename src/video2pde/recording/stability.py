"""Does the scene hold still? Flicker, camera shake, repeated frames, a plume that reaches the border."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FLICKER_WINDOW = 9  # frames: what varies faster counts as flicker
RING = 2  # cells
CONTACT_LEVEL = 0.15  # of the signal
STANDING_LEVEL = 0.5  # of the signal
CONTACT_SHARE = 0.02  # of the edge cells
CONTACT_NOISE = 6.0  # standard deviations of an edge cell that are no contact yet
CONTACT_RUNS = 64  # runs of frames that are averaged before the edge is looked at
NORMAL_QUARTILE = 0.6745  # median of |z| of a normal z
SIDES = ("top", "bottom", "left", "right")


@dataclass(frozen=True, eq=False)
class Flicker:
    """Measure how the background level jumps from frame to frame.

    ``level``: background of u in each frame. ``rms``: of its fast part. ``share``: rms over the signal's range.
    """

    level: NDArray[np.float64]
    rms: float
    share: float


@dataclass(frozen=True)
class Shake:
    """Measure the jitter of the whole picture between frames, in grid cells, and its standard error."""

    rms: float
    uncertainty: float


@dataclass(frozen=True)
class Repeats:
    """Count frames that equal the one before them exactly."""

    count: int
    longest: int
    first: int | None


@dataclass(frozen=True)
class BorderContact:
    """Tell where the signal reaches the field's edge.

    ``share``: of the edge cells in the worst frame. ``since``: time of the first contact, s, or None.
    """

    share: float
    since: float | None
    sides: tuple[str, ...]


class RepeatCounter:
    """Count repeated frames as they stream by."""

    def __init__(self) -> None:
        self._previous: NDArray[np.float32] | None = None
        self._count = self._run = self._longest = 0
        self._first: int | None = None

    def offer(self, index: int, frame: NDArray[np.float32]) -> None:
        """Compare a frame with the one before it."""
        if self._previous is not None and np.array_equal(self._previous, frame):
            self._count += 1
            self._run += 1
            self._longest = max(self._longest, self._run)
            self._first = index if self._first is None else self._first
        else:
            self._run = 0
        self._previous = frame

    def result(self) -> Repeats:
        return Repeats(self._count, self._longest, self._first)


def measure_flicker(values: NDArray[np.float32]) -> Flicker:
    """Follow the background, the lower quartile of the outer ring of cells, and take out its slow part."""
    ring = _ring(values)
    level = np.percentile(ring, 25, axis=1).astype(np.float64)
    window = min(FLICKER_WINDOW, len(level) - (len(level) + 1) % 2)
    half = window // 2
    padded = np.pad(level, half, mode="reflect", reflect_type="odd") if half else level
    slow = np.convolve(padded, np.full(window, 1 / window), mode="valid")
    rms = float(np.sqrt(((level - slow) ** 2).mean()))
    sample = values[:: max(1, len(values) // 16)]
    low, high = np.percentile(sample, (1, 99))
    return Flicker(level, rms, rms / float(high - low) if high > low else 0.0)


def measure_contact(values: NDArray[np.float32], times: NDArray[np.float64]) -> BorderContact:
    """Look for edge cells that the signal reaches.

    Heights are taken above the background of their own time, the edge's lower quartile: a background that decays, grows
    or flickers as a whole is no contact. An edge cell is reached where its height rises above its least one by
    ``CONTACT_LEVEL`` of the signal, and by more than noise, or is ``STANDING_LEVEL`` of it throughout: uneven light is
    neither.
    """
    ring = _ring(values)
    starts = np.unique(np.linspace(0, len(values), min(CONTACT_RUNS, len(values)) + 1).round().astype(int))
    means = np.add.reduceat(ring, starts[:-1], axis=0, dtype=np.float64) / np.diff(starts)[:, None]
    background = np.percentile(means, 25, axis=1)
    height = means - background[:, None]
    signal = max(
        float(np.percentile(values[starts[k]], 99.5)) - background[k]
        for k in range(0, len(height), len(height) // 8 + 1)
    )
    if signal <= 0:
        return BorderContact(0.0, None, ())
    # a median over all steps in time: what arrives at the edge changes few of them
    noise = float(np.median(np.abs(np.diff(height, axis=0)))) / (np.sqrt(2) * NORMAL_QUARTILE) if len(height) > 1 else 0
    lowest = height.min(axis=0)
    rise = max(CONTACT_LEVEL * signal, CONTACT_NOISE * noise)
    reached = (height - lowest > rise) | (lowest > STANDING_LEVEL * signal)
    shares = reached.mean(axis=1)
    touching = np.nonzero(shares > CONTACT_SHARE)[0]
    if not len(touching):
        return BorderContact(float(shares.max()), None, ())
    side = _ring_sides(values.shape[1], values.shape[2])
    worst = reached[int(np.argmax(shares))]
    sides = tuple(name for k, name in enumerate(SIDES) if worst[side == k].mean() > CONTACT_SHARE)
    return BorderContact(float(shares.max()), float(times[starts[touching[0]]]), sides)


def _ring_sides(rows: int, columns: int) -> NDArray[np.intp]:
    """Name the side of each cell of the ring, as an index into ``SIDES``."""
    lengths = (RING * columns, RING * columns, RING * (rows - 2 * RING), RING * (rows - 2 * RING))
    return np.repeat(np.arange(len(SIDES)), lengths)


def _ring(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gather the outer cells of each frame, shape (t, cells)."""
    count = len(values)
    # in the order of SIDES
    parts = (values[:, :RING], values[:, -RING:], values[:, RING:-RING, :RING], values[:, RING:-RING, -RING:])
    return np.concatenate([part.reshape(count, -1) for part in parts], axis=1)
