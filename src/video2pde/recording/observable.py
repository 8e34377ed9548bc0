"""From intensity to the observable u: dark, bright or absorbance.

``dark`` and ``bright`` are straight lines in the intensity, so they commute with averaging over pixels and
with interpolation in time, and are applied to the reduced frames. The logarithm of ``absorbance`` does not:
it is taken pixel by pixel before the averaging, and only log10(I0) is added afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Header, Picture
from video2pde.settings import RecordingSettings

REFERENCE_PERCENTILE = 95.0  # brightness in time that counts as the empty, lit picture
FLOOR = 0.5  # levels: the logarithm of a black pixel is taken half a level above black


class LogIntensity:
    """Take log10 of the intensity, by table for integer pixels."""

    def __init__(self, header: Header) -> None:
        self._black, self._gain = header.black, header.gain
        self._limit = header.limit

    def __call__(self, picture: Picture) -> NDArray[np.float32]:
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

    For absorbance the offset is a picture, log10 I0; ``offset`` is then its mean.
    """

    slope: float
    offset: float
    logarithmic: bool = False


def normalise(values: NDArray[np.float32], observable: str, header: Header, white: float) -> Normalisation:
    """Turn reduced pixel values into u in place: I/I_max for bright, 1 − I/I_max for dark."""
    gain = header.gain / white
    line = (
        Normalisation(gain, -header.black * gain)
        if observable == "bright"
        else Normalisation(-gain, 1 + header.black * gain)
    )
    values *= np.float32(line.slope)
    values += np.float32(line.offset)
    return line


def take_absorbance(values: NDArray[np.float32], log_reference: NDArray[np.float64]) -> Normalisation:
    """Turn reduced log10 I into absorbance log10 I0 − log10 I, in place."""
    np.subtract(log_reference.astype(np.float32), values, out=values)
    return Normalisation(-1.0, float(log_reference.mean()), logarithmic=True)


def percentile_picture(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Estimate log10 I0 as each cell's bright percentile in time, row by row to spare memory."""
    rows = [np.percentile(values[:, j], REFERENCE_PERCENTILE, axis=0) for j in range(values.shape[1])]
    return np.asarray(rows, dtype=np.float64)


class ReferenceFrames:
    """Average the frames that show the empty, lit scene: I0 at camera resolution."""

    def __init__(self, settings: RecordingSettings, shape: tuple[int, int]) -> None:
        first, last = settings.reference or (0, -1)  # none: no frame is taken
        if settings.reference is not None and (first < 0 or last < first):
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


def choose_white(settings: RecordingSettings, header: Header, brightest: float) -> tuple[float, str]:
    """Return I_max and a note on where it comes from, if it is not the format's own."""
    if settings.white is not None:
        return settings.white, ""
    if header.white is not None:
        return header.white, ""
    if brightest <= 0:
        raise InputError(f"the brightest value is {brightest:g}, so I/Imax has no meaning; give recording.white")
    return brightest, f"I_max is the brightest value of the selected frames inside the crop, {brightest:g}"


def clip_headroom(values: NDArray[np.float32], header: Header) -> str:
    """Clip what lies below black or above white in limited-range luma; say how much it was."""
    if header.black == 0:
        return ""
    outside = 0
    for frame in values:  # one by one, so that no second array of the film's size is needed
        if frame.min() < 0 or frame.max() > 1:
            outside += int(np.count_nonzero((frame < 0) | (frame > 1)))
            np.clip(frame, 0, 1, out=frame)
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
