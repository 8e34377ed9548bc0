"""Suspects that need no columns: what the recording itself shows.

A front narrower than a cell: |∇u|² sharpens a front until diffusion rounds its foot, over a length of D/(a|∇u|). Where
that is a fraction of a cell, grid and camera round the front, not the fluid, and Δu's coefficient says nothing about
it, however well the law fits. The picture's edge: what enters or leaves there is not in a law that closes it.
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

NARROW_FRONT, EDGES = "narrow front", "edges"
NARROW = 0.2
"""Length over which diffusion rounds a front, in cells, below which the grid does not show it."""
STEEPEST = 0.998
"""Share of the cells that are less steep than what counts as the steepest."""
REACHED = 0.05
"""Change at the picture's rim, as a share of the range of u, from which something passes through it."""


def rounding_length(train: Field, calibration: Calibration) -> float:
    """Return D/(a|∇u|) at the steepest places, in cells; infinite where the law does not sharpen fronts."""
    law = calibration.model
    diffusion = law.amount("laplacian")
    highest = float(np.quantile(train.values[:: max(1, len(train) // 20)], STEEPEST))
    sharpening = abs(law.amount("grad_squared")) + abs(law.amount("u_grad_squared")) * abs(highest)
    steepness = _steepest(train)
    if diffusion <= 0 or sharpening * steepness == 0:
        return float("inf")
    return diffusion / (sharpening * steepness) / max(train.grid.dx, train.grid.dy)


def _steepest(train: Field) -> float:
    """Return the steepest |∇u| that lasts longer than a few frames, in units of length."""
    last, around = len(train) - 1, np.arange(CALM) - CALM // 2
    calm = np.stack([train.values[np.clip(k + around, 0, last)].mean(axis=0) for k in range(0, last + 1, 2 * CALM)])
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
    return Suspicion.of_recording(NARROW_FRONT, calibration.library, words, "film closer", material=True)


def unresolved_share(train: Field, calibration: Calibration) -> float:
    """Return the share of Δu's coefficient that a grid may get wrong at a front: all of it at ``NARROW`` cells.

    Differences and test functions are right to fourth order, so that the share falls with the fourth power of the
    length over which diffusion rounds the front.
    """
    return float(min(1.0, (NARROW / rounding_length(train, calibration)) ** 4))


def change_at_rim(train: Field) -> float:
    """Return how much u changes along the picture's rim, at its worst place, as a share of the range of u."""
    ends = [train.values[part].mean(axis=0) for part in (slice(None, CALM), slice(-CALM, None))]
    rim = [np.concatenate([end[0], end[:, -1], end[-1, ::-1], end[::-1, 0]]) for end in ends]
    change = uniform_filter1d(rim[1] - rim[0], CALM, mode="wrap")
    change -= np.median(change)
    spread = float(np.quantile(ends[0], STEEPEST) - np.quantile(ends[0], 1 - STEEPEST))
    return float(np.abs(change).max()) / spread if spread > 0 else 0.0


def ask_edges(train: Field, calibration: Calibration) -> Suspicion | None:
    """Suspect the picture's edge where the plume, not all of the background alike, changes there."""
    share = change_at_rim(train)
    if train.core is not None or share < REACHED:
        return None
    words = (
        f"u changes by {share:.0%} of its range at the picture's edge, where something enters or leaves: let the rim "
        "drive the rollout with --edges measured, or film a larger part"
    )
    return Suspicion.of_recording(EDGES, calibration.library, words, "--edges measured", material=False)
