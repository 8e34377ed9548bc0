"""A law as one line: LaTeX and text, with rounded coefficients."""

from __future__ import annotations

from collections.abc import Sequence

from video2pde.flow import Flow
from video2pde.flow.words import left_side
from video2pde.terms import Term
from video2pde.terms.words import describe, Words

DIGITS = 4


def write_equation(
    terms: Sequence[Term], coefficients: Sequence[float], drift: bool = True, flow: Flow | None = None
) -> Words:
    """Write u_t + v(t)·∇u = Σ c_j T_j(u) with numbers in it; with a flow, v depends on x and y, too."""
    left = left_side(flow) if drift else Words("u_t", "u_t")
    latex, text = "", ""
    for term, value in zip(terms, coefficients, strict=True):
        words = describe(term)
        sign = "-" if value < 0 else "+"
        number = f"{abs(value):.{DIGITS}g}"
        first = not latex
        latex += f"{'-' if value < 0 else ''}" if first else f" {sign} "
        text += f"{'−' if value < 0 else ''}" if first else f" {'−' if value < 0 else '+'} "
        alone = words.text == "1"
        latex += _number_latex(number) + ("" if alone else rf"\,{words.latex}")
        text += number + ("" if alone else f" {words.text}")
    return Words(f"{left.latex} = {latex or '0'}", f"{left.text} = {text or '0'}")


def _number_latex(number: str) -> str:
    mantissa, _, exponent = number.partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa
