"""A term as text that ``Term.of`` reads back to the same term: for run folders and model files."""

from __future__ import annotations

import sympy

from video2pde.errors import StageError
from video2pde.terms.parse import FUNCTIONS, MAX_EXPONENT, MAX_NUMBER
from video2pde.terms.term import Term


def term_parts(term: Term) -> tuple[tuple[str, str], ...]:
    """Return the (derivative, density) texts from which ``Term.of`` makes the same term.

    Examples
    --------
    >>> term_parts(Term.of("mine", ("x", "u*sqrt(u)"), ("", "0.5*u_x")))
    (('x', 'sqrt(u)**3'), ('', 'u_x*1/2'))
    """
    parts = tuple(
        ("x" * part.derivative[0] + "y" * part.derivative[1], density_text(part.density)) for part in term.parts
    )
    if Term.of(term.name, *parts) != term:
        raise StageError(f"the term '{term.name}' cannot be stored: its text {parts} means another term")
    return parts


def density_text(density: sympy.Expr) -> str:
    """Write a density in the words of the whitelist, every number exactly."""
    if density.is_Add:
        return "+".join(density_text(part) for part in density.args)
    if density.is_Mul:
        # the number last: SymPy would multiply it into a first factor that is a sum
        return "*".join(_factor(part) for part in sorted(density.args, key=lambda part: bool(part.is_Rational)))
    if density.is_Symbol:
        return str(density.name)
    if density.is_Rational:
        text = _whole(int(density.p))
        return text if density.q == 1 else f"{text}/{_whole(int(density.q))}"
    if density == sympy.E:  # exp(1) is a number of its own in SymPy
        return "exp(1)"
    if density.is_Pow:
        return _power(density.base, density.exp)
    if isinstance(density, sympy.Abs):  # what √(x²) becomes
        return f"sqrt({_grouped(density.args[0])}**2)"
    name = density.func.__name__
    if name in FUNCTIONS:
        return f"{name}({density_text(density.args[0])})"
    raise StageError(f"the density {density} cannot be stored: '{name}' is not in the whitelist of densities")


def _factor(expression: sympy.Expr) -> str:
    return f"({density_text(expression)})" if expression.is_Add else density_text(expression)


def _grouped(expression: sympy.Expr) -> str:
    """Put brackets around everything that a power would otherwise tear apart."""
    text = density_text(expression)
    return text if expression.is_Symbol else f"({text})"


def _power(base: sympy.Expr, exponent: sympy.Expr) -> str:
    """Write a power with square roots for halves, decimals elsewhere, and in pieces above the whitelist's limit."""
    if not exponent.is_Rational:
        raise StageError(f"the density {base}**{exponent} cannot be stored: powers must be numbers")
    power, root = int(exponent.p), int(exponent.q)
    text = _grouped(base)
    if base.is_positive and root not in (1, 2) and abs(exponent) <= MAX_EXPONENT:
        decimal = repr(float(exponent))
        if sympy.Rational(decimal) == exponent and "e" not in decimal:
            return f"{text}**{decimal}"
    while root > 1 and root % 2 == 0:
        text, root = f"sqrt({text})", root // 2
    if root != 1:
        raise StageError(f"the density {base}**{exponent} cannot be stored: powers must be decimals or square roots")
    sign, left = ("-" if power < 0 else ""), abs(power)
    pieces = []
    while left:
        piece = min(left, MAX_EXPONENT)
        pieces.append(text if piece == 1 and not sign else f"{text}**{sign}{piece}")
        left -= piece
    return "*".join(pieces)


def _whole(number: int) -> str:
    """Write a whole number; one above the whitelist's limit as a sum of multiples of that limit."""
    step = int(MAX_NUMBER)
    if abs(number) <= step:
        return str(number)
    sign = "-" if number < 0 else ""
    high, low = divmod(abs(number), step)
    return f"{sign}({_whole(high)}*{step}+{low})"


def degree(density: sympy.Expr) -> int:
    """Bound the degree of a density, functions counting as one more than their argument."""
    if density.is_Add:
        return max(degree(part) for part in density.args)
    if density.is_Mul:
        return sum(degree(part) for part in density.args)
    if density.is_Pow and density.exp.is_Rational:
        return int(sympy.ceiling(abs(density.exp) * degree(density.base)))
    if density.is_Symbol:
        return 1
    return 1 + max((degree(part) for part in density.args), default=-1)
