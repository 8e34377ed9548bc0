"""Averages over blocks of a picture, in which pixel noise and fine detail hardly count."""

from __future__ import annotations

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
    edges = [np.linspace(0, n, min(BLOCKS, n) + 1).round().astype(int)[:-1] for n in inside.shape]
    counts = _sums(inside[None].astype(float), edges)[0]
    used = counts > 0
    weighted = (np.where(inside, frame, 0.0)[None] for frame in frames)
    return np.stack([_sums(frame, edges)[0][used] / counts[used] for frame in weighted])


def _sums(frames: NDArray[np.float64], edges: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    rows = np.add.reduceat(frames, edges[0], axis=1)
    return np.asarray(np.add.reduceat(rows, edges[1], axis=2))
