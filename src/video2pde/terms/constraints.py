"""What is known of a law before anything is fitted, and holds in every fit.

Conservation and symmetry say which terms may be in a law at all. Equal coefficients make one term of several, so that
there is one coefficient to fit. A coefficient that is known is held, and a sign is a bound. So the regression, the
search over subsets and the calibration meet the constraints inside their fits: none is imposed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy

from video2pde.errors import SettingsError
from video2pde.terms.families import FAMILIES
from video2pde.terms.symbol import is_diffusion
from video2pde.terms.term import jet_symbol, Term, total_derivative

if TYPE_CHECKING:
    from video2pde.settings import ConstraintSettings

DIFFUSION, WHOLE_TENSOR = "diffusion", "tensor"
"""What may stand for terms where a sign is asked for: every term that is diffusion, and the diffusion tensor."""
Find = Callable[[str], Term]


@lru_cache(maxsize=512)
def is_conserved(term: Term) -> bool:
    """Tell whether a term only moves things: it is the divergence of something, so that its integral is a flux.

    That is so where Euler's operator finds nothing, Σ (−1)^|α| D^α ∂T/∂u_α = 0.

    Examples
    --------
    >>> [is_conserved(Term.of("mine", part)) for part in (("xx", "u**2"), ("", "u*u_x"), ("", "u_x**2"))]
    [True, True, False]
    """
    total = sympy.Integer(0)
    for order in term.jets:
        part = sympy.diff(term.strong, jet_symbol(order))
        for axis, times in enumerate(order):
            for _ in range(times):
                part = -total_derivative(part, axis)
        total += part
    # a source that is the same everywhere has no u in it, and conserves nothing
    return bool(term.jets) and sympy.simplify(total) == 0


@lru_cache(maxsize=512)
def is_symmetric(term: Term, symmetry: str) -> bool:
    """Tell whether a term stays what it is where x or y is mirrored, or where the picture is turned by a quarter."""
    swapped, signs = {"mirror_x": (False, (1, 0)), "mirror_y": (False, (0, 1)), "rotation": (True, (0, 1))}[symmetry]
    moved = {}
    for i, j in term.jets:
        sign = (-1) ** (signs[0] * i + signs[1] * j)
        moved[jet_symbol((i, j))] = sign * jet_symbol((j, i) if swapped else (i, j))
    return bool(sympy.expand(term.strong - term.strong.xreplace(moved)) == 0)


@dataclass(frozen=True)
class Constraints:
    """The constraints of a run, checked: ``merged`` by name, the terms that several became; ``fixed`` by name."""

    settings: ConstraintSettings
    merged: Mapping[str, Term]
    fixed: Mapping[str, Term]

    @classmethod
    def of(cls, settings: ConstraintSettings, find: Find) -> Constraints:
        """Check the settings; ``find`` looks a term up. What contradicts itself is refused."""
        merged = {}
        groups = [name for group in settings.equal for name in group]
        if twice := sorted({name for name in groups if groups.count(name) > 1}):
            raise SettingsError(f"constraints.equal: '{twice[0]}' is there twice; join the groups that it is in")
        for group in settings.equal:
            if len(group) < 2:
                raise SettingsError(f"constraints.equal: a group needs two terms or more, not {', '.join(group)}")
            terms = [find(name) for name in group]
            if parametric := [term.name for term in terms if term.name in FAMILIES]:
                raise SettingsError(f"constraints.equal: '{parametric[0]}' has a parameter; it cannot be joined")
            name = "_and_".join(group)[:40]
            merged[name] = Term(name, tuple(part for term in terms for part in term.parts))
        for name in settings.fixed:
            if name in groups:
                raise SettingsError(
                    f"constraints: '{name}' is fixed and equal to another one; fix each of them instead"
                )
        fixed = {name: find(name) for name in settings.fixed}
        found = cls(settings, merged, fixed)
        found._check_signs(find)
        for name, term in {**fixed, **merged}.items():
            if reason := found.excludes(term):
                raise SettingsError(f"constraints: '{name}' is asked for, but {reason}")
        return found

    def _check_signs(self, find: Find) -> None:
        for name in (*self.settings.positive, *self.settings.negative):
            if name not in (DIFFUSION, WHOLE_TENSOR):
                find(name)
        if both := set(self.settings.positive) & set(self.settings.negative):
            raise SettingsError(f"constraints: '{min(both)}' is to be positive and negative; fix it at 0 instead")
        for name, term in self.fixed.items():
            sign = self.sign(term)
            if sign * self.settings.fixed[name] < 0:
                words = "positive" if sign > 0 else "negative"
                raise SettingsError(
                    f"constraints: '{name}' is fixed at {self.settings.fixed[name]:g}, and to be {words}"
                )

    def sign(self, term: Term) -> int:
        """Return the sign that a term's coefficient must have; 0 where any will do."""
        named = {term.name, *(part for part in self.settings.equal_names(term.name))}
        if is_diffusion(term):
            named.add(DIFFUSION)
        return int(bool(named & set(self.settings.positive))) - int(bool(named & set(self.settings.negative)))

    def excludes(self, term: Term) -> str:
        """Say why a term cannot be in any law; an empty text: it can."""
        if self.settings.conserve and not term.is_drift and not is_conserved(term):
            return "it does not conserve what there is (constraints.conserve)"
        symmetry = self.settings.symmetry
        if symmetry != "none" and not term.is_drift and not is_symmetric(term, symmetry):
            return f"it differs where the picture is changed as constraints.symmetry = '{symmetry}' says"
        return ""

    def join(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """Put the joined term in place of the terms whose coefficients are equal: with one of them come all."""
        joined: list[Term] = []
        for term in terms:
            name = next((n for n, group in self.groups.items() if term.name in group), None)
            whole = term if name is None else self.merged[name]
            if whole not in joined:
                joined.append(whole)
        return tuple(joined)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The names of the terms that each joined term is made of."""
        return dict(zip(self.merged, self.settings.equal, strict=True))

    def constrain(self, laws: Mapping[str, tuple[Term, ...]], named: bool) -> dict[str, tuple[Term, ...]]:
        """Make laws meet the constraints; of a law that is ``named`` no term may be missing then.

        What a law may not hold is left out of it, what is equal is joined, and what is known belongs to every law.
        Laws that have become the same are one.
        """
        found: dict[str, tuple[Term, ...]] = {}
        for name, terms in laws.items():
            joined = self.join(terms)
            if named and (bad := next((term for term in joined if self.excludes(term)), None)):
                raise SettingsError(f"law '{name}': the term '{bad.name}' cannot be in it: {self.excludes(bad)}")
            free = tuple(term for term in joined if not self.excludes(term) and term.name not in self.fixed)
            if free and not any({t.name for t in free} == {t.name for t in self.free(o)} for o in found.values()):
                found[name] = (*free, *self.fixed.values())
        if not found:
            raise SettingsError("constraints: no law is left of which anything could be fitted; take a constraint back")
        return found

    def free(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """Return the terms whose coefficients are to be fitted."""
        return tuple(term for term in terms if term.name not in self.fixed)

    def constrain_units(self, units: Sequence[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
        """Make the units of a search meet the constraints; what is known is in every law, and is no unit."""
        found: list[tuple[Term, ...]] = []
        for unit in units:
            joined = self.free(self.join(unit))
            if joined and not any(self.excludes(term) for term in joined) and joined not in found:
                found.append(joined)
        if not found:
            raise SettingsError("constraints: no term is left to be searched; take a constraint back")
        return tuple(found)
