"""The initial frame of a rollout, freed of most of its noise.

A rollout carries the noise of its initial frame along, and a law that blurs more would be rewarded for blurring it.
A straight line in time through a few frames, up to the one that the rollout starts from, and a filter that leaves low
spatial frequencies as they are, take most of it away without a look ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d, gaussian_filter

from video2pde.calibration.blocks import Scene
from video2pde.calibration.window import Window
from video2pde.discovery.jets import jet_kernels
from video2pde.field import Field, Grid
from video2pde.settings import RolloutSettings
from video2pde.terms import Term
from video2pde.terms.stencil import apply_term

Array = NDArray[np.float64]

SMOOTHING = 1.0
"""Pixels: σ of the filter."""
LEAST, SHARE = 3, 25
"""Frames that a line needs; and at most one in so many of the recording's frames, so that it stays straight."""
MODE_SMOOTHING = 2.0
"""Pixels: σ of the filter under the modes of the initial frame, which need not be exact but free of noise."""


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


def initial_frame(window: Window, frames: int) -> Array:
    """Estimate the first frame by a straight line in time through the first few frames."""
    count = min(max(frames, 1), len(window.times))
    if count < LEAST:
        return np.array(window.values[0])
    return line_at(window.values[:count], window.times[:count], float(window.times[0]))


def bring_back(window: Window, scene: Scene, frames: NDArray[np.bool_], settings: RolloutSettings) -> Array:
    """Estimate the initial frame from ``frames`` (t,), each less what the model has changed since.

    u₀ = mean_k [u_k − (û_k − û_0)]: the change comes from the scene's smooth start, so that it carries little noise and
    the error left in u₀ is about the mean of the frames' noise.
    """
    stop = int(np.flatnonzero(frames)[-1]) + 1
    first = replace(window, values=window.values[:stop], times=window.times[:stop])
    total = np.zeros_like(scene.start)
    for chunk, values in first.predict([scene.model], scene.start, scene.velocity[None, :stop], settings):
        wanted = frames[chunk]
        total += np.sum(first.values[chunk][wanted] - (values[0][wanted] - scene.start), axis=0)
    return total / frames.sum() if np.isfinite(total).all() else scene.start


def start_modes(terms: Sequence[Term], start: Array, grid: Grid) -> Array:
    """Return the changes of the initial frame that look most like a change of the law: the terms T_j(u₀) themselves.

    An error of u₀ along them passes for an error of the coefficients; fitting their amplitudes jointly keeps
    the two apart and more than halves the spread of a diffusion coefficient under noise.
    """
    smooth = gaussian_filter(start, MODE_SMOOTHING)
    modes = np.stack([apply_term(term, smooth, grid.dx, grid.dy) for term in terms])
    modes -= np.median(modes, axis=(1, 2), keepdims=True)
    size = np.abs(modes).max(axis=(1, 2), keepdims=True)
    return np.asarray(modes / np.where(size > 0, size, 1.0))
