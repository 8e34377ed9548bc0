"""Calibrated light: what the camera reads without light, and what it reads where u is 1.

    u = (I − dark)/(reference − dark)  for bright,    1 − that for dark,    −log10 of it for absorbance.

A reference takes uneven illumination, and a static profile of the sample (the dome of a droplet), out of u: a law
with a rate in it is wrong by what the profile does. Both are averaged onto the grid before they divide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.recording.base import Header, Picture
from video2pde.recording.layout import Layout
from video2pde.recording.pictures import read_picture
from video2pde.recording.seen import like_frames
from video2pde.recording.source import find_picture
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]
OUTSIDE_PERCENTILE = 5.0
"""Percentile of the reference that is the level of the surroundings."""
LEAK = 0.1
"""Share of the reference's light above the dark picture's own median from which the shutter was not shut there."""
LEAST_LIGHT = 0.05
"""Share of the brightest light (99th percentile) below which a reference is too dark to divide by."""


def read_light_picture(path: Path, name: str, layout: Layout, header: Header) -> Picture:
    """Read a picture of the same camera, by file or by name in the recording's folder; whole, or cropped alike."""
    file = find_picture(path, name)
    picture = like_frames(read_picture(file, header.mix), header)
    _, _, width, height = layout.inner
    if picture.shape == (header.height, header.width):
        return layout.cut(picture)
    if picture.shape == (height, width):
        return picture
    raise InputError(
        f"{file} has {picture.shape[1]}×{picture.shape[0]} pixels, the frames {header.width}×{header.height}; "
        "reference and dark picture must come from the same camera"
    )


@dataclass(frozen=True, eq=False)
class Light:
    """What divides the frames, on the grid: ``dark`` and ``span`` = reference − dark, both (y, x), pixel values.

    ``lit`` (y, x): where the reference has light enough to divide by.
    """

    dark: Array
    span: Array
    lit: NDArray[np.bool_]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def apply(self, values: NDArray[np.float32], observable: str) -> None:
        """Turn reduced pixel values (t, y, x) into u, in place; cells without light take the nearest value with it."""
        from scipy.ndimage import distance_transform_edt

        dark, inverse = self.dark.astype(np.float32), (1.0 / self.span).astype(np.float32)
        values -= dark
        values *= inverse
        if observable == "dark":
            np.subtract(np.float32(1.0), values, out=values)
        if not self.lit.all():
            # where nothing is to be seen, noise divided by next to nothing would be worse than the nearest light
            rows, columns = distance_transform_edt(~self.lit, return_distances=False, return_indices=True)
            dark_cells = ~self.lit
            for frame in values:
                frame[dark_cells] = frame[rows[dark_cells], columns[dark_cells]]


def calibrate_light(reference: Array, dark: Array | float | str | None, origin: str) -> Light:
    """Set up the division of frames by a reference picture (y, x); ``origin`` says where that comes from."""
    notes, warnings = [f"u = (I − dark)/(reference − dark), the reference being {origin}"], []
    level: Array
    if dark is None:
        level = np.zeros_like(reference)
        notes.append("no dark level was given: 0 is taken (recording.dark, --dark)")
    elif isinstance(dark, str):
        level = np.full_like(reference, np.percentile(reference, OUTSIDE_PERCENTILE))
        notes.append(f"dark: the surroundings' level, {level.flat[0]:.6g}")
    elif isinstance(dark, float):
        level = np.full_like(reference, dark)
        notes.append(f"dark: {dark:.6g}")
    else:
        level, said = shut(dark, reference)
        notes.append(f"dark: a picture with a median of {np.median(level):.6g}")
        warnings += said
    span = reference - level
    full = float(np.percentile(span, 99))
    if full <= 0:
        raise InputError(f"the reference ({origin}) is nowhere brighter than the dark level; check --reference, --dark")
    lit = span > LEAST_LIGHT * full
    if not lit.all():
        notes.append(
            f"{1 - lit.mean():.1%} of the reference is too dark to divide by (below {LEAST_LIGHT:.0%} of its light): "
            "u means nothing there"
        )
    return Light(level, np.maximum(span, LEAST_LIGHT * full), lit, tuple(notes), tuple(warnings))


def shut(dark: Array, reference: Array) -> tuple[Array, list[str]]:
    """Put the median of a dark picture where light came in after all (an open iris, a lit spot), and say so."""
    median = float(np.median(dark))
    light = float(np.median(reference)) - median
    leaks = dark - median > LEAK * max(light, 0.0)
    if not leaks.any():
        return dark, []
    said = (
        f"the dark picture is not dark: {leaks.mean():.1%} of it is brighter than {LEAK:.0%} of the reference; "
        f"its median of {median:.6g} is taken there"
    )
    return np.where(leaks, median, dark), [said]


def dark_offset(
    settings: RecordingSettings, header: Header, values: NDArray[np.float32], dark: Picture | float | None
) -> float:
    """Return the pixel value without light where there is no reference: one level for all cells."""
    if settings.dark is None:
        return 0.0
    if dark is None:
        return float(np.percentile(values[0], OUTSIDE_PERCENTILE))
    level = float(np.median(dark))
    if level >= float(values.max()):
        raise InputError(
            f"the dark level of {level:g} is above every frame (up to {float(values.max()):g}); check --dark"
        )
    return max(level, header.black)
