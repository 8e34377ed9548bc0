"""What every kind of recording offers: a header, and frames one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError

if TYPE_CHECKING:
    from video2pde.recording.response import Response

Mix = tuple[float, ...]
"""Weights of a recording's channels that make its grey value; their sum is 1."""
Picture = NDArray[Any]  # (y, x), any real number type
LARGEST = 1e18

# Weights of red, green and blue in the luma of ITU-R BT.601, as in films of standard definition.
LUMA_WEIGHTS = np.array([0.299, 0.587, 0.114], dtype=np.float32)


@dataclass(frozen=True)
class Header:
    """Describe a recording before its frames are read.

    Parameters
    ----------
    kind : what it is, in words.
    height, width : size of a frame as it is to be seen (rotation applied), camera pixels.
    frames : number of frames that the file declares; None: unknown.
    timed : whether frames carry times; if not, a frame rate must be given.
    black, gain : intensity I = (value − black) · gain; they undo the limited range of film luma.
    white : intensity of full white, where the format fixes it; None: the brightest value found counts.
    limit : largest value that a pixel can hold (0 being the smallest), for saturation; None: floating point.
    counted : the times count frames (from names such as t0005), so that a frame rate scales them.
    tick : resolution of the recorded times, s.
    pixel_aspect : width over height of a camera pixel.
    pixel : size of a camera pixel and its unit, where the file says so.
    channels : names of the channels that may be chosen; empty: the recording is grey.
    luma : their weights in the grey value; None: there is none, one of the channels has to be taken.
    transfer : the response that the file names (see ``response``); None: it names none.
    camera : the camera that wrote the file, where it says so.
    halved : colour differences are stored at a lower resolution than luma, and with losses.
    mix : weights of the channels that the frames are read with; None: luma. response : what was undone; None: nothing.
    line : the recording is one line over time; all rows of its frames are the same.
    notes : what the reader did that the user should know.
    """

    kind: str
    height: int
    width: int
    frames: int | None
    timed: bool
    counted: bool = False
    black: float = 0.0
    gain: float = 1.0
    white: float | None = None
    limit: float | None = None
    tick: float = 0.0
    pixel_aspect: float = 1.0
    pixel: tuple[float, str] | None = None
    channels: tuple[str, ...] = ()
    luma: Mix | None = None
    transfer: str | None = None
    camera: str = ""
    halved: bool = False
    mix: Mix | None = None
    response: Response | None = None
    notes: tuple[str, ...] = ()
    line: bool = False


class Frame(NamedTuple):
    """One picture with its time, s; NaN where the recording has none.

    ``b_frame``: an encoder made it from frames before and after it.
    """

    time: float
    picture: Picture
    b_frame: bool = False


class Recording(Protocol):
    """Return the frames of a file or folder in order, one at a time."""

    path: Path

    @property
    def header(self) -> Header: ...

    def frames(self) -> Iterator[Frame]: ...


class Colourful(Recording, Protocol):
    """A recording that may have several channels."""

    def mixed(self, mix: Mix) -> Self:
        """Return the same recording, read with other weights of its channels."""
        ...

    def pairs(self, places: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Return two neighbouring frames, each (c, y, x), at several places of the recording."""
        ...


class DamagedError(InputError):
    """Report a recording that ends before its declared end, or breaks on the way."""

    def __init__(self, path: Path, readable: int, declared: int | None, reason: str) -> None:
        count = f"{readable} of {declared}" if declared else f"{readable}"
        cure = "; set allow_truncated (--allow-truncated) to go on with them" if readable else ""
        super().__init__(f"{path} is cut short or damaged: {count} frames are readable ({reason}){cure}")
        self.readable = readable


def to_grey(colours: NDArray[Any], mix: Mix | None = None) -> NDArray[np.float32]:
    """Add red, green, blue (and ignored alpha) in the last axis; without weights, Y = 0.299 R + 0.587 G + 0.114 B."""
    return colours[..., :3].astype(np.float32) @ (LUMA_WEIGHTS if mix is None else np.array(mix, dtype=np.float32))


def choose_plane(path: Path, depth: int, plane: int | None) -> int:
    """Return which of the planes in depth is read, from 0; ``plane``: as it was asked for, from 1."""
    if depth == 1:
        return 0
    if plane is None or not 1 <= plane <= depth:
        asked = "" if plane is None else f", not {plane}"
        raise InputError(f"{path} has {depth} planes in depth (Z): choose one, --z 1 to {depth}{asked}")
    return plane - 1


def first_line(error: BaseException) -> str:
    """Return what an error says, in one line: its first, or its name where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def mix_channels(read: Callable[[int], Picture], channels: Sequence[int], mix: Mix | None) -> Picture:
    """Add the channels of a frame by their weights; only those that count are read. Without weights, the first one."""
    used = [(channel, weight) for channel, weight in zip(channels, mix or (1.0,), strict=False) if weight]
    if len(used) == 1:
        return read(used[0][0])
    return np.asarray(sum(weight * read(channel) for channel, weight in used))


def neighbours(count: int, places: int) -> list[int]:
    """Return the first frames of up to ``places`` pairs of neighbouring frames, spread over ``count`` frames."""
    return [int(k) for k in np.unique(np.linspace(0, max(count - 2, 0), places).round().astype(int))]


def describe_depth(kind: np.dtype[Any]) -> tuple[float | None, float | None]:
    """Return (white, limit) of a number type: 8 bits fix the white, deeper integers only their limit."""
    if kind == np.uint8:
        return 255.0, 255.0
    if kind.kind == "u":
        return None, float(np.iinfo(kind).max)
    return None, None


def require_real(path: Path, kind: np.dtype[Any]) -> None:
    """Refuse number types that are no intensities."""
    if kind.kind not in "uif":
        raise InputError(f"{path} holds values of type {kind}; integers or floating-point numbers are needed")


def require_finite(path: Path, index: int, picture: Picture) -> None:
    """Refuse NaN, infinity and what single precision cannot hold with room for squares, naming the frame."""
    if picture.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = picture.size - int((np.abs(picture) < LARGEST).sum())
        if bad:
            raise InputError(
                f"{path}: frame {index} holds {bad} values that are NaN, infinite or beyond ±{LARGEST:g}; fill or cut "
                "them out, or divide the values by a constant first"
            )
