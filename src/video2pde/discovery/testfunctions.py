"""Gaussian test functions: widths, sampled kernels with their derivatives, and random centres.

    φ(s) = exp(−s²/2σ²) · (1 − (s/R)⁸)⁵ for |s| < R = k_σ σ, and 0 beyond.

The last factor is 1 over most of the support and takes φ and its first four derivatives to zero at R, so
that integration by parts leaves nothing at the edge (a Gaussian cut off at 4σ leaves 3·10⁻⁴).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, perm

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.hermite_e import hermeval
from numpy.typing import NDArray
from scipy import ndimage

from video2pde.errors import InputError
from video2pde.settings import WeakSettings

Array = NDArray[np.float64]

SMALLEST_SIGMA = 1.5
"""In samples: below it, sums over samples no longer stand for integrals of the kernel's derivatives."""
LEAST_FRAMES = 3
"""Frames that a test function in time needs."""
INTERIOR_SHARE = 0.2
"""Share of an axis (or of the mask) that automatic widths leave for the centres."""


def gaussian_derivative(s: Array, sigma: float, order: int) -> Array:
    """Return dⁿ/dsⁿ exp(−s²/2σ²) = (−1/σ)ⁿ He_n(s/σ) exp(−s²/2σ²)."""
    unit = np.zeros(order + 1)
    unit[order] = 1.0
    z = s / sigma
    return np.asarray((-1 / sigma) ** order * hermeval(z, unit) * np.exp(-0.5 * z**2))


def profile(s: Array, sigma: float, support: float, order: int) -> Array:
    """Return φ⁽ⁿ⁾(s), not normalised; 0 outside its support."""
    reach = support * sigma
    taper = (1 - Polynomial([0, 1 / reach]) ** 8) ** 5
    inside = np.abs(s) < reach
    within = np.where(inside, s, 0.0)
    parts = [
        comb(order, k)
        * gaussian_derivative(within, sigma, k)
        * (taper.deriv(order - k) if order > k else taper)(within)
        for k in range(order + 1)
    ]
    return np.where(inside, np.sum(parts, axis=0), 0.0)


@lru_cache(maxsize=128)
def kernel(sigma: float, support: float, order: int, spacing: float) -> Array:
    """Sample φ⁽ⁿ⁾ on whole samples, with unit integral of φ; derivatives per physical unit.

    ``sigma`` in samples, ``spacing`` the physical size of a sample. The sum of kernel × values is the
    integral of φ⁽ⁿ⁾ × values. A small multiple of φ makes summation by parts exact on polynomials of degree
    n + 4, which matters where σ is two or three samples (the fourth derivative is 2 % off without it).
    """
    half = int(np.ceil(support * sigma)) - 1
    s = np.arange(-half, half + 1, dtype=float)
    phi, derivative = profile(s, sigma, support, 0), profile(s, sigma, support, order)
    if order:
        derivative = derivative + _summation_by_parts(s / sigma, phi, derivative * sigma**order, order) / sigma**order
    weights: Array = np.asarray(derivative / phi.sum() / spacing**order)
    weights.flags.writeable = False
    return weights


def _summation_by_parts(z: Array, phi: Array, derivative: Array, order: int) -> Array:
    """Return q(z)φ that makes Σ φ⁽ⁿ⁾ zᵖ = (−1)ⁿ p!/(p − n)! Σ φ zᵖ⁻ⁿ for p up to n + 4."""
    powers = range(order % 2, order + 5, 2)
    wanted = [(-1) ** order * perm(p, order) * np.sum(phi * z ** max(p - order, 0)) for p in powers]
    tests = np.stack([z**p for p in powers])
    missing = np.array(wanted) - tests @ derivative
    return np.asarray(np.linalg.solve(tests @ (tests * phi).T, missing) @ (tests * phi))


@dataclass(frozen=True)
class Widths:
    """Widths of the test functions, in frames and pixels, and how far they reach."""

    t: float
    y: float
    x: float
    support: float
    notes: tuple[str, ...] = ()
    integrated: bool = False

    @property
    def reach(self) -> tuple[int, int, int]:
        """Samples that a centre must keep to each side, along t, y, x.

        ``integrated``: φ is integrated in time between frames (see ``timekernels``), so that it must end on a frame.
        """
        t, y, x = (int(np.ceil(self.support * sigma)) - 1 for sigma in (self.t, self.y, self.x))
        return t + self.integrated, y, x


def choose_widths(
    shape: tuple[int, int, int],
    total_frames: int,
    settings: WeakSettings,
    mask: NDArray[np.bool_] | None = None,
    even: bool = True,
) -> Widths:
    """Take the widths from the settings, reduced where a small recording or mask leaves no room.

    ``shape`` is that of the training window; ``total_frames`` counts the whole recording, of which
    σ_t is a share. ``even``: frames are evenly spaced in time.
    """
    wanted = (settings.sigma_time * total_frames, settings.sigma_space * shape[1], settings.sigma_space * shape[2])
    keys = ("weak.sigma_time", "weak.sigma_space", "weak.sigma_space")
    shares = (1 / total_frames, 1 / shape[1], 1 / shape[2])
    chosen, notes, integrated = [], [], not even
    for sigma, samples, key, share, axis in zip(wanted, shape, keys, shares, "tyx", strict=True):
        largest = (1 - INTERIOR_SHARE) * samples / (2 * settings.support)
        if not settings.shrink:
            if sigma * settings.support * 2 > samples:
                raise InputError(
                    f"the test functions leave no room along {axis}: 2·{settings.support:g}·σ = "
                    f"{2 * settings.support * sigma:.0f} of {samples} samples; reduce {key} from {sigma * share:.3g} "
                    f"to {largest * share:.2g} or less"
                )
            chosen.append(sigma)
            continue
        if axis == "t" and 2 * settings.support * SMALLEST_SIGMA > (1 - INTERIOR_SHARE) * samples:
            chosen.append(_few_frames(samples, settings.support))
            integrated = True
            notes.append(
                f"{samples} frames to fit on: test functions in time reach {round(settings.support * chosen[-1])} "
                "frames to each side, and tell little about how a law changes in time"
            )
            continue
        fitted = max(min(sigma, largest), SMALLEST_SIGMA)
        if 2 * settings.support * fitted > samples:
            raise InputError(
                f"{samples} samples along {axis} are too few for a test function of "
                f"{2 * settings.support * fitted:.0f} samples; use a finer grid (--grid) or more pixels"
            )
        if abs(fitted - sigma) > 1e-9:
            notes.append(f"σ along {axis} changed from {sigma:.2f} to {fitted:.2f} samples to fit the recording")
        chosen.append(fitted)
    widths = Widths(chosen[0], chosen[1], chosen[2], settings.support, tuple(notes), integrated)
    return widths if mask is None else _fit_mask(widths, mask, settings)


def _few_frames(samples: int, support: float) -> float:
    """Return the σ in frames with which a test function fits into few frames, and leaves two centres where it can."""
    if samples < LEAST_FRAMES:
        raise InputError(f"{samples} frames to fit on are too few: {LEAST_FRAMES} at least are needed")
    reach = max(1, (samples - 1) // 2 - (samples >= 6))
    return reach / support


def _fit_mask(widths: Widths, mask: NDArray[np.bool_], settings: WeakSettings) -> Widths:
    """Shrink the spatial widths until enough of the mask's inside can hold a centre."""
    current = widths
    while True:
        room = interior(mask.shape, current, mask).sum() / mask.sum()
        if room >= INTERIOR_SHARE or (room > 0 and not settings.shrink):
            break
        y, x = 0.95 * current.y, 0.95 * current.x
        if not settings.shrink or min(y, x) < SMALLEST_SIGMA:
            raise InputError(
                f"no test function of σ = {current.x:.2f} pixels fits into the mask ({mask.sum()} pixels); use a finer "
                "grid (--grid) or a larger mask"
            )
        current = replace(current, y=y, x=x)
    if current is not widths:
        note = f"σ in space changed from {widths.x:.2f} to {current.x:.2f} pixels to fit the mask"
        current = replace(current, notes=(*current.notes, note))
    return current


def interior(shape: tuple[int, ...], widths: Widths, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Mark the pixels whose test function stays inside the picture and inside the mask."""
    ny, nx = shape
    _, ry, rx = widths.reach
    inside = np.zeros((ny, nx), bool)
    inside[ry : ny - ry, rx : nx - rx] = True
    if mask is not None:
        rows, columns = np.mgrid[-ry : ry + 1, -rx : rx + 1]
        # in the corners of the rectangle φ is below 10⁻⁵ of its height: the ellipse is what counts
        ellipse = (rows / (ry + 0.5)) ** 2 + (columns / (rx + 0.5)) ** 2 <= 1
        inside &= ndimage.binary_erosion(mask, ellipse)
    return inside


def draw_centres(
    frames: int, inside: NDArray[np.bool_], widths: Widths, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw centres (t, y, x) uniformly from where a whole test function fits."""
    reach = widths.reach[0]
    rows, columns = np.nonzero(inside)
    chosen = rng.integers(len(rows), size=count)
    times = rng.integers(reach, frames - reach, size=count)
    return np.stack([times, rows[chosen], columns[chosen]], axis=1)
