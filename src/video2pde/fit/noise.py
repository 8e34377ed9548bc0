"""The camera's noise, measured apart from any law: what averages over time and space must leave.

Fourth differences in time hold next to nothing of a picture that changes smoothly,

    d_k = z_{k−2L} − 4z_{k−L} + 6z_k − 4z_{k+L} + z_{k+2L},      var d = 70 var z for white noise,

so they show the noise of anything that is a sum over pixels of one frame (the mean of a block, a picture filtered by a
test function), with whatever correlation in space it has. An encoder repeats part of the noise of a frame in the next
ones; the differences at one and at several frames tell how much, as an autoregressive process of first order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

Array = NDArray[np.float64]

WEIGHTS = (1.0, -4.0, 6.0, -4.0, 1.0)
POWER = float(sum(w**2 for w in WEIGHTS))
NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a standard normal variable."""
APART = 3
"""Frames between the values of the wider differences: far enough apart for what an encoder repeats."""
MOST_REPEATED = 0.8
"""Largest correlation from frame to frame that is believed: beyond it, the picture's own change is what is seen."""


@dataclass(frozen=True, eq=False)
class Memory:
    """Say how noise goes on from frame to frame, by brightness: correlation ρ^k between frames k apart.

    ``rho`` at the brightness ``level``, ascending. A still background and a plume are not encoded alike.
    """

    level: Array
    rho: Array

    def at(self, level: Array) -> Array:
        return np.asarray(np.interp(level, self.level, self.rho))

    def variance_of(self, weights: Array, level: Array) -> Array:
        """Return the variance of Σ w_k n_k for noise of unit variance, at each brightness."""
        trials = np.linspace(0.0, MOST_REPEATED, 17)
        lags = np.correlate(weights, weights, mode="full")[len(weights) - 1 :]
        powers = trials[:, None] ** np.arange(len(weights))[None]
        return np.asarray(np.interp(self.at(level), trials, 2 * powers @ lags - lags[0]))


def carried(weights: Array, rho: float) -> float:
    """Return the variance of Σ w_k e_k for errors of unit variance with correlation ρ^k between frames k apart."""
    lags = np.correlate(weights, weights, mode="full")[len(weights) - 1 :]
    return float(2 * (rho ** np.arange(len(weights))) @ lags - lags[0])


def fourth_difference(series: NDArray[np.floating], apart: int = 1) -> Array:
    """Take the fourth difference along the last axis, over frames ``apart``."""
    count = series.shape[-1] - 4 * apart
    if count < 1:
        return np.zeros((*series.shape[:-1], 0))
    return np.asarray(sum(w * series[..., k * apart : k * apart + count] for k, w in enumerate(WEIGHTS)), float)


def remove_common(values: Array, patterns: Array) -> Array:
    """Take off what all places have in common: in each frame the best fit of ``patterns`` (k, places) to (places, t).

    Flickering light moves all pixels at once. It is no noise of the camera that averages out, and must not pass for it.
    """
    fitted, *_ = np.linalg.lstsq(patterns.T, values, rcond=None)
    return np.asarray(values - patterns.T @ fitted)


def repeated(near: float, far: float, scatter: float) -> float:
    """Find ρ from mean squares of fourth differences over one frame and over several; 0 where noise may be white.

    With γ_k = γ₀ρ^k a fourth difference over L frames has variance γ₀ (70 − 112ρ^L + 56ρ^2L − 16ρ^3L + 2ρ^4L).
    """
    if not near > 0 or not far > 0 or near / far > 1 - 3 * scatter:
        return 0.0
    trials = np.linspace(0.0, MOST_REPEATED, 81)
    ratios = _power_at(trials, 1) / _power_at(trials, APART)
    return float(np.interp(-near / far, -ratios, trials))


def _power_at(rho: Array, apart: int) -> Array:
    r = rho**apart
    return np.asarray(POWER - 112 * r + 56 * r**2 - 16 * r**3 + 2 * r**4)


CALMER = 0.98
"""Share of the frames whose noise counts as it is."""
QUIET = 0.9
"""Share of the frames, the quietest, that measure the noise."""


def film_memory(values: NDArray[np.float32]) -> Memory:
    """Measure how the noise of a film (t, y, x) goes on from frame to frame, on small blocks of cells.

    Over large areas the noise is so small that fourth differences over several frames begin to show the picture's own
    change; on small blocks they do not.
    """
    means = square_means(values, BLOCK)
    series = means.reshape(len(means), -1).T
    patterns = np.stack([np.ones(len(series)), series.mean(axis=1)])
    noise = remove_common(series, patterns) if len(series) > 4 * len(patterns) else series
    near, far = fourth_difference(noise, 1) ** 2, fourth_difference(noise, APART) ** 2
    if not far.size:
        return Memory(np.zeros(1), np.zeros(1))
    calm = uniform_filter1d(series, CALM, axis=1, mode="nearest")
    levels, rhos = [], []
    for part in _classes(calm.mean(axis=1)):
        scatter = float(np.sqrt(2 * 3 / max(far[part].size / 4, 1)))
        levels.append(float(calm[part].mean()))
        rhos.append(repeated(_quiet_mean(near[part]), _quiet_mean(far[part]), scatter))
    return Memory(np.array(levels), np.array(rhos))


def _classes(level: Array) -> list[NDArray[np.int64]]:
    """Sort places into classes of brightness; half of them at most in the lowest, which is often background."""
    order = np.argsort(level, kind="stable")
    edges = np.unique((len(order) * (1 - 0.5 ** np.arange(1, LEVELS))).astype(int))
    return [part for part in np.split(order, edges) if len(part)]


def _quiet_mean(squares: Array) -> float:
    """Average over places and over the quieter frames: a shake or a flash is no noise."""
    frames = np.sort(squares.mean(axis=0))
    return float(np.mean(frames[: max(1, round(QUIET * len(frames)))]))


CALM = 9
"""Frames over which brightness is averaged before noise is sorted by it: its own noise must not sort it."""
LEVELS = 6
"""Classes of brightness for which noise is told apart, each half as full as the one below."""
BLOCK = 4
"""Cells along each side of the blocks that show how noise goes on in time."""


def square_means(values: NDArray[np.floating], size: int) -> Array:
    """Average frames (t, y, x) over squares of about ``size`` cells a side; what does not fill one is left out."""
    frames, ny, nx = values.shape
    rows, columns = max(ny // size, 1), max(nx // size, 1)
    high, wide = ny // rows, nx // columns
    cut = values[:, : rows * high, : columns * wide].reshape(frames, rows, high, columns, wide)
    return np.asarray(cut.mean(axis=(2, 4)), float)


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Hold the variance of a series' noise by brightness: ``variance`` at ``level``, ascending."""

    level: Array
    variance: Array

    def at(self, level: Array) -> Array:
        return np.asarray(np.interp(level, self.level, self.variance))


def noise_by_level(series: Array, level: Array, memory: Memory) -> NoiseLevels:
    """Measure the noise variance of series (places, t) by the brightness (places, t) at which it stands.

    A camera clips the noise of an empty background, and shot noise grows with light: noise is not the same everywhere.
    """
    squares = fourth_difference(series, 1) ** 2
    if not squares.size:
        return NoiseLevels(np.zeros(1), np.zeros(1))
    # a flash or a shake is no noise: the few frames that stand out are cut down to what the others show
    frames = squares.mean(axis=0)
    most = np.quantile(frames, CALMER)
    squares = squares * np.where(frames > most, most / np.maximum(frames, 1e-300), 1.0)
    middle = level[:, 2 : 2 + squares.shape[1]].ravel()
    power = _power_at(memory.at(middle), 1)
    flat = squares.ravel() / power
    classes = _classes(middle)
    return NoiseLevels(
        np.array([middle[part].mean() for part in classes]), np.array([flat[part].mean() for part in classes])
    )


def relative_noise(values: NDArray[np.float32], mask: NDArray[np.bool_] | None = None) -> float | None:
    """Return the relative error that noise alone makes in frames (t, y, x): its standard deviation over the rms of u.

    Both count inside ``mask`` (y, x) alone, as errors do. None for fewer than five frames: noise does not show in them.
    """
    where = slice(None) if mask is None else mask
    # five frames at a time: a whole window in double precision is many times the recording
    size = float(np.mean([np.mean(np.square(frame[where], dtype=float)) for frame in values]))
    if len(values) < len(WEIGHTS) or not size > 0:
        return None
    runs = (values[k : k + len(WEIGHTS)] for k in range(len(values) - len(WEIGHTS) + 1))
    squares = [np.mean(fourth_difference(np.moveaxis(run, 0, -1))[where] ** 2) for run in runs]
    return float(np.sqrt(_quiet_mean(np.array(squares)[None]) / POWER / size))


def cell_noise(values: NDArray[np.float32]) -> tuple[float, float]:
    """Return the standard deviation of the noise of single cells: of all of it, and of what half of the frames show.

    Where an encoder corrects the picture now and then only, or levels jump, most frames show less.
    """
    differences = fourth_difference(np.moveaxis(values[:, ::3, ::3], 0, -1))
    if not differences.size:
        return 0.0, 0.0
    usual = float(np.median(np.abs(differences))) / NORMAL_MEDIAN
    return float(np.sqrt(np.mean(differences**2) / POWER)), usual / POWER**0.5
