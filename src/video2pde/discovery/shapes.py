"""A parameter that does not enter linearly, profiled in weak form: what is left unexplained, as a function of it.

For every value of the parameter the term is a column like any other, and the best that a law with it can do is a linear
fit. The columns of all trial values are assembled at once; a second assembly refines around the best of them. The
rollouts' fit takes it from there (``calibration.shaped``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import Normal, normal_equations
from video2pde.discovery.subsets import walk_subsets
from video2pde.discovery.system import all_terms, weak_system
from video2pde.drift import Drift
from video2pde.errors import SettingsError
from video2pde.field import Field
from video2pde.settings import Settings
from video2pde.terms import CATALOGUE, DRIFT, Term
from video2pde.terms.catalogue import libraries, searched
from video2pde.terms.families import FAMILIES, Family

Array = NDArray[np.float64]

FINER = 7
"""Values between the neighbours of the best trial value that refine it."""
FEW = 3
"""Terms of a law, at most, that the parameter is profiled with in a search over subsets."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A parameter as the weak form sees it: the ``family``, its ``value``, and the profile that it was found by.

    ``trials`` ascending, ``left``: the share of ‖b‖² that the best law with that value leaves.
    """

    family: str
    symbol: str
    value: float
    trials: Array
    left: Array

    @property
    def at_an_end(self) -> bool:
        """Whether the best value is the first or the last that is tried."""
        return self.value in (FAMILIES[self.family].trial[0], FAMILIES[self.family].trial[-1])


def unknown_family(settings: Settings) -> Family | None:
    """Return the family whose parameter has to be estimated; two of them at once are refused."""
    names = [term.name for term in all_terms(settings)]
    wanted = [FAMILIES[name] for name in FAMILIES if name in names and name not in settings.regression.shapes]
    if len(wanted) > 1:
        given = " or ".join(f"regression.shapes.{family.name}" for family in wanted)
        raise SettingsError(f"one parameter is estimated at a time; give {given} a value, such as {wanted[0].usual:g}")
    return wanted[0] if wanted else None


def check_together(settings: Settings) -> None:
    """Refuse what cannot be estimated together."""
    known, family = settings.constraints, unknown_family(settings)
    held = bool(known.fixed or known.positive or known.negative)
    if family is not None and held:
        raise SettingsError(
            f"known coefficients and signs go with a parameter that is given: set regression.shapes.{family.name}"
        )
    if settings.maps.vary and (held or family is not None):
        raise SettingsError(
            "a coefficient that varies (maps.vary) goes without known coefficients, signs and parameters to estimate"
        )


def settle_shape(train: Field, drift: Drift, settings: Settings, frames: int) -> tuple[Settings, Shape | None]:
    """Estimate the parameter that is not given, if there is one, and return the settings with it."""
    family = unknown_family(settings)
    if family is None:
        return settings, None
    trials = np.array(family.trial)
    left = _profile(family, trials, train, drift, settings, frames)
    best = int(np.argmin(left))
    low, high = trials[max(best - 1, 0)], trials[min(best + 1, len(trials) - 1)]
    between = np.setdiff1d(np.round(np.linspace(low, high, FINER + 2), 4), trials)
    left = np.concatenate([left, _profile(family, between, train, drift, settings, frames)])
    trials = np.concatenate([trials, between])
    order = np.argsort(trials)
    trials, left = trials[order], left[order]
    value = family.bounded(_lowest(trials, left))
    shapes = {**settings.regression.shapes, family.name: value}
    regression = settings.regression.model_copy(update={"shapes": shapes})
    return settings.model_copy(update={"regression": regression}), Shape(
        family.name, family.symbol, value, trials, left
    )


def _lowest(trials: Array, left: Array) -> float:
    """Return where a parabola through the least value and its neighbours is lowest."""
    best = int(np.argmin(left))
    if best in (0, len(trials) - 1):
        return float(trials[best])
    part = slice(best - 1, best + 2)
    bend, slope, _ = np.polyfit(trials[part] - trials[best], left[part], 2)
    return float(trials[best] - slope / (2 * bend)) if bend > 0 else float(trials[best])


def _profile(family: Family, trials: Array, train: Field, drift: Drift, settings: Settings, frames: int) -> Array:
    """Return what the best law leaves with each value of the parameter, (values,)."""
    members = [replace(family.member(value), name=f"{family.name}_{k}") for k, value in enumerate(trials)]
    others = [term for term in all_terms(settings) if term.name != family.name and not term.is_drift]
    drifting: list[Term] = [CATALOGUE[name] for name in DRIFT]
    system = weak_system(train, drift, settings, frames, terms=[*others, *members, *drifting]).system
    normal = normal_equations(system, settings.regression.drift)
    return np.array([_best_law(normal, family.name, member.name, settings) for member in members])


def _best_law(normal: Normal, family: str, member: str, settings: Settings) -> float:
    """Return what the best law that holds a member of the family leaves."""
    drift = [name for name in normal.names if name.startswith("drift")]
    laws = [[term.name for term in terms] for terms in libraries(settings).values()]
    laws = [[member if name == family else name for name in names] for names in laws if family in names]
    if laws:
        return min(_left(normal, [*names, *drift]) for names in laws)
    units = [[member if term.name == family else term.name for term in unit] for unit in searched(settings)]
    own = units.index([member])
    limit = settings.identifiability.condition_limit**-2.0
    found = walk_subsets(normal, units, drift, FEW, limit).best
    return min((each.left for subsets in found.values() for each in subsets if own in each.units), default=1.0)


def _left(normal: Normal, names: Sequence[str]) -> float:
    part = normal.take(names)
    return float(1 - part.right @ np.linalg.lstsq(part.gram, part.right, rcond=None)[0])
