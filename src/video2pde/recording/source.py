"""Open a recording of any kind, and fingerprint it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from video2pde.errors import InputError
from video2pde.recording.arrays import ArrayFile
from video2pde.recording.base import Recording
from video2pde.recording.film import Film
from video2pde.recording.pictures import Gif, PictureFolder
from video2pde.recording.stacks import Stack

FILM_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm")
STACK_SUFFIXES = (".tif", ".tiff")
ARRAY_SUFFIXES = (".npy", ".npz")
HASH_BLOCK = 1 << 20


def open_recording(path: Path) -> Recording:
    """Choose the reader for a file or folder; its frames are read only when asked for."""
    require_readable(path)
    if path.is_dir():
        return PictureFolder(path)
    suffix = path.suffix.lower()
    if suffix in FILM_SUFFIXES:
        return Film(path)
    if suffix == ".gif":
        return Gif(path)
    if suffix in STACK_SUFFIXES:
        return Stack(path)
    if suffix in ARRAY_SUFFIXES:
        return ArrayFile(path)
    known = ", ".join(s[1:] for s in (*FILM_SUFFIXES, ".gif", *STACK_SUFFIXES, *ARRAY_SUFFIXES))
    raise InputError(f"{path}: unknown kind of recording '{suffix}'; known: {known}, or a folder of pictures")


def require_readable(path: Path) -> None:
    """Refuse paths that are missing, empty or closed to the reader."""
    try:
        if path.is_dir():
            next(path.iterdir(), None)
            return
        with path.open("rb") as file:
            if not file.read(1):
                raise InputError(f"{path} is empty (0 bytes)")
    except FileNotFoundError:
        raise InputError(f"no such recording: {path}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def hash_recording(recording: Recording) -> str:
    """Return the SHA-256 of a file, or of a folder's picture names and contents in order."""
    if isinstance(recording, PictureFolder):
        digest = hashlib.sha256()
        for file in recording.files:
            digest.update(f"{file.name}\0{_hash_file(file)}\n".encode())
        return digest.hexdigest()
    return _hash_file(recording.path)


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()
