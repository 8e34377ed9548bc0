"""Point values and first derivatives of noisy, cell-averaged frames, without amplifying pixel noise.

Each axis is filtered by a Gaussian g of σ pixels, corrected so that low frequencies pass unchanged:

    (1 − p₁ ∂² + p₂ ∂⁴) g,   p₁ = s + c₁,  p₂ = s²/2 + s c₁ + c₂,  s = σ²/2,

whose transfer function is 1/sinc up to O(k⁶) for cell averages (c₁ = 1/24, c₂ = 7/5760: it also undoes
the averaging over a pixel), and 1 for point samples (c₁ = c₂ = 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.discovery.testfunctions import gaussian_derivative
from video2pde.field import Field, noise_weights
from video2pde.settings import WeakSettings

Array32 = NDArray[np.float32]
Jets = tuple[Array32, Array32, Array32]
"""u, u_x, u_y of some frames, (t, y, x) each."""

SIGMA_STEPS = ((0.01, 0.0), (0.2, 1.0), (np.inf, 1.5))
"""Noise share of the gradient's energy up to which a smoothing of the gradient (pixels) is enough."""
FEW, HOLD = 0.01, 0.3
"""Noise is all over the picture: of a normal one, the largest hundredth of all values holds 9 % of the energy. Where
that holds more than ``HOLD``, a steep front passes."""
QUIET, QUIET_ENERGY = 0.95, 0.757
"""Share of the values, smallest first, that tell the noise beside a front, and of a normal one's energy in them."""
BEYOND = 5.0
"""Standard deviations from which a value is the front's."""
MOST_KEPT = 2**27
"""Bytes up to which jets and their noise are kept."""


def jet_kernels(sigma: float, cells: bool) -> tuple[Array32, Array32]:
    """Return the corrected value and first-derivative kernels, per pixel; σ = 0: sixth-order differences."""
    c1, c2 = (1 / 24, 7 / 5760) if cells else (0.0, 0.0)
    if sigma == 0:
        return _polynomial_kernels(c1, c2)
    half = int(np.ceil(5 * sigma)) + 1
    offsets = np.arange(-half, half + 1, dtype=float)
    s = sigma**2 / 2
    p1, p2 = s + c1, s**2 / 2 + s * c1 + c2

    def corrected(order: int) -> NDArray[np.float64]:
        terms = ((0, 1.0), (2, -p1), (4, p2))
        return np.asarray(sum(p * gaussian_derivative(offsets, sigma, order + k) for k, p in terms))

    value = corrected(0)
    slope = corrected(1)
    # correlation, not convolution: weights multiply u[i + m], so the derivative's kernel is mirrored
    return (value / value.sum()).astype(np.float32), (slope / np.sum(slope * -offsets) * -1).astype(np.float32)


def _polynomial_kernels(c1: float, c2: float) -> tuple[Array32, Array32]:
    """Match the same transfer functions by weights on seven samples."""
    offsets = np.arange(-3.0, 4.0)
    powers = np.vander(offsets, increasing=True).T
    value = np.linalg.solve(powers, [1, 0, -2 * c1, 0, 24 * c2, 0, 0])
    slope = np.linalg.solve(powers, [0, 1, 0, -6 * c1, 0, 120 * c2, 0])
    return value.astype(np.float32), slope.astype(np.float32)


def point_jets(frames: Array32, sigma: float, cells: bool, dx: float, dy: float) -> tuple[Array32, Array32, Array32]:
    """Estimate u, u_x, u_y (per physical unit) of every frame; shape (t, y, x) each."""
    value, slope = jet_kernels(sigma, cells)
    u, u_x, u_y = (np.empty_like(frames) for _ in range(3))
    _filter_frames(frames, value, slope / np.float32(dx), slope / np.float32(dy), u, u_x, u_y)
    return u, u_x, u_y


class FilmJets:
    """u, u_x and u_y of a training window, and a measure of their noise where ``settings`` correct for it.

    ``sigma``: the smoothing of gradients (pixels); ``noise``: the share of the gradient's energy that is noise;
    ``limits``: of what is noise in u, u_x, u_y, where a steep front passes.
    """

    def __init__(self, field: Field, settings: WeakSettings) -> None:
        self.field, self.correct = field, settings.noise_correction
        self.sigma, self.noise, front = gradient_smoothing(field, settings)
        self.limits = _limit_noise(field, self.sigma) if front and self.correct else None
        self._kept: tuple[Jets, Jets | None] | None = None

    def keep(self) -> FilmJets:
        """Compute them all now, if they are small: several will ask."""
        if 6 * self.field.values.nbytes <= MOST_KEPT:
            self._kept = frame_jets(self.field, slice(0, len(self.field)), self.sigma, self.correct, self.limits)
        return self

    def __call__(self, window: slice) -> tuple[Jets, Jets | None]:
        """Return the jets of some frames, and their noise."""
        if self._kept is None:
            return frame_jets(self.field, window, self.sigma, self.correct, self.limits)
        jets, noise = self._kept
        return _cut(jets, window), None if noise is None else _cut(noise, window)


def _cut(jets: Jets, window: slice) -> Jets:
    u, u_x, u_y = jets
    return u[window], u_x[window], u_y[window]


def frame_jets(
    field: Field, window: slice, sigma: float, correct: bool, limits: tuple[float, ...] | None = None
) -> tuple[Jets, Jets | None]:
    """Return the jets of some frames and, with ``correct``, a measure of the jets' noise.

    The noise of u, u_x, u_y in a frame is what the second difference in time leaves over:
    n = (z_{k−1} − 2 z_k + z_{k+1})/√6 has the variance of z's noise, and hardly any signal (see ``noise_weights``) but
    where a front passes that is steeper than a frame: what lies beyond the ``limits`` is its, and no noise.
    """
    count = len(field)
    cells, dx, dy = field.grid.pitch == "cells", field.grid.dx, field.grid.dy
    if not correct or count < 3:
        return point_jets(field.values[window], sigma, cells, dx, dy), None
    middle = np.clip(np.arange(window.start, window.stop), 1, count - 2)
    low, high = min(middle[0] - 1, window.start), max(middle[-1] + 2, window.stop)
    u, u_x, u_y = point_jets(field.values[low:high], sigma, cells, dx, dy)
    if limits is not None and sigma:
        # only gradients need smoothing, and powers of a smoothed front are not those of the front
        u = point_jets(field.values[low:high], 0.0, cells, dx, dy)[0]
    inner = slice(window.start - low, window.stop - low)

    weights = noise_weights(field.times)[middle - 1].astype(np.float32)
    noise = [np.empty((len(middle), *z.shape[1:]), np.float32) for z in (u, u_x, u_y)]
    for z, out in zip((u, u_x, u_y), noise, strict=True):
        _combine_neighbours(z, middle - low, weights, out)
    for out, limit in zip(noise, limits or (), strict=False):
        out[np.abs(out) > limit] = 0.0
    return (u[inner], u_x[inner], u_y[inner]), (noise[0], noise[1], noise[2])


def gradient_smoothing(field: Field, settings: WeakSettings) -> tuple[float, float, bool]:
    """Measure the noise in the gradient and choose how much smoothing it needs; the last: a steep front passes."""
    where = slice(None) if field.mask is None else field.mask
    signal, noise, seconds = 0.0, 0.0, list[Array32]()
    for jets, weights in _samples(field, 0.0):
        for z in jets[1:]:
            second = np.tensordot(weights, z, axes=1)[where]
            noise += float(np.mean(second**2))
            signal += float(np.mean(z[1][where] ** 2))
            seconds.append(second.ravel().astype(np.float32))
    share = noise / signal if signal > 0 else 0.0
    front = share > SIGMA_STEPS[0][0] and _holds_front(np.concatenate(seconds))
    if front:
        limits = [_quiet_limit(np.concatenate(seconds[axis::2])) for axis in range(2)]
        noise = sum(float(np.mean(s**2 * (np.abs(s) <= limits[n % 2]))) for n, s in enumerate(seconds))
        share = noise / signal
    if settings.gradient_sigma is not None:
        return settings.gradient_sigma, share, front
    return next(sigma for limit, sigma in SIGMA_STEPS if share <= limit), share, front


def _samples(field: Field, sigma: float) -> Iterator[tuple[Jets, NDArray[np.float64]]]:
    """Return the jets of three frames in a row, with the weights of their second difference, a few times."""
    picks = sorted({int(k) for k in np.linspace(0, len(field) - 3, 12)}) if len(field) >= 3 else []
    cells, dx, dy = field.grid.pitch == "cells", field.grid.dx, field.grid.dy
    weights = noise_weights(field.times)
    for k in picks:
        yield point_jets(np.ascontiguousarray(field.values[k : k + 3]), sigma, cells, dx, dy), weights[k]


def _limit_noise(field: Field, sigma: float) -> tuple[float, ...]:
    """Return what noise of u, u_x and u_y stays below, beside a front; of u as it is, not smoothed."""
    where = slice(None) if field.mask is None else field.mask

    def limits(smoothing: float) -> list[float]:
        seconds = [
            [np.tensordot(weights, z, axes=1)[where] for z in jets] for jets, weights in _samples(field, smoothing)
        ]
        return [_quiet_limit(np.concatenate(each, axis=None)) for each in zip(*seconds, strict=True)]

    smoothed = limits(sigma)
    return (limits(0.0)[0], *smoothed[1:]) if sigma else tuple(smoothed)


def _holds_front(values: NDArray[Any]) -> bool:
    energy = values**2
    few = max(1, int(FEW * len(energy)))
    return float(np.partition(energy, -few)[-few:].sum()) > HOLD * float(energy.sum())


def _quiet_limit(values: NDArray[Any]) -> float:
    energy = values**2
    quiet = max(1, int(QUIET * len(energy)))
    return BEYOND * float(np.sqrt(np.partition(energy, quiet - 1)[:quiet].sum() / (QUIET_ENERGY * len(energy))))


_jit: Callable[..., Any] = njit(nogil=True, fastmath=True)


@_jit
def _filter_frames(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    frames, value, slope_x, slope_y, u, u_x, u_y
):
    count, ny, nx = frames.shape
    half = len(value) // 2
    for k in range(count):
        # element by element: slices take several times longer to compile
        padded = np.empty((ny, nx + 2 * half), np.float32)
        for j in range(ny):
            for i in range(nx):
                padded[j, half + i] = frames[k, j, i]
            for m in range(half):
                padded[j, m] = frames[k, j, min(half - 1 - m, nx - 1)]
                padded[j, half + nx + m] = frames[k, j, max(nx - 1 - m, 0)]
        along_value = np.zeros((ny, nx), np.float32)
        along_slope = np.zeros((ny, nx), np.float32)
        for j in range(ny):
            for m in range(2 * half + 1):
                wv, ws = value[m], slope_x[m]
                for i in range(nx):
                    along_value[j, i] += wv * padded[j, i + m]
                    along_slope[j, i] += ws * padded[j, i + m]
        for j in range(ny):
            for i in range(nx):
                u[k, j, i] = u_x[k, j, i] = u_y[k, j, i] = 0.0
            for m in range(2 * half + 1):
                row = j + m - half
                if row < 0:
                    row = min(-1 - row, ny - 1)
                elif row >= ny:
                    row = max(2 * ny - 1 - row, 0)
                wv, ws = value[m], slope_y[m]
                for i in range(nx):
                    u[k, j, i] += wv * along_value[row, i]
                    u_x[k, j, i] += wv * along_slope[row, i]
                    u_y[k, j, i] += ws * along_value[row, i]


@njit(nogil=True)
def _combine_neighbours(z, middle, weights, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Weigh each frame of ``middle`` and its two neighbours in time."""
    _, ny, nx = z.shape
    for t in range(len(middle)):
        k = middle[t]
        for j in range(ny):
            for i in range(nx):
                out[t, j, i] = (
                    weights[t, 0] * z[k - 1, j, i] + weights[t, 1] * z[k, j, i] + weights[t, 2] * z[k + 1, j, i]
                )
