"""Something that spreads into the picture through one of its edges: a front, not a plume that is carried along."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

STILL = 0.1
"""Cells that a profile must have gone on."""
EDGE = 3
"""Cells over which a profile away from an edge is averaged."""
ATTACHED, LEAST_HEIGHT = 0.8, 0.3
"""Shares of the profile's height, and of the highest, that what enters through an edge has there."""
LEVELS, SPREADING = (0.25, 0.75), 0.6
"""Shares of the height at which a profile's progress is compared; upper over lower progress of what spreads."""


def entering_side(values: Frames, background: Array) -> str | None:
    """Name the edge through which something spreads into the picture; None: there is none.

    The picture is highest at that edge all the time, and its profile away from the edge grows wider: its upper part
    stays near the edge while the lower part goes on. What is carried in moves as a whole.

    Parameters
    ----------
    values : (t, y, x), the recording.
    background : (t,), its level where nothing is.
    """
    tenth = max(1, len(values) // 10)
    middle = len(values) // 2
    parts = [slice(0, tenth), slice(middle, middle + tenth), slice(-tenth, None)]
    pictures = [values[part].mean(axis=0) - background[part].mean() for part in parts]
    profiles = {
        "left": [p.mean(axis=0) for p in pictures],
        "right": [p.mean(axis=0)[::-1] for p in pictures],
        "top": [p.mean(axis=1) for p in pictures],
        "bottom": [p.mean(axis=1)[::-1] for p in pictures],
    }
    found = [side for side, seen in profiles.items() if _spreads_in(seen)]
    return found[0] if len(found) == 1 else None


def _spreads_in(profiles: Sequence[NDArray[np.floating]]) -> bool:
    """Judge profiles away from an edge at three times."""
    smooth = [uniform_filter1d(np.asarray(profile, float), EDGE) for profile in profiles]
    highest = max(float(profile.max()) for profile in smooth)
    for profile in smooth:
        attached = profile[0] > ATTACHED * profile.max() and profile[0] > LEAST_HEIGHT * highest
        if not attached or profile[-1] > (1 - ATTACHED) * profile[0]:
            return False
    low, high = ([_falls_to(profile, share * profile[0]) for profile in (smooth[0], smooth[-1])] for share in LEVELS)
    gone = low[1] - low[0]
    return gone > STILL and high[1] - high[0] < SPREADING * gone


def _falls_to(profile: NDArray[np.float64], level: float) -> float:
    """Return where a profile first falls to a level, in cells."""
    below = int(np.argmax(profile < level))
    above = profile[below - 1] if below else profile[0]
    step = above - profile[below]
    return below - 1 + float((above - level) / step) if below and step > 0 else float(below)
