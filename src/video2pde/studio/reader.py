"""Single frames of a recording by their number, with memory that does not grow with the film.

A film is decoded from the key frame before the one that is wanted, or onwards from where the last request ended; frames
on the way that no other is predicted from are left out.
Its frame times are read in the background from the packets, which need no decoding; until then the declared frame
rate stands for them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Colourful, Frame, Header, Mix, Picture
from video2pde.recording.film import Film, open_container, PixelFormat
from video2pde.recording.pictures import PictureFolder, read_picture
from video2pde.recording.source import open_recording

ONWARDS = 48
"""Frames that are decoded in passing rather than by a jump to a key frame."""
MOST_TIMES = 2_000_000


class Reader:
    """Read one recording frame by frame; one request at a time."""

    def __init__(self, path: Path, count: bool = True) -> None:
        self.recording: Colourful = open_recording(path)
        self.header: Header = self.recording.header
        self._lock = threading.Lock()
        self._source: _Film | _Folder | _Onwards
        if isinstance(self.recording, Film):
            self._source = _Film(self.recording, count)
        elif isinstance(self.recording, PictureFolder):
            self._source = _Folder(self.recording)
        else:
            self._source = _Onwards(self.recording)

    @property
    def times(self) -> NDArray[np.float64] | None:
        """Times of all frames, seconds; None where they are not known (yet)."""
        return self._source.times

    @property
    def count(self) -> int | None:
        """Number of frames: counted where that is done, else declared."""
        times = self.times
        return self.header.frames if times is None else len(times)

    def frame(self, number: int, mix: Mix | None = None) -> tuple[float, Picture]:
        """Return the time (s; NaN where there is none) and a copy of the picture of a frame.

        ``mix``: weights of the channels; None: luma.
        """
        with self._lock:
            time, picture = self._source.frame(max(0, number), mix)
            return time, np.array(picture)

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._source.close()


class _Folder:
    """Pictures of a folder: each is a file of its own."""

    times = None

    def __init__(self, folder: PictureFolder) -> None:
        self._files = folder.files

    def frame(self, number: int, mix: Mix | None = None) -> tuple[float, Picture]:
        return np.nan, read_picture(self._files[min(number, len(self._files) - 1)], mix)

    def close(self) -> None:
        return


class _Onwards:
    """Recordings that are read from their beginning: go on from the last frame, or start again."""

    times = None

    def __init__(self, recording: Colourful) -> None:
        self._recording = recording
        self._mix: Mix | None = None
        self._frames: Iterator[Frame] | None = None
        self._last: tuple[int, Frame] | None = None

    def frame(self, number: int, mix: Mix | None = None) -> tuple[float, Picture]:
        if self._frames is None or self._last is None or number < self._last[0] or mix != self._mix:
            self.close()
            self._mix = mix
            self._frames = (self._recording if mix is None else self._recording.mixed(mix)).frames()
            self._last = (0, next(self._frames))
        place, found = self._last
        while place < number:
            following = next(self._frames, None)
            if following is None:
                break
            place, found = place + 1, following
        self._last = (place, found)
        return found.time, found.picture

    def close(self) -> None:
        closing: Callable[[], None] | None = getattr(self._frames, "close", None)
        if closing is not None:
            closing()
        self._frames = self._last = None


class _Film:
    """A film in a container, by jumps to key frames."""

    def __init__(self, film: Film, count: bool) -> None:
        self._film = film
        self._container: InputContainer | None = None
        self._packets: Iterator[Packet[VideoStream]] | None = None
        self._decoded: deque[VideoFrame] = deque()
        self._ahead: VideoFrame | None = None
        self._pixels: PixelFormat | None = None
        self._ticks: list[int] | None = None
        self.times: NDArray[np.float64] | None = None
        if count:
            threading.Thread(target=self._count, name="frame times", daemon=True).start()

    def frame(self, number: int, mix: Mix | None = None) -> tuple[float, Picture]:
        for attempt in (1, 2):
            try:
                return self._read(number, mix)
            except FFmpegError as error:
                self.close()
                if attempt == 2:
                    raise InputError(
                        f"frame {number} of {self._film.path.name} cannot be decoded ({error.strerror})"
                    ) from None
        raise AssertionError

    def _read(self, number: int, mix: Mix | None) -> tuple[float, Picture]:
        container = self._opened()
        stream = container.streams.video[0]
        ticks = self._ticks
        first = stream.start_time or 0 if ticks is None else ticks[0]
        interval = float(1 / (stream.average_rate or 25) / stream.time_base) if stream.time_base else 1.0
        if ticks is not None:
            number = min(number, len(ticks) - 1)
        wanted = first + round(number * interval) if ticks is None else ticks[number]
        slack = 0 if ticks is not None else round(0.5 * interval)
        here = None if self._ahead is None else self._ahead.pts
        if here is None or not here - slack <= wanted <= here + ONWARDS * interval:
            container.seek(max(wanted, 0), stream=stream, backward=True)
            self._packets, self._ahead = iter(container.demux(stream)), None
            self._decoded.clear()
        frame = self._advance(wanted - slack)
        tick = float(stream.time_base or 0)
        pixels = self._pixels = self._pixels or PixelFormat.of(frame)
        picture = np.rot90(pixels.grey_values(frame, mix), round(frame.rotation / 90) % 4)
        return ((frame.pts or 0) - first) * tick, picture

    def _advance(self, wanted: int) -> VideoFrame:
        """Decode until the frame that stands at ``wanted``; at the end of the film its last one."""
        found = self._ahead
        assert self._packets is not None
        while found is None or (found.pts or 0) < wanted:
            if self._decoded:
                found = self._decoded.popleft()
                continue
            packet = next(self._packets, None)
            if packet is None:
                break
            early = packet.pts is not None and packet.pts < wanted
            packet.stream.codec_context.skip_frame = "NONREF" if early else "DEFAULT"
            self._decoded.extend(packet.decode())
        if found is None:
            raise InputError(f"{self._film.path.name} has no frame there")
        self._ahead = found
        return found

    def _opened(self) -> InputContainer:
        if self._container is None:
            self._container = open_container(self._film.path)
            self._container.streams.video[0].thread_type = "SLICE"
            self._packets = self._ahead = None
            self._decoded.clear()
        return self._container

    def _count(self) -> None:
        """List the times of all packets, in order; a film that cannot be listed keeps its declared rate."""
        found: list[int] = []
        try:
            with open_container(self._film.path) as container:
                stream = container.streams.video[0]
                for packet in container.demux(stream):
                    if packet.pts is not None and not packet.is_corrupt:
                        found.append(packet.pts)
                    if len(found) > MOST_TIMES:
                        return
                tick = float(stream.time_base or 0)
        except (FFmpegError, OSError):
            return
        found.sort()
        if found:
            self._ticks = found
            self.times = (np.array(found, dtype=np.float64) - found[0]) * tick

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
        self._container = self._packets = self._ahead = None
        self._decoded.clear()
