"""What is in the picture and never moves: dust is divided out, walls and a time that is burnt in are cut off.

Anything that spreads is smooth and changes. Structure as fine as the grid that is the same at the beginning and at the
end of the film is an object. A speck lets the same share s(x, y) of the light through in every frame; what lies around
it, continued under it by the smoothest surface, shows what would be there without. Of larger objects only the edges
show; the largest rectangle without them is kept, if all that changes lies in it. Where it does not, they are masked
with all that they enclose. So are things of which now more and now less is seen, but always in the same place: opaque
ones that dye reaches, reflections, specks that go out of focus.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import (
    binary_closing,
    binary_dilation,
    binary_fill_holes,
    find_objects,
    gaussian_filter,
    label,
    maximum,
    maximum_filter,
    minimum,
    uniform_filter,
)
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu, spsolve

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
CRISP = 0.45
"""Share of it that the finer filter must take out of an edge narrower than a cell, however large what it bounds: of
what spreads, that was never more than 0.23."""
REACH = 3
"""Cells by which an object is larger than what stands out of it."""
SPECK, SPECK_CELLS, DUSTY = 0.18, 18, 0.15
"""Share of the picture's shorter side, and cells, up to which an object is a speck; share of all cells that specks may
cover."""
KNOWN = 0.5
"""Share of a speck in what was found before from which it is found again: of one that is blurred in the course of the
film, a dot of the rim may look as if it stayed the same."""
OPAQUE = 0.1
"""Share of the light below which nothing is left to divide."""
LEAST_KEPT, MOST_LOST = 0.5, 0.03
"""Share of the picture that a cut must leave, and of all change that it may take away."""
FADED, SAME_PLACE, NEAR = 0.4, 0.9, 5
"""Share of an edge's contrast that must be left, and how alike its surroundings (of so many cells) must be at both
ends of the film, as a correlation: it stays where it is."""
LEAST_SEEN = 0.4
"""Share of the picture that a mask must leave."""
FILLED_AT_ONCE = 64
"""Frames that are filled at once."""
FEWEST_FRAMES, SMALLEST = 12, 96
"""Frames, and cells along each side, from which objects are looked for: on a coarse grid a plume itself is sharp."""


@dataclass(frozen=True, eq=False)
class Objects:
    """What was found: specks and the share of light (y, x) that they let through; larger and other objects.

    ``box`` (y0, x0, height, width) in cells: the part without larger objects; None: there are none, or all that changes
    does not lie in one rectangle between them. ``hidden`` (y, x): cells of the others, with all that they enclose.
    """

    shade: Array
    specks: int
    larger: int
    box: Box | None = None
    others: int = 0
    hidden: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))

    @property
    def masked(self) -> bool:
        return bool(self.hidden.any())

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
    def mask_note(self) -> str:
        """What is masked, in words; empty where nothing is."""
        if not self.masked:
            return ""
        count = self.larger + self.others
        return (
            f"{count} object{' that never moves' if count == 1 else 's that never move'} (things, walls, reflections), "
            f"{self.hidden.mean():.1%} of the picture, masked: the law is taken to hold beside "
            f'{"it" if count == 1 else "them"}; recording.objects = "none" leaves everything'
        )

    @property
    def doubt(self) -> str:
        """What could not be done, in words; empty where nothing is left."""
        if self.masked or not self.larger + self.others or (self.box is not None and not self.others):
            return ""
        count = self.larger + self.others
        return (
            f"{count} object{'s' if count > 1 else ''} in the picture that never move (walls, a rim, "
            "letters): leave them out with --crop, or with --mask"
        )

    def divide_out(self, values: Frames, black: float) -> None:
        """Divide the specks out of frames of grey values, in place."""
        if self.specks:
            values -= np.float32(black)
            values /= self.shade.astype(np.float32)
            values += np.float32(black)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Fine structure at the beginning and at the end of a film, (y, x), where it is sharp, and what is none yet.

    ``crisp``: an edge narrower than a cell is near, at both ends.
    """

    first: Array
    last: Array
    sharp: NDArray[np.bool_]
    sharp_last: NDArray[np.bool_]
    crisp: NDArray[np.bool_]
    level: float

    @property
    def size(self) -> Array:
        return np.minimum(np.abs(self.first), np.abs(self.last))


def _compare_ends(frames: NDArray[np.floating]) -> _Ends:
    third = max(1, len(frames) // 3)
    ends = [part.mean(axis=0, dtype=np.float64) for part in (frames[:third], frames[-third:])]
    fine = [gaussian_filter(end, FINE) for end in ends]
    first, last = (end - gaussian_filter(whole, COARSE) for whole, end in zip(ends, fine, strict=True))
    crisp = [
        maximum_filter(np.abs(whole - end), 3) > CRISP * maximum_filter(np.abs(seen), 3)
        for whole, end, seen in zip(ends, fine, (first, last), strict=True)
    ]
    noise = float(np.median(np.abs(np.diff(frames[:: max(1, len(frames) // 40)], axis=0)))) / 0.95
    level = NOISE * noise / (2 * np.sqrt(np.pi) * FINE * np.sqrt(third))
    level = max(level, RANGE * float(np.ptp(ends[0])))
    size = np.minimum(np.abs(first), np.abs(last))
    broad = [maximum_filter(np.abs(gaussian_filter(end, COARSE) - gaussian_filter(end, 2 * COARSE)), 3) for end in ends]
    return _Ends(first, last, size > SHARP * broad[0], size > SHARP * broad[1], crisp[0] & crisp[1], level)


def find_static(frames: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Mark cells (y, x) of fine structure that is the same at the beginning and at the end of the film (t, y, x)."""
    return _same(_compare_ends(frames))


def _same(ends: _Ends) -> NDArray[np.bool_]:
    return np.asarray(ends.sharp & (ends.size > ends.level) & (np.abs(ends.first - ends.last) < STEADY * ends.size))


def _in_place(ends: _Ends) -> NDArray[np.bool_]:
    """Mark cells (y, x) of edges that are sharp and in the same place all the time, however much of them is seen."""
    first, last = ends.first, ends.last

    def near(product: Array) -> Array:
        return np.asarray(uniform_filter(product, NEAR))

    alike = near(first * last) > SAME_PLACE * np.sqrt(np.maximum(near(first**2) * near(last**2), 0.0))
    faded = ends.size < FADED * np.maximum(np.abs(first), np.abs(last))
    edge = (ends.sharp & ends.sharp_last) | ends.crisp
    return np.asarray(edge & (ends.size > ends.level) & alike & ~faded & (first * last > 0))


def look_for_objects(values: Frames, black: float, whole: tuple[int, ...] | None = None) -> Objects | None:
    """Find objects in frames (t, y, x) of grey values, ``black`` being no light; None where there are none.

    ``whole``: the grid's shape before anything was cut off, where it was.
    """
    if len(values) < FEWEST_FRAMES or min(whole or values.shape[1:]) < SMALLEST:
        return None
    ends, alike = _compare_ends(values), _lets_through_alike(values, black)
    standing = _in_place(ends)
    small, large, specks, larger = _sort(_same(ends) & alike)
    unlike, mixed = _find_unlike(small, standing & alike, standing & ~alike)
    small, specks = small & ~unlike, specks - mixed
    other, wide, others, wider = _sort(standing, small | large, large)
    large, larger = large | wide, larger + wider
    other, others = other | unlike, others + mixed
    small, taken = _far_from(_apart_from(small, large), other)
    other, specks = _close(other | taken), label(small)[1]
    if not specks + larger + others:
        return None
    light = np.maximum(values.mean(axis=0, dtype=np.float64) - black, 0.0)
    shade = np.ones(small.shape)
    if specks and small.mean() <= DUSTY and light.min() > 0:
        small, brighter, shade = _part_brighter(small, _shade(light, small))
        if brighter.any():
            other, others, specks = _close(other | brighter), others + label(brighter)[1], label(small)[1]
    elif specks:  # too many to tell what lies beneath, or opaque
        other, others, specks = other | small, others + specks, 0
    box = _clean_box(values, large) if larger else None
    hidden = _enclosed(values, large, other)
    return Objects(np.maximum(shade, OPAQUE), specks, larger, box, others, hidden)


def _sort(
    marked: NDArray[np.bool_], known: NDArray[np.bool_] | None = None, known_large: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int, int]:
    """Sort what stands out into specks and larger objects: their cells (y, x), and how many there are of each.

    Specks that are mostly ``known`` are left out, larger ones on what is ``known_large`` not counted again.
    """
    static = binary_dilation(marked, iterations=REACH)
    pieces, _ = label(static)
    longest = longest_speck(static.shape)
    small, large, specks, larger = np.zeros_like(static), np.zeros_like(static), 0, 0
    for number, box in enumerate(find_objects(pieces), start=1):
        piece = pieces == number
        if max(part.stop - part.start for part in box) > longest:
            large |= piece
            larger += known_large is None or not (piece & known_large).any()
        elif known is None or (piece & known).sum() < KNOWN * piece.sum():
            small |= piece
            specks += 1
    return small, large, specks, larger


def _find_unlike(
    small: NDArray[np.bool_], alike: NDArray[np.bool_], other: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], int]:
    """Find specks that mostly do not take the same share of the light at both ends of the film: cells, and number."""
    pieces, count = label(small)
    votes = [np.bincount(pieces[marked], minlength=count + 1)[1:] for marked in (alike, other)]
    numbers = np.flatnonzero(votes[1] > votes[0]) + 1
    return np.isin(pieces, numbers), len(numbers)


def _apart_from(small: NDArray[np.bool_], large: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Leave out specks that lie on a larger object: they are a part of its edge."""
    pieces, _ = label(small)
    return np.asarray(small & ~np.isin(pieces, np.unique(pieces[small & large])))


def _far_from(small: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Part specks from those that lie so near to other objects that they are a part of one."""
    pieces, _ = label(small)
    near = np.unique(pieces[binary_dilation(other, iterations=longest_speck(small.shape) // 2)])
    taken = small & np.isin(pieces, near)
    return small & ~taken, taken


def _shade(light: Array, small: NDArray[np.bool_]) -> Array:
    """Return the share of the light (y, x) that specks let through, by what lies around them."""
    return np.asarray(np.exp(np.where(small, np.log(light) - bridge(np.log(light), small), 0.0)))


def _part_brighter(small: NDArray[np.bool_], shade: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Array]:
    """Part specks from places that are rather brighter than what lies around them: dust takes light.

    Where something lies on a plume's edge, what continues under it may be far from what is there, and dividing by that
    would write it into every frame.
    """
    pieces, count = label(small)
    if not count:
        return small, small, shade
    share, numbers = np.log(shade), np.arange(1, count + 1)
    wrong = numbers[maximum(share, pieces, numbers) > -minimum(share, pieces, numbers)]
    brighter = np.isin(pieces, wrong)
    return small & ~brighter, brighter, np.where(brighter, 1.0, shade)


def _close(other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Join the edges on either side of an object, of which not all are seen, and what lies between them."""
    if not other.any():
        return other
    half = longest_speck(other.shape) // 2
    wide = np.pad(other, half)
    closed = binary_fill_holes(binary_closing(wide, iterations=half))[half:-half, half:-half]
    return np.asarray(closed | other)


def _enclosed(values: Frames, large: NDArray[np.bool_], small: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark objects and the parts of the picture between them in which nothing changes; nothing if that is too much."""
    objects = large | small
    if not objects.any():
        return objects
    change = _changes(values, objects)
    pieces, count = label(~objects)
    shares = np.bincount(pieces.ravel(), change.ravel(), count + 1)[1:] / max(float(change.sum()), 1e-300)
    areas = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    kept = [number + 1 for number in range(count) if shares[number] > MOST_LOST or areas[number] == areas.max()]
    hidden = ~np.isin(pieces, kept)
    return hidden if hidden.mean() <= 1 - LEAST_SEEN else np.zeros_like(hidden)


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
    change = _changes(values, large)
    row, column, height, width = found = largest_rectangle(~large)
    inside = change[row : row + height, column : column + width].sum()
    enough = height * width >= LEAST_KEPT * large.size and inside > (1 - MOST_LOST) * change.sum()
    return found if enough else None


def _changes(values: Frames, objects: NDArray[np.bool_]) -> Array:
    """Return by how much each cell changes over the film, (y, x); 0 where there are objects."""
    third = max(1, len(values) // 3)
    change = np.abs(values[-third:].mean(axis=0, dtype=np.float64) - values[:third].mean(axis=0, dtype=np.float64))
    change = np.maximum(gaussian_filter(change, 1.0) - np.median(change), 0.0)
    change[objects] = 0.0
    return np.asarray(change)


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


def fill(values: Frames, hidden: NDArray[np.bool_]) -> None:
    """Continue frames (t, y, x) into hidden cells by Δf = 0, in place, so that what is masked there looks like nothing.

    An opaque thing would otherwise count as a steep front, as range, or as background.
    """
    number = np.full(hidden.shape, -1)
    number[hidden] = np.arange(hidden.sum())
    count, rows, columns = int(hidden.sum()), list[NDArray[np.intp]](), list[NDArray[np.intp]]()
    for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
        place = np.moveaxis(np.indices(hidden.shape), 0, -1)[hidden]
        place[:, axis] += step
        inside = (place[:, axis] >= 0) & (place[:, axis] < hidden.shape[axis])  # nothing passes the picture's edge
        rows.append(np.flatnonzero(inside))
        columns.append(place[inside])
    row, at = np.concatenate(rows), np.concatenate(columns)
    beside = number[at[:, 0], at[:, 1]]
    within = beside >= 0
    degree = np.bincount(row, minlength=count).astype(float)
    links = coo_array((-np.ones(int(within.sum())), (row[within], beside[within])), shape=(count, count))
    solver = splu((links + coo_array((degree, (np.arange(count), np.arange(count))))).tocsc())
    for start in range(0, len(values), FILLED_AT_ONCE):
        part = values[start : start + FILLED_AT_ONCE]
        right = np.zeros((count, len(part)))
        np.add.at(right, row[~within], part[:, at[~within, 0], at[~within, 1]].T)
        part[:, hidden] = solver.solve(right).T
