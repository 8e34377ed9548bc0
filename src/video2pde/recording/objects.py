"""What is in the picture and never moves: dust is divided out, walls and a time that is burnt in are cut off.

Anything that spreads is smooth and changes. Structure as fine as the grid that is the same at the beginning and at the
end of the film is an object. A speck lets the same share s(x, y) of the light through in every frame; what lies around
it, continued under it by the smoothest surface, shows what would be there without. Of larger objects only the edges
show; the largest rectangle without them is kept, if all that changes lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, find_objects, gaussian_filter, label, maximum_filter
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve

Array = NDArray[np.float64]
Frames = NDArray[np.float32]
Box = tuple[int, int, int, int]

FINE, COARSE = 0.7, 2.0
"""Cells: an object is seen between these filters."""
NOISE, RANGE = 6.0, 0.02
"""Standard deviations, and share of the picture's range, from which such structure is there."""
STEADY = 0.3
"""Share by which it may differ between the beginning and the end of the film."""
ALIKE = 0.1
"""The same for the share of light that an object takes, which does not change at all."""
SHARP = 0.8
"""Share of what is seen between filters twice as wide that it must have: a plume shows more there."""
REACH = 3
"""Cells by which an object is larger than what stands out of it."""
SPECK, SPECK_CELLS, DUSTY = 0.18, 18, 0.15
"""Share of the picture's shorter side, and cells, up to which an object is a speck; share of all cells that specks may
cover."""
OPAQUE = 0.1
"""Share of the light below which nothing is left to divide."""
LEAST_KEPT, MOST_LOST = 0.5, 0.03
"""Share of the picture that a cut must leave, and of all change that it may take away."""
FEWEST_FRAMES, SMALLEST = 12, 96
"""Frames, and cells along each side, from which objects are looked for: on a coarse grid a plume itself is sharp."""


@dataclass(frozen=True, eq=False)
class Objects:
    """What was found: specks and the share of light (y, x) that they let through; larger objects.

    ``box`` (y0, x0, height, width) in cells: the part without larger objects; None: there are none, or all that changes
    does not lie in one rectangle between them.
    """

    shade: Array
    specks: int
    larger: int
    box: Box | None = None

    @property
    def note(self) -> str:
        """What was done about specks, in words; empty where there are none."""
        if not self.specks:
            return ""
        covered, deepest = float((self.shade != 1).mean()), 1 - float(self.shade.min())
        which = "1 speck that never moves" if self.specks == 1 else f"{self.specks} specks that never move"
        return (
            f"{which} ({covered:.1%} of the picture, up to {deepest:.0%} darker) divided out; "
            'recording.objects = "none" leaves them'
        )

    @property
    def doubt(self) -> str:
        """What could not be done, in words; empty where nothing is left."""
        if not self.larger or self.box is not None:
            return ""
        return (
            f"{self.larger} object{'s' if self.larger > 1 else ''} in the picture that never move (walls, a rim, "
            "letters): leave them out with --crop, or with --mask"
        )

    def divide_out(self, values: Frames, black: float) -> None:
        """Divide the specks out of frames of grey values, in place."""
        if self.specks:
            values -= np.float32(black)
            values /= self.shade.astype(np.float32)
            values += np.float32(black)


def find_static(frames: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Mark cells (y, x) of fine structure that is the same at the beginning and at the end of the film (t, y, x)."""
    third = max(1, len(frames) // 3)
    ends = [part.mean(axis=0, dtype=np.float64) for part in (frames[:third], frames[-third:])]
    first, last = (gaussian_filter(end, FINE) - gaussian_filter(end, COARSE) for end in ends)
    noise = float(np.median(np.abs(np.diff(frames[:: max(1, len(frames) // 40)], axis=0)))) / 0.95
    level = NOISE * noise / (2 * np.sqrt(np.pi) * FINE * np.sqrt(third))
    level = max(level, RANGE * float(np.ptp(ends[0])))
    size = np.minimum(np.abs(first), np.abs(last))
    broad = gaussian_filter(ends[0], COARSE) - gaussian_filter(ends[0], 2 * COARSE)
    sharp = size > SHARP * maximum_filter(np.abs(broad), 3)
    return np.asarray(sharp & (size > level) & (np.abs(first - last) < STEADY * size))


def look_for_objects(values: Frames, black: float) -> Objects | None:
    """Find objects in frames (t, y, x) of grey values, ``black`` being no light; None where there are none."""
    if len(values) < FEWEST_FRAMES or min(values.shape[1:]) < SMALLEST:
        return None
    static = binary_dilation(find_static(values) & _lets_through_alike(values, black), iterations=REACH)
    pieces, _ = label(static)
    longest = longest_speck(static.shape)
    small, large, specks, larger = np.zeros_like(static), np.zeros_like(static), 0, 0
    for number, box in enumerate(find_objects(pieces), start=1):
        if max(part.stop - part.start for part in box) <= longest:
            small |= pieces == number
            specks += 1
        else:
            large |= pieces == number
            larger += 1
    if not specks and not larger:
        return None
    light = np.maximum(values.mean(axis=0, dtype=np.float64) - black, 0.0)
    box = _clean_box(values, large) if larger else None
    shade = np.ones(static.shape)
    if not specks or small.mean() > DUSTY or light.min() <= 0:
        return Objects(shade, 0, larger, box)
    shade = np.exp(np.where(small, np.log(light) - bridge(np.log(light), small), 0.0))
    return Objects(np.maximum(shade, OPAQUE), specks, larger, box)


def _lets_through_alike(values: Frames, black: float) -> NDArray[np.bool_]:
    """Mark cells (y, x) whose fine structure takes the same share of the light at the beginning and at the end."""
    third = max(1, len(values) // 3)
    shares = []
    for part in (values[:third], values[-third:]):
        light = np.log(np.maximum(part.mean(axis=0, dtype=np.float64) - black, 1e-3))
        shares.append(gaussian_filter(light, FINE) - gaussian_filter(light, COARSE))
    first, last = shares
    return np.asarray(np.abs(first - last) < ALIKE * np.minimum(np.abs(first), np.abs(last)))


def longest_speck(shape: tuple[int, ...]) -> int:
    """Return the length of the largest speck on a grid, in cells."""
    return max(int(SPECK * min(shape)), SPECK_CELLS)


def _clean_box(values: Frames, large: NDArray[np.bool_]) -> Box | None:
    """Return the largest rectangle without large objects; None where it is too small, or misses what changes."""
    third = max(1, len(values) // 3)
    change = np.abs(values[-third:].mean(axis=0, dtype=np.float64) - values[:third].mean(axis=0, dtype=np.float64))
    change = np.maximum(gaussian_filter(change, 1.0) - np.median(change), 0.0)
    change[large] = 0.0
    row, column, height, width = found = largest_rectangle(~large)
    inside = change[row : row + height, column : column + width].sum()
    enough = height * width >= LEAST_KEPT * large.size and inside > (1 - MOST_LOST) * change.sum()
    return found if enough else None


def largest_rectangle(free: NDArray[np.bool_]) -> Box:
    """Return the largest rectangle (y0, x0, height, width) of true cells."""
    heights = np.zeros(free.shape[1], int)
    best, area = (0, 0, 0, 0), 0
    for row, line in enumerate(free):
        heights = np.where(line, heights + 1, 0)
        open_from: list[tuple[int, int]] = []  # column from which a height holds, rising
        for column, height in enumerate([*heights.tolist(), 0]):
            start = column
            while open_from and open_from[-1][1] >= height:
                start, tall = open_from.pop()
                if tall * (column - start) > area:
                    best, area = (row + 1 - tall, start, tall, column - start), tall * (column - start)
            open_from.append((start, height))
    return best


def bridge(picture: Array, holes: NDArray[np.bool_]) -> Array:
    """Continue a picture into holes by the surface with the least sum of (Δf)² over the holes and their rims."""
    pad = longest_speck(picture.shape) + 2  # the picture's edge is a mirror, so that every hole is surrounded
    picture, holes = np.pad(picture, pad, mode="symmetric"), np.pad(holes, pad, mode="symmetric")
    holes[[0, -1]] = holes[:, [0, -1]] = False
    columns = picture.shape[1]
    around = binary_dilation(holes)
    around[[0, -1]] = around[:, [0, -1]] = False
    places = np.flatnonzero(around)
    row = np.tile(np.arange(len(places)), 5)
    column = np.concatenate([places, places - 1, places + 1, places - columns, places + columns])
    weight = np.repeat([-4.0, 1.0, 1.0, 1.0, 1.0], len(places))
    laplace = coo_array((weight, (row, column)), shape=(len(places), picture.size)).tocsc()
    unknown = np.flatnonzero(holes)
    known = np.where(holes, 0.0, picture).ravel()
    part = laplace[:, unknown]
    filled = picture.ravel().copy()
    filled[unknown] = spsolve((part.T @ part).tocsc(), -(part.T @ (laplace @ known)))
    return np.asarray(filled.reshape(picture.shape)[pad:-pad, pad:-pad])
