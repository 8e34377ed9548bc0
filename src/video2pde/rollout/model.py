"""The law that a rollout integrates: u_t = −c_x v_x(t) u_x − c_y v_y(t) u_y − v·∇u + Σ c_j T_j(u), v a flow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from video2pde.errors import InputError
from video2pde.flow import Flow
from video2pde.maps import CoefficientMap
from video2pde.rollout.equation import write_equation
from video2pde.terms import CATALOGUE, get_term, Term
from video2pde.terms.symbol import multiple_of
from video2pde.terms.words import Words


@dataclass(frozen=True)
class Model:
    """Pair intrinsic terms with coefficients, in the recording's units, and scale the measured drift.

    Parameters
    ----------
    terms : the T_j(u); the drift terms are not among them.
    coefficients : the c_j, one for each term.
    drift_scale : (c_x, c_y), factors on the measured drift velocity; 1 where it is taken as measured.
    flow : velocity that varies in space, beside the uniform drift; None: no such flow.
    maps : how coefficients vary in space or time, around the ``coefficients``, which are their means.
    """

    terms: tuple[Term, ...] = ()
    coefficients: tuple[float, ...] = ()
    drift_scale: tuple[float, float] = (1.0, 1.0)
    flow: Flow | None = None
    maps: tuple[CoefficientMap, ...] = ()

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.coefficients):
            raise InputError(
                f"a model of {len(self.terms)} terms needs as many coefficients, not {len(self.coefficients)}"
            )
        names = [term.name for term in self.terms]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(f"the term '{repeated[0]}' occurs twice in a model; add its coefficients up")
        for term in self.terms:
            if term.is_drift:
                raise InputError(
                    f"the drift term '{term.name}' is no intrinsic term; give its coefficient as drift_scale"
                )
        for each in self.maps:
            if names.count(each.term) != 1 or [other.term for other in self.maps].count(each.term) > 1:
                raise InputError(f"the map of '{each.term}' needs that term in the model, and no second map of it")
        numbers = (*self.coefficients, *self.drift_scale)
        if not all(math.isfinite(number) for number in numbers):
            raise InputError(f"the coefficients of a model must be finite, not {numbers}")
        object.__setattr__(self, "coefficients", tuple(float(c) for c in self.coefficients))
        object.__setattr__(self, "drift_scale", (float(self.drift_scale[0]), float(self.drift_scale[1])))

    @classmethod
    def of(
        cls,
        coefficients: Mapping[str, float],
        drift_scale: tuple[float, float] = (1.0, 1.0),
        own: Mapping[str, Term] | None = None,
    ) -> Model:
        """Build a model from coefficients by term name, such as ``{"grad_squared": 9.0, "laplacian": 0.67}``."""
        terms = tuple(get_term(name, own) for name in coefficients)
        return cls(terms, tuple(coefficients.values()), drift_scale)

    @property
    def equation(self) -> Words:
        """The law as one line, LaTeX and text, with rounded coefficients."""
        return write_equation(self.terms, self.coefficients, flow=self.flow, maps=self.maps)

    def map_of(self, name: str) -> CoefficientMap | None:
        """Return how a term's coefficient varies; None where it is constant."""
        return next((each for each in self.maps if each.term == name), None)

    def coefficient(self, name: str) -> float:
        """Return a term's coefficient, 0 where the model does not have it."""
        return sum((c for term, c in zip(self.terms, self.coefficients, strict=True) if term.name == name), 0.0)

    def amount(self, name: str) -> float:
        """Return how much of a catalogued term the law holds, under whatever name: 2β where a user's own is 2Δu."""
        known = CATALOGUE[name]
        return sum((c * multiple_of(t, known) for t, c in zip(self.terms, self.coefficients, strict=True)), 0.0)

    def consists_of(self, names: Sequence[str]) -> bool:
        """Tell whether each term that the law holds is, under whatever name, one of these of the catalogue."""
        held = [term for term, c in zip(self.terms, self.coefficients, strict=True) if c]
        return all(any(multiple_of(term, CATALOGUE[name]) for name in names) for term in held)

    def with_measured_drift(self) -> Model:
        """Take the drift as measured: c_x = c_y = 1."""
        return replace(self, drift_scale=(1.0, 1.0))

    def with_viscosity(self, viscosity: float) -> Model:
        """Add ε_visc Δu: to the Laplacian's coefficient where there is one, as a further term otherwise."""
        if viscosity == 0.0:
            return self
        laplacian = CATALOGUE["laplacian"]
        if laplacian not in self.terms:
            return replace(self, terms=(*self.terms, laplacian), coefficients=(*self.coefficients, viscosity))
        added = (viscosity if term == laplacian else 0.0 for term in self.terms)
        return replace(self, coefficients=tuple(c + e for c, e in zip(self.coefficients, added, strict=True)))

    def constant(self) -> Model:
        """Take every coefficient as its mean."""
        return replace(self, maps=())
