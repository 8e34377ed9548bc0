"""False colours turned back into values: by a colour map that is named, or by the legend in the picture.

Every pixel takes the value of the nearest colour of the map. What has no colour of the map (text, axes, a scale bar)
takes the value of the nearest pixel that has one, and is remembered, with the legend, as drawn over the recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.spatial import KDTree

from video2pde.errors import InputError
from video2pde.recording.base import Colourful, Frame, Header, Mix, Picture
from video2pde.recording.layout import cut

Colours = NDArray[np.float64]  # (…, 3): red, green, blue in [0, 1]
LEGEND = re.compile(r"^legend:(\d+),(\d+),(\d+),(\d+)$")
SAMPLES = 256
FOREIGN = 0.12
"""Distance in (red, green, blue) from every colour of the map beyond which a pixel is no value."""
OFTEN = 0.2
"""Share of frames from which a pixel without a colour of the map is drawn over: digits of a clock come and go."""
RGB: tuple[Mix, Mix, Mix] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class FalseColour:
    """Read a recording in false colours as values from 0 to 1."""

    def __init__(self, recording: Colourful, colours: str) -> None:
        self.coloured, self._colours = recording, colours
        self.path = recording.path
        self._read, self._foreign = 0, np.zeros((0, 0), np.int64)

    def mixed(self, mix: Mix) -> FalseColour:
        raise InputError(f"false colours are values, not channels: recording.channel {mix} does not go with them")

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        del places  # there are no channels to choose from
        return iter(())

    @cached_property
    def header(self) -> Header:
        header = self.coloured.header
        if len(header.channels) != len(RGB):
            raise InputError(f"{self.path} is not in colour; recording.colours is for pictures in false colours")
        note = f"false colours turned into values from 0 to 1 by {self._colours}; other colours take the nearest value"
        return replace(
            header,
            kind=f"{header.kind} in false colours",
            black=0.0,
            gain=1.0,
            white=1.0,
            limit=None,
            channels=(),
            luma=None,
            transfer=None,
            notes=(*header.notes, note),
        )

    @cached_property
    def _map(self) -> Colours:
        """The colours of the values from 0 to 1, (n, 3)."""
        legend = LEGEND.match(self._colours)
        if legend is None:
            return _named_map(self._colours)
        x, y, width, height = (int(number) for number in legend.groups())
        _, first = next(self._colour_frames())
        if width < 1 or height < 1 or x + width > first.shape[1] or y + height > first.shape[0]:
            raise InputError(f"the legend {self._colours} does not lie inside {self.path}")
        bar = cut(first, (x, y, width, height))
        # low values are to the left, or below
        return np.asarray(bar.mean(axis=0) if width >= height else bar.mean(axis=1)[::-1])

    @property
    def overlay(self) -> NDArray[np.bool_] | None:
        """What is drawn over the frames that have been read, the legend included, (y, x); None: nothing."""
        drawn = self._foreign > OFTEN * self._read
        legend = LEGEND.match(self._colours)
        if legend is not None and drawn.size:
            x, y, width, height = (int(number) for number in legend.groups())
            drawn[y : y + height, x : x + width] = True
        return drawn if drawn.any() else None

    def _colour_frames(self) -> Iterator[tuple[Frame, Colours]]:
        parts = [self.coloured.mixed(mix) for mix in RGB]
        header = parts[0].header
        white = header.white or header.limit or 1.0
        for frames in zip(*(part.frames() for part in parts), strict=True):
            planes = [(np.asarray(frame.picture, float) - header.black) * header.gain / white for frame in frames]
            yield frames[0], np.stack(planes, axis=-1)

    def frames(self) -> Iterator[Frame]:
        table = self._map
        for frame, colours in self._colour_frames():
            values, foreign = to_values(colours, table)
            self._foreign = foreign + (self._foreign if self._read else 0)
            self._read += 1
            yield frame._replace(picture=values)


def to_values(colours: Colours, table: Colours) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Turn a picture (y, x, 3) into values from 0 to 1, by a map (n, 3) of their colours; tell which are in none."""
    distinct, place = np.unique(np.rint(colours.reshape(-1, 3) * 1023).astype(np.int32), axis=0, return_inverse=True)
    seen = distinct / 1023
    table, at = _distinct(table)
    away, index = KDTree(table).query(seen)
    # between two colours of the map: as far as the pixel lies along the line through the neighbours
    lower, upper = np.maximum(index - 1, 0), np.minimum(index + 1, len(table) - 1)
    along = table[upper] - table[lower]
    length = np.maximum((along**2).sum(axis=1), 1e-12)
    share = np.clip(((seen - table[index]) * along).sum(axis=1) / length, -0.25, 0.25)
    values = (at[index] + share * (at[upper] - at[lower]))[place.ravel()].reshape(colours.shape[:2])
    foreign = (away > FOREIGN)[place.ravel()].reshape(colours.shape[:2])
    if foreign.all():
        raise InputError("no pixel has a colour of the map; is it the right one (recording.colours)?")
    if foreign.any():
        rows, columns = distance_transform_edt(foreign, return_distances=False, return_indices=True)
        values = values[rows, columns]
    return np.asarray(values, np.float32), foreign


def _distinct(table: Colours) -> tuple[Colours, NDArray[np.float64]]:
    """Keep each colour of a map once, at the middle of the values that have it (pure blue in jet); return both."""
    new = np.concatenate([[True], (np.abs(np.diff(table, axis=0)) > 1e-6).any(axis=1)])
    group = np.cumsum(new) - 1
    at = np.bincount(group, np.linspace(0.0, 1.0, len(table))) / np.bincount(group)
    return table[new], at


def _named_map(name: str) -> Colours:
    import matplotlib

    if name not in matplotlib.colormaps:
        raise InputError(
            f"no colour map is called '{name}'; give one of Matplotlib's, such as viridis or jet, or the place of the "
            "legend in the picture: legend:x,y,width,height"
        )
    return np.asarray(matplotlib.colormaps[name](np.linspace(0, 1, SAMPLES)))[:, :3]
