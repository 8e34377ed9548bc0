"""What an encoder does to a film: measured once, when the film is read, and carried with the field.

An encoder leaves small changes out until they are worth their bits, so that a film without noise, or a strongly
compressed one, lags behind what happened. The share of changes held back shows it. Frames that were made from an
earlier and a later one (B frames) get the fewest bits, and where the picture changes slowly none at all: then they
repeat one of the two, and the picture moves in jumps. Where that is seen, a calibration takes what the other frames say
instead: a cubic in time through the two on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Encoding
from video2pde.recording.resize import average_squares

Frames = NDArray[np.floating]

CHANGE = 0.02
"""Least range of u over the film that makes a cell one that changes."""
STEPS = 120
"""Steps into which a film is divided to see what an encoder holds back."""
REPEATED = 0.5
"""Changes that an encoder holds back for each share of the noise that it copies: a third to nine tenths were seen."""
UNCHANGED = 0.1
"""Share of a stored colour difference's level below which its cell has not changed: its neighbours count in it, too."""
PIXELS = 2
"""Camera pixels a side, at least, over which noise is averaged before it is compared: encoders drop finer noise."""
LATE = 0.1
"""Share of changes held back from which an encoder is taken to be late; without one, slow films reach nearly this."""
LAGS = 0.01
"""Mean departure from the cubic, as a share of the change from one side to the other, from which it is taken instead.
Frames that repeat one of the sides depart by half."""
CERTAIN = 4.0
"""Standard deviations that this must be away from none."""
LONGEST = 8
"""Most B frames in a row. Encoders make up to so many; where all frames are called so (some H.265 encoders do
it), the name says nothing."""


def measure_encoding(
    values: Frames, level: float, b_frames: NDArray[np.bool_] | None = None, remade: float | None = None
) -> Encoding:
    """Measure what storing did to a recording, from its field (t, y, x) and the size of a level in it.

    Where frames were put back in place, or divided by their own light, what they repeat is no longer equal, and shows
    in their noise alone: ``remade`` is then the number of camera pixels along a cell.
    """
    held = held_back(values, level)
    late = False
    if b_frames is not None:
        lag, known_to = measure_lag(values, b_frames)
        late = held > LATE or abs(lag) > max(LAGS, CERTAIN * known_to)
    if remade is not None:
        held = max(held, REPEATED * copied_noise(values, math.ceil(PIXELS / remade)))
    return Encoding(level, held, b_frames, late)


def also_held_back(found: Encoding, differences: Frames, step: float, stored: float) -> Encoding:
    """Count what an encoder held back of the colour differences (t, y, x) that a channel lies in, in units of u.

    ``step``: the size of one of their levels; ``stored``: how many of them a cell has. The noise of luma, which the
    channel has as well, hides it.
    """
    held = max(found.held_back, held_back(differences, step, UNCHANGED * step / max(stored, 1.0)))
    late = found.late_b_frames or (found.b_frames is not None and held > LATE)
    return replace(found, held_back=held, late_b_frames=late)


def held_back(values: Frames, level: float, unchanged: float = 0.0) -> float:
    """Return the share of repeats among the cells that change: values (t, y, x) equal to those of the frame before.

    ``unchanged``: difference up to which they count as equal, for what is interpolated before it is averaged.

    Camera noise drowns what an encoder holds back; on a film without noise the picture lags behind, the more so the
    slower it changes. Only cells on a slope of a ``level`` are counted: in them, pixels round to different levels, so
    that without an encoder every change shows, while a flat background repeats by itself. Frames a given share of the
    film apart are compared, whatever its frame rate: more frames a second hold no more.
    """
    values, changing = _in_steps(values)
    repeats = counted = 0
    for before, after in pairwise(values):
        sloped = changing & (np.hypot(*np.gradient(after)) > level)
        repeats += int(np.count_nonzero(sloped & (np.abs(after - before) <= unchanged)))
        counted += int(np.count_nonzero(sloped))
    return repeats / max(counted, 1)


def copied_noise(values: Frames, size: int = 1) -> float:
    """Return the share of the noise, among the cells that change, that one frame (of t, y, x) has from the one before.

    ``size`` cells a side are averaged first.

    Noise is what a fourth difference in space leaves, less what stands still in the picture. Of independent frames it
    differs by twice its own square, of frames that repeat each other by nothing.
    """
    values, changing = _in_steps(average_squares(values, size))
    rough = _differ(_differ(values))[:, changing[2:-2, 2:-2]]
    rough -= rough.mean(axis=0)
    own = float((rough[1:] ** 2).sum() + (rough[:-1] ** 2).sum())
    return max(0.0, 1 - float((np.diff(rough, axis=0) ** 2).sum()) / own) if own > 0 else 0.0


def _in_steps(values: Frames) -> tuple[Frames, NDArray[np.bool_]]:
    """Return frames a given share of the film apart, and the cells that change."""
    values = values[:: max(1, round(len(values) / STEPS))]
    return values, np.ptp(values[:: max(1, len(values) // 20)], axis=0) > CHANGE


def _differ(values: Frames) -> Frames:
    """Return the five-point Laplacian of frames, a cell less on each side."""
    inner = values[:, 1:-1, 1:-1]
    around = values[:, :-2, 1:-1] + values[:, 2:, 1:-1] + values[:, 1:-1, :-2] + values[:, 1:-1, 2:]
    return np.asarray(around - 4 * inner)


def correct_b_frames(values: Frames, b_frames: NDArray[np.bool_]) -> None:
    """Replace B frames (of t, y, x), in place, by what the frames on either side say."""
    for index, others, weights in _neighbours(b_frames):
        values[index] = np.tensordot(weights, values[others], axes=1)


def measure_lag(values: Frames, b_frames: NDArray[np.bool_]) -> tuple[float, float]:
    """Say how far B frames lie behind the others, as a share of the change across them, and how well it is known.

    Negative: they lead. Which way the picture goes is read from frames further out, so that noise, which they do not
    share, drops out of the sum, while it adds to the change: the noisier a film, the smaller the share, and the more
    its B frames are worth for themselves.
    """
    apart = np.flatnonzero(~b_frames)
    departure = change = squares = 0.0
    for index, others, weights in _neighbours(b_frames):
        before, after = apart[apart < others[0]], apart[apart > others[-1]]
        if len(others) < 4 or not len(before) or not len(after):
            continue
        way = np.sign(values[after[0]] - values[before[-1]])
        behind = np.tensordot(weights, values[others], axes=1) - values[index]
        departure += float(np.vdot(way, behind))
        squares += float(np.vdot(behind, behind))
        change += float(np.abs(values[others[2]] - values[others[1]]).sum())
    return (departure / change, squares**0.5 / change) if change > 0 else (0.0, 0.0)


def _neighbours(b_frames: NDArray[np.bool_]) -> Iterator[tuple[int, list[int], Frames]]:
    """Yield each B frame, up to two others on either side, and their weights in the polynomial through them.

    Frames without any other on one side are left out.
    """
    others = np.flatnonzero(~b_frames)
    for right in np.flatnonzero(np.diff(others) > 1) + 1:
        first, last = int(others[right - 1]), int(others[right])
        if last - first - 1 > LONGEST:
            continue
        nodes = others[max(right - 2, 0) : right + 2]
        for index in range(first + 1, last):
            weights = [np.prod([(index - k) / (node - k) for k in nodes if k != node]) for node in nodes]
            yield index, nodes.tolist(), np.asarray(weights, np.float32)
