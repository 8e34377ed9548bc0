"""Drift: measured where there is something to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from video2pde.drift import Drift, estimate_drift, no_drift
from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.flow.given import read_potential, read_velocity
from video2pde.recording.entering import entering_side
from video2pde.settings import Settings

STILL = 0.1
"""Cells within which a picture counts as standing still."""
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
    span = (float(known.times[0]), float(known.times[-1]))
    if settings.drift.velocity is not None:
        return replace(drift, given=read_velocity(Path(settings.drift.velocity), known.grid, span))
    if settings.drift.potential is not None:
        return replace(drift, given=read_potential(Path(settings.drift.potential), known.grid, span))
    if settings.drift.flow == "none":
        return drift.stopped("the settings say so (drift.flow)")
    if not drift.velocity.any():
        return drift.stopped("nothing moves as a whole")
    if settings.drift.flow == "auto" and within_error(drift, known):
        return drift.stopped("the centroid moves no more than its error")
    side = entering_side(known.values, drift.background) if settings.drift.through_edges else None
    if side is not None:
        why = f"the centroid moves because something spreads into the picture through its {side} edge"
        cure = "" if known.core is not None else "; --edges measured follows it"
        return replace(drift.stopped(why), notes=(*drift.notes, f"no drift is taken: {why}{cure}"))
    return drift


def within_error(drift: Drift, known: Field) -> bool:
    """Tell whether the centroid's path is within its scatter, or within a small part of a cell."""
    path = np.ptp(drift.smooth_centroid, axis=0)
    scatter = np.std(drift.centroid - drift.smooth_centroid, axis=0)
    small = STILL * np.array([known.grid.dx, known.grid.dy])
    return bool(np.all(path <= np.maximum(CERTAIN * scatter, small)))
