"""The coefficients of a law in parts of a window, each fitted by itself: are they steady?

Calibration judges the lack of fit by both halves of the frames under one initial frame. Parts that are fitted from
initial frames of their own say directly how far a coefficient depends on what is fitted: where no encoder can have
misled all of them, that lack of fit reaches no further. What explanations of the test of fit add, all parts may share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import compare_estimates, NORMAL, STEADY
from video2pde.calibration import budget
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.calibrate import Calibration
from video2pde.calibration.fit import fit_rollout
from video2pde.calibration.problem import Problem
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Encoding
from video2pde.settings import CalibrationSettings
from video2pde.terms import Term

Array = NDArray[np.float64]

LEAST_IN_PART = 5
"""Frames that a part needs."""
REPLICATES = 20
"""Replicates of each part, at most: their spread is all that is asked for."""


@dataclass(frozen=True, eq=False)
class InParts:
    """A law's coefficients in parts of the training window.

    ``spans`` (start, end) in s; ``estimates`` by term, one for each part; ``chance`` by term: of parts that differ as
    much where the coefficient is one and the same; ``encoded``: an encoder may have misled all parts alike;
    ``left_out``: spans of parts that cannot be fitted by themselves.
    """

    library: str
    terms: tuple[Term, ...]
    spans: tuple[tuple[float, float], ...]
    estimates: Mapping[str, tuple[Estimate, ...]]
    chance: Mapping[str, float]
    encoded: bool = False
    left_out: tuple[tuple[float, float], ...] = ()

    @property
    def unsteady(self) -> tuple[str, ...]:
        """Names of the terms whose coefficient is not one and the same."""
        return tuple(name for name, chance in self.chance.items() if chance < STEADY / len(self.chance))

    def describe(self, term: Term) -> str:
        """Write a coefficient part by part: 3.1 (0 to 10 s), 2.9 (10 to 20 s)."""
        return ", ".join(
            f"{estimate.value:.3g} ({start:.3g} to {end:.3g} s)"
            for (start, end), estimate in zip(self.spans, self.estimates[term.name], strict=True)
        )


def divide_frames(frames: int, parts: int) -> list[slice]:
    """Divide a window; neighbouring parts share a frame, so that no interval between frames is lost.

    Examples
    --------
    >>> divide_frames(9, 4)
    [slice(0, 5, None), slice(4, 9, None)]
    """
    count = min(parts, (frames - 1) // (LEAST_IN_PART - 1))
    if count < 2:
        raise StageError(f"{frames} frames are too few to be divided: whether coefficients are steady cannot be told")
    ends = np.linspace(0, frames - 1, count + 1).round().astype(int)
    return [slice(int(first), int(last) + 1) for first, last in pairwise(ends)]


def fit_parts(
    library: str,
    parts: Sequence[slice],
    pose: Callable[[slice], Problem],
    guess: Sequence[float],
    options: CalibrationSettings,
) -> InParts:
    """Fit a law to parts of a window by themselves, and test whether their coefficients are those of one law.

    ``pose`` sets up the fit of a part; ``guess``: coefficients of the whole window.
    """
    fewer = options.model_copy(update={"replicates": min(REPLICATES, options.replicates)})
    spans, found, left_out = [], [], []
    for part in parts:
        problem = pose(part)
        times = problem.window.times
        span = (float(times[0]), float(times[-1]))
        estimates = _fit_part(problem, guess, fewer)
        if estimates is None:
            left_out.append(span)
        else:
            spans.append(span)
            found.append(estimates)
    if len(found) < 2:
        raise StageError("of the parts of the training window fewer than two can be fitted by themselves")
    terms = problem.terms
    encoded = budget.is_encoded(problem.window.encoding or Encoding(0.0))
    by_term = {term.name: tuple(estimates[k] for estimates in found) for k, term in enumerate(terms)}
    chance = {
        # the lower end of diffusion may have been cut at 0
        name: compare_estimates([e.value for e in each], [(e.high - e.value) / NORMAL for e in each]).chance
        if any(e.high > e.value for e in each)  # one that is held at 0 has no errors
        else 1.0
        for name, each in by_term.items()
    }
    return InParts(library, terms, tuple(spans), by_term, chance, encoded, tuple(left_out))


def reach_to_parts(law: Calibration, found: InParts) -> Calibration:
    """Let the lack of fit of a law reach to the part farthest from it, or 15 % of the value, and no further."""
    line = law.correction(budget.LACK_OF_FIT)
    if found.encoded or not line.uncertainty.any():
        return law
    values = np.array([law.estimates[term.name].value for term in law.terms])
    parts = np.array([[estimate.value for estimate in found.estimates[term.name]] for term in law.terms])
    farthest = np.max(np.abs(parts - values[:, None]), axis=1)
    most = np.maximum(budget.HELD_BACK * np.abs(values), farthest)
    shorter = replace(line, uncertainty=np.minimum(line.uncertainty, most))
    lines = tuple(shorter if each is line else each for each in law.budget)
    estimates = dict(zip(law.estimates, budget.enclose(values, lines), strict=True))
    return replace(law, budget=lines, estimates=budget.run_forward(law.terms, estimates))


def _fit_part(problem: Problem, guess: Sequence[float], options: CalibrationSettings) -> list[Estimate] | None:
    """Fit one part; None where that does not converge, or has no interval."""
    fit = fit_rollout(problem, guess, options)
    boot = bootstrap_fit(problem, fit, options, problem.workers) if fit.converged and options.replicates else None
    if boot is None or not np.isfinite(boot.low).all():
        return None
    encoding = problem.window.encoding or Encoding(0.0)
    lines = [
        budget.statistics(boot),
        budget.rounding(encoding, boot.offset),
        budget.grid(np.zeros_like(fit.coefficients), fit.coefficients),
        budget.encoder(encoding, fit.coefficients),
    ]
    estimates = dict(zip(fit.terms, budget.add_up(fit.coefficients, lines), strict=True))
    return list(budget.run_forward(problem.terms, estimates).values())
