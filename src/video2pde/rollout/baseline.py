"""The baseline that every law must beat: drift + diffusion, with the diffusion that fits best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from video2pde.field import Field
from video2pde.rollout.model import Model
from video2pde.rollout.window import roll_out
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]

FITTED_FRAMES = 33
"""Frames of the training window that the baseline's diffusion is fitted to."""
FAILED = 1e6
"""Squared error that a rollout which fails counts as."""
DIFFUSION_RANGE = (1e-7, 3e-3)
"""Where that diffusion is sought, in squares of the picture's longer side over the window's duration."""


def fit_diffusion(train: Field, velocity: Array, settings: RolloutSettings) -> float:
    """Fit β > 0 of u_t + v·∇u = βΔu to the rollout of the training window."""
    kept = np.unique(np.round(np.linspace(0, len(train) - 1, FITTED_FRAMES)).astype(int))
    window = Field(train.values[kept], train.times[kept], train.grid, train.mask, walls=train.walls)
    observed = window.values.astype(float)
    inside = np.ones(train.grid.shape, bool) if window.core is None else window.core
    scale = max(train.grid.height, train.grid.width) ** 2 / train.duration

    def cost(log_beta: float) -> float:
        law = Model.of({"laplacian": float(np.exp(log_beta))})
        (rollout,) = roll_out([law], window, velocity[None, kept], settings, start=observed[0])
        # a number, so that the search can still interpolate
        return FAILED if rollout.failed else float(np.mean((rollout.values - observed)[:, inside] ** 2))

    low, high = (float(np.log(share * scale)) for share in DIFFUSION_RANGE)
    return float(np.exp(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 0.01}).x))
