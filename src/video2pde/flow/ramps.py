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
"""Step of the differences by which ramps are moved and widened, in their widths."""


def ramp_functions(times: Array, centres: Array, widths: Array) -> Array:
    """Return a constant and ramps from 0 to 1 at the times, (t, 1 + n)."""
    rising = ndtr((times[:, None] - centres) / widths)
    return np.concatenate([np.ones((len(times), 1)), rising], axis=1)


def ramp_directions(shape: FlowShape, times: Array) -> Array:
    """Return how the coefficients of a course change with its ramps, (n, l): nothing where it has none.

    Every ramp moves (by a second) and widens (by a factor e), and every level changes but one: the strength as a whole
    is that of the modes.
    """
    if not shape.ramps:
        return np.zeros((0, len(shape.course)))
    splines = shape.course_functions(times).T
    nearest = np.linalg.pinv(splines)
    centres, widths = np.array(shape.ramps).T
    functions = ramp_functions(times, centres, widths)
    levels = np.linalg.lstsq(functions, splines @ np.array(shape.course), rcond=None)[0]
    slopes = []
    for i, unit in enumerate(np.eye(len(centres))):
        wider = np.exp(STEP * unit)
        moved = _difference(times, centres + STEP * widths * unit, widths, centres - STEP * widths * unit, widths)
        widened = _difference(times, centres, widths * wider, centres, widths / wider)
        slopes += [levels[1 + i] * moved[:, 1 + i] / widths[i], levels[1 + i] * widened[:, 1 + i]]
    others = [function for place, function in enumerate(functions.T) if place != 1]
    return np.stack([nearest @ slope for slope in (*slopes, *others)])


def _difference(times: Array, *places: Array) -> Array:
    after, before = (ramp_functions(times, *pair) for pair in (places[:2], places[2:]))
    return np.asarray((after - before) / (2 * STEP))


def moved_ramps(shape: FlowShape, amounts: Array) -> tuple[tuple[float, float], ...]:
    """Return where ramps are after a change by ``amounts`` of :func:`ramp_directions`."""
    centres, widths = np.array(shape.ramps).T
    there = zip(
        centres + amounts[0 : 2 * len(centres) : 2], widths * np.exp(amounts[1 : 2 * len(centres) : 2]), strict=True
    )
    return tuple((float(centre), float(width)) for centre, width in there)
