"""Structure: every library, or what a search finds, fitted in weak form, and which of them go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery import Weak, weak_system
from video2pde.discovery.constrained import check_held, HeldCheck, Reduced, take_off, with_signs
from video2pde.discovery.flow_choice import choose_flow, FlowChoice
from video2pde.discovery.identifiability import diagnose_laws, draw_runs, Identifiability
from video2pde.discovery.maps import choose_maps, MapColumns
from video2pde.discovery.moments import law_velocity
from video2pde.discovery.regression import fit_library
from video2pde.discovery.search import candidate_laws, Search
from video2pde.discovery.shapes import settle_shape, Shape
from video2pde.discovery.weak import WeakSystem
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.flow import Flow
from video2pde.maps import CoefficientMap
from video2pde.progress import Progress
from video2pde.rollout.baseline import fit_diffusion
from video2pde.rollout.model import Model
from video2pde.settings import Settings
from video2pde.terms import libraries, Term

Array = NDArray[np.float64]

FEWEST_FRAMES = 6
"""Frames of the training window from which test functions tell laws apart."""


@dataclass(frozen=True, eq=False)
class Contender:
    """A library that goes on: its terms, the weak fit's coefficients and drift scale, the flow beside them, and maps.

    ``maps``: how coefficients vary around those of the weak fit.
    """

    library: str
    terms: tuple[Term, ...]
    coefficients: Mapping[str, float]
    drift_scale: tuple[float, float]
    explained: float
    flow: Flow | None = None
    maps: tuple[CoefficientMap, ...] = ()

    @property
    def weak(self) -> dict[str, float]:
        """The weak fit's coefficients of the terms, without the drift's."""
        return {term.name: self.coefficients[term.name] for term in self.terms}

    @property
    def model(self) -> Model:
        values = tuple(self.coefficients[term.name] for term in self.terms)
        return Model(self.terms, values, self.drift_scale, self.flow, self.maps)

    def velocity(self, field: Field, drift: Drift, moments: Mapping[str, Array]) -> Array:
        """Return the uniform drift (t, 2) under this law and its flow."""
        return law_velocity(drift, moments, self.weak, self.flow, field, self.maps)


@dataclass(frozen=True, eq=False)
class Discovery:
    """What the training window says about structure: the weak system, the diagnoses, and who goes on.

    ``moments`` (t, 2) by term over the training window; ``models`` the sparse fits of all libraries as models;
    ``diffusion`` the coefficient of the baseline drift + diffusion, fitted to the window's rollout; ``flow`` the flows
    that were tried, None where nothing but a uniform drift was asked for; ``search`` over subsets of terms, None where
    the named libraries were tried; ``shape`` the parameter that was estimated, None where none was unknown;
    ``held`` coefficients that are known, against what the film says of them.
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
    search: Search | None = None
    shape: Shape | None = None
    held: tuple[HeldCheck, ...] = ()

    def __repr__(self) -> str:
        return f"Discovery({self.identifiability.verdict})"


def discover_structure(
    known: Field,
    drift: Drift,
    windows: Windows,
    settings: Settings,
    progress: Progress | None = None,
    weak: Weak | None = None,
) -> Discovery:
    """Fit every library to the training window in weak form, and find out which terms it can tell apart.

    Parameters
    ----------
    known : the recording up to the end of the validation window.
    drift : of ``known``.
    windows : the recording's; only the training window is used.
    settings : those of split, drift, weak form, search, regression, identifiability, terms, libraries, rollouts and
        the run.
    progress : called with the number of frames done and the number in all.
    weak : the weak system of the training window, if it has been assembled already.

    Returns
    -------
    Weak system, diagnoses, and the contenders.

    Examples
    --------
    >>> field, settings = vp.example_field(), vp.load_settings("quick")
    >>> windows = vp.choose_windows(field, settings)
    >>> found = discover_structure(field, vp.estimate_drift(field), windows, settings)
    >>> found.contenders[0].library
    'A'
    """
    train = known.frames(windows.train)
    settings = with_signs(settings)
    settings, shape = settle_shape(train, drift.frames(windows.train), settings, windows.frames)
    if weak is None:
        weak = weak_system(train, drift.frames(windows.train), settings, windows.frames, progress)
    choice, beside, given = None, None, drift.given
    if settings.drift.flow not in ("none", "uniform") and drift.moving and given is None:
        choice, beside = choose_flow(train, drift.frames(windows.train), weak.columns, settings)
    varied = _let_vary(train, drift.frames(windows.train), weak, settings, windows.frames)
    drawn = beside if varied is None else varied
    whole = weak.system if drawn is None else drawn.draw(settings.weak.test_functions, np.random.default_rng(0))
    fixed, columns = settings.constraints.fixed, weak.columns if drawn is None else drawn
    system = take_off(whole, fixed)
    runs, few = draw_runs(Reduced(columns, fixed) if fixed else columns, settings), len(train) < FEWEST_FRAMES
    by_library, search = candidate_laws(system, runs, settings, few, progress)
    by_library = {name: terms for name, terms in by_library.items() if _may_vary(terms, settings)}
    free = {name: tuple(term for term in terms if term.name not in fixed) for name, terms in by_library.items()}
    found = diagnose_laws(free, system, runs, settings, few)
    flows = {name: given if beside is None else beside.flow(d.fit.coefficients) for name, d in found.libraries.items()}
    models = {
        name: _as_model(by_library[name], {**d.fit.coefficients, **fixed}, flows[name], varied)
        for name, d in found.libraries.items()
    }
    contenders: list[Contender] = []
    # whole libraries first: what is left of a larger one may be one of them, and is then not a law of its own
    for name in sorted(found.contenders, key=lambda name: len(found.libraries[name].robust) < len(free[name])):
        diagnosis = found.libraries[name]
        terms = tuple(term for term in by_library[name] if term.name in (*diagnosis.robust, *fixed))
        if any(set(terms) == set(other.terms) for other in contenders) or not _may_vary(terms, settings):
            continue
        fit = diagnosis.fit
        if len(terms) < len(by_library[name]):
            fitted = [term.name for term in terms if term.name not in fixed]
            fit = fit_library(name, fitted, system, settings.regression)
        scale, flow = _drift_scale(fit.coefficients), given if beside is None else beside.flow(fit.coefficients)
        maps = () if varied is None else varied.for_law(term.name for term in terms).maps(fit.coefficients)
        contenders.append(Contender(name, terms, {**fit.coefficients, **fixed}, scale, fit.explained, flow, maps))
    return Discovery(
        system=system,
        identifiability=found,
        contenders=tuple(sorted(contenders, key=lambda c: -c.explained)),
        models=models,
        moments=weak.moments,
        gradient_sigma=weak.columns.gradient_sigma,
        gradient_noise=weak.columns.gradient_noise,
        diffusion=fit_diffusion(train, drift.velocity[windows.train], settings.rollout),
        flow=choice,
        search=search,
        shape=shape,
        held=check_held(whole, [term.name for term in contenders[0].terms], settings) if fixed and contenders else (),
    )


def _let_vary(train: Field, drift: Drift, weak: Weak, settings: Settings, frames: int) -> MapColumns | None:
    """Put the maps that the settings ask for beside the laws that hold their terms; None where there are none."""
    if not settings.maps.vary:
        return None
    laws = {name: terms for name, terms in libraries(settings).items() if _may_vary(terms, settings)}
    if not laws:
        asked = ", ".join(settings.maps.vary)
        raise InputError(f"no law that is tried has {asked}, which maps.vary names; name the law with --law")
    return choose_maps(train, drift, weak, laws, settings, frames)


def _may_vary(terms: Sequence[Term], settings: Settings) -> bool:
    """Tell whether a law has all terms whose coefficients are to vary."""
    return settings.maps.vary.keys() <= {term.name for term in terms}


def _drift_scale(coefficients: Mapping[str, float]) -> tuple[float, float]:
    """Read the learned drift scale from a fit; 1 where the drift is fixed or was dropped."""
    common = coefficients.get("drift", 1.0)
    c_x, c_y = coefficients.get("drift_x", common), coefficients.get("drift_y", common)
    return c_x or 1.0, c_y or 1.0


def _as_model(
    terms: tuple[Term, ...], coefficients: Mapping[str, float], flow: Flow | None, varied: MapColumns | None
) -> Model:
    kept = tuple(term for term in terms if coefficients[term.name] != 0.0)
    maps = () if varied is None else varied.departures(coefficients)
    return Model(kept, tuple(coefficients[term.name] for term in kept), _drift_scale(coefficients), flow, maps)
