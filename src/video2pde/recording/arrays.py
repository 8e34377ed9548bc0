"""Arrays (t, y, x) in .npy and .npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.files import require_unpacked
from video2pde.recording.base import (
    describe_depth,
    first_line,
    Frame,
    Header,
    LUMA_WEIGHTS,
    Mix,
    neighbours,
    require_finite,
    require_real,
    to_grey,
)

FRAME_KEYS = ("frames", "values", "u", "data", "arr_0")
TIME_KEYS = ("times", "time", "t")


class ArrayFile:
    """Read frames from a three-dimensional array; .npy files are mapped, not loaded."""

    def __init__(self, path: Path, mix: Mix | None = None) -> None:
        self.path, self.mix = path, mix

    def mixed(self, mix: Mix) -> ArrayFile:
        return ArrayFile(self.path, mix)

    def pairs(self, places: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        values, _ = self._content
        for k in neighbours(len(values), places):
            colours = np.moveaxis(np.asarray(values[k : k + 2, ..., :3]), -1, 1)
            yield colours[0], colours[-1]

    @cached_property
    def _content(self) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        try:
            if self.path.suffix.lower() == ".npy":
                return np.load(self.path, mmap_mode="r", allow_pickle=False), None
            require_unpacked(self.path)
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return self._choose(stored)
        except InputError:
            raise
        except MemoryError:
            raise
        except Exception as error:  # a damaged archive may raise anything that zip, zlib or NumPy know
            raise InputError(f"{self.path} cannot be read as a numpy array: {first_line(error)}") from None

    def _choose(self, stored: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        names = list(stored.files)
        known = [name for name in FRAME_KEYS if name in names]
        name = known[0] if known else names[0] if len(names) == 1 else None
        if name is None:
            raise InputError(
                f"{self.path} holds the arrays {', '.join(names) or '(none)'}; name the one with the frames 'frames'"
            )
        timed = [key for key in TIME_KEYS if key in names]
        times = np.asarray(stored[timed[0]], dtype=np.float64) if timed else None
        return stored[name], times

    @cached_property
    def header(self) -> Header:
        values, times = self._content
        if values.ndim != 3 and not (values.ndim == 4 and values.shape[-1] in (3, 4)):
            raise InputError(f"{self.path} has shape {values.shape}; an array (t, y, x) is needed")
        if 0 in values.shape:
            raise InputError(f"{self.path} holds no frames (shape {values.shape})")
        require_real(self.path, values.dtype)
        if times is not None and times.shape != values.shape[:1]:
            raise InputError(f"{self.path}: times of shape {times.shape} for {len(values)} frames")
        if times is not None and not np.isfinite(times).all():
            raise InputError(f"{self.path}: the times hold NaN or infinity")
        white, limit = describe_depth(values.dtype)
        return Header(
            kind=f"array ({values.dtype})",
            height=values.shape[1],
            width=values.shape[2],
            frames=len(values),
            timed=times is not None,
            white=white,
            limit=limit,
            channels=("r", "g", "b") if values.ndim == 4 else (),
            luma=tuple(float(weight) for weight in LUMA_WEIGHTS) if values.ndim == 4 else None,
        )

    def frames(self) -> Iterator[Frame]:
        values, times = self._content
        for index in range(self.header.frames or 0):
            picture = np.asarray(values[index])
            require_finite(self.path, index, picture)
            time = np.nan if times is None else float(times[index] - times[0])
            yield Frame(time, to_grey(picture, self.mix) if picture.ndim == 3 else picture)


def is_saved_field(path: Path) -> bool:
    """Tell whether an .npz file was written by ``Field.save``."""
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return {"meta.npy", "values.npy", "times.npy"} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False  # the reader says what is wrong with it
