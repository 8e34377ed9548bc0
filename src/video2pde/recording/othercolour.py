"""What another colour says about the light: light changes all colours alike, dye hardly those that pass through it.

Where a film is read in the colour that dye takes away, an encoder blurs that colour most, and a background of dye that
decays looks like light that dims. In a colour in which the dye hardly shows, nearly the whole picture is background.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from video2pde.blocks import means_between
from video2pde.recording.background import Background, find_background
from video2pde.recording.channel import Channel, STRONGEST

Array = NDArray[np.float64]

HARDLY, LESS = 0.5, 0.8
"""Contrast of a colour, as a share of that of the one that is read, up to which the dye hardly shows in it; and up to
which, light that changes included, it is looked at."""
ALIKE = (0.6, 1.5)
"""Change of the background in units of the other colour's that light makes: 1; what dye does, shows twice or more."""
LOOSER = (0.006, 0.008, 0.011, 0.015, 0.02)
"""Relative changes of a block beside the common one that may be an encoder's: what light is, another colour says."""
EVENER = 0.7
"""Share of its unevenness that the background may keep when another colour's surface is divided out."""
SIDE, BLOCKS, PARTS = 72, 20, 12
"""Cells along the longer side of the other colour's frames; blocks along each side, and parts of the film, that are
compared."""


@dataclass(frozen=True, eq=False)
class OtherColour:
    """Frames of a colour in which what spreads hardly shows: intensity (t, y, x) on a coarse grid.

    ``level``: one step of the camera's whole numbers.
    """

    name: str
    intensity: NDArray[np.float32]
    level: float

    @cached_property
    def background(self) -> Background | None:
        return find_background(self.intensity)

    def light_beside(self, intensity: NDArray[np.float32], own: Background) -> Background | None:
        """Return the background with the light's course; None where what spreads in frames (t, y, x) shows here, too.

        What the dye of the background does shows here by the share ρ of what it does there: with the logarithms of both
        courses o and t, light is (t − ρ o)/(1 − ρ).
        """
        there = self.background
        if there is None:
            return None
        share = contrast(self.intensity, there) / max(contrast(intensity, own), 1e-300)
        if share > HARDLY:
            return None
        light = (np.log(there.measured) - share * np.log(own.measured)) / (1 - share)
        return replace(there, measured=np.exp(light))


def contrast(intensity: NDArray[np.float32], background: Background) -> float:
    """Return how much frames (t, y, x) change where they change most, relative to the background at the same time."""
    starts = [np.unique(np.linspace(0, n, BLOCKS, endpoint=False).astype(int)) for n in intensity.shape[1:]]
    blocks = means_between(intensity, starts) / background.measured[:, None, None]
    few = np.array_split(blocks / np.median(blocks, axis=0), min(PARTS, len(blocks)))
    return float(np.percentile(np.ptp([part.mean(axis=0) for part in few], axis=0), STRONGEST))


def find_loosely(intensity: NDArray[np.float32]) -> Background | None:
    """Find what changes least in frames that an encoder blurs: background, if another colour says so."""
    return next((found for still in LOOSER if (found := find_background(intensity, still)) is not None), None)


def least_coloured(channel: Channel) -> str | None:
    """Name the channel in which what spreads shows least; None where it shows in all of them."""
    own = next((view for view in channel.views if view.name == channel.name), None)
    if own is None:
        return None
    other = min(channel.views, key=lambda view: view.contrast)
    return other.name if other.contrast <= LESS * own.contrast else None


def alike(own: Array, other: Array) -> bool:
    """Tell whether the background changes as it does in another colour, log g(t) of both, (t,)."""
    one, two = own - own.mean(), other - other.mean()
    return bool(ALIKE[0] < float(one @ two) / max(float(two @ two), 1e-300) < ALIKE[1])


def lend_surface(
    surface: NDArray[np.float32] | None, intensity: NDArray[np.float32], own: Background
) -> NDArray[np.float32] | None:
    """Bring another colour's f(x, y) to these frames' grid; None where it does not make their background evener."""
    if surface is None:
        return None
    places = [(np.arange(n) + 0.5) * m / n - 0.5 for n, m in zip(intensity.shape[1:], surface.shape, strict=True)]
    flat = map_coordinates(surface, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest")
    flat /= flat.max()
    mean = intensity.mean(axis=0, dtype=np.float64)
    before, after = (float(np.std(each[own.cells]) / np.mean(each[own.cells])) for each in (mean, mean / flat))
    return np.asarray(flat, np.float32) if after < EVENER * before else None
