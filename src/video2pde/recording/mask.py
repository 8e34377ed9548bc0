"""The region that obeys the law: from a picture, a threshold on a frame, a droplet's outline, or regions of Fiji."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.recording.base import Header
from video2pde.recording.layout import Layout
from video2pde.recording.light import Light
from video2pde.recording.pictures import read_picture
from video2pde.recording.resize import AreaResizer

THRESHOLD = re.compile(r"^\s*u\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:@\s*(\d+))?\s*$")

DROPLET = "droplet"
ROI_SUFFIXES = (".roi", ".zip")
DEEPEST = 4
"""Cells by which a droplet is eroded at most."""
MOST_OF_PICTURE = 0.9
"""Share of the picture above which what is bright is no droplet, ..."""
MOST_OF_EDGE = 0.3
"""... and share of the picture's edge that a droplet may touch."""
LEAST_CELLS = 25
"""Cells that a region needs."""


def make_mask(
    text: str,
    values: NDArray[np.float32],
    layout: Layout,
    header: Header,
    light: Light | None = None,
    whole: bool = False,
) -> NDArray[np.bool_]:
    """Return the mask (y, x) that ``text`` describes; ``whole``: with a droplet's edge, at which there are walls.

    A threshold (``u>0.3@0``), ``droplet`` (see :func:`droplet_mask`), a picture file, white where the law holds, or
    regions drawn in Fiji (``.roi``, or several in a ``.zip``).
    """
    if THRESHOLD.match(text):
        return threshold_mask(text, values)
    if text == DROPLET:
        bright = values[: max(1, len(values) // 20)].mean(axis=0) if light is None else light.span
        return droplet_mask(np.asarray(bright, float), whole)
    if Path(text).suffix.lower() in ROI_SUFFIXES:
        return _require_some(text, _from_regions(Path(text), layout, header))
    return _require_some(text, _from_picture(Path(text), layout, header))


def off_overlay(overlay: NDArray[np.bool_], layout: Layout) -> NDArray[np.bool_]:
    """Mark the cells that neither hold nor touch anything drawn over the frames (y, x)."""
    drawn = layout.cut(overlay).astype(np.uint8)
    covered = AreaResizer((drawn.shape[0], drawn.shape[1]), layout.grid.shape)(drawn) > 0
    return np.asarray(~ndimage.binary_dilation(covered), bool)


def enclose(field: Field) -> Field:
    """Put walls at the edge of a field's mask; without a mask the picture's own edges are walls, and nothing is done.

    The outermost cells hold something of the outside, which the region is brighter or darker than: they take the value
    of the nearest cell further in, from which they hardly differ, since nothing passes the wall. So does all that is
    outside, for filters' sake.
    """
    if field.mask is None:
        return field
    field = replace(field, walls=True)
    assert field.counted is not None
    outside = ~field.counted
    row, column = ndimage.distance_transform_edt(outside, return_distances=False, return_indices=True)
    values = field.values.copy()
    values[:, outside] = values[:, row[outside], column[outside]]
    return replace(field, values=values)


def without_rim(shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Mark everything but the outermost cells: the picture's rim is then given by the recording."""
    inside = np.zeros(shape, bool)
    inside[1:-1, 1:-1] = True
    return inside


def droplet_mask(bright: NDArray[np.float64], whole: bool = False) -> NDArray[np.bool_]:
    """Find a bright droplet (y, x), less its blurred edge: the region in which a law can hold; or the ``whole`` of it.

    The largest piece above half of its light, holes filled, eroded by half the width of the edge. That width is the
    distance between the contours at a quarter and at three quarters of the light, from the areas inside them.
    """
    low, high = np.percentile(bright, 5), np.percentile(bright, 99)
    share = (bright - low) / max(float(high - low), 1e-300)
    outer, half, inner = (_largest(share > level) for level in (0.25, 0.5, 0.75))
    rim = np.ones(bright.shape, bool)
    rim[1:-1, 1:-1] = False
    if not half.any() or outer.mean() > MOST_OF_PICTURE or half[rim].mean() > MOST_OF_EDGE:
        raise InputError(
            "no droplet is to be seen (nothing stands out from darker surroundings); paint a mask, or give a threshold "
            "such as --mask 'u>0.3@0'"
        )
    radii = [float(np.sqrt(region.sum() / np.pi)) for region in (outer, inner)]
    depth = 0 if whole else int(np.clip(np.ceil((radii[0] - radii[1]) / 2), 1, DEEPEST))
    for erosion in range(depth, -1, -1):
        region = ndimage.binary_erosion(half, iterations=erosion) if erosion else half
        if region.sum() >= LEAST_CELLS:
            return np.asarray(region, bool)
    raise InputError(
        f"the droplet has {half.sum()} cells; a law needs at least {LEAST_CELLS}: use a finer grid (--grid)"
    )


def _largest(region: NDArray[np.bool_]) -> NDArray[np.bool_]:
    pieces, count = ndimage.label(region)
    if not count:
        return region
    return np.asarray(ndimage.binary_fill_holes(pieces == 1 + np.argmax(np.bincount(pieces.ravel())[1:])), bool)


def _from_regions(file: Path, layout: Layout, header: Header) -> NDArray[np.bool_]:
    """Average regions drawn in Fiji onto the grid; their coordinates are pixels of the whole frame."""
    if not file.is_file():
        raise InputError(f"no such mask: {file}")
    try:
        import roifile
    except ImportError:
        raise InputError(
            f"{file}: regions of Fiji need the package roifile; pip install 'video2pde[microscopy]' adds it"
        ) from None
    from matplotlib.path import Path as Outline

    try:
        found = roifile.roiread(file)
        corners = [np.asarray(roi.coordinates(), float) for roi in (found if isinstance(found, list) else [found])]
    except Exception as error:  # whatever a damaged file makes the reader stumble over
        raise InputError(f"{file} cannot be read as regions of Fiji ({error})") from None
    # Fiji counts the corners of pixels; a pixel belongs to a region that holds its centre
    rows, columns = np.mgrid[: header.height, : header.width] + 0.5
    centres = np.stack([columns.ravel(), rows.ravel()], axis=1)
    whole = np.zeros(header.height * header.width, bool)
    for outline in corners:
        if len(outline) >= 3:
            whole |= Outline(outline).contains_points(centres)
    inside = layout.cut(whole.reshape(header.height, header.width)).astype(np.uint8)
    return np.asarray(AreaResizer((inside.shape[0], inside.shape[1]), layout.grid.shape)(inside) >= 0.5, dtype=bool)


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
