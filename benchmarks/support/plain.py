"""The paper's text in plain NumPy and SciPy, as a reader would write it down: the peer that shares its method with us.

Raw centroid and Savitzky–Golay drift, fixed Gaussian test functions by convolution, λ = 10⁻³ on the coefficients,
explicit substeps with ε_visc = 0.01, Nelder–Mead on the training window's rollout. The text names no scheme for the
advection; first-order upwind is the one of the code published with it.
Two things follow the text and not its printed coefficients: time is in seconds, and the calibration rolls the whole
window out once (no concatenated blocks). Nothing here is imported from video2pde.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, optimize, signal

Array = NDArray[np.float64]
FULL = ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian")
CENTRES, SUPPORT, SIGMA_SPACE, SIGMA_TIME = 2000, 4.0, 0.06, 0.025
THRESHOLD, RIDGE, MOST_ITERATIONS = 1e-3, 1e-6, 100
VISCOSITY, SAFETY, MOST_SUBSTEPS, POINTS = 0.01, 0.25, 2000, 100_000


@dataclass(frozen=True)
class Film:
    """Frames u (t, y, x) with the paper's pitch L/(n − 1) in both directions and the time between frames."""

    u: Array
    pitch: float
    dt: float


def smooth(film: Film) -> Film:
    """Apply the Gaussian filter of σ = 1 pixel to every frame."""
    return Film(ndimage.gaussian_filter(film.u, (0, 1.0, 1.0)), film.pitch, film.dt)


def measure_drift(film: Film) -> Array:
    """Differentiate the filtered centroid ∫xu/∫u: v (t, 2) along x and y."""
    frames, ny, nx = film.u.shape
    mass = film.u.sum(axis=(1, 2))
    x = (film.u.sum(axis=1) @ np.arange(nx)) * film.pitch / mass
    y = (film.u.sum(axis=2) @ np.arange(ny)) * film.pitch / mass
    window = max(round(0.08 * frames) | 1, 5)
    return np.stack([signal.savgol_filter(c, window, 3, deriv=1, delta=film.dt) for c in (x, y)], axis=1)


def weak_columns(film: Film, velocity: Array, frames: int, seed: int = 0) -> tuple[dict[str, Array], Array]:
    """Convolve every feature with Gaussians and read the result at random centres: columns by name, and b."""
    u, h = film.u, film.pitch
    sigma = np.array([SIGMA_TIME * frames, SIGMA_SPACE * u.shape[1], SIGMA_SPACE * u.shape[2]])
    reach = np.ceil(SUPPORT * sigma).astype(int)
    rng = np.random.default_rng(seed)
    at = tuple(rng.integers(r, n - r, CENTRES) for r, n in zip(reach, u.shape, strict=True))
    spacing = (film.dt, h, h)

    def column(values: Array, *order: int) -> Array:
        # a convolution with the derivative of a Gaussian is the derivative of the smoothed field: the sign of
        # integration by parts is in it already
        filtered = ndimage.gaussian_filter(values, sigma, order=order, truncate=SUPPORT, mode="nearest")
        return np.asarray(filtered[at] / np.prod([s**n for s, n in zip(spacing, order, strict=True)]))

    u_y, u_x = (np.asarray(slope) for slope in np.gradient(u, h, h, axis=(1, 2)))
    square = u_x**2 + u_y**2
    columns = {
        "constant": np.ones(CENTRES),
        "u": column(u, 0, 0, 0),
        "u_squared": column(u**2, 0, 0, 0),
        "grad_squared": column(square, 0, 0, 0),
        "u_grad_squared": column(u * square, 0, 0, 0),
        "laplacian": column(u_x, 0, 0, 1) + column(u_y, 0, 1, 0),
        "drift_x": -column(velocity[:, 0, None, None] * u, 0, 0, 1),
        "drift_y": -column(velocity[:, 1, None, None] * u, 0, 1, 0),
    }
    return columns, column(u, 1, 0, 0)


def fit_sparse(columns: dict[str, Array], b: Array, names: Sequence[str]) -> dict[str, float]:
    """Repeat ridge least squares on the active terms and drop coefficients below λ."""
    active = [*names, "drift_x", "drift_y"]
    found: dict[str, float] = {}
    for _ in range(MOST_ITERATIONS):
        theta = np.stack([columns[name] for name in active], axis=1)
        xi = np.linalg.solve(theta.T @ theta + RIDGE * np.eye(len(active)), theta.T @ b)
        found = {name: float(value) for name, value in zip(active, xi, strict=True) if abs(value) >= THRESHOLD}
        if len(found) in (0, len(active)):
            break
        active = list(found)
    return found


def advance(u: Array, law: dict[str, float], v: Array, pitch: float, step: float) -> Array:
    """Take one explicit step of u_t = −v·∇u + a|∇u|² + (β + ε)Δu, upwind for the drift, edges repeated."""
    padded = np.pad(u, 1, mode="edge")
    west, east, north, south = padded[1:-1, :-2], padded[1:-1, 2:], padded[:-2, 1:-1], padded[2:, 1:-1]
    change = (law.get("laplacian", 0.0) + VISCOSITY) * (west + east + north + south - 4 * u) / pitch**2
    change -= v[0] * ((u - west) if v[0] > 0 else (east - u)) / pitch
    change -= v[1] * ((u - north) if v[1] > 0 else (south - u)) / pitch
    if a := law.get("grad_squared", 0.0):
        change += a * ((east - west) ** 2 + (south - north) ** 2) / (4 * pitch**2)
    return np.clip(u + step * change, 0.0, 1.0)


def roll_out(first: Array, law: dict[str, float], velocity: Array, film: Film) -> Array:
    """Advance the first frame over the window, with as many substeps as the stability limit asks for."""
    frames = np.empty((len(velocity), *first.shape))
    frames[0] = u = first
    diffusion = abs(law.get("laplacian", 0.0)) + VISCOSITY
    for k in range(1, len(velocity)):
        steepest = np.abs(np.diff(u, axis=0)).max() + np.abs(np.diff(u, axis=1)).max()
        speed = np.abs(velocity[k - 1]).sum() + 2 * abs(law.get("grad_squared", 0.0)) * steepest / film.pitch
        limit = SAFETY / (4 * diffusion / film.pitch**2 + speed / film.pitch)
        count = min(max(int(np.ceil(film.dt / limit)), 1), MOST_SUBSTEPS)
        for _ in range(count):
            u = advance(u, law, velocity[k - 1], film.pitch, film.dt / count)
        frames[k] = u
    return frames


def calibrate(film: Film, velocity: Array, start: dict[str, float], seed: int = 42) -> dict[str, float]:
    """Minimise the rollout's mean squared error over at most 10⁵ points by Nelder–Mead, 300 iterations at most."""
    rng = np.random.default_rng(seed)
    at = rng.choice(film.u.size, min(POINTS, film.u.size), replace=False)
    names = list(start)

    def objective(values: Array) -> float:
        law = dict(zip(names, map(float, values), strict=True))
        return float(np.mean((roll_out(film.u[0], law, velocity, film).ravel()[at] - film.u.ravel()[at]) ** 2))

    found = optimize.minimize(objective, list(start.values()), method="Nelder-Mead", options={"maxiter": 300})
    return dict(zip(names, map(float, found.x), strict=True))
