"""Small disturbances of a uniform state, uniform states themselves, and fronts between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.terms.parse import U
from video2pde.terms.stencil import central_weights
from video2pde.terms.symbol import growth_rate
from video2pde.terms.symbol import linearise as linearise_term
from video2pde.terms.term import compile_density, jet_symbol, Order, Term

Array = NDArray[np.float64]
ACCURACY = 4
TINY = 1e-6
"""Amplitude of the stripes whose growth is measured."""


def is_divergence(term: Term) -> bool:
    """Tell whether every part of a term is a derivative, so that its integral is a flux through the edges."""
    return all(sum(part.derivative) > 0 for part in term.parts)


def linearise(law: Model, level: float) -> dict[Order, float]:
    """Return ∂F/∂u_k at the uniform state u = level, by the order of the derivative u_k."""
    slopes: dict[Order, float] = {}
    for term, coefficient in zip(law.terms, law.coefficients, strict=True):
        for order, slope in linearise_term(term, level).items():
            slopes[order] = slopes.get(order, 0.0) + coefficient * slope
    return slopes


def short_wave_growth(law: Model, level: float, grid: Grid) -> float:
    """Return the growth rate (1/s) of waves far shorter than the grid's, less f′: positive where a law is ill-posed."""
    slopes = linearise(law, level)
    k_x, k_y = 1e3 * np.pi / grid.dx, 1e3 * np.pi / grid.dy
    return max(growth_rate(slopes, *k) - growth_rate(slopes, 0.0, 0.0) for k in ((k_x, 0.0), (0.0, k_y), (k_x, k_y)))


def grid_scale_growth(law: Model, level: float, grid: Grid) -> tuple[float, float]:
    """Return the growth rate (1/s) of stripes two pixels wide: of the law itself, and as its stencils see them."""
    slopes = linearise(law, level)
    continuum = growth_rate(slopes, np.pi / grid.dx, 0.0)
    discrete = 0.0
    for (i, j), slope in slopes.items():
        if j == 0:
            weights = np.array(central_weights(i, ACCURACY))
            signs = (-1.0) ** np.arange(len(weights)) * (-1.0) ** (len(weights) // 2)
            discrete += slope * float(weights @ signs) / grid.dx**i
    return continuum, discrete


def measure_growth(law: Model, level: float, grid: Grid, rate: float) -> float:
    """Measure the growth rate (1/s) of tiny stripes two pixels wide in the simulator, over one e-fold."""
    small = Grid(16, 16, 16 * grid.dy, 16 * grid.dx)
    stripes = np.tile((-1.0) ** np.arange(16), (16, 1))
    times = np.array([0.0, 0.5, 1.0]) / abs(rate)
    rollout = simulate(
        replace(law, drift_scale=(1.0, 1.0)),
        level + TINY * stripes,
        times,
        small,
        None,
        RolloutSettings(boundary="periodic", clip="off"),
    )
    if rollout.failed:
        return float("nan")
    heights = [float((frame * stripes).mean()) for frame in rollout.values]
    return float(np.log(heights[-1] / heights[0]) / times[-1])


@dataclass(frozen=True)
class Equilibrium:
    """A uniform state that stays: its level and the rate f′ at which small uniform changes grow, 1/s."""

    level: float
    rate: float


def reaction(law: Model) -> sympy.Expr:
    """Return f(u), what the law does to a uniform state: u_t = f(u)."""
    total = sympy.Integer(0)
    for term, coefficient in zip(law.terms, law.coefficients, strict=True):
        flat = {jet_symbol(order): 0 for order in term.jets if order != (0, 0)}
        total += sympy.Float(coefficient) * term.strong.subs(flat)
    return sympy.expand(total)


def find_equilibria(law: Model, low: float, high: float) -> tuple[Equilibrium, ...]:
    """Find the uniform states between ``low`` and ``high`` that stay, by the sign changes of f; none where f = 0."""
    f = reaction(law)
    if f == 0:
        return ()
    function, slope = compile_density(f), compile_density(sympy.diff(f, U))
    nodes = np.linspace(low, high, 2001)
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(function(nodes, 0.0, 0.0, 0.0, 0.0), float), nodes.shape)
    found: list[float] = []
    for k in range(len(nodes) - 1):
        if values[k] == 0.0:
            found.append(float(nodes[k]))
        elif np.isfinite(values[k : k + 2]).all() and values[k] * values[k + 1] < 0:
            found.append(_bisect(function, float(nodes[k]), float(nodes[k + 1])))
    found = [0.0 if abs(level) < 1e-12 else level for level in found]
    return tuple(Equilibrium(level, float(slope(level, 0.0, 0.0, 0.0, 0.0))) for level in found)


def _bisect(function: Callable[..., float], low: float, high: float) -> float:
    """Halve the bracket until it is one number: flat roots such as that of u³ need no special care."""
    rising = function(high, 0.0, 0.0, 0.0, 0.0) > 0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if (function(middle, 0.0, 0.0, 0.0, 0.0) > 0) == rising:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def measure_front_speed(r: float, q: float, d: float) -> tuple[float, float]:
    """Simulate a front of u_t = ru − qu² + DΔu and return (measured, predicted) mean speed over a late interval.

    A front that starts from a step runs at 2√(rD) − 3√(D/r)/(2t): its position lags by (3/2)√(D/r) ln t.
    """
    length, begin, end = np.sqrt(d / r), 20.0 / r, 60.0 / r
    grid = Grid(8, 320, 8 * 0.5 * length, 320 * 0.5 * length)
    law = Model.of({"u": r, "u_squared": -q, "laplacian": d})
    u0 = np.where(grid.x < 10 * length, r / q, 0.0) * np.ones((8, 1))
    times = np.concatenate([np.linspace(0.0, begin, 21), np.linspace(begin, end, 41)[1:]])
    rollout = simulate(law, u0, times, grid, None, RolloutSettings(clip="off", safety=0.5), frames=[20, 60])
    positions = [float((frame[4] * (q / r)).sum() * grid.dx) for frame in rollout.values]
    measured = (positions[1] - positions[0]) / (end - begin)
    predicted = 2 * np.sqrt(r * d) - 1.5 * length * np.log(end / begin) / (end - begin)
    return float(measured), float(predicted)
