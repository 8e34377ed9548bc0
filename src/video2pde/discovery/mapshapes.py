"""Which splines a coefficient that varies has, where it can be seen, and how test functions are dealt out for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, maximum_filter

from video2pde.discovery.testfunctions import Widths
from video2pde.discovery.weak import WeakSystem
from video2pde.field import Field
from video2pde.maps import MapShape
from video2pde.maps.maps import DEGREE
from video2pde.settings import Settings

BLOCKS = 4
"""Blocks of time of the cross-validation; tiles of the picture are dealt out to as many."""
TILE = 4.0
"""Side of these tiles, in widths of a test function."""
FAINT, SMOOTH = 0.03, 1.0
"""Departure from the background, relative to the largest, from which there is signal, in pictures smoothed a little."""
TESTED = 5
"""Splines in time of the departures that a constant coefficient is tested against; over space they are cubic."""


def map_shapes(train: Field, settings: Settings) -> dict[str, tuple[MapShape, MapShape]]:
    """Return the shapes of the coefficients that the settings let vary, by term, and coarse ones to test a constant."""
    options = settings.maps
    seen, grid = _seen(train), train.grid
    boxes = []
    for axis, (length, pitch) in enumerate(((grid.height, grid.dy), (grid.width, grid.dx))):
        places = np.flatnonzero(seen.any(axis=1 - axis))
        boxes.append((max(0.0, pitch * (places[0] - 1)), min(length, pitch * (places[-1] + 2)), length))
    longest = max(high - low for low, high, _ in boxes)
    span = (float(train.times[0]), float(train.times[-1]))

    def in_time(name: str, count: int) -> MapShape:
        return MapShape(name, "time", (tuple(np.linspace(*span, count - DEGREE + 1).tolist()),))

    def in_space(name: str) -> MapShape:
        counts = [max(1, round((options.splines - DEGREE) * (high - low) / longest)) for low, high, _ in boxes]
        rows, columns = (_breaks(box, count) for box, count in zip(boxes, counts, strict=True))
        return MapShape(name, "space", (rows, columns))

    whole = ((0.0, grid.height), (0.0, grid.width))
    return {
        name: (in_space(name), MapShape(name, over, whole))
        if over == "space"
        else (in_time(name, options.times), in_time(name, TESTED))
        for name, over in options.vary.items()
    }


def _breaks(box: tuple[float, float, float], count: int) -> tuple[float, ...]:
    """Divide the part of an axis that shows something evenly, and let the outermost splines reach to its ends."""
    low, high, length = box
    inner = np.linspace(low, high, count + 1)
    step = inner[1] - inner[0]
    # what is left over beside the box joins the next spline, or has one of its own
    before = [0.0] if low > step / 2 else []
    after = [length] if length - high > step / 2 else []
    inner[0], inner[-1] = inner[0] if before else 0.0, inner[-1] if after else length
    return tuple(float(place) for place in (*before, *inner, *after))


def _seen(train: Field) -> NDArray[np.bool_]:
    """Tell where a recording shows anything but background, at any time."""
    seen = np.zeros(train.grid.shape, bool)
    for picture in (train.values.mean(axis=0), train.values.std(axis=0)):
        smooth = gaussian_filter(picture, SMOOTH)
        away = np.abs(smooth - np.median(smooth))
        seen |= away >= FAINT * away.max()
    return seen


def near_signal(train: Field, widths: Widths) -> NDArray[np.bool_]:
    """Tell where a test function sees anything but background: elsewhere it would hold noise alone."""
    reach = 2 * max(1, round(2 * widths.y)) + 1, 2 * max(1, round(2 * widths.x)) + 1
    return np.asarray(maximum_filter(_seen(train), size=reach))


def time_blocks(law: WeakSystem) -> NDArray[np.int64]:
    """Deal the centres out to blocks of time."""
    times = law.centres[:, 0]
    edges = np.quantile(np.unique(times), np.linspace(0, 1, BLOCKS + 1))[1:-1]
    return np.searchsorted(edges, times, side="right")


def tiles(law: WeakSystem) -> NDArray[np.int64]:
    """Deal the centres out to four quarters, tiles of the picture in turn."""
    at = np.floor(law.centres[:, 1:] / (TILE * np.array([law.widths.y, law.widths.x]))).astype(np.int64) % 2
    return np.asarray(2 * at[:, 0] + at[:, 1])
