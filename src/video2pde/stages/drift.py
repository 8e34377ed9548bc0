"""Drift: measured where there is something to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from video2pde.drift import Drift, estimate_drift, no_drift
from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.flow.given import read_velocity
from video2pde.settings import Settings

STILL = 0.1
"""Cells within which a picture counts as standing still."""
EDGE = 3
"""Cells over which a profile away from an edge is averaged."""
ATTACHED, LEAST_HEIGHT = 0.8, 0.3
"""Shares of the profile's height, and of the highest, that what enters through an edge has there."""
LEVELS, SPREADING = (0.25, 0.75), 0.6
"""Shares of the height at which a profile's progress is compared; upper over lower progress of what spreads."""
CERTAIN = 3.0
"""Standard deviations of the centroid within which its path is no motion."""


def measure_drift(known: Field, settings: Settings) -> Drift:
    """Measure the drift; where nothing rises above the background there is none, and its notes say so."""
    try:
        drift = estimate_drift(known, settings.drift)
    except StageError as error:
        return replace(no_drift(known).stopped(str(error)), notes=(f"no drift was measured: {error}",))
    if drift.empty_frames:
        drift = replace(drift, notes=(f"{len(drift.empty_frames)} frames without signal were interpolated",))
    if settings.drift.velocity is not None:
        span = (float(known.times[0]), float(known.times[-1]))
        return replace(drift, given=read_velocity(Path(settings.drift.velocity), known.grid, span))
    if settings.drift.flow == "none":
        return drift.stopped("the settings say so (drift.flow)")
    if not drift.velocity.any():
        return drift.stopped("nothing moves as a whole")
    if settings.drift.flow == "auto" and within_error(drift, known):
        return drift.stopped("the centroid moves no more than its error")
    side = entering_side(known, drift) if settings.drift.through_edges else None
    if side is not None:
        why = f"the centroid moves because something spreads into the picture through its {side} edge"
        return replace(
            drift.stopped(why), notes=(*drift.notes, f"no drift is taken: {why}; --edges measured follows it")
        )
    return drift


def entering_side(known: Field, drift: Drift) -> str | None:
    """Name the edge through which something spreads into the picture; None: there is none.

    The picture is highest at that edge all the time, and its profile away from the edge grows wider: its upper part
    stays near the edge while the lower part goes on. What is carried in moves as a whole.
    """
    tenth = max(1, len(known) // 10)
    middle = len(known) // 2
    parts = [slice(0, tenth), slice(middle, middle + tenth), slice(-tenth, None)]
    pictures = [known.values[part].mean(axis=0) - drift.background[part].mean() for part in parts]
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


def within_error(drift: Drift, known: Field) -> bool:
    """Tell whether the centroid's path is within its scatter, or within a small part of a cell."""
    path = np.ptp(drift.smooth_centroid, axis=0)
    scatter = np.std(drift.centroid - drift.smooth_centroid, axis=0)
    small = STILL * np.array([known.grid.dx, known.grid.dy])
    return bool(np.all(path <= np.maximum(CERTAIN * scatter, small)))
