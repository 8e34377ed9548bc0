"""The stages between field and choice: plain functions from artefacts to an artefact.

``pipeline.py`` calls them in order. None of them sees the test window but :func:`evaluate`; what comes before
is given ``known``, the frames of training and validation alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde import discovery
from video2pde.calibration import calibrate, Calibration, make_problem, recording_errors
from video2pde.calibration.front import fit_front, FrontFit
from video2pde.calibration.start import estimate_start
from video2pde.discovery.flow_choice import choose_flow, FlowChoice
from video2pde.discovery.identifiability import diagnose_libraries, Identifiability
from video2pde.discovery.moments import law_velocity, term_moments
from video2pde.discovery.regression import fit_library
from video2pde.discovery.weak import WeakSystem
from video2pde.drift import Drift, estimate_drift, no_drift
from video2pde.errors import StageError
from video2pde.field import Field, Windows
from video2pde.flow import Flow
from video2pde.refinement.result import Refinement
from video2pde.rollout.baseline import fit_diffusion
from video2pde.rollout.forced import simulate_forced
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.rollout.validate import DRIFT, validate, Validation
from video2pde.selection import Selection
from video2pde.settings import Settings
from video2pde.terms import libraries, Term

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]
FRONT = "front-aware"
WEAK, REFINED = "weak", "refined"


@dataclass(frozen=True, eq=False)
class Contender:
    """A library that goes on: its terms, the weak fit's coefficients and drift scale, and the flow beside them."""

    library: str
    terms: tuple[Term, ...]
    coefficients: Mapping[str, float]
    drift_scale: tuple[float, float]
    explained: float
    flow: Flow | None = None

    @property
    def model(self) -> Model:
        values = tuple(self.coefficients[term.name] for term in self.terms)
        return Model(self.terms, values, self.drift_scale, self.flow)

    def velocity(self, field: Field, drift: Drift, moments: Mapping[str, Array]) -> Array:
        """Give the uniform drift (t, 2) under this law and its flow."""
        law = {term.name: self.coefficients[term.name] for term in self.terms}
        return law_velocity(drift, moments, law, self.flow, field)


@dataclass(frozen=True, eq=False)
class Discovery:
    """What the training window says about structure: the weak system, the diagnoses, and who goes on.

    ``moments`` (t, 2) by term over the training window; ``models`` the sparse fits of all libraries as models;
    ``diffusion`` the coefficient of the baseline drift + diffusion, fitted to the window's rollout; ``flow`` the flows
    that were tried, None where nothing but a uniform drift was asked for.
    """

    system: WeakSystem
    identifiability: Identifiability
    contenders: tuple[Contender, ...]
    models: Mapping[str, Model]
    moments: Mapping[str, Array]
    gradient_sigma: float
    gradient_noise: float
    diffusion: float
    flow: FlowChoice | None = None


def choose_windows(field: Field, settings: Settings) -> Windows:
    """Split a recording as the settings say; where a law is named, nothing is chosen, and few frames are enough."""
    split = settings.split
    return Windows.of(field, split.train, split.validation, split.by, few=settings.regression.law is not None)


def measure_drift(known: Field, settings: Settings) -> tuple[Drift, tuple[str, ...]]:
    """Measure the drift; where nothing rises above the background, there is none, and that is said."""
    try:
        drift = estimate_drift(known, settings.drift)
    except StageError as error:
        return no_drift(known).stopped(str(error)), (f"no drift was measured: {error}",)
    notes = (f"{len(drift.empty_frames)} frames without signal were interpolated",) if drift.empty_frames else ()
    if settings.drift.flow == "none":
        return drift.stopped("the settings say so (drift.flow)"), notes
    return drift, notes


def discover_structure(
    known: Field, drift: Drift, windows: Windows, settings: Settings, progress: Progress | None = None
) -> Discovery:
    """Fit every library to the training window in weak form, and find out which terms it can tell apart."""
    train = known.frames(windows.train)
    weak = discovery.weak_system(train, drift.frames(windows.train), settings, windows.frames, progress)
    choice, beside = None, None
    if settings.drift.flow not in ("none", "uniform"):
        choice, beside = choose_flow(train, drift.frames(windows.train), weak.columns, settings)
    columns = weak.columns if beside is None else beside
    system = weak.system if beside is None else beside.draw(settings.weak.test_functions, np.random.default_rng(0))
    found = diagnose_libraries(columns, system, settings)
    by_library = libraries(settings)
    flows = {name: None if beside is None else beside.flow(d.fit.coefficients) for name, d in found.libraries.items()}
    models = {name: _as_model(by_library[name], d.fit.coefficients, flows[name]) for name, d in found.libraries.items()}
    contenders: list[Contender] = []
    # whole libraries first: what is left of a larger one may be one of them, and is then not a law of its own
    for name in sorted(found.contenders, key=lambda name: len(found.libraries[name].robust) < len(by_library[name])):
        diagnosis = found.libraries[name]
        terms = tuple(term for term in by_library[name] if term.name in diagnosis.robust)
        if any(set(terms) == set(other.terms) for other in contenders):
            continue
        fit = diagnosis.fit
        if len(terms) < len(by_library[name]):
            fit = fit_library(name, [term.name for term in terms], system, settings.regression)
        scale, flow = _drift_scale(fit.coefficients), None if beside is None else beside.flow(fit.coefficients)
        contenders.append(Contender(name, terms, dict(fit.coefficients), scale, fit.explained, flow))
    return Discovery(
        system, found, tuple(sorted(contenders, key=lambda c: -c.explained)), models, weak.moments,
        weak.columns.gradient_sigma, weak.columns.gradient_noise,
        fit_diffusion(train, drift.velocity[windows.train], settings.rollout), choice,
    )  # fmt: skip


def _drift_scale(coefficients: Mapping[str, float]) -> tuple[float, float]:
    """Read the learned drift scale from a fit; 1 where the drift is fixed or was dropped."""
    common = coefficients.get("drift", 1.0)
    c_x, c_y = coefficients.get("drift_x", common), coefficients.get("drift_y", common)
    return c_x or 1.0, c_y or 1.0


def _as_model(terms: tuple[Term, ...], coefficients: Mapping[str, float], flow: Flow | None) -> Model:
    kept = tuple(term for term in terms if coefficients[term.name] != 0.0)
    return Model(kept, tuple(coefficients[term.name] for term in kept), _drift_scale(coefficients), flow)


def window_velocities(field: Field, drift: Drift, models: Mapping[str, Model], settings: Settings) -> dict[str, Array]:
    """Give each model's uniform drift over a window: the centroid's velocity less what law and flow do to it."""
    velocities = {DRIFT: drift.velocity}
    terms = {term.name: term for model in models.values() for term in model.terms}
    moments: dict[str, Array] = {}
    if settings.drift.law_correction and terms and drift.mass.any():
        values = term_moments(field, drift, list(terms.values()), settings.weak)
        moments = dict(zip(terms, values, strict=True))
    for name, model in models.items():
        coefficients = {term.name: c for term, c in zip(model.terms, model.coefficients, strict=True)}
        velocities[name] = law_velocity(drift, moments, coefficients, model.flow, field)
    return velocities


def validate_models(
    known: Field, window: slice, drift: Drift, models: Mapping[str, Model], diffusion: float | None, settings: Settings
) -> Validation:
    """Roll models out over a window, beside the baselines."""
    field, part = known.frames(window), drift.frames(window)
    return validate(
        field, models, window_velocities(field, part, models, settings), settings.rollout,
        background=part.background, diffusion=diffusion, workers=settings.run.workers, device=settings.run.device,
        start=estimate_start(known, window.start, settings.rollout.start_frames),
    )  # fmt: skip


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


def without_drift(settings: Settings) -> Settings:
    """Let a calibration refine no drift: the picture does not move as a whole."""
    return settings.model_copy(update={"calibration": settings.calibration.model_copy(update={"drift": "fixed"})})


def calibrate_contender(
    contender: Contender,
    train: Field,
    drift: Drift,
    found: Discovery,
    refined: Refinement | None,
    settings: Settings,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate one contender from the weak fit, from the inverse PINN where there is one, and from a poor start."""
    weak = {term.name: contender.coefficients[term.name] for term in contender.terms}
    settings = without_drift(settings) if not drift.moving else settings
    velocity = contender.velocity(train, drift, found.moments)
    problem = make_problem(train, contender.terms, weak, velocity, found.moments, settings)
    starts = {"weak": list(weak.values())}
    if refined is not None:
        starts["pinn"] = [refined.coefficients[term.name] for term in contender.terms]
    return calibrate(contender.library, problem, starts, settings, progress, recording_errors(train))


def recalibrate_front(
    contender: Contender, calibration: Calibration, train: Field, drift: Drift, found: Discovery,
    refined: Refinement | None, settings: Settings,
) -> tuple[FrontFit, ...]:  # fmt: skip
    """Recalibrate one contender against the front, from the calibrated coefficients and from the inverse PINN's."""
    weak = {term.name: contender.coefficients[term.name] for term in contender.terms}
    settings = without_drift(settings) if not drift.moving else settings
    velocity = contender.velocity(train, drift, found.moments)
    problem = make_problem(train, contender.terms, weak, velocity, found.moments, settings)
    starts = {"calibrated": [calibration.estimates[term.name].value for term in contender.terms]}
    if refined is not None:
        starts["pinn"] = [refined.coefficients[term.name] for term in contender.terms]
    return fit_front(problem, calibration.fit, starts, settings.front, settings.rollout, drift.background)


def final_models(
    calibrations: Mapping[str, Calibration], fronts: Mapping[str, tuple[FrontFit, ...]]
) -> dict[str, Model]:
    """Gather the calibrated models and the front-aware ones that kept the Laplacian positive."""
    models = {name: calibration.model for name, calibration in calibrations.items()}
    for name, fits in fronts.items():
        admissible = [fit for fit in fits if fit.positive and fit.converged]
        if admissible:
            best = min(admissible, key=lambda fit: fit.objective)
            terms = calibrations[name].terms
            models[f"{name} {FRONT}"] = Model(terms, tuple(best.coefficients[term.name] for term in terms))
    return models


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The held-out frames, predicted once: scores, the drift of the whole recording, and the predicted frames.

    ``forecasts``: (first frame, values (t, y, x)) of the chosen law's rollouts over validation and test.
    """

    scores: Validation
    drift: Drift
    forecasts: tuple[tuple[int, NDArray[np.float32]], ...]


def evaluate(
    field: Field,
    windows: Windows,
    selection: Selection,
    models: Mapping[str, Model],
    diffusion: float | None,
    settings: Settings,
) -> Evaluation:
    """Predict the test window, once, with the frozen choice and its alternatives; measure its drift first."""
    drift, _ = measure_drift(field, settings)
    wanted = [name for name in (selection.chosen, *selection.alternatives) if name is not None and name in models]
    front = selection.front_best
    if front is not None and front in models and front not in wanted:
        wanted.append(front)
    scores = validate_models(field, windows.test, drift, {name: models[name] for name in wanted}, diffusion, settings)
    forecasts = []
    if selection.chosen is not None:
        for window in (windows.validation, windows.test):
            values = forecast(field, window, drift, models[selection.chosen], settings)
            forecasts.append((window.start, values))
    return Evaluation(scores, drift, tuple(forecasts))


def forecast(field: Field, window: slice, drift: Drift, model: Model, settings: Settings) -> NDArray[np.float32]:
    """Roll one model out over a window from its first frame, as estimated; NaN where it failed."""
    part = field.frames(window)
    start = estimate_start(field, window.start, settings.rollout.start_frames)
    velocity = window_velocities(part, drift.frames(window), {"law": model}, settings)["law"]
    if part.core is not None:
        rollout = simulate_forced(
            [model], start, part.values, ~part.core, part.times, part.grid, velocity[None], settings.rollout
        )[0]
    else:
        rollout = simulate(
            model, start, part.times, part.grid, velocity, settings.rollout,
            output="float32", device=settings.run.device,
        )  # fmt: skip
    return np.asarray(rollout.values, np.float32)
