"""A law in a view: its fit, what it leaves, and what noise and the recording's known faults would leave of a right law.

    b = Zξ + r,      cov r = (I − P) S (I − P),      P = Z Z⁺,

Z holds the law's columns and the drift's. S is what a right law leaves before anything is fitted: the camera's noise,
carried through the test functions, and the systematic errors that are stated anyway (``faults``): a rate
that is off by a share of itself, independently from one test function to the next, and a zero level that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from video2pde.discovery.regression import solve_columns
from video2pde.discovery.weighted import Profiles, WeightedPart
from video2pde.fit.faults import Faults, SEEN_IN_RATE, SPACE
from video2pde.fit.noise import CALM, carried, fourth_difference, noise_by_level, NORMAL_MEDIAN, remove_common
from video2pde.fit.view import View
from video2pde.terms import DRIFT
from video2pde.terms.parse import U
from video2pde.terms.term import Term

Array = NDArray[np.float64]

NUMERICS = 1e-4
"""Error of the weak system itself on an exact field, as a share of the signal: grid, test functions, rounding."""
STILL, FEWEST_STILL = 1.0, 8
"""Rate, in standard deviations of the noise, below which nothing happens; and places needed at a time to tell."""
QUIETEST = 0.5
"""Share of the mean variance below which the variance of no test function is taken."""
FLAT = 0.3
"""Levels from cell to cell below which rounding is the same for all pixels of a cell."""
TELL_FAULTS = ("u", "grad_squared")
"""Terms whose columns say how large faults of light and of rounding are, whatever the law."""
RANK = 1e-9
"""Singular value, relative to the largest, below which a direction of the design counts as none."""


@dataclass(frozen=True, eq=False)
class LawFit:
    """Hold the weak fit of one law in one view.

    ``coefficients`` by term; ``design`` (M, k) the law's columns first; ``spread`` (M, M) is S, ``noisy`` the share of
    it that is noise, the rest being the recording's faults. Residuals are in the units of b.
    """

    names: tuple[str, ...]
    coefficients: Mapping[str, float]
    design: Array
    target: Array
    residual: Array
    spread: Array
    noisy: float = 1.0

    @cached_property
    def span(self) -> Array:
        """Orthonormal columns that span the design."""
        return orthonormal(self.design)

    def without(self, columns: Array) -> Array:
        """Take from columns what the law and its drift can explain of them."""
        return np.asarray(columns - self.span @ (self.span.T @ columns))

    def without_drift(self, column: Array) -> Array:
        """Take from a column what the drift (and what else belongs to the model beside the law) can explain of it."""
        rest = orthonormal(self.design[:, len(self.names) :])
        return np.asarray(column - rest @ (rest.T @ column))

    @cached_property
    def left_spread(self) -> Array:
        """The covariance of the residual, (M, M)."""
        half = self.without(self.spread)
        return self.without(half.T)

    @property
    def signal(self) -> float:
        return float(self.target @ self.target)

    @property
    def unexplained(self) -> float:
        """Share of the weak signal that the law leaves."""
        return float(self.residual @ self.residual) / self.signal

    @property
    def expected(self) -> float:
        """The same as noise and the recording's known faults would leave it of a right law."""
        return float(np.trace(self.left_spread)) / self.signal

    @property
    def standardised(self) -> Array:
        """The residual of each test function in its standard deviations."""
        return self.in_deviations(self.residual)

    def in_deviations(self, residual: Array) -> Array:
        """Return a residual (M,) in the standard deviations of each test function."""
        variance = np.maximum(np.diag(self.left_spread), 0.1 * np.diag(self.spread))
        # an encoder's errors are not the same at all times: the quietest places are not held to what they seem to be
        return np.asarray(residual / np.sqrt(np.maximum(variance, QUIETEST * variance.mean())))

    @cached_property
    def freedom(self) -> float:
        """How many independent values the residual has: (tr C)²/tr C², C its covariance."""
        return float(np.trace(self.left_spread) ** 2 / np.sum(self.left_spread**2))

    def answer(self, rows: NDArray[np.bool_] | None = None) -> Array:
        """Return the matrix that makes the law's coefficients from the target, (terms, M), or from some ``rows``."""
        kept = np.ones(len(self.target), bool) if rows is None else rows
        size = np.linalg.norm(self.design[kept], axis=0)
        scale = np.where(size > 0, size, 1.0)
        matrix = np.zeros((len(self.names), len(self.target)))
        inverse = np.linalg.pinv(self.design[kept] / scale, rcond=1e-6) / scale[:, None]
        matrix[:, kept] = inverse[: len(self.names)]
        return matrix

    @cached_property
    def whole(self) -> Array:
        """The matrix that makes the law's coefficients from the whole target, (terms, M)."""
        return self.answer()

    @cached_property
    def coefficient_errors(self) -> Array:
        """Standard errors of the coefficients, (terms,)."""
        answer = self.whole
        return np.sqrt(np.maximum(np.diag(answer @ self.spread @ answer.T), 0.0))


def orthonormal(columns: Array, rank: float = RANK) -> Array:
    """Return orthonormal columns that span the given ones, each of which counts alike."""
    size = np.linalg.norm(columns, axis=0)
    kept = columns[:, size > 0] / size[size > 0]
    if not kept.shape[1]:
        return np.zeros((len(columns), 0))
    left, values, _ = np.linalg.svd(kept, full_matrices=False)
    return np.asarray(left[:, values > rank * values[0]])


def fit_law(
    view: View,
    names: Sequence[str],
    faults: Faults,
    extra: Array | None = None,
    slow: float = 1.0,
    allowed: Array | None = None,
) -> LawFit:
    """Fit a law, its drift along with it, to the lattice.

    ``extra`` (M, k): effects that belong to the model; ``slow``: factor of noise that lasts (see :func:`slow_noise`);
    ``allowed`` (M, M): the covariance of what else a right law may leave.
    """
    design, target = _design(view, names, extra), view.system.b
    found = solve_columns(design, target, RANK)
    coefficients = {name: float(value) for name, value in zip(names, found, strict=False)}
    noise = np.sqrt(max(slow, 1.0)) * noise_deviations(view, coefficients)
    spread = _spread(view, noise, coefficients, faults)
    if allowed is not None:
        spread = spread + allowed
    noisy = float(np.sum(noise**2) / np.trace(spread))
    return LawFit(tuple(names), coefficients, design, target, target - design @ found, spread, noisy)


def _design(view: View, names: Sequence[str], extra: Array | None) -> Array:
    more = np.zeros((len(view.centres), 0)) if extra is None else extra
    return np.concatenate([view.columns(names), view.columns(DRIFT), view.drift, more], axis=1)


def noise_deviations(view: View, coefficients: Mapping[str, float]) -> Array:
    """Return the standard deviations that the camera's noise has in b and in Σ c_j T_j, (2, M).

    In space it is measured on the filtered frames as they are; in time it is carried through the test function: its
    slope for b, its values for the law.
    """
    # the drift's own columns overlap with those of its correction in time: noise is carried by the drift as measured
    filtered, law = view.series[0], view.law_series({**coefficients, **dict.fromkeys(DRIFT, 1.0)})
    patterns = np.stack([np.ones(len(filtered)), filtered.mean(axis=1)])
    common = len(filtered) > 4 * len(patterns)
    left = 1 - len(patterns) / len(filtered) if common else 1.0  # share of the noise that taking off leaves
    calm = uniform_filter1d(filtered, CALM, axis=1, mode="nearest")
    level = calm[view.place, view.centres[:, 0]]
    value, slope = view.kernels
    deviations = []
    for series, weights in ((filtered, slope), (law, value)):
        noise = remove_common(series, patterns) if common else series
        found = noise_by_level(noise, calm, view.memory)
        deviations.append(np.sqrt(found.at(level) * view.memory.variance_of(weights, level) / left))
    return np.stack(deviations)


def slow_noise(view: View, names: Sequence[str], extra: Array | None = None) -> float:
    """Return the factor by which noise that changes slowly exceeds what differences from frame to frame show of it.

    An encoder corrects a still background now and then only, and leaves errors that last. They show where nothing
    happens: there b itself is noise, whatever the law. What all places have in common is light, and not counted.
    """
    found = solve_columns(_design(view, names, extra), view.system.b, RANK)
    coefficients = {name: float(value) for name, value in zip(names, found, strict=False)}
    variance = np.sum(noise_deviations(view, coefficients) ** 2, axis=0)
    moved = {**coefficients, **dict.fromkeys(DRIFT, 1.0)}
    rate = view.columns(list(moved)) @ np.array(list(moved.values()))
    still = np.abs(rate) < STILL * np.sqrt(variance)
    moments, when = np.unique(view.centres[:, 0], return_inverse=True)
    left = []
    for index in range(len(moments)):
        rows = np.flatnonzero(still & (when.reshape(-1) == index))
        if len(rows) >= FEWEST_STILL:
            own = view.system.b[rows]
            left.append((own - np.median(own)) / np.sqrt(variance[rows]))
    if sum(map(len, left)) < 2 * FEWEST_STILL:
        return 1.0
    deviation = float(np.median(np.abs(np.concatenate(left)))) / NORMAL_MEDIAN
    return max(1.0, deviation**2)


def _spread(view: View, noise: Array, coefficients: Mapping[str, float], faults: Faults) -> Array:
    """Return the covariance of what noise, and what grid, rounding and encoder are known to do, leave, (M, M).

    What a test function sees of them is shared with others as its values are or as its slopes are; an unknown level
    and light move all at once.
    """
    by_slope, by_value = noise
    rate = view.columns(list(coefficients)) @ np.array(list(coefficients.values()))
    peak = float(view.kernels[0].max()) / view.film.dt
    step = np.sqrt(faults.steps * faults.level * peak * np.abs(rate)) * flatness(view, faults)
    values = np.stack([by_value, faults.share * np.abs(rate), step], axis=1)
    slopes = np.stack([by_slope, np.full(len(rate), patch_error(view, faults))], axis=1)
    shifted = faults.zero * answer_to_zero(view, coefficients) if faults.zero > 0 else np.zeros(len(rate))
    at_once = np.stack([shifted, rate_by_light(view)], axis=1)
    spread = view.overlap * (values @ values.T)
    spread += view.overlap_of_slopes * (slopes @ slopes.T)
    spread += at_once @ at_once.T
    spread[np.diag_indices(len(spread))] += NUMERICS**2 * np.mean(view.system.b**2)
    return np.asarray(spread)


def rate_by_light(view: View) -> Array:
    """Return the rate that an even change of the light, as far as it may be left, would show as, (M,)."""
    light = view.film.light
    if light is None or "u" not in view.terms:
        return np.zeros(len(view.centres))
    evenly = answer_to_zero(view, {"u": 1.0})  # a test function's average of 1
    values = view.columns(["u"])[:, 0]
    return np.asarray(light.unknown / view.film.duration * evenly * light.share(values / evenly))


def patch_error(view: View, faults: Faults) -> float:
    """Return what patches that an encoder leaves off do to a rate, root mean square.

    They last as long as it takes to matter most, the width of the test function; in space it averages over several.
    """
    grid, widths = view.film.grid, view.widths
    patch = grid.ny * grid.nx / SPACE**2
    averaged = min(1.0, patch / (4 * np.pi * widths.y * widths.x))
    lasting = carried(view.kernels[1], float(np.exp(-1 / widths.t)))
    return float(SEEN_IN_RATE * faults.patch * np.sqrt(averaged * lasting))


def flatness(view: View, faults: Faults) -> Array:
    """Say where all pixels of a cell round to one level and jump together: 1 on flat ground, 0 on a slope, (M,)."""
    if "grad_squared" not in view.slots or faults.level == 0:
        return np.zeros(len(view.centres))
    slope = np.maximum(view.columns(["grad_squared"])[:, 0], 0.0) * view.film.grid.dx * view.film.grid.dy
    return np.asarray(np.exp(-slope / (FLAT * faults.level) ** 2))


def answer_to_zero(view: View, coefficients: Mapping[str, float]) -> Array:
    """Return what a unit error of the level u = 0 does to the law's rate: Σ c_j D^α ∂f_j/∂u, (M,)."""
    total = np.zeros(len(view.centres))
    for name, value in coefficients.items():
        total += value * view.once(("raised", name), partial(_raised, view, view.terms[name]))
    return total


def _raised(view: View, term: Term) -> Array:
    grid = view.film.grid
    flat_y, flat_x = Profiles.powers(grid.y, 0), Profiles.powers(grid.x, 0)
    parts = [
        WeightedPart(flat_y, flat_x, part.derivative, part.density.diff(U))
        for part in term.parts
        if part.density.diff(U).free_symbols or (part.density.diff(U) != 0 and sum(part.derivative) == 0)
    ]
    return view.moments.columns(parts)[:, 0, 0] if parts else np.zeros(len(view.centres))


def common_flicker(view: View) -> float:
    """Return the share of the noise of filtered frames that all places have in common: flickering light."""
    noise = fourth_difference(view.series[0])
    if not noise.size or len(noise) < 9:
        return 0.0
    patterns = np.stack([np.ones(len(noise)), view.series[0].mean(axis=1)])
    whole = float(np.mean(noise**2))
    return 1 - float(np.mean(remove_common(noise, patterns) ** 2)) / whole if whole > 0 else 0.0
