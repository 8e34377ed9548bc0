"""How far a prediction is from the recording: pixels, centroid, fronts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.blocks import block_means
from video2pde.compiled import njit
from video2pde.errors import InputError
from video2pde.field import Grid

Array = NDArray[np.float64]

FRAMES_AT_ONCE = 32
"""Frames that are compared at a time: they bound the memory."""


@dataclass(frozen=True, eq=False)
class Metrics:
    """Compare a prediction with the observed frames of a window; lengths in the grid's unit.

    Parameters
    ----------
    rrmse : relative root-mean-square error over the window, (Σ(U_pred − U)² / ΣU²)^½.
    mse : shape (t,), mean squared error of each frame.
    rrmse_over_time : shape (t,), relative error of each frame.
    centroid_error : shape (t,), distance between the centroids.
    levels : the γ of the fronts.
    radii_observed, radii_predicted : shape (t, level), equivalent radius √(|{u ≥ γ}|/π).
    coarse : shape (t,), mean squared error of each frame's averages over blocks of the picture, in which neither camera
        noise nor a fine pattern that stands still counts for much.
    """

    rrmse: float
    mse: Array
    rrmse_over_time: Array
    centroid_error: Array
    levels: tuple[float, ...]
    radii_observed: Array
    radii_predicted: Array
    coarse: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def has_front(self) -> bool:
        """Tell whether any level is crossed: some frame lies above it in part."""
        return bool((np.ptp(self.radii_observed, axis=0) > 0).any())

    @property
    def front_error(self) -> Array:
        """Predicted minus observed front radius, shape (t, level)."""
        return self.radii_predicted - self.radii_observed

    @property
    def front_mae(self) -> float:
        return float(np.abs(self.front_error).mean())

    @property
    def front_rmse(self) -> float:
        return root_mean_square(self.front_error)

    @property
    def front_mae_by_level(self) -> tuple[float, ...]:
        return tuple(float(np.abs(e).mean()) for e in self.front_error.T)

    @property
    def front_rmse_by_level(self) -> tuple[float, ...]:
        return tuple(root_mean_square(e) for e in self.front_error.T)

    @property
    def centroid_mae(self) -> float:
        return float(self.centroid_error.mean())

    @property
    def centroid_rmse(self) -> float:
        return root_mean_square(self.centroid_error)


def root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True, eq=False)
class Reference:
    """Hold the observed frames of a window and what every comparison needs of them."""

    observed: NDArray[Any]
    grid: Grid
    levels: tuple[float, ...]
    inside: NDArray[np.bool_]
    background: Array
    centroids: Array
    radii: Array
    blocks: Array

    @classmethod
    def of(
        cls,
        observed: NDArray[Any],
        grid: Grid,
        levels: Sequence[float],
        mask: NDArray[np.bool_] | None = None,
        background: NDArray[Any] | float | None = None,
    ) -> Reference:
        """Take the observed frames; the parameters are those of :func:`measure`."""
        if observed.ndim != 3 or observed.shape[1:] != grid.shape:
            raise InputError(f"observed frames of shape {observed.shape} do not fit the grid {grid.shape}")
        inside = np.ones(grid.shape, bool) if mask is None else np.ascontiguousarray(mask)
        base = np.broadcast_to(np.asarray(0.0 if background is None else background, float), len(observed)).copy()
        centroids = centroid(observed, grid, base, inside)
        radii = front_radii(observed, grid, levels, inside, base)
        return cls(
            observed=observed,
            grid=grid,
            levels=tuple(levels),
            inside=inside,
            background=base,
            centroids=centroids,
            radii=radii,
            blocks=block_means(observed, inside),
        )

    def measure(self, predicted: NDArray[Any]) -> Metrics:
        """Compare predicted frames with the observed ones."""
        if predicted.shape != self.observed.shape:
            raise InputError(f"predicted {predicted.shape} and observed {self.observed.shape} frames do not match")
        comparison = Comparison(self)
        comparison.add(0, predicted)
        return comparison.metrics


class Comparison:
    """Compare predicted frames with the observed ones as they come."""

    def __init__(self, reference: Reference) -> None:
        frames = len(reference.observed)
        self._reference = reference
        self._error, self._scale = np.full(frames, np.inf), np.zeros(frames)
        self._radii = np.full(reference.radii.shape, np.inf)
        self._distance, self._coarse = np.full(frames, np.inf), np.full(frames, np.inf)

    def add(self, first: int, predicted: NDArray[Any]) -> None:
        """Take predicted frames (t, y, x), which begin at frame ``first``; frames with a NaN were not reached."""
        for begin in range(0, len(predicted), FRAMES_AT_ONCE):
            part = predicted[begin : begin + FRAMES_AT_ONCE]
            self._add(slice(first + begin, first + begin + len(part)), np.ascontiguousarray(part))

    def _add(self, place: slice, predicted: NDArray[Any]) -> None:
        r = self._reference
        sums = _squares(predicted, r.observed[place], r.inside)
        self._scale[place] = sums[:, 1]
        reached = np.isfinite(sums[:, 0])
        if not reached.any():
            return
        at = np.arange(place.start, place.stop)[reached]
        frames, base = predicted if reached.all() else predicted[reached], r.background[at]
        self._error[at] = sums[reached, 0]
        self._radii[at] = front_radii(frames, r.grid, r.levels, r.inside, base)
        apart = centroid(frames, r.grid, base, r.inside) - r.centroids[at]
        self._distance[at] = np.hypot(apart[:, 0], apart[:, 1])
        self._coarse[at] = np.mean((block_means(frames, r.inside) - r.blocks[at]) ** 2, axis=1)

    @property
    def metrics(self) -> Metrics:
        """What all frames together show; those that never came count as infinitely wrong."""
        r, error, scale = self._reference, self._error, np.maximum(self._scale, 1e-300)
        return Metrics(
            rrmse=float(np.sqrt(error.sum() / scale.sum())),
            mse=error / r.inside.sum(),
            rrmse_over_time=np.sqrt(error / scale),
            centroid_error=self._distance,
            levels=r.levels,
            radii_observed=r.radii,
            radii_predicted=self._radii,
            coarse=self._coarse,
        )


def measure(
    predicted: NDArray[Any],
    observed: NDArray[Any],
    grid: Grid,
    levels: Sequence[float],
    mask: NDArray[np.bool_] | None = None,
    background: NDArray[Any] | float | None = None,
) -> Metrics:
    """Compare a predicted window with the observed one.

    Parameters
    ----------
    predicted, observed : shape (t, y, x). A frame that was not reached (NaN) scores as infinitely wrong.
    levels : front levels γ.
    mask : shape (y, x); everything is restricted to where it is True. None: the whole picture.
    background : shape (t,) or a number, what u is without a plume. Centroids are those of u − background, and
        fronts lie γ above it. None: 0, the raw field.
    """
    return Reference.of(observed, grid, levels, mask, background).measure(predicted)


def centroid(
    frames: NDArray[Any], grid: Grid, background: NDArray[Any], inside: NDArray[np.bool_] | None = None
) -> Array:
    """Return the centroid (x, y) of u − background in each frame, shape (t, 2).

    A frame without content above its background has no centroid; the middle of the mask stands for it.
    """
    where = np.ones(grid.shape, bool) if inside is None else np.ascontiguousarray(inside)
    centre = np.array([where.sum(0) @ grid.x, where.sum(1) @ grid.y]) / where.sum()
    level = np.asarray(background, float)
    sums = _moments(np.ascontiguousarray(frames), level, where, grid.x - centre[0], grid.y - centre[1])
    mass = sums[:, :1]
    empty = np.abs(mass) <= 1e-9 * where.sum()
    return np.asarray(centre + np.where(empty, 0.0, sums[:, 1:] / np.where(empty, 1.0, mass)))


def front_radii(
    frames: NDArray[Any],
    grid: Grid,
    levels: Sequence[float],
    inside: NDArray[np.bool_] | None = None,
    background: NDArray[Any] | None = None,
) -> Array:
    """Return the equivalent radius r_γ = √(|{u − background ≥ γ}|/π) of each frame and level, shape (t, level).

    A pixel that the front crosses counts in part, as much as lies above γ if u is linear across it, so that
    the radius moves smoothly and not by whole pixels.
    """
    where = np.ones(grid.shape, bool) if inside is None else np.ascontiguousarray(inside)
    base = np.zeros(len(frames)) if background is None else np.asarray(background, float)
    order = np.argsort(levels)
    areas = np.empty((len(frames), len(order)))
    ordered = base[:, None] + np.asarray(levels, float)[order]
    areas[:, order] = _areas_above(np.ascontiguousarray(frames), ordered, where)
    radii: Array = np.sqrt(areas * grid.dx * grid.dy / np.pi)
    return radii


@njit(nogil=True)
def _squares(predicted: Any, observed: Any, inside: Any) -> Any:
    """Sum (predicted − observed)² and observed² over the mask, frame by frame, in double precision."""
    t, ny, nx = observed.shape
    sums = np.zeros((t, 2))
    # one sum for each column: a processor takes several of them at a time
    errors, scales = np.empty(nx), np.empty(nx)
    for k in range(t):
        errors[:], scales[:] = 0.0, 0.0
        for j in range(ny):
            found, seen, here = predicted[k, j], observed[k, j], inside[j]
            for i in range(nx):
                truth = float(seen[i]) if here[i] else 0.0
                difference = float(found[i]) - truth if here[i] else 0.0
                errors[i] += difference * difference
                scales[i] += truth * truth
        sums[k, 0], sums[k, 1] = errors.sum(), scales.sum()
    return sums


@njit(nogil=True)
def _moments(frames: Any, background: Any, inside: Any, x: Any, y: Any) -> Any:
    """Sum (u − background)·(1, x, y) over the mask, frame by frame, (t, 3)."""
    t, ny, nx = frames.shape
    sums = np.zeros((t, 3))
    for k in range(t):
        for j in range(ny):
            row, across = 0.0, 0.0
            for i in range(nx):
                if inside[j, i]:
                    content = float(frames[k, j, i]) - background[k]
                    row += content
                    across += content * x[i]
            sums[k, 0] += row
            sums[k, 1] += across
            sums[k, 2] += row * y[j]
    return sums


@njit(nogil=True)
def _areas_above(frames: Any, levels: Any, inside: Any) -> Any:
    """Count pixels above each level, which increase; a crossed one by its linear share."""
    t, ny, nx = frames.shape
    count = levels.shape[1]
    areas = np.zeros(levels.shape)
    # pixels that lie above so many levels, and no more
    above = np.empty(count + 1)
    for k in range(t):
        above[:] = 0.0
        for j in range(ny):
            up, down = max(j - 1, 0), min(j + 1, ny - 1)
            steep = 1.0 / max(down - up, 1)
            for i in range(nx):
                if not inside[j, i]:
                    continue
                left, right = max(i - 1, 0), min(i + 1, nx - 1)
                u = float(frames[k, j, i])
                slope_x = (float(frames[k, j, right]) - float(frames[k, j, left])) * (0.5 if right - left == 2 else 1.0)
                slope_y = (float(frames[k, down, i]) - float(frames[k, up, i])) * steep
                # the square of how much u varies over the pixel: a plane's spread over a unit square
                spread = slope_x * slope_x + slope_y * slope_y
                m = 0
                while m < count and u >= levels[k, m] and 4.0 * (u - levels[k, m]) ** 2 >= spread:
                    m += 1
                above[m] += 1.0
                while m < count and 4.0 * (u - levels[k, m]) ** 2 < spread:
                    areas[k, m] += 0.5 + (u - levels[k, m]) / math.sqrt(spread)
                    m += 1
        whole = 0.0
        for m in range(count - 1, -1, -1):
            whole += above[m + 1]
            areas[k, m] += whole
    return areas
