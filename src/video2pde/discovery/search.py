"""A search over all subsets of the catalogue's terms: the front of error against number of terms, and who goes on.

The weak system of all terms is assembled once; its normal equations say what every subset leaves (``subsets``). Of each
size the best subset that can be a law stands on the front; random sets of centres say how often it does. Others of
its size that leave hardly more stand beside it: the weak form cannot tell them apart, rollouts may. What goes on to
rollouts is a set number of laws: those that leave little more than the best of all, the smallest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import LEAST_UNEXPLAINED, Normal, normal_equations
from video2pde.discovery.subsets import Subset, Subsets, walk_subsets
from video2pde.discovery.weak import WeakSystem
from video2pde.progress import Progress
from video2pde.settings import Settings
from video2pde.terms.catalogue import constraints, libraries, searched
from video2pde.terms.symbol import damps
from video2pde.terms.term import Term

Array = NDArray[np.float64]
Laws = dict[str, tuple[Term, ...]]

OFTEN = 0.1
"""Share of the random sets of centres in which a set of terms must be the best of its size to count beside it."""
ALIKE = 1.1
"""How many times what the best set of its size leaves a set may leave to count beside it, and by how much a larger law
must leave less than every smaller one for its last term to mean something."""
BESIDE = 3
"""Sets that stand beside the front's of their size at most."""
TOLD = 3
"""Sets of each size that are named though they cannot be a law: those that leave least."""


@dataclass(frozen=True)
class FoundLaw:
    """A set of terms of the search.

    ``unexplained``: share of ‖b‖² that it leaves; ``frequency``: share of the random sets of centres in which it is the
    best of its size; ``same``: sets of as many terms that this recording cannot tell from it; ``goes_on``: to rollouts.
    """

    name: str
    terms: tuple[str, ...]
    coefficients: Mapping[str, float]
    unexplained: float
    condition: float
    frequency: float
    same: tuple[tuple[str, ...], ...] = ()
    goes_on: bool = False


@dataclass(frozen=True)
class SetAside:
    """A set of terms that leaves less than the law of its size on the front, and why it is none itself."""

    terms: tuple[str, ...]
    unexplained: float
    reason: str


@dataclass(frozen=True, eq=False)
class Search:
    """What the search has found.

    ``subsets``: sets of terms that were looked at; ``front``: the best law of each size; ``others``: about as good as
    that, or better in some sets of centres; ``inseparable``: terms of which one is made up by the others on this
    recording; ``inclusion`` (size, term): share of the random sets of centres in which the best law of that size has
    the term.
    """

    terms: tuple[str, ...]
    subsets: int
    runs: int
    front: tuple[FoundLaw, ...]
    others: tuple[FoundLaw, ...]
    set_aside: tuple[SetAside, ...]
    inseparable: tuple[tuple[str, ...], ...]
    inclusion: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def going_on(self) -> tuple[FoundLaw, ...]:
        return tuple(law for law in (*self.front, *self.others) if law.goes_on)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``result.json``."""
        return {
            "terms": list(self.terms),
            "subsets": self.subsets,
            "front": [{**asdict(law), "size": len(law.terms)} for law in self.front],
            "others": [{**asdict(law), "size": len(law.terms)} for law in self.others],
            "set_aside": [asdict(each) for each in self.set_aside],
            "inseparable": [list(names) for names in self.inseparable],
        }

    def sent_on(self, within: float, most: int) -> Search:
        """Let laws go on that leave at most ``within`` times what the best of all leaves: ``most``.

        First come those of the front that leave clearly less than every smaller one, the smallest first, then what
        stands beside them, then the rest.
        """
        enough = max(within * min((law.unexplained for law in self.front), default=0.0), LEAST_UNEXPLAINED)
        steps, least = set[str](), np.inf
        for law in sorted(self.front, key=lambda law: len(law.terms)):
            left = max(law.unexplained, LEAST_UNEXPLAINED)
            if ALIKE * left < least:
                steps.add(law.name)
            least = min(least, left)
        sizes = {len(law.terms) for law in self.front if law.name in steps}
        on_front = {law.name for law in self.front}

        def rank(law: FoundLaw) -> tuple[int, int]:
            beside = law.name not in on_front and len(law.terms) in sizes
            return 0 if law.name in steps else 1 if beside else 2, len(law.terms)

        ordered = sorted((*self.front, *self.others), key=rank)
        chosen = [law.name for law in ordered if law.unexplained <= enough][:most]
        front, others = (
            tuple(replace(law, goes_on=law.name in chosen) for law in laws) for laws in (self.front, self.others)
        )
        return replace(self, front=front, others=others)


def candidate_laws(
    system: WeakSystem,
    runs: Sequence[Normal],
    settings: Settings,
    few: bool = False,
    progress: Progress | None = None,
) -> tuple[Laws, Search | None]:
    """Return the laws to diagnose: the libraries, or what a search over subsets finds, if the settings ask for it.

    A named law needs no search, ``few`` frames allow none, and where no set of terms can be a law the libraries stay.
    """
    if settings.search.over == "libraries" or settings.regression.law is not None or few:
        return libraries(settings), None
    found = search_laws(normal_equations(system, settings.regression.drift), runs, settings, progress)
    terms = {term.name: term for unit in searched(settings) for term in unit}
    known = constraints(settings)
    held = () if known is None else tuple(known.fixed.values())
    laws = {law.name: (*(terms[name] for name in law.terms), *held) for law in found.going_on}
    return laws or libraries(settings), found


def search_laws(normal: Normal, runs: Sequence[Normal], settings: Settings, progress: Progress | None = None) -> Search:
    """Search all subsets of the settings' terms.

    Parameters
    ----------
    normal : normal equations of the weak system of all terms.
    runs : the same at random sets of centres.
    settings : those of the search, regression, identifiability, terms and libraries.
    progress : called with the number of random sets done and in all.

    Returns
    -------
    The front, and which of its laws go on.
    """
    bench = _Bench(settings)
    walk = bench.walk(normal)
    drawn = []
    for index, run in enumerate(runs):
        drawn.append(bench.best_of_each_size(run))
        if progress is not None:
            progress(index + 1, len(runs))
    front, others, aside = list[FoundLaw](), list[FoundLaw](), list[SetAside]()
    for size, subsets in walk.best.items():
        good, bad = bench.sort_out(normal, subsets)
        aside += bad
        if good:
            best, *rivals = bench.tell_apart(normal, good, [run[size].units for run in drawn if size in run], len(runs))
            front.append(best)
            others += rivals
    return Search(
        terms=bench.listed,
        subsets=walk.visited,
        runs=len(runs),
        front=tuple(front),
        others=tuple(others),
        set_aside=tuple(aside),
        inseparable=tuple(bench.names(units) for units in walk.collinear),
        inclusion=bench.inclusion(drawn, max(walk.best, default=0)),
    ).sent_on(settings.search.within, settings.search.laws)


class _Bench:
    """What a search is made with: its units, and what keeps a set of terms from being a law."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.units = searched(settings)
        fixed = settings.constraints.fixed
        by_name = {name: [t for t in terms if t.name not in fixed] for name, terms in libraries(settings).items()}
        self.named = {frozenset(t.name for t in terms): (name, terms) for name, terms in by_name.items()}

    @cached_property
    def listed(self) -> tuple[str, ...]:
        return tuple(term.name for unit in self.units for term in unit)

    def names(self, units: Sequence[int]) -> tuple[str, ...]:
        """Return the terms of some units, in the order of a library that has the same ones."""
        terms = tuple(term.name for unit in units for term in self.units[unit])
        known = self.named.get(frozenset(terms))
        return terms if known is None else tuple(term.name for term in known[1])

    def walk(self, normal: Normal) -> Subsets:
        """Look at all subsets of the units in a weak system."""
        return walk_subsets(
            normal,
            [[term.name for term in unit] for unit in self.units],
            _drift_of(normal),
            self.settings.search.most_terms,
            self.settings.identifiability.condition_limit**-2.0,
        )

    def best_of_each_size(self, normal: Normal) -> dict[int, Subset]:
        """Return the best subset of each size that can be a law."""
        best = {}
        for size, subsets in self.walk(normal).best.items():
            good = next((each for each in subsets if not self._why_not(normal, each)), None)
            if good is not None:
                best[size] = good
        return best

    def sort_out(self, normal: Normal, subsets: Sequence[Subset]) -> tuple[list[Subset], list[SetAside]]:
        """Tell the subsets of one size that can be a law from those that leave less and cannot."""
        good, bad = list[Subset](), list[SetAside]()
        for each in subsets:
            reason = self._why_not(normal, each)
            if not reason:
                good.append(each)
            elif not good and len(bad) < TOLD:
                bad.append(SetAside(self.names(each.units), each.left, reason))
        return good, bad

    def _why_not(self, normal: Normal, subset: Subset) -> str:
        """Say why a set of terms cannot be a law; an empty text: it can."""
        found = self.describe(normal, subset)
        limit = self.settings.identifiability.condition_limit
        if found.condition > limit:
            return f"its terms cannot be told apart (κ = {found.condition:.3g}, at most {limit:g})"
        for name, sign in self.settings.regression.signs.items():
            if name in found.coefficients and found.coefficients[name] * (1 if sign == "positive" else -1) < 0:
                return f"{name} is not {sign}"
        terms = {term.name: term for unit in subset.units for term in self.units[unit]}
        known = constraints(self.settings)
        held = {} if known is None else known.fixed
        values = [*found.coefficients.values(), *(self.settings.constraints.fixed[name] for name in held)]
        if not damps([*(terms[name] for name in found.terms), *held.values()], values):
            return "its diffusion is negative: it cannot be run forward"
        return ""

    def describe(self, normal: Normal, subset: Subset) -> FoundLaw:
        """Solve for a subset's coefficients, the drift beside them."""
        names = self.names(subset.units)
        part = normal.take([*names, *_drift_of(normal)])
        shares = np.linalg.lstsq(part.gram, part.right, rcond=None)[0]
        scale = normal.signal / np.where(part.norms > 0, part.norms, 1.0)
        values = np.linalg.eigvalsh(part.gram)
        known = self.named.get(frozenset(names))
        return FoundLaw(
            name=f"S{len(names)}" if known is None else known[0],
            terms=names,
            coefficients={name: float(s * k) for name, s, k in zip(names, shares, scale, strict=False)},
            unexplained=subset.left,
            condition=float(np.sqrt(values[-1] / max(values[0], 1e-16))),
            frequency=0.0,
        )

    def tell_apart(
        self, normal: Normal, good: Sequence[Subset], wins: Sequence[tuple[int, ...]], runs: int
    ) -> list[FoundLaw]:
        """Return the best law of one size, and those that leave hardly more or are often the best of it.

        Sets that span the same columns are one law; ``wins``: the best set of that size in random sets of centres.
        """
        enough = ALIKE * max(good[0].left, LEAST_UNEXPLAINED)
        found, rest = list[FoundLaw](), list(good)
        while rest and len(found) <= BESIDE:
            ways = _same_span(normal, rest, self)
            alike = {each.units for each in ways}
            often = sum(units in alike for units in wins) / max(runs, 1)
            if not found or rest[0].left <= enough or often >= OFTEN:
                law = self.describe(normal, min(ways, key=lambda each: each.units))
                same = tuple(sorted(self.names(each.units) for each in ways if self.names(each.units) != law.terms))
                letter = "" if not found or frozenset(law.terms) in self.named else chr(ord("a") + len(found))
                found.append(replace(law, name=f"{law.name}{letter}", same=same, frequency=often))
            rest = [each for each in rest if each.units not in alike]
        return found

    def inclusion(self, drawn: Sequence[Mapping[int, Subset]], largest: int) -> Array:
        """Return how often the best law of each size has each term, (size, term)."""
        counts = np.zeros((largest, len(self.listed)))
        for run in drawn:
            for size, subset in run.items():
                if size <= largest:
                    counts[size - 1, [self.listed.index(name) for name in self.names(subset.units)]] += 1
        return np.asarray(counts / max(len(drawn), 1))


def _drift_of(normal: Normal) -> list[str]:
    return [name for name in normal.names if name.startswith("drift")]


def _same_span(normal: Normal, good: Sequence[Subset], bench: _Bench) -> list[Subset]:
    """Return the best subset and those of its size that span the same columns: they say the same in other terms."""
    least, drift = bench.settings.identifiability.condition_limit**-2.0, _drift_of(normal)
    first = normal.take([*bench.names(good[0].units), *drift])
    ways = [good[0]]
    for other in good[1:]:
        more = [name for name in bench.names(other.units) if name not in first.names]
        whole = normal.take([*first.names, *more]).gram
        count = len(first.names)
        across = whole[:count, count:]
        left = np.diag(whole)[count:] - np.sum(across * np.linalg.lstsq(first.gram, across, rcond=None)[0], axis=0)
        if (left < least).all():
            ways.append(other)
    return ways
