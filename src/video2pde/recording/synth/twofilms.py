"""Recordings of two fields with a known law: a film in colours (red is u, green is w), or a 16-bit two-channel stack.

A film stores luma and two colour differences. At 4:4:4 each has a value for every pixel, at 4:2:0 (what most cameras
write) colour differences are averages over about 2 × 2 pixels, so that red and green share the luma's detail and differ
at half the resolution only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import av.error
import numpy as np
import tifffile
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from video2pde.errors import InputError, StageError
from video2pde.files import atomic_path, atomic_write
from video2pde.progress import Progress
from video2pde.recording.synth.render import BLACK, BT709, Camera, CHROMA, ENCODERS, halve, LIMITED, LUMA, WHITE
from video2pde.recording.synth.systems import sample_system, System

Array = NDArray[np.float64]
FORMATS = {"4:4:4": "yuv444p", "4:2:0": "yuv420p"}
DEEP = 60000.0
"""Levels of 16 bits at 1."""
BLUE = 0.2
"""The third colour, which shows nothing."""
STACK = "tif"


def write_system(
    system: System,
    out_dir: str | Path,
    camera: Camera,
    form: str = "4:2:0",
    progress: Progress | None = None,
) -> Path:
    """Write a recording of a system with ``truth.json`` beside it; return its path.

    Parameters
    ----------
    system : what it shows.
    camera : size, frames, noise, quality, container and seed; its other faults are not played.
    form : how colours are stored in a film, ``4:4:4`` or ``4:2:0``; ``tif``: a stack of two channels, 16 bits.
    progress : called with the frames written and in all.
    """
    if form not in (*FORMATS, STACK):
        raise InputError(f"colours as {form!r}; give {', '.join(FORMATS)}, or {STACK} for a stack")
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = _film(system, camera, progress)
    if form == STACK:
        target = folder / "stack.tif"
        _write_stack(pictures, target, system, camera)
    else:
        target = folder / f"film.{camera.container}"
        _write_film(pictures, target, system, camera, FORMATS[form])
    reading = "--channels r,g" if form != STACK else "--channels 1,2 --set recording.white=60000"
    truth: dict[str, Any] = {
        "case": system.name,
        **system.truth,
        "file": target.name,
        "frames": camera.frames,
        "noise": camera.noise or 0.0,
        "crf": camera.crf,
        "colours": form,
        "size": list(camera.size),
        "observable": "bright",
        "arguments": f"{reading} --observable bright",
    }
    with atomic_write(folder / "truth.json") as file:
        file.write(json.dumps(truth, indent=2, ensure_ascii=False).encode() + b"\n")
    return target


def _film(system: System, camera: Camera, progress: Progress | None) -> Iterator[Array]:
    """Yield both fields (2, y, x) as the camera sees them, with noise."""
    rng = np.random.default_rng(camera.seed)
    times = np.linspace(0.0, system.duration, camera.frames)
    for index, fields in enumerate(sample_system(system, camera.size, times)):
        yield fields + (camera.noise or 0.0) * rng.standard_normal(fields.shape)
        if progress is not None:
            progress(index + 1, camera.frames)


def _write_stack(pictures: Iterator[Array], path: Path, system: System, camera: Camera) -> None:
    """Write an ImageJ hyperstack (t, c, y, x) of 16 bits with its frame interval."""
    values = np.stack([np.clip(DEEP * picture + 0.5, 0, 65535).astype(np.uint16) for picture in pictures])
    interval = system.duration / (camera.frames - 1)
    with atomic_path(path) as unfinished:
        tifffile.imwrite(
            unfinished, values, imagej=True, metadata={"axes": "TCYX", "finterval": interval, "tunit": "s"}
        )


def _write_film(pictures: Iterator[Array], path: Path, system: System, camera: Camera, pixels: str) -> None:
    encoder = ENCODERS[camera.codec]
    rate = (camera.frames - 1) / Fraction(system.duration).limit_denominator(1000)
    try:
        with (
            atomic_path(path) as unfinished,
            av.open(
                str(unfinished), "w", format={"mkv": "matroska"}.get(camera.container, camera.container)
            ) as container,
        ):
            stream = cast(VideoStream, container.add_stream(encoder.name, rate=rate, options=encoder.options(camera)))
            stream.height, stream.width, stream.pix_fmt = *camera.size, pixels
            context = stream.codec_context
            context.time_base = 1 / rate
            context.color_range, context.color_trc = LIMITED, BT709
            context.color_primaries = context.colorspace = BT709
            for index, picture in enumerate(pictures):
                frame = _wrap(_planes(np.clip(picture, 0.0, 1.0), pixels), pixels)
                frame.pts, frame.time_base = index, 1 / rate
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
    except av.error.FFmpegError as error:
        raise StageError(f"the encoder could not write {path}: {error}") from None


def _planes(picture: Array, pixels: str) -> tuple[NDArray[np.uint8], ...]:
    """Turn red and green into luma and both colour differences, 8 bits of limited range, by the matrix of BT.709."""
    red, green = picture
    luma = LUMA[0] * red + LUMA[1] * green + LUMA[2] * BLUE
    differences = [(BLUE - luma) / (2 - 2 * LUMA[2]), (red - luma) / (2 - 2 * LUMA[0])]
    if pixels == "yuv420p":
        differences = [halve(d) for d in differences]
    return (
        (BLACK + 0.5 + (WHITE - BLACK) * luma).astype(np.uint8),
        *((128.5 + CHROMA * d).astype(np.uint8) for d in differences),
    )


def _wrap(planes: tuple[NDArray[np.uint8], ...], pixels: str) -> VideoFrame:
    height, width = planes[0].shape
    frame = VideoFrame(width, height, pixels)
    for plane, values in zip(frame.planes, planes, strict=True):
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
        rows[:, : plane.width] = values
    frame.color_range, frame.colorspace = LIMITED, BT709
    return frame
