"""Candidate terms where two fields u and w are recorded: polynomials in both up to degree three, and both Laplacians.

Names here are the names in settings, files and reports, as in ``catalogue``: ``laplacian`` is Δu and ``laplacian_w`` is
Δw in either equation, so that one of them is diffusion and the other cross diffusion.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from video2pde.errors import SettingsError
from video2pde.terms.parse import PAIR_SYMBOLS
from video2pde.terms.term import Term

FIELDS = ("u", "w")


def _term(name: str, *parts: tuple[str, str]) -> Term:
    return Term.of(name, *parts, symbols=PAIR_SYMBOLS)


PAIR_TERMS: Mapping[str, Term] = {
    term.name: term
    for term in (
        _term("laplacian", ("xx", "u"), ("yy", "u")),
        _term("laplacian_w", ("xx", "w"), ("yy", "w")),
        _term("constant", ("", "1")),
        _term("u", ("", "u")),
        _term("w", ("", "w")),
        _term("u_squared", ("", "u**2")),
        _term("u_w", ("", "u*w")),
        _term("w_squared", ("", "w**2")),
        _term("u_cubed", ("", "u**3")),
        _term("u_squared_w", ("", "u**2*w")),
        _term("u_w_squared", ("", "u*w**2")),
        _term("w_cubed", ("", "w**3")),
    )
}
DRIFTING: Mapping[str, Term] = {
    term.name: term
    for term in (
        _term("dx", ("x", "u")),
        _term("dy", ("y", "u")),
        _term("dx_w", ("x", "w")),
        _term("dy_w", ("y", "w")),
    )
}
"""Terms that no law has, but a recording whose medium moves: they are suspects."""


def get_pair_term(name: str) -> Term:
    """Look up a term of two fields by its name."""
    if name not in PAIR_TERMS:
        match = difflib.get_close_matches(name, PAIR_TERMS, n=1)
        hint = f" (did you mean '{match[0]}'?)" if match else ""
        raise SettingsError(f"two fields have no term '{name}'{hint}; known: {', '.join(PAIR_TERMS)}")
    return PAIR_TERMS[name]
