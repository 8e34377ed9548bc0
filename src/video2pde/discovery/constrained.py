"""Constraints in weak form: what is known is taken off the left side, signs become bounds of the regression.

    b − Σ c_f Θ_f = Σ ξ_l Θ_l,      f the terms whose coefficients c_f are known.

Every later step (sparse fits, sweeps, random centres, the search over subsets) then works on what is left to explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import fit_library
from video2pde.discovery.system import all_terms
from video2pde.discovery.weak import WeakSystem
from video2pde.settings import Settings
from video2pde.terms.catalogue import constraints, TENSOR
from video2pde.terms.constraints import WHOLE_TENSOR

Array = NDArray[np.float64]

SURE, MUCH = 4.0, 0.05
"""Standard errors, and share of its value, from which on the film contradicts a coefficient that is held."""


class Draws(Protocol):
    """What draws weak systems at random centres."""

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem: ...


@dataclass(frozen=True, eq=False)
class Reduced:
    """Draw weak systems from ``columns`` without the part of the change that ``fixed`` coefficients explain."""

    columns: Draws
    fixed: Mapping[str, float]

    def draw(self, count: int, rng: np.random.Generator) -> WeakSystem:
        return take_off(self.columns.draw(count, rng), self.fixed)


def take_off(system: WeakSystem, fixed: Mapping[str, float]) -> WeakSystem:
    """Take what known coefficients explain off the left side, and their columns out."""
    known = [name for name in system.names if name in fixed]
    if not known:
        return system
    kept = tuple(name for name in system.names if name not in fixed)
    explained = system.columns(known) @ np.array([fixed[name] for name in known])
    return WeakSystem(kept, system.columns(kept), system.b - explained, system.centres, system.widths)


def with_signs(settings: Settings) -> Settings:
    """Write the signs that are known of coefficients as bounds of the regression."""
    known = constraints(settings)
    if known is None or not (settings.constraints.positive or settings.constraints.negative):
        return settings
    signs: dict[str, Any] = dict(settings.regression.signs)
    for term in all_terms(settings):
        sign = 0 if term.is_drift else known.sign(term)
        if sign:
            signs[term.name] = "positive" if sign > 0 else "negative"
    if WHOLE_TENSOR in settings.constraints.positive:
        signs[WHOLE_TENSOR] = "positive"
        signs |= dict.fromkeys(TENSOR[:2], "positive")
    regression = settings.regression.model_copy(update={"signs": signs})
    return settings.model_copy(update={"regression": regression})


@dataclass(frozen=True)
class HeldCheck:
    """A coefficient that is held at ``value``, and what the weak form finds where it is left ``free``, ± ``error``."""

    term: str
    value: float
    free: float
    error: float

    @property
    def contradicted(self) -> bool:
        """Whether the film says otherwise, beyond its errors and by more than a few per cent."""
        apart = abs(self.free - self.value)
        return apart > SURE * self.error and apart > MUCH * max(abs(self.value), abs(self.free))

    def words(self) -> str:
        return (
            f"{self.term} is held at {self.value:g}; left free, the weak form finds {self.free:.4g} ± {self.error:.2g}"
            + (": the film contradicts it" if self.contradicted else "")
        )


def check_held(system: WeakSystem, names: Sequence[str], settings: Settings) -> tuple[HeldCheck, ...]:
    """Fit a law with all its coefficients free, and compare those that are held; ``system`` with all columns."""
    fixed = settings.constraints.fixed
    whole = settings.regression.model_copy(update={"threshold": 0.0})
    fit = fit_library("", names, system, whole)
    return tuple(
        HeldCheck(name, fixed[name], fit.coefficients[name], fit.errors[name]) for name in names if name in fixed
    )
