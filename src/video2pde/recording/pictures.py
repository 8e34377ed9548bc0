"""Animated GIFs and folders of pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from video2pde.errors import InputError
from video2pde.recording.base import (
    DamagedError,
    describe_depth,
    Frame,
    Header,
    LUMA_WEIGHTS,
    Mix,
    neighbours,
    Picture,
    require_finite,
    require_real,
    to_grey,
)
from video2pde.recording.clock import (
    camera_name,
    Schedule,
    schedule_by_camera,
    schedule_by_names,
    schedule_by_table,
)

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".webp")
RGB, LUMA = ("r", "g", "b"), tuple(float(weight) for weight in LUMA_WEIGHTS)
GIF_TRAILER = b"\x3b"
GIF_DEFAULT_DELAY = 0.1  # s, what browsers show where a frame has no delay
DECODE_ERRORS = (OSError, EOFError, ValueError, SyntaxError, IndexError, RuntimeError, Image.DecompressionBombError)


class Gif:
    """Read a GIF with the delays of its frames."""

    def __init__(self, path: Path, mix: Mix | None = None) -> None:
        self.path, self.mix = path, mix

    def mixed(self, mix: Mix) -> Gif:
        return Gif(self.path, mix)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        wanted, before = set(neighbours(self.header.frames or 2, places)), None
        with self._open() as picture:
            for index in range(self.header.frames or 0):
                try:
                    picture.seek(index)
                    colours = np.moveaxis(np.asarray(picture.convert("RGB")), -1, 0)
                except DECODE_ERRORS:
                    return  # what is damaged is told when the frames are read
                if before is not None and index - 1 in wanted:
                    yield before, colours
                before = colours

    @cached_property
    def header(self) -> Header:
        with self._open() as picture:
            frames, delay = self._count(picture), picture.info.get("duration", 0)
            note = () if delay else (f"GIF frames without a delay last {GIF_DEFAULT_DELAY:g} s",)
            return Header(
                kind="GIF",
                height=picture.height,
                width=picture.width,
                frames=frames,
                timed=True,
                white=255.0,
                limit=255.0,
                tick=0.01,
                channels=RGB,
                luma=LUMA,
                notes=note,
            )

    def frames(self) -> Iterator[Frame]:
        time, index = 0.0, 0
        declared = self.header.frames
        with self._open() as picture:
            while True:
                try:
                    picture.seek(index)
                    values = (
                        np.asarray(picture.convert("L"))
                        if self.mix is None
                        else to_grey(np.asarray(picture.convert("RGB")), self.mix)
                    )
                except EOFError:
                    break
                except DECODE_ERRORS as error:
                    raise DamagedError(self.path, index, None, str(error)) from None
                yield Frame(time, values)
                time += picture.info.get("duration", 0) / 1000 or GIF_DEFAULT_DELAY
                index += 1
        if index == 0:
            raise InputError(f"{self.path} holds no frames")
        if index < (declared or 0) or not self._ends_properly():
            raise DamagedError(self.path, index, None, "the file ends without the GIF's end mark")

    def _open(self) -> Image.Image:
        try:
            return Image.open(self.path, formats=["GIF"])
        except (UnidentifiedImageError, *DECODE_ERRORS) as error:
            raise InputError(f"{self.path} cannot be read as GIF; 0 frames are readable ({error})") from None

    def _count(self, picture: Image.Image) -> int | None:
        try:
            return int(getattr(picture, "n_frames", 1))
        except DECODE_ERRORS:
            return None

    def _ends_properly(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 64))
            return file.read().rstrip(b"\x00").endswith(GIF_TRAILER)


class PictureFolder:
    """Read the pictures of a folder: in the order of their times, or in the natural order of their names.

    ``table``: a CSV file with the times. ``apart``: pictures that are no frames (a reference, a dark picture).
    """

    def __init__(
        self, path: Path, table: Path | None = None, apart: Sequence[Path] = (), mix: Mix | None = None
    ) -> None:
        self.path, self.table, self.apart, self.mix = path, table, tuple(apart), mix

    def mixed(self, mix: Mix) -> PictureFolder:
        return PictureFolder(self.path, self.table, self.apart, mix)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        for k in neighbours(len(self.files), places):
            try:
                two = [np.moveaxis(read_colours(file)[..., :3], -1, 0) for file in self.files[k : k + 2]]
            except InputError:
                continue  # what is damaged is told when the frames are read
            if two[0].ndim == 3 and two[0].shape == two[-1].shape:
                yield two[0], two[-1]

    @cached_property
    def schedule(self) -> Schedule:
        found = [file for file in self.path.iterdir() if file.suffix.lower() in PICTURE_SUFFIXES and file.is_file()]
        visible = [file for file in found if not file.name.startswith(".") and file not in self.apart]
        if not visible:
            raise InputError(f"the folder {self.path} holds no pictures ({', '.join(PICTURE_SUFFIXES)})")
        files = sorted(visible, key=lambda file: natural_key(file.name))
        if self.table is not None:
            return schedule_by_table(files, self.table)
        return schedule_by_names(files) or schedule_by_camera(files) or Schedule(tuple(files), None)

    @property
    def files(self) -> tuple[Path, ...]:
        """The frames' files in order."""
        return self.schedule.files

    @cached_property
    def header(self) -> Header:
        first = read_picture(self.files[0], self.mix)
        coloured = read_colours(self.files[0]).ndim == 3
        tiff = self.files[0].suffix.lower() in (".tif", ".tiff")
        camera = "" if tiff else camera_name(self.files[0])  # TIFFs are made from light by microscopes
        white, limit = describe_depth(first.dtype)
        if first.dtype == np.float32 and self.files[0].suffix.lower() not in (".tif", ".tiff"):
            white = limit = 255.0  # colour pictures become fractions of 8-bit levels
        return Header(
            kind=f"folder of pictures ({self.files[0].suffix.lower()}, {first.dtype})",
            height=first.shape[0],
            width=first.shape[1],
            frames=len(self.files),
            timed=self.schedule.times is not None,
            counted=self.schedule.counted,
            white=white,
            limit=limit,
            tick=self.schedule.tick,
            channels=RGB if coloured else (),
            luma=LUMA if coloured else None,
            transfer="srgb" if camera else None,
            camera=camera,
            notes=tuple(self._describe_order()),
        )

    def _describe_order(self) -> Iterator[str]:
        """Say in which order the pictures are taken, and which are left out."""
        plan = self.schedule
        if plan.times is not None:
            listed = [f"{file.name} {time:g} s" for file, time in zip(plan.files, plan.times, strict=True)]
            yield f"times from {plan.origin}: {shorten(listed)}"
        else:
            yield f"order of the pictures: {shorten([file.name for file in plan.files])}"
        if plan.left_out:
            named = ", ".join(file.name for file in plan.left_out)
            yield (
                f"left out, because their names give no time: {named}; --reference and --dark say what a picture is, "
                "--times gives the times of all"
            )

    def frames(self) -> Iterator[Frame]:
        kind: np.dtype[np.generic] | None = None
        times = self.schedule.times or (np.nan,) * len(self.files)
        for index, (file, time) in enumerate(zip(self.files, times, strict=True)):
            try:
                picture = read_picture(file, self.mix)
            except InputError as error:
                raise DamagedError(self.path, index, len(self.files), str(error)) from None
            kind = kind or picture.dtype
            if picture.shape != (self.header.height, self.header.width):
                raise InputError(
                    f"{file} has {picture.shape[1]}×{picture.shape[0]} pixels, the first picture "
                    f"{self.header.width}×{self.header.height}; all must have one size"
                )
            if picture.dtype != kind:
                raise InputError(f"{file} has values of type {picture.dtype}, the first picture {kind}; use one type")
            require_finite(file, index, picture)
            yield Frame(time, picture)


def shorten(entries: Sequence[str], most: int = 24) -> str:
    """List entries, the middle of a long list left out."""
    if len(entries) <= most:
        return ", ".join(entries)
    ends = most // 3
    return f"{', '.join(entries[:ends])}, … ({len(entries) - 2 * ends} more) …, {', '.join(entries[-ends:])}"


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort digits by their value, so that img2 comes before img10."""
    parts = re.split(r"(\d+)", name.lower())
    return tuple((0, int(part), part) if part.isdigit() else (1, 0, part) for part in parts if part)


def read_colours(file: Path) -> Picture:
    """Read one picture file as it is: (y, x), or (y, x, c) in colour."""
    try:
        if file.suffix.lower() in (".tif", ".tiff"):
            values: Picture = tifffile.imread(file, key=0)
        else:
            with Image.open(file) as picture:
                picture.load()
                simple = picture.mode in ("L", "I;16", "I;16B", "I", "F", "RGB", "RGBA")
                values = np.asarray(picture if simple else picture.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"no such picture: {file}") from None
    except (UnidentifiedImageError, tifffile.TiffFileError, *DECODE_ERRORS) as error:
        raise InputError(f"{file} cannot be read as a picture ({str(error).splitlines()[0]})") from None
    require_real(file, values.dtype)
    return values


def read_picture(file: Path, mix: Mix | None = None) -> Picture:
    """Read one picture file as grey values, deeper than 8 bits where it is; ``mix``: weights of its colours."""
    values = read_colours(file)
    if values.ndim == 3 and values.shape[-1] in (3, 4):
        flat = (values[..., 0] == values[..., 1]).all() and (values[..., 0] == values[..., 2]).all()
        values = to_grey(values, mix) if not flat else values[..., 0].astype(np.float32)
    if values.dtype.kind == "i":  # Pillow holds 16-bit pictures in 32 bits
        deep = values.min() >= 0 and values.max() <= np.iinfo(np.uint16).max
        values = values.astype(np.uint16 if deep else np.float64)
    if values.ndim != 2:
        raise InputError(f"{file} has shape {values.shape}; a grey or colour picture is needed")
    return values
