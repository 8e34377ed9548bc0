"""Rollout calibration: coefficients that predict, and how well they are known.

Every contender is fitted to the rollout of the whole training window from several starts; all must end at the
same place. A block bootstrap gives the intervals, to which a stated systematic floor is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from video2pde.calibration.bootstrap import Bootstrap, bootstrap_fit
from video2pde.calibration.coding import lag_bias
from video2pde.calibration.fit import coefficient_scales, Fit, fit_rollout, Problem
from video2pde.calibration.growth import refit_growing
from video2pde.calibration.linearise import prepare_window, Window
from video2pde.calibration.simplex import fit_nelder_mead
from video2pde.calibration.systematic import finer_problem, grid_bias, noise_variance
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Field, held_back, LATE
from video2pde.parallel import count_workers
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings, Settings
from video2pde.terms import Term

Array = NDArray[np.float64]

SCHEME_FLOOR = 0.0003
"""Systematic error that stays in a coefficient, relative, where the grid resolves the picture well."""
SHARE_LEFT = 0.2
"""Share of the grid's and the scheme's bias that may remain once it is taken off; measured on known-truth fields."""
START_LEFT = 0.5
"""The same of what fitting the initial frame along changed (see ``growth``): it was not known before, and is not quite
known now."""
FILM_FLOOR = 0.003
"""The same for a film of 8 bits, whose rounding and compression are no noise that averages out; measured on films."""
HELD_BACK, HALF_HELD = 0.015, 0.05
"""What is added to it at most for a film whose encoder holds changes back (see ``field.held_back``), and the share of
changes held back that adds half of it: a little shows that the quantiser is coarse, more only that noise is low."""
NOT_FITTED = 0.05
"""What is added for all changes held back, in proportion, where the lag was not fitted along (see ``coding``)."""
LAG_LEFT = 1.5
"""What an encoder's lag may have added beyond what was taken off, as a multiple of that: a third to two thirds show."""
ZERO_LEVEL = 0.0003
"""What is not known of u = 0 on a film of 8 bits: a thirteenth of a level. Terms without gradients depend on it."""
CODING_NOISE = 0.0015
"""Root mean square that rounding and compression leave in a film's cells; measured on films."""
SUBSTEPS, LEAST_SUBSTEPS, SMOOTH_GUESS = 10, 4, 1.0
"""Factor on the substeps that the guess needs in its first frame (counted as this many at least, on a picture smoothed
by so many pixels), up to which a fit's rollouts may go."""
MISFIT = 4.0
"""Unexplained squared error, in units of the noise, from which a law is an approximation; right laws leave up to 2."""
SAME_PLACE = 0.01
"""Relative difference up to which two fits have ended at the same place."""
POOR = 0.1
"""Factor on the weak fit that makes the deliberately poor start."""
START_SHARE = 10
"""The initial frame is estimated from this fraction of the window's frames."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One fit from one start: where it came from, where it ended."""

    source: str
    guess: tuple[float, ...]
    coefficients: tuple[float, ...]
    mse: float
    converged: bool
    reason: str
    rollouts: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """Hold a calibrated contender.

    ``estimates`` by term: value, less the bias by noise and by the grid, and 95 % interval, the systematic floor
    ``floor`` included; ``drift_scale`` how the refined drift compares with the given one along each axis;
    ``same_place`` whether all starts ended there; ``misfit`` the squared error that the law leaves in the training
    window, in units of the camera's noise: near 1 for a law that says everything; ``grid_bias`` (K,) what grid and
    scheme had added to the fit, ``lag_bias`` (K,) what an encoder's lag had.
    """

    library: str
    terms: tuple[Term, ...]
    estimates: Mapping[str, Estimate]
    drift_scale: Mapping[str, Estimate]
    fit: Fit
    attempts: tuple[Attempt, ...]
    same_place: bool
    bootstrap: Bootstrap | None
    floor: float
    misfit: float = float("nan")
    grid_bias: Array = field(default_factory=lambda: np.zeros(0))
    lag_bias: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def model(self) -> Model:
        """The calibrated law, the drift as given."""
        return Model(self.terms, tuple(self.estimates[term.name].value for term in self.terms))

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} = {estimate}" for name, estimate in self.estimates.items())
        return f"Calibration({self.library}: {listed}; train rMSE {self.fit.mse**0.5:.3g})"


@dataclass(frozen=True)
class Errors:
    """What a recording gets wrong other than by noise.

    ``floor``: relative systematic error that no interval can fall below; ``zero``: what is not known of the level
    u = 0; ``rounding``: error in u below which the recording says nothing; ``held``: share of changes held back.
    """

    floor: float = SCHEME_FLOOR
    zero: float = 0.0
    rounding: float = 0.0
    held: float = 0.0

    @property
    def lags(self) -> bool:
        return self.held > LATE

    def floor_of(self, fitted_lag: bool) -> float:
        """Give the systematic error of a coefficient, relative, with the encoder's lag fitted along or not."""
        coarse = HELD_BACK * self.held / (self.held + HALF_HELD)
        return self.floor + coarse + (0.0 if fitted_lag else NOT_FITTED * self.held)


EXACT = Errors()


def recording_errors(train: Field) -> Errors:
    """Say what rounding to 8 bits and compression do to a recording; deeper ones and fields are taken as they are."""
    bits = train.provenance.bits
    if bits is None or bits > 8:
        return Errors()
    return Errors(FILM_FLOOR, ZERO_LEVEL, CODING_NOISE, held_back(train.values))


def bound_substeps(window: Window, terms: Sequence[Term], guess: Array, settings: RolloutSettings) -> RolloutSettings:
    """Limit the substeps of a fit's rollouts to a multiple of what the guess needs.

    A step of the fit that leads to far steeper pictures would be refused anyway, after thousands of substeps a frame.
    """
    model = Model(tuple(terms), tuple(forward(term, value) for term, value in zip(terms, guess, strict=True)))
    smooth = gaussian_filter(np.asarray(window.values[0], float), SMOOTH_GUESS)
    first = simulate(model, smooth, window.times[:2], window.grid, settings=settings)
    needed = SUBSTEPS * max(int(first.substeps.max()), LEAST_SUBSTEPS)
    return settings.model_copy(update={"max_substeps": min(settings.max_substeps, needed)})


def make_problem(
    train: Field,
    terms: Sequence[Term],
    reference: Mapping[str, float],
    velocity: Array,
    moments: Mapping[str, Array],
    settings: Settings,
) -> Problem:
    """Set up the fit of a law to the training window.

    Parameters
    ----------
    reference : coefficients for which ``velocity`` (t, 2) is the drift, by term.
    moments : (t, 2) by term, how the law moves the centroid: the drift follows the coefficients by −m_j, unless a
        spline refines it anyway.
    """
    options = settings.calibration
    values = np.array([reference[term.name] for term in terms])
    slopes = np.zeros((len(terms), len(train), 2))
    if options.drift != "spline" and settings.drift.law_correction:
        slopes = np.stack([-moments[term.name] for term in terms])
    window = prepare_window(train, options.max_points, settings.run.seed, options.undo_coding)
    scales = coefficient_scales(window, terms, values)
    return Problem(
        tuple(terms), window, velocity, slopes, values, options.drift, options.drift_knots,
        bound_substeps(window, terms, values, settings.rollout), max(5, len(train) // START_SHARE), scales,
        tuple(i for i, term in enumerate(terms) if term.name in options.positive), count_workers(settings.run.workers),
    )  # fmt: skip


def forward(term: Term, coefficient: float) -> float:
    """Turn backward diffusion, which no rollout survives, into as much forward diffusion."""
    return abs(coefficient) if term.name == "laplacian" else coefficient


def calibrate(
    library: str,
    problem: Problem,
    starts: Mapping[str, Sequence[float]],
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
    errors: Errors = EXACT,
) -> Calibration:
    """Fit a contender from every start, check that they agree, and bootstrap the best fit.

    ``starts``: coefficients by source, such as ``weak`` and ``pinn``; a deliberately poor one is added.
    ``errors``: what the recording gets wrong other than by noise; it widens the intervals.
    """
    options = settings.calibration
    guesses = {name: [float(value) for value in values] for name, values in starts.items()}
    first = next(iter(guesses.values()))
    guesses.setdefault("poor", [POOR * forward(term, value) for term, value in zip(problem.terms, first, strict=True)])
    minimise = fit_rollout if options.optimizer == "lm" else fit_nelder_mead
    fits = {source: minimise(problem, guess, options) for source, guess in guesses.items()}
    attempts = tuple(
        Attempt(
            source,
            tuple(guesses[source]),
            tuple(float(c) for c in fit.coefficients),
            fit.mse,
            fit.converged,
            fit.reason,
            fit.rollouts,
        )
        for source, fit in fits.items()
    )
    usable = [fit for fit in fits.values() if np.isfinite(fit.mse)]
    if not usable:
        raise StageError(f"no rollout of {library} could be completed: {attempts[0].reason}")
    best = min(usable, key=lambda fit: (not fit.converged, fit.mse))
    scales = np.asarray(problem.scales)
    apart = [
        np.max(np.abs(fit.coefficients - best.coefficients) / np.maximum(np.abs(best.coefficients), 1e-3 * scales))
        for fit in fits.values()
    ]
    boot, found_lag, (shift, moved) = None, None, np.zeros((2, len(scales)))
    variance = max(noise_variance(problem.window), errors.rounding**2, 1e-30)
    if best.converged and options.optimizer == "lm":
        grown = refit_growing(problem, best)
        if grown is not None:
            moved, best = grown.coefficients - best.coefficients, grown
        known = finer_problem(problem, best)
        shift = grid_bias(known, best)
        if options.undo_coding and errors.lags and best.mse < MISFIT * variance:
            found_lag = lag_bias(problem, best, known)
    if options.replicates > 0 and best.converged:
        # Nelder–Mead leaves a spline of the drift alone, and so do its replicates
        posed = replace(problem, drift="fixed") if problem.drift == "spline" and not len(best.drift) else problem
        boot = bootstrap_fit(posed, best, options, posed.workers, progress)
    floor, lag = errors.floor_of(found_lag is not None), np.zeros(len(scales)) if found_lag is None else found_lag
    return Calibration(
        library, problem.terms, _estimates(problem, best, boot, Biases(shift, moved, lag), floor, errors.zero),
        _drift_scale(problem, best, boot), best, attempts, bool(max(apart) < SAME_PLACE), boot, floor,
        best.mse / variance, shift, lag,
    )  # fmt: skip


class Biases(NamedTuple):
    """What had been added to the coefficients, each (K,).

    ``grid``: by grid and scheme; ``start``: by an initial frame that was not fitted along, and is now; ``lag``: by an
    encoder. Grid and lag are still to be taken off.
    """

    grid: Array
    start: Array
    lag: Array


def _estimates(
    problem: Problem, fit: Fit, boot: Bootstrap | None, biases: Biases, floor: float, zero: float
) -> dict[str, Estimate]:
    """Take off what grid and lag have added, and attach intervals: the bootstrap's, with what else is not known.

    ``floor``: the systematic error that stays, relative; ``zero``: what is not known of u = 0. All in quadrature.
    """
    result = {}
    off = biases.grid + biases.lag
    for index, term in enumerate(problem.terms):
        if boot is None or not np.isfinite(boot.low[index]):
            value = float(fit.coefficients[index] - off[index])
            result[term.name] = Estimate(value)
            continue
        found = float(boot.value[index])
        value = found - float(off[index])
        shares = zip((SHARE_LEFT, START_LEFT, LAG_LEFT), biases, strict=True)
        left = [share * bias[index] for share, bias in shares]
        systematic = np.linalg.norm([floor * value, zero * boot.offset[index], *left])
        below, above = (np.hypot(abs(end - found), systematic) for end in (boot.low[index], boot.high[index]))
        result[term.name] = Estimate(value, value - float(below), value + float(above))
    return result


def _drift_scale(problem: Problem, fit: Fit, boot: Bootstrap | None) -> dict[str, Estimate]:
    """Compare the refined drift with the given one: the factor that fits best, axis by axis."""
    scales = {}
    for axis, name in enumerate("xy"):
        given = problem.velocity[:, axis]
        power = float(given @ given)
        if power == 0:
            scales[name] = Estimate(1.0, 1.0, 1.0)
            continue
        value = float(given @ fit.velocity[:, axis]) / power
        spread = 0.0 if boot is None else float(np.abs(given) @ boot.velocity_std[:, axis]) / power
        scales[name] = Estimate(value, value - 1.96 * spread, value + 1.96 * spread)
    return scales
