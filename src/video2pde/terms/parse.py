"""Read a density such as ``u*(1 - u)`` from text, against a whitelist; nothing is ever evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import sympy

from video2pde.errors import SettingsError

U, U_X, U_Y, V_X, V_Y = sympy.symbols("u u_x u_y v_x v_y", real=True)
W, W_X, W_Y = sympy.symbols("w w_x w_y", real=True)
DENSITY_SYMBOLS = {"u": U, "u_x": U_X, "u_y": U_Y}
PAIR_SYMBOLS = {**DENSITY_SYMBOLS, "w": W, "w_x": W_X, "w_y": W_Y}
"""The same where a second field w is recorded beside u."""
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": sympy.exp,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "tanh": sympy.tanh,
    "sin": sympy.sin,
    "cos": sympy.cos,
}
MAX_LENGTH = 200
MAX_EXPONENT = 8
MAX_NUMBER = 1e6


def parse_density(text: str, symbols: dict[str, sympy.Symbol] | None = None) -> sympy.Expr:
    """Turn text into a SymPy expression over u, u_x, u_y.

    Allowed are numbers, these symbols, + − * /, whole powers up to 8, other powers of what is always positive, and
    exp, log, sqrt, tanh, sin, cos. Everything else is refused with a line that names it.
    """
    names = DENSITY_SYMBOLS if symbols is None else symbols
    if len(text) > MAX_LENGTH:
        raise SettingsError(f"a density may have {MAX_LENGTH} characters, this one has {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        expression = _convert(tree.body, names, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SettingsError(f"the density '{text}' is not an expression over {', '.join(names)}") from None
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I):
        raise SettingsError(f"the density '{text}' has no finite real value")
    return expression


def _convert(node: ast.expr, names: dict[str, sympy.Symbol], text: str) -> sympy.Expr:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number) if abs(number) <= MAX_NUMBER:
            # a decimal is taken as written: 0.3 is 3/10, so that words and stencils show no rounding
            return sympy.Rational(repr(number))
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_convert(operand, names, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _convert(operand, names, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _convert(left, names, text), _exponent(right, text)
            if not power.is_Integer and not base.is_positive:
                raise SettingsError(
                    f"the power {float(power):g} in the density '{text}' needs a base that is positive whatever u is, "
                    "such as (u**2 + 0.0001)"
                )
            if _highest_power(left) * abs(power) <= MAX_EXPONENT:
                return base**power
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _convert(left, names, text), _convert(right, names, text)
            if isinstance(operator, ast.Add):
                return a + b
            if isinstance(operator, ast.Sub):
                return a - b
            if isinstance(operator, ast.Mult):
                return a * b
            if isinstance(operator, ast.Div):
                return a / b
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](_convert(argument, names, text))
    raise SettingsError(
        f"'{ast.unparse(node)[:40]}' is not allowed in the density '{text}': only numbers, "
        f"{', '.join(names)}, + - * /, whole powers up to {MAX_EXPONENT}, and {', '.join(FUNCTIONS)}"
    )


def _highest_power(node: ast.expr) -> sympy.Rational:
    """Return the largest product of nested exponents, so that a tower of powers cannot be built."""
    inner = max(
        (_highest_power(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)),
        default=sympy.Integer(1),
    )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return inner * max(sympy.Integer(1), abs(_exponent(node.right, ast.unparse(node))))
    return inner


def _exponent(node: ast.expr, text: str) -> sympy.Rational:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    number = node.value if isinstance(node, ast.Constant) else None
    if isinstance(number, int | float) and not isinstance(number, bool) and number <= MAX_EXPONENT:
        return sign * sympy.Rational(repr(number))
    raise SettingsError(f"powers in the density '{text}' must be numbers up to {MAX_EXPONENT}")
