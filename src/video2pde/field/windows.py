"""Chronological windows: training, validation and test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.blocks import block_means
from video2pde.errors import InputError
from video2pde.field.field import Field
from video2pde.field.timing import noise_weights

SplitBy = Literal["frames", "time", "change"]
FEW_FRAMES, LEAST_FRAMES = 10, 4
"""Frames below which windows share a frame; frames that are needed at least."""


@dataclass(frozen=True)
class Windows:
    """Split ``frames`` frames chronologically into training, validation and test.

    Where there are few, a held-out window starts with ``lead`` frames of the window before it: its rollout begins at a
    frame that is known, and every frame after that is a forecast.
    """

    frames: int
    train_end: int
    validation_end: int
    lead: int = 0

    @classmethod
    def split(cls, frames: int, train: float = 0.6, validation: float = 0.2) -> Windows:
        """Assign the first ``train`` share to training, the next ``validation`` share to validation."""
        return cls._at(frames, round(train * frames), round((train + validation) * frames), train, validation)

    @classmethod
    def of(cls, field: Field, train: float, validation: float, by: SplitBy = "frames") -> Windows:
        """Split a recording by its frames, by time, or by how much of the picture's change is over.

        With fewer than ten frames, all but the last two (or one) are for the fit, and these are forecast.
        """
        frames = len(field)
        if frames < FEW_FRAMES:
            if frames < LEAST_FRAMES:
                raise InputError(f"{frames} frames are too few: {LEAST_FRAMES} are needed to fit a law and to test it")
            return cls(frames, max(frames - 2, LEAST_FRAMES - 1), frames - 1, lead=1 if frames > LEAST_FRAMES else 2)
        if by == "frames":
            return cls.split(frames, train, validation)
        measure = field.times - field.times[0] if by == "time" else change_so_far(field)
        first, second = (
            int(np.searchsorted(measure, share * measure[-1])) + 1 for share in (train, train + validation)
        )
        first = min(max(first, LEAST_FRAMES), frames - 4)
        return cls._at(frames, first, min(max(second, first + 2), frames - 2), train, validation)

    @classmethod
    def _at(cls, frames: int, first: int, second: int, train: float, validation: float) -> Windows:
        if not 2 <= first <= second - 2 <= frames - 4:
            raise InputError(
                f"{frames} frames are too few for windows of {train:.0%}, {validation:.0%} and "
                f"{1 - train - validation:.0%}: each window needs at least two frames"
            )
        return cls(frames, first, second)

    @property
    def train(self) -> slice:
        return slice(0, self.train_end)

    @property
    def validation(self) -> slice:
        return slice(self.train_end - self.lead, self.validation_end)

    @property
    def test(self) -> slice:
        return slice(self.validation_end - min(self.lead, 1), self.frames)


def change_so_far(field: Field) -> NDArray[np.float64]:
    """Return how much the picture has changed up to each frame, (t,): the path of its block averages less noise."""
    inside = np.ones(field.grid.shape, bool) if field.mask is None else field.mask
    blocks = block_means(field.values, inside)
    noise = 0.0
    if len(field) > 2:
        weights = noise_weights(field.times)
        left = weights[:, :1] * blocks[:-2] + weights[:, 1:2] * blocks[1:-1] + weights[:, 2:] * blocks[2:]
        noise = 2 * float(np.median(np.mean(left**2, axis=1)))
    steps = np.sqrt(np.maximum(np.mean(np.diff(blocks, axis=0) ** 2, axis=1) - noise, 0.0))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    return path if path[-1] > 0 else np.arange(len(field), dtype=float)
