"""A term that a calibrated law lacks, as its rollouts have it, and where the law would go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.terms import CATALOGUE
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

Array = NDArray[np.float64]

SEEN = 8.0
"""Standard errors from zero at which a term is seen. Blocks of frames know nothing of what errs in the same way all
along, and an encoder's lag reaches 16 on films of right laws; but no coefficient leaves its interval with it."""
SURE = 2.0
"""Standard errors that are taken off a shift of the law's coefficients."""
GRID_KNOWN = 0.5
"""How well the grid's error is known, relative: what is taken off for it counts as uncertain by so much."""


@dataclass(frozen=True, eq=False)
class Omitted:
    """A term that a law lacks: its coefficient beside the law, ``value`` ± ``error``.

    ``coefficients`` of the law with it, and how far noise alone moves them, ``errors``; ``removes``: the share of the
    rollout's squared error that the term takes away.
    """

    name: str
    value: float
    error: float
    coefficients: Mapping[str, float]
    errors: Mapping[str, float]
    removes: float

    @property
    def deviations(self) -> float:
        """Its distance from zero in standard errors."""
        return abs(self.value) / max(self.error, 1e-300)

    @property
    def runs_forward(self) -> bool:
        """Whether diffusion stays forward with it: backward, it says what another term could."""
        whole = {**self.coefficients, self.name: self.value}
        known = [(CATALOGUE[name], value) for name, value in whole.items() if name in CATALOGUE]
        return all(value >= 0 or not is_diffusion(term, EMPTY_TO_FULL) for term, value in known)

    def shifts(self, law: Mapping[str, float]) -> dict[str, float]:
        """Say by term how far its coefficient lies from the law's own, beyond noise."""
        return {
            name: max(abs(self.coefficients[name] - value) - SURE * self.errors[name], 0.0)
            for name, value in law.items()
        }

    def tells(self, law: Mapping[str, float], widths: Mapping[str, float]) -> bool:
        """Tell whether it is seen and moves a coefficient of the law out of its interval."""
        return self.deviations > SEEN and self.runs_forward and moved(self.shifts(law), widths) > 1.0

    def less(self, bias: Array) -> Omitted:
        """Take off what the grid adds, to the law's coefficients first and to its own last."""
        unsure = GRID_KNOWN * np.abs(bias)
        own = zip(self.coefficients.items(), bias, strict=False)
        doubt = zip(self.errors.items(), unsure, strict=False)
        return replace(
            self,
            value=self.value - float(bias[-1]),
            error=float(np.hypot(self.error, unsure[-1])),
            coefficients={name: value - float(less) for (name, value), less in own},
            errors={name: float(np.hypot(error, more)) for (name, error), more in doubt},
        )


def moved(shifts: Mapping[str, float], widths: Mapping[str, float]) -> float:
    """Say by how many half-widths of its interval a coefficient moves."""
    return max((shift / widths[name] for name, shift in shifts.items() if widths[name] > 0), default=0.0)
