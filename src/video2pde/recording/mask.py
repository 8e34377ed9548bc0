"""The region that obeys the law: from a picture, or from a threshold on a frame."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Header
from video2pde.recording.layout import Layout
from video2pde.recording.pictures import read_picture
from video2pde.recording.resize import AreaResizer

THRESHOLD = re.compile(r"^\s*u\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:@\s*(\d+))?\s*$")


def make_mask(text: str, values: NDArray[np.float32], layout: Layout, header: Header) -> NDArray[np.bool_]:
    """Return the mask (y, x) that ``text`` describes: ``u>0.3@0``, or a picture file, white where the law holds."""
    if THRESHOLD.match(text):
        return threshold_mask(text, values)
    return _require_some(text, _from_picture(Path(text), layout, header))


def threshold_mask(text: str, values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Compare one frame (0 unless named after @) with a level, such as ``u>0.3@0``."""
    match = THRESHOLD.match(text)
    if match is None:
        raise InputError(f"the mask '{text}' is not a threshold such as 'u>0.3@0'")
    sign, level, index = match[1], float(match[2]), int(match[3] or 0)
    if index >= len(values):
        raise InputError(f"the mask '{text}' names frame {index}; the field has frames 0 to {len(values) - 1}")
    compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[sign]
    return _require_some(text, np.asarray(compare(values[index], np.float32(level)), dtype=bool))


def _require_some(text: str, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if not mask.any():
        raise InputError(f"the mask '{text}' is empty: no cell of the grid is left to obey a law")
    return mask


def _from_picture(file: Path, layout: Layout, header: Header) -> NDArray[np.bool_]:
    """Average a picture onto the grid; it may show the whole frame, the crop, or the crop without its border."""
    if not file.is_file():
        raise InputError(f"the mask '{file}' is neither a picture file nor a threshold such as 'u>0.3@0'")
    picture = read_picture(file)
    inside = (picture > (float(picture.max()) + float(picture.min())) / 2).astype(np.uint8)
    if picture.min() == picture.max():
        raise InputError(f"the mask picture {file} has one value only; paint the region white on black")
    _, _, width, height = layout.crop
    b = layout.border
    if picture.shape == (header.height, header.width):
        inside = layout.cut(inside)
    elif picture.shape == (height, width):
        inside = inside[b : height - b, b : width - b]
    elif picture.shape not in ((height - 2 * b, width - 2 * b), layout.grid.shape):
        raise InputError(
            f"the mask picture {file} has {picture.shape[1]}×{picture.shape[0]} pixels; the frame has "
            f"{header.width}×{header.height}, the crop {width}×{height}, the grid {layout.grid.nx}×{layout.grid.ny}"
        )
    shape = (inside.shape[0], inside.shape[1])
    return np.asarray(AreaResizer(shape, layout.grid.shape)(inside) >= 0.5, dtype=bool)
