"""THE definition of a candidate term, T(u) = Σ_k D^α_k f_k(u, u_x, u_y), and what follows from it.

A :class:`Part` pairs a SymPy density f with the derivative D^α that acts on it. Everything else is a
view of the parts:

* weak column: (−1)^|α| ⟨D^α φ, f⟩, assembled in ``discovery.weak`` from ``density`` and ``derivative``;
* residual: :attr:`Term.strong`, the chain rule carried out, a function of the derivatives of u;
* stencil: ``terms.stencil``, finite differences of the same parts;
* words: ``terms.words``, LaTeX, text and the coefficient's units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sympy

from video2pde.errors import SettingsError
from video2pde.terms.parse import DENSITY_SYMBOLS, parse_density, U, U_X, U_Y, V_X, V_Y, W_X, W_Y

MOST_PRODUCTS, MOST_SUMMANDS = 6_000, 500
"""Products that are multiplied out, and summands that a part may have then: more take minutes to derive and compile."""

Order = tuple[int, int]
"""How often a derivative acts along x and along y."""


def jet_symbol(order: Order, field: str = "u") -> sympy.Symbol:
    """Name a derivative of u, or of a second field: (0, 0) is ``u``, (2, 1) is ``u_xxy``."""
    letters = "x" * order[0] + "y" * order[1]
    return sympy.Symbol(f"{field}_{letters}" if letters else field, real=True)


@lru_cache(maxsize=2)
def _jet_orders(field: str = "u") -> dict[sympy.Symbol, Order]:
    return {jet_symbol((i, j), field): (i, j) for i in range(7) for j in range(7 - i)}


def total_derivative(expression: sympy.Expr, axis: int) -> sympy.Expr:
    """Differentiate along x (axis 0) or y (axis 1) by the chain rule; v_x and v_y depend on time alone."""
    result = sympy.Integer(0)
    for field in ("u", "w"):
        orders = _jet_orders(field)
        for symbol in expression.free_symbols & set(orders):
            i, j = orders[symbol]
            higher = (i + 1, j) if axis == 0 else (i, j + 1)
            result += sympy.diff(expression, symbol) * jet_symbol(higher, field)
    return result


@dataclass(frozen=True)
class Part:
    """Apply D^α (``derivative`` = how often along x, along y) to the density f(u, u_x, u_y)."""

    density: sympy.Expr
    derivative: Order = (0, 0)

    @property
    def uses_gradient(self) -> bool:
        """Tell whether the density needs derivatives of the data."""
        return bool(self.density.free_symbols & {U_X, U_Y, W_X, W_Y})

    @property
    def strong(self) -> sympy.Expr:
        """Carry the derivative out: an expression over u and its derivatives."""
        expression = self.density
        for axis, times in enumerate(self.derivative):
            for _ in range(times):
                if count_products(expression) > MOST_PRODUCTS:
                    raise self._too_large
                expression = total_derivative(expression, axis)
        if count_products(expression) > MOST_PRODUCTS:
            raise self._too_large
        expanded = sympy.expand(expression)
        if len(sympy.Add.make_args(expanded)) > MOST_SUMMANDS:
            raise self._too_large
        return expanded

    @property
    def _too_large(self) -> SettingsError:
        letters = "x" * self.derivative[0] + "y" * self.derivative[1]
        under = f" under the derivative {letters}" if letters else ""
        return SettingsError(
            f"the density '{str(self.density)[:80]}'{under} has more than {MOST_SUMMANDS} summands when it is "
            "multiplied out; use a simpler density or a lower derivative"
        )


def count_products(expression: sympy.Expr) -> int:
    """Bound the summands that an expression has when it is multiplied out, without doing so."""
    if expression.is_Add:
        return sum(count_products(part) for part in expression.args)
    if expression.is_Mul:
        return math.prod(count_products(part) for part in expression.args)
    if expression.is_Pow and expression.exp.is_Rational and abs(expression.exp) > 1:
        n, k = count_products(expression.base), math.ceil(abs(expression.exp))
        return math.comb(n + k - 1, k)
    return max((count_products(part) for part in expression.args), default=1)


@dataclass(frozen=True)
class Term:
    """Name a candidate term and hold its parts; the term is their sum."""

    name: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, name: str, *parts: tuple[str, str], symbols: Mapping[str, sympy.Symbol] = DENSITY_SYMBOLS) -> Term:
        """Define a term by (derivative, density) texts, such as ``("xx", "u"), ("yy", "u")``.

        ``symbols``: what the densities may hold beside v_x and v_y.
        """
        if not name.isidentifier() or len(name) > 40:
            raise SettingsError(f"'{name}' cannot name a term: use letters, digits and _ (40 at most)")
        if not parts:
            raise SettingsError(f"term '{name}' has no parts")
        for derivative, _ in parts:
            if set(derivative) - {"x", "y"} or len(derivative) > 4:
                raise SettingsError(f"term '{name}': the derivative '{derivative}' must be up to four letters x, y")
        known = {**symbols, "v_x": V_X, "v_y": V_Y}
        return cls(
            name,
            tuple(
                Part(parse_density(density, known), (derivative.count("x"), derivative.count("y")))
                for derivative, density in parts
            ),
        )

    @cached_property
    def strong(self) -> sympy.Expr:
        """The term with every derivative carried out, over u, u_x, u_y, u_xx, …, v_x, v_y."""
        return sympy.expand(sympy.Add(*(part.strong for part in self.parts)))

    @cached_property
    def jets(self) -> tuple[Order, ...]:
        """The derivatives of u that :attr:`strong` needs, lowest first."""
        return self.jets_of("u")

    def jets_of(self, field: str) -> tuple[Order, ...]:
        """Return the derivatives of one field, u or w, that :attr:`strong` needs, lowest first."""
        orders = _jet_orders(field)
        return tuple(sorted((orders[s] for s in self.strong.free_symbols & set(orders)), key=lambda o: (sum(o), o)))

    @property
    def is_drift(self) -> bool:
        """Tell whether the term carries the measured drift."""
        return bool(self.strong.free_symbols & {V_X, V_Y})

    def evaluate(self, jets: Mapping[Order, Any], v_x: Any = 0.0, v_y: Any = 0.0, backend: str = "numpy") -> Any:
        """Evaluate the term from given derivatives of u: the view that residuals use.

        ``backend`` is ``"numpy"`` or ``"jax"``; arrays of any one shape.
        """
        arguments = [jets[order] for order in self.jets]
        value = _compiled(self, backend)(*arguments, v_x, v_y)
        # a constant comes out of the compiled function as a plain number
        return value + 0 * jets[(0, 0)] if not self.jets else value


@lru_cache(maxsize=256)
def _compiled(term: Term, backend: str) -> Callable[..., Any]:
    return compile_expression(term.strong, (*(jet_symbol(order) for order in term.jets), V_X, V_Y), backend)


def compile_expression(
    expression: sympy.Expr, arguments: tuple[sympy.Symbol, ...], backend: str = "numpy"
) -> Callable[..., Any]:
    """Compile an expression from the catalogue or from ``parse_density``: only whitelisted functions occur."""
    function: Callable[..., Any] = sympy.lambdify(arguments, expression, modules=backend, cse=True)
    return function


@lru_cache(maxsize=512)
def compile_density(density: sympy.Expr) -> Callable[..., Any]:
    """Compile a density to a NumPy function of (u, u_x, u_y, v_x, v_y)."""
    return compile_expression(density, (U, U_X, U_Y, V_X, V_Y))
