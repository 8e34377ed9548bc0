"""A term in words: LaTeX, text and the units of its coefficient, all derived from its parts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import sympy

from video2pde.numbers import superscript
from video2pde.terms.families import family_of, POROUS_POWER
from video2pde.terms.parse import U, U_X, U_Y, V_X, V_Y, W
from video2pde.terms.term import Order, Part, Term

_GRADIENT = sympy.Symbol("G", real=True)
_OPERATORS: tuple[tuple[dict[Order, int], str, str], ...] = (
    ({(2, 0): 1, (0, 2): 1}, r"\Delta ", "Δ"),
    ({(4, 0): 1, (2, 2): 2, (0, 4): 1}, r"\Delta^{2} ", "Δ²"),
)


@dataclass(frozen=True)
class Words:
    """A term as LaTeX and as Unicode text."""

    latex: str
    text: str


def describe(term: Term) -> Words:
    """Write the term, recognising Δ, Δ², ∇·(g∇u) and |∇u|² in its parts."""
    drift = _drift_words(term)
    if drift is not None:
        return drift
    recognised = _family_words(term) or _operator(term.parts)
    if recognised is not None:
        return recognised
    if sympy.expand(term.strong - U * (sympy.Symbol("u_xx", real=True) + sympy.Symbol("u_yy", real=True))) == 0:
        return Words(r"u\,\Delta u", "u Δu")
    latex, text = [], []
    for part in term.parts:
        words = _part_words(part)
        latex.append(words.latex)
        text.append(words.text)
    joined = Words(" + ".join(latex), " + ".join(text))
    # a sum, or a leading minus, would be misread behind a coefficient
    plain = len(term.parts) == 1 and not joined.text.startswith(("-", "−"))
    return joined if plain else Words(rf"\left({joined.latex}\right)", f"({joined.text})")


def _drift_words(term: Term) -> Words | None:
    for velocity, symbol, letter in ((V_X, U_X, "x"), (V_Y, U_Y, "y")):
        if sympy.expand(term.strong + velocity * symbol) == 0:
            return Words(rf"\left(-v_{letter}(t)\,u_{letter}\right)", f"(−v_{letter}(t) u_{letter})")
    return None


def _family_words(term: Term) -> Words | None:
    """Write a term of a family with its parameter in four digits at most."""
    found = family_of(term)
    if found is None:
        return None
    family, value = found
    number = f"{value:.4g}"
    if family is POROUS_POWER:
        return Words(rf"\nabla\cdot\left(u^{{{number}}}\,\nabla u\right)", f"∇·(u^{number} ∇u)")
    return Words(rf"\frac{{u}}{{{number} + u}}", f"u/({number} + u)")


def _operator(parts: tuple[Part, ...]) -> Words | None:
    """Recognise Δf, Δ²f, and Δf(u) as ∇·(f′∇u)."""
    by_order = {part.derivative: part.density for part in parts}
    if len(by_order) != len(parts):
        return None
    for weights, latex, text in _OPERATORS:
        if set(by_order) != set(weights):
            continue
        densities = {sympy.expand(by_order[order] / weight) for order, weight in weights.items()}
        if len(densities) != 1:
            return None
        density = densities.pop()
        slope = sympy.diff(density, U) if density.free_symbols == {U} else None
        if text == "Δ" and slope is not None and slope.free_symbols:
            inner = _expression(slope)
            return Words(rf"\nabla\cdot\left({inner.latex}\,\nabla u\right)", f"∇·({inner.text}∇u)")
        inner = _expression(density)
        if density in (U, W):
            return Words(latex + density.name, text + density.name)
        return Words(rf"{latex}\left({inner.latex}\right)", f"{text}({inner.text})")
    return None


def _part_words(part: Part) -> Words:
    inner = _expression(part.density)
    i, j = part.derivative
    if (i, j) == (0, 0):
        return inner
    letters = "x" * i + "y" * j
    if part.density == U:
        return Words(f"u_{{{letters}}}", f"u_{letters}")
    return Words(rf"\left({inner.latex}\right)_{{{letters}}}", f"({inner.text})_{letters}")


def _expression(expression: sympy.Expr) -> Words:
    squared = sympy.expand(expression.subs(U_X**2, _GRADIENT - U_Y**2))
    shown = sympy.factor(squared) if not squared.has(U_X, U_Y) else expression
    factor, rest = sympy.factor_terms(shown).as_independent(_GRADIENT, as_Add=False)
    if rest == _GRADIENT:
        sign = "-" if factor == -1 else ""
        before = Words(sign, sign) if abs(factor) == 1 else _plain(factor)
        return Words(rf"{before.latex}\left|\nabla u\right|^{{2}}", f"{before.text} |∇u|²".lstrip())
    return _plain(shown)


def _plain(shown: sympy.Expr) -> Words:
    text = str(shown).replace("**", "^")
    for power in range(9, 1, -1):
        text = text.replace(f"^{power}", superscript(power))
    latex = sympy.latex(shown).replace("G", r"\left|\nabla u\right|^{2}")
    return Words(latex, text.replace("*", " ").replace("G", "|∇u|²"))


def length_power(term: Term) -> int | None:
    """Return q where T ~ length^−q; None if the parts do not share one power."""
    scale = sympy.Symbol("s", positive=True)
    powers = set()
    for part in term.parts:
        scaled = part.density.subs(
            {U_X: U_X / scale, U_Y: U_Y / scale, V_X: V_X * scale, V_Y: V_Y * scale}, simultaneous=True
        )
        power = sympy.simplify(scaled / part.density)
        exponent = sympy.simplify(sympy.log(power) / sympy.log(scale)) if power != 1 else sympy.Integer(0)
        if not exponent.is_Integer:
            return None
        powers.add(sum(part.derivative) - int(exponent))
    return powers.pop() if len(powers) == 1 else None


def coefficient_units(term: Term, length: str = "image units", time: str = "s") -> str:
    """Return the units of the term's coefficient, such as ``image units²/s``; u itself has none."""
    if term.is_drift:
        return "1"
    power = length_power(term)
    if power is None:
        return "mixed"
    if power == 0:
        return f"1/{time}"
    raised = "" if power == 1 else superscript(power)
    return f"{length}{raised}/{time}"


def rescaling(term: Term, length: float = 1.0, time: float = 1.0, gain: float = 1.0) -> float | None:
    """Return the factor on the coefficient when lengths, times and u are multiplied by the given factors.

    None where the density is not homogeneous in u, so that no single factor exists.
    """
    power = length_power(term)
    degree = intensity_degree(term)
    if power is None or degree is None:
        return None
    if term.is_drift:
        return 1.0
    return float(length**power / time * gain ** float(1 - degree))


def intensity_degree(term: Term) -> Fraction | None:
    """Return p where T(s·u) = s^p T(u); None where there is none."""
    scale = sympy.Symbol("s", positive=True)
    degrees = set()
    for part in term.parts:
        scaled = part.density.subs({U: scale * U, U_X: scale * U_X, U_Y: scale * U_Y}, simultaneous=True)
        ratio = sympy.simplify(scaled / part.density)
        exponent = sympy.simplify(sympy.log(ratio) / sympy.log(scale)) if ratio != 1 else sympy.Integer(0)
        if not exponent.is_Rational:
            return None
        degrees.add(Fraction(int(exponent.p), int(exponent.q)))
    return degrees.pop() if len(degrees) == 1 else None
