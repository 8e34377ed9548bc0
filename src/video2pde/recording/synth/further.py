"""Terms beyond the presets': reactions of higher order, saturation, diffusion that depends on u, surface tension.

u_t = … + c₃u³ + s u/(1 + u) + r u/(K + u) + ∇·((p u + q u² + w uᵐ)∇u) + κΔ²u
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SHAPES = ("exponent", "half_saturation")


@dataclass(frozen=True)
class Further:
    """Hold the coefficients of further terms by the names of the catalogue.

    Parameters
    ----------
    exponent, half_saturation : m of ``porous_power``, K of ``uptake``.
    """

    u_cubed: float = 0.0
    saturation: float = 0.0
    uptake: float = 0.0
    porous: float = 0.0
    porous_squared: float = 0.0
    porous_power: float = 0.0
    biharmonic: float = 0.0
    exponent: float = 1.0
    half_saturation: float = 1.0

    def __bool__(self) -> bool:
        return bool(self.coefficients)

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients that are not zero, by term name."""
        return {name: value for name, value in asdict(self).items() if value and name not in SHAPES}

    @property
    def shapes(self) -> dict[str, float]:
        """Parameters of the terms that have one."""
        found = {"porous_power": self.exponent, "uptake": self.half_saturation}
        return {name: value for name, value in found.items() if name in self.coefficients}

    def reaction(self, u: Array) -> Array:
        """Return what is added per second without any motion."""
        rate = self.u_cubed * u**3
        if self.saturation:
            rate = rate + self.saturation * u / (1 + u)
        return rate + self.uptake * u / (self.half_saturation + u) if self.uptake else rate

    def potential(self, u: Array) -> Array:
        """Return F(u) where diffusion that depends on u is ΔF."""
        power = np.sign(u) * np.abs(u) ** (self.exponent + 1) / (self.exponent + 1) if self.porous_power else 0.0
        return np.asarray(self.porous * u**2 / 2 + self.porous_squared * u**3 / 3 + self.porous_power * power)

    def diffusivity(self, largest: float) -> float:
        """Bound |F′(u)| for u up to ``largest``."""
        power = abs(self.porous_power) * float(max(largest, 1e-9) ** self.exponent)
        return abs(self.porous) * largest + abs(self.porous_squared) * largest**2 + power
