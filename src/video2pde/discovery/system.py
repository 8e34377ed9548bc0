"""The weak system of all libraries, assembled once, and what is made of it: sparse fits and diagnoses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.identifiability import diagnose_libraries, Identifiability
from video2pde.discovery.moments import term_moments
from video2pde.discovery.regression import fit_library, SparseFit
from video2pde.discovery.weak import weak_columns, WeakColumns, WeakSystem
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.progress import Progress
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE, DRIFT, libraries, searched, Term


@dataclass(frozen=True, eq=False)
class Weak:
    """Hold the weak system of a training window and what new centres need.

    ``moments`` (t, 2) by term: how a unit coefficient moves the centroid; zeros where that is off.
    """

    columns: WeakColumns
    system: WeakSystem
    moments: dict[str, NDArray[np.float64]]


def weak_system(
    train: Field,
    drift: Drift,
    settings: Settings | None = None,
    total_frames: int | None = None,
    progress: Progress | None = None,
    terms: Sequence[Term] | None = None,
) -> Weak:
    """Assemble the weak system of every library, or of every term of a search, on the training window.

    Parameters
    ----------
    train : the training window alone; ``drift`` its frames of the drift.
    settings : None: the defaults.
    total_frames : frames of the whole recording (σ_t is a share of them); default: from the split's share.
    progress : called with the number of frames done and the number in all.
    terms : None: every term of every library, and of a search.

    Returns
    -------
    The system of all libraries together; each library is a choice of its columns.

    Examples
    --------
    >>> field = vp.example_field().frames(slice(0, 36))
    >>> weak = weak_system(field, vp.estimate_drift(field), vp.load_settings("quick"), 60)
    >>> fit = discover(weak, vp.load_settings("quick"))["A"]
    >>> round(fit.coefficients["laplacian"], 1)
    1.0
    """
    settings = settings or Settings()
    # columns of a drift that is zero would be zero: they are left out, not fitted
    terms = [term for term in (all_terms(settings) if terms is None else terms) if drift.moving or not term.is_drift]
    frames = total_frames or round(len(train) / settings.split.train)
    moments = np.zeros((len(terms), len(train), 2))
    if settings.drift.law_correction and drift.moving and drift.given is None:
        moments = term_moments(train, drift, terms, settings.weak)
    columns = weak_columns(
        train,
        drift.velocity,
        terms,
        settings.weak,
        total_frames=frames,
        moments=moments,
        progress=progress,
        given=drift.given,
    )
    system = columns.draw(settings.weak.test_functions, np.random.default_rng([settings.run.seed, 0]))
    return Weak(columns, system, {term.name: m for term, m in zip(terms, moments, strict=True)})


def all_terms(settings: Settings) -> list[Term]:
    """Return every term of every library, and of a search over subsets, once; the drift last."""
    named = {term.name: term for terms in libraries(settings).values() for term in terms}
    if settings.search.over == "subsets" and settings.regression.law is None:
        named |= {term.name: term for unit in searched(settings) for term in unit}
    return [*named.values(), *(CATALOGUE[name] for name in DRIFT)]


def discover(weak: Weak, settings: Settings | None = None) -> dict[str, SparseFit]:
    """Fit every library sparsely to the weak system.

    Parameters
    ----------
    weak : the assembled system.
    settings : None: the defaults.

    Returns
    -------
    The fits, by library.

    Examples
    --------
    >>> field, settings = vp.example_field().frames(slice(0, 36)), vp.load_settings("quick")
    >>> weak = vp.weak_system(field, vp.estimate_drift(field), settings, 60)
    >>> discover(weak, settings)["A"].active
    ('laplacian', 'drift_x', 'drift_y')
    """
    settings = settings or Settings()
    return {
        name: fit_library(name, [term.name for term in terms], weak.system, settings.regression)
        for name, terms in libraries(settings).items()
    }


def diagnose(weak: Weak, settings: Settings | None = None) -> Identifiability:
    """Diagnose every library: conditioning, correlations, threshold sweep, random-centre stability, verdict.

    Parameters
    ----------
    weak : the assembled system.
    settings : None: the defaults.

    Returns
    -------
    The diagnoses by library, and which of them go on.

    Examples
    --------
    >>> field, settings = vp.example_field().frames(slice(0, 36)), vp.load_settings("quick")
    >>> weak = vp.weak_system(field, vp.estimate_drift(field), settings, 60)
    >>> diagnose(weak, settings).law_seen
    True
    """
    return diagnose_libraries(weak.columns, weak.system, settings or Settings())
