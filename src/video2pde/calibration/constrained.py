"""Calibration under constraints: coefficients that are known are held, signs are bounds.

A held coefficient is an unknown without weight: no step, no replicate and no error moves it. A sign is met by active
sets: where the fit comes out on the wrong side, the coefficient is held at zero and everything else is fitted again.
Its interval then begins at zero and ends where that of the free fit does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from video2pde.calibration.blocks import Unknowns
from video2pde.calibration.calibrate import calibrate, Calibration
from video2pde.calibration.problem import coefficient_scales, LEAST_SCALE, Problem
from video2pde.estimate import Estimate
from video2pde.progress import Progress
from video2pde.settings import Settings
from video2pde.terms.constraints import Constraints

FIXED, BOUND = "fixed", "at its bound"
ROOM = 0.01
"""Least scale of a coefficient with a sign, in units of the size at which its term alone would explain all change."""


def calibrate_within(
    known: Constraints,
    library: str,
    problem: Problem,
    starts: Mapping[str, Sequence[float]],
    settings: Settings,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate a law under constraints; parameters as those of :func:`calibrate`."""
    problem = _with_room(known, problem)
    held = {name: (value, FIXED) for name, value in settings.constraints.fixed.items()}
    free: Calibration | None = None
    while True:
        found = _calibrate_held(
            library, problem, {name: value for name, (value, _) in held.items()}, starts, settings, progress
        )
        free = free or found
        wrong = _worst(known, found, held)
        if wrong is None:
            break
        held[wrong] = (0.0, BOUND)
    estimates = {name: _within(known, found, free, name, held) for name in found.estimates}
    present = {term.name for term in found.terms}
    reasons = {name: reason for name, (_, reason) in held.items() if name in present}
    return replace(found, estimates=estimates, held=reasons)


def _with_room(known: Constraints, problem: Problem) -> Problem:
    """Give coefficients that the weak form has put on their bound a size of their own, so that a fit can leave it."""
    law, terms = problem.law, problem.terms
    smallest = coefficient_scales(problem.window, terms, np.zeros(len(terms))) / LEAST_SCALE
    signed = np.array([known.sign(term) != 0 for term in terms])
    scale = np.where(signed, np.maximum(law.scale, ROOM * smallest), law.scale)
    return replace(problem, unknowns=Unknowns((replace(law, scale=scale), *problem.unknowns.blocks[1:])))


def _calibrate_held(
    library: str,
    problem: Problem,
    held: Mapping[str, float],
    starts: Mapping[str, Sequence[float]],
    settings: Settings,
    progress: Progress | None,
) -> Calibration:
    """Calibrate with some coefficients held, and take what the budget says of them out."""
    names = [term.name for term in problem.terms]
    places = tuple(names.index(name) for name in held if name in names)
    posed = problem.holding({place: held[names[place]] for place in places})
    begin = {
        source: [held.get(name, float(value)) for name, value in zip(names, values, strict=True)]
        for source, values in starts.items()
    }
    found = calibrate(library, posed, begin, settings, progress)
    if not places:
        return found
    lines = []
    for line in found.budget:
        shift, uncertainty = line.shift.copy(), line.uncertainty.copy()
        shift[list(places)] = uncertainty[list(places)] = 0.0
        lines.append(replace(line, shift=shift, uncertainty=uncertainty))
    exact = {names[place]: Estimate(*(held[names[place]],) * 3) for place in places}
    return replace(found, budget=tuple(lines), estimates={**found.estimates, **exact})


def _worst(known: Constraints, found: Calibration, held: Mapping[str, object]) -> str | None:
    """Return the coefficient that is farthest on the wrong side, in units of its interval; None where none is."""
    beyond = {}
    for term in found.terms:
        estimate, sign = found.estimates[term.name], known.sign(term)
        if sign * estimate.value < 0 and term.name not in held:
            width = estimate.high - estimate.low if estimate.has_interval else abs(estimate.value)
            beyond[term.name] = abs(estimate.value) / max(width, 1e-300)
    return max(beyond, key=lambda name: beyond[name]) if beyond else None


def _within(
    known: Constraints, found: Calibration, free: Calibration, name: str, held: Mapping[str, tuple[float, str]]
) -> Estimate:
    """End an interval where its sign does; that of a coefficient at its bound reaches as far as the free fit's."""
    estimate = found.estimates[name]
    sign = known.sign(next(term for term in found.terms if term.name == name))
    if name in held and held[name][1] == BOUND:
        reach = free.estimates[name]
        far = reach.high if sign > 0 else reach.low
        end = max(sign * far, 0.0) * sign if np.isfinite(far) else np.nan
        return Estimate(0.0, *((0.0, end) if sign > 0 else (end, 0.0)))
    if sign > 0 and estimate.has_interval:
        return replace(estimate, low=max(estimate.low, 0.0))
    if sign < 0 and estimate.has_interval:
        return replace(estimate, high=min(estimate.high, 0.0))
    return estimate
