"""Known-truth recordings of two fields: reactions that spread, in a dish that is seen whole.

    u_t = Σ a_n T_n(u, w),    w_t = Σ b_n T_n(u, w),    T_n: u^i w^j up to degree three, Δu, Δw,

nothing passing the walls. The solver expands both fields in cosines and takes steps of ETDRK4; averages over camera
pixels are exact, by the factor sin(kΔ/2)/(kΔ/2) of each cosine. It shares no code with the rollouts that are checked
against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from video2pde.errors import InputError, StageError
from video2pde.recording.synth.etd import Etdrk4

Array = NDArray[np.float64]
Start = Callable[[Array, Array, np.random.Generator], tuple[Array, Array]]
"""Gives both fields at t = 0 from the distances y and x to the dish's centre, in image units."""

SIDE = 200.0
"""Image units along the dish."""
POWERS: Mapping[str, tuple[int, int]] = {
    "constant": (0, 0),
    "u": (1, 0),
    "w": (0, 1),
    "u_squared": (2, 0),
    "u_w": (1, 1),
    "w_squared": (0, 2),
    "u_cubed": (3, 0),
    "u_squared_w": (2, 1),
    "u_w_squared": (1, 2),
    "w_cubed": (0, 3),
}
"""Exponents of u and w by the term's name."""
DIFFUSION = ("laplacian", "laplacian_w")
UNRESOLVED = 1e-5
"""Largest coefficient that is allowed at the cut-off."""
SHORTEST = 1e-3
"""Step at least, as a share of a frame interval."""


@dataclass(frozen=True)
class System:
    """Describe a known-truth system of two fields.

    Parameters
    ----------
    name, words : what it is called, and what it shows.
    u, w : coefficients of both laws by term.
    start : both fields at t = 0.
    duration : seconds.
    spacing : of the solver's grid, image units.
    step : of the solver, seconds.
    seed : of what is random at the start.
    side : of the dish, image units.
    """

    name: str
    words: str
    u: Mapping[str, float]
    w: Mapping[str, float]
    start: Start
    duration: float
    spacing: float = 1.0
    step: float = 0.1
    seed: int = 1
    side: float = SIDE

    def __post_init__(self) -> None:
        for law, own in ((self.u, "laplacian"), (self.w, "laplacian_w")):
            strange = [name for name in law if name not in (*POWERS, *DIFFUSION)]
            if strange:
                raise InputError(
                    f"two fields have no term '{strange[0]}'; there are {', '.join((*DIFFUSION, *POWERS))}"
                )
            if not all(math.isfinite(value) for value in law.values()) or law.get(own, 0.0) < 0:
                raise InputError(f"the coefficients {dict(law)} must be finite, and that of {own} must not be negative")

    @property
    def truth(self) -> dict[str, Any]:
        """What ``truth.json`` says of the law."""
        return {"fields": {"u": dict(self.u), "w": dict(self.w)}, "duration": self.duration, "seed": self.seed}


def sample_system(system: System, shape: tuple[int, int], times: Sequence[float] | Array) -> Iterator[Array]:
    """Yield both fields (2, y, x) at each time, averaged over ``shape`` pixels that cover the dish."""
    count = max(32, round(system.side / system.spacing))
    nodes = (np.arange(count) + 0.5) / count * system.side - system.side / 2
    u, w = system.start(nodes[:, None], nodes[None, :], np.random.default_rng(system.seed))
    state = np.stack([fft.dctn(np.broadcast_to(part, (count, count)), norm="forward") for part in (u, w)])
    solver = _make_solver(system, count)
    waves = [_pixel_waves(pixels, count) for pixels in shape]
    now = float(times[0])
    for time in times:
        steps = math.ceil((time - now) / system.step - 1e-9)
        for _ in range(steps):
            state = solver.advance(state, now, (time - now) / steps)
        now = float(time)
        _require_resolved(state, system, now)
        yield np.stack([waves[0] @ part @ waves[1].T for part in state])


def _make_solver(system: System, count: int) -> Etdrk4:
    """Write the system over the cosines' coefficients, its own diffusion being the linear part."""
    k = np.pi / system.side * np.arange(count)
    square = k[:, None] ** 2 + k[None, :] ** 2
    linear = np.stack([-system.u.get("laplacian", 0.0) * square, -system.w.get("laplacian_w", 0.0) * square])
    across = np.stack([-system.u.get("laplacian_w", 0.0) * square, -system.w.get("laplacian", 0.0) * square])
    # products of up to three waves: what they alias onto is cut off
    kept = (np.arange(count) < count * 2 / 3)[:, None] & (np.arange(count) < count * 2 / 3)[None, :]

    def slope(state: Any, _: float) -> Any:
        u, w = (fft.idctn(part, norm="forward") for part in state)
        powers = {name: u**i * w**j for name, (i, j) in POWERS.items() if name in system.u or name in system.w}
        zero = np.zeros_like(u)
        rates = [sum((c * powers[n] for n, c in law.items() if n in powers), zero) for law in (system.u, system.w)]
        return np.stack([fft.dctn(rate, norm="forward") for rate in rates]) * kept + across * state[::-1]

    return Etdrk4(linear, slope)


def _pixel_waves(pixels: int, count: int) -> Array:
    """Tabulate cosines averaged over pixels, (pixel, wave), as ``dctn(norm="forward")`` weighs them."""
    wave = np.arange(count)
    centre = (np.arange(pixels) + 0.5) / pixels
    table = np.cos(np.pi * np.outer(centre, wave)) * np.sinc(wave / (2 * pixels))
    table[:, 1:] *= 2
    return np.asarray(table)


def _require_resolved(state: Array, system: System, time: float) -> None:
    edge = round(state.shape[1] * 2 / 3) - 2
    sharpest = max(float(np.abs(state[:, edge:]).max()), float(np.abs(state[:, :, edge:]).max()))
    if not sharpest <= UNRESOLVED * max(1.0, float(np.abs(state).max())):
        raise StageError(
            f"the solver's grid of {system.spacing:g} does not resolve '{system.name}' at {time:.3g} s (cut-off "
            f"{sharpest:.1g}); ask for a finer spacing or more diffusion"
        )


def scaled(law: Mapping[str, float], field: str, u: tuple[float, float], w: tuple[float, float]) -> dict[str, float]:
    """Write a law for u' = a + b u, w' = c + d w, what a camera shows of fields that leave [0, 1].

    Parameters
    ----------
    law : of u or w (``field``), by term.
    u, w : offset and factor of each, (a, b) and (c, d).
    """
    (a, b), (c, d) = u, w
    gain = b if field == "u" else d
    names = {powers: name for name, powers in POWERS.items()}
    found: dict[str, float] = {}
    for name, value in law.items():
        if name in DIFFUSION:
            found[name] = found.get(name, 0.0) + gain * value / (b if name == "laplacian" else d)
            continue
        i, j = POWERS[name]
        # ((u' − a)/b)^i ((w' − c)/d)^j, multiplied out
        for p in range(i + 1):
            for q in range(j + 1):
                part = math.comb(i, p) * (-a) ** (i - p) / b**i * math.comb(j, q) * (-c) ** (j - q) / d**j
                found[names[p, q]] = found.get(names[p, q], 0.0) + gain * value * part
    return {name: value for name, value in found.items() if abs(value) > 1e-12}


def _bumps(y: Array, x: Array, places: Sequence[tuple[float, float, float, float]]) -> Array:
    """Add up Gaussians of (height, y, x, width)."""
    total = np.zeros(np.broadcast_shapes(y.shape, x.shape))
    for height, cy, cx, width in places:
        total += height * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / (2 * width**2))
    return total


def _scatter(
    rng: np.random.Generator, count: int, reach: float, widths: tuple[float, float]
) -> list[tuple[float, ...]]:
    """Strew spots of unequal height and width."""
    angle = 2 * np.pi * (np.arange(count) + rng.uniform(-0.3, 0.3, count)) / count
    radius = reach * rng.uniform(0.45, 1.0, count)
    height, width = rng.uniform(0.8, 1.0, count), rng.uniform(*widths, count)
    return [
        tuple(map(float, row))
        for row in zip(height, radius * np.sin(angle), radius * np.cos(angle), width, strict=True)
    ]


def _gray_scott_start(y: Array, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Feed everywhere, with spots in which the reaction has begun."""
    spots = np.minimum(_bumps(y, x, _scatter(rng, 7, 70.0, (7.0, 11.0))), 1.0)  # type: ignore[arg-type]
    return 1 - 0.5 * spots, 0.3 * spots


def _excitable_start(y: Array, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Excite some spots, one side of which has not recovered yet, so that waves curl."""
    spots = np.minimum(_bumps(y, x, _scatter(rng, 4, 60.0, (8.0, 12.0))), 1.0)  # type: ignore[arg-type]
    tired = 0.08 * np.exp(-((y - 20.0) ** 2) / (2 * 30.0**2)) * (1 + np.tanh(x / 25.0)) / 2
    return spots, tired


def _reagents_start(y: Array, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Put two drops that overlap side by side, with a second, smaller one of each."""
    shift = float(rng.uniform(-6, 6))
    u = _bumps(y, x, [(0.75, -8.0 + shift, -24.0, 22.0), (0.4, 45.0, 30.0, 14.0)])
    w = _bumps(y, x, [(0.65, 10.0, 22.0 + shift, 24.0), (0.45, -45.0, -35.0, 15.0)])
    return np.minimum(u, 0.95) + 0.05, np.minimum(w, 0.95) + 0.05


EXCITABLE = (
    {"laplacian": 10.0, "u": -0.12, "u_squared": 1.32, "u_cubed": -1.2, "w": -1.2},
    {
        "laplacian_w": 1.0,
        "u": 0.006,
        "w": -0.009,
    },
)
"""FitzHugh–Nagumo: u_t = 10 Δu + 1.2 u(1 − u)(u − 0.1) − 1.2 w, w_t = Δw + 0.006 u − 0.009 w."""
SHOWN = (0.3, 0.6), (0.1, 3.0)
"""What the camera shows of it: 0.3 + 0.6 u and 0.1 + 3 w, since u swings below zero."""


def _shown(start: Start, u: tuple[float, float], w: tuple[float, float]) -> Start:
    """Show both fields as u' = a + b u and w' = c + d w."""

    def begin(y: Array, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        first, second = start(y, x, rng)
        return u[0] + u[1] * first, w[0] + w[1] * second

    return begin


def gray_scott(
    feed: float = 0.037, kill: float = 0.06, du: float = 0.9, dw: float = 0.45, shown: tuple[float, float] = (0.85, 2.0)
) -> System:
    """Make Gray–Scott, u_t = D_u Δu − uw² + F(1 − u), w_t = D_w Δw + uw² − (F + k)w.

    ``shown``: how bright u and w are; u at rest is 1, which would be white.
    """
    red, green = (0.0, shown[0]), (0.0, shown[1])
    u = {"laplacian": du, "u_w_squared": -1.0, "constant": feed, "u": -feed}
    w = {"laplacian_w": dw, "u_w_squared": 1.0, "w": -(feed + kill)}
    return System(
        "gray-scott",
        f"Gray–Scott: u is fed and eaten by w, which decays; shown are {shown[0]:g} u and {shown[1]:g} w",
        scaled(u, "u", red, green),
        scaled(w, "w", red, green),
        _shown(_gray_scott_start, red, green),
        duration=600.0,
        step=1.0,
    )


SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        gray_scott(),
        System(
            "fitzhugh-nagumo",
            "FitzHugh–Nagumo: waves of excitation u, and the recovery w behind them",
            scaled(EXCITABLE[0], "u", *SHOWN),
            scaled(EXCITABLE[1], "w", *SHOWN),
            _shown(_excitable_start, *SHOWN),
            duration=75.0,
            step=0.25,
        ),
        System(
            "reagents",
            "A + B → C: two dyes that spread and bleach each other where they meet",
            {"laplacian": 1.5, "u_w": -0.08},
            {"laplacian_w": 0.8, "u_w": -0.08},
            _reagents_start,
            duration=60.0,
            step=0.2,
        ),
    )
}


def make_system(name: str, seed: int | None = None, duration: float | None = None) -> System:
    """Return the system called ``name``, with another seed or length where one is given."""
    if name not in SYSTEMS:
        raise InputError(f"no system of two fields is called {name!r}; there are: {', '.join(SYSTEMS)}")
    if seed is not None and seed < 0:
        raise InputError(f"seed = {seed}; give 0 or a positive number")
    if duration is not None and not 0 < duration < 1e6:
        raise InputError(f"duration = {duration:g}; give a positive number of seconds")
    system = SYSTEMS[name]
    return replace(
        system,
        seed=system.seed if seed is None else seed,
        duration=system.duration if duration is None else duration,
    )
