"""The laws of two fields: u_t = Σ a_j T_j(u, w), w_t = Σ b_j T_j(u, w)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.rollout.equation import write_equation
from video2pde.terms import Term
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.words import Words

Array = NDArray[np.float64]
OWN = {"u": "laplacian", "w": "laplacian_w"}
"""The term that is diffusion of a field itself; the other one is cross diffusion."""
Key = tuple[str, str]
"""A coefficient's place: the field whose law it stands in, and the term."""


@dataclass(frozen=True)
class PairLaw:
    """Pair the terms of both laws, by name, with coefficients in the recording's units."""

    terms: tuple[tuple[str, ...], tuple[str, ...]]
    coefficients: tuple[tuple[float, ...], tuple[float, ...]]

    def __post_init__(self) -> None:
        for names, values in zip(self.terms, self.coefficients, strict=True):
            if len(names) != len(values) or len(set(names)) != len(names):
                raise InputError(f"a law of the terms {', '.join(names) or 'none'} needs one coefficient for each")
            for name in names:
                get_pair_term(name)
        if not all(math.isfinite(value) for values in self.coefficients for value in values):
            raise InputError(f"the coefficients of both laws must be finite, not {self.coefficients}")

    @classmethod
    def of(cls, u: Mapping[str, float], w: Mapping[str, float]) -> PairLaw:
        """Make the laws from coefficients by term name."""
        return cls((tuple(u), tuple(w)), (tuple(map(float, u.values())), tuple(map(float, w.values()))))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Every coefficient's place, those of u first."""
        return tuple((field, name) for field, names in zip(FIELDS, self.terms, strict=True) for name in names)

    @property
    def vector(self) -> Array:
        """All coefficients, (K,)."""
        return np.array([*self.coefficients[0], *self.coefficients[1]], float)

    def moved(self, vector: Sequence[float] | Array) -> PairLaw:
        """Return the same terms with other coefficients."""
        first = len(self.terms[0])
        values = [float(value) for value in vector]
        return PairLaw(self.terms, (tuple(values[:first]), tuple(values[first:])))

    def law(self, field: str) -> dict[str, float]:
        """Return one field's law by term."""
        index = FIELDS.index(field)
        return dict(zip(self.terms[index], self.coefficients[index], strict=True))

    def resolved(self, field: str) -> tuple[Term, ...]:
        """Return the terms of one field's law."""
        return tuple(get_pair_term(name) for name in self.terms[FIELDS.index(field)])

    def equation(self, field: str) -> Words:
        """Write one law as LaTeX and text, with rounded coefficients."""
        values = self.coefficients[FIELDS.index(field)]
        return write_equation(self.resolved(field), values, drift=False, quantity=field)

    @property
    def equations(self) -> Words:
        """Both laws: one under the other in LaTeX, in one line of text."""
        lines = [self.equation(field) for field in FIELDS]
        rows = r" \\ ".join(line.latex.replace(" = ", " & = ", 1) for line in lines)
        return Words(rf"\begin{{array}}{{rl}} {rows} \end{{array}}", ";  ".join(line.text for line in lines))

    @property
    def runs_forward(self) -> bool:
        """Whether short waves of both fields are damped, or at least not amplified: diffusion is not backward."""
        matrix = [[self.law(field).get(name, 0.0) for name in OWN.values()] for field in FIELDS]
        return bool(np.linalg.eigvals(np.array(matrix)).real.min() >= -1e-12 * (1 + np.abs(matrix).max()))
