"""Averages over blocks of a picture, in which pixel noise and fine detail hardly count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit

BLOCKS = 12
"""Blocks along each side, at most."""


def block_means(frames: NDArray[Any], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Average frames (t, y, x) over blocks of a picture, (t, block); cells outside count nowhere.

    Examples
    --------
    >>> frames = np.arange(24 * 24.0).reshape(1, 24, 24)
    >>> block_means(frames, np.ones((24, 24), bool)).shape
    (1, 144)
    """
    starts = [np.linspace(0, n, min(BLOCKS, n) + 1).round().astype(int)[:-1] for n in inside.shape]
    counts = _sum(np.ones((1, *inside.shape)), inside, starts)[0]
    used = counts > 0
    return np.asarray(_sum(frames, inside, starts)[:, used] / counts[used])


def means_between(frames: NDArray[Any], starts: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Average frames (t, y, x) over the blocks that begin at these rows and columns: (t, rows, columns).

    Examples
    --------
    >>> means_between(np.arange(16.0).reshape(1, 4, 4), [np.array([0, 2]), np.array([0, 3])])
    array([[[ 3.,  5.],
            [11., 13.]]])
    """
    inside = np.ones(frames.shape[1:], bool)
    return np.asarray(_sum(frames, inside, starts) / _sum(np.ones((1, *inside.shape)), inside, starts))


def _sum(frames: NDArray[Any], inside: NDArray[np.bool_], starts: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    seen = np.ascontiguousarray(frames).view()
    seen.flags.writeable = False  # compiled for one kind of array
    rows, columns = (np.append(begin, n) for begin, n in zip(starts, inside.shape, strict=True))
    return np.asarray(_sums(seen, np.array(inside), rows, columns))


@njit(nogil=True)
def _sums(frames: Any, inside: Any, rows: Any, columns: Any) -> Any:  # pragma: no cover - compiled
    """Sum frames (t, y, x) over blocks between edges: (t, block, block); row by row, several columns at a time."""
    sums, line = np.zeros((len(frames), len(rows) - 1, len(columns) - 1)), np.empty(inside.shape[1])
    for k in range(len(frames)):
        for a in range(len(rows) - 1):
            line[:] = 0.0
            for j in range(rows[a], rows[a + 1]):
                row, here = frames[k, j], inside[j]
                for i in range(len(line)):
                    line[i] += float(row[i]) if here[i] else 0.0
            for b in range(len(columns) - 1):
                sums[k, a, b] = line[columns[b] : columns[b + 1]].sum()
    return sums
