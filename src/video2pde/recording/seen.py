"""A recording as it is to be read: in one channel, and as light."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Colourful, Frame, Header, Picture
from video2pde.recording.channel import (
    best_channel,
    Channel,
    COARSE,
    LUMA,
    name_channel,
    PLACES,
    warn_of_losses,
    weigh_losses,
)
from video2pde.recording.falsecolour import FalseColour
from video2pde.recording.response import choose_response, to_light
from video2pde.settings import RecordingSettings


class Seen:
    """Read a recording in the channel and with the response that the settings ask for.

    Where the response is undone, pixel values run from 0 to the limit in proportion to light.
    """

    def __init__(self, recording: Colourful, settings: RecordingSettings) -> None:
        self.path, self._settings = recording.path, settings
        self.channel = choose_channel(recording, settings)
        self._original, self._colourful = recording.header, recording
        self._recording = recording if self.channel.mix is None else recording.mixed(self.channel.mix)
        self.response, self._note = choose_response(settings.response, self._original)
        self._levels: NDArray[np.float32] | None = None
        self._full = self._original.limit or settings.white or 0.0
        if self.response is not None and not self._full:
            raise InputError(
                f"{self.path} holds floating-point values, so that its response needs to know which of them is full "
                "scale; give recording.white"
            )

    @property
    def overlay(self) -> NDArray[np.bool_] | None:
        """What is drawn over the frames that have been read, (y, x); None: nothing that could be told."""
        return self._recording.overlay if isinstance(self._recording, FalseColour) else None

    @property
    def losses(self) -> str:
        """What the chosen channel costs in a compressed film, in words; empty where it is nothing to speak of."""
        return warn_of_losses(self.channel, self._original)

    def differences(self) -> tuple[float, Iterator[Frame]] | None:
        """Return the size of a step of the stored colour differences, in levels of luma, and the frames of these alone.

        None where the channel does not lie mostly in differences that an encoder saves on.
        """
        weight, mix, luma = weigh_losses(self.channel, self._original), self.channel.mix, self._original.luma
        if weight <= COARSE or mix is None or luma is None:
            return None
        alone = tuple(own - grey for own, grey in zip(mix, luma, strict=True))
        return weight, self._colourful.mixed(alone).frames()

    def in_channel(self, name: str) -> Seen:
        """Return the same recording in another channel."""
        return Seen(self._colourful, self._settings.model_copy(update={"channel": name}))

    @cached_property
    def header(self) -> Header:
        notes = tuple(note for note in (self.channel.note, self._note) if note)
        header = replace(self._recording.header, notes=(*self._original.notes, *notes), mix=self.channel.mix)
        return header if self.response is None else replace(header, black=0.0, gain=1.0, response=self.response)

    def frames(self) -> Iterator[Frame]:
        if self.response is None:
            yield from self._recording.frames()
            return
        for frame in self._recording.frames():
            yield frame._replace(picture=self.light(frame.picture))

    def light(self, picture: Picture) -> Picture:
        """Undo the response of a picture; by table where its values are whole numbers."""
        if self.response is None:
            return picture
        if picture.dtype.kind == "u" and picture.dtype.itemsize <= 2:
            return self._table(picture.dtype)[picture]
        return self._undo(picture)

    def _undo(self, picture: Picture) -> NDArray[np.float32]:
        assert self.response is not None
        return to_light(picture, self.response, self._original.black, self._original.gain, self._full)

    def _table(self, kind: np.dtype[Any]) -> NDArray[np.float32]:
        if self._levels is None:
            self._levels = self._undo(np.arange(np.iinfo(kind).max + 1, dtype=np.float64))
        return self._levels


def choose_channel(recording: Colourful, settings: RecordingSettings) -> Channel:
    """Return the channel that is asked for, or the best one."""
    header, setting = recording.header, settings.channel
    if setting != "auto":
        return name_channel(setting, header.channels, header.luma)
    if not header.channels:
        return Channel(LUMA, None)
    pairs = list(recording.pairs(PLACES))
    if not pairs:  # nothing could be decoded: the error comes when the frames are read
        return Channel(LUMA, None) if header.luma is not None else name_channel(1, header.channels, None)
    level = 0.0 if header.limit is None else 1.0
    return best_channel(pairs, header.channels, header.luma, level)


def like_frames(picture: Picture, header: Header) -> Picture:
    """Undo the response of a picture of the same camera as the frames that ``header`` describes."""
    if header.response is None:
        return picture
    limit = float(np.iinfo(picture.dtype).max) if picture.dtype.kind == "u" else 255.0
    return to_light(picture, header.response, 0.0, 1.0, limit)
