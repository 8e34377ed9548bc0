"""Make small, really encoded recordings for the tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

FULL, LIMITED = 2, 1


def blot(count: int = 12, height: int = 48, width: int = 64) -> NDArray[np.float64]:
    """Return intensities in [0, 1] of a dark blot that grows and moves, off centre."""
    y, x = np.mgrid[:height, :width] + 0.5
    frames = []
    for k in range(count):
        size = (0.1 + 0.01 * k) * width
        frames.append(0.85 - 0.6 * np.exp(-((x - 0.4 * width - 0.3 * k) ** 2 + (y - 0.55 * height) ** 2) / size**2))
    return np.stack(frames)


def levels(frames: NDArray[np.float64], low: float = 0, high: float = 255) -> NDArray[Any]:
    """Turn intensities in [0, 1] into integer levels."""
    values = np.rint(low + frames * (high - low))
    return values.astype(np.uint8 if high < 256 else np.uint16)


def write_film(
    path: Path,
    luma: NDArray[Any],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    fps: int = 10,
    pts: Sequence[int] | None = None,
    ticks: int | None = None,
    color_range: int | None = None,
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
) -> Path:
    """Encode luma planes (t, y, x) as they are; ``pts`` are in units of 1/``ticks`` seconds."""
    ticks = ticks or fps
    quality = {"crf": "1", "preset": "ultrafast"} if codec == "libx264" else {}
    with av.open(str(path), "w", options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=fps, options=quality if options is None else options)
        stream.height, stream.width = luma.shape[1:]
        stream.pix_fmt = pix_fmt
        stream.codec_context.time_base = Fraction(1, ticks)
        if color_range is not None:
            stream.codec_context.color_range = color_range
        for k, plane in enumerate(luma):
            frame = av.VideoFrame(luma.shape[2], luma.shape[1], pix_fmt)
            _fill(frame, plane)
            frame.pts = pts[k] if pts is not None else k * ticks // fps
            frame.time_base = Fraction(1, ticks)
            if color_range is not None:
                frame.color_range = color_range
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def _fill(frame: av.VideoFrame, plane: NDArray[Any]) -> None:
    kind = plane.dtype
    grey = 128 if kind == np.uint8 else 512
    for number, target in enumerate(frame.planes):
        rows = np.full((target.height, target.line_size // kind.itemsize), grey, dtype=kind)
        if number == 0:
            rows[:, : plane.shape[1]] = plane
        target.update(rows.tobytes())


def turn_film(path: Path, quarters_clockwise: int) -> None:
    """Write a rotation into the track header of an mp4 file, as a telephone does."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 4 + 20 + 16  # version and flags, times and track number, layer and volume
    one = 1 << 16
    a, b = {0: (one, 0), 1: (0, one), 2: (-one, 0), 3: (0, -one)}[quarters_clockwise]
    data[at : at + 36] = struct.pack(">9i", a, b, 0, -b, a, 0, 0, 0, 1 << 30)
    path.write_bytes(bytes(data))


def orient_film(path: Path, a: int, b: int, c: int, d: int) -> None:
    """Write x' = a x + c y, y' = b x + d y into the track header of an mp4 file: where a stored pixel is shown."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 4 + 20 + 16
    one = 1 << 16
    data[at : at + 36] = struct.pack(">9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(bytes(data))


def cut_short(path: Path, share: float) -> Path:
    """Keep the first ``share`` of a file's bytes."""
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    return path
