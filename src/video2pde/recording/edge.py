"""Return a plume the faint edge that 8 bits round away.

On a film without noise an empty background reads 0, and so does everything below half a level. What is missing is next
to nothing, but it lies ahead of the front: a law that grows makes it large, and takes its absence for diffusion. (Noise
keeps the mean right: it carries part of the pixels over the threshold.) The levels above tell how the picture falls
off. The logarithm of u is continued outwards as a parabola through three contours of one plume, exact for a Gaussian,
and stays within the half level that the film allows. Plumes too faint for all three contours are left alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, label, maximum, maximum_filter

Frame = NDArray[np.float32]
Array = NDArray[np.float64]

CONTOURS = (3.5, 13.5, 49.5)
"""Levels of the three contours. The lower, the nearer, but the more do rounding and compression move them."""
FAINT = 1.5
"""Level below which a cell is continued instead of read."""
EMPTY = 0.2
"""Share of the cells that must read nothing at all, with all their neighbours, for a film to be without noise."""
NOISE_FRAMES, MOST_NOISE = 30, 0.25
"""Frames in which noise is looked for, and most of it, in levels."""
LEAST_GAP = 0.5
"""Least distance between two contours, in cells: a sharp edge has no tail, and distances are no better than that."""
LEAST = 1.0
"""Level below which the logarithm of what was read means nothing."""
LEAST_SLOPE = 0.05
"""Least slope of log u, per cell, where a contour is located between cells."""


def is_without_noise(values: Frame, level: float) -> bool:
    """Say whether a film (t, y, x) has an empty background that reads exactly nothing, and no noise elsewhere."""
    first = values[0]
    empty = maximum_filter(np.abs(first), 3, mode="nearest") < 1e-3 * level
    some = values[:NOISE_FRAMES]
    if empty.mean() < EMPTY or len(some) < 3:
        return False
    seen = some.min(axis=0) > FAINT * level
    jumps = (some[:-2] - 2 * some[1:-1] + some[2:])[:, seen]
    # in the quietest tenth of the cells: noise is everywhere, change is not
    return not seen.any() or float(np.quantile(np.sqrt((jumps**2).mean(axis=0) / 6), 0.1)) < MOST_NOISE * level


def restore_edge(values: Frame, level: float) -> int:
    """Continue what a level of ``level`` rounds away, in place, frame by frame; return how many frames it was done in.

    ``values`` (t, y, x): u, 0 where there is nothing.
    """
    if not is_without_noise(values, level):
        return 0
    return sum(_restore(frame, level) for frame in values)


def _restore(frame: Frame, level: float) -> bool:
    logarithm = np.log(np.maximum(frame, LEAST * level))
    slope = np.maximum(np.hypot(*np.gradient(logarithm)), LEAST_SLOPE)
    heights = [float(np.log(contour * level)) for contour in CONTOURS]
    plumes, count = label(logarithm >= heights[0], np.ones((3, 3)))
    if count == 0:
        return False
    near, nearest = _distance(logarithm, slope, plumes > 0, heights[0])
    belongs = plumes[nearest]
    faint = frame < FAINT * level
    peaks = maximum(logarithm, plumes, range(1, count + 1))
    tall = [plume for plume, peak in enumerate(peaks, 1) if peak > heights[2]]
    for plume in tall:
        own = plumes == plume
        middle, far = (_distance(logarithm, slope, own & (logarithm >= height), height)[0] for height in heights[1:])
        cells = faint & (belongs == plume)
        continued = _parabola([distance[cells] for distance in (near, middle, far)], heights)
        seen = frame[cells]
        allowed = np.maximum(seen - level / 2, 0.0), seen + level / 2
        share = min(1.0, float(np.exp(peaks[plume - 1] - heights[2])) - 1)
        frame[cells] += share * (np.clip(np.exp(np.minimum(continued, 0.0)), *allowed) - seen)
    return bool(tall)


def _parabola(distances: list[Array], heights: list[float]) -> Array:
    """Return log u at distance 0 from a parabola through the contours; never one that falls ever more slowly."""
    near, middle, far = distances
    gap, further = np.maximum(middle - near, LEAST_GAP), np.maximum(far - middle, LEAST_GAP)
    fall = (heights[1] - heights[0]) / gap
    bend = ((heights[2] - heights[1]) / further - fall) / (gap + further)
    return np.asarray(heights[0] - near * fall + np.minimum(bend, 0.0) * near * (near + gap))


def _distance(
    logarithm: Frame, slope: Frame, above: NDArray[np.bool_], height: float
) -> tuple[Array, tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return every cell's distance from a contour, in cells, and the nearest cell that lies above it."""
    distance, (row, column) = distance_transform_edt(~above, return_indices=True)
    beyond = np.minimum((logarithm - height) / slope, 1.0)
    return distance - beyond[row, column], (row, column)
