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
from video2pde.fit.omitted import ask_rollout, CERTAIN, find_omitted
from video2pde.progress import Progress
from video2pde.refinement.result import Refinement
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import Keep
from video2pde.settings import Settings
from video2pde.stages.structure import Contender, Discovery
from video2pde.terms import CATALOGUE, Term
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
    The calibrated laws with their intervals, by library. Where the best of them lacks a term that its rollouts ask for
    beyond doubt (``fit.omitted``), the law with that term is among them, "C+u" for example.

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

    def add(contender: Contender, found: Discovery, doing: str, enlarges: str = "") -> None:
        # one contender may take ten times as long as another: the time left is not known
        told.progress(0, None, f"{doing}: fitting")
        more, tell = refined.get(contender.library), partial(_tell_replicates, told, doing)
        rival = min((law.plain_mse for law in done.values()), default=np.inf)

        def fit() -> Calibration:
            law = calibrate_contender(contender, train, drift, found, more, settings, tell, rival)
            return replace(law, enlarges=enlarges)

        try:
            done[contender.library] = fit() if keep is None else keep(contender.library, fit)
        except StageError as error:
            told.warn(f"{contender.library} is left out: {error}")

    for index, contender in enumerate(contenders):
        add(contender, found, f"{contender.library}, contender {index + 1} of {len(contenders)}")
    larger = _enlarge(contenders, done, train, drift, found, settings)
    if larger is not None:
        small, contender = larger
        # what the further term does to the centroid was not asked for: the drift is refined all the same
        still = {term.name: np.zeros((len(train), 2)) for term in contender.terms}
        posed = replace(found, moments={**still, **found.moments})
        add(contender, posed, f"{contender.library}, which rollouts of {small} ask for", small)
        fewer = _without_unsure(contender, done)
        if fewer is not None:
            del done[contender.library]
            if not _known(fewer.terms, done):
                add(fewer, posed, fewer.library, small)
    return done


def _known(terms: Sequence[Term], done: Mapping[str, Calibration]) -> bool:
    """Tell whether a law of these terms is calibrated already."""
    names = {term.name for term in terms}
    return any(names == {term.name for term in law.terms} for law in done.values())


def _without_unsure(contender: Contender, done: Mapping[str, Calibration]) -> Contender | None:
    """Return an enlarged law without the terms that may be zero beside the new one; None where there are none.

    They stood for the term that was missing.
    """
    law = done.get(contender.library)
    if law is None or not law.fit.converged:
        return None
    unsure = [name for name, estimate in law.estimates.items() if estimate.low <= 0 <= estimate.high]
    if not unsure or contender.terms[-1].name in unsure:
        return None
    terms = tuple(term for term in law.terms if term.name not in unsure)
    coefficients = {name: value for name, value in contender.coefficients.items() if name not in unsure}
    coefficients |= {term.name: law.estimates[term.name].value for term in terms}
    library = "-".join([contender.library, *unsure])
    return replace(contender, library=library, terms=terms, coefficients=coefficients)


def _enlarge(
    contenders: Sequence[Contender],
    done: dict[str, Calibration],
    train: Field,
    drift: Drift,
    found: Discovery,
    settings: Settings,
) -> tuple[str, Contender] | None:
    """Return the best law's name and the law with one more term, where its rollouts ask for one beyond doubt.

    What they say is kept with the law.
    """
    fitted = [law for law in done.values() if law.fit.converged]
    if not fitted or settings.regression.law is not None or found.search is not None:
        return None
    best = min(fitted, key=lambda law: law.plain_mse)
    widths = {name: (estimate.high - estimate.low) / 2 for name, estimate in best.estimates.items()}
    if not all(np.isfinite(width) for width in widths.values()):
        return None
    posed = settings if drift.moving else without_drift(settings)
    best = done[best.library] = replace(best, asked=ask_rollout(best, train, posed))
    asked = find_omitted(best, train, posed, widths)
    if asked is None or asked.deviations < CERTAIN:
        return None
    terms = (*best.terms, CATALOGUE[asked.name])
    if _known(terms, done):
        return None
    small = next(contender for contender in contenders if contender.library == best.library)
    coefficients = {**small.coefficients, **asked.coefficients, asked.name: asked.value}
    library = f"{best.library}+{asked.name}"
    return best.library, replace(small, library=library, terms=terms, coefficients=coefficients)


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
