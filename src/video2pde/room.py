"""Room for large arrays: in memory up to the share that a run may take, beyond it in temporary files that are mapped.

A mapped array is used like any other, and holds the same numbers; the system keeps as much of it in memory as there is
room for, and the rest on the disk. So a film is limited by the disk, and a run in little memory gives the same result.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from video2pde.errors import InputError
from video2pde.machine import available_memory, LOGGER

SHARE = 0.5
"""Share of the available memory that large arrays take, where nothing is said."""
SMALL = 4 << 20
"""Bytes below which an array always stays in memory."""
BLOCK = 8 << 20
PRIVATE: dict[str, int] = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
LARGEST = 0.9
"""Share of the disk's free space that may be planned for."""


class _Room:
    """What is given out: the bytes of large arrays in memory, their limit, and the folder for what goes beyond."""

    def __init__(self) -> None:
        self.limit: int | None = None
        self.folder: Path | None = None
        self.taken = self.most = 0
        self.lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take room in memory, if there is any left."""
        with self.lock:
            if self.taken + size > memory_limit():
                return False
            self.taken += size
            self.most = max(self.most, self.taken)
            return True

    def give_back(self, size: int) -> None:
        with self.lock:
            self.taken -= size


_ROOM = _Room()


def memory_limit() -> int:
    """Return the bytes that large arrays may take in memory."""
    if _ROOM.limit is None:
        _ROOM.limit = default_limit()
    return _ROOM.limit


def default_limit(available: int | None = None) -> int:
    """Return the bytes that large arrays may take where nothing is said, of those that are available (None: ask)."""
    return round(SHARE * (available_memory() if available is None else available))


@contextmanager
def limited(memory: int | None, folder: Path | None = None) -> Iterator[None]:
    """Let large arrays take so many bytes of memory; ``folder``: for mapped files, None: the system's own."""
    before = _ROOM.limit, _ROOM.folder
    _ROOM.limit, _ROOM.folder = memory, folder
    try:
        yield
    finally:
        _ROOM.limit, _ROOM.folder = before


@contextmanager
def watched() -> Iterator[Callable[[], int]]:
    """Watch the room while a block runs; what it gives back returns the most bytes of memory that were taken."""
    _ROOM.most = before = _ROOM.taken
    yield lambda: _ROOM.most - before


def empty(shape: Sequence[int], kind: DTypeLike) -> NDArray[Any]:
    """Return an array whose values are still to be written: in memory, or in a file where there is no room left."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    if size < SMALL:
        return np.empty(shape, kind)
    if not _ROOM.take(size):
        return _mapped(tuple(shape), np.dtype(kind), size)
    # mapped, not allocated: the system gets the memory back at once when the array is let go
    flat = np.frombuffer(mmap.mmap(-1, size, **PRIVATE), kind)
    weakref.finalize(flat, _ROOM.give_back, size).atexit = False
    return flat.reshape(shape)


def require_space(size: float, what: str, cure: str) -> None:
    """Refuse what fits neither into the memory that is allowed nor onto the disk; ``what`` begins the sentence."""
    free = shutil.disk_usage(_folder()).free
    if size > memory_limit() and size > LARGEST * free:
        raise InputError(
            f"{what} need about {size / 1e9:.1f} GB; large arrays may take {memory_limit() / 1e9:.1f} GB of memory "
            f"(run.memory), and {_folder()} has {free / 1e9:.1f} GB left for what goes beyond; {cure}"
        )
    LOGGER.debug("%s need about %.0f bytes of memory", what, min(size, memory_limit()))


def _folder() -> Path:
    return _ROOM.folder or Path(tempfile.gettempdir())


def _mapped(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> NDArray[Any]:
    """Map a temporary file that has no name and goes with the array."""
    try:
        with tempfile.TemporaryFile(dir=_folder()) as file:
            _reserve(file.fileno(), size)
            return np.asarray(np.memmap(file, kind, "r+", 0, shape))
    except OSError as error:
        raise InputError(
            f"{size / 1e9:.1f} GB of numbers fit neither into the memory that is allowed (run.memory) nor into "
            f"{_folder()} ({error.strerror or error}); use a smaller grid (--grid) or fewer frames (--every, --stop)"
        ) from None


def _reserve(file: int, size: int) -> None:
    """Take the space on the disk now: a mapped file that meets a full disk later would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    nothing = bytes(BLOCK)
    for begin in range(0, size, BLOCK):
        os.write(file, nothing[: size - begin])
