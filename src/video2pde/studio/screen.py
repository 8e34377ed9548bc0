"""Frames for the page: recordings that are open, pictures that are kept on the disk, and the last few in memory."""

from __future__ import annotations

import io
import tempfile
import threading
import time
from collections import OrderedDict
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
from video2pde.studio.store import Shot, Store, yield_to_others

OPEN_FILMS = 3
STORE_BYTES = 48_000_000
SHOWN_SIDE = 1280
"""Pixels along the longer side of the pictures that are kept: what a page asks for."""
READING_SECONDS = 900.0
"""Seconds after which the reading of a recording in the background ends, done or not."""
THUMBNAIL = 360
QUALITY = 88


class ReplacedError(InputError):
    """The recording is not the one that the page shows."""


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
                film = OpenFilm(name, now, path, Store(self._place()))
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
        kept = film.kept(number, side, quick)
        if kept is not None:
            return kept
        shot = film.shot(number, side)
        self._keep(key, shot)
        return shot

    def _place(self) -> Path:
        """Return the folder for pictures of frames: the studio's own, or where nothing can be written, the system's."""
        try:
            return self._folder.own
        except OSError:
            return Path(tempfile.gettempdir())

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

    def __init__(self, name: str, version: str, path: Path, store: Store) -> None:
        self.name, self.version, self.path, self._store = name, version, path, store
        self.reader = Reader(path)
        self.header: Header = self.reader.header
        self._range = _shown_range(self.reader)
        self._seen: tuple[tuple[Any, ...], Seen] | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._fill_store, name="frames", daemon=True).start()

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

    def kept(self, number: int, side: int, quick: bool) -> Shot | None:
        """Return a frame that is kept as it is asked for; ``quick``: of any size, and one that is near will do."""
        if quick:
            return self._store.near(number)
        size = (self.header.height, self.header.width)
        return self._store.get(number) if _reduction(size, side) == _reduction(size, SHOWN_SIDE) else None

    def close(self) -> None:
        self._closed.set()
        self.reader.close()
        self._store.close()

    def _fill_store(self) -> None:
        """Read the recording once, when nothing else is to be done, and keep its frames."""
        yield_to_others()
        started = time.monotonic()
        try:
            for number, frame in enumerate(open_recording(self.path).frames()):
                if self._closed.is_set() or time.monotonic() - started > READING_SECONDS:
                    return
                if number % self._store.stride == 0:
                    shot = Shot(number, frame.time, _jpeg(frame.picture, self.header, self._range, SHOWN_SIDE))
                    if number == 0:
                        self._store.plan(self.header.frames or 1, shot)
                    if not self._store.put(shot):
                        return
                    time.sleep(0.001)  # requests come first
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
    step = _reduction(picture.shape, side)
    image = Image.fromarray(_levels(picture, header, shown)) if picture.dtype != np.uint8 or header.black else None
    image = image or Image.fromarray(np.ascontiguousarray(picture))
    if step > 1:
        image = image.reduce(step)
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=QUALITY)
    return packed.getvalue()


def _reduction(size: tuple[int, ...], side: int) -> int:
    """Return how many pixels become one so that the longer side has at most ``side``."""
    return max(1, -(-max(size) // max(16, side)))


def _levels(picture: Picture, header: Header, shown: tuple[float, float]) -> Any:
    low, high = shown
    values = (np.asarray(picture, np.float32) - header.black) * header.gain
    return np.clip((values - low) * (255.0 / (high - low)), 0, 255).astype(np.uint8)
