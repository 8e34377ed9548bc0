"""One structure for all films: their weak systems stacked, each in units of its own noise.

Columns of the law are shared. Those of the drift are each film's own and are taken out of its system first, by
projection, so that no threshold can drop them::

    [ (1 − P_1) Θ_1 / σ_1 ]          [ (1 − P_1) b_1 / σ_1 ]
    [ (1 − P_2) Θ_2 / σ_2 ]  ξ   ≈   [ (1 − P_2) b_2 / σ_2 ]        P_f: onto the drift's columns of film f
    [          …          ]          [          …          ]

The libraries are diagnosed on the whole as they are on one film, with random parts of every film's test functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.identifiability import diagnose_laws, draw_runs, Identifiability
from video2pde.discovery.regression import fit_library, SparseFit
from video2pde.discovery.search import candidate_laws, Laws
from video2pde.discovery.weak import WeakSystem
from video2pde.settings import Settings
from video2pde.stages import Discovery
from video2pde.terms import CATALOGUE, libraries, Term
from video2pde.terms.catalogue import all_own_terms, DRIFT

Array = NDArray[np.float64]

LEAST_LEFT = 1e-4
"""Share of a film's weak signal that counts as its noise at least: below it, differences of scheme remain."""
SUPPORTED = 4.0
"""Standard errors from zero at which a film supports a term."""


@dataclass(frozen=True, eq=False)
class Overlaps:
    """How much test functions share, film by film; those of two films share nothing. Made when it is needed."""

    systems: tuple[WeakSystem, ...]

    __array_ufunc__ = None  # a product from the left is ours

    def __rmatmul__(self, left: Array) -> Array:
        ends = np.cumsum([0, *(len(system.b) for system in self.systems)])
        parts = [left[:, a:b] @ s.overlap for s, a, b in zip(self.systems, ends[:-1], ends[1:], strict=True)]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class StackedSystem(WeakSystem):
    """The weak systems of several films as one; it knows which rows belong to which film."""

    films: tuple[WeakSystem, ...] = ()

    @cached_property
    def overlap(self) -> Overlaps:  # type: ignore[override]
        return Overlaps(self.films)


@dataclass(frozen=True, eq=False)
class Stack:
    """The films' weak systems, in units of their noise, from which stacked systems are drawn."""

    films: tuple[WeakSystem, ...]

    def join(self, films: Sequence[WeakSystem]) -> StackedSystem:
        """Set systems under each other."""
        names = films[0].names
        theta = np.concatenate([film.columns(names) for film in films])
        b, centres = (np.concatenate(parts) for parts in zip(*((f.b, f.centres) for f in films), strict=True))
        return StackedSystem(names, theta, b, centres, films[0].widths, tuple(films))

    def draw(self, count: int, rng: np.random.Generator) -> StackedSystem:
        """Draw part of each film's test functions, ``count`` in all or half of those that there are."""
        each = -(-count // len(self.films))
        parts = []
        for film in self.films:
            chosen = rng.choice(len(film.b), size=max(1, min(each, len(film.b) // 2)), replace=False)
            parts.append(WeakSystem(film.names, film.theta[chosen], film.b[chosen], film.centres[chosen], film.widths))
        return self.join(parts)


@dataclass(frozen=True)
class Support:
    """What one film says of one term: coefficient and standard error in the weak form, and whether it supports it."""

    film: str
    term: str
    coefficient: float
    error: float

    @property
    def significance(self) -> float:
        return abs(self.coefficient) / self.error if self.error > 0 else 0.0

    @property
    def supports(self) -> bool:
        return self.significance >= SUPPORTED


@dataclass(frozen=True)
class JointContender:
    """A law that goes on: its library, its terms, and the coefficients of the stacked weak fit."""

    library: str
    terms: tuple[str, ...]
    coefficients: Mapping[str, float]
    explained: float


@dataclass(frozen=True, eq=False)
class Structure:
    """What the films together say about structure.

    ``noise`` by film: the root mean square that no library explains of its weak system, which weighs its rows;
    ``support``: who supports which term, for every term of a contender.
    """

    identifiability: Identifiability
    contenders: tuple[JointContender, ...]
    noise: Mapping[str, float]
    support: tuple[Support, ...]

    def __repr__(self) -> str:
        return f"Structure({self.identifiability.verdict})"


def stack_films(found: Mapping[str, Discovery], settings: Settings) -> Structure:
    """Fit every library, or what a search finds, to all films together, and find which terms they can tell apart."""
    by_library = libraries(settings)
    systems, noise = list[WeakSystem](), dict[str, float]()
    for name, discovery in found.items():
        system = take_out_drift(discovery.system, settings.regression.drift)
        noise[name] = _noise_of(system, [[term.name for term in terms] for terms in by_library.values()], settings)
        systems.append(_scale(system, 1 / noise[name]))
    stack = Stack(tuple(systems))
    whole = stack.join(systems)
    runs = draw_runs(stack, settings)
    laws, _ = candidate_laws(whole, runs, settings)
    seen = diagnose_laws(laws, whole, runs, settings)
    contenders = _contenders(seen, laws, whole, settings)
    wanted = list(dict.fromkeys(term for contender in contenders for term in contender.terms))
    support = [
        s for name, film in zip(found, systems, strict=True) for s in _support(name, film, contenders, wanted, settings)
    ]
    return Structure(seen, contenders, noise, tuple(support))


def take_out_drift(system: WeakSystem, treatment: str) -> WeakSystem:
    """Take the drift's columns out of a film's system: as fitted, by one factor, or as measured (``fixed``)."""
    own = [name for name in system.names if name in DRIFT]
    kept = tuple(name for name in system.names if name not in DRIFT)
    theta, b = system.columns(kept), system.b
    if own:
        moved = system.columns(own)
        if treatment == "fixed":
            b = b - moved.sum(axis=1)
        else:
            moved = moved.sum(axis=1, keepdims=True) if treatment == "scale" else moved
            basis = np.linalg.qr(moved)[0]
            theta, b = theta - basis @ (basis.T @ theta), b - basis @ (basis.T @ b)
    return WeakSystem(kept, theta, b, system.centres, system.widths)


def _scale(system: WeakSystem, factor: float) -> WeakSystem:
    return WeakSystem(system.names, factor * system.theta, factor * system.b, system.centres, system.widths)


def _noise_of(system: WeakSystem, candidates: Sequence[Sequence[str]], settings: Settings) -> float:
    """Return the root mean square that the best library leaves of a film's weak system."""
    whole = settings.regression.model_copy(update={"threshold": 0.0})
    best = max(fit_library("", names, system, whole).explained for names in candidates)
    return float(np.sqrt(max(1 - best, LEAST_LEFT) * np.mean(system.b**2)))


def _contenders(
    seen: Identifiability, by_library: Laws, whole: StackedSystem, settings: Settings
) -> tuple[JointContender, ...]:
    """Name the laws that go on; what is left of a larger library may be another one, and is then no law of its own."""
    found = list[JointContender]()
    ordered = sorted(seen.contenders, key=lambda name: len(seen.libraries[name].robust) < len(by_library[name]))
    for name in ordered if seen.law_seen else ():
        terms = tuple(term.name for term in by_library[name] if term.name in seen.libraries[name].robust)
        if any(set(terms) == set(other.terms) for other in found):
            continue
        fit = fit_library(name, terms, whole, settings.regression)
        found.append(JointContender(name, terms, {term: fit.coefficients[term] for term in terms}, fit.explained))
    return tuple(sorted(found, key=lambda contender: -contender.explained))


def _support(
    film: str, system: WeakSystem, contenders: Sequence[JointContender], wanted: Sequence[str], settings: Settings
) -> list[Support]:
    """Ask one film for each term: in the contender that explains most among those that hold it, nothing dropped."""
    whole = settings.regression.model_copy(update={"threshold": 0.0})
    fits: list[SparseFit] = [fit_library(c.library, c.terms, system, whole) for c in contenders]
    found = []
    for term in wanted:
        fit = max((f for f in fits if term in f.names), key=lambda f: f.explained)
        found.append(Support(film, term, fit.coefficients[term], fit.errors[term]))
    return found


def find_terms(names: Sequence[str], settings: Settings) -> tuple[Term, ...]:
    """Return terms by their names, the user's own included."""
    known = {**CATALOGUE, **all_own_terms(settings)}
    return tuple(known[name] for name in names)
