"""A law as one line: LaTeX and text, with rounded coefficients."""

from __future__ import annotations

from collections.abc import Sequence

from video2pde.flow import Flow
from video2pde.flow.words import left_side
from video2pde.maps import CoefficientMap
from video2pde.maps.words import write_mapped
from video2pde.numbers import format_latex, format_number
from video2pde.terms import Term
from video2pde.terms.words import describe, Words

DIGITS = ".4g"


def write_equation(
    terms: Sequence[Term],
    coefficients: Sequence[float],
    *,
    drift: bool = True,
    flow: Flow | None = None,
    maps: Sequence[CoefficientMap] = (),
    quantity: str = "u",
) -> Words:
    """Write u_t + v(t)·∇u = Σ c_j T_j(u) with numbers in it.

    Parameters
    ----------
    terms, coefficients : the T_j and c_j.
    drift : whether the left side has the drift.
    flow : with one, v depends on x and y, too.
    maps : coefficients that vary; what stands in the equation is their mean, with a mark.
    quantity : whose law it is, where there is no drift.

    Returns
    -------
    The equation as LaTeX and as Unicode text.

    Examples
    --------
    >>> from video2pde.terms import CATALOGUE
    >>> terms = [CATALOGUE["grad_squared"], CATALOGUE["laplacian"]]
    >>> print(write_equation(terms, [-9.005, 12345.0]).text)
    u_t + v(t)·∇u = −9.005 |∇u|² + 1.234×10⁴ Δu
    """
    left = left_side(flow) if drift else Words(f"{quantity}_t", f"{quantity}_t")
    latex, text = "", ""
    varies = {each.term: each.over for each in maps}
    for term, value in zip(terms, coefficients, strict=True):
        words, size = describe(term), abs(value)
        if term.name in varies:
            words = write_mapped(term, words, varies[term.name])
        minus = value < 0
        latex += f" {'-' if minus else '+'} " if latex else "-" * minus
        text += f" {'−' if minus else '+'} " if text else "−" * minus
        alone = words.text == "1"
        latex += format_latex(size, DIGITS) + ("" if alone else rf"\,{words.latex}")
        text += format_number(size, DIGITS) + ("" if alone else f" {words.text}")
    return Words(f"{left.latex} = {latex or '0'}", f"{left.text} = {text or '0'}")
