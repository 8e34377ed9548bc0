"""Undo what a camera does to noise at the empty end of its range.

Where nothing is in the picture (white for ``dark``, black for ``bright``), the sensor cannot read less than nothing:
it clips its noise, so that the mean of what it reads is not u but

    g(u) = E max(0, u + σz) = u Φ(u/σ) + σ φ(u/σ),    g(0) = σ/√(2π),

an offset of 0.008 at 2 % noise that fades above u = 2σ. A law that grows from u = 0 would amplify it. The film shows
the offset itself: an even, empty background whose pixels are partly, not wholly, at the limit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.special import ndtr

EMPTY = 0.2
"""Share of the cells that must lie at one level for it to be an empty background; uneven light has no such level."""
FIRST = 0.1
"""Share of the frames, the first ones, in which that level is measured."""
LEAST_SATURATED, MOST_SATURATED = 0.03, 0.97
"""Share of their pixels at the limit between which noise was clipped: none, and all of them, need no correction."""
WIDTH, SHIFTS = 0.2, 20
"""Half-width of the cluster of empty cells, as a share of their level, and steps towards its middle."""
LEAST_SPREAD = 0.01
"""Least spread of the empty cells around their level, as a share of it."""
LARGEST = 0.04
"""Offset beyond which noise is no explanation: σ would be a tenth of full scale."""
REACH = 5.0
"""Levels, in σ, up to which the offset is taken away; at 5σ it is σ/10⁷."""
CELLS, FRAMES = 3, 9
"""Box over which the level is averaged before its offset is looked up: noise must not pass through a curve.

In space it is averaged so that a curved profile keeps its level, 2B − B² with B the box."""


@dataclass(frozen=True)
class Clipping:
    """Say how much clipped noise added to an empty background, and the camera's noise that explains it."""

    offset: float
    sigma: float

    @property
    def note(self) -> str:
        return (
            f"noise clipped at the empty end of the camera's range raised the background to {self.offset:.2g} "
            f"(camera noise {self.sigma:.1%}); the offset was taken away, an empty background reads 0"
        )


def find_clipping(values: NDArray[np.float32], saturated: NDArray[np.float32]) -> Clipping | None:
    """Find the offset of an empty background.

    Parameters
    ----------
    values : shape (t, y, x), u. saturated : shape (y, x), share of each cell's pixels at the limit of the range.
    """
    first = values[: max(FRAMES, int(FIRST * len(values)))].mean(axis=0, dtype=np.float64)
    level = uniform_filter(first, CELLS, mode="nearest")
    offset = float(np.quantile(level, EMPTY / 2))
    for _ in range(SHIFTS):  # to the middle of the cluster of empty cells
        empty = np.abs(level - offset) <= WIDTH * offset
        if not (0 < offset <= LARGEST and empty.mean() >= EMPTY):
            return None
        offset = float(level[empty].mean())
    for _ in range(SHIFTS):  # without the cells that the picture's edge has begun to fill: as far up as down
        below = offset - level[empty & (level < offset)]
        spread = max(float(np.sqrt(np.mean(below**2))) if len(below) else 0.0, LEAST_SPREAD * offset)
        offset = float(level[empty & (np.abs(level - offset) <= 2 * spread)].mean())
    if not LEAST_SATURATED <= float(saturated[empty].mean()) <= MOST_SATURATED:
        return None
    return Clipping(offset, offset * float(np.sqrt(2 * np.pi)))


def remove_clipping(values: NDArray[np.float32], clipping: Clipping) -> None:
    """Take g(u) − u from every frame, in place; u is looked up from the level around each cell."""
    sigma = clipping.sigma
    # g is a curve of the true level: tabulated once, read backwards
    true = np.linspace(-2 * sigma, REACH * sigma, 1401)
    seen = true * ndtr(true / sigma) + sigma * np.exp(-0.5 * (true / sigma) ** 2) / np.sqrt(2 * np.pi)
    excess = seen - true
    excess[-1] = 0.0
    smooth: deque[NDArray[np.float32]] = deque(maxlen=FRAMES)
    half = FRAMES // 2
    ahead = min(half, len(values) - 1)
    smooth.extend(_even_out(frame) for frame in values[:ahead])
    for index, frame in enumerate(values):
        if index + ahead < len(values):
            smooth.append(_even_out(values[index + ahead]))
        elif len(smooth) > ahead + 1:
            smooth.popleft()
        frame -= np.interp(np.mean(smooth, axis=0), seen, excess).astype(np.float32)


def _even_out(frame: NDArray[np.float32]) -> NDArray[np.float32]:
    once = uniform_filter(frame, CELLS, mode="nearest")
    return np.asarray(2 * once - uniform_filter(once, CELLS, mode="nearest"))
