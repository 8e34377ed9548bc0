"""What a recording is known to get wrong other than by noise, as the test of fit allows for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from video2pde.calibration.budget import GRID_FLOOR, ZERO_LEVELS
from video2pde.field import Field
from video2pde.fit.noise import cell_noise

SPACE = 20
"""Blocks along each side of the picture, at the finest."""
PATCH, HELD_PATCH = 0.06, 0.2
"""Levels, root mean square, by which patches of a twentieth of the picture are off for long: in any film of whole
levels, and beyond that where an encoder holds all changes back."""
SEEN_IN_RATE = 0.25
"""Share of a patch's error that a rate of change sees."""
HALF_HELD = 0.05
"""Share of changes held back at which a quantiser counts as half coarse."""
ROUNDED, COARSE, HELD = 0.003, 0.015, 0.05
"""Relative error of a rate by rounding to whole levels, by a coarse quantiser, and where all changes are held back: the
weak form does not undo an encoder's lag."""


@dataclass(frozen=True)
class Faults:
    """Allow for a rate that is off by ``share`` of itself, a zero level off by ``zero``, and ``patch``: by how much
    patches of a twentieth of the picture are off for long, root mean square.

    ``steps``: how far cells stand still until they jump by a grey level, as they do where no noise is: from 0 to 1;
    ``level``: that grey level, in units of u.
    """

    share: float
    zero: float = 0.0
    patch: float = 0.0
    steps: float = 0.0
    level: float = 0.0


def recording_faults(train: Field) -> Faults:
    """Say what grid, rounding and encoder do to a recording; what is not stored in whole levels is taken as it is."""
    encoding = train.encoding
    if encoding is None:
        return Faults(GRID_FLOOR)
    held = encoding.held_back
    coarse = held / (held + HALF_HELD)
    _, usual = cell_noise(train.values)
    still = float(np.mean(train.values[1:] == train.values[:-1]))
    steps = max(still, float(np.exp(-2 * np.pi**2 * (usual / encoding.level) ** 2))) if encoding.level > 0 else still
    return Faults(
        share=ROUNDED + COARSE * coarse + HELD * held,
        zero=ZERO_LEVELS * encoding.level,
        patch=encoding.level * (PATCH + HELD_PATCH * held),
        steps=steps,
        level=encoding.level,
    )
