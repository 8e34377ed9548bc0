"""Jumps of the scene: a bleach, a lamp that is switched on, a stage that moves. What comes before is another state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.blocks import means_between
from video2pde.settings import RecordingSettings

BLOCKS = 8
"""Blocks along each side over which pictures are averaged, so that pixel noise does not count."""
JUMP = 6.0
"""How many times larger than its neighbours (and than the noise of the blocks) a change must be."""
LEAST = 0.01
"""Share of the picture's range that a jump must change the blocks by (root mean square)."""
NEAR = 5
"""Changes on either side that a jump is compared with."""


@dataclass(frozen=True)
class Jump:
    """The scene changes abruptly before frame ``first``; ``size``: by what share of its range (root mean square)."""

    first: int
    size: float


def find_jumps(values: NDArray[np.float32]) -> tuple[Jump, ...]:
    """Find where frames (t, y, x) change far more than before and after."""
    if len(values) < 4:
        return ()
    starts = [[part[0] for part in np.array_split(np.arange(n), min(BLOCKS, n))] for n in values.shape[1:]]
    blocks = means_between(values, [np.array(begin) for begin in starts]).reshape(len(values), -1)
    span = float(np.percentile(blocks, 99.5) - np.percentile(blocks, 0.5))
    if span <= 0:
        return ()
    change = np.sqrt(np.mean(np.diff(blocks, axis=0) ** 2, axis=1))
    found = []
    for k, size in enumerate(change):
        around = np.concatenate([change[max(0, k - NEAR) : k], change[k + 1 : k + 1 + NEAR]])
        if size > JUMP * max(float(np.median(around)), 1e-12) and size > LEAST * span:
            found.append(Jump(k + 1, float(size / span)))
    return tuple(found)


def describe_jump(jump: Jump, settings: RecordingSettings) -> str:
    """Warn of a jump, with the frame to start from as it is counted in the file."""
    frame = settings.first + settings.every * jump.first
    return (
        f"the scene jumps by {jump.size:.0%} of its range before frame {frame} (bleach, lamp, touch); no law holds"
        f" across a jump: start there (--start {frame}), or stop before it (--stop {frame})"
    )
