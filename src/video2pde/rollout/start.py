"""The initial frame of a rollout, freed of most of its noise.

A rollout carries the noise of its initial frame along, and a law that blurs more would be rewarded for blurring it.
A straight line in time through a few frames, up to the one that the rollout starts from, and a filter that leaves low
spatial frequencies as they are, take most of it away without a look ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from video2pde.discovery.jets import jet_kernels
from video2pde.field import Field

Array = NDArray[np.float64]

SMOOTHING = 1.0
"""Pixels: σ of the filter."""
LEAST, SHARE = 3, 25
"""Frames that a line needs; and at most one in so many of the recording's frames, so that it stays straight."""


def smooth_frame(frame: Array) -> Array:
    """Take pixel noise off a frame by a filter that leaves low frequencies as they are, to sixth order."""
    weights = jet_kernels(SMOOTHING, cells=False)[0].astype(float)
    along_x = correlate1d(frame, weights, axis=1, mode="reflect")
    return np.asarray(correlate1d(along_x, weights, axis=0, mode="reflect"))


def line_at(values: NDArray[Any], times: Array, time: float) -> Array:
    """Fit a straight line in time to frames (t, y, x) and return the frame on it at ``time``."""
    t = times - time
    weights = np.linalg.pinv(np.stack([np.ones(len(t)), t], axis=1))[0]
    return np.asarray(np.tensordot(weights, values, axes=1))


def estimate_start(known: Field, index: int, frames: int) -> Array:
    """Estimate frame ``index`` from itself and those before it, at most ``frames`` in all; later ones are not read.

    With fewer than three frames, or where one is asked for, it is the recorded frame itself.
    """
    count = min(frames, index + 1, max(LEAST, len(known) // SHARE))
    if count < LEAST:
        return np.array(known.values[index], float)
    part = slice(index + 1 - count, index + 1)
    return smooth_frame(line_at(known.values[part], known.times[part], float(known.times[index])))
