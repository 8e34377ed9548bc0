"""Pictures of a recording's frames, ready to be sent: in one file of finite size that nobody else sees.

Decoding an arbitrary frame of a film takes long, because it begins at the key frame before it. So the recording is read
once, in the background, and its frames are kept as they are shown: all of them where they fit, else every n-th.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MOST_BYTES = 250_000_000
"""Bytes of one recording's pictures on the disk."""
RESERVE = 1_000_000_000
"""Bytes that stay free on the disk."""
MARGIN = 1.15
"""Later pictures may be larger than the first by this factor."""


@dataclass(frozen=True)
class Shot:
    """A picture for the screen: which frame it is, its time in seconds (NaN: none), and a JPEG."""

    number: int
    time: float
    jpeg: bytes


class Store:
    """Keep shots in a file that vanishes with the program, however that ends."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._file, self._room = _open(folder, most)
        self._places: dict[int, tuple[int, int, float]] = {}
        self._end = 0
        self.stride = 1

    def plan(self, frames: int, first: Shot) -> None:
        """Choose every how many frames one is kept, from the size of the first."""
        wanted = MARGIN * frames * len(first.jpeg)
        self.stride = max(1, -(-int(wanted) // max(self._room, 1)))

    def put(self, shot: Shot) -> bool:
        """Keep a shot; False where there is no room left."""
        with self._lock:
            if self._file is None or self._end + len(shot.jpeg) > self._room:
                return False
            try:
                self._file.seek(self._end)
                self._file.write(shot.jpeg)
            except OSError:
                return False  # the disk is full: what is there stays
            self._places[shot.number] = (self._end, len(shot.jpeg), shot.time)
            self._end += len(shot.jpeg)
            return True

    def get(self, number: int) -> Shot | None:
        """Return a frame; None where it is not kept, or not yet."""
        with self._lock:
            place = self._places.get(number)
            if place is None or self._file is None:
                return None
            start, size, time = place
            self._file.seek(start)
            return Shot(number, time, self._file.read(size))

    def near(self, number: int) -> Shot | None:
        """Return the kept frame nearest to a number; None where it is not there yet."""
        return self.get(round(number / self.stride) * self.stride)

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None


def _open(folder: Path, most: int) -> tuple[IO[bytes] | None, int]:
    """Open a file without a name beside the recordings, or where the system keeps such files; and say how much fits."""
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            room = min(most, shutil.disk_usage(place).free - RESERVE)
            if room > 0:
                return tempfile.TemporaryFile(prefix=".frames-", dir=place), room
        except OSError:
            continue
    return None, 0


def yield_to_others() -> None:
    """Let this thread, and those that it starts, come after others, where the system can be told so."""
    if hasattr(os, "setpriority") and hasattr(threading, "get_native_id"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
        except OSError:
            return
