"""Resizing by averages: every grid cell is the mean over the camera pixels that it covers, in parts where need be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.recording.base import Picture

NATIVE_KINDS = (np.uint8, np.uint16, np.float32, np.float64)


@dataclass(frozen=True)
class Overlap:
    """What each cell of one axis takes of which pixels: ``weights`` (cells, pixels of one) from ``first`` (cells,) on.

    Cell c covers [c·n/m, (c + 1)·n/m) of n pixels; a pixel's weight is its covered share times m/n, so that the weights
    of a cell add up to 1 and every pixel's weights add up to m/n: the mean is kept.

    ``sloped``: a pixel that two cells share is not flat. Its light is a mean, too, and rises as its neighbours tell:
    with the part f of it before the edge, f p_i + (f² − f)(p_(i+1) − p_(i−1))/4 belongs there. Flat pixels blur what is
    seen, by a sixth of a pixel squared along each axis where cells cut pixels, and not where they do not.
    """

    first: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def between(cls, pixels: int, cells: int, sloped: bool = False) -> Overlap:
        # Integer arithmetic in units of 1/cells of a pixel: no edge is lost to rounding.
        edges = np.arange(cells + 1, dtype=np.int64) * pixels
        first, last = edges[:-1] // cells, (edges[1:] - 1) // cells
        if sloped:
            first, last = first - 1, last + 1
        place = first[:, None] + np.arange(int((last - first).max()) + 1)
        covered = np.minimum((place + 1) * cells, edges[1:, None]) - np.maximum(place * cells, edges[:-1, None])
        weights = np.maximum(covered, 0) / pixels
        if sloped:
            cut, part = edges // cells, edges % cells / cells
            lean = (part**2 - part) / 4 * cells / pixels
            for edge, sign in ((slice(1, None), 1), (slice(None, -1), -1)):
                beside = place - cut[edge, None]
                weights += sign * lean[edge, None] * ((beside == 1) * 1.0 - (beside == -1))
        return cls(first, weights)


class AreaResizer:
    """Average pictures of one shape onto a grid of cells; ``sloped``: see ``Overlap``.

    Measured for 1064 × 1064 pixels of 8 bits onto 200 × 200 cells, CPU time on one core: 0.32 ms. Two sparse
    matrix products take 0.65 ms in double and 0.40 ms in single precision, two dense ones 11 and 5.8 ms.
    """

    def __init__(self, pixels: tuple[int, int], cells: tuple[int, int], sloped: bool = False) -> None:
        self.pixels, self.cells = pixels, cells
        self._rows, self._columns = (Overlap.between(n, m, sloped) for n, m in zip(pixels, cells, strict=True))
        self._line = np.empty(pixels[1], dtype=np.float64)

    def into(self, picture: Picture, out: NDArray[Any]) -> None:
        """Write the cell means of ``picture`` (y, x) to ``out``; sums are kept in double precision."""
        y, x = self._rows, self._columns
        pixels, stride = _flatten(native(picture))
        _average(pixels, stride, self.pixels[0], y.first, y.weights, x.first, x.weights, self._line, out)

    def __call__(self, picture: Picture) -> NDArray[np.float64]:
        """Return the cell means of ``picture`` in double precision."""
        out = np.empty(self.cells, dtype=np.float64)
        self.into(picture, out)
        return out


def native(picture: Picture) -> Picture:
    """Return a picture a number type that the kernel is compiled for; a view stays a view where it can."""
    kind = picture.dtype.newbyteorder("=")
    if kind == np.bool_:
        return picture.view(np.uint8)
    if kind not in NATIVE_KINDS:
        kind = np.dtype(np.float32 if kind == np.float16 else np.float64)
    return picture.astype(kind, copy=False)


def _flatten(picture: Picture) -> tuple[NDArray[Any], int]:
    """Return the pixels as one line of memory and the distance between rows, without copying a crop.

    The kernel vectorises over a line known to be contiguous, which the columns of a cropped view are not.
    """
    size = picture.itemsize
    if picture.strides[1] != size or picture.strides[0] < 0 or picture.strides[0] % size:
        picture = np.ascontiguousarray(picture)
    stride = picture.strides[0] // size
    length = (picture.shape[0] - 1) * stride + picture.shape[1]
    return np.lib.stride_tricks.as_strided(picture, (length,), (size,), writeable=False), stride


class ShiftedResizer:
    """Average pictures onto a grid as if they had been taken from elsewhere; between pixels linearly.

    A cell's mean over a picture that is displaced by k + f pixels is one over its own pixels, k further on, with the
    weights (1 − f)w_i + f w_(i − 1) along each axis; what lies outside is taken for the picture's edge.
    """

    def __init__(self, pixels: tuple[int, int], cells: tuple[int, int]) -> None:
        self._axes = [Overlap.between(n, m, sloped=True) for n, m in zip(pixels, cells, strict=True)]
        self._line = np.empty(pixels[1], dtype=np.float64)

    def into(self, picture: Picture, shift: tuple[float, float], out: NDArray[Any]) -> None:
        """Write the cell means of ``picture``, displaced by ``shift`` pixels along y and x, to ``out``."""
        tables = []
        for axis, distance in zip(self._axes, shift, strict=True):
            weights = axis.weights
            whole = int(np.floor(distance))
            part = distance - whole
            moved = np.zeros((weights.shape[0], weights.shape[1] + 1))
            moved[:, :-1] = (1 - part) * weights
            moved[:, 1:] += part * weights
            tables += [axis.first + whole, moved]
        pixels, stride = _flatten(native(picture))
        _average(pixels, stride, picture.shape[0], *tables, self._line, out)

    def turned_into(
        self, picture: Picture, shift: tuple[float, float], turn: NDArray[np.float64], out: NDArray[Any]
    ) -> None:
        """Write the cell means of a picture that is displaced by ``shift``, and turned and zoomed by ``turn`` (2, 2)
        about its middle, to ``out``."""
        y, x = self._axes
        _average_turned(native(picture), y.first, y.weights, x.first, x.weights, np.array(shift), turn, out)


def _average_cells(
    pixels: Any, stride: int, rows: int, y_first: Any, y_weights: Any, x_first: Any, x_weights: Any, line: Any, out: Any
) -> None:
    """Sum the rows of each cell into ``line``, then the columns of that line; beyond the edge, the edge."""
    columns = line.shape[0]
    for r in range(out.shape[0]):
        line[:] = 0.0
        for t in range(y_weights.shape[1]):
            weight = y_weights[r, t]
            if weight != 0.0:
                i = min(max(y_first[r] + t, 0), rows - 1)
                row = pixels[i * stride : i * stride + columns]  # a slice, or the loop does not vectorise
                for j in range(columns):
                    line[j] += weight * row[j]
        for c in range(out.shape[1]):
            total = 0.0
            for t in range(x_weights.shape[1]):
                total += x_weights[c, t] * line[min(max(x_first[c] + t, 0), columns - 1)]
            out[r, c] = total


def _average_turned_cells(
    picture: Any, y_first: Any, y_weights: Any, x_first: Any, x_weights: Any, shift: Any, turn: Any, out: Any
) -> None:
    """Average each cell from where its middle is seen: within a cell, a turn by a degree is next to nothing."""
    rows, columns = picture.shape
    for r in range(out.shape[0]):
        y = (r + 0.5) * rows / out.shape[0] - rows / 2
        for c in range(out.shape[1]):
            x = (c + 0.5) * columns / out.shape[1] - columns / 2
            dy = (turn[0, 0] - 1) * y + turn[0, 1] * x + shift[0]
            dx = turn[1, 0] * y + (turn[1, 1] - 1) * x + shift[1]
            k, m = int(np.floor(dy)), int(np.floor(dx))
            f, g = dy - k, dx - m
            total, weight = 0.0, 0.0
            for t in range(y_weights.shape[1] + 1):
                before = weight
                weight = y_weights[r, t] if t < y_weights.shape[1] else 0.0
                share = (1 - f) * weight + f * before
                if share == 0.0:
                    continue
                i = min(max(y_first[r] + k + t, 0), rows - 1)
                line, last = 0.0, picture[i, min(max(x_first[c] + m, 0), columns - 1)]
                for s in range(x_weights.shape[1]):
                    following = picture[i, min(max(x_first[c] + m + s + 1, 0), columns - 1)]
                    line += x_weights[c, s] * ((1 - g) * last + g * following)
                    last = following
                total += share * line
            out[r, c] = total


_average_turned = cast(Any, njit(nogil=True)(_average_turned_cells))
_average = cast(Any, njit(nogil=True)(_average_cells))


def average_squares(frames: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """Average squares of ``size`` cells a side of frames (t, y, x); a rest at the far edges is dropped."""
    rows, columns = (n // size * size for n in frames.shape[1:])
    cut = frames[:, :rows, :columns].reshape(len(frames), rows // size, size, columns // size, size)
    return np.asarray(cut.mean(axis=(2, 4), dtype=np.float64))
