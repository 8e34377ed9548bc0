"""Light that is not even: a smooth surface f(x, y) through the brightness of the background."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMOOTH = 0.04  # share of the surface's range that the background may lie off it (rms)
DEGREES = (2, 4)  # of the surface through the background


def fit_surface(
    intensity: NDArray[np.float32], gain: Array, background: NDArray[np.bool_]
) -> tuple[NDArray[np.float32] | None, float]:
    """Lay a smooth surface through the background's brightness; return it (1 at its brightest) and its range.

    A polynomial of degree 4 is taken where it predicts left-out parts of the background better than one of degree 2,
    which is the form that lenses and lamps have to first order.
    """
    mean = np.zeros(background.shape)
    for frame, g in zip(intensity, gain, strict=True):
        mean += frame / g
    mean /= len(intensity)
    rows, columns = background.shape
    y, x = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    seen = mean[background]
    parts = (np.floor(3 * (y + 1)) + np.floor(3 * (x + 1))).astype(int)[background] % 3
    errors = []
    for degree in DEGREES:
        terms = _powers(y, x, degree)[:, background]
        if background.sum() < 20 * len(terms):
            errors.append(np.inf)
            continue
        left = [np.sqrt(np.mean((_lay(terms, seen, parts != k) - seen)[parts == k] ** 2)) for k in range(3)]
        errors.append(float(np.mean(left)))
    if not np.isfinite(min(errors)):
        return None, 0.0
    degree = DEGREES[1] if errors[1] < 0.7 * errors[0] else DEGREES[0]
    terms = _powers(y, x, degree)
    weights = np.linalg.lstsq(terms[:, background].T, seen, rcond=None)[0]
    surface = np.tensordot(weights, terms, axes=1)
    rough = float(np.sqrt(np.mean((surface[background] - seen) ** 2)))
    # light is smooth; a still plume among the background is not, and neither is one that fills the picture
    if surface.min() <= 0.05 * surface.max() or rough > SMOOTH * float(np.ptp(surface)):
        return None, 0.0
    surface /= surface.max()
    return surface.astype(np.float32), float(np.ptp(surface))


def _powers(y: Array, x: Array, degree: int) -> Array:
    return np.stack([y**i * x**j for i in range(degree + 1) for j in range(degree + 1 - i)])


def _lay(terms: Array, seen: Array, used: NDArray[np.bool_]) -> Array:
    weights = np.linalg.lstsq(terms[:, used].T, seen[used], rcond=None)[0]
    return np.asarray(weights @ terms)
