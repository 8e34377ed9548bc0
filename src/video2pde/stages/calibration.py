"""Calibration: every contender fitted to the rollout of the whole training window, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from video2pde.calibration import calibrate, Calibration, make_problem, Problem
from video2pde.calibration.carried import Carried
from video2pde.calibration.constrained import calibrate_within
from video2pde.calibration.shaped import calibrate_shaped
from video2pde.discovery.shapes import Shape
from video2pde.drift import Drift
from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.progress import Progress
from video2pde.refinement.result import Refinement
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import Keep
from video2pde.settings import Settings
from video2pde.stages.structure import Contender, Discovery
from video2pde.terms import Term
from video2pde.terms.catalogue import constraints
from video2pde.terms.families import FAMILIES


def calibrate_contenders(
    contenders: Sequence[Contender],
    train: Field,
    drift: Drift,
    found: Discovery,
    refined: Mapping[str, Refinement],
    settings: Settings,
    *,
    events: Events | None = None,
    keep: Keep | None = None,
) -> dict[str, Calibration]:
    """Calibrate every contender; one whose rollouts cannot be completed is left out, with a warning.

    Parameters
    ----------
    contenders : those of ``found``, or some of them.
    train, drift : the training window, and the drift of its frames.
    found : what :func:`discover_structure` returned.
    refined : coefficients of the inverse PINN by library, as further starts; may be empty.
    settings : those of drift, calibration, rollouts and the run.
    events : who is told how it goes on.
    keep : keeps finished contenders, so that an interrupted calibration does not repeat them.

    Returns
    -------
    The calibrated laws with their intervals, by library.

    Examples
    --------
    >>> run = vp.example_run()
    >>> part = run.windows.train
    >>> fitted = (run.field.frames(part), run.drift.frames(part), run.discovery, {})
    >>> done = calibrate_contenders(run.discovery.contenders[:1], *fitted, run.settings)
    >>> round(done["A"].estimates["laplacian"].value, 2)
    1.0
    """
    told = events or QuietEvents()
    done = dict[str, Calibration]()
    for index, contender in enumerate(contenders):
        # one contender may take ten times as long as another: the time left is not known
        doing = f"{contender.library}, contender {index + 1} of {len(contenders)}"
        told.progress(0, None, f"{doing}: fitting")
        more, tell = refined.get(contender.library), partial(_tell_replicates, told, doing)
        rival = min((law.plain_mse for law in done.values()), default=np.inf)
        fit = partial(calibrate_contender, contender, train, drift, found, more, settings, tell, rival)
        try:
            done[contender.library] = fit() if keep is None else keep(contender.library, fit)
        except StageError as error:
            told.warn(f"{contender.library} is left out: {error}")
    return done


def _tell_replicates(events: Events, doing: str, done: int, total: int | None) -> None:
    events.progress(0, None, f"{doing}: bootstrap replicate {done} of {total}")


def calibrate_contender(
    contender: Contender,
    train: Field,
    drift: Drift,
    found: Discovery,
    refined: Refinement | None,
    settings: Settings,
    progress: Progress | None = None,
    rival: float = np.inf,
) -> Calibration:
    """Calibrate one contender from the weak fit, from the inverse PINN where there is one, and from a poor start.

    ``rival``: mean squared error of a law calibrated before it; a fit that stays far behind that is given up.
    """
    settings = settings if drift.moving else without_drift(settings)
    if found.shape is not None and found.shape.family in contender.weak:
        return _calibrate_shaped(contender, train, drift, found, found.shape, settings, progress)
    problem = pose_problem(contender, train, drift, found, settings)
    starts = {"weak": list(contender.weak.values())}
    if refined is not None:
        starts["pinn"] = [refined.coefficients[term.name] for term in contender.terms]
    known = constraints(settings)
    if known is None:
        return calibrate(contender.library, problem, starts, settings, progress, rival)
    return calibrate_within(known, contender.library, problem, starts, settings, progress)


def _calibrate_shaped(
    contender: Contender,
    train: Field,
    drift: Drift,
    found: Discovery,
    shape: Shape,
    settings: Settings,
    progress: Progress | None,
) -> Calibration:
    """Calibrate a contender together with the parameter of one of its terms."""
    still = np.zeros((len(train), 2))

    def pose(terms: tuple[Term, ...], coefficients: Mapping[str, float]) -> Problem:
        posed = replace(contender, terms=terms, coefficients={**contender.coefficients, **coefficients})
        moments = {**{term.name: still for term in terms}, **found.moments}
        return pose_problem(posed, train, drift, replace(found, moments=moments), settings)

    return calibrate_shaped(
        contender.library,
        FAMILIES[shape.family],
        shape.value,
        contender.terms,
        contender.weak,
        pose,
        settings,
        progress,
    )


def as_calibrated(contender: Contender, calibration: Calibration) -> Contender:
    """Give a contender the terms of its calibrated law, whose parameters may be better known."""
    return replace(contender, terms=calibration.terms)


def pose_problem(contender: Contender, train: Field, drift: Drift, found: Discovery, settings: Settings) -> Problem:
    """Set up the fit of a contender's rollout, with the drift that belongs to its weak coefficients."""
    settings = settings if drift.moving else without_drift(settings)
    velocity = contender.velocity(train, drift, found.moments)
    flow = contender.flow
    carried = None if flow is None else Carried.of(flow, train, drift, contender.drift_scale)
    weak, maps = contender.weak, contender.maps
    return make_problem(train, contender.terms, weak, velocity, found.moments, settings, carried, maps)


def without_drift(settings: Settings) -> Settings:
    """Let a calibration refine no drift: the picture does not move as a whole."""
    return settings.model_copy(update={"calibration": settings.calibration.model_copy(update={"drift": "fixed"})})
