"""The background of a film: the blocks of cells that show nothing but light, and their brightness over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from video2pde.blocks import means_between

Array = NDArray[np.float64]

BLOCKS = 24  # along the longer side: blocks of cells whose means are followed
LEAST_BACKGROUND = 0.08  # share of the blocks that must show nothing but light
LEAST_LIGHT = 0.25  # brightness of the background, share of the brightest block, below which it shows no light
STILL = 0.004  # relative change of a block beside the common one that is no signal
STILL_NOISE = 5.0  # the same in units of its noise


@dataclass(frozen=True, eq=False)
class Background:
    """What shows nothing but light.

    ``cells`` (y, x): those that do; ``measured`` (t,): their brightness, relative to the usual one; ``noise`` of that,
    and of a ``block``; ``level``: the usual brightness of a block.
    """

    cells: NDArray[np.bool_]
    measured: Array
    noise: float
    block: float
    level: float

    @property
    def inner(self) -> NDArray[np.bool_]:
        """The cells (y, x) a block away from what changes, where no tail of a plume takes light; all, if few are left.

        A tail that is too faint to tell from light still bends a surface that is continued under the plume.
        """
        inner = ~binary_dilation(~self.cells, iterations=_block_size(self.cells.shape))
        return inner if 2 * inner.sum() >= self.cells.sum() else self.cells


def find_background(intensity: NDArray[np.float32], still: float = STILL) -> Background | None:
    """Find the background of frames (t, y, x); None where there is too little of it.

    ``still``: relative change of a block beside the common one that is no signal.
    """
    size = _block_size(intensity.shape[1:])
    starts = [np.arange(0, max(1, n - size // 2), size) for n in intensity.shape[1:]]
    blocks = means_between(intensity, starts)
    seen = _find_still(blocks, still)
    if seen is None:
        return None
    quiet, levels = seen
    measured = blocks[:, quiet].sum(axis=1) / levels[quiet].sum()
    block = noise_of(blocks[:, quiet] / levels[quiet] / measured[:, None])
    rows, columns = (np.diff(np.append(start, n)) for start, n in zip(starts, intensity.shape[1:], strict=True))
    cells = np.repeat(np.repeat(quiet, rows, axis=0), columns, axis=1)
    return Background(cells, measured, float(block / np.sqrt(quiet.sum())), block, float(np.median(levels[quiet])))


def _block_size(shape: tuple[int, ...]) -> int:
    """Return the side of a block, in cells."""
    return max(1, round(max(shape) / BLOCKS))


def _find_still(blocks: Array, most: float) -> tuple[NDArray[np.bool_], Array] | None:
    """Mark the blocks whose brightness follows the common one, and return each block's own level.

    The common course is the median over the blocks at the picture's edge. A block belongs to the background if,
    divided by it, it stays within noise, or ``most``; at least three sides of the picture must have some.
    """
    edge = np.ones(blocks.shape[1:], dtype=bool)
    edge[1:-1, 1:-1] = False
    window = max(3, len(blocks) // 20) | 1
    common = np.median(blocks[:, edge] / np.median(blocks[:, edge], axis=0), axis=1)
    still = edge
    for _ in range(3):
        if np.any(common <= 0):
            return None
        course = blocks / common[:, None, None]
        level = np.median(course, axis=0)
        if np.any(level <= 0):
            level = np.where(level > 0, level, np.inf)
        relative = course / level
        noise = noise_of(relative[:, still]) / np.sqrt(window)
        wander = np.abs(_smooth(relative, window) - 1).max(axis=0)
        still = wander < max(most, STILL_NOISE * noise)
        if not still.any():
            return None
        common = np.median(blocks[:, still] / level[still], axis=1)
    sides = sum(bool(line.any()) for line in (still[0], still[-1], still[:, 0], still[:, -1]))
    lit = np.median(level[still]) > LEAST_LIGHT * np.percentile(blocks, 99)
    if still.mean() < LEAST_BACKGROUND or sides < 3 or not lit:
        return None
    return still, np.where(np.isfinite(level), level, 0.0)


def _smooth(series: Array, window: int) -> Array:
    """Average over ``window`` frames; the ends are shorter."""
    total = np.cumsum(np.concatenate([np.zeros((1, *series.shape[1:])), series]), axis=0)
    low = np.maximum(np.arange(len(series)) - window // 2, 0)
    high = np.minimum(np.arange(len(series)) + window // 2 + 1, len(series))
    return np.asarray((total[high] - total[low]) / (high - low).reshape(-1, *[1] * (series.ndim - 1)))


def noise_of(series: Array) -> float:
    """Return the standard deviation of white noise in time, from the median of second differences."""
    if len(series) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(series, 2, axis=0))) / (0.6745 * np.sqrt(6)))
