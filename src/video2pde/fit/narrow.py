"""A front narrower than a cell: |∇u|² sharpens a front until diffusion rounds its foot, over a length of D/(a|∇u|).

Where that length is a fraction of a cell, grid and camera round the front, not the fluid, and Δu's coefficient says
nothing about it, however well the law fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from video2pde.calibration import Calibration
from video2pde.field import Field
from video2pde.fit.noise import CALM
from video2pde.fit.result import Suspicion

Array = NDArray[np.float64]

NAME = "narrow front"
NARROW = 0.2
"""Length over which diffusion rounds a front, in cells, below which the grid does not show it."""
STEEPEST = 0.998
"""Share of the cells that are less steep than what counts as the steepest."""


def rounding_length(train: Field, calibration: Calibration) -> float:
    """Return D/(a|∇u|) at the steepest places, in cells; infinite where the law does not sharpen fronts."""
    law = {name: estimate.value for name, estimate in calibration.estimates.items()}
    diffusion = law.get("laplacian", 0.0)
    highest = float(np.quantile(train.values[:: max(1, len(train) // 20)], STEEPEST))
    sharpening = abs(law.get("grad_squared", 0.0)) + abs(law.get("u_grad_squared", 0.0)) * abs(highest)
    steepness = _steepest(train)
    if diffusion <= 0 or sharpening * steepness == 0:
        return float("inf")
    return diffusion / (sharpening * steepness) / max(train.grid.dx, train.grid.dy)


def _steepest(train: Field) -> float:
    """Return the steepest |∇u| that lasts longer than a few frames, in units of length."""
    calm = uniform_filter1d(train.values, CALM, axis=0, mode="nearest")[:: 2 * CALM]
    along_y, along_x = np.gradient(calm, train.grid.dy, train.grid.dx, axis=(1, 2))
    steepness = np.hypot(along_y, along_x).reshape(len(calm), -1)
    return float(np.quantile(steepness, STEEPEST, axis=1).max())


def ask_front(train: Field, calibration: Calibration) -> Suspicion | None:
    """Suspect the grid where it, not diffusion, rounds the front; None where it does not."""
    length = rounding_length(train, calibration)
    if length >= NARROW:
        return None
    words = (
        f"diffusion would round the front over {length:.2g} cells, so that grid and camera do it instead, and Δu is "
        "not resolved: film closer, or raise recording.grid"
    )
    return Suspicion(
        NAME, calibration.library, 0.0, 0.0, -np.inf, 0, np.nan, {}, np.inf, -np.inf, words, "film closer", True
    )
