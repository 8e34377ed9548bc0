"""Diffusion that differs with direction: the tensor of a calibrated law as two coefficients and an angle.

    D_xx u_xx + 2 D_xy u_xy + D_yy u_yy = ∇·(D∇u),      D n = λ n,      tan 2θ = 2 D_xy / (D_xx − D_yy)

λ₁ ≥ λ₂ act along n and across it, n at θ from x towards y. Nothing of this depends on how the camera was turned, but θ.
The coefficient of u_xy is 2 D_xy. Intervals follow the coefficients' errors to first order (``derived``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.calibrate import Calibration
from video2pde.calibration.derived import coefficient_errors
from video2pde.estimate import Estimate
from video2pde.terms.catalogue import TENSOR

Array = NDArray[np.float64]

RIGHT_ANGLE = 90.0
UNKNOWN_FROM = 45.0
"""Half-width of an angle, degrees, from which nothing is known of it."""


@dataclass(frozen=True)
class Directions:
    """A diffusion tensor: ``along`` and ``across`` are λ₁ ≥ λ₂ (length²/s), ``angle`` is θ (degrees, −90 to 90).

    ``ratio`` λ₁/λ₂; ``anisotropic``: it differs from 1 beyond its interval; ``positive``: both λ are, with their
    intervals, so that nothing spreads backward in any direction.
    """

    along: Estimate
    across: Estimate
    angle: Estimate
    ratio: Estimate
    anisotropic: bool
    positive: bool

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``result.json``."""
        return {
            "along": self.along.to_json(),
            "across": self.across.to_json(),
            "angle_deg": self.angle.to_json(),
            "ratio": self.ratio.to_json(),
            "anisotropic": self.anisotropic,
            "positive": self.positive,
        }

    def words(self, unit: str) -> str:
        """Say how fast it spreads along which direction, and across it."""
        text = f"D = {self.along} {unit}²/s at {self.angle} degrees from x towards y (down), {self.across} across"
        if not self.positive:
            return f"{text}; the tensor is not positive: nothing can run it forward"
        return text if self.anisotropic else f"{text}; the same in all directions within the intervals"


def find_directions(law: Calibration) -> Directions | None:
    """Return the directions of a law whose diffusion is a tensor; None for all others."""
    names = [term.name for term in law.terms]
    if not set(TENSOR) <= set(names):
        return None
    xx, yy, cross = (law.estimates[name].value for name in TENSOR)
    difference = xx - yy
    size = float(np.hypot(difference, cross))
    along, across = (xx + yy + size) / 2, (xx + yy - size) / 2
    angle = 0.5 * np.arctan2(cross, difference)
    c, s = np.cos(angle), np.sin(angle)
    slopes = {
        "along": np.array([c * c, s * s, c * s]),
        "across": np.array([s * s, c * c, -c * s]),
        # an angle between equal coefficients is any angle
        "angle": 0.5 * np.array([-cross, cross, difference]) / max(size, 1e-300) ** 2,
    }
    ratio = along / across if across > 0 else np.inf
    if across > 0:
        slopes["ratio"] = slopes["along"] / across - along / across**2 * slopes["across"]
    covariance, rest = coefficient_errors(law, TENSOR)
    widths = {
        name: float(np.hypot(np.sqrt(max(slope @ covariance @ slope, 0.0)), np.abs(slope) @ rest))
        for name, slope in slopes.items()
    }
    found = {"along": along, "across": across, "ratio": ratio}
    estimates = {name: _around(value, widths.get(name, np.nan)) for name, value in found.items()}
    return Directions(
        angle=_angle(float(np.degrees(angle)), float(np.degrees(widths["angle"]))),
        anisotropic=bool(estimates["ratio"].low > 1) or across <= 0,
        positive=bool((estimates["across"].low if estimates["across"].has_interval else across) > 0),
        **estimates,
    )


def _around(value: float, half: float) -> Estimate:
    return Estimate(float(value), float(value - half), float(value + half))


def _angle(value: float, half: float) -> Estimate:
    return _around(value, half if not half >= UNKNOWN_FROM else RIGHT_ANGLE)
