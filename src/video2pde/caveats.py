"""What to bear in mind about a result: a law that leaves much unexplained, fits that did not converge or agree."""

from __future__ import annotations

from collections.abc import Mapping

from video2pde.calibration import Calibration, MISFIT
from video2pde.calibration.constrained import BOUND
from video2pde.calibration.parts import InParts
from video2pde.discovery.flow_choice import FlowChoice
from video2pde.fit import FitTest
from video2pde.frap.recovery import Recovery
from video2pde.refinement.result import Refinement
from video2pde.rollout.validate import Score
from video2pde.selection import LEAST_SKILL
from video2pde.stages import Discovery
from video2pde.terms.words import coefficient_units, describe

LEAST_BLEACHING = 0.01
"""Share that light bleaches over the recording, from which it is worth telling."""
FEW_FRAMES = (
    "so few frames tell which of the libraries' laws predicts the last ones best, and its coefficients if it is right; "
    "not whether another law would do, nor whether anything changes with time: take more, or name the law (--law)"
)


def judge_fit(chosen: Calibration, held_out: Score | None, test: FitTest | None = None) -> tuple[str, ...]:
    """Say where the chosen law leaves more than noise unexplained, or predicts little of the held-out frames."""
    notes = []
    name = chosen.library
    if test is not None and not test.passes:
        notes.append(f"{name} is an approximation: {test.reason}; its intervals were widened by what shows of that")
        if test.cause is not None:
            beside = "" if test.cause.law == name else f" (beside {test.cause.law})"
            notes.append(f"the likeliest cause{beside}: {test.cause.words}")
    elif test is not None and test.rival:
        notes.append(test.rival)
    elif chosen.misfit > MISFIT:
        notes.append(
            f"{name} leaves {chosen.misfit**0.5:.2g} times the camera's noise unexplained: it is an approximation, "
            "other terms or effects are at work, and the intervals do not cover what it leaves out"
        )
    if held_out is not None and held_out.skill < LEAST_SKILL <= held_out.coarse_skill:
        notes.append(
            f"pixel by pixel the held-out frames do not test {name}: noise and detail that stands still are nearly all "
            f"of the error there; in averages over blocks it removes {held_out.coarse_skill:.0%} of the squared error "
            "of a picture that stands still"
        )
    elif held_out is not None and held_out.skill < LEAST_SKILL:
        notes.append(
            f"on the held-out frames {name} is hardly better than a picture that stands still "
            f"(it removes {max(held_out.skill, 0.0):.0%} of the squared error): do not trust its forecast"
        )
    return tuple(notes)


def steadiness_notes(found: InParts | str | None, unit: str) -> tuple[str, ...]:
    """Say which coefficients of a named law are not steady, and what they are part by part; or why nobody knows."""
    if not isinstance(found, InParts):
        return () if found is None else (found,)
    unsteady = tuple(
        f"the coefficient of {describe(term).text} is not steady over the training window: {found.describe(term)} "
        f"{coefficient_units(term, unit)}. It depends on the window that is fitted: something is missing from the law"
        for term in found.terms
        if term.name in found.unsteady
    )
    left_out = tuple(
        f"the frames from {start:.4g} to {end:.4g} s cannot be fitted by themselves" for start, end in found.left_out
    )
    return (*unsteady, *left_out)


def bleaching_note(chosen: Calibration | None, recovery: Recovery | str | None, duration: float) -> tuple[str, ...]:
    """Say where the light bleaches what is seen, and the law has no term for it."""
    if chosen is None or not isinstance(recovery, Recovery) or "u" in chosen.estimates:
        return ()
    rate = recovery.bleaching
    if not (rate.low > 0 and rate.value * duration > LEAST_BLEACHING):
        return ()
    return (
        f"the light bleaches {rate.value:.2g} /s of everything, {rate.value * duration:.1%} over the recording, which "
        f"{chosen.library} leaves out: its forecasts stay too bright, and its coefficients carry some of it",
    )


def flow_notes(choice: FlowChoice | None, chosen: str | None) -> tuple[str, ...]:
    """Say what flow was found beside the law, what is assumed of it later, and what one film cannot tell of it."""
    if choice is None:
        return ()
    notes = []
    if choice.candidate.shape is not None:
        notes.append(
            f"the flow varies in space: {choice.reason}; over held-out frames it is taken to stay as it was at the "
            "end of the training window"
        )
    divergence = None if chosen is None else choice.divergence.get(chosen)
    if divergence is not None and divergence.matters:
        changed = ", ".join(
            f"{name} {divergence.coefficients[name]:.4g} instead of {value:.4g}"
            for name, value in divergence.without.items()
        )
        notes.append(
            f"a flow that diverges by {divergence.value:.2g} ± {divergence.error:.1g} /s would explain the film, too, "
            f"with {changed} (weak form): one film cannot tell it from the law; allow it with drift.divergence=true"
        )
    return tuple(notes)


def constraint_notes(chosen: Calibration | None, discovery: Discovery) -> tuple[str, ...]:
    """Say which bounds are active in a law, and what the film says of coefficients that are held."""
    active = () if chosen is None else tuple(name for name, why in chosen.held.items() if why == BOUND)
    bounds = tuple(f"{name} is at its bound, 0: without it the fit would be on the other side" for name in active)
    return (*(each.words() for each in discovery.held if each.contradicted), *bounds)


def collect_caveats(
    found: Discovery, calibrations: Mapping[str, Calibration], refined: Mapping[str, Refinement]
) -> tuple[str, ...]:
    """Say what to bear in mind about the fits: narrowed test functions, what did not converge or agree."""
    notes = [*found.system.widths.notes]
    if found.identifiability.by_rollout:
        notes.insert(0, FEW_FRAMES)
    for name, calibration in calibrations.items():
        if not calibration.fit.converged:
            notes.append(f"calibration of {name} did not converge: {calibration.fit.reason}")
        elif not calibration.starts_agree:
            notes.append(f"the starts of {name} did not all end at the same coefficients")
    notes += [f"inverse PINN of {name}: {r.reason}" for name, r in refined.items() if not r.converged]
    return tuple(notes)
