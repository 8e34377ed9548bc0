"""Blocks of frames, drawn with replacement: their order, their length, and the size of what is drawn.

Residuals lie in memory, or on a device as an array of JAX.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from video2pde.device import namespace, to_host

Array = NDArray[np.float64]


def draw_blocks(frames: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw contiguous blocks of frame indices with replacement until there are ``frames`` of them."""
    starts = rng.integers(0, frames - length + 1, size=-(-frames // length))
    return np.concatenate([np.arange(start, start + length) for start in starts])[:frames]


def block_length(residuals: NDArray[np.float32], picture: Array, wanted: int | str) -> int:
    """Return the frames in a block: as many as ``wanted``, √n (``sqrt``), or the choice of Politis and White.

    The latter looks at the residuals' projection on a ``picture``: a series that carries their dependence in time.
    """
    frames = len(residuals)
    if wanted == "automatic":
        length = politis_white(np.asarray(namespace(residuals).einsum("tyx,yx->t", residuals, picture), float))
    else:
        length = round(np.sqrt(frames)) if isinstance(wanted, str) else wanted
    return int(np.clip(length, 1, max(1, frames // 2)))


def residual_sizes(residuals: NDArray[np.float32], weight: Array, length: int) -> Array:
    """Return the root mean square of the residuals around each frame, (t,), averaged over a block's length.

    Under a law that grows, what is left in late frames is larger than noise; drawn into the first frames it would be
    amplified once more. So residuals are drawn in units of their size, and take the size of the frame they are put in.
    """
    if namespace(residuals) is np:
        sums = np.array([float(np.vdot(weight, frame**2)) for frame in residuals])
    else:
        sums = to_host(namespace(residuals).einsum("yx,tyx->t", weight, residuals**2))
    power = sums / weight.sum()
    return np.asarray(np.sqrt(np.maximum(uniform_filter1d(power, length, mode="nearest"), 1e-30)))


def politis_white(series: Array) -> int:
    """Choose a block length for the circular block bootstrap from the autocorrelation of a series.

    b = (2Ĝ²/D̂)^{1/3} n^{1/3}, with the flat-top lag window over the lags up to twice the first after which
    autocorrelations stay insignificant; Politis and White (2004), corrected by Patton et al. (2009).
    """
    n = len(series)
    x = series - series.mean()
    variance = float(x @ x) / n
    if variance == 0 or n < 8:
        return 1
    lags = min(n - 1, max(5, int(np.sqrt(np.log10(n)))) + int(np.ceil(np.sqrt(n))))
    covariance = np.array([float(x[: n - k] @ x[k:]) / n for k in range(lags + 1)])
    limit = 2 * np.sqrt(np.log10(n) / n)
    run = max(5, int(np.sqrt(np.log10(n))))
    small = np.abs(covariance[1:] / variance) < limit
    first = next((k for k in range(len(small) - run + 1) if small[k : k + run].all()), len(small) - 1)
    width = min(2 * max(first, 1), lags)
    k = np.arange(-width, width + 1)
    flat_top = np.clip(2 * (1 - np.abs(k) / width), 0, 1)
    values = covariance[np.abs(k)]
    g = float(np.sum(flat_top * np.abs(k) * values))
    spectrum = float(np.sum(flat_top * values))
    d = 4 / 3 * spectrum**2
    return max(1, int(np.ceil((2 * g**2 / d) ** (1 / 3) * n ** (1 / 3)))) if d > 0 else 1
