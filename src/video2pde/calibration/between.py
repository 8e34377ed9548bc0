"""Frames that an encoder made from those around them.

A film of H.264 or its kin stores some frames (B frames) as little more than a mixture of an earlier and a later one.
They get few bits, and where the picture changes slowly none at all: then they repeat one of the two, and the picture
moves in jumps. Frames that stand on their own hold back far less. So where the encoder is seen to hold changes back,
the frames between are replaced by what the others say: a cubic in time through the two on either side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from video2pde.field import LATE

Frames = NDArray[np.float32]

LAGS = 0.02
"""Mean departure from the cubic, as a share of the change from one side to the other, from which it is taken instead.
Frames that repeat one of the sides depart by half."""
CERTAIN = 4.0
"""Standard deviations that this must be away from none."""
LONGEST = 8
"""Most frames between in a row. Encoders make up to so many; where all frames are called so (some H.265 encoders do
it), the name says nothing."""


def straighten(values: Frames, between: NDArray[np.bool_], held: float = 0.0) -> bool:
    """Replace frames between (of t, y, x) in place where they are late; say whether they were.

    ``held``: share of changes that the encoder holds back (see ``field.held_back``).
    """
    lag, known_to = measure_lag(values, between)
    late = held > LATE or abs(lag) > max(LAGS, CERTAIN * known_to)
    if late:
        for index, others, weights in _neighbours(between):
            values[index] = np.tensordot(weights, values[others], axes=1)
    return late


def measure_lag(values: Frames, between: NDArray[np.bool_]) -> tuple[float, float]:
    """Say how far frames between lie behind the others, as a share of the change across them, and how well it is known.

    Negative: they lead. Which way the picture goes is read from frames further out, so that noise, which they do not
    share, drops out of the sum, while it adds to the change: the noisier a film, the smaller the share, and the more
    its frames between are worth for themselves.
    """
    apart = np.flatnonzero(~between)
    departure = change = squares = 0.0
    for index, others, weights in _neighbours(between):
        before, after = apart[apart < others[0]], apart[apart > others[-1]]
        if len(others) < 4 or not len(before) or not len(after):
            continue
        way = np.sign(values[after[0]] - values[before[-1]])
        behind = np.tensordot(weights, values[others], axes=1) - values[index]
        departure += float(np.vdot(way, behind))
        squares += float(np.vdot(behind, behind))
        change += float(np.abs(values[others[2]] - values[others[1]]).sum())
    return (departure / change, squares**0.5 / change) if change > 0 else (0.0, 0.0)


def _neighbours(between: NDArray[np.bool_]) -> Iterator[tuple[int, list[int], Frames]]:
    """Give each frame between, up to two others on either side, and their weights in the polynomial through them.

    Frames without any other on one side are left out.
    """
    others = np.flatnonzero(~between)
    for right in np.flatnonzero(np.diff(others) > 1) + 1:
        first, last = int(others[right - 1]), int(others[right])
        if last - first - 1 > LONGEST:
            continue
        nodes = others[max(right - 2, 0) : right + 2]
        for index in range(first + 1, last):
            weights = [np.prod([(index - k) / (node - k) for k in nodes if k != node]) for node in nodes]
            yield index, nodes.tolist(), np.asarray(weights, np.float32)
