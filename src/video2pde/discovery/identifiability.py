"""Identifiability: what this recording can tell about each library, and which libraries go on.

Per library: condition number and correlations of the normalised columns, a logarithmic threshold sweep, and
the stability of the selection over random sets of centres. From these a verdict in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import (
    ACTIVE,
    fit_library,
    LEAST_UNEXPLAINED,
    Normal,
    normal_equations,
    solve_sparse,
    SparseFit,
)
from video2pde.discovery.weak import WeakColumns, WeakSystem
from video2pde.settings import IdentifiabilitySettings, Settings
from video2pde.terms.catalogue import libraries, TENSOR
from video2pde.terms.term import Term

Array = NDArray[np.float64]

LEAST_UNIQUE_SHARE = 0.01
"""Share of the signal that only this term explains, from which it counts as needed."""
MOSTLY = 0.5
"""Share of the signal from which a library is believed to have dropped the right one of two terms."""
SIGNIFICANT = 4.0
"""Standard errors that a coefficient must exceed to count as evidence of a law."""


class Draws(Protocol):
    """What draws weak systems at random centres: ``WeakColumns``, or columns with a flow beside the law."""

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem: ...


@dataclass(frozen=True, eq=False)
class Sweep:
    """Trace the support over thresholds: ``coefficients`` is (threshold, term), ``counts`` the active terms."""

    thresholds: Array
    coefficients: Array
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stability:
    """Selection over random centres: frequency, mean and standard deviation of the selected coefficients."""

    runs: int
    frequency: Mapping[str, float]
    mean: Mapping[str, float]
    std: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class LibraryDiagnosis:
    """Everything that is known about one library on this recording.

    ``unique_shares``: the share of the signal that would be lost without a term. ``robust``: the terms that
    are selected reliably and whose unique share counts.
    """

    library: str
    terms: tuple[str, ...]
    fit: SparseFit
    condition: float
    correlation: Array
    sweep: Sweep
    stability: Stability
    unique_shares: Mapping[str, float]
    robust: tuple[str, ...]
    inseparable: tuple[tuple[str, str], ...]
    contender: bool
    verdict: str

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, the drift included, in the order of ``correlation`` and of the sweep."""
        return self.fit.names


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Diagnoses by library, the contenders that go on, and the verdict on the whole.

    ``by_rollout``: the frames were too few for a diagnosis; all libraries go on, and their rollouts decide.
    """

    libraries: Mapping[str, LibraryDiagnosis]
    contenders: tuple[str, ...]
    law_seen: bool
    verdict: str
    by_rollout: bool = False

    def __repr__(self) -> str:
        lines = [f"{name}: {diagnosis.verdict}" for name, diagnosis in self.libraries.items()]
        return "\n".join([self.verdict, *lines])


def diagnose_libraries(columns: Draws, system: WeakSystem, settings: Settings, few: bool = False) -> Identifiability:
    """Diagnose every library of the settings on one recording; with ``few`` frames all of them go on."""
    return diagnose_laws(libraries(settings), system, draw_runs(columns, settings), settings, few)


def draw_runs(columns: Draws, settings: Settings) -> list[Normal]:
    """Draw the random sets of centres over which stability is measured."""
    options = settings.identifiability

    rngs = [np.random.default_rng([settings.run.seed, 1, run]) for run in range(options.stability_runs)]
    systems: Iterable[WeakSystem]
    if isinstance(columns, WeakColumns):  # together: filtered frames that do not fit into memory pass by once
        systems = columns.draw_each(options.stability_centres, rngs)
    else:
        systems = (columns.draw(options.stability_centres, rng) for rng in rngs)
    return [normal_equations(system, settings.regression.drift) for system in systems]


def diagnose_laws(
    laws: Mapping[str, tuple[Term, ...]],
    system: WeakSystem,
    runs: list[Normal],
    settings: Settings,
    few: bool = False,
) -> Identifiability:
    """Diagnose laws by name on one recording; ``runs`` from :func:`draw_runs`."""
    undecided = few or settings.regression.law is not None
    normal = normal_equations(system, settings.regression.drift)
    found: dict[str, LibraryDiagnosis] = {}
    for name, terms in laws.items():
        found[name] = _diagnose_library(name, tuple(t.name for t in terms), system, normal, runs, settings, undecided)
    if settings.regression.law is not None:
        return _take_as_named(found)
    if few:
        return _take_all(found)
    found = _settle_contenders(found, settings)
    contenders = tuple(name for name, diagnosis in found.items() if diagnosis.contender)
    return Identifiability(found, contenders, *_overall(found, contenders))


def _take_as_named(found: dict[str, LibraryDiagnosis]) -> Identifiability:
    """Let the one law that was named go on with all its terms: nothing is discovered, the diagnoses are for reading."""
    named = {
        name: replace(d, robust=d.terms, contender=True, verdict="named by the user: no other law was tried")
        for name, d in found.items()
    }
    listed = ", ".join(f"{name} ({d.fit.explained:.2%})" for name, d in named.items())
    return Identifiability(
        named, tuple(named), True, f"named law, with the share of the weak signal that it explains: {listed}"
    )


def _take_all(found: dict[str, LibraryDiagnosis]) -> Identifiability:
    """Let every library go on with all its terms: so few frames decide by their rollouts alone."""
    whole = {
        name: replace(d, robust=d.terms, contender=True, verdict="goes on: too few frames for test functions to tell")
        for name, d in found.items()
    }
    return Identifiability(
        whole, tuple(whole), True, "too few frames for the weak form to tell laws apart: rollouts decide", True
    )


def _diagnose_library(
    library: str,
    terms: tuple[str, ...],
    system: WeakSystem,
    normal: Normal,
    runs: list[Normal],
    settings: Settings,
    whole: bool,
) -> LibraryDiagnosis:
    """Diagnose one library; ``whole``: with all its terms."""
    options = settings.identifiability
    regression = settings.regression
    if whole:
        regression = regression.model_copy(update={"threshold": 0.0})
    fit = fit_library(library, terms, system, regression)
    part = normal.take(fit.names)
    stability = _measure_stability(fit.names, runs, settings)
    unique = _unique_shares(part.gram, fit)
    # where the fit leaves less than that, a smaller share is still more than a remainder of everything else
    counts = min(LEAST_UNIQUE_SHARE, max(np.sqrt(max(1 - fit.explained, 0.0)), LEAST_UNIQUE_SHARE / 5))
    reliable = [n for n in terms if _is_reliable(stability.frequency[n], fit.significance(n), options)]
    robust = _whole_tensor(terms, [n for n in reliable if unique[n] >= counts])
    settled = {
        n: (n in robust and fit.significance(n) >= SIGNIFICANT)
        or stability.frequency[n] <= 1 - options.robust_frequency
        for n in terms
    }
    pairs = tuple(
        (fit.names[j], fit.names[i])
        for i in range(len(terms))
        for j in range(i)
        if abs(part.gram[i, j]) >= options.correlation_limit and not (settled[terms[i]] and settled[terms[j]])
    )
    return LibraryDiagnosis(
        library=library,
        terms=terms,
        fit=fit,
        condition=_condition(part.gram),
        correlation=part.gram,
        sweep=_sweep(part, settings),
        stability=stability,
        unique_shares=unique,
        robust=robust,
        inseparable=pairs,
        contender=False,
        verdict="",
    )


def _whole_tensor(terms: tuple[str, ...], robust: list[str]) -> tuple[str, ...]:
    """Count all entries of a diffusion tensor as robust where one is: any of them may be zero."""
    if set(TENSOR) <= set(terms) and set(TENSOR) & set(robust):
        return tuple(n for n in terms if n in robust or n in TENSOR)
    return tuple(robust)


def _is_reliable(frequency: float, significance: float, options: IdentifiabilitySettings) -> bool:
    """Tell whether a term is selected reliably: nearly always, or mostly and far from zero."""
    return frequency >= options.robust_frequency or (frequency >= 0.5 and significance >= 2 * SIGNIFICANT)


def _unique_shares(gram: Array, fit: SparseFit) -> dict[str, float]:
    """Return the share of the signal that would be lost without a term: |s_l| / √(R⁻¹)_ll over the active columns.

    Two columns that nearly cancel have large shares, and hardly anything that the other could not explain.
    """
    unique = dict.fromkeys(fit.names, 0.0)
    index = [i for i, name in enumerate(fit.names) if name in fit.active]
    inverse = np.linalg.pinv(gram[np.ix_(index, index)])
    for i, own in zip(index, np.diag(inverse), strict=True):
        unique[fit.names[i]] = fit.shares[fit.names[i]] / float(np.sqrt(max(own, 1.0)))
    return unique


def _condition(gram: Array) -> float:
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(values[-1] / max(values[0], 1e-16)))


def _sweep(normal: Normal, settings: Settings) -> Sweep:
    options = settings.identifiability
    thresholds = np.geomspace(options.sweep_low, options.sweep_high, options.sweep_points)
    solutions = [solve_sparse(normal, settings.regression, float(limit)) for limit in thresholds]
    return Sweep(
        thresholds,
        np.array([s.coefficients for s in solutions]),
        np.array([len(s.active) for s in solutions], dtype=np.int64),
    )


def _measure_stability(names: tuple[str, ...], runs: list[Normal], settings: Settings) -> Stability:
    solutions = [solve_sparse(run.take(names), settings.regression) for run in runs]
    coefficients = np.array([s.coefficients for s in solutions])
    selected = np.array([s.shares for s in solutions]) > ACTIVE
    frequency, mean, std = {}, {}, {}
    for index, name in enumerate(names):
        values = coefficients[selected[:, index], index]
        frequency[name] = float(selected[:, index].mean())
        mean[name] = float(values.mean()) if len(values) else float("nan")
        std[name] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return Stability(len(runs), frequency, mean, std)


def _settle_contenders(found: dict[str, LibraryDiagnosis], settings: Settings) -> dict[str, LibraryDiagnosis]:
    """Say for each library why it goes on or not; a library that reduces to another one gives way to it."""
    options = settings.identifiability
    best = max(found, key=lambda name: found[name].fit.explained)
    complete = {frozenset(d.terms): name for name, d in found.items() if set(d.robust) == set(d.terms)}
    settled = {}
    for name, d in found.items():
        weak = [n for n in d.terms if n not in d.robust]
        contender = False
        # only a library that is no larger can show that this one's form is wrong: more terms always explain more
        rival = max((r for r in found.values() if len(r.terms) <= len(d.terms)), key=lambda r: r.fit.explained)
        unresolved = _unresolved(d, found)
        if unresolved:
            pairs = "; ".join(f"{a} and {b}" for a, b in unresolved)
            verdict = f"out: {pairs} cannot be told apart on this recording"
        elif d.condition > options.condition_limit:
            verdict = f"out: ill-conditioned (κ = {d.condition:.3g}), so its coefficients mean nothing one by one"
        elif d.fit.explained < options.explained_share * found[best].fit.explained:
            verdict = f"out: explains {d.fit.explained:.1%} of the weak signal, {best} {found[best].fit.explained:.1%}"
        elif 1 - d.fit.explained > options.unexplained_ratio * max(1 - rival.fit.explained, LEAST_UNEXPLAINED):
            verdict = (
                f"out: leaves {1 - d.fit.explained:.2%} of the weak signal unexplained, {rival.library} "
                f"{1 - rival.fit.explained:.3%} with as few terms"
            )
        elif not d.robust:
            verdict = "out: no term of its own is selected reliably"
        elif weak:
            other = complete.get(frozenset(d.robust))
            dropped = ", ".join(
                f"{n} in {d.stability.frequency[n]:.0%} of the runs for {d.unique_shares[n]:.1%} of the signal"
                for n in weak
            )
            contender = other is None
            verdict = f"selects {dropped}" + (f": reduces to {other}" if other else ": goes on without")
        else:
            contender = True
            verdict = "all terms robust"
        settled[name] = replace(d, contender=contender, verdict=verdict)
    return settled


def _unresolved(d: LibraryDiagnosis, found: Mapping[str, LibraryDiagnosis]) -> list[tuple[str, str]]:
    """Return the inseparable pairs between which the recording does not choose.

    It does choose where only one of a pair is robust, most is explained, and by no law as small more than by this one:
    the other term alone is among those laws.
    """
    robust = set(d.robust)
    as_small = [o.fit.explained for o in found.values() if len(set(o.terms) & set(o.fit.active)) <= len(robust)]
    if robust and d.fit.explained >= max(MOSTLY, *as_small):
        return [pair for pair in d.inseparable if set(pair) <= robust or not set(pair) & robust]
    return list(d.inseparable)


def _overall(found: dict[str, LibraryDiagnosis], contenders: tuple[str, ...]) -> tuple[bool, str]:
    """Judge whether there is anything to explain: a significant, robust term that explains part of the signal."""
    seen = {
        name: max(
            (d.fit.significance(t) for t in (*d.robust, *(n for n in d.fit.active if n.startswith("drift")))), default=0
        )
        for name, d in found.items()
    }
    best = max(found, key=lambda name: found[name].fit.explained)
    explained, strength = found[best].fit.explained, max(seen.values(), default=0.0)
    if strength < SIGNIFICANT or explained < 0.05:
        return False, (
            f"no law: the best library ({best}) explains {max(explained, 0):.1%} of the weak signal and its strongest "
            f"coefficient is {strength:.1f} standard errors from zero{_nearest(found[best])}"
        )
    if not contenders:
        return False, (
            f"no law: no library keeps a term of its own over random sets of test functions{_nearest(found[best])}"
        )
    ranked = sorted(contenders, key=lambda name: -found[name].fit.explained)
    listed = ", ".join(f"{name} ({found[name].fit.explained:.2%})" for name in ranked)
    return True, f"contenders, with the share of the weak signal that they explain: {listed}"


def _nearest(best: LibraryDiagnosis) -> str:
    """Say what the library that explains most has found, and why it is out: what came nearest is worth knowing."""
    kept = [f"{name} {best.fit.coefficients[name]:.4g}" for name in best.terms if name in best.fit.active]
    listed = ", ".join(kept) or "none of its terms is kept"
    why = f": {best.verdict.removeprefix('out: ')}" if best.verdict.startswith("out: ") else ""
    return f"; nearest comes {best.library} in weak form ({listed}){why}"
