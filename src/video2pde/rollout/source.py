"""What generated passes over a picture share, whatever language they are written in: neighbours, differences, weights.

Discretisation follows ``terms.stencil``: a part D^α f(u) is differenced as it stands, a part whose density holds
gradients is expanded and evaluated from central differences of u.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import sympy

from video2pde.terms import Part, Term
from video2pde.terms.parse import U
from video2pde.terms.stencil import stencil
from video2pde.terms.term import jet_symbol, Order

Offset = tuple[int, int]
"""Row and column of a neighbour, counted from the pixel."""


class StencilSource(ABC):
    """Collect the lines of a pass over the picture: neighbours, differences, values.

    A language says how a neighbour is read, a density evaluated, a value named and a number written.
    """

    accuracy: int
    neighbours: dict[Offset, str]
    lines: list[str]
    differences: dict[tuple[Order, sympy.Expr], str]

    @abstractmethod
    def neighbour(self, offset: Offset) -> str:
        """Name the value of u at an offset."""

    @abstractmethod
    def density_at(self, offset: Offset, density: sympy.Expr) -> str:
        """Name f(u) at an offset, and write the lines that compute it."""

    @abstractmethod
    def define(self, name: str, value: str) -> str:
        """Write the line that names a value."""

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a number as a factor."""

    @abstractmethod
    def written(self, expression: sympy.Expr) -> str:
        """Write an expression over named values."""

    @property
    def radius(self) -> int:
        return max((max(abs(j), abs(i)) for j, i in self.neighbours), default=0)

    def difference(self, order: Order, density: sympy.Expr = U) -> str:
        """Name D^order f(u), and write the lines that compute it."""
        key = (order, density)
        if key not in self.differences:
            name = f"d{len(self.differences)}"
            self.differences[key] = name
            self.lines.append(self.define(name, self._weigh(order, density)))
        return self.differences[key]

    def _weigh(self, order: Order, density: sympy.Expr) -> str:
        groups: dict[float, list[str]] = {}
        for offset, weight in stencil(order, 1.0, 1.0, self.accuracy).items():
            value = self.neighbour(offset) if density == U else self.density_at(offset, density)
            # equal weights share one multiplication
            shared = next((known for known in groups if math.isclose(known, abs(weight), rel_tol=1e-12)), abs(weight))
            groups.setdefault(shared, []).append(f"{'-' if weight < 0 else '+'} {value}")
        total = " + ".join(f"{self.number(weight)}*({' '.join(values)})" for weight, values in groups.items())
        return f"({total}){spacing(order)}"

    def jets(self, expression: sympy.Expr, jets: Iterable[Order]) -> sympy.Expr:
        """Replace the derivatives of u in an expression by their differences on the grid."""
        names = {jet_symbol(order): sympy.Symbol(self.difference(order)) for order in jets}
        return expression.xreplace(names)

    def nonlinear(self, terms: Sequence[Term]) -> sympy.Expr:
        """Return Σ c_n × what of term n does not join the linear stencil, over named differences."""
        rest = [[part for part in term.parts if linear_slope(part) is None] for term in terms]
        return sympy.Add(
            *(sympy.Symbol(f"c{n}") * sympy.Add(*map(self._discretise, parts)) for n, parts in enumerate(rest))
        )

    def _discretise(self, part: Part) -> sympy.Expr:
        """Difference a nonlinear part as ``terms.stencil`` does; return an expression over named differences."""
        if part.uses_gradient or part.derivative == (0, 0):
            return self.jets(part.strong, Term("", (part,)).jets)
        return sympy.Symbol(self.difference(part.derivative, part.density))

    def linear_weights(self, terms: Sequence[Term], coefficient: Callable[[int], str]) -> dict[Offset, list[str]]:
        """Return each neighbour's weight in the identity, the drift and every term k·D^α u together."""
        weights: dict[Offset, list[str]] = {(0, 0): ["rest"]}
        scaled = [("-vx", (1, 0), 1.0), ("-vy", (0, 1), 1.0)]
        for n, term in enumerate(terms):
            slopes = ((part.derivative, linear_slope(part)) for part in term.parts)
            scaled += [(coefficient(n), order, k) for order, k in slopes if k is not None]
        for name, order, factor in scaled:
            for offset, weight in stencil(order, 1.0, 1.0, self.accuracy).items():
                weights.setdefault(offset, []).append(f"{name}*step*{self.number(factor * weight)}{spacing(order)}")
        return weights


def neighbour_name(offset: Offset) -> str:
    """Name a neighbour by its offset: nm1p0 is one row above."""
    return "n" + "".join(f"{'m' if k < 0 else 'p'}{abs(k)}" for k in offset)


def spacing(order: Order) -> str:
    """Write the factors 1/Δx and 1/Δy of a derivative."""
    return "".join(["*gx"] * order[0] + ["*gy"] * order[1])


def linear_slope(part: Part) -> float | None:
    """Return k where the part is k·D^α u, which joins the one linear stencil of the pass."""
    slope = sympy.diff(part.density, U)
    linear = not part.uses_gradient and slope.is_number and (part.derivative != (0, 0) or part.density == slope * U)
    return float(slope) if linear else None
