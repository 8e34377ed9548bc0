"""Where a motion carries the picture: the way of every pixel, and how far it is seen what enters from outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.ndimage import map_coordinates

from video2pde.field import Grid
from video2pde.flow.flow import Flow

Array = NDArray[np.float64]

MOST_TAKEN = 0.5
"""Share of the picture up to which places are left out because what was outside has come there."""


def ways(flow: Flow | None, drift: Array, times: Array, grid: Grid) -> Iterator[Array]:
    """Yield, time by time, how far flow and uniform drift (t, 2) have carried every pixel since the first time.

    (2, y, x), in pixels along x and y; (2, 1, 1) where there is no flow that varies in space.
    """
    pixel = np.array([grid.dx, grid.dy])
    carried = (cumulative_trapezoid(drift, times, axis=0, initial=0.0) / pixel)[:, :, None, None]
    if flow is None:
        yield from carried
        return
    rows, columns = np.indices(grid.shape, dtype=float)
    way, speeds = np.zeros((2, *grid.shape)), (_speed(flow, time, grid) for time in times)
    speed = next(speeds)
    yield way
    for step, uniform in zip(np.diff(times), np.diff(carried, axis=0), strict=True):
        now = _read(speed, rows + way[1], columns + way[0])
        ahead, speed = way + uniform + step * now, next(speeds)
        then = _read(speed, rows + ahead[1], columns + ahead[0])
        way = way + uniform + 0.5 * step * (now + then)
        yield way


def take_ways(stream: Iterator[Array], count: int) -> Array:
    """Take the next ``count`` times of :func:`ways`, (t, 2, y, x)."""
    return np.stack(list(islice(stream, count)))


def never_entered(flow: Flow, drift: Array, times: Array, grid: Grid) -> NDArray[np.bool_]:
    """Mark where nothing comes that was outside the picture at the first time, (y, x).

    Nobody knows what enters; and where a law grows, noise at the edge grows with it on its way in. All places are
    marked where more than ``MOST_TAKEN`` of them would not be.
    """
    rows, columns = np.indices(grid.shape, dtype=float)
    ny, nx = grid.shape
    origin = np.stack([columns, rows])  # where what is here now was at the first time
    kept = np.ones(grid.shape, bool)
    pixel = np.array([grid.dx, grid.dy])[:, None, None]
    middle, uniform = 0.5 * (times[1:] + times[:-1]), 0.5 * (drift[1:] + drift[:-1])
    for time, step, moved in zip(middle, np.diff(times), uniform, strict=True):
        speed = _speed(flow, float(time), grid) + moved[:, None, None] / pixel
        half = _read(speed, rows - 0.5 * step * speed[1], columns - 0.5 * step * speed[0])
        x, y = columns - step * half[0], rows - step * half[1]
        # beyond the edge, the pixels are taken to have come as those at the edge have
        beyond = np.stack([x - np.clip(x, 0, nx - 1), y - np.clip(y, 0, ny - 1)])
        origin = _read(origin, y, x) + beyond
        x, y = origin
        kept &= (x >= -0.5) & (x <= nx - 0.5) & (y >= -0.5) & (y <= ny - 0.5)
    return kept if kept.mean() >= 1 - MOST_TAKEN else np.ones(grid.shape, bool)


def _speed(flow: Flow, time: float, grid: Grid) -> Array:
    """Return the flow's velocity at a time, (2, y, x) in pixels per unit of time along x and y."""
    return np.asarray(flow.velocity(np.array([time]), grid)[0] / np.array([grid.dx, grid.dy])[:, None, None])


def _read(pictures: Array, rows: Array, columns: Array) -> Array:
    """Read pictures (n, y, x) between their pixels; beyond the edge as at the edge."""
    return np.stack([map_coordinates(picture, [rows, columns], order=1, mode="nearest") for picture in pictures])
