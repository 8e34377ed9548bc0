"""Colour differences of a film at the resolution of its luma.

Most films store one colour difference for two columns, and often for two rows (4:2:2, 4:2:0): an average over two
pixels. Interpolated linearly it is smoothed a second time, by a variance of ⅔ pixel², which a reaction's coefficients
feel: Gray–Scott's come out a tenth too small from two pixels to a cell. Here a pixel is the average, over it, of the
polynomial of fourth degree whose averages over five pairs of pixels are the stored values.

Pairs of rows lie around the stored value; the middle of a pair of columns lies on the left one (H.264, H.265, VP9), or
between both in films of JPEG range. What a file says about it is hardly ever true, and is not asked.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from av.video.format import VideoFormat
from numpy.typing import NDArray

from video2pde.recording.base import Mix, Picture

Array32 = NDArray[np.float32]
REACH = 2
"""Stored values to each side of a pixel's own that its value is made of."""
BETWEEN, LEFT = 0.5, 0.0
"""Where a pair's middle lies, in pixels from the first of them."""
STORED = {(4, 4): "yuv444p", (4, 2): "yuv422p", (2, 2): "yuv420p"}
"""Formats by the rows and columns of a colour difference beside four of luma."""
PLANAR = re.compile(r"^yuv[aj]?4\d\dp(\d+le)?$")


def weigh_differences(mix: Mix, luma: Mix) -> tuple[float, float]:
    """Return the weights of C_b and C_r, beside that of luma Y, in red, green and blue that are weighted by ``mix``.

    R = Y + 2(1 − k_r) C_r, B = Y + 2(1 − k_b) C_b; green is what is left of the luma: G = (Y − k_r R − k_b B)/k_g.
    """
    k_r, k_g, k_b = luma
    red, blue = mix[0] - mix[1] * k_r / k_g, mix[2] - mix[1] * k_b / k_g
    return 2 * (1 - k_b) * blue, 2 * (1 - k_r) * red


def stored_as(name: str, bits: int) -> str:
    """Name the format with three planes that holds a format's luma and colour differences as they are stored.

    Colour differences that are rarer than every second pixel are interpolated by the decoder.
    """
    form = VideoFormat(name)
    stored = STORED.get((form.chroma_height(4), form.chroma_width(4)))
    if stored is not None and PLANAR.match(name):
        return name
    return (stored or "yuv444p") + ("" if bits <= 8 else f"{bits}le")


def spread(plane: Array32, shape: tuple[int, int], name: str) -> Array32:
    """Bring a colour difference (y, x) to the pixels of a luma of this shape; ``name``: of the film's format."""
    if plane.shape[0] < shape[0]:
        plane = _double(plane, _weights(BETWEEN))
    if plane.shape[1] < shape[1]:
        plane = np.ascontiguousarray(_double(plane.T, _weights(BETWEEN if name.startswith("yuvj") else LEFT)).T)
    return plane[: shape[0], : shape[1]]


def _double(plane: Array32, weights: Picture) -> Array32:
    """Double the rows."""
    padded = np.pad(plane, ((REACH, REACH), (0, 0)), mode="edge")
    found = np.zeros((2 * len(plane), plane.shape[1]), np.float32)
    for half, row in enumerate(weights):
        for shift, weight in enumerate(row):
            found[half::2] += weight * padded[shift : shift + len(plane)]
    return found


@lru_cache(maxsize=2)
def _weights(middle: float) -> Array32:
    """Return the weights (2, 5) of stored values in the two pixels of a pair whose middle is there."""
    at = np.arange(-REACH, REACH + 1.0)

    def averages(centre: NDArray[np.float64], width: float) -> NDArray[np.float64]:
        """Average x⁰ … x⁴ over an interval, x being counted in pairs."""
        powers = np.arange(1, 2 * REACH + 2)[:, None]
        return np.asarray(((centre + width / 2) ** powers - (centre - width / 2) ** powers) / (powers * width))

    pixels = averages((np.arange(2.0) - middle) / 2, 0.5)
    return np.linalg.solve(averages(at, 1.0), pixels).T.astype(np.float32)
