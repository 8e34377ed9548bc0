"""What the readers of microscopes' files know of a series, each in its own way: sizes, planes, times, names, pixels."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.errors import InputError
from video2pde.recording.base import Picture

MICROMETRES = {"m": 1e6, "mm": 1e3, "µm": 1.0, "um": 1.0, "nm": 1e-3}
SECONDS_IN_TICKS = 1e-3


@dataclass(frozen=True, eq=False)
class Series:
    """One recording in a file.

    ``frames``, ``depth``, ``channels``: how many times, planes and channels; ``shape`` (rows, columns) of a plane;
    ``read(t, z, c)`` returns one; ``times`` in s, None where the file has none; ``names`` of the channels; ``name``: of
    the series, where there are several.
    """

    frames: int
    depth: int
    channels: int
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    read: Callable[[int, int, int], Picture]
    times: tuple[float, ...] | None
    pixel: tuple[float, str] | None
    names: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class Vendor:
    """Who makes the microscopes, which package reads their files, and how."""

    maker: str
    package: str
    open: Callable[[Path, int | str | None], AbstractContextManager[Series]]


def choose(path: Path, names: Sequence[str], moving: Sequence[bool], asked: int | str | None) -> int:
    """Choose one of several series: by name or number, or the only one that was taken over time."""
    listed = ", ".join(f"{k + 1}: {name}" for k, name in enumerate(names))
    if asked is not None:
        if str(asked) in names:
            return list(names).index(str(asked))
        if str(asked).isdigit() and 1 <= int(asked) <= len(names):
            return int(asked) - 1
        raise InputError(f"{path} has no series '{asked}'; it holds {listed}")
    taken = [k for k, moves in enumerate(moving) if moves] if len(names) > 1 else [0]
    if len(taken) != 1:
        raise InputError(f"{path} holds several series: choose one with --series ({listed})")
    return taken[0]


def rising(times: Sequence[float]) -> tuple[float, ...] | None:
    """Return times from the first one on, s; None where they do not rise."""
    found = tuple(float(time) - float(times[0]) for time in times)
    good = len(found) > 1 and all(np.isfinite(found)) and all(b > a for a, b in itertools.pairwise(found))
    return found if good else None


def require_axes(path: Path, axes: dict[str, int], known: str) -> None:
    """Refuse what is neither time, depth, channel nor picture."""
    more = [f"{axis} ({size})" for axis, size in axes.items() if axis not in known and size > 1]
    if more:
        raise InputError(f"{path} has axes beside time, depth, channels and the picture: {', '.join(more)}")


@contextmanager
def open_nd2(path: Path, asked: int | str | None) -> Iterator[Series]:
    """Open a file of Nikon; its positions are series."""
    import nd2

    with nd2.ND2File(path) as file:
        sizes = dict(file.sizes)
        require_axes(path, sizes, "TZCPYX")
        loops = {axis: size for axis, size in sizes.items() if axis in "TZP"}
        frames, depth, channels = (sizes.get(axis, 1) for axis in "TZC")
        positions = loops.get("P", 1)
        names = [f"position {k + 1}" for k in range(positions)]
        position = choose(path, names, [True] * positions, asked) if positions > 1 else 0
        shape = (sizes["Y"], sizes["X"])

        def place(t: int, z: int) -> int:
            at = {"T": t, "Z": z, "P": position}
            return int(np.ravel_multi_index([at[axis] for axis in loops], tuple(loops.values()))) if loops else 0

        def read(t: int, z: int, c: int) -> Picture:
            frame = np.asarray(file.read_frame(place(t, z))).reshape(channels, *shape)
            if not frame.any():  # what the reader returns for a frame that it does not find
                raise ValueError("the frame is missing")
            return np.array(frame[c])  # a copy: the file is mapped, and its memory gone once it is closed

        described = list(getattr(file.metadata, "channels", None) or [])
        calibrated = bool(described and described[0].volume.axesCalibrated[0])
        size = float(file.voxel_size().x)
        yield Series(
            frames,
            depth,
            channels,
            shape,
            file.dtype,
            read,
            rising([_nd2_time(file, place(t, 0)) for t in range(frames)]),
            (size, "µm") if calibrated and size > 0 else None,
            tuple(str(one.channel.name) for one in described),
            names[position] if positions > 1 else "",
        )


def _nd2_time(file: Any, index: int) -> float:
    """Return when a frame was taken, s; NaN where the file does not say so."""
    try:
        return float(file.frame_metadata(index).channels[0].time.relativeTimeMs) / 1000
    except (LookupError, AttributeError):
        return float("nan")


@contextmanager
def open_czi(path: Path, asked: int | str | None) -> Iterator[Series]:
    """Open a file of Zeiss; its scenes are series. What is a mosaic of tiles is refused."""
    import czifile

    with czifile.CziFile(str(path)) as file:
        entries = [entry for entry in file.subblock_directory if entry.pyramid_type == 0]
        starts = [dict(zip(entry.axes, entry.start, strict=True)) for entry in entries]
        scenes = sorted({start.get("S", 0) for start in starts})
        names = [f"scene {scene + 1}" for scene in scenes]
        scene = scenes[choose(path, names, [True] * len(scenes), asked)]
        blocks = {}
        for entry, start in zip(entries, starts, strict=True):
            require_axes(path, dict(zip(entry.axes, entry.shape, strict=True)), "YX")
            if start.get("S", 0) == scene:
                key = tuple(start.get(axis, 0) for axis in "TZC")
                if key in blocks:
                    raise InputError(f"{path} is a mosaic of tiles, or has more axes than time, depth and channels")
                blocks[key] = entry
        times, planes, channels = (sorted({key[axis] for key in blocks}) for axis in range(3))
        first = next(iter(blocks.values()))
        shape = tuple(int(n) for axis, n in zip(first.axes, first.shape, strict=True) if axis in "YX")

        def read(t: int, z: int, c: int) -> Picture:
            return np.asarray(blocks[times[t], planes[z], channels[c]].data_segment().data()).reshape(shape)

        described = ElementTree.fromstring(file.metadata() or "<ImageDocument/>")
        yield Series(
            len(times),
            len(planes),
            len(channels),
            (shape[0], shape[1]),
            np.dtype(first.dtype),
            read,
            _czi_times(file, described, len(times)),
            _czi_pixel(described),
            tuple(one.get("Name", "") for one in described.iterfind(".//Image/Dimensions/Channels/Channel")),
            names[scenes.index(scene)] if len(scenes) > 1 else "",
        )


def _czi_times(file: Any, described: ElementTree.Element, frames: int) -> tuple[float, ...] | None:
    """Read the times that the file holds for each frame, or the interval between them."""
    if file.header.attachment_directory_position:
        for attachment in file.attachments():
            if attachment.attachment_entry.name == "TimeStamps":
                stamps = np.asarray(attachment.data(), float)
                return rising(stamps.tolist()) if len(stamps) == frames else None
    step = described.findtext(".//Image/Dimensions/T/Positions/Interval/Increment")
    return None if step is None else rising([float(step) * k for k in range(frames)])


def _czi_pixel(described: ElementTree.Element) -> tuple[float, str] | None:
    for distance in described.iterfind(".//Scaling/Items/Distance"):
        value = distance.findtext("Value")
        if distance.get("Id") == "X" and value is not None and float(value) > 0:
            return float(value) * MICROMETRES["m"], "µm"
    return None


@contextmanager
def open_lif(path: Path, asked: int | str | None) -> Iterator[Series]:
    """Open a file of Leica; its images are series."""
    import liffile

    with liffile.LifFile(path) as file:
        images = list(file.images)
        if not images:
            raise InputError(f"{path} holds no pictures")
        names = [str(image.name) for image in images]
        image = images[choose(path, names, [image.sizes.get("T", 1) > 1 for image in images], asked)]
        sizes = dict(image.sizes)
        require_axes(path, sizes, "TZCYX")

        def read(t: int, z: int, c: int) -> Picture:
            at = {axis: k for axis, k in zip("TZC", (t, z, c), strict=True) if axis in sizes}
            return np.asarray(image.frame(**at))

        yield Series(
            sizes.get("T", 1),
            sizes.get("Z", 1),
            sizes.get("C", 1),
            (sizes["Y"], sizes["X"]),
            image.dtype,
            read,
            _lif_times(image, sizes.get("T", 1)),
            _lif_pixel(image.xml_element),
            tuple(one.get("LUTName", "") for one in image.xml_element.iterfind(".//ChannelDescription")),
            str(image.name) if len(images) > 1 else "",
        )


def _lif_times(image: Any, frames: int) -> tuple[float, ...] | None:
    """Read the time of each frame's first plane, or the duration over which frames were taken evenly."""
    stamps = image.timestamps
    if stamps is not None and frames > 1 and len(stamps) >= frames and len(stamps) % frames == 0:
        found = rising((stamps.astype("int64")[:: len(stamps) // frames] * SECONDS_IN_TICKS).tolist())
        if found is not None:
            return found
    along = image.coords.get("T")
    return None if along is None else rising([float(time) for time in along])


def _lif_pixel(described: Any) -> tuple[float, str] | None:
    """Read the pitch along x: the length of a side lies between the centres of its outer pixels."""
    for side in described.iterfind(".//DimensionDescription"):
        if side.get("DimID") == "1" and side.get("Unit") in MICROMETRES and int(side.get("NumberOfElements", 0)) > 1:
            pitch = abs(float(side.get("Length", 0))) / (int(side.get("NumberOfElements")) - 1)
            return (pitch * MICROMETRES[side.get("Unit")], "µm") if pitch > 0 else None
    return None


VENDORS = {
    ".nd2": Vendor("Nikon's (ND2)", "nd2", open_nd2),
    ".czi": Vendor("Zeiss's (CZI)", "czifile", open_czi),
    ".lif": Vendor("Leica's (LIF)", "liffile", open_lif),
}
"""Readers by the suffix of a file."""
