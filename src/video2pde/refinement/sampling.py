"""Points of the training window: a pool to train on, concentrated where the plume is, and points held out.

Neighbouring frames and pixels are averaged first where the recording has many more of them than the
network can tell apart: noise falls with the square root of their number, and a step sees more of the data.
The pool lives on the device, so that a training step picks its points without the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.flow import Flow

HELD_OUT_SHARE = 0.05
HELD_OUT_POINTS = 4096
POOL_POINTS = 1 << 20
"""Points on the device at most; a short recording's points come eight times on average."""
ENOUGH_FRAMES = 100
"""Frames that are left at least when neighbours in time are averaged."""
ENOUGH_CELLS = 100
"""Cells along the longer side that are left at least when neighbours in space are averaged."""
MOST_ALIKE = 1e-6
"""Spread of u up to which a field counts as constant."""
Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Points:
    """Hold space-time points: ``inputs`` (N, 3) = x, y, t normalised; ``values`` (N,); ``velocity`` (N, 2).

    The velocity is what carries u past the coordinates: all of it, or the flow alone where they follow the drift.
    """

    inputs: Array
    values: Array
    velocity: Array

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Samples:
    """Hold the pool, the held-out points and what maps them to the recording's units.

    Parameters
    ----------
    length, duration : size of one normalised unit of x and y, and of t.
    spread : standard deviation of u over the pool.
    low, high : range of the field's values over the window.
    cell : (Δx, Δy) of the cells that the values are averages of.
    """

    pool: Points
    held_out: Points
    length: float
    duration: float
    spread: float
    low: float
    high: float
    cell: tuple[float, float]


def draw_samples(
    field: Field,
    velocity: NDArray[np.float64],
    frame: Literal["moving", "fixed"],
    seed: int,
    concentration: float = 0.75,
    flow: Flow | None = None,
) -> Samples:
    """Draw points inside the field's mask: a share by |u − median|, the others evenly.

    Parameters
    ----------
    field : the training window.
    velocity : v(t), shape (t, 2), length per second, at the frames' times.
    frame : ``moving`` takes x − ∫v dt as coordinates, ``fixed`` takes x.
    seed : of the pool and of the choice of held-out points.
    concentration : share of the points drawn by the plume's strength.
    flow : velocity that varies in space, beside ``velocity``.
    """
    check_window(field, velocity)
    rng = np.random.default_rng(seed)
    shape = field.values.shape
    held = hold_out(rng, shape)
    inside = np.ones(field.grid.shape, bool) if field.mask is None else field.mask
    weight = plume_weight(field, inside)
    trained = ~held & inside
    pool = _draw(rng, weight, trained, min(POOL_POINTS, 8 * int(trained.sum())), concentration)
    held_out = _draw(rng, weight, held & inside, HELD_OUT_POINTS, concentration)
    moved = velocity if frame == "moving" else np.zeros_like(velocity)
    shift = cumulative_trapezoid(moved, dx=field.dt, axis=0, initial=0.0)
    length = 0.5 * max(np.ptp(field.grid.x) + np.ptp(shift[:, 0]), np.ptp(field.grid.y) + np.ptp(shift[:, 1]))
    duration = 0.5 * field.duration
    place = _Place(
        field, np.zeros_like(velocity) if frame == "moving" else velocity, shift, float(length), duration, flow
    )
    points = place.points(pool)
    values = field.values[:, inside]
    spread = float(points.values.std(dtype=np.float64))
    if spread < MOST_ALIKE:
        raise InputError(f"the field is constant (spread {spread:.2g}); nothing spreads that could be refined")
    low, high = float(values.min()), float(values.max())
    return Samples(
        pool=points,
        held_out=place.points(held_out),
        length=float(length),
        duration=duration,
        spread=spread,
        low=low,
        high=high,
        cell=(field.grid.dx, field.grid.dy),
    )


def average_neighbours(field: Field, velocity: NDArray[np.float64]) -> tuple[Field, NDArray[np.float64]]:
    """Average blocks of frames and of pixels down to about ENOUGH_FRAMES and ENOUGH_CELLS.

    A block of frames is short enough that the drift moves the plume by half a cell at most; a block of
    pixels belongs to the mask only as a whole. Frames and pixels that fill no whole block are left out.
    """
    grid = field.grid
    cells = max(1, max(grid.shape) // ENOUGH_CELLS)
    cells = min(cells, *grid.shape) if grid.pitch == "cells" else 1
    speed = float(np.abs(velocity).max(initial=0.0))
    frames = max(1, len(field) // ENOUGH_FRAMES)
    while frames > 1 and speed * frames * field.dt > 0.5 * cells * grid.dx:
        frames -= 1
    if frames == cells == 1:
        return field, velocity
    nt, ny, nx = len(field) // frames, grid.ny // cells, grid.nx // cells
    whole = field.values[: nt * frames, : ny * cells, : nx * cells]
    values = whole.reshape(nt, frames, ny, cells, nx, cells).mean(axis=(1, 3, 5), dtype=np.float64)
    mask = field.mask
    if mask is not None:
        mask = np.asarray(mask[: ny * cells, : nx * cells].reshape(ny, cells, nx, cells).all(axis=(1, 3)))
    coarse = Grid(ny, nx, ny * cells * grid.dy, nx * cells * grid.dx, grid.unit) if cells > 1 else grid
    times = field.times[: nt * frames].reshape(nt, frames).mean(axis=1)
    averaged = Field(values.astype(np.float32), times, coarse, mask)
    return averaged, velocity[: nt * frames].reshape(nt, frames, 2).mean(axis=1)


def check_window(field: Field, velocity: NDArray[np.float64]) -> None:
    """Refuse what no network can be trained on."""
    if len(field) < 3:
        raise InputError(f"{len(field)} frames cannot show a rate of change; the refinement needs at least 3")
    if not (np.isfinite(velocity).all() and np.isfinite(field.values).all()):
        raise InputError("the field or the velocity holds values that are not finite; repair the recording first")


def hold_out(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Choose the pixels that are never trained on."""
    chosen: NDArray[np.bool_] = rng.random(shape, dtype=np.float32) < HELD_OUT_SHARE
    return chosen


def plume_weight(field: Field, inside: NDArray[np.bool_]) -> Array:
    """Return how much of the plume a pixel shows: |u − median|, with the median inside the mask."""
    strength = np.abs(field.values - np.median(field.values[:, inside]))
    return np.asarray(strength, dtype=np.float32)


def _draw(
    rng: np.random.Generator, weight: Array, allowed: NDArray[np.bool_], count: int, concentration: float
) -> NDArray[np.int64]:
    """Draw flat indices, ``concentration`` of them by ``weight``, the others evenly."""
    places = np.flatnonzero(allowed)
    if not len(places):
        raise InputError("the mask leaves no points to train on or to hold out; widen it or give more frames")
    by_weight = round(concentration * count)
    cumulative = np.cumsum(weight.reshape(-1)[places], dtype=np.float64)
    chosen = np.searchsorted(cumulative, rng.random(by_weight) * cumulative[-1])
    parts = [places[np.minimum(chosen, len(places) - 1)], rng.choice(places, count - by_weight)]
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Place:
    """Turn flat indices of the field into normalised points."""

    field: Field
    velocity: NDArray[np.float64]
    shift: NDArray[np.float64]
    length: float
    duration: float
    flow: Flow | None = None

    def points(self, flat: NDArray[np.int64]) -> Points:
        grid, times = self.field.grid, self.field.times
        k, j, i = np.unravel_index(flat, self.field.values.shape)
        x = self._centred(grid.x[i] - self.shift[k, 0], grid.x, self.shift[:, 0])
        y = self._centred(grid.y[j] - self.shift[k, 1], grid.y, self.shift[:, 1])
        t = (times[k] - times[0]) / self.duration - 1.0
        return Points(
            np.stack([x, y, t], axis=1).astype(np.float32),
            self.field.values.reshape(-1)[flat],
            self._velocity(k, j, i).astype(np.float32),
        )

    def _velocity(self, k: NDArray[np.int64], j: NDArray[np.int64], i: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return v_x and v_y at samples (frame, row, column): (N, 2)."""
        values = np.array(self.velocity[k])
        if self.flow is not None:
            fields = self.flow.fields(self.field.grid)
            for factor, field in zip(self.flow.weights(self.field.times).T, fields, strict=True):
                values += factor[k, None] * field[:, j, i].T
        return values

    def _centred(
        self, position: NDArray[np.float64], axis: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        middle = 0.5 * (axis.max() - shift.min() + axis.min() - shift.max())
        centred: NDArray[np.float64] = (position - middle) / self.length
        return centred
