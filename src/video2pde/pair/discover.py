"""Which terms both laws have: all sets of the candidates, by what they leave of the weak system.

Each equation is searched by itself, since Θ is the same for both: up to 2¹² sets (``discovery.subsets``). Of every size
the set that leaves least stands on the front. The smallest that leaves no more than noise must leave (``noise``),
within chance, is chosen; where none does, the one with the least value of Bayes' information criterion,

    N ln(left + floor) + 2 ln(N) · terms,

N being the number of test functions that do not overlap, and its penalty doubled because thousands of sets compete. The
floor is what films leave beside their noise; arrays that a large set explains far better have a lower one.
Random sets of centres say how steady the choice is; sets of no more terms that come close are rivals. The laws that go
on to rollouts are the combinations of both equations' candidates, the best first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import LEAST_UNEXPLAINED, normal_equations, solve_columns
from video2pde.discovery.subsets import walk_subsets
from video2pde.discovery.weak import WeakSystem
from video2pde.errors import SettingsError
from video2pde.pair.fields import Pair
from video2pde.pair.law import OWN, PairLaw
from video2pde.pair.noise import expected_residual, measure_memory
from video2pde.pair.weak import pair_columns, PairColumns
from video2pde.progress import Progress
from video2pde.settings import Settings
from video2pde.terms.pairs import DRIFTING, FIELDS, get_pair_term, PAIR_TERMS

Array = NDArray[np.float64]

MOST_TERMS = 8
"""Terms of one law at most."""
CLOSE = 6.0
"""Distance in the criterion up to which a set counts beside the best one."""
SCATTER = 4.0
"""Standard deviations of a mean of squares by which noise may leave more than is expected of it."""
RIVALS = 3
"""Sets of one equation that go on at most, the best among them."""
OVERLAP = (2 * np.sqrt(np.pi)) ** 3
"""Space-time that one independent test function takes, in units of σ_t σ_y σ_x: the integral of exp(−d²/4)."""
FINER = 3.0
"""How much more than the largest set leaves is no reason for more terms, where that is less than films allow for."""
RANK = 1e-10
"""Relative size below which a direction of the columns is none."""


@dataclass(frozen=True)
class FoundSet:
    """A set of terms for one law.

    ``unexplained``: share of ‖b‖² that it leaves; ``criterion``: less is better; ``frequency``: share of the random
    sets of centres in which it is chosen; ``reason``: why it can be no law, empty where it can.
    """

    terms: tuple[str, ...]
    coefficients: Mapping[str, float]
    unexplained: float
    criterion: float
    frequency: float = 0.0
    reason: str = ""


@dataclass(frozen=True, eq=False)
class EquationSearch:
    """The search for one law: the front, the sets that go on (the best first), and what noise must leave of ‖b‖².

    ``independent``: test functions that do not overlap; ``subsets``: sets that were looked at; ``inclusion``: share of
    the random sets of centres in which the chosen set has the term; ``floor``: share of ‖b‖² below which none counts.
    """

    field: str
    front: tuple[FoundSet, ...]
    candidates: tuple[FoundSet, ...]
    expected: float
    independent: float
    subsets: int
    inclusion: Mapping[str, float] = dataclass_field(default_factory=dict)
    floor: float = LEAST_UNEXPLAINED


@dataclass(frozen=True, eq=False)
class PairDiscovery:
    """Both searches, and the laws that go on to rollouts by name, the best first."""

    u: EquationSearch
    w: EquationSearch
    laws: Mapping[str, PairLaw]
    runs: int
    named: bool = False
    notes: tuple[str, ...] = ()

    @property
    def searches(self) -> tuple[EquationSearch, EquationSearch]:
        return self.u, self.w


def discover(train: Pair, total_frames: int, settings: Settings, progress: Progress | None = None) -> PairDiscovery:
    """Search both laws on the training window.

    Parameters
    ----------
    train : the training window.
    total_frames : frames of the whole recording, of which the width of a test function in time is a share.
    settings : those of the weak system, identifiability, search and regression (a named law).
    progress : called with the random sets of centres done and in all.

    Returns
    -------
    The front of each law, and the laws that go on.
    """
    columns = make_columns(train, total_frames, settings)
    systems = columns.draw(settings.weak.test_functions, np.random.default_rng([settings.run.seed, 0]))
    independent = count_independent(columns)
    noise = [measure_memory(part) for part in train.fields]
    named = settings.regression.law
    if named is not None:
        given = parse_law(named)
        sets = [_describe(f, s, names, independent) for f, s, names in zip(FIELDS, systems, given, strict=True)]
        searches = tuple(
            EquationSearch(name, (found,), (found,), _expected(columns, system, n, found, noise[n]), independent, 1)
            for n, (name, system, found) in enumerate(zip(FIELDS, systems, sets, strict=True))
        )
        runs = 0
    else:
        runs = settings.identifiability.stability_runs
        searches = tuple(_search(name, columns, systems[n], independent, noise[n]) for n, name in enumerate(FIELDS))
        drawn = _draw_runs(columns, settings, searches, progress)
        searches = tuple(_count(search, [run[n] for run in drawn]) for n, search in enumerate(searches))
    laws = _combine(searches, settings.search.laws)
    return PairDiscovery(searches[0], searches[1], laws, runs, named is not None, columns.widths.notes)


def make_columns(train: Pair, total_frames: int, settings: Settings, suspects: bool = False) -> PairColumns:
    """Filter the training window for all candidates, and for ``suspects``, terms that show a medium that moves."""
    terms = [*PAIR_TERMS.values(), *(DRIFTING.values() if suspects else ())]
    return pair_columns(train, terms, settings.weak, total_frames)


def count_independent(columns: PairColumns) -> float:
    """Count the test functions that fit beside each other into the window, at least one."""
    widths, reach = columns.widths, columns.widths.reach[0]
    volume = float(columns.inside.sum()) * max(1, len(columns.times) - 2 * reach)
    return max(2.0, volume / float(OVERLAP * widths.t * widths.y * widths.x))


def parse_law(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read a named law, such as 'laplacian,u_w; laplacian_w,u_w': the terms of u_t, then those of w_t."""
    parts = [tuple(name.strip() for name in part.split(",") if name.strip()) for part in text.split(";")]
    if len(parts) != 2 or not all(parts):
        raise SettingsError(
            f"regression.law = '{text}': with two fields give the terms of both laws, such as "
            "'laplacian,u_w; laplacian_w,u_w'"
        )
    for names in parts:
        for name in names:
            get_pair_term(name)
        if len(set(names)) != len(names):
            raise SettingsError(f"regression.law = '{text}': give each term once in each law")
    return parts[0], parts[1]


def allowed(expected: float, independent: float, floor: float = LEAST_UNEXPLAINED) -> float:
    """Return how much of ‖b‖² a right law may leave where noise is expected to leave ``expected``."""
    return expected * (1 + SCATTER * float(np.sqrt(2 / independent))) + floor


def _search(name: str, columns: PairColumns, system: WeakSystem, independent: float, noise: float) -> EquationSearch:
    """Look at all sets of terms for one law."""
    walk = walk_subsets(normal_equations(system), [(term,) for term in PAIR_TERMS], most=MOST_TERMS)
    listed = list(PAIR_TERMS)
    largest = [tuple(listed[unit] for unit in subsets[0].units) for subsets in walk.best.values()]
    least = min(_describe(name, system, terms, independent).unexplained for terms in largest)
    floor = min(LEAST_UNEXPLAINED, FINER * least)
    front, known = list[FoundSet](), list[FoundSet]()
    for subsets in walk.best.values():
        sets = [tuple(listed[unit] for unit in subset.units) for subset in subsets[: 2 * RIVALS]]
        found = [_describe(name, system, terms, independent, floor) for terms in sets]
        known += found
        front += [each for each in found if not each.reason][:1]
    able = [found for found in known if not found.reason] or known
    likely = min(able, key=lambda found: found.criterion)
    expected = _expected(columns, system, FIELDS.index(name), likely, noise)
    best = _choose(able, expected, independent, floor)
    rivals = [
        found
        for found in sorted(able, key=lambda found: found.criterion)
        if found is not best and len(found.terms) <= len(best.terms) and found.criterion <= best.criterion + CLOSE
    ]
    candidates = (best, *rivals[: RIVALS - 1])
    return EquationSearch(name, tuple(front), candidates, expected, independent, walk.visited, floor=floor)


def _choose(able: Sequence[FoundSet], expected: float, independent: float, floor: float) -> FoundSet:
    """Take the smallest set that leaves no more than noise, and of its size the one that leaves least."""
    enough = [found for found in able if found.unexplained <= allowed(expected, independent, floor)]
    if not enough:
        return min(able, key=lambda found: found.criterion)
    return min(enough, key=lambda found: (len(found.terms), found.unexplained))


def _count(search: EquationSearch, drawn: Sequence[tuple[str, ...]]) -> EquationSearch:
    """Enter how often each set, and each term, was chosen at random sets of centres."""

    def counted(sets: Sequence[FoundSet]) -> tuple[FoundSet, ...]:
        return tuple(replace(each, frequency=drawn.count(each.terms) / max(len(drawn), 1)) for each in sets)

    inclusion = {term: sum(term in terms for terms in drawn) / max(len(drawn), 1) for term in PAIR_TERMS}
    return replace(search, front=counted(search.front), candidates=counted(search.candidates), inclusion=inclusion)


def _describe(
    field: str, system: WeakSystem, terms: Sequence[str], independent: float, floor: float = LEAST_UNEXPLAINED
) -> FoundSet:
    """Fit a set of terms to the weak system."""
    theta, signal = system.columns(terms), float(system.b @ system.b)
    values = solve_columns(theta, system.b, RANK)
    left = float(np.sum((system.b - theta @ values) ** 2)) / (signal or 1.0)
    law = {name: float(value) for name, value in zip(terms, values, strict=True)}
    reason = f"Δ{field} has a negative coefficient: short waves would grow" if law.get(OWN[field], 0.0) < 0 else ""
    return FoundSet(tuple(terms), law, left, criterion(left, len(terms), independent, floor), 0.0, reason)


def criterion(left: float, terms: int, independent: float, floor: float = LEAST_UNEXPLAINED) -> float:
    """Return N ln(left + floor) + 2 ln(N) · terms."""
    return independent * float(np.log(left + floor)) + 2 * terms * float(np.log(independent))


def _draw_runs(
    columns: PairColumns, settings: Settings, searches: Sequence[EquationSearch], progress: Progress | None
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Choose the terms of both laws at random sets of centres, again and again."""
    listed, found = list(PAIR_TERMS), []
    count = settings.identifiability.stability_runs
    for run in range(count):
        rng = np.random.default_rng([settings.run.seed, 1, run])
        systems = columns.draw(settings.identifiability.stability_centres, rng)
        chosen = []
        for search, system in zip(searches, systems, strict=True):
            walk = walk_subsets(normal_equations(system), [(term,) for term in listed], most=MOST_TERMS)
            sets = [tuple(listed[unit] for unit in subsets[0].units) for subsets in walk.best.values()]
            able = [_describe(search.field, system, terms, search.independent, search.floor) for terms in sets]
            chosen.append(_choose(able, search.expected, search.independent, search.floor).terms)
        found.append((chosen[0], chosen[1]))
        if progress is not None:
            progress(run + 1, count)
    return found


def _expected(columns: PairColumns, system: WeakSystem, index: int, found: FoundSet, noise: float) -> float:
    """Return the share of ‖b‖² that noise must leave."""
    mean = expected_residual(columns, system.centres, index, found.coefficients, noise)
    return mean * len(system.b) / max(float(system.b @ system.b), 1e-300)


def _combine(searches: Sequence[EquationSearch], most: int) -> dict[str, PairLaw]:
    """Combine the candidates of both equations into systems, those with the smallest criteria first."""
    pairs = sorted(
        product(searches[0].candidates, searches[1].candidates), key=lambda pair: pair[0].criterion + pair[1].criterion
    )
    laws: dict[str, PairLaw] = {}
    for first, second in pairs[:most]:
        law = PairLaw.of(first.coefficients, second.coefficients)
        laws[f"system {len(laws) + 1}"] = law
    return laws
