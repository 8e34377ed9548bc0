"""Multi-page TIFF stacks: 8 and 16 bits, floating point, ImageJ and OME metadata."""

from __future__ import annotations

import logging
import math
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import (
    choose_plane,
    DamagedError,
    describe_depth,
    first_line,
    Frame,
    Header,
    LUMA_WEIGHTS,
    Mix,
    mix_channels,
    neighbours,
    Picture,
    require_finite,
    require_real,
    to_grey,
)
from video2pde.recording.metadata import channel_names, pixel_size, plane_times, SECONDS

WHITE_IS_ZERO = 0
OME_SHARE = 64
"""Planes for each page that OME's metadata may declare: the rest would lie in other files."""
READ_ERRORS = (
    tifffile.TiffFileError,
    struct.error,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    ArithmeticError,
    AttributeError,
    AssertionError,
)
"""What decoding a page with damaged tags may raise."""


@dataclass(frozen=True)
class Planes:
    """Where the channels of a frame lie among the pages: page = first + frame · by_frame + channel · by_channel.

    ``depth``: how many planes (Z) each frame has, of which one is read.
    """

    channels: int = 1
    by_frame: int = 1
    by_channel: int = 1
    depth: int = 1
    first: int = 0

    @property
    def each(self) -> int:
        """How many pages belong to a frame."""
        return self.channels * self.depth

    def pages(self, frame: int) -> range:
        first = self.first + frame * self.by_frame
        return range(first, first + self.channels * self.by_channel, self.by_channel)


class Stack:
    """Read the pages of a TIFF file as frames; several pages make one where there are channels.

    ``plane``: which one is read of a stack in depth (Z) that was taken again and again, from 1.
    """

    def __init__(self, path: Path, plane: int | None = None, mix: Mix | None = None) -> None:
        self.path, self.plane, self.mix = path, plane, mix

    def mixed(self, mix: Mix) -> Stack:
        return Stack(self.path, self.plane, mix)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        header = self.header
        with self._open() as tiff:
            planes = self._planes
            for k in neighbours(header.frames or 2, places):
                try:
                    yield self._channels(tiff, planes.pages(k)), self._channels(tiff, planes.pages(k + 1))
                except READ_ERRORS:
                    continue  # what is damaged is told when the frames are read

    def _channels(self, tiff: Any, pages: range) -> Picture:
        """Read the channels of one frame, (c, y, x)."""
        if len(pages) > 1:
            return np.stack([self._plane(tiff, page) for page in pages])
        page = tiff.pages[pages[0]]
        values = page.asarray()
        return values if _planar_colour(page) else np.moveaxis(values[..., :3], -1, 0)

    @cached_property
    def _planes(self) -> Planes:
        with self._open() as tiff:  # apart: tifffile reads less of each page once it has looked for series
            return self._place_planes(tiff)

    @cached_property
    def header(self) -> Header:
        with self._open() as tiff:
            try:
                return self._describe(tiff)
            except InputError:
                raise
            except Exception as error:  # metadata are free text: they may raise anything
                raise InputError(
                    f"{self.path}: its metadata cannot be read ({type(error).__name__}: {first_line(error)}); save the "
                    "stack anew, without metadata, and give the frame rate (--fps)"
                ) from None

    def _describe(self, tiff: Any) -> Header:
        page = tiff.pages[0]
        colour, planes = self._require_pictures(tiff), self._place_planes(tiff)
        require_real(self.path, page.dtype)
        white, limit = describe_depth(page.dtype)
        if colour and limit is not None:
            white = limit
        interval = _frame_interval(tiff)
        times = plane_times(tiff)
        notes = () if interval is None else (f"frame interval {interval:g} s from the file's metadata",)
        if times is not None:
            notes = ("times of the planes from the file's metadata (OME)",)
        if planes.depth > 1:
            notes = (*notes, f"plane {self.plane} of {planes.depth} in depth (Z)")
        return Header(
            kind=f"TIFF stack ({page.dtype})",
            height=int(page.imagelength),
            width=int(page.imagewidth),
            frames=_declared_frames(tiff, self.path.stat().st_size) // planes.each,
            timed=interval is not None or times is not None,
            white=white,
            limit=limit,
            pixel=pixel_size(tiff),
            channels=("r", "g", "b") if colour else channel_names(tiff, planes.channels),
            luma=tuple(float(weight) for weight in LUMA_WEIGHTS) if colour else None,
            notes=notes,
        )

    def frames(self) -> Iterator[Frame]:
        header = self.header
        stored = self.path.stat().st_size
        with self._open() as tiff:
            interval = _frame_interval(tiff)
            step = np.nan if interval is None else interval
            times = plane_times(tiff)
            planes = self._planes
            pages = len(tiff.pages)
            contiguous = _imagej_contiguous(tiff)
            for index in range((pages if contiguous is None else contiguous) // planes.each):
                try:
                    picture = self._frame(tiff, planes.pages(index))
                except READ_ERRORS as error:
                    raise DamagedError(self.path, index, header.frames, first_line(error)) from None
                if picture.shape != (header.height, header.width):
                    size = "×".join(str(side) for side in reversed(picture.shape))  # one row or column has one number
                    raise InputError(
                        f"{self.path}: page {index} has {size} pixels, the first one "
                        f"{header.width}×{header.height}; all pages must have one size"
                    )
                require_finite(self.path, index, picture)
                yield Frame(index * step if times is None or index >= len(times) else times[index], picture)
            if contiguous is None and (_chain_broken(tiff, stored) or (header.frames or 0) * planes.each > pages):
                raise DamagedError(self.path, pages // planes.each, header.frames, "the file ends before its last page")

    def _frame(self, tiff: Any, pages: range) -> Picture:
        # weights of a colour picture are for its samples, not for pages
        return mix_channels(partial(self._plane, tiff), pages, None if len(pages) == 1 else self.mix)

    def _plane(self, tiff: Any, index: int) -> Picture:
        return self._page(tiff, index) if _imagej_contiguous(tiff) is None else self._slice(tiff, index)

    def _page(self, tiff: Any, index: int) -> Picture:
        page = tiff.pages[index]
        _require_data(page, self.path.stat().st_size)
        values: NDArray[Any] = page.asarray()
        if _colour(page):
            values = to_grey(np.moveaxis(values, 0, -1) if _planar_colour(page) else values, self.mix)
        if int(page.photometric) == WHITE_IS_ZERO and values.dtype.kind == "u":
            values = np.iinfo(values.dtype).max - values
        return values

    def _slice(self, tiff: Any, index: int) -> Picture:
        """Read plane ``index`` of an ImageJ stack whose pages beyond the first have no directory."""
        page = tiff.pages[0]
        kind = page.dtype.newbyteorder(tiff.byteorder)
        rows, columns = int(page.imagelength), int(page.imagewidth)
        length = rows * columns * kind.itemsize
        offset = page.dataoffsets[0] + index * length
        if offset + length > self.path.stat().st_size:
            raise ValueError("the file ends inside this frame")
        tiff.filehandle.seek(offset)
        data = np.frombuffer(tiff.filehandle.read(length), dtype=kind)
        return data.reshape(rows, columns).astype(page.dtype)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # damage is reported by our own errors
        try:
            tiff = tifffile.TiffFile(self.path)
            pages = len(tiff.pages)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise InputError(
                f"{self.path} cannot be read as TIFF: {first_line(error)}; 0 frames are readable"
            ) from None
        with tiff:
            if not pages:
                raise InputError(f"{self.path} holds no frames")
            yield tiff

    def _require_pictures(self, tiff: Any) -> bool:
        """Refuse volumes in time; tell whether the pages are in colour."""
        page = tiff.pages[0]
        if len(page.shape) != (3 if _colour(page) else 2):
            raise InputError(f"{self.path}: a page has shape {page.shape} ({page.axes}); pages must be pictures")
        planes = _ome_planes(tiff)
        if planes > OME_SHARE * len(tiff.pages):
            raise InputError(f"{self.path} declares {planes} planes and holds {len(tiff.pages)} pages")
        return bool(_colour(page))

    def _place_planes(self, tiff: Any) -> Planes:
        """Find where the channels and the chosen plane of a frame lie; the axis beside them is time."""
        axes, shape = (tiff.series[0].axes, tiff.series[0].shape) if tiff.series else ("YX", (1, 1))
        sizes = {axis: int(n) for axis, n in zip(axes, shape, strict=True) if n > 1 and axis not in "YXS"}
        steps = dict(zip(sizes, _strides(list(sizes.values())), strict=True))
        along = [axis for axis in sizes if axis not in "CZ"]
        if not along and len(sizes) > 0:  # a stack without time: its planes are the frames
            along = ["Z"] if "Z" in sizes else ["C"]
        depth = 1 if "Z" in along else sizes.get("Z", 1)
        channels = 1 if "C" in along else sizes.get("C", 1)
        if len(along) > 1 or (channels > 1 and _colour(tiff.pages[0])):
            raise InputError(f"{self.path} has several axes beside the picture ({axes}); save one of them as a stack")
        first = choose_plane(self.path, depth, self.plane) * steps.get("Z", 1)
        return Planes(channels, steps[along[0]] if along else 1, steps.get("C", 1), depth, first)


def _strides(sizes: list[int]) -> list[int]:
    """Return how many pages lie between neighbours along each axis, the last one running fastest."""
    return [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]


def _colour(page: Any) -> bool:
    return int(page.samplesperpixel) >= 3


def _planar_colour(page: Any) -> bool:
    return bool(page.axes.startswith("S"))


def _require_data(page: Any, size: int) -> None:
    ends = [offset + count for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)]
    if not ends or max(ends) > size or min(page.databytecounts) == 0:
        raise ValueError("its pixels lie beyond the end of the file")


def _imagej_contiguous(tiff: Any) -> int | None:
    """Return the number of planes of an ImageJ stack that has one directory for all of them, else None."""
    declared = _declared_frames(tiff, tiff.filehandle.size)
    page = tiff.pages[0]
    alone = tiff.is_imagej and len(tiff.pages) == 1 and declared > 1
    return declared if alone and not _colour(page) and page.compression == 1 else None


def _declared_frames(tiff: Any, size: int) -> int:
    """Count the frames that the file declares; of a number beyond what its bytes can hold, one more than that."""
    images = (tiff.imagej_metadata or {}).get("images", 0) if tiff.is_imagej else 0
    page = tiff.pages[0]
    held: int = max(len(tiff.pages), size // max(1, page.imagelength * page.imagewidth * page.dtype.itemsize))
    return max(len(tiff.pages), min(int(images), held + 1))


def _ome_planes(tiff: Any) -> int:
    """Count the planes that OME's metadata declare, before anything is made for each of them."""
    if not tiff.is_ome:
        return 0
    planes = [
        math.prod(int(element.get(f"Size{axis}", "1")) for axis in "TZC")
        for element in ElementTree.fromstring(tiff.ome_metadata).iter()
        if element.tag.endswith("}Pixels")
    ]
    return max(planes, default=0)


def _chain_broken(tiff: Any, size: int) -> bool:
    """Tell whether the last readable directory points to another one that is not there."""
    position = tiff.pages.next_page_offset
    width = tiff.tiff.offsetsize
    if position is None or position + width > size:
        return True
    tiff.filehandle.seek(position)
    return bool(struct.unpack(tiff.tiff.offsetformat, tiff.filehandle.read(width))[0] != 0)


def _frame_interval(tiff: Any) -> float | None:
    """Find the time between frames in ImageJ's or OME's metadata, s."""
    if tiff.is_imagej:
        meta = tiff.imagej_metadata or {}
        interval = float(meta.get("finterval", 0) or 0)
        if interval > 0:
            return interval * SECONDS.get(str(meta.get("tunit", "s")), 1.0)
        rate = float(meta.get("fps", 0) or 0)
        return 1 / rate if rate > 0 else None
    if tiff.is_ome:
        for element in ElementTree.fromstring(tiff.ome_metadata).iter():
            if element.tag.endswith("}Pixels") and element.get("TimeIncrement"):
                unit = SECONDS.get(element.get("TimeIncrementUnit", "s"), 1.0)
                increment = float(element.get("TimeIncrement", "0")) * unit
                return increment if increment > 0 else None
    return None
