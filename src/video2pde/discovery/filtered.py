"""Filtered frames of a film: kept as a whole where that takes little memory, else made in parts, when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from video2pde.parallel import count_workers, parallel_map
from video2pde.progress import Progress
from video2pde.room import empty, memory_limit

Array32 = NDArray[np.float32]

FRAMES_AT_ONCE = 24
"""Frames in work at the same time, over all threads: they bound the memory beyond what is kept."""
MOST_THREADS = 6
KEPT = 4.75
"""Bytes of filtered frames that are kept for each byte of the training window: with the recording itself, of which the
window is three fifths as a rule, less than four times the recording."""
LEAST_KEPT = 1 << 26
"""Bytes that are always kept."""
SHARE = 0.5
"""Share of the run's memory that they may take."""


def most_kept(window: int) -> int:
    """Return the bytes up to which filtered frames are kept as a whole, for a training window of so many bytes."""
    return min(max(LEAST_KEPT, round(KEPT * window)), round(SHARE * memory_limit()))


class Filtered:
    """The filtered frames (slot, y, x, t) of a film.

    Parameters
    ----------
    shape : slots, rows, columns, frames.
    assemble : filters a run of frames for a run of slots: (window, slots) to (slot, y, x, t).
    most : bytes that may be held at a time. Where all of them take more, they are made in parts, each time anew; a
        part holds what the whole would, bit for bit.
    progress : told how many frames of how many are filtered.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        assemble: Callable[[slice, slice], Array32],
        most: int,
        progress: Progress | None = None,
    ) -> None:
        self.shape, self._assemble, self._most, self._progress = shape, assemble, most, progress
        whole = (slice(0, shape[0]), slice(0, shape[1]))
        self.values = self._make(*whole) if 4 * np.prod(shape, dtype=float) <= most else None

    def parts(self) -> Iterator[tuple[slice, slice, Array32]]:
        """Yield slots, rows, and the filtered frames that they hold."""
        slots, rows, columns, frames = self.shape
        if self.values is not None:
            yield slice(0, slots), slice(0, rows), self.values
            return
        row = 4 * columns * frames
        together = max(1, self._most // (row * rows))
        high = rows if together > 1 else max(1, min(rows, self._most // row))
        for first in range(0, slots, together):
            for top in range(0, rows, high):
                part = slice(first, min(first + together, slots)), slice(top, min(top + high, rows))
                yield *part, self._make(*part)

    def at(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Array32:
        """Return the filtered frames at places, (slot, places, t)."""
        found = np.empty((self.shape[0], len(rows), self.shape[3]), np.float32)
        for slots, band, values in self.parts():
            here = np.flatnonzero((rows >= band.start) & (rows < band.stop))
            found[slots, here] = values[:, rows[here] - band.start, columns[here]]
        return found

    def _make(self, slots: slice, rows: slice) -> Array32:
        _, _, columns, frames = self.shape
        values = empty((slots.stop - slots.start, rows.stop - rows.start, columns, frames), np.float32)

        def work(window: slice) -> None:
            values[..., window] = self._assemble(window, slots)[:, rows]

        over_chunks(work, frames, self._progress)
        return values


def over_chunks(work: Callable[[slice], None], frames: int, progress: Progress | None = None) -> None:
    """Run ``work`` on chunks of frames over the cores; each thread computes alone, BLAS included."""
    threads = min(count_workers("auto"), MOST_THREADS)
    size = FRAMES_AT_ONCE // max(threads, 2)
    chunks = [slice(start, min(start + size, frames)) for start in range(0, frames, size)]

    def report(done: int, _: int | None) -> None:
        if progress is not None:
            progress(min(done * size, frames), frames)

    # BLAS threads of several calls at once wait for each other: one thread per chunk is several times faster
    with threadpool_limits(1):
        parallel_map(work, chunks, threads, report, kind="threads")
