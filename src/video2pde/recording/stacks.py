"""Multi-page TIFF stacks: 8 and 16 bits, floating point, ImageJ and OME metadata."""

from __future__ import annotations

import logging
import math
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import (
    DamagedError,
    describe_depth,
    Frame,
    Header,
    Picture,
    require_finite,
    require_real,
    to_grey,
)
from video2pde.recording.metadata import pixel_size, plane_times, SECONDS

WHITE_IS_ZERO = 0
OME_SHARE = 64
"""Planes for each page that OME's metadata may declare: the rest would lie in other files."""
READ_ERRORS = (tifffile.TiffFileError, ValueError, TypeError, KeyError, IndexError, OSError, struct.error, RuntimeError)


class Stack:
    """Read the pages of a TIFF file as frames."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def header(self) -> Header:
        with self._open() as tiff:
            try:
                return self._describe(tiff)
            except InputError:
                raise
            except Exception as error:  # metadata are free text: they may raise anything
                raise InputError(
                    f"{self.path}: its metadata cannot be read ({type(error).__name__}: {_one_line(error)}); save the "
                    "stack anew, without metadata, and give the frame rate (--fps)"
                ) from None

    def _describe(self, tiff: Any) -> Header:
        page = tiff.pages[0]
        colour = self._require_pictures(tiff)
        require_real(self.path, page.dtype)
        white, limit = describe_depth(page.dtype)
        if colour and limit is not None:
            white = limit
        interval = _frame_interval(tiff)
        times = plane_times(tiff)
        notes = () if interval is None else (f"frame interval {interval:g} s from the file's metadata",)
        if times is not None:
            notes = ("times of the planes from the file's metadata (OME)",)
        return Header(
            kind=f"TIFF stack ({page.dtype})",
            height=int(page.imagelength),
            width=int(page.imagewidth),
            frames=_declared_frames(tiff, self.path.stat().st_size),
            timed=interval is not None or times is not None,
            white=white,
            limit=limit,
            pixel=pixel_size(tiff),
            notes=notes,
        )

    def frames(self) -> Iterator[Frame]:
        header = self.header
        size = self.path.stat().st_size
        with self._open() as tiff:
            interval = _frame_interval(tiff)
            step = np.nan if interval is None else interval
            times = plane_times(tiff)
            pages = len(tiff.pages)
            contiguous = _imagej_contiguous(tiff, header)
            count = pages if contiguous is None else contiguous
            for index in range(count):
                try:
                    picture = self._page(tiff, index) if contiguous is None else self._slice(tiff, index, header, size)
                except READ_ERRORS as error:
                    raise DamagedError(self.path, index, header.frames, _one_line(error)) from None
                if picture.shape != (header.height, header.width):
                    raise InputError(
                        f"{self.path}: page {index} has {picture.shape[1]}×{picture.shape[0]} pixels, the first one "
                        f"{header.width}×{header.height}; all pages must have one size"
                    )
                require_finite(self.path, index, picture)
                yield Frame(index * step if times is None or index >= len(times) else times[index], picture)
            if contiguous is None and (_chain_broken(tiff, size) or (header.frames or 0) > pages):
                raise DamagedError(self.path, pages, header.frames, "the file ends before its last page")

    def _page(self, tiff: Any, index: int) -> Picture:
        page = tiff.pages[index]
        _require_data(page, self.path.stat().st_size)
        values: NDArray[Any] = page.asarray()
        values = to_grey(np.moveaxis(values, 0, -1) if _planar_colour(page) else values) if _colour(page) else values
        if int(page.photometric) == WHITE_IS_ZERO and values.dtype.kind == "u":
            values = np.iinfo(values.dtype).max - values
        return values

    def _slice(self, tiff: Any, index: int, header: Header, size: int) -> Picture:
        """Read frame ``index`` of an ImageJ stack whose pages beyond the first have no directory."""
        page = tiff.pages[0]
        kind = page.dtype.newbyteorder(tiff.byteorder)
        length = header.height * header.width * kind.itemsize
        offset = page.dataoffsets[0] + index * length
        if offset + length > size:
            raise ValueError("the file ends inside this frame")
        tiff.filehandle.seek(offset)
        data = np.frombuffer(tiff.filehandle.read(length), dtype=kind)
        return data.reshape(header.height, header.width).astype(page.dtype)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # damage is reported by our own errors
        try:
            tiff = tifffile.TiffFile(self.path)
            pages = len(tiff.pages)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise InputError(f"{self.path} cannot be read as TIFF: {_one_line(error)}; 0 frames are readable") from None
        with tiff:
            if not pages:
                raise InputError(f"{self.path} holds no frames")
            yield tiff

    def _require_pictures(self, tiff: Any) -> bool:
        """Refuse channels and volumes in time; tell whether the pages are in colour."""
        page = tiff.pages[0]
        if len(page.shape) != (3 if _colour(page) else 2):
            raise InputError(f"{self.path}: a page has shape {page.shape} ({page.axes}); pages must be pictures")
        planes = _ome_planes(tiff)
        if planes > OME_SHARE * len(tiff.pages):
            raise InputError(f"{self.path} declares {planes} planes and holds {len(tiff.pages)} pages")
        axes = tiff.series[0].axes if tiff.series else "YX"
        long = [axis for axis, n in zip(axes, tiff.series[0].shape, strict=True) if n > 1 and axis not in "YXS"]
        if len(long) > 1:
            raise InputError(
                f"{self.path} has several axes beside the picture ({axes}); save one channel and one plane as a stack"
            )
        return bool(_colour(page))


def _colour(page: Any) -> bool:
    return int(page.samplesperpixel) >= 3


def _planar_colour(page: Any) -> bool:
    return bool(page.axes.startswith("S"))


def _require_data(page: Any, size: int) -> None:
    ends = [offset + count for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)]
    if not ends or max(ends) > size or min(page.databytecounts) == 0:
        raise ValueError("its pixels lie beyond the end of the file")


def _imagej_contiguous(tiff: Any, header: Header) -> int | None:
    """Return the number of frames of an ImageJ stack that has one directory for all of them, else None."""
    declared = header.frames or 1
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


def _one_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
