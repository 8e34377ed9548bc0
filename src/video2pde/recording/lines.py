"""Recordings of one dimension: a line over time (a kymograph), and a narrow channel averaged across.

A line becomes a field that is the same in all its rows: the law of a line is the law of a picture in which nothing
depends on y. The rows are as many as a field needs to be worked on, and carry no information of their own; intervals
come from whole frames, so that equal rows do not narrow them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import (
    Colourful,
    describe_depth,
    Frame,
    Header,
    Mix,
    neighbours,
    Picture,
    require_finite,
    require_real,
)
from video2pde.recording.layout import LONGER_SIDE
from video2pde.recording.pictures import read_picture

ROWS = 24
"""Equal rows of the field that a line becomes, at its usual grid."""
LEAST_POINTS = 16
"""Points that a line needs."""
Time = Literal["rows", "columns"]


def _rows_for(points: int) -> int:
    return max(ROWS, round(ROWS * points / min(points, LONGER_SIDE)))


def _as_picture(line: Picture) -> Picture:
    return np.broadcast_to(line, (_rows_for(len(line)), len(line)))


class Kymograph:
    """Read the rows, or the columns, of one picture or two-dimensional array as lines at successive times."""

    def __init__(self, path: Path, time: Time, mix: Mix | None = None) -> None:
        self.path, self._time, self._mix = path, time, mix

    def mixed(self, mix: Mix) -> Kymograph:
        return Kymograph(self.path, self._time, mix)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        """Return lines of the grey picture: no channel is chosen by its contrast."""
        for k in neighbours(len(self._lines), places):
            yield np.asarray(self._lines[k])[None, None], np.asarray(self._lines[k + 1])[None, None]

    @cached_property
    def _lines(self) -> NDArray[np.generic]:
        if self.path.suffix.lower() == ".npy":
            try:
                picture = np.load(self.path, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise InputError(f"{self.path} cannot be read as a numpy array: {error}") from None
            require_real(self.path, picture.dtype)
        else:
            picture = read_picture(self.path, self._mix)
        if picture.ndim != 2:
            raise InputError(
                f"{self.path} has shape {picture.shape}; a kymograph is one picture of times and positions"
            )
        return np.asarray(picture if self._time == "rows" else picture.T)

    @cached_property
    def header(self) -> Header:
        times, points = self._lines.shape
        if points < LEAST_POINTS or times < 2:
            raise InputError(
                f"{self.path} has {times} times and {points} positions; a line needs at least {LEAST_POINTS}. "
                "Are its times the rows or the columns (recording.kymograph)?"
            )
        white, limit = describe_depth(self._lines.dtype)
        kind = f"kymograph of {times} lines ({self._lines.dtype})"
        return Header(kind, _rows_for(points), points, times, timed=False, white=white, limit=limit, line=True)

    def frames(self) -> Iterator[Frame]:
        for index in range(self.header.frames or 0):
            line = np.asarray(self._lines[index])
            require_finite(self.path, index, line)
            yield Frame(np.nan, _as_picture(line))


class Across:
    """Average the frames of a recording across its narrower side."""

    def __init__(self, recording: Colourful) -> None:
        self.averaged = recording
        self.path = recording.path

    def mixed(self, mix: Mix) -> Across:
        return Across(self.averaged.mixed(mix))

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        return self.averaged.pairs(places)

    @cached_property
    def _axis(self) -> int:
        header = self.averaged.header
        return 0 if header.height <= header.width else 1

    @cached_property
    def header(self) -> Header:
        header = self.averaged.header
        points = max(header.height, header.width)
        if points < LEAST_POINTS:
            raise InputError(f"{self.path} is {points} pixels long; a line needs at least {LEAST_POINTS}")
        note = f"averaged across its {min(header.height, header.width)} pixels of width: a line"
        return replace(header, height=_rows_for(points), width=points, line=True, notes=(*header.notes, note))

    def frames(self) -> Iterator[Frame]:
        for frame in self.averaged.frames():
            yield frame._replace(picture=_as_picture(np.asarray(frame.picture, np.float32).mean(axis=self._axis)))
