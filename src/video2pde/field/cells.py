"""Averages over cells and values at points: one from the other, and onto a grid of half the pitch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from video2pde.compiled import njit
from video2pde.field.grid import Grid
from video2pde.parallel import map_threads
from video2pde.room import empty

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

TOGETHER = 16
"""Frames that one thread takes at a time."""
SPLINE = 5
"""Degree of the spline that carries a frame to the finer grid."""


def deconvolve_cells(values: Frames) -> Frames:
    """Turn averages over cells (t, y, x) into values at their centres, to fourth order."""
    points = empty(values.shape, values.dtype)
    map_threads(lambda part: _bend(values[part], values.dtype.type(-1 / 24), points[part]), _parts(len(values)))
    return points


def halve_pitch(grid: Grid) -> Grid:
    """Return the grid of half the pitch: cells in four, nodes between nodes."""
    more = 0 if grid.pitch == "cells" else 1
    return replace(grid, ny=2 * grid.ny - more, nx=2 * grid.nx - more)


def refine_frame(frame: Array, fine: Grid) -> Array:
    """Interpolate a frame at the samples of the grid of half the pitch."""
    cells = fine.pitch == "cells"
    rows, columns = (np.arange(n) / 2 - (0.25 if cells else 0.0) for n in fine.shape)
    places = np.meshgrid(rows, columns, indexing="ij")
    return np.asarray(map_coordinates(frame, places, order=SPLINE, mode="reflect" if cells else "mirror"))


def average_cells(points: NDArray[Any]) -> NDArray[Any]:
    """Average point values (t, y, x) of the finer grid over the cells of the coarser one, to fourth order."""
    count, ny, nx = points.shape
    averages = np.empty((count, ny // 2, nx // 2), points.dtype)

    def average(part: slice) -> None:
        finer = np.empty((1, ny, nx), points.dtype)
        for point, out in zip(points[part], averages[part], strict=True):
            _bend(point[None], points.dtype.type(1 / 24), finer)
            _average_in_fours(finer[0], out)

    map_threads(average, _parts(count))
    return averages


def _parts(count: int) -> list[slice]:
    return [slice(begin, min(begin + TOGETHER, count)) for begin in range(0, count, TOGETHER)]


@njit(nogil=True)
def _bend(frames: Any, share: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Add share · (Δx² u_xx + Δy² u_yy) to frames (t, y, x), whose edges are mirrors, into ``out``."""
    count, ny, nx = frames.shape
    for t in range(count):
        for j in range(ny):
            here, row = frames[t, j], out[t, j]
            above, below = frames[t, max(j - 1, 0)], frames[t, min(j + 1, ny - 1)]
            for i in range(nx):
                row[i] = (above[i] - here[i]) + (below[i] - here[i])
            row[0] += here[min(1, nx - 1)] - here[0]
            row[nx - 1] += here[max(nx - 2, 0)] - here[nx - 1]
            for i in range(1, nx - 1):
                row[i] += (here[i - 1] - here[i]) + (here[i + 1] - here[i])
            for i in range(nx):
                row[i] = here[i] + share * row[i]


@njit(nogil=True)
def _average_in_fours(fine: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Average cells (2y, 2x) over their fours into ``out`` (y, x)."""
    ny, nx = out.shape
    for j in range(ny):
        above, below, row = fine[2 * j], fine[2 * j + 1], out[j]
        for i in range(nx):
            row[i] = (above[2 * i] + above[2 * i + 1] + below[2 * i] + below[2 * i + 1]) / 4
