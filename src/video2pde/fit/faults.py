"""What a recording is known to get wrong other than by noise, as the test of fit allows for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from video2pde.calibration.budget import GRID_FLOOR, ZERO_LEVELS
from video2pde.field import Field

LEAST_LAG, MOST_LAG, HALF_HELD = 0.05, 0.5, 0.05
"""Levels by which the frames of an encoded film are late: at least, at most, and the share of changes held back at
which it is half of that (see decision 17)."""
ROUNDED, COARSE, HELD = 0.003, 0.015, 0.05
"""Relative error of a rate by rounding to whole levels, by a coarse quantiser, and where all changes are held back: the
weak form does not undo an encoder's lag."""


@dataclass(frozen=True)
class Faults:
    """Allow for a rate that is off by ``share`` of itself, a zero level off by ``zero``, and pictures late by ``lag``.

    ``steps``: share of cells that stand still until they jump by a grey level, as they do where no noise is;
    ``level``: that grey level, in units of u.
    """

    share: float
    zero: float = 0.0
    lag: float = 0.0
    steps: float = 0.0
    level: float = 0.0


def recording_faults(train: Field) -> Faults:
    """Say what grid, rounding and encoder do to a recording; what is not stored in whole levels is taken as it is."""
    encoding = train.encoding
    if encoding is None:
        return Faults(GRID_FLOOR)
    held = encoding.held_back
    coarse = held / (held + HALF_HELD)
    steps = float(np.mean(train.values[1:] == train.values[:-1]))
    return Faults(
        ROUNDED + COARSE * coarse + HELD * held, ZERO_LEVELS * encoding.level,
        encoding.level * (LEAST_LAG + (MOST_LAG - LEAST_LAG) * coarse), steps, encoding.level,
    )  # fmt: skip
