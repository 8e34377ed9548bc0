"""Films in a container (mp4, mov, avi, mkv, webm), decoded with PyAV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from av.container import InputContainer
from av.error import FFmpegError
from av.video.frame import PictureType, VideoFrame
from av.video.stream import VideoStream

from video2pde.errors import InputError
from video2pde.recording.base import DamagedError, Frame, Header, Mix, neighbours, Picture, to_grey
from video2pde.recording.chroma import spread, stored_as, weigh_differences

HALVED = ("yuv420", "yuvj420", "yuv422", "yuvj422", "yuv411", "nv12", "nv21")
"""How the names of formats begin whose colour differences are stored at half the resolution, or less."""
LOSSLESS = ("ffv1", "huffyuv", "ffvhuff", "utvideo", "rawvideo", "magicyuv")
FULL_RANGE = 2  # AVCOL_RANGE_JPEG
RGB = ("r", "g", "b")
# Weights of red and blue in the luma, by the container's number for the matrix; where it names none, by the height.
LUMA_OF = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 6: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
FEWEST_KEYS = 3  # key frames from which a film is looked at by jumping between them
HIGH_DEFINITION = 720  # rows from which a film without such a number has the weights of BT.709
TRANSFERS = {
    1: "bt709",
    6: "bt709",
    14: "bt709",
    15: "bt709",
    4: "gamma22",
    5: "gamma28",
    8: "linear",
    13: "srgb",
    16: "pq",
    18: "hlg",
    7: "smpte240m",
    9: "log100",
    10: "log316",
    11: "iec61966-2-4",
    12: "bt1361e",
    17: "smpte428",
}
CAMERA_KEYS = (
    "com.apple.quicktime.model",
    "com.android.model",
    "model",
    "com.apple.quicktime.make",
    "com.android.manufacturer",
    "make",
    "com.android.version",
)
# Only containers of moving pictures, only local files: a text file must not make the decoder open others.
OPEN_OPTIONS = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi",
    "protocol_whitelist": "file",
}
ROUNDING = 1e-6
"""Sum of a colour's weights below which it holds no luma."""
# Formats whose first plane is the luma itself, least significant bits first.
LUMA_PLANE = re.compile(r"^(yuv[aj]?4\d\dp(9|1\d)?(le)?|nv\d\d|gray|gray(9|1\d)le)$")


@dataclass(frozen=True)
class PixelFormat:
    """Say how a decoded frame becomes grey values.

    ``convert``: format that the frame is first converted to, or None where its first plane will do.
    """

    convert: str | None
    colour: bool
    bits: int
    limited: bool
    grey: bool
    luma: Mix = (0.2126, 0.7152, 0.0722)

    @classmethod
    def of(cls, frame: VideoFrame) -> PixelFormat:
        name = frame.format.name
        bits = frame.format.components[0].bits
        grey = name.startswith("gray")
        if frame.format.is_rgb or frame.format.has_palette or name.startswith("mono"):
            rgb = "rgb24" if bits <= 8 else "rgb48le"
            return cls(rgb, True, 8 if bits <= 8 else 16, False, name.startswith("mono"), (0.299, 0.587, 0.114))
        unnamed = 1 if frame.height >= HIGH_DEFINITION else 6
        red, blue = LUMA_OF.get(int(frame.colorspace), LUMA_OF[unnamed])
        luma = (red, 1 - red - blue, blue)
        limited = not grey and not name.startswith("yuvj") and int(frame.color_range) != FULL_RANGE
        if LUMA_PLANE.match(name):
            return cls(None, False, bits, limited, grey, luma)
        if grey:
            return cls("gray16le" if bits > 8 else "gray", False, 16 if bits > 8 else 8, False, True)
        # Packed or big-endian: unpack into planes, which leaves the luma values as they are.
        return cls(_planes(bits), False, bits, limited, False, luma)

    @property
    def black(self) -> float:
        return 16.0 * 2 ** (self.bits - 8) if self.limited else 0.0

    @property
    def gain(self) -> float:
        """Full scale over the limited range 16…235 (at 8 bits)."""
        return self.limit / (219.0 * 2 ** (self.bits - 8)) if self.limited else 1.0

    @property
    def limit(self) -> float:
        return float(2**self.bits - 1)

    def grey_values(self, frame: VideoFrame, mix: Mix | None = None) -> Picture:
        """Return the frame's grey values, without a copy where the format allows; ``mix``: weights instead of luma."""
        if self.colour:
            return to_grey(frame.reformat(format=self.convert).to_ndarray(), mix)
        if mix is not None and not self.grey:
            return self._mix(frame, mix)
        if self.convert is not None:
            frame = frame.reformat(format=self.convert)
        return self._plane(frame, 0)

    def _plane(self, frame: VideoFrame, number: int) -> Picture:
        kind = np.dtype(np.uint8 if self.bits <= 8 else "<u2")
        plane = frame.planes[number]
        rows: Picture = np.frombuffer(memoryview(plane), dtype=kind).reshape(-1, plane.line_size // kind.itemsize)
        return rows[: plane.height, : plane.width]

    def _mix(self, frame: VideoFrame, mix: Mix) -> Picture:
        """Add weighted colours, on the scale of the luma; with weights whose sum is 0, its differences alone."""
        stored = stored_as(frame.format.name, self.bits)
        frame = frame if frame.format.name == stored else frame.reformat(format=stored)
        middle, scale = np.float32(2.0 ** (self.bits - 1)), 219 / 224 if self.limited else 1.0
        plane = self._plane(frame, 0)
        picture = np.zeros(plane.shape, np.float32) if abs(sum(mix)) < ROUNDING else plane.astype(np.float32)
        differences = [
            np.float32(scale * weight) * (self._plane(frame, number) - middle)
            for number, weight in enumerate(weigh_differences(mix, self.luma), start=1)
            if weight
        ]
        if differences:
            picture += spread(np.sum(differences, axis=0), picture.shape, stored)
        return picture


class Orientation(NamedTuple):
    """How a frame is to be shown: mirrored left to right, then turned by quarters, counterclockwise."""

    quarters: int
    mirrored: bool

    def __str__(self) -> str:
        turned = f"turned by {90 * self.quarters}° counterclockwise" if self.quarters else ""
        return " and ".join(part for part in ("mirrored" if self.mirrored else "", turned) if part)


UPRIGHT = Orientation(0, False)


class Film:
    """Read a film with its presentation times, its rotation and its luma range."""

    def __init__(self, path: Path, mix: Mix | None = None) -> None:
        self.path, self.mix = path, mix

    def mixed(self, mix: Mix) -> Film:
        return Film(self.path, mix)

    @cached_property
    def header(self) -> Header:
        with self._open() as container:
            stream = self._video_stream(container)
            first = self._first_frame(container, stream)
            pixels = PixelFormat.of(first)
            shown = _orientation(first)
            turned = shown.quarters % 2 == 1
            height, width = (first.width, first.height) if turned else (first.height, first.width)
            aspect = float(stream.sample_aspect_ratio or 1) or 1.0
            notes = []
            if pixels.limited:
                notes.append("limited-range luma (16 to 235) was mapped to the full range")
            if any(shown):
                notes.append(f"frames were {shown}, as the film asks")
            if aspect != 1:
                notes.append(f"camera pixels are {aspect:.4g} times as wide as high in the stored picture")
            return Header(
                kind=f"film ({stream.codec_context.name}, {first.format.name})",
                height=height,
                width=width,
                frames=_declared_frames(stream),
                timed=True,
                black=pixels.black,
                gain=pixels.gain,
                white=None if pixels.grey and pixels.bits > 8 else pixels.limit,
                limit=pixels.limit,
                tick=float(stream.time_base or 0),
                pixel_aspect=1 / aspect if turned else aspect,
                channels=() if pixels.grey else RGB,
                luma=None if pixels.grey else pixels.luma,
                transfer=TRANSFERS.get(int(first.color_trc)),
                halved=first.format.name.startswith(HALVED) and stream.codec_context.name not in LOSSLESS,
                camera=next((container.metadata[key] for key in CAMERA_KEYS if container.metadata.get(key)), ""),
                notes=tuple(notes),
            )

    def frames(self) -> Iterator[Frame]:
        header = self.header
        with self._open() as container:
            stream = self._video_stream(container)
            stream.thread_type = "AUTO"
            pixels: PixelFormat | None = None
            first_pts: int | None = None
            rotation, shown_as = None, UPRIGHT
            tick = float(stream.time_base or 0)
            count, last, shown = 0, math.nan, 0.0
            try:
                for frame in container.decode(stream):
                    if frame.is_corrupt:
                        raise DamagedError(self.path, count, header.frames, f"frame {count} is corrupt")
                    pixels = pixels or PixelFormat.of(frame)
                    if first_pts is None:
                        first_pts = frame.pts
                    if frame.rotation != rotation:
                        rotation, shown_as = frame.rotation, _orientation(frame)
                    picture = _turn(pixels.grey_values(frame, self.mix), shown_as)
                    if picture.shape != (header.height, header.width):
                        raise InputError(
                            f"{self.path}: frame {count} has {picture.shape[1]}×{picture.shape[0]} pixels, "
                            f"the first one {header.width}×{header.height}; cut the film where its size changes"
                        )
                    last = math.nan if frame.pts is None or first_pts is None else (frame.pts - first_pts) * tick
                    shown = (frame.duration or 0) * tick
                    yield Frame(last, picture, frame.pict_type == PictureType.B)
                    count += 1
            except FFmpegError as error:
                raise DamagedError(self.path, count, header.frames, _reason(error)) from None
            self._require_whole(stream, count, last, shown)

    def pairs(self, places: int) -> Iterator[tuple[Picture, Picture]]:
        """Return two neighbouring frames at several places, as red, green and blue (c, y, x).

        Key frames are jumped to where there are enough of them; otherwise the film is decoded once.
        """
        with self._open() as container:
            stream = self._video_stream(container)
            stream.thread_type = "AUTO"
            try:
                packets = [(p.pts, p.is_keyframe) for p in container.demux(stream) if p.pts is not None]
                keys = sorted(pts for pts, key in packets if key)
                if len(keys) >= FEWEST_KEYS:
                    for key in (keys[k] for k in neighbours(len(keys), places)):
                        container.seek(key, stream=stream, backward=True)
                        frames = container.decode(stream)
                        yield self._colours(next(frames)), self._colours(next(frames))
                    return
                container.seek(keys[0] if keys else 0, stream=stream, backward=True)
                wanted, before = set(neighbours(len(packets), places)), None
                for index, frame in enumerate(container.decode(stream)):
                    if index - 1 in wanted and before is not None:
                        yield self._colours(before), self._colours(frame)
                    before = frame if index in wanted else None
            except (FFmpegError, StopIteration):
                return  # what is damaged is told when the frames are read

    def _colours(self, frame: VideoFrame) -> Picture:
        deep = frame.format.components[0].bits > 8
        return np.moveaxis(frame.reformat(format="rgb48le" if deep else "rgb24").to_ndarray(), -1, 0)

    def _require_whole(self, stream: VideoStream, count: int, last: float, shown: float) -> None:
        """Compare what was decoded with what the container declares, in frames and in time.

        An edit list may hide frames of a whole film, so both must fall short; an AVI file has no edit list, and
        its duration is guessed from what is left of it, so there the count alone decides. ``last`` is the last
        frame's time and ``shown`` how long it is shown, s.
        """
        declared = self.header.frames
        duration = _declared_duration(stream)
        interval = last / (count - 1) if count > 1 else 0.0
        early = duration is not None and not math.isnan(last) and last + shown + 2.5 * interval < duration
        if stream.frames and count < stream.frames and (early or stream.container.format.name == "avi"):
            raise DamagedError(self.path, count, declared, "the file ends before the last declared frame")
        if not stream.frames and early:
            raise DamagedError(
                self.path, count, declared, f"the pictures end at {last:.3g} s, the file declares {duration:.3g} s"
            )

    def _open(self) -> InputContainer:
        try:
            return open_container(self.path)
        except FFmpegError as error:
            raise InputError(
                f"{self.path} cannot be read as a film: {_reason(error)}, 0 frames are readable; "
                "it is not a film, or its beginning or index is missing"
            ) from None

    def _video_stream(self, container: InputContainer) -> VideoStream:
        if not container.streams.video:
            kinds = ", ".join(stream.type for stream in container.streams) or "nothing"
            raise InputError(f"{self.path} holds no film stream that can be decoded (found: {kinds})")
        stream = container.streams.video[0]
        if getattr(stream, "codec_context", None) is None:
            raise InputError(f"{self.path}: no decoder for its codec; convert the film to H.264 first")
        return stream

    def _first_frame(self, container: InputContainer, stream: VideoStream) -> VideoFrame:
        try:
            for frame in container.decode(stream):
                return frame
        except FFmpegError as error:
            raise InputError(
                f"{self.path}: the first frame cannot be decoded ({_reason(error)}); 0 frames are readable"
            ) from None
        declared = f" of {stream.frames} declared" if stream.frames else ""
        raise InputError(f"{self.path} holds no frames: 0{declared} are readable")


def open_container(path: Path) -> InputContainer:
    """Open a film; names in it that are no UTF-8 are read with replacement characters."""
    name = str(path.absolute())
    try:
        return av.open(name, options=OPEN_OPTIONS)
    except UnicodeDecodeError:  # PyAV before 19, which escapes them by itself and knows no such option
        return av.open(name, options=OPEN_OPTIONS, metadata_errors="replace")


def _planes(bits: int) -> str:
    """Name the format with whole planes for luma and both colour differences."""
    return "yuv444p" if bits <= 8 else f"yuv444p{bits}le"


def _reason(error: FFmpegError) -> str:
    return (error.strerror or str(error)).lower()


def _orientation(frame: VideoFrame) -> Orientation:
    """Find how the frame is to be shown; a mirrored film's display matrix has a negative determinant.

    Whoever asks a frame for its side data ties it to itself: its pixels stay until the garbage is collected, which for
    a film of 1080p is half a gigabyte later. So the first frame is asked, and others where their rotation changes.
    """
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return Orientation(round(frame.rotation / 90) % 4, False)
    a, b, _, c, d = (int(value) for value in np.frombuffer(memoryview(matrix), "<i4")[:5])
    mirrored = a * d - b * c < 0
    if mirrored:
        a = -a  # what is left of x' = a x + c y once left and right are exchanged
    return Orientation(round(math.degrees(math.atan2(c, a)) / 90) % 4, mirrored)


def _turn(picture: Picture, shown: Orientation) -> Picture:
    if shown.mirrored:
        picture = picture[:, ::-1]
    return np.ascontiguousarray(np.rot90(picture, shown.quarters)) if any(shown) else picture


def _declared_duration(stream: VideoStream) -> float | None:
    """Return how long the pictures are declared to last, s.

    Matroska writes a stream's duration into its tags; the container's own may be that of a longer sound track.
    """
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    match = re.match(r"^(\d+):(\d+):(\d+\.?\d*)$", stream.metadata.get("DURATION", ""))
    if match:
        return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])
    container = stream.container
    if isinstance(container, InputContainer) and len(container.streams) == 1 and container.duration:
        return container.duration / av.time_base
    return None


def _declared_frames(stream: VideoStream) -> int | None:
    """Return the declared number of frames, estimated from the duration where the container has none."""
    if stream.frames:
        return stream.frames
    duration = _declared_duration(stream)
    return round(duration * stream.average_rate) if duration and stream.average_rate else None
