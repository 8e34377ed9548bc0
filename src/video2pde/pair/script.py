"""Both laws as a script that needs NumPy alone, by the scheme of our rollouts."""

from __future__ import annotations

import sympy

from video2pde.pair.kernels import ACCURACY
from video2pde.pair.model import PairModel
from video2pde.rollout.kernels import REAL_LIMIT, symbol_peak
from video2pde.terms import Part
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.parse import U, W
from video2pde.terms.stencil import central_weights
from video2pde.terms.term import jet_symbol, Order

EDGES = {
    "replicate": '{"mode": "symmetric"}',
    "periodic": '{"mode": "wrap"}',
    "open": '{"mode": "reflect", "reflect_type": "odd"}',
}
TEMPLATE = '''"""Simulate {text}

Written by video2pde. Usage: python {{this file}} start.npz --duration 10 --out result.npz, where start.npz holds the
arrays u and w (y, x); without it both fields start from a bump in the middle.
"""

import argparse

import numpy as np

DX, DY = {dx!r}, {dy!r}
REACH = {reach}
FIRST = np.array({first!r})
SECOND = np.array({second!r})


def difference(values, order):
    """Difference an array padded by REACH on each side, of order 2 REACH."""
    for axis, (times, pitch) in enumerate(((order[1], DY), (order[0], DX))):
        inner = values.shape[axis] - 2 * REACH
        weights = {{0: None, 1: FIRST, 2: SECOND}}[times]
        if weights is None:
            values = np.take(values, range(REACH, REACH + inner), axis)
        else:
            parts = (w * np.take(values, range(k, k + inner), axis) for k, w in enumerate(weights))
            values = sum(parts) / pitch**times
    return values


def rates(u, w):
    """Return u_t and w_t."""
    padded_u, padded_w = (np.pad(field, REACH, **{edges}) for field in (u, w))
    d = difference
    return (
        {u_law},
        {w_law},
    )


def step(u, w, h):
    """Take one step of the strong-stability-preserving Runge-Kutta method of third order."""
    a = [f + h * r for f, r in zip((u, w), rates(u, w))]
    b = [0.75 * f + 0.25 * (g + h * r) for f, g, r in zip((u, w), a, rates(*a))]
    return [f / 3 + 2 / 3 * (g + h * r) for f, g, r in zip((u, w), b, rates(*b))]


def simulate(u, w, duration, frames, h):
    """Return the times and both fields (frames, y, x)."""
    times = np.linspace(0.0, duration, frames)
    kept = [(u, w)]
    for begin, end in zip(times, times[1:]):
        count = max(1, int(np.ceil((end - begin) / h)))
        for _ in range(count):
            u, w = step(u, w, (end - begin) / count)
        kept.append((u, w))
    return times, np.array([k[0] for k in kept]), np.array([k[1] for k in kept])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("start", nargs="?")
    parser.add_argument("--duration", type=float, default={duration!r})
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--step", type=float, default={step!r})
    parser.add_argument("--out", default="result.npz")
    given = parser.parse_args()
    if given.start:
        stored = np.load(given.start)
        u0, w0 = stored["u"].astype(float), stored["w"].astype(float)
    else:
        y, x = np.mgrid[-1 : 1 : {ny}j, -1 : 1 : {nx}j]
        bump = np.exp(-(x**2 + y**2) / 0.05)
        u0, w0 = 1 - 0.5 * bump, 0.5 * bump
    t, u, w = simulate(u0, w0, given.duration, given.frames, given.step)
    np.savez(given.out, times=t, u=u, w=w)
    print(f"{{given.out}}: {{len(t)}} frames, u up to {{u.max():.4g}}, w up to {{w.max():.4g}}")
'''
SAFETY = 0.3
"""Share of the stability limit of diffusion that a step takes."""


def write_script(model: PairModel) -> str:
    """Write the script of a model."""
    grid, law = model.grid, model.law
    spread = max((abs(v) for f in FIELDS for n, v in law.law(f).items() if "laplacian" in n), default=0.0)
    fastest = max((abs(v) for f in FIELDS for n, v in law.law(f).items() if "laplacian" not in n), default=0.0)
    stiff = symbol_peak((2, 0), ACCURACY) * (1 / grid.dx**2 + 1 / grid.dy**2) / REAL_LIMIT
    rate = spread * stiff + 3 * fastest
    return TEMPLATE.format(
        text=law.equations.text,
        dx=grid.dx,
        dy=grid.dy,
        reach=ACCURACY // 2,
        first=list(central_weights(1, ACCURACY)),
        second=list(central_weights(2, ACCURACY)),
        edges=EDGES[model.boundary],
        u_law=_rate(law.law("u")),
        w_law=_rate(law.law("w")),
        duration=model.duration,
        step=min(model.interval, SAFETY / rate if rate > 0 else model.interval),
        ny=grid.ny,
        nx=grid.nx,
    )


def _rate(law: dict[str, float]) -> str:
    """Write Σ c_j T_j as an expression of NumPy."""
    parts = [f"{value!r} * ({' + '.join(map(_part, get_pair_term(name).parts))})" for name, value in law.items()]
    return " + ".join(parts) or "0.0 * u"


def _part(part: Part) -> str:
    """Write a part of a term: densities without gradients are differenced as they stand."""
    if part.derivative == (0, 0) and not part.uses_gradient:
        text = sympy.pycode(part.density)
        return text if part.density.free_symbols else f"{text} + 0.0 * u"
    if part.density in (U, W):
        return _difference(part.density.name, part.derivative)
    jets = {
        jet_symbol(order, field): sympy.Symbol(_difference(field, order))
        for field in FIELDS
        for order in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    }
    return f"({sympy.pycode(part.strong.xreplace(jets))})"


def _difference(field: str, order: Order) -> str:
    return field if order == (0, 0) else f"d(padded_{field}, {order})"
