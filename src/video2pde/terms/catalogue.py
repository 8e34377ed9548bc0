"""The catalogue: one line defines a term. Names here are the names in settings, files and reports.

Sign rule: u_t = Σ c_j T_j(u). The drift terms are −v_x u_x and −v_y u_y, so that a perfectly measured
drift has coefficient +1.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from video2pde.errors import SettingsError
from video2pde.terms.constraints import Constraints
from video2pde.terms.families import FAMILIES, family_term
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import Settings

_TERMS = (
    Term.of("constant", ("", "1")),
    Term.of("u", ("", "u")),
    Term.of("u_squared", ("", "u**2")),
    Term.of("u_cubed", ("", "u**3")),
    Term.of("grad_squared", ("", "u_x**2 + u_y**2")),
    Term.of("u_grad_squared", ("", "u*(u_x**2 + u_y**2)")),
    Term.of("laplacian", ("xx", "u"), ("yy", "u")),
    Term.of("porous", ("xx", "u**2/2"), ("yy", "u**2/2")),
    Term.of("porous_squared", ("xx", "u**3/3"), ("yy", "u**3/3")),
    Term.of("u_laplacian", ("xx", "u**2/2"), ("yy", "u**2/2"), ("", "-u_x**2 - u_y**2")),
    Term.of("biharmonic", ("xxxx", "u"), ("xxyy", "2*u"), ("yyyy", "u")),
    Term.of("saturation", ("", "u/(1 + u)")),
    *(family.member(family.usual) for family in FAMILIES.values()),
    Term.of("dx", ("x", "u")),
    Term.of("dy", ("y", "u")),
    Term.of("dxx", ("xx", "u")),
    Term.of("dyy", ("yy", "u")),
    Term.of("dxy", ("xy", "u")),
    Term.of("drift_x", ("x", "-v_x*u")),
    Term.of("drift_y", ("y", "-v_y*u")),
)
CATALOGUE: Mapping[str, Term] = {term.name: term for term in _TERMS}
DRIFT = ("drift_x", "drift_y")
TENSOR = ("dxx", "dyy", "dxy")
"""Diffusion that differs with direction: the entries of its tensor, that of dxy twice. They enter a law together, since
which of them is small depends on how the camera was turned."""

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "A": ("laplacian",),
    "B": ("u", "laplacian"),
    "C": ("grad_squared", "laplacian"),
    "C-alt": ("u_grad_squared", "laplacian"),
    "C-both": ("grad_squared", "u_grad_squared", "laplacian"),
    "Full": ("constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian"),
    "R": ("u", "u_squared", "laplacian"),
    "P": ("porous", "laplacian"),
}
"""Intrinsic terms of the candidate libraries; the drift belongs to all. R and P are not the paper's."""

LAWS: Mapping[str, tuple[str, ...]] = {
    "fisher": ("u", "u_squared", "laplacian"),
    "bistable": ("u", "u_squared", "u_cubed", "laplacian"),
    "cahn-hilliard": ("laplacian", "porous", "porous_squared", "biharmonic"),
    "thin-film": ("laplacian", "biharmonic"),
    "porous-power": ("porous_power",),
    "uptake": ("uptake", "laplacian"),
}
"""Laws that can be named (``--law``) and are not tried by themselves."""

MOST_UNITS = 20
"""Units whose subsets can be searched: a million of them."""
NAMED = "named law"
"""What a law of listed terms is called where no library has the same terms."""


def get_term(name: str, own: Mapping[str, Term] | None = None) -> Term:
    """Look a term up by name, in the catalogue and in the user's own terms."""
    known = {**CATALOGUE, **(own or {})}
    if name not in known:
        match = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean '{match[0]}'?)" if match else ""
        raise SettingsError(f"unknown term '{name}'{hint}; known: {', '.join(known)}")
    return known[name]


def own_terms(settings: Settings) -> dict[str, Term]:
    """Build the user's terms from the settings; a name of the catalogue cannot be taken again."""
    terms = {}
    for name, parts in settings.terms.items():
        if name in CATALOGUE:
            raise SettingsError(f"the term name '{name}' is taken by the catalogue; choose another")
        terms[name] = Term.of(name, *((part.derivative, part.density) for part in parts))
    return terms


def all_own_terms(settings: Settings) -> dict[str, Term]:
    """Return the user's terms, of families with a parameter those that the settings ask for, and joined terms."""
    known = constraints(settings)
    return {**_parametric(settings), **own_terms(settings), **({} if known is None else known.merged)}


def _parametric(settings: Settings) -> dict[str, Term]:
    return {name: family_term(name, settings.regression.shapes) for name in FAMILIES}


def libraries(settings: Settings) -> dict[str, tuple[Term, ...]]:
    """Return every library, the user's included, as its intrinsic terms (without the drift).

    Where a law is named in the settings it is the only one: the library of that name, or the terms that are listed,
    under the name of a library that has the same terms if there is one. With ``regression.diffusion = "tensor"`` the
    Laplacian of every one gives way to a tensor.
    """
    own = all_own_terms(settings)
    named: dict[str, tuple[str, ...]] = {**LIBRARIES, **settings.libraries}
    law = settings.regression.law
    if law is not None:
        nameable = {**LAWS, **named}
        terms = nameable.get(law) or tuple(part.strip() for part in law.split(",") if part.strip())
        known = [name for name, listed in nameable.items() if set(listed) == set(terms)]
        named = {law if law in nameable else known[0] if known else NAMED: terms}
    if settings.regression.diffusion == "tensor":
        named = {name: _with_tensor(terms) for name, terms in named.items()}
    for name, terms in named.items():
        drifting = [term for term in terms if get_term(term, own).is_drift]
        if drifting or not terms or len(set(terms)) != len(terms):
            raise SettingsError(
                f"library '{name}' = {', '.join(terms) or 'nothing'}: give each intrinsic term once, without the drift"
            )
    laws = {name: tuple(get_term(term, own) for term in terms) for name, terms in named.items()}
    limits = constraints(settings)
    return laws if limits is None else limits.constrain(laws, law is not None)


def constraints(settings: Settings) -> Constraints | None:
    """Return what is known of the law beforehand, checked; None where nothing is."""
    if not settings.constraints.any:
        return None
    own = {**_parametric(settings), **own_terms(settings)}
    return Constraints.of(settings.constraints, lambda name: get_term(name, own))


def _with_tensor(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Let the Laplacian give way to the entries of a tensor."""
    if not {"laplacian", *TENSOR} & set(terms):
        return terms
    return (*(name for name in terms if name not in ("laplacian", *TENSOR)), *TENSOR)


def searched(settings: Settings) -> tuple[tuple[Term, ...], ...]:
    """Return the units of a search over subsets: terms that enter a law together, most of them alone.

    They are those of ``search.terms``, and the user's own terms that are not among them.
    """
    own = all_own_terms(settings)
    units = [tuple(part.strip() for part in entry.split("+")) for entry in settings.search.terms]
    if settings.regression.diffusion == "tensor":
        units = [TENSOR, *(unit for unit in units if not set(unit) & {"laplacian", *TENSOR})]
    listed = [name for unit in units for name in unit]
    units += [(name,) for name in settings.terms if name not in listed]
    named = [name for unit in units for name in unit]
    if drifting := [name for name in named if get_term(name, own).is_drift]:
        raise SettingsError(f"search.terms: the drift belongs to every law; leave '{drifting[0]}' out")
    if twice := [name for name in named if named.count(name) > 1]:
        raise SettingsError(f"search.terms: '{twice[0]}' is there twice; give each term once")
    if len(units) > MOST_UNITS:
        raise SettingsError(f"search.terms: {len(units)} with your own terms; give {MOST_UNITS} at most")
    found = tuple(tuple(get_term(name, own) for name in unit) for unit in units)
    known = constraints(settings)
    return found if known is None else known.constrain_units(found)
