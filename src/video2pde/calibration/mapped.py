"""Coefficients that vary among the unknowns of a calibration: a block for each map.

A map has more freedom than a recording shows. In weak form all its splines are unknowns; a calibration changes it along
a few directions, those in which the weak fit leaves it most uncertain where there is signal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import Block, Scene, Unknowns, Values
from video2pde.discovery.moments import map_key
from video2pde.maps import CoefficientMap

Array = NDArray[np.float64]

MAP = "map of "
"""What the names of these blocks begin with."""
PRIOR = 5.0
"""Standard errors of the weak fit by which a calibration may change a map along a direction, as a prior's width."""


@dataclass(frozen=True, eq=False)
class MapBlock(Block):
    """A map of the coefficient of ``term``, changed along ``directions`` (n, k).

    ``pushed`` (n, t, 2): how a unit of each moves the centroid for a coefficient of one; the drift follows by that.
    """

    term: str = ""
    directions: Array | None = None
    pushed: Array | None = None

    def set_up(self, scene: Scene, values: Array) -> Scene:
        assert self.directions is not None
        change = np.tensordot(values, self.directions, axes=1)
        model = scene.model
        maps = tuple(each.changed(change) if each.term == self.term else each for each in model.maps)
        velocity = scene.velocity
        if self.pushed is not None:
            velocity = velocity - model.coefficient(self.term) * np.tensordot(values, self.pushed, axes=1)
        return replace(scene, model=replace(model, maps=maps), velocity=velocity)


def map_blocks(maps: Sequence[CoefficientMap], moments: Mapping[str, Array], following: bool) -> tuple[MapBlock, ...]:
    """Return a block for each map that has directions; with ``following`` the drift follows it."""
    blocks = []
    for each in maps:
        if len(each.directions):
            own = moments.get(map_key(each.term)) if following else None
            pushed = None if own is None else np.tensordot(each.directions, own, axes=1)
            # one unit of a direction's scale changes the coefficient by about its own size
            size = np.sqrt(np.sum(each.signal * each.directions**2, axis=1) / each.signal.sum())
            prior = np.full(len(each.directions), PRIOR)
            along = each.directions
            blocks.append(MapBlock(MAP + each.term, 1 / size, (), prior, each.term, along, pushed))
    return tuple(blocks)


def of_maps(values: Values) -> Array:
    """Return the unknowns of all maps, in the order of their blocks."""
    return np.concatenate([np.zeros(0), *(value for name, value in values.items() if name.startswith(MAP))])


def without_maps(unknowns: Unknowns) -> NDArray[np.int64]:
    """Return where a vector holds anything but maps; the law stays first."""
    slices = (part for name, part in unknowns.parts.items() if not name.startswith(MAP))
    return np.concatenate([np.arange(part.start, part.stop) for part in slices])


def moved(name: str, moments: Mapping[str, Array], maps: Sequence[CoefficientMap]) -> Array:
    """Return how a term moves the centroid, (t, 2), its map included."""
    own = moments[name]
    for each in maps:
        if each.term == name and map_key(name) in moments:
            own = own + np.tensordot(each.departures, moments[map_key(name)], axes=1)
    return own
