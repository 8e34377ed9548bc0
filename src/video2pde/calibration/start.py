"""The initial frame of a fit: estimates from several frames, and the changes of it that look like another law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from video2pde.calibration.blocks import Scene
from video2pde.calibration.window import Window
from video2pde.device import resident
from video2pde.field import Grid
from video2pde.rollout.start import LEAST, line_at
from video2pde.settings import RolloutSettings
from video2pde.terms import Term
from video2pde.terms.stencil import apply_term

Array = NDArray[np.float64]

MODE_SMOOTHING = 2.0
"""Pixels: σ of the filter under the modes of the initial frame, which need not be exact but free of noise."""


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
    with window.arithmetic():
        for chunk, values in first.predict([scene.model], scene.start, scene.velocity[None, :stop], settings):
            wanted = frames[chunk]
            if window.on_device:
                from video2pde.calibration.jax_sums import bring_back_frames

                recorded = resident(window.values)
                total += np.asarray(bring_back_frames(values[0], recorded, chunk.start, wanted, scene.start))
            else:
                total += (window.seen(chunk)[wanted] - (values[0][wanted] - scene.start)).sum(axis=0)
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
