"""The two-field reaction–diffusion of the PDE-FIND examples: λ–ω waves that wind up into a spiral.

    u_t = D Δu + λ u − ω w,    w_t = D Δw + ω u + λ w,    λ = 1 − A², ω = −βA², A² = u² + w²,

with D = 0.1 and β = 1 on a periodic square of side 20, t from 0 to 10, from tanh(r) (cos, sin)(θ − r). It is solved
anew from these equations, in Fourier modes with steps of ETDRK4, and sampled at the grid's nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft

from video2pde.field import Field, Grid
from video2pde.pair.fields import Pair
from video2pde.recording.synth.etd import Etdrk4

SIDE, NODES, FRAMES, DURATION = 20.0, 128, 201, 10.0
DIFFUSION, BETA = 0.1, 1.0
LAW = (
    {"laplacian": DIFFUSION, "u": 1.0, "u_cubed": -1.0, "u_w_squared": -1.0, "u_squared_w": BETA, "w_cubed": BETA},
    {"laplacian_w": DIFFUSION, "w": 1.0, "w_cubed": -1.0, "u_squared_w": -1.0, "u_w_squared": -BETA, "u_cubed": -BETA},
)
STEPS = 2
"""Steps of the solver for each frame; with twice as many the last frame differs by less than 1e-5."""


def solve(steps: int = STEPS) -> Pair:
    """Return both fields at all nodes but the repeated last ones."""
    step = SIDE / NODES
    at = step * np.arange(NODES) - SIDE / 2
    x, y = np.meshgrid(at, at)
    distance, angle = np.hypot(x, y), np.arctan2(y, x)
    start = np.tanh(distance) * np.stack([np.cos(angle - distance), np.sin(angle - distance)])
    k = 2 * np.pi * fft.fftfreq(NODES, step)
    square = k[:, None] ** 2 + k[None, :] ** 2
    # products of three waves: what they alias onto is cut off
    kept = np.abs(k) < np.abs(k).max() / 2
    kept = kept[:, None] & kept[None, :]

    def react(state: Any, _: float) -> Any:
        u, w = (fft.ifft2(part).real for part in state)
        squared = u**2 + w**2
        grown, turned = 1 - squared, -BETA * squared
        return np.stack([kept * fft.fft2(part) for part in (grown * u - turned * w, turned * u + grown * w)])

    solver = Etdrk4(np.stack([-DIFFUSION * square] * 2), react)
    state = np.stack([fft.fft2(part) for part in start])
    times = np.linspace(0, DURATION, FRAMES)
    frames = [start]
    for time in times[:-1]:
        for n in range(steps):
            size = (times[1] - times[0]) / steps
            state = solver.advance(state, time + n * size, size)
        frames.append(np.stack([fft.ifft2(part).real for part in state]))
    fields = np.stack(frames).astype(np.float32)
    grid = Grid(NODES, NODES, SIDE - step, SIDE - step, pitch="nodes")
    return Pair(*(Field(np.ascontiguousarray(fields[:, n]), times, grid) for n in range(2)))
