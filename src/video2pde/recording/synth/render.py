"""Films of known truth: the true field as a camera would record it, encoded, with ``truth.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, Literal

import av
import av.error
import numpy as np
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray
from scipy import ndimage

from video2pde.errors import InputError, StageError
from video2pde.field import Grid
from video2pde.files import atomic_path, atomic_write
from video2pde.progress import Progress
from video2pde.recording.synth.laws import Case, make_case
from video2pde.recording.synth.optics import Optics, Shot
from video2pde.recording.synth.solvers import sample_case
from video2pde.recording.synth.volumes import sample_volumes

Picture = NDArray[np.float32]

EXTENT = 200.0  # image units along the crop's longer side
BLACK, WHITE = 16.0, 235.0  # limited range
LIMITED, BT709 = 1, 1  # the codec's numbers for range, primaries, transfer and matrix
TRANSFERS = {2.2: 4, 2.8: 5}  # the codec's numbers for a camera's gamma, where it has one
CONTAINERS = ("mp4", "mkv", "mov")
LUMA = (0.2126, 0.7152, 0.0722)  # weights of red, green and blue, BT.709
CHROMA = 224.0  # levels of a colour difference from −½ to ½
QSCALE, MPEG4_STEP = 2, 118  # the codec's flag for a fixed quantiser, and its unit
LARGEST_SIDE = 16384  # pixels
MOST_FRAMES, SLOWEST, FASTEST = 10_000_000, 1e-3, 1e6  # of a film: its length, its frames per second
Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True)
class Encoder:
    """Name an encoder and the containers that hold its films."""

    name: str
    containers: tuple[str, ...] = CONTAINERS

    def options(self, camera: Camera) -> dict[str, str]:
        """Return the encoder's options for the camera's quality."""
        if self.name == "libvpx-vp9":
            return {"crf": str(camera.crf), "b": "0", "deadline": "realtime", "cpu-used": "6"}
        if self.name == "libx265":
            return {"crf": str(camera.crf), "preset": camera.preset, "x265-params": "log-level=error"}
        return {"crf": str(camera.crf), "preset": camera.preset} if self.name == "libx264" else {}


ENCODERS = {
    "h264": Encoder("libx264"),
    "h265": Encoder("libx265"),
    "vp9": Encoder("libvpx-vp9", ("mkv", "mp4")),
    "mpeg4": Encoder("mpeg4"),
    "ffv1": Encoder("ffv1", ("mkv",)),
}


@dataclass(frozen=True)
class Camera:
    """Describe how a true field is filmed.

    Parameters
    ----------
    size : height, width of the picture, camera pixels, even.
    crop : x0, y0, width, height; inside it, less the border, the pixels cover the field. None: the
        paper's (450, 0, 1080, 1080) for a 1080 × 1920 picture, the whole picture for any other.
    border : pixels on each side of the crop that do not belong to the field. None: 8 where the crop
        is 256 pixels or more, otherwise 0.
    frames : number of frames, the last one at the case's duration.
    fps : frames per second instead of ``frames``.
    noise : standard deviation of white noise, share of full scale, per pixel and frame. None: the case's own.
    flicker : standard deviation of each frame's gain around 1.
    vignetting : loss of light in the picture's corners, share.
    crf : H.264 quality; 0 is lossless, 18 good, 51 worst.
    seed : of noise, flicker and whatever else is random.
    codec : h264, h265, vp9, mpeg4 or ffv1 (lossless).
    optics : what else is wrong with the camera.
    """

    size: tuple[int, int] = (1080, 1920)
    crop: tuple[int, int, int, int] | None = None
    border: int | None = None
    frames: int = 305
    fps: float | None = None
    noise: float | None = None
    flicker: float = 0.0
    vignetting: float = 0.0
    crf: int = 18
    seed: int = 0
    container: str = "mp4"
    preset: str = "veryfast"
    codec: str = "h264"
    optics: Optics = field(default_factory=Optics)

    def __post_init__(self) -> None:
        height, width = self.size
        if min(height, width) < 32 or max(height, width) > LARGEST_SIDE or height % 2 or width % 2:
            raise InputError(
                f"picture size {height} × {width}: H.264 needs even numbers from 32 to {LARGEST_SIDE} pixels"
            )
        x0, y0, w, h = self.window
        if min(x0, y0) < 0 or x0 + w > width or y0 + h > height:
            raise InputError(f"crop {(x0, y0, w, h)} leaves the picture of {width} × {height} pixels")
        if self.margin < 0 or min(w, h) - 2 * self.margin < 16:
            raise InputError(f"border {self.margin} leaves less than 16 pixels of the {w} × {h} crop")
        if not 2 <= self.frames <= MOST_FRAMES:
            raise InputError(f"{self.frames} frames; a film has from 2 to {MOST_FRAMES} of them")
        if self.fps is not None and not SLOWEST <= self.fps <= FASTEST:
            raise InputError(f"{self.fps:g} frames a second; give a rate from {SLOWEST:g} to {FASTEST:g}")
        if self.seed < 0:
            raise InputError(f"seed = {self.seed}; give 0 or a positive number")
        for name, value, most in (
            ("noise", self.noise or 0.0, 1.0),
            ("flicker", self.flicker, 0.5),
            ("vignetting", self.vignetting, 1.0),
            ("crf", self.crf, 51),
        ):
            if not 0 <= value <= most:
                raise InputError(f"{name} = {value:g}; give a value from 0 to {most:g}")
        if self.container not in CONTAINERS:
            raise InputError(f"container {self.container!r}; give one of {', '.join(CONTAINERS)}")
        if self.codec not in ENCODERS:
            raise InputError(f"codec {self.codec!r}; give one of {', '.join(ENCODERS)}")
        if self.container not in (fitting := ENCODERS[self.codec].containers):
            raise InputError(f"{self.container} does not hold {self.codec}; give {' or '.join(fitting)}")

    @property
    def window(self) -> tuple[int, int, int, int]:
        """The crop in effect: x0, y0, width, height."""
        if self.crop is not None:
            return self.crop
        height, width = self.size
        return (450, 0, 1080, 1080) if self.size == (1080, 1920) else (0, 0, width, height)

    @property
    def margin(self) -> int:
        """The border in effect, pixels."""
        if self.border is not None:
            return self.border
        return 8 if min(self.window[2:]) >= 256 else 0

    @property
    def pixel(self) -> float:
        """Size of a camera pixel, image units."""
        return EXTENT / (max(self.window[2:]) - 2 * self.margin)

    def grid(self, rows: int | None = None, columns: int | None = None) -> Grid:
        """Return the grid of cells that cover the film's field; 200 on the longer side by default."""
        w, h = (length - 2 * self.margin for length in self.window[2:])
        longest = min(200, max(w, h))
        ny = rows or round(longest * h / max(w, h))
        nx = columns or round(longest * w / max(w, h))
        return Grid(ny, nx, EXTENT * h / max(w, h), EXTENT * w / max(w, h))

    def count(self, case: Case) -> int:
        """Return the number of frames of a film of ``case``."""
        if self.fps is None:
            return self.frames
        frames = max(2, int(case.duration * self.fps + 1e-9) + 1)
        if frames > MOST_FRAMES:
            raise InputError(
                f"{case.duration:g} s at {self.fps:g} frames a second are {frames} frames; give {MOST_FRAMES} at most"
            )
        return frames

    def rate(self, case: Case) -> Fraction:
        """Return the frame rate, 1/s."""
        if self.fps is not None:
            return Fraction(self.fps).limit_denominator(1001)
        return (self.frames - 1) / Fraction(case.duration).limit_denominator(1000)

    def times(self, case: Case) -> NDArray[np.float64]:
        """Return the frame times, seconds."""
        return np.arange(self.count(case)) / float(self.rate(case))


def render_film(
    case: Case,
    out_dir: str | Path,
    camera: Camera | None = None,
    progress: Progress | None = None,
    *,
    solver: Literal["spectral", "volumes"] = "spectral",
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Film ``case`` into ``out_dir/film.<container>`` with ``truth.json`` beside it; return the film's path.

    The picture is 1 − u, times gain and vignetting, plus noise, rounded to 8 bits of limited-range
    luma. Frames stream: memory holds a few pictures whatever the film's length.

    Parameters
    ----------
    progress : called with (frames written, frames in all).
    solver : where the field comes from; volumes: the finite volumes that check films are made with.
    extra : more entries for ``truth.json``.
    """
    camera = camera or Camera()
    folder = Path(out_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    film = folder / f"film.{camera.container}"
    try:
        with atomic_path(film) as unfinished:
            shot = Shot(camera.optics, camera.size, camera.count(case), camera.seed)
            fields = _see(case, camera, shot, solver)
            _encode(fields, camera, shot, camera.rate(case), _noise(case, camera), unfinished, progress)
    except av.error.FFmpegError as error:
        raise StageError(f"the encoder could not write {film}: {error}") from None
    with atomic_write(folder / "truth.json") as file:
        truth = {**describe_film(case, camera), **describe_shot(shot), "solver": solver, **(extra or {})}
        file.write(json.dumps(truth, indent=2, ensure_ascii=False).encode() + b"\n")
    return film


def render_pictures(
    fields: Iterable[NDArray[np.floating]], out_dir: str | Path, camera: Camera, duration: float
) -> Path:
    """Film given pictures of u, ``camera.frames`` of them over ``duration`` seconds; write no ``truth.json``."""
    film = Path(out_dir) / f"film.{camera.container}"
    shot = Shot(camera.optics, camera.size, camera.frames, camera.seed)
    rate = (camera.frames - 1) / Fraction(duration).limit_denominator(1000)
    with atomic_path(film) as unfinished:
        _encode(fields, camera, shot, rate, camera.noise or 0.0, unfinished, None)
    return film


def describe_film(case: Case, camera: Camera) -> dict[str, Any]:
    """Return the content of ``truth.json``."""
    grid = camera.grid()
    return {
        **case.truth,
        "frames": camera.count(case),
        "frame_rate": float(camera.rate(case)),
        "noise": _noise(case, camera),
        "flicker": camera.flicker,
        "vignetting": camera.vignetting,
        "crf": camera.crf,
        "camera_seed": camera.seed,
        "size": list(camera.size),
        "crop": list(camera.window),
        "border": camera.margin,
        "extent": [grid.height, grid.width],
        "codec": camera.codec,
        "camera": camera.optics.truth,
    }


def describe_shot(shot: Shot) -> dict[str, Any]:
    """Return what the camera did frame by frame: the light's gain, and where it pointed (camera pixels, radians)."""
    told: dict[str, Any] = {}
    if np.ptp(shot.gains) > 0:
        told["gain"] = [round(gain, 6) for gain in shot.gains]
    if shot.optics.shake:
        told["shifts"] = shot.shifts.round(4).tolist()
    if shot.optics.roll or shot.optics.zoom:
        told["angles"], told["scales"] = shot.angles.round(6).tolist(), shot.scales.round(6).tolist()
    return told


def _noise(case: Case, camera: Camera) -> float:
    return case.noise if camera.noise is None else camera.noise


def _encode(
    fields: Iterable[NDArray[np.floating]],
    camera: Camera,
    shot: Shot,
    rate: Fraction,
    noise: float,
    path: Path,
    progress: Progress | None,
) -> None:
    with av.open(str(path), "w", format={"mkv": "matroska"}.get(camera.container, camera.container)) as container:
        encoder = ENCODERS[camera.codec]
        stream = cast(VideoStream, container.add_stream(encoder.name, rate=rate, options=encoder.options(camera)))
        stream.height, stream.width, stream.pix_fmt = *camera.size, "yuv420p"
        context = stream.codec_context
        context.time_base = 1 / rate
        context.color_range = LIMITED
        context.color_primaries = context.colorspace = BT709
        context.color_trc = TRANSFERS.get(camera.optics.gamma, BT709)
        if camera.codec == "mpeg4":
            context.flags |= QSCALE
            context.global_quality = MPEG4_STEP * max(1, camera.crf // 4)
        last: Planes | None = None
        for index, planes in enumerate(_film(fields, camera, shot, noise)):
            last = last if last is not None and shot.repeated[index] else planes
            frame = _wrap(last)
            frame.pts, frame.time_base = index, 1 / rate
            container.mux(stream.encode(frame))
            if progress is not None:
                progress(index + 1, shot.count)
        container.mux(stream.encode())


def _film(fields: Iterable[NDArray[np.floating]], camera: Camera, shot: Shot, noise: float) -> Iterator[Planes]:
    """Yield each frame's limited-range luma and colour differences, uint8, shape ``camera.size`` and half of it."""
    # Noise and flicker have their own streams, so that changing one leaves the other as it was.
    shake, dim = (np.random.default_rng(seed) for seed in np.random.SeedSequence(camera.seed).spawn(2))
    vignette = _vignette(camera)
    for index, u in enumerate(fields):
        gain = 1 + camera.flicker * dim.standard_normal()
        picture = shot.expose(shot.scene(np.asarray(u, dtype=np.float32), index), index, gain, vignette)
        if noise:
            picture = shot.noise(picture, noise, shake)
        yield _to_planes(shot.respond(picture, index))


def _see(case: Case, camera: Camera, shot: Shot, solver: str) -> Iterator[NDArray[np.floating]]:
    """Yield u on the camera's pixels, the camera displaced as it shakes."""
    height, width = camera.size
    x0, y0, w, h = camera.window
    pixel = camera.pixel
    times = camera.times(case)
    if solver == "volumes":
        if camera.window != (0, 0, width, height):
            raise InputError("finite volumes fill the whole picture; give no crop")
        for (dy, dx), u in zip(shot.shifts, sample_volumes(case, camera.size, pixel, times), strict=True):
            yield ndimage.shift(u, (dy, dx), order=3, mode="nearest") if camera.optics.shake else u
        return
    x = pixel * (np.arange(width, dtype=np.float64) + (0.5 - x0 - w / 2))
    y = pixel * (np.arange(height, dtype=np.float64) + (0.5 - y0 - h / 2))
    yield from sample_case(case, y, x, (pixel, pixel), times, single=True, shifts=pixel * shot.shifts)


def _to_planes(picture: Picture) -> Planes:
    """Round to 8 bits of limited range; colour by the matrix of BT.709, its differences halved as H.264 places them."""
    scale = WHITE - BLACK
    if picture.ndim == 2:
        grey = np.full((picture.shape[0] // 2, picture.shape[1] // 2), 128, dtype=np.uint8)
        return (BLACK + 0.5 + scale * picture).astype(np.uint8), grey, grey
    luma = np.tensordot(np.array(LUMA, dtype=np.float32), picture, axes=1)
    differences = ((picture[2] - luma) / (2 - 2 * LUMA[2]), (picture[0] - luma) / (2 - 2 * LUMA[0]))
    blue, red = ((128.5 + CHROMA * halve(d)).astype(np.uint8) for d in differences)
    return (BLACK + 0.5 + scale * luma).astype(np.uint8), blue, red


def halve(difference: NDArray[Any]) -> NDArray[Any]:
    """Halve a colour difference as H.264 places it: on every second column, between every two rows."""
    rows = difference.reshape(difference.shape[0] // 2, 2, -1).mean(axis=1)
    padded = np.pad(rows, ((0, 0), (1, 1)), mode="edge")
    return np.asarray(0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:])[:, ::2]


def _vignette(camera: Camera) -> Picture | None:
    """Return the share of light per pixel, 1 − vignetting·(r/r_corner)²."""
    if not camera.vignetting:
        return None
    height, width = camera.size
    y = (np.arange(height, dtype=np.float32) + 0.5) / height * 2 - 1
    x = (np.arange(width, dtype=np.float32) + 0.5) / width * 2 - 1
    squared = (y[:, None] * height) ** 2 + (x[None, :] * width) ** 2
    return np.asarray(1 - camera.vignetting * squared / (height**2 + width**2), dtype=np.float32)


def _wrap(planes: Planes) -> VideoFrame:
    """Put luma and colour differences into a yuv420p frame."""
    height, width = planes[0].shape
    frame = VideoFrame(width, height, "yuv420p")
    for plane, values in zip(frame.planes, planes, strict=True):
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
        rows[:, : plane.width] = values
    frame.color_range = LIMITED
    frame.colorspace = BT709
    return frame


DEMO_CASE = make_case("C", background=0.1, drift=(0.25, -0.1), seed=7)
DEMO_CAMERA = Camera(size=(480, 640), frames=241, noise=0.005, crf=20, seed=7)


def render_demo(out_dir: str | Path, progress: Progress | None = None) -> Path:
    """Film the recording of ``make demo``: law C, 640 × 480 pixels, 241 frames over 34 s, mild noise."""
    return render_film(DEMO_CASE, out_dir, DEMO_CAMERA, progress)
