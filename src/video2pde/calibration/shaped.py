"""Calibration of a law with a parameter that does not enter linearly (``terms.families``).

The term of the family is fitted together with its derivative by the parameter; c′/c is the step of Gauss–Newton, taken
until there is none left. The last fit, its replicates and its error budget then hold parameter and coefficients
together: the coefficients' intervals hold what is not known of the parameter. The derivative, whose coefficient is zero
but for its interval, is taken out of the law at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import LAW, Unknowns
from video2pde.calibration.calibrate import agree_on, calibrate, Calibration
from video2pde.calibration.derived import propagate
from video2pde.calibration.fit import fit_rollout
from video2pde.calibration.problem import Problem
from video2pde.progress import Progress
from video2pde.settings import Settings
from video2pde.terms import Term
from video2pde.terms.families import Family

Array = NDArray[np.float64]
Pose = Callable[[tuple[Term, ...], Mapping[str, float]], Problem]

ROUNDS, CLOSE = 6, 2e-3
"""Steps of the parameter at most, and the relative step from which on there is no other."""
LONGEST = 0.5
"""Relative step of the parameter at most: the derivative holds near by alone."""


def calibrate_shaped(
    library: str,
    family: Family,
    value: float,
    terms: Sequence[Term],
    weak: Mapping[str, float],
    pose: Pose,
    settings: Settings,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate a law and the parameter of its family.

    Parameters
    ----------
    library, terms, weak : the contender's name, its terms, and the weak fit's coefficients by term.
    value : of the parameter, in weak form.
    pose : makes the fit's problem from terms and coefficients.
    settings : those of calibration. progress : as of :func:`calibrate`.

    Returns
    -------
    The calibrated law with the parameter in its term, and the parameter's interval under its symbol.
    """
    place = next(index for index, term in enumerate(terms) if term.name == family.name)
    guess = [float(weak[term.name]) for term in terms]
    for _ in range(ROUNDS):
        fit = fit_rollout(_with_slope(family, value, terms, guess, pose), [*guess, 0.0], settings.calibration)
        if not fit.converged or fit.coefficients[place] == 0:
            break
        step = float(np.clip(fit.coefficients[-1] / fit.coefficients[place] / value, -LONGEST, LONGEST))
        moved = family.bounded(value * (1 + step))
        done = abs(moved - value) <= CLOSE * value
        guess, value = [float(c) for c in fit.coefficients[:-1]], moved
        if done:
            break
    problem = _with_slope(family, value, terms, guess, pose)
    return _without_slope(
        calibrate(library, problem, {"weak": [*guess, 0.0]}, settings, progress), family, value, place
    )


def _with_slope(family: Family, value: float, terms: Sequence[Term], guess: Sequence[float], pose: Pose) -> Problem:
    """Pose the fit of a law with its family's term at a value, and with that term's derivative beside it."""
    members = [family.member(value) if term.name == family.name else term for term in terms]
    slope = family.slope(value)
    values = {term.name: c for term, c in zip(members, guess, strict=True)}
    problem = pose((*members, slope), {**values, slope.name: 0.0})
    law, *others = problem.unknowns.blocks
    # a change of the parameter by itself is a coefficient as large as the term's
    scale = law.scale.copy()
    scale[-1] = max(abs(values[family.name]) * value, scale[-1])
    return replace(problem, unknowns=Unknowns((replace(law, scale=scale), *others)))


def _without_slope(whole: Calibration, family: Family, value: float, place: int) -> Calibration:
    """Take the derivative out of a calibrated law, and read the parameter's estimate off it."""
    c, change = whole.estimates[family.name].value, whole.estimates[family.slope(value).name].value
    slopes = np.zeros((1, len(whole.terms)))
    slopes[0, place], slopes[0, -1] = -change / c**2, 1 / c
    [parameter] = propagate(whole, [term.name for term in whole.terms], [value + change / c], slopes)
    terms = [*whole.terms[:-1]]
    terms[place] = family.member(family.bounded(parameter.value))
    boot = whole.bootstrap
    if boot is not None:
        boot = replace(
            boot,
            draws=boot.draws[:, :-1],
            **{name: getattr(boot, name)[:-1] for name in ("bias", "value", "low", "high", "offset", "light")},
        )
    fit = whole.fit
    fit = replace(fit, terms=fit.terms[:-1], values={**fit.values, LAW: fit.values[LAW][:-1]})
    attempts = tuple(replace(a, guess=a.guess[:-1], coefficients=a.coefficients[:-1]) for a in whole.attempts)
    return replace(
        whole,
        terms=tuple(terms),
        estimates={term.name: whole.estimates[term.name] for term in terms},
        fit=fit,
        attempts=attempts,
        starts_agree=agree_on([np.array(a.coefficients) for a in attempts], fit.coefficients),
        bootstrap=boot,
        budget=tuple(replace(b, shift=b.shift[:-1], uncertainty=b.uncertainty[:-1]) for b in whole.budget),
        parameters={family.symbol: parameter},
    )
