"""What may differ from the plain assumptions of a law: flow, sources, coefficients that vary, other operators.

A plain medium changes nothing. Each deviation of a known-truth recording sets one entry of it; positions are image
units from the picture's centre (x to the right, y downwards), fixed in the picture while the plume drifts.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError

Array = NDArray[np.float64]

SEAM = 4.0  # image units over which a coefficient changes from one half of the picture to the other


@dataclass(frozen=True)
class Flow:
    """Describe a velocity field v(x, y, t) beside the uniform drift.

    v = θ(t) [ω(−y, x) + γ(y, 0) + ε(x, −y) + (δ/2)(x, y) + swirl], about ``centre``; the swirl is
    s (r/r₀) exp(½ − r²/2r₀²) along the circles around ``vortex_centre``, so that s is its largest speed.

    Parameters
    ----------
    rotation, shear, strain, divergence : ω, γ, ε, δ, 1/s.
    vortex : s, image units per second. vortex_radius : r₀, image units.
    pulse : (on, off), s: θ(t) rises and falls there over a second or so; None: θ = 1.
    """

    rotation: float = 0.0
    shear: float = 0.0
    strain: float = 0.0
    divergence: float = 0.0
    centre: tuple[float, float] = (0.0, 0.0)
    vortex: float = 0.0
    vortex_centre: tuple[float, float] = (15.0, -10.0)
    vortex_radius: float = 18.0
    pulse: tuple[float, float] | None = None

    @property
    def is_none(self) -> bool:
        return not (self.rotation or self.shear or self.strain or self.divergence or self.vortex)

    @property
    def gradient(self) -> Array:
        """∂v_i/∂x_j of the affine part, order (x, y)."""
        half = self.divergence / 2
        return np.array([[self.strain + half, self.shear - self.rotation], [self.rotation, half - self.strain]])

    def strength(self, time: float) -> float:
        """θ(t)."""
        if self.pulse is None:
            return 1.0
        on, off = self.pulse
        return 0.5 * (math.tanh((time - on) / 0.8) - math.tanh((time - off) / 0.8))

    def velocity(self, x: Array, y: Array, time: float) -> tuple[Array, Array]:
        """Return (v_x, v_y) at positions ``x``, ``y`` (broadcast against each other)."""
        (xx, xy), (yx, yy) = self.gradient * self.strength(time)
        dx, dy = x - self.centre[0], y - self.centre[1]
        vx, vy = xx * dx + xy * dy, yx * dx + yy * dy
        if self.vortex:
            rx, ry = x - self.vortex_centre[0], y - self.vortex_centre[1]
            r0 = self.vortex_radius
            spin = self.strength(time) * self.vortex / r0 * np.exp(0.5 - (rx**2 + ry**2) / (2 * r0**2))
            vx, vy = vx - spin * ry, vy + spin * rx
        return np.asarray(vx), np.asarray(vy)

    def stretch(self, duration: float) -> float:
        """Bound the factor by which the affine part can lengthen anything until ``duration``."""
        symmetric = (self.gradient + self.gradient.T) / 2
        return math.exp(max(0.0, float(np.linalg.eigvalsh(symmetric).max())) * duration)


@dataclass(frozen=True)
class Source:
    """Describe dye that keeps dripping: s(x, y) θ(t) = rate · exp(−r²/2w²) until ``until``.

    Parameters
    ----------
    rate : u per second in the middle. until : s; it ends over half a second. width : w, image units.
    """

    rate: float = 0.0
    until: float = 17.0
    centre: tuple[float, float] = (4.0, -3.0)
    width: float = 5.0

    def __call__(self, x: Array, y: Array, time: float) -> Array:
        """Return s(x, y) θ(t)."""
        return self.shape(x, y) * self.strength(time)

    def shape(self, x: Array, y: Array) -> Array:
        """Return s(x, y)."""
        squared = (x - self.centre[0]) ** 2 + (y - self.centre[1]) ** 2
        return np.asarray(self.rate * np.exp(-squared / (2 * self.width**2)))

    def strength(self, time: float) -> float:
        """θ(t)."""
        return 0.5 * (1 - math.tanh((time - self.until) / 0.25))


@dataclass(frozen=True)
class Medium:
    """Hold what a case has beside its law; the defaults change nothing.

    Parameters
    ----------
    flow : velocity beside the drift. conserved : the flow acts as ∇·(vu), not v·∇u.
    source : dye that keeps coming.
    halves : s; the coefficient of ``varies`` is (1 + s) times as large on the left, (1 − s) times on the right.
    bump : s; the coefficient of ``varies`` is 1 + s exp(−r²/2w²) times as large around ``bump_centre``, w =
        ``bump_width``.
    slowing : s; the coefficient of ``varies`` falls to (1 − s) times its value at the end; negative: it rises.
    setting : κ of its course, 1 − s (1 − exp(−κt/T))/(1 − exp(−κ)); 0: a straight line.
    anisotropy : s; D_x = D(1 + s), D_y = D(1 − s).
    turned : degrees by which the axes of the anisotropy are turned, from x towards y.
    fourth : κ ≥ 0 of −κΔ²u.
    fractional : α; the Laplacian becomes −(−Δ)^(α/2); 2 is the Laplacian itself.
    memory : α; ∂u/∂t becomes a Caputo derivative of order α (sub-diffusion); 1 is the first derivative.
    immobile : share of the plume that stays where it was at t = 0.
    """

    flow: Flow = Flow()
    conserved: bool = False
    source: Source = Source()
    varies: str = "laplacian"
    halves: float = 0.0
    bump: float = 0.0
    bump_centre: tuple[float, float] = (8.0, -5.0)
    bump_width: float = 14.0
    slowing: float = 0.0
    anisotropy: float = 0.0
    turned: float = 0.0
    fourth: float = 0.0
    fractional: float = 2.0
    memory: float = 1.0
    immobile: float = 0.0
    setting: float = 0.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("halves", -1, 1),
            ("bump", -1, 10),
            ("slowing", -3, 1),
            ("anisotropy", -1, 1),
            ("immobile", 0, 1),
        ):
            value = getattr(self, name)
            if not low <= value < high:
                raise InputError(f"{name} = {value:g}; give a share from {low} to below {high}")
        if self.fourth < 0 or not 0.5 <= self.fractional <= 2 or not (0.2 <= self.memory <= 0.98 or self.memory == 1):
            raise InputError(
                f"fourth = {self.fourth:g}, fractional = {self.fractional:g}, memory = {self.memory:g}; give κ ≥ 0, "
                "an order from 0.5 to 2 in space and from 0.2 to 0.98, or 1, in time"
            )

    @property
    def is_plain(self) -> bool:
        return self == Medium()

    @property
    def has_own_operator(self) -> bool:
        """Whether another time derivative than the first acts: only linear laws can be solved then."""
        return self.memory != 1

    @property
    def in_space(self) -> bool:
        """Whether a coefficient varies in space."""
        return bool(self.halves or self.bump)

    @property
    def largest_factor(self) -> float:
        """The largest factor on the coefficient that varies, anywhere and at any time."""
        return (1 + abs(self.halves)) * (1 + max(self.bump, 0.0)) * (1 + max(-self.slowing, 0.0))

    def factor(self, x: Array, y: Array, time: float, duration: float) -> Array:
        """Return the factor on the coefficient that varies, at positions ``x``, ``y`` from the picture's centre."""
        share = min(max(time / duration, 0.0), 1.0)
        in_time = 1 - self.slowing * (
            math.expm1(-self.setting * share) / math.expm1(-self.setting) if self.setting else share
        )
        squared = (x - self.bump_centre[0]) ** 2 + (y - self.bump_centre[1]) ** 2
        around = 1 + self.bump * np.exp(-squared / (2 * self.bump_width**2))
        return np.asarray(in_time * (1 - self.halves * np.tanh(x / SEAM)) * around)

    @property
    def truth(self) -> dict[str, Any]:
        """What differs from a plain medium, for ``truth.json``."""
        plain = asdict(Medium())
        return {name: value for name, value in asdict(self).items() if value != plain[name]}
