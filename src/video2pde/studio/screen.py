"""Frames for the page: opened recordings, small stand-ins for quick scrubbing, and a store of finite size."""

from __future__ import annotations

import io
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from video2pde.errors import InputError
from video2pde.recording.base import Header, Picture
from video2pde.recording.seen import Seen
from video2pde.recording.source import open_recording
from video2pde.settings import RecordingSettings
from video2pde.studio.folder import Folder
from video2pde.studio.reader import Reader

OPEN_FILMS = 3
STORE_BYTES = 48_000_000
STAND_INS = 300
STAND_IN_SIDE = 480
STAND_IN_SECONDS = 180.0
THUMBNAIL = 360
QUALITY = 88


class ReplacedError(InputError):
    """The recording is not the one that the page shows."""


@dataclass(frozen=True)
class Shot:
    """A picture for the screen: which frame it is, its time in seconds (NaN: none), and a JPEG."""

    number: int
    time: float
    jpeg: bytes


class Screen:
    """Keep a few recordings open and hand out their frames; the least used ones are let go."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._films: OrderedDict[tuple[str, str], OpenFilm] = OrderedDict()
        self._shots: OrderedDict[tuple[str, str, int, int], Shot] = OrderedDict()
        self._bytes = 0

    def open(self, name: str, version: str | None = None) -> OpenFilm:
        """Open a recording, or return the one that is open; refuse where the page shows an older one."""
        path = self._folder.find(name)
        now = self._folder.version(path)
        if version is not None and version != now:
            raise ReplacedError(f"'{name}' was replaced while it was shown; the page shows the new one")
        with self._lock:
            film = self._films.get((name, now))
            if film is None:
                film = OpenFilm(name, now, path)
                self._films[name, now] = film
            self._films.move_to_end((name, now))
            gone = [self._films.popitem(last=False)[1] for _ in range(len(self._films) - OPEN_FILMS)]
        for old in gone:
            old.close()
        return film

    def shot(self, name: str, version: str | None, number: int, side: int, quick: bool) -> Shot:
        """Return a frame of a recording, reduced to ``side`` pixels on its longer side."""
        film = self.open(name, version)
        key = (film.name, film.version, number, side)
        with self._lock:
            if key in self._shots:
                self._shots.move_to_end(key)
                return self._shots[key]
        if quick:
            near = film.stand_in(number)
            if near is not None:
                return near
        shot = film.shot(number, side)
        self._keep(key, shot)
        return shot

    def thumbnail(self, name: str) -> Shot:
        """Return a small picture from the middle of a recording, without keeping it open."""
        path = self._folder.find(name)
        key = (name, self._folder.version(path), -1, THUMBNAIL)
        with self._lock:
            if key in self._shots:
                return self._shots[key]
        reader = Reader(path, count=False)
        try:
            number = (reader.header.frames or 1) // 2
            at, picture = reader.frame(number)
            shot = Shot(number, at, _jpeg(picture, reader.header, _shown_range(reader), THUMBNAIL))
        finally:
            reader.close()
        self._keep(key, shot)
        return shot

    def _keep(self, key: tuple[str, str, int, int], shot: Shot) -> None:
        with self._lock:
            self._shots[key] = shot
            self._bytes += len(shot.jpeg)
            while self._bytes > STORE_BYTES:
                self._bytes -= len(self._shots.popitem(last=False)[1].jpeg)

    def close(self) -> None:
        """Let all files go."""
        with self._lock:
            films, self._films = list(self._films.values()), OrderedDict()
        for film in films:
            film.close()


class OpenFilm:
    """One recording that a page looks at."""

    def __init__(self, name: str, version: str, path: Path) -> None:
        self.name, self.version, self.path = name, version, path
        self.reader = Reader(path)
        self.header: Header = self.reader.header
        self._range = _shown_range(self.reader)
        self._stand_ins: dict[int, Shot] = {}
        self._stride = 1
        self._seen: tuple[tuple[Any, ...], Seen] | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._make_stand_ins, name="stand-ins", daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """Say what the recording is, for the page."""
        header, times = self.header, self.reader.times
        count = self.reader.count
        return {
            "name": self.name,
            "version": self.version,
            "kind": header.kind,
            "width": header.width,
            "height": header.height,
            "frames": count,
            "timed": header.timed,
            "duration": None if times is None or len(times) < 2 else float(times[-1]),
            "counted": times is not None or not header.timed,
            "notes": list(header.notes),
            "channels": _name_choices(header),
            "bytes": self.path.stat().st_size if self.path.is_file() else None,
        }

    def seen(self, settings: RecordingSettings) -> Seen:
        """Return the recording in the channel and with the response that the settings ask for."""
        key = (settings.channel, settings.response, settings.white)
        if self._seen is None or self._seen[0] != key:
            self._seen = (key, Seen(self.reader.recording, settings))
        return self._seen[1]

    def shot(self, number: int, side: int) -> Shot:
        """Decode a frame and make it a JPEG."""
        at, picture = self.reader.frame(number)
        return Shot(number, at, _jpeg(picture, self.header, self._range, side))

    def stand_in(self, number: int) -> Shot | None:
        """Return the small picture of the nearest frame that there is one of; None where there is none yet."""
        stride = self._stride
        return self._stand_ins.get(round(number / stride) * stride)

    def close(self) -> None:
        self._closed.set()
        self.reader.close()

    def _make_stand_ins(self) -> None:
        """Read the recording once, gently, and keep every n-th frame small."""
        self._stride = stride = max(1, -(-(self.header.frames or STAND_INS) // STAND_INS))
        started = time.monotonic()
        try:
            for number, frame in enumerate(open_recording(self.path).frames()):
                if self._closed.is_set() or time.monotonic() - started > STAND_IN_SECONDS:
                    return
                if number % stride == 0 and len(self._stand_ins) < 2 * STAND_INS:
                    jpeg = _jpeg(frame.picture, self.header, self._range, STAND_IN_SIDE)
                    self._stand_ins[number] = Shot(number, frame.time, jpeg)
                    time.sleep(0.002)  # requests come first
        except (InputError, OSError):
            return  # what is damaged says so where it is shown


def _name_choices(header: Header) -> list[dict[str, str]]:
    """List the channels that may be chosen, as setting and in words; none where the recording is grey."""
    if header.luma is None:
        return [{"value": str(k + 1), "name": name} for k, name in enumerate(header.channels)]
    words = {"luma": "luma (all colours)", "r": "red", "g": "green", "b": "blue"}
    return [{"value": name, "name": words.get(name, name)} for name in ("luma", *header.channels)]


def _shown_range(reader: Reader) -> tuple[float, float]:
    """Return the intensities that are shown black and white: those of the format, or of the first and middle frame."""
    header = reader.header
    if header.white is not None:
        return 0.0, header.white
    ends = []
    for number in (0, (header.frames or 1) // 2):
        values = (np.asarray(reader.frame(number)[1], np.float64) - header.black) * header.gain
        ends.append(np.percentile(values, (0.1, 99.9)))
    low, high = float(min(e[0] for e in ends)), float(max(e[1] for e in ends))
    return low, high if high > low else low + 1.0


def _jpeg(picture: Picture, header: Header, shown: tuple[float, float], side: int) -> bytes:
    """Reduce a picture and pack it for the screen."""
    step = max(1, -(-max(picture.shape) // max(16, side)))
    image = Image.fromarray(_levels(picture, header, shown)) if picture.dtype != np.uint8 or header.black else None
    image = image or Image.fromarray(np.ascontiguousarray(picture))
    if step > 1:
        image = image.reduce(step)
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=QUALITY)
    return packed.getvalue()


def _levels(picture: Picture, header: Header, shown: tuple[float, float]) -> Any:
    low, high = shown
    values = (np.asarray(picture, np.float32) - header.black) * header.gain
    return np.clip((values - low) * (255.0 / (high - low)), 0, 255).astype(np.uint8)
