"""Front-aware recalibration of the contenders that fit best, and the models that enter the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from video2pde.calibration import Calibration
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.front import fit_front, FrontFit
from video2pde.refinement.result import Refinement
from video2pde.rollout.model import Model
from video2pde.settings import Settings
from video2pde.stages.calibration import as_calibrated, pose_problem
from video2pde.stages.structure import Contender, Discovery
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

FRONT = "front-aware"


def recalibrate_fronts(
    contenders: Sequence[Contender],
    calibrations: Mapping[str, Calibration],
    train: Field,
    drift: Drift,
    found: Discovery,
    refined: Mapping[str, Refinement],
    settings: Settings,
) -> dict[str, tuple[FrontFit, ...]]:
    """Recalibrate the best calibrated contenders whose front means anything; none where that is off."""
    known = settings.constraints
    # fronts would be placed by coefficients that are held, or by signs that are ruled out
    enabled = settings.front.enabled and not (known.fixed or known.positive or known.negative)
    wanted = [c for c in contenders if enabled and c.library in calibrations and _tracks_front(c)]
    wanted = sorted(wanted, key=lambda c: calibrations[c.library].fit.mse)[: settings.front.contenders]
    return {
        c.library: recalibrate_front(c, calibrations[c.library], train, drift, found, refined.get(c.library), settings)
        for c in wanted
    }


def _tracks_front(contender: Contender) -> bool:
    """Tell whether front-aware recalibration means anything: diffusion, and something that moves the front."""
    return len(contender.terms) > 1 and any(is_diffusion(term, EMPTY_TO_FULL) for term in contender.terms)


def recalibrate_front(
    contender: Contender,
    calibration: Calibration,
    train: Field,
    drift: Drift,
    found: Discovery,
    refined: Refinement | None,
    settings: Settings,
) -> tuple[FrontFit, ...]:
    """Recalibrate one contender against the front, from the calibrated coefficients and from the inverse PINN's."""
    problem = pose_problem(as_calibrated(contender, calibration), train, drift, found, settings)
    starts = {"calibrated": [calibration.estimates[term.name].value for term in contender.terms]}
    if refined is not None:
        starts["pinn"] = [refined.coefficients[term.name] for term in contender.terms]
    return fit_front(problem, calibration.fit, starts, settings.front, settings.rollout, drift.background)


def final_models(
    calibrations: Mapping[str, Calibration], fronts: Mapping[str, tuple[FrontFit, ...]]
) -> dict[str, Model]:
    """Gather the calibrated models and the front-aware ones that kept diffusion positive.

    Parameters
    ----------
    calibrations : by library.
    fronts : front-aware fits by library; may be empty.

    Returns
    -------
    Models by name, a front-aware one as "C front-aware".

    Examples
    --------
    >>> list(final_models(vp.example_run().calibration, {}))
    ['A']
    """
    models = {name: calibration.model for name, calibration in calibrations.items()}
    for name, fits in fronts.items():
        admissible = [fit for fit in fits if fit.positive and fit.converged]
        if admissible:
            best = min(admissible, key=lambda fit: fit.objective)
            terms = calibrations[name].terms
            models[f"{name} {FRONT}"] = replace(
                calibrations[name].model, coefficients=tuple(best.coefficients[term.name] for term in terms)
            )
    return models
