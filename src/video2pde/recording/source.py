"""Open a recording of any kind, and fingerprint it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

from video2pde.errors import InputError
from video2pde.files import require_regular
from video2pde.recording.arrays import ArrayFile
from video2pde.recording.base import Colourful, Frame, Header, Mix, Picture, Recording
from video2pde.recording.clock import read_table
from video2pde.recording.falsecolour import FalseColour
from video2pde.recording.film import Film
from video2pde.recording.lines import Across, Kymograph
from video2pde.recording.microscopes import MICROSCOPE_SUFFIXES, MicroscopeFile
from video2pde.recording.pictures import Gif, PictureFolder
from video2pde.recording.stacks import Stack
from video2pde.settings import RecordingSettings

FILM_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm")
STACK_SUFFIXES = (".tif", ".tiff")
ARRAY_SUFFIXES = (".npy", ".npz")
KNOWN_SUFFIXES = (*FILM_SUFFIXES, ".gif", *STACK_SUFFIXES, *MICROSCOPE_SUFFIXES, *ARRAY_SUFFIXES)
HASH_BLOCK = 1 << 20
OUTSIDE, BEFORE = "outside", "before"
"""Words instead of a picture: the dark surroundings of what is seen; the frames before the bleach."""


def open_recording(path: Path, settings: RecordingSettings | None = None) -> Colourful:
    """Choose the reader for a file or folder; its frames are read only when asked for.

    ``settings``: a table of times, and which pictures of a folder are no frames.
    """
    require_readable(path)
    chosen = settings or RecordingSettings()
    table = None if chosen.times is None else Path(chosen.times)
    if path.is_dir():
        light = [file for file in light_pictures(path, chosen) if file.parent == path]
        recording: Colourful = PictureFolder(path, table, light)
    elif chosen.kymograph in ("rows", "columns"):
        recording = Kymograph(path, "rows" if chosen.kymograph == "rows" else "columns")
    else:
        recording = _open_file(path, chosen)
    if table is not None and not path.is_dir():
        recording = Retimed(recording, table)
    if chosen.colours is not None:
        recording = FalseColour(recording, chosen.colours)
    return Across(recording) if chosen.kymograph == "across" else recording


def light_pictures(path: Path, settings: RecordingSettings) -> list[Path]:
    """Find the reference and the dark picture that the settings name: files, or names inside the folder ``path``."""
    return [find_picture(path, str(name)) for name in (settings.reference, settings.dark) if names_picture(name)]


def names_picture(value: object) -> bool:
    """Tell whether a setting names a picture, rather than frames, a level or one of the words."""
    return isinstance(value, str) and value not in (OUTSIDE, BEFORE)


def find_picture(path: Path, name: str) -> Path:
    """Find a picture by its path, or by its name (with or without suffix) in the folder ``path`` or beside the file."""
    folder = path if path.is_dir() else path.parent
    named = [file for file in sorted(folder.iterdir()) if file.stem == name]
    for file in (folder / name, *named, Path(name)):
        if file.is_file():
            return file
    raise InputError(f"no such picture: {name} (neither a path nor a name in {folder})")


class Retimed:
    """A recording whose frames have the times of a table, one line for each frame."""

    def __init__(self, recording: Colourful, table: Path) -> None:
        self._recording, self._table = recording, table
        self.path = recording.path

    def mixed(self, mix: Mix) -> Retimed:
        return Retimed(self._recording.mixed(mix), self._table)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        return self._recording.pairs(places)

    @cached_property
    def _times(self) -> list[float]:
        return [time for _, time in read_table(self._table)]

    @cached_property
    def header(self) -> Header:
        header = self._recording.header
        count = len(self._times)
        if header.frames is not None and header.frames != count:
            raise InputError(f"{self._table} gives {count} times for the {header.frames} frames of {self.path}")
        return replace(header, timed=True, tick=0.0, notes=(*header.notes, f"times from the table {self._table}"))

    def frames(self) -> Iterator[Frame]:
        for index, frame in enumerate(self._recording.frames()):
            if index >= len(self._times):
                raise InputError(f"{self._table} gives {len(self._times)} times; {self.path} has more frames")
            yield frame._replace(time=self._times[index])


def _open_file(path: Path, settings: RecordingSettings) -> Colourful:
    suffix = path.suffix.lower()
    if suffix in FILM_SUFFIXES:
        return Film(path)
    if suffix == ".gif":
        return Gif(path)
    if suffix in STACK_SUFFIXES:
        return Stack(path, settings.z)
    if suffix in MICROSCOPE_SUFFIXES:
        return MicroscopeFile(path, settings.z, settings.series)
    if suffix in ARRAY_SUFFIXES:
        return ArrayFile(path)
    known = ", ".join(s[1:] for s in KNOWN_SUFFIXES)
    raise InputError(f"{path}: unknown kind of recording '{suffix}'; known: {known}, or a folder of pictures")


def require_readable(path: Path) -> None:
    """Refuse paths that are missing, empty or closed to the reader."""
    try:
        require_regular(path)
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


def hash_recording(recording: Recording, settings: RecordingSettings | None = None) -> str:
    """Return the SHA-256 of a file, or of a folder's picture names and contents in order.

    Where the settings name further files (times, reference, dark picture), these count too.
    """
    recording = recording.averaged if isinstance(recording, Across) else recording
    recording = recording.coloured if isinstance(recording, FalseColour) else recording
    files = list(recording.files) if isinstance(recording, PictureFolder) else [recording.path]
    more: list[Path] = []
    if settings is not None:
        more = light_pictures(recording.path, settings) + ([Path(settings.times)] if settings.times else [])
    if len(files) == 1 and not more and not isinstance(recording, PictureFolder):
        return _hash_file(recording.path)
    digest = hashlib.sha256()
    for file in (*files, *more):
        digest.update(f"{file.name}\0{_hash_file(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _hash_file(path: Path) -> str:
    standing = path.stat()
    return _hash_content(path, standing.st_size, standing.st_mtime_ns)


@lru_cache(maxsize=4096)
def _hash_content(path: Path, _size: int, _changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()
