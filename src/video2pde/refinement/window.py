"""The training window as the radial network sees it: whole pictures, with a weight for every pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.refinement.sampling import check_window, hold_out, MOST_ALIKE, plume_weight

Array = NDArray[np.float64]
MOST_POINTS = 600_000
"""Pixels over all frames from which on frames are left out."""
FEWEST_FRAMES = 40
"""Frames that are kept at least."""


@dataclass(frozen=True, eq=False)
class Window:
    """Hold frames, places and weights.

    Parameters
    ----------
    values : u, (t, y, x). times : (t,), seconds.
    x, y : (t, nx) and (t, ny), places of columns and rows, in coordinates that follow the drift or stand still.
    trained, held_out : weights (t, y, x) that sum to one; a pixel has one of them, or none outside the mask.
    velocity : what carries u past the coordinates, (2, t, y, x) or with single rows and columns; None: nothing.
    centre, spread : median and weighted standard deviation of u.
    cell : (Δx, Δy).
    """

    values: NDArray[np.float32]
    times: Array
    x: Array
    y: Array
    trained: Array
    held_out: Array
    velocity: Array | None
    centre: float
    spread: float
    cell: tuple[float, float]


def open_window(
    field: Field,
    velocity: Array,
    frame: Literal["moving", "fixed"],
    seed: int,
    concentration: float,
    flow: Flow | None = None,
) -> Window:
    """Weigh the pixels: ``concentration`` of the weight goes by |u − median|, the rest evenly.

    The parameters are those of :func:`~video2pde.refinement.sampling.draw_samples`; the seed chooses which pixels are
    held out.
    """
    check_window(field, velocity)
    shift = cumulative_trapezoid(velocity, dx=field.dt, axis=0, initial=0.0) * (frame == "moving")
    stride = max(1, min(field.values.size // MOST_POINTS, len(field) // FEWEST_FRAMES))
    field, velocity, shift = field.frames(slice(None, None, stride)), velocity[::stride], shift[::stride]
    inside = np.ones(field.grid.shape, bool) if field.mask is None else field.mask
    held = hold_out(np.random.default_rng(seed), field.values.shape)
    if not ((held & inside).any() and (~held & inside).any()):
        raise InputError("the mask leaves no points to train on or to hold out; widen it or give more frames")
    strength = plume_weight(field, inside).astype(np.float64) * inside
    even = np.broadcast_to(inside, strength.shape) / (inside.sum() * len(field))
    weight = concentration * strength / max(strength.sum(), 1e-300) + (1.0 - concentration) * even
    trained, held_out = weight * ~held, weight * held
    trained, held_out = trained / trained.sum(), held_out / held_out.sum()
    # around the background, most of what has to be learnt is where the weight is: conjugate gradients need fewer steps
    centre = float(np.median(field.values[:, inside]))
    mean = float(np.sum(trained * field.values))
    spread = float(np.sqrt(np.sum(trained * (field.values - mean) ** 2)))
    if not spread > MOST_ALIKE:
        raise InputError(f"the field is constant (spread {spread:.2g}); nothing spreads that could be refined")
    return Window(
        values=np.asarray(field.values, np.float32),
        times=field.times,
        x=field.grid.x - shift[:, :1],
        y=field.grid.y - shift[:, 1:],
        trained=trained,
        held_out=held_out,
        velocity=_carry(field, velocity if frame == "fixed" else None, flow),
        centre=centre,
        spread=spread,
        cell=(field.grid.dx, field.grid.dy),
    )


def _carry(field: Field, drift: Array | None, flow: Flow | None) -> Array | None:
    """Return what moves past the coordinates: the drift where they stand still, and the flow."""
    if drift is None and flow is None:
        return None
    uniform = np.zeros((len(field), 2)) if drift is None else drift
    carried: Array = uniform.T[:, :, None, None]
    return carried if flow is None else carried + np.moveaxis(flow.velocity(field.times, field.grid), 1, 0)
