"""The one rollout over a window of a recording, with or without a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.device import Device
from video2pde.field import Field
from video2pde.rollout.model import Model
from video2pde.rollout.region import Region
from video2pde.rollout.simulate import simulate_batch
from video2pde.rollout.task import Rollout, Scheme
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]


def roll_out(
    models: Sequence[Model],
    window: Field,
    velocity: Array,
    settings: RolloutSettings,
    *,
    start: ArrayLike,
    workers: int | Literal["auto"] = 1,
    device: Device = "cpu",
) -> list[Rollout]:
    """Predict the frames of a window with every model.

    Where the recording has a mask, the law holds inside it: between walls, or with the rest of the picture as it was
    recorded. Scores of such a rollout are taken over ``window.core``.

    Parameters
    ----------
    models : the laws.
    window : the observed frames.
    velocity : (model, t, 2), the uniform drift under each law, in length per second.
    settings : the simulator's.
    start : (y, x), the state at the window's first frame.
    workers, device : how many threads, and where; they change no result.

    Returns
    -------
    One rollout for each model, with frames in float32.
    """
    scheme = scheme_for(window, settings, workers, device)
    return simulate_batch(models, start, window.times, window.grid, velocity, scheme)


def scheme_for(
    window: Field, settings: RolloutSettings, workers: int | Literal["auto"] = 1, device: Device = "cpu"
) -> Scheme:
    """Say how predictions of a window are computed: in its region, stored as the recording is."""
    return Scheme(settings, output="float32", region=Region.of(window), workers=workers, device=device)
