"""Laws, plumes, drifts and the named cases of known-truth recordings.

Every case obeys, exactly and including its background,

    u_t = −v(t)·∇u + c₀ + c₁u + c₂u² + a|∇u|² + a₂u|∇u|² + DΔu,

or a law with further terms (``further``), of which no preset has any.

Lengths are image units with the origin at the centre of the picture (x to the right, y downwards),
times are seconds. This package shares no code with the rollouts that it is used to check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.synth.further import Further
from video2pde.recording.synth.medium import Medium

Array = NDArray[np.float64]
SHORTEST, LONGEST = 1e-2, 1e9  # duration of a film, seconds
LARGEST = 1e6  # coefficient, image units and seconds


@dataclass(frozen=True)
class Law:
    """Hold the coefficients of a law by the names of the term catalogue.

    u_t + v(t)·∇u = constant + u·u + u_squared·u² + grad_squared·|∇u|² + u_grad_squared·u|∇u|² + laplacian·Δu
    """

    constant: float = 0.0
    u: float = 0.0
    u_squared: float = 0.0
    grad_squared: float = 0.0
    u_grad_squared: float = 0.0
    laplacian: float = 0.0
    further: Further = field(default_factory=Further)

    def __post_init__(self) -> None:
        for name, value in {**self._plain, **self.further.coefficients}.items():
            if not abs(value) <= LARGEST:
                raise InputError(f"the coefficient of {name} is {value}; give a finite number, ±{LARGEST:g} at most")
        if self.laplacian < 0 and self.further.biharmonic >= 0:
            raise InputError(f"laplacian = {self.laplacian:g} is ill-posed; give a coefficient of 0 or more")
        if (self.grad_squared or self.u_grad_squared) and not self.laplacian:
            raise InputError("a law with |∇u|² forms kinks without diffusion; give laplacian a positive coefficient")

    @property
    def _plain(self) -> dict[str, float]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "further"}

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients that are not zero, by term name."""
        return {name: value for name, value in self._plain.items() if value} | self.further.coefficients

    @property
    def is_linear(self) -> bool:
        """Whether Gaussians stay Gaussians."""
        return not (self.u_squared or self.grad_squared or self.u_grad_squared or self.further)

    @property
    def is_cole_hopf(self) -> bool:
        """Whether exactly |∇u|² and Δu act, so that the Cole–Hopf transform makes the law linear."""
        return set(self.coefficients) == {"grad_squared", "laplacian"}


@dataclass(frozen=True)
class Drift:
    """Swing a uniform velocity slowly around its mean.

    v_x = v₀(1 + s sin ωt), v_y = v₁(1 + s cos ωt), ω = 2π/period; s = 0 is a constant drift.

    Parameters
    ----------
    mean : (v₀, v₁), image units per second.
    swing : s, share of the mean.
    period : seconds.
    """

    mean: tuple[float, float] = (0.0, 0.0)
    swing: float = 0.4
    period: float = 34.0

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (*self.mean, self.swing))):
            raise InputError(f"drift {self.mean[0]:g}, {self.mean[1]:g} with swing {self.swing:g}; give finite numbers")

    def velocity(self, time: float | Array) -> tuple[Array, Array]:
        """Return (v_x, v_y) at ``time``."""
        phase = 2 * np.pi / self.period * np.asarray(time, dtype=float)
        return self.mean[0] * (1 + self.swing * np.sin(phase)), self.mean[1] * (1 + self.swing * np.cos(phase))

    def displacement(self, time: float | Array) -> tuple[Array, Array]:
        """Return (X, Y) = ∫₀ᵗ v ds."""
        t = np.asarray(time, dtype=float)
        omega = 2 * np.pi / self.period
        along_x = t + self.swing * (1 - np.cos(omega * t)) / omega
        along_y = t + self.swing * np.sin(omega * t) / omega
        return self.mean[0] * along_x, self.mean[1] * along_y


@dataclass(frozen=True)
class Blobs:
    """Hold a sum of anisotropic Gaussians, Σ A exp(−½(p − μ)ᵀΣ⁻¹(p − μ)), with p = (y, x).

    Parameters
    ----------
    amplitude : A, shape (n,).
    centre : μ, shape (n, 2), image units.
    covariance : Σ, shape (n, 2, 2), square image units.
    """

    amplitude: Array
    centre: Array
    covariance: Array

    def __call__(self, y: Array, x: Array) -> Array:
        """Evaluate on the tensor grid ``y`` × ``x``."""
        total = np.zeros((len(y), len(x)))
        for amplitude, (cy, cx), covariance in zip(self.amplitude, self.centre, self.covariance, strict=True):
            (yy, yx), (_, xx) = np.linalg.inv(covariance)
            dy, dx = (y - cy)[:, None], (x - cx)[None, :]
            total += amplitude * np.exp(-0.5 * (yy * dy**2 + 2 * yx * dy * dx + xx * dx**2))
        return total

    def spread(self, diffused: float) -> Blobs:
        """Convolve with the heat kernel of variance ``diffused`` = 2Dt: Gaussians stay Gaussians."""
        covariance = self.covariance + diffused * np.eye(2)
        shrink = np.sqrt(np.linalg.det(self.covariance) / np.linalg.det(covariance))
        return Blobs(self.amplitude * shrink, self.centre, covariance)

    @property
    def widest(self) -> float:
        """Largest variance along any axis."""
        return float(np.linalg.eigvalsh(self.covariance).max(initial=0.0))

    @property
    def narrowest(self) -> float:
        """Smallest variance along any axis."""
        return float(np.linalg.eigvalsh(self.covariance).min(initial=1e6))

    @property
    def radius(self) -> float:
        """Distance of the outermost centre from the origin."""
        return float(np.hypot(*self.centre.T).max(initial=0.0))


@dataclass(frozen=True)
class Plume:
    """Describe an asymmetric plume: a core with fingers of unequal length, placed by a seed, or another shape.

    Parameters
    ----------
    peak : greatest height above the background at t = 0.
    seed : of the positions, lengths and heights.
    fingers : their number.
    size : scales all lengths; 1 gives a radius of about 35 image units.
    shape : fingers, hook (a bent line of uneven width) or spots (drops of several sizes).
    """

    peak: float = 0.8
    seed: int = 1
    fingers: int = 6
    size: float = 1.0
    shape: Literal["fingers", "hook", "spots"] = "fingers"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"seed = {self.seed}; give 0 or a positive number")

    def blobs(self) -> Blobs:
        """Place the Gaussians."""
        return _place_blobs(self)


@cache
def _place_blobs(plume: Plume) -> Blobs:
    if plume.peak == 0:
        return Blobs(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2, 2)))
    rng = np.random.default_rng(plume.seed)
    raw = {"fingers": _place_fingers, "hook": _place_hook, "spots": _place_spots}[plume.shape](plume.fingers, rng)
    raw = Blobs(raw.amplitude, plume.size * raw.centre, plume.size**2 * raw.covariance)
    reach = np.linspace(-50.0, 50.0, 801) * plume.size
    return replace(raw, amplitude=raw.amplitude * plume.peak / raw(reach, reach).max())


def _place_hook(n: int, rng: np.random.Generator) -> Blobs:
    """Line up round Gaussians along a bend of three quarters of a turn, of a width that changes on the way."""
    along = np.linspace(0.0, 1.0, 4 * n)
    angle = rng.uniform(0, 2 * np.pi) + 1.5 * np.pi * along
    radius = 20.0 + 6.0 * np.sin(2 * np.pi * along + rng.uniform(0, 2 * np.pi))
    width = 4.5 + 2.0 * along + rng.uniform(0, 0.4, len(along))
    centre = radius[:, None] * np.stack([np.sin(angle), 0.8 * np.cos(angle)], axis=1)
    return Blobs(0.6 + 0.4 * along, centre, width[:, None, None] ** 2 * np.eye(2))


def _place_spots(n: int, rng: np.random.Generator) -> Blobs:
    """Strew round Gaussians of several widths."""
    angle = 2 * np.pi * (np.arange(n) + rng.uniform(-0.3, 0.3, n)) / n
    radius = rng.uniform(8.0, 28.0, n)
    width = rng.uniform(4.5, 9.0, n)
    centre = radius[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return Blobs(rng.uniform(0.5, 1.0, n), centre, width[:, None, None] ** 2 * np.eye(2))


def _place_fingers(n: int, rng: np.random.Generator) -> Blobs:
    angle = 2 * np.pi * (np.arange(n) + rng.uniform(-0.3, 0.3, n)) / n + rng.uniform(0, 2 * np.pi)
    length = rng.uniform(19.0, 32.0, n)
    direction = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    across = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    along_sigma, across_sigma = length / 2.6, rng.uniform(4.0, 5.2, n)
    covariance = along_sigma[:, None, None] ** 2 * direction[:, :, None] * direction[:, None, :]
    covariance += across_sigma[:, None, None] ** 2 * across[:, :, None] * across[:, None, :]
    core = rng.uniform(7.0, 9.0, 2) ** 2
    return Blobs(
        np.append(rng.uniform(0.55, 1.0, n), 0.6),
        np.vstack([0.62 * length[:, None] * direction, rng.uniform(-4.0, 4.0, (1, 2))]),
        np.concatenate([covariance, np.diag(core)[None]]),
    )


@dataclass(frozen=True)
class Case:
    """Hold all that determines the true field: law, drift, plume and background.

    Parameters
    ----------
    background : u far from the plume at t = 0; later it follows the law (constant, u, u_squared).
    duration : seconds; the plume's path is centred on the picture over this time.
    noise : camera noise that belongs to the case (share of full scale), 0 where the law is the point.
    medium : flow, sources, coefficients that vary: what a case has beside its law.
    dense : whether u may pass 1, which a camera shows as black.
    """

    name: str
    law: Law = field(default_factory=Law)
    drift: Drift = field(default_factory=Drift)
    plume: Plume = field(default_factory=Plume)
    background: float = 0.1
    duration: float = 34.0
    noise: float = 0.0
    medium: Medium = field(default_factory=Medium)
    dense: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.background < 1:
            raise InputError(f"background = {self.background:g}; give a value from 0 to below 1")
        if not self.plume.peak >= 0 or (self.background + self.plume.peak > 1 and not self.dense):
            raise InputError(
                f"background {self.background:g} + peak {self.plume.peak:g} leave the range 0 to 1 of a picture"
            )
        if not SHORTEST <= self.duration <= LONGEST:
            raise InputError(f"duration = {self.duration:g} s; give a positive time from {SHORTEST:g} to {LONGEST:g} s")

    def position(self, time: float | Array) -> tuple[Array, Array]:
        """Return the moving frame's origin (x, y) from the picture's centre, half the path to each side."""
        x, y = self.drift.displacement(time)
        end_x, end_y = self.drift.displacement(self.duration)
        return x - end_x / 2, y - end_y / 2

    @property
    def truth(self) -> dict[str, Any]:
        """What a recording of this case should reveal, for ``truth.json``."""
        law = self.law
        return {
            "case": self.name,
            "law": law.coefficients,
            **({"shapes": law.further.shapes} if law.further.shapes else {}),
            "equation": describe(law),
            "background": self.background,
            "drift": {"mean": list(self.drift.mean), "swing": self.drift.swing, "period": self.drift.period},
            "plume": asdict(self.plume),
            "duration": self.duration,
            "medium": self.medium.truth,
            "a": law.grad_squared,
            "a2": law.u_grad_squared,
            "b": law.laplacian,
            "r": law.u,
            "q": 0.0 - law.u_squared,
            "bg": self.background,
            "v": list(self.drift.mean),
            "seed": self.plume.seed,
        }


_SYMBOLS = {
    "constant": "",
    "u": " u",
    "u_squared": " u²",
    "grad_squared": " |∇u|²",
    "u_grad_squared": " u|∇u|²",
    "laplacian": " Δu",
    "u_cubed": " u³",
    "saturation": " u/(1 + u)",
    "uptake": " u/(K + u)",
    "porous": " ∇·(u∇u)",
    "porous_squared": " ∇·(u²∇u)",
    "porous_power": " ∇·(uᵐ∇u)",
    "biharmonic": " Δ²u",
}


def describe(law: Law) -> str:
    """Write the law as one line of text."""
    parts = [f"{'−' if value < 0 else '+'} {abs(value):g}{_SYMBOLS[name]}" for name, value in law.coefficients.items()]
    return " ".join(["u_t = −v(t)·∇u", *parts])


PRESETS: Mapping[str, Case] = {
    "A": Case("A", Law(laplacian=1.5), Drift((-0.15, 0.28)), Plume(0.85, seed=22), 0.08),
    "B": Case("B", Law(u=-0.02, laplacian=1.2), Drift((0.2, 0.15)), Plume(0.85, seed=23), 0.1),
    "C": Case("C", Law(grad_squared=9.005, laplacian=0.666), Drift((0.2, -0.12)), Plume(0.8, seed=24), 0.1),
    "C-alt": Case("C-alt", Law(u_grad_squared=12.0, laplacian=0.8), Drift((-0.18, -0.14)), Plume(0.8, seed=25), 0.1),
    "Fisher": Case("Fisher", Law(u=0.14, u_squared=-0.16, laplacian=0.8), Drift((0.15, 0.2)), Plume(0.4, seed=26), 0.0),
    "drift": Case("drift", Law(), Drift((0.3, -0.2)), Plume(0.8, seed=27), 0.1),
    "noise": Case("noise", Law(), Drift(), Plume(0.0, seed=28), 0.3, noise=0.02),
    "static": Case("static", Law(), Drift(), Plume(0.8, seed=29), 0.1, noise=0.002),
}


def make_case(
    name: str,
    *,
    coefficients: Mapping[str, float] | None = None,
    drift: tuple[float, float] | None = None,
    swing: float | None = None,
    background: float | None = None,
    peak: float | None = None,
    seed: int | None = None,
    duration: float | None = None,
) -> Case:
    """Take a preset and change what is given.

    Parameters
    ----------
    coefficients : by term name; terms that are not named keep the preset's coefficient.
    drift : mean (v_x, v_y), image units per second.
    swing, duration : of the drift; the drift's period is the duration (seconds).
    background, peak : u far from the plume, and the plume's height above it.
    seed : of the plume's shape.
    """
    case = find_preset(name)
    known = {entry.name for entry in fields(Law)} - {"further"}
    if unknown := sorted(set(coefficients or {}) - known):
        raise InputError(f"no term is called {unknown[0]!r}; terms: {', '.join(sorted(known))}")
    changed: dict[str, Any] = dict(coefficients or {})
    length = case.duration if duration is None else duration
    moved = replace(
        case.drift,
        mean=case.drift.mean if drift is None else (float(drift[0]), float(drift[1])),
        swing=case.drift.swing if swing is None else swing,
        period=length,
    )
    plume = replace(
        case.plume,
        peak=case.plume.peak if peak is None else peak,
        seed=case.plume.seed if seed is None else seed,
    )
    return replace(
        case,
        law=replace(case.law, **changed),
        drift=moved,
        plume=plume,
        background=case.background if background is None else background,
        duration=length,
    )


def find_preset(name: str) -> Case:
    """Return the preset called ``name``, whatever its capitals."""
    for key, case in PRESETS.items():
        if key.lower() == name.lower():
            return case
    raise InputError(f"no case is called {name!r}; cases: {', '.join(PRESETS)}")
