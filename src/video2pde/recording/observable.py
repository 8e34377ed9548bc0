"""From intensity to the observable u: dark, bright or absorbance.

``dark`` and ``bright`` are straight lines in the intensity, so they commute with averaging over pixels and
with interpolation in time, and are applied to the reduced frames. The logarithm of ``absorbance`` does not:
it is taken pixel by pixel before the averaging, and only log10(I0) is added afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Header, Picture
from video2pde.settings import RecordingSettings

REFERENCE_PERCENTILE = 95.0  # brightness in time that counts as the empty, lit picture
FLOOR = 0.5  # levels: the logarithm of a black pixel is taken half a level above black
RUNS = 10  # runs of frames whose mean pictures show the empty scene without noise
EMPTY_PERCENTILE = 95.0  # brightness above which cells show the empty scene
AT_LIMIT = 0.005  # share of pixels at the camera's limit from which the limit itself is white
UNSTEADY = 0.01  # relative change of the empty scene's brightness that makes it doubtful


class LogIntensity:
    """Take log10 of the intensity, by table for integer pixels."""

    def __init__(self, header: Header, dark: Picture | float | None = None) -> None:
        self._black, self._gain = header.black, header.gain
        self._limit = header.limit
        self._dark = dark

    def __call__(self, picture: Picture) -> NDArray[np.float32]:
        if self._dark is not None:
            return self._log(np.asarray(picture, dtype=np.float64) - self._dark)
        if picture.dtype.kind == "u" and picture.dtype.itemsize <= 2:
            levels = np.arange(np.iinfo(picture.dtype).max + 1, dtype=np.float64)
            table = self._log(levels)
            return table[picture]
        return self._log(np.asarray(picture, dtype=np.float64))

    def _log(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        floor = FLOOR if self._limit is not None else np.finfo(np.float32).tiny
        return np.log10(np.maximum((values - self._black) * self._gain, floor)).astype(np.float32)


@dataclass(frozen=True)
class Normalisation:
    """The line u = offset + slope · (pixel value, or log10 I where ``logarithmic``).

    ``by_picture``: slope and offset differ from cell to cell (absorbance, a reference picture); these are their means.
    """

    slope: float
    offset: float
    logarithmic: bool = False
    by_picture: bool = False


def normalise(
    values: NDArray[np.float32], observable: str, header: Header, white: float, dark: float = 0.0
) -> Normalisation:
    """Turn reduced pixel values into u in place: I/I_max for bright, 1 − I/I_max for dark.

    ``dark``: pixel value without light; it is taken off I and I_max.
    """
    black = max(header.black, dark)
    gain = header.gain / (white - (black - header.black) * header.gain)
    line = Normalisation(gain, -black * gain) if observable == "bright" else Normalisation(-gain, 1 + black * gain)
    values *= np.float32(line.slope)
    values += np.float32(line.offset)
    return line


def take_absorbance(values: NDArray[np.float32], log_reference: NDArray[np.float64]) -> Normalisation:
    """Turn reduced log10 I into absorbance log10 I0 − log10 I, in place."""
    np.subtract(log_reference.astype(np.float32), values, out=values)
    return Normalisation(-1.0, float(log_reference.mean()), logarithmic=True, by_picture=True)


def percentile_picture(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Estimate log10 I0 as each cell's bright percentile in time, row by row to spare memory."""
    rows = [np.percentile(values[:, j], REFERENCE_PERCENTILE, axis=0) for j in range(values.shape[1])]
    return np.asarray(rows, dtype=np.float64)


class ReferenceFrames:
    """Average the frames that show the empty, lit scene: I0 at camera resolution."""

    def __init__(self, frames: tuple[int, int] | str | None, shape: tuple[int, int]) -> None:
        first, last = frames if isinstance(frames, tuple) else (0, -1)  # none: no frame is taken
        if isinstance(frames, tuple) and last < first:
            raise InputError(f"the reference frames {first} to {last} are none; give first and last frame in order")
        self.first, self.last = first, last
        self.count = 0
        self._sum = np.zeros(shape, dtype=np.float64)

    def offer(self, index: int, picture: Picture) -> None:
        """Add the picture if its frame index is among those given."""
        if self.first <= index <= self.last:
            self._sum += picture
            self.count += 1

    def mean(self) -> NDArray[np.float64]:
        """Return the mean picture of pixel values."""
        if self.count != self.last - self.first + 1:
            raise InputError(
                f"of the reference frames {self.first} to {self.last} only {self.count} were read; "
                "they must lie within the recording, before its last selected frame"
            )
        return self._sum / self.count


@dataclass(frozen=True)
class White:
    """I_max, with a note on where it comes from and a warning where it is doubtful; both may be empty."""

    value: float
    note: str = ""
    warning: str = ""


def empty_levels(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Follow the brightness of the empty scene: the median of the brightest cells in each run of frames.

    A single bright pixel is noise or a glint, five standard deviations above the scene; where u = 0 must not hang on
    it. Every second frame of a run says which cells are brightest, the frames between say how bright they are, so
    that noise is not picked out. ``values``: shape (t, y, x), any scale. Returns one level for each of up to ``RUNS``
    runs.
    """
    edges = np.linspace(0, len(values), min(RUNS, len(values) // 2) + 1).round().astype(int)
    levels = []
    for a, b in pairwise(edges):
        chooses, tells = (values[a + k : b : 2].mean(axis=0, dtype=np.float64) for k in (0, 1))
        levels.append(np.median(tells[chooses >= np.percentile(chooses, EMPTY_PERCENTILE)]))
    return np.array(levels)


def choose_white(
    settings: RecordingSettings, header: Header, values: NDArray[np.float32], brightest: float, at_limit: float
) -> White:
    """Choose I_max: the one given, the format's own, or what the recording shows.

    For ``dark`` the empty scene is white, and u = 0 hangs on its level; for ``bright`` the brightest pixel only sets
    the scale of u.

    Parameters
    ----------
    values : shape (t, y, x), pixel values of the cells. brightest : largest pixel value.
    at_limit : share of the camera pixels at the upper end of their range.
    """
    if settings.white is not None:
        return White(settings.white)
    if header.white is not None:
        return White(header.white)
    clipped = at_limit > AT_LIMIT
    levels = np.array([brightest]) if settings.observable == "bright" or clipped else empty_levels(values)
    levels = (levels - header.black) * header.gain
    white = float(levels.max())
    if white <= 0:
        raise InputError(f"the brightest value is {white:g}, so I/Imax has no meaning; give recording.white")
    if settings.observable == "bright":
        where = "the brightest value of the selected frames inside the crop"
    elif clipped:
        where = f"the brightest value, at which {at_limit:.1%} of the pixels lie"
    else:
        where = f"the brightest level of the empty scene, from {len(levels)} runs of frames"
    note = f"I_max is {white:.6g}, {where}; recording.white sets it"
    low = float(levels.min())
    if low >= (1 - UNSTEADY) * white:
        return White(white, note)
    return White(
        white,
        note,
        f"the brightest part of the picture changes between {low:.5g} and {white:.5g} in the film, so that it may not "
        "be empty; growth and decay are measured from u = 0, give the empty scene's brightness (recording.white)",
    )


def clip_headroom(values: NDArray[np.float32], header: Header, line: Normalisation) -> str:
    """Clip u where pixels lay below black or above white in limited-range luma; say how much it was."""
    if header.black == 0 or header.limit is None:
        return ""
    ends = np.array([header.black, header.black + header.limit / header.gain], dtype=np.float32)
    low, high = np.sort(ends * np.float32(line.slope) + np.float32(line.offset))
    outside = 0
    for frame in values:  # one by one, so that no second array of the film's size is needed
        if frame.min() < low or frame.max() > high:
            outside += int(np.count_nonzero((frame < low) | (frame > high)))
            np.clip(frame, low, high, out=frame)
    if not outside:
        return ""
    return f"{outside / values.size:.2%} of the cells lay beyond black or white of the limited range and were clipped"


def smooth_frames(values: NDArray[Any], sigma: float) -> None:
    """Apply a Gaussian filter of σ = ``sigma`` cells to each frame, in place."""
    if sigma > 0:
        for frame in values:
            frame[...] = smooth(frame, sigma)


def smooth(frame: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Return one frame filtered with a Gaussian of σ = ``sigma`` cells; edges are continued."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(frame, sigma, mode="nearest")) if sigma > 0 else frame
