"""Where a law holds, and what happens at the edge of that region.

Without a region the law holds in the whole picture. A region with *walls* lets nothing through its edge; a region with
a measured *rim* follows the recording outside it, linearly in time between frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Region:
    """A part of the picture in which a law holds.

    Parameters
    ----------
    inside : bool, shape (y, x).
    rim : shape (t, y, x), what is outside at the times of the rollout; None: walls, which nothing passes.
    """

    inside: NDArray[np.bool_]
    rim: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, window: Field) -> Region | None:
        """Take the region of a recording's window; None where the law holds everywhere."""
        if window.core is None:
            return None
        return cls(window.core, None if window.walls else window.values)

    @property
    def walls(self) -> bool:
        """Whether nothing passes the region's edge."""
        return self.rim is None

    def frames(self, window: slice) -> Region:
        """Take a run of frames."""
        return self if self.rim is None else Region(self.inside, self.rim[window])

    def neighbours(self, offsets: Sequence[tuple[int, int]], margin: int) -> Index:
        """Return where a cell finds its neighbours in a frame padded by ``margin``, (offset, y, x), −1 outside.

        What lies behind a wall is mirrored at it, along rows for neighbours to the side and along columns for those
        above and below, so that what a linear law moves from one cell it gives to another.
        """
        ny, nx = self.inside.shape
        rows, columns = np.meshgrid(np.arange(ny), np.arange(nx), indexing="ij")
        found = np.full((len(offsets), ny, nx), -1)
        at = self.inside
        for n, (dj, di) in enumerate(offsets):
            i = _mirror(self.inside, columns, di)
            j = np.take_along_axis(_mirror(self.inside.T, rows.T, dj).T, i, axis=1) if dj else rows
            found[n][at] = ((j + margin) * (nx + 2 * margin) + i + margin)[at]
        return found


def _mirror(inside: NDArray[np.bool_], position: Index, step: int) -> Index:
    """Go ``step`` cells along the rows, turning back at the ends of each run of cells that are inside."""
    begins = inside & ~np.roll(inside, 1, axis=1)
    begins[:, 0] = inside[:, 0]
    ends = inside & ~np.roll(inside, -1, axis=1)
    ends[:, -1] = inside[:, -1]
    nx = inside.shape[1]
    first = np.maximum.accumulate(np.where(begins, position, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, position, nx - 1)[:, ::-1], axis=1)[:, ::-1]
    length = np.maximum(last - first + 1, 1)
    there = (position + step - first) % (2 * length)
    return np.where(inside, first + np.where(there < length, there, 2 * length - 1 - there), position)
