"""Validation: rollouts of models over a window that they were not fitted to, beside the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from video2pde.device import choose_device
from video2pde.discovery.mapped import map_moments
from video2pde.discovery.moments import law_velocity, map_key, term_moments
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.rollout.model import Model
from video2pde.rollout.start import estimate_start
from video2pde.rollout.validate import DRIFT, validate, Validation
from video2pde.rollout.window import roll_out
from video2pde.settings import Settings

if TYPE_CHECKING:
    from video2pde.refinement.result import Refinement
    from video2pde.stages.structure import Contender

Array = NDArray[np.float64]
WEAK, REFINED = "weak", "refined"


def window_velocities(field: Field, drift: Drift, models: Mapping[str, Model], settings: Settings) -> dict[str, Array]:
    """Return each model's uniform drift over a window: the centroid's velocity less what law and flow do to it."""
    velocities = {DRIFT: drift.velocity}
    terms = {term.name: term for model in models.values() for term in model.terms}
    moments: dict[str, Array] = {}
    if settings.drift.law_correction and terms and drift.mass.any():
        values = term_moments(field, drift, list(terms.values()), settings.weak)
        moments = dict(zip(terms, values, strict=True))
    for name, model in models.items():
        coefficients = {term.name: c for term, c in zip(model.terms, model.coefficients, strict=True)}
        pushed = {
            map_key(each.term): map_moments(field, drift, each.shape, terms[each.term], settings.weak)
            for each in (model.maps if moments else ())
        }
        velocities[name] = law_velocity(drift, moments | pushed, coefficients, model.flow, field, model.maps)
    return velocities


def validate_models(
    known: Field, window: slice, drift: Drift, models: Mapping[str, Model], diffusion: float | None, settings: Settings
) -> Validation:
    """Roll models out over a window, beside the baselines.

    Parameters
    ----------
    known : the recording up to the window's end.
    window : the frames to predict; the state at its first one is estimated from those up to it.
    drift : of ``known``; what each law itself does to the centroid is taken off it.
    models : the laws, by name.
    diffusion : coefficient of the baseline drift + diffusion. None: without it.
    settings : those of drift, weak form, rollouts and the run.

    Returns
    -------
    The scores.

    Examples
    --------
    >>> run = vp.example_run()
    >>> laws = {"A": run.chosen.model}
    >>> validate_models(run.field, run.windows.validation, run.drift, laws, None, run.settings).best.library
    'A'
    """
    field, part = known.frames(window), drift.frames(window)
    return validate(
        field,
        models,
        window_velocities(field, part, models, settings),
        settings.rollout,
        background=part.background,
        diffusion=diffusion,
        start=estimate_start(known, window.start, settings.rollout.start_frames),
        workers=settings.run.workers,
        device=choose_device(settings.run.device, known.grid.ny * known.grid.nx),
    )


def forecast(field: Field, window: slice, drift: Drift, model: Model, settings: Settings) -> NDArray[np.float32]:
    """Roll one model out over a window from its first frame, as estimated; NaN where it failed."""
    part = field.frames(window)
    start = estimate_start(field, window.start, settings.rollout.start_frames)
    velocity = window_velocities(part, drift.frames(window), {"law": model}, settings)["law"]
    device = choose_device(settings.run.device, field.grid.ny * field.grid.nx)
    (rollout,) = roll_out([model], part, velocity[None], settings.rollout, start=start, device=device)
    return np.asarray(rollout.values, np.float32)


def compare_refined(
    known: Field,
    window: slice,
    drift: Drift,
    contenders: Sequence[Contender],
    refined: Mapping[str, Refinement],
    diffusion: float | None,
    settings: Settings,
) -> Validation | None:
    """Roll out the weak fit's coefficients and the inverse PINN's over one window; None where nothing was refined."""
    models: dict[str, Model] = {}
    for contender in contenders:
        if contender.library in refined:
            values = refined[contender.library].coefficients
            models[f"{contender.library}, {WEAK}"] = contender.model
            models[f"{contender.library}, {REFINED}"] = Model(
                contender.terms, tuple(values[term.name] for term in contender.terms), flow=contender.flow
            )
    return validate_models(known, window, drift, models, diffusion, settings) if models else None
