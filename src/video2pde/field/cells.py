"""Averages over cells and values at points: one from the other, and onto a grid of half the pitch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from video2pde.field.grid import Grid
from video2pde.room import empty

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

SPLINE = 5
"""Degree of the spline that carries a frame to the finer grid."""


def deconvolve_cells(values: Frames) -> Frames:
    """Turn averages over cells into values at their centres, to fourth order."""
    points = empty(values.shape, values.dtype)
    for frame, out in zip(values, points, strict=True):
        padded = np.pad(frame, 1, mode="symmetric")
        neighbours = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        out[:] = frame - (neighbours - 4 * frame) / 24
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


def average_cells(points: Array) -> Array:
    """Average point values of the finer grid over the cells of the coarser one, to fourth order."""
    padded = np.pad(points, ((0, 0), (1, 1), (1, 1)), mode="symmetric")
    neighbours = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    averages = points + (neighbours - 4 * points) / 24
    count, ny, nx = averages.shape
    return np.asarray(averages.reshape(count, ny // 2, 2, nx // 2, 2).mean(axis=(2, 4)))
