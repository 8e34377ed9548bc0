"""Averages over blocks of a picture, in which pixel noise and fine detail hardly count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    counts = _sum(inside.astype(float), starts)
    used = counts > 0
    return np.stack([_sum(np.where(inside, frame, 0.0), starts)[used] / counts[used] for frame in frames])


def means_between(frames: NDArray[Any], starts: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Average frames (t, y, x) over the blocks that begin at these rows and columns: (t, rows, columns).

    Examples
    --------
    >>> means_between(np.arange(16.0).reshape(1, 4, 4), [np.array([0, 2]), np.array([0, 3])])
    array([[[ 3.,  5.],
            [11., 13.]]])
    """
    counts = _sum(np.ones(frames.shape[1:]), starts)
    return np.stack([_sum(frame.astype(np.float64), starts) / counts for frame in frames])


def _sum(picture: NDArray[Any], starts: Sequence[NDArray[np.intp]]) -> NDArray[Any]:
    return np.asarray(np.add.reduceat(np.add.reduceat(picture, starts[0], axis=0), starts[1], axis=1))
