"""Rollout calibration: coefficients that predict, and how well they are known.

Every contender is fitted to the rollout of the whole training window from several starts; all must end at the
same place. A block bootstrap knows what noise does; the error budget adds what else is corrected and uncertain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.calibration import budget
from video2pde.calibration.blocks import DRIFT
from video2pde.calibration.bootstrap import Bootstrap, bootstrap_fit
from video2pde.calibration.budget import Correction
from video2pde.calibration.carried import FlowBlock
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import BEATEN, compare_halves, Fit, fit_rollout
from video2pde.calibration.further import Omitted
from video2pde.calibration.growth import refit_growing
from video2pde.calibration.maperrors import fitted_maps, undecided
from video2pde.calibration.problem import forward, Problem
from video2pde.calibration.simplex import fit_nelder_mead
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.flow import Flow
from video2pde.html import table
from video2pde.maps import CoefficientMap
from video2pde.progress import Progress
from video2pde.rollout.model import Model
from video2pde.settings import CalibrationSettings, Settings
from video2pde.terms import Term
from video2pde.terms.words import describe

Array = NDArray[np.float64]

LOGGER = logging.getLogger("video2pde.calibration")
MISFIT = 4.0
"""Unexplained squared error, in units of the noise, from which a law is an approximation; right laws leave up to 2."""
LEAST_NOISE_LEVELS = 0.35
"""Root mean square, in levels, that rounding and compression leave in a recording's cells at least."""
SAME_PLACE, NEARLY_ZERO = 0.01, 1e-3
"""Relative difference up to which two fits have ended at the same place; coefficients below this share of their scale
are compared with that."""
POOR = 0.1
"""Factor on the weak fit that makes the deliberately poor start."""


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

    ``estimates`` by term: the plain fit with all shifts of the ``budget``, and the 95 % interval that its uncertainties
    make; ``drift_scale`` how the refined drift compares with the given one along each axis; ``starts_agree`` whether
    all starts ended at the same place; ``misfit`` the squared error that the law leaves in the training window, in
    units of the camera's noise: near 1 for a law that says everything; ``flow`` what varies in space
    beside the drift, and ``maps`` how coefficients vary, both fitted jointly; ``parameters`` of terms that are not
    linear in them, by symbol; ``held`` coefficients that were not fitted, by term, and why; ``enlarges`` the library
    whose rollouts asked for a term of it that the library lacks; ``asked``: the terms that it lacks as its rollouts
    have them, None where they were not asked (``fit.omitted``).
    """

    library: str
    terms: tuple[Term, ...]
    estimates: Mapping[str, Estimate]
    drift_scale: Mapping[str, Estimate]
    fit: Fit
    attempts: tuple[Attempt, ...]
    starts_agree: bool
    bootstrap: Bootstrap | None
    budget: tuple[Correction, ...] = ()
    misfit: float = float("nan")
    flow: Flow | None = None
    maps: tuple[CoefficientMap, ...] = ()
    parameters: Mapping[str, Estimate] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    enlarges: str = ""
    asked: tuple[Omitted, ...] | None = None

    @property
    def diagnosed(self) -> str:
        """The library whose diagnosis in weak form is this law's: of an enlarged law, that of the smaller one."""
        return self.enlarges or self.library

    @property
    def model(self) -> Model:
        """The calibrated law, the drift as given."""
        values = tuple(self.estimates[term.name].value for term in self.terms)
        return Model(self.terms, values, flow=self.flow, maps=self.maps)

    @property
    def budget_shares(self) -> Array:
        """Each line's share of the squared half-width, (lines, K); zero where there is none."""
        squares = np.array([line.uncertainty**2 for line in self.budget]).reshape(len(self.budget), len(self.terms))
        total = squares.sum(axis=0)
        return np.asarray(squares / np.where(total > 0, total, 1.0))

    def correction(self, name: str) -> Correction:
        """Return a line of the budget; one of zeros where there is none."""
        nothing = Correction(name, np.zeros(len(self.terms)), np.zeros(len(self.terms)))
        return next((line for line in self.budget if line.name == name), nothing)

    def _repr_html_(self) -> str:
        """Show the law in a notebook: coefficients with intervals, and how well it fits."""
        rows = [(describe(term).text, str(self.estimates[term.name])) for term in self.terms]
        rows += [(f"drift along {axis}, over the measured one", str(scale)) for axis, scale in self.drift_scale.items()]
        caption = f"{self.library}: {self.model.equation.text}; leaves {self.misfit:.3g} times the noise"
        return table(("term", "coefficient and 95 % interval"), rows, caption)

    @property
    def plain_mse(self) -> float:
        """Mean squared error of the best fit from a start that converged, the initial frame as it was estimated."""
        return min((attempt.mse for attempt in self.attempts if attempt.converged), default=float("inf"))

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} = {estimate}" for name, estimate in self.estimates.items())
        return f"Calibration({self.library}: {listed}; train rMSE {self.fit.mse**0.5:.3g})"


def calibrate(
    library: str,
    problem: Problem,
    starts: Mapping[str, Sequence[float]],
    settings: Settings,
    progress: Progress | None = None,
    rival: float = np.inf,
) -> Calibration:
    """Fit a contender from every start, check that they agree, bootstrap the best fit, draw up its error budget.

    Parameters
    ----------
    library : the contender's name.
    problem : from :func:`make_problem`.
    starts : coefficients by source, such as ``weak`` and ``pinn``; a deliberately poor one is added.
    settings : those of calibration.
    progress : called with the numbers of replicates done and in all.
    rival : mean squared error of another law's plain fit (``Calibration.plain_mse``); one far behind it is given up.

    Returns
    -------
    Coefficients with their intervals, the fit, and the error budget.

    Examples
    --------
    >>> field, law = vp.example_field(), vp.Model.of({"laplacian": 1.0})
    >>> settings = vp.load_settings("quick", overrides={"run.workers": 1})
    >>> still, velocity = {"laplacian": np.zeros((60, 2))}, np.tile([0.5, -0.25], (60, 1))
    >>> problem = vp.make_problem(field, law.terms, {"laplacian": 0.9}, velocity, still, settings)
    >>> round(calibrate("A", problem, {"weak": [0.9]}, settings).estimates["laplacian"].value, 2)
    1.0
    """
    options = settings.calibration
    attempts, fits = _fit_from_all(library, problem, starts, options, rival)
    plain = min((fit for fit in fits if np.isfinite(fit.mse)), key=lambda fit: (not fit.converged, fit.mse))
    agree = _agree(fits, plain, problem.law.scale)
    growing = refit_growing(problem, plain, options) if plain.converged and options.optimizer == "lm" else None
    if growing is not None:
        problem, plain = growing.problem, growing.plain
    best = plain if growing is None else growing.joint or plain
    boot = _bootstrap(problem, best, options, progress, partial(_log_draws, library, best.terms))
    lines = _draw_up(problem, plain, best, boot, options)
    estimates = dict(zip(best.terms, budget.add_up(plain.coefficients, lines), strict=True))
    estimates = budget.run_forward(problem.terms, estimates)
    return Calibration(
        library=library,
        terms=problem.terms,
        estimates=estimates,
        drift_scale=_drift_scale(problem, best, boot),
        fit=best,
        attempts=attempts,
        starts_agree=agree,
        bootstrap=boot,
        budget=lines,
        misfit=best.mse / _noise(problem),
        flow=_fitted_flow(problem, best, boot),
        maps=fitted_maps(problem.scene(best.values, best.start).model, problem.unknowns, boot, estimates),
    )


def _fit_from_all(
    library: str,
    problem: Problem,
    starts: Mapping[str, Sequence[float]],
    options: CalibrationSettings,
    rival: float,
) -> tuple[tuple[Attempt, ...], list[Fit]]:
    """Fit from every start, and from a poor one, until one is beaten by a ``rival``, or ends far behind it."""
    guesses = {name: [float(value) for value in values] for name, values in starts.items()}
    first = next(iter(guesses.values()))
    poor = [POOR * forward(term, value) for term, value in zip(problem.terms, first, strict=True)]
    guesses.setdefault("poor", [first[k] if k in problem.law.held else value for k, value in enumerate(poor)])
    minimise = partial(fit_rollout, rival=rival) if options.optimizer == "lm" else fit_nelder_mead
    attempts, fits = [], []
    for source, guess in guesses.items():
        fit = minimise(problem, guess, options)
        ended = tuple(float(c) for c in fit.coefficients)
        attempts.append(Attempt(source, tuple(guess), ended, fit.mse, fit.converged, fit.reason, fit.rollouts))
        fits.append(fit)
        if fit.beaten or (fit.converged and fit.mse > BEATEN * rival):
            break  # where further starts would end is not asked of a law that leaves so much more than another
    if not any(np.isfinite(fit.mse) for fit in fits):
        raise StageError(f"no rollout of {library} could be completed: {attempts[0].reason}")
    return tuple(attempts), fits


def _bootstrap(
    problem: Problem,
    fit: Fit,
    options: CalibrationSettings,
    progress: Progress | None,
    drawn: Callable[[Array], None],
) -> Bootstrap | None:
    if options.replicates == 0 or not fit.converged:
        return None
    # Nelder–Mead leaves a spline of the drift alone, and so do its replicates
    posed = problem if DRIFT in fit.values else problem.without(DRIFT)
    return bootstrap_fit(posed, fit, options, posed.workers, progress, drawn)


def _log_draws(library: str, terms: Sequence[str], draws: Array) -> None:
    """Enter replicates into the log, from which the studio draws their cloud while it grows."""
    if len(draws) and LOGGER.isEnabledFor(logging.DEBUG):
        rows = "; ".join(" ".join(f"{value:.6g}" for value in draw) for draw in draws)
        LOGGER.debug("replicates of %s (%s): %s", library, ", ".join(terms), rows)


def _agree(fits: Sequence[Fit], best: Fit, scale: Array) -> bool:
    """Say whether all fits ended at the same coefficients."""
    size = np.maximum(np.abs(best.coefficients), NEARLY_ZERO * scale)
    return all(bool(np.max(np.abs(fit.coefficients - best.coefficients) / size) < SAME_PLACE) for fit in fits)


def agree_on(found: Sequence[Array], best: Array) -> bool:
    """Say whether all coefficients found are the same, none of them being near zero."""
    return all(bool(np.max(np.abs(each - best) / np.abs(best)) < SAME_PLACE) for each in found)


def _noise(problem: Problem) -> float:
    """Return the variance of the recording's noise, at least that of rounding."""
    encoding = problem.window.encoding
    rounded = 0.0 if encoding is None else LEAST_NOISE_LEVELS * encoding.level
    return max(problem.variance, rounded**2, 1e-30)


def _draw_up(
    problem: Problem, plain: Fit, best: Fit, boot: Bootstrap | None, options: CalibrationSettings
) -> tuple[Correction, ...]:
    """Draw up the budget of a fit, line by line."""
    encoding = problem.window.encoding or Encoding(0.0)
    lines, found = [], best.coefficients
    if boot is not None and np.isfinite(boot.low).all():
        lines.append(budget.statistics(boot))
        lines.append(budget.rounding(encoding, boot.offset))
        lines += [budget.light(boot.light)] if problem.window.light is not None else []
    if best is not plain:
        lines.append(budget.initial_frame(found - plain.coefficients))
    if best.converged and options.optimizer == "lm":
        lines.append(budget.grid(discretisation_bias(problem, best), found))
        std = np.zeros(len(found)) if boot is None or boot.converged < 2 else boot.draws.std(axis=0, ddof=1)
        halves = compare_halves(problem, best)
        lines.append(budget.lack_of_fit(encoding, found, halves.beyond_noise(std), halves.reach_beyond_noise(std)))
    lines.append(budget.encoder(encoding, found))
    if problem.maps:
        lines.append(undecided(problem.maps, best.terms))
    return tuple(lines)


def _fitted_flow(problem: Problem, fit: Fit, boot: Bootstrap | None) -> Flow | None:
    """Return the flow with what the fit changed of it; its errors hold the spread of the replicates."""
    flow = problem.scene(fit.values, fit.start).model.flow
    block = next((block for block in problem.unknowns.blocks if isinstance(block, FlowBlock)), None)
    if flow is None or block is None or block.directions is None or boot is None or not len(boot.flow_std):
        return flow
    spread = np.sqrt(np.tensordot(boot.flow_std**2, block.directions**2, axes=1))
    return replace(flow, error=spread if block.prior is None else np.maximum(spread, flow.error))


def _drift_scale(problem: Problem, fit: Fit, boot: Bootstrap | None) -> dict[str, Estimate]:
    """Compare the refined drift with the given one: the factor that fits best, axis by axis."""
    scales = {}
    flow = _fitted_flow(problem, fit, boot)
    if flow is not None and flow.kind == "given":
        pairs = zip("xy", flow.coefficients[0], NORMAL * flow.error[0], strict=True)
        return {axis: Estimate(float(c), float(c - e), float(c + e)) for axis, c, e in pairs}
    for axis, name in enumerate("xy"):
        given = problem.velocity[:, axis]
        power = float(given @ given)
        if power == 0:
            scales[name] = Estimate(1.0, 1.0, 1.0)
            continue
        value = float(given @ fit.velocity[:, axis]) / power
        spread = 0.0 if boot is None else NORMAL * float(np.abs(given) @ boot.velocity_std[:, axis]) / power
        scales[name] = Estimate(value, value - spread, value + spread)
    return scales
