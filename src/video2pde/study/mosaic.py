"""Films of a study side by side on one canvas, so that one player plays them in step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field, Grid
from video2pde.study.prediction import Shown

GAP = 4
"""Pixels between films."""


def side_by_side(names: Sequence[str], shown: Sequence[Shown]) -> tuple[Field, tuple[int, NDArray[np.float32]]] | None:
    """Set films beside each other on one canvas, each from its own beginning, at common times.

    Returns the canvas as a field, and the forecasts on it (NaN where there are none).
    """
    if not names or len(shown) != len(names):
        return None
    columns = int(np.ceil(np.sqrt(len(shown))))
    rows = -(-len(shown) // columns)
    height, width = (max(film.observed.shape[axis] for film in shown) + GAP for axis in (1, 2))
    longest = max(film.times[-1] - film.times[0] for film in shown)
    times = np.linspace(0.0, float(longest), max(len(film.times) for film in shown))
    canvas = np.zeros((len(times), rows * height, columns * width), np.float32)
    forecast = np.full_like(canvas, np.nan)
    for place, film in enumerate(shown):
        at = np.clip(np.searchsorted(film.times - film.times[0], times, side="right") - 1, 0, len(film.times) - 1)
        top, left = place // columns * height, place % columns * width
        part = (slice(None), slice(top, top + film.observed.shape[1]), slice(left, left + film.observed.shape[2]))
        canvas[part], forecast[part] = film.observed[at], film.forecast[at]
    # the player shows whole frames: where one film is not predicted yet, its own picture stands
    begun = np.isfinite(forecast).any(axis=(1, 2))
    forecast = np.where(np.isfinite(forecast), forecast, canvas)
    first = int(np.argmax(begun)) if begun.any() else len(times)
    grid = Grid(canvas.shape[1], canvas.shape[2], float(canvas.shape[1]), float(canvas.shape[2]), "pixels")
    return Field(canvas, times, grid), (first, forecast[first:])
