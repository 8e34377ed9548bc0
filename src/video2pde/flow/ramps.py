"""A course of few levels: θ(t) is constant but for ramps, each of which has a centre and a width.

    θ(t) = a₀ + Σ_i a_i Φ((t − t_i)/w_i),      Φ the normal distribution

It is held as coefficients of splines in time, like any course; ``FlowShape.ramps`` says where its ramps are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from video2pde.flow.flow import FlowShape

Array = NDArray[np.float64]

STEP = 1e-4
"""Step of the differences by which ramps are moved, in their widths."""


def ramp_functions(times: Array, centres: Array, widths: Array) -> Array:
    """Return a constant and ramps from 0 to 1 at the times, (t, 1 + n)."""
    rising = ndtr((times[:, None] - centres) / widths)
    return np.concatenate([np.ones((len(times), 1)), rising], axis=1)


def ramp_directions(shape: FlowShape, times: Array) -> Array:
    """Return how the coefficients of a course change with its ramps, (n, l): nothing where it has none.

    Every ramp moves (by a second), and every level changes but one: the strength as a whole is that of the modes. The
    widths stay: how long a ramp takes hardly changes how far it has moved things, while an encoder's lag does.
    """
    if not shape.ramps:
        return np.zeros((0, len(shape.course)))
    splines = shape.course_functions(times).T
    nearest = np.linalg.pinv(splines)
    centres, widths = np.array(shape.ramps).T
    functions = ramp_functions(times, centres, widths)
    levels = np.linalg.lstsq(functions, splines @ np.array(shape.course), rcond=None)[0]
    after, before = (ramp_functions(times, centres + step * widths, widths) for step in (STEP, -STEP))
    moved = levels[1:] * ((after - before)[:, 1:] / (2 * STEP * widths))
    others = np.delete(functions, 1, axis=1)
    return np.asarray((nearest @ np.hstack([moved, others])).T)


def moved_ramps(shape: FlowShape, amounts: Array) -> tuple[tuple[float, float], ...]:
    """Return where ramps are after a change by ``amounts`` of :func:`ramp_directions`."""
    return tuple((centre + float(move), width) for (centre, width), move in zip(shape.ramps, amounts, strict=False))
