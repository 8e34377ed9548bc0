"""What a microscope's file says of itself: the times of its planes and the size of a pixel (OME, ImageJ)."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "min": 60.0, "h": 3600.0}
INCH, CENTIMETRE = 2, 3
MICROMETRES = {INCH: 25400.0, CENTIMETRE: 10000.0}
"""Units of TIFF's resolution, in µm."""
SCREENS = (1, 72, 75, 96, 100, 120, 144, 150, 200, 240, 300, 360, 400, 600, 720, 1200)
"""Pixels per inch that programs write where they know nothing."""
PLAIN_UNITS = {"micron": "µm", "microns": "µm", "um": "µm", "\\u00B5m": "µm", "μm": "µm", "pixel": "", "pixels": ""}


def plane_times(tiff: Any) -> tuple[float, ...] | None:
    """Read when each time point was taken (OME DeltaT of its first plane), s; None where it is not said of all."""
    pixels = _ome_pixels(tiff)
    if pixels is None:
        return None
    count = int(pixels.get("SizeT", "1"))
    found: dict[int, float] = {}
    for plane in pixels:
        if not plane.tag.endswith("}Plane") or plane.get("DeltaT") is None:
            continue
        time = float(plane.get("DeltaT", "nan")) * SECONDS.get(plane.get("DeltaTUnit", "s"), 1.0)
        index = int(plane.get("TheT", "0"))
        found[index] = min(time, found.get(index, math.inf))
    times = tuple(found[k] for k in range(count)) if count > 1 and set(found) == set(range(count)) else None
    if times is None or not all(map(math.isfinite, times)):
        return None
    return times if all(b > a for a, b in itertools.pairwise(times)) else None


def pixel_size(tiff: Any) -> tuple[float, str] | None:
    """Read the size of a pixel and its unit from OME's or ImageJ's metadata; None where there is none."""
    pixels = _ome_pixels(tiff)
    if pixels is not None:
        if pixels.get("PhysicalSizeX") is None:
            return None
        return _usable(float(pixels.get("PhysicalSizeX", "nan")), pixels.get("PhysicalSizeXUnit", "µm"))
    if tiff.is_imagej:
        resolution = tiff.pages[0].tags.get("XResolution")
        unit = str((tiff.imagej_metadata or {}).get("unit", ""))
        if resolution is not None and unit and resolution.value[0]:
            return _usable(resolution.value[1] / resolution.value[0], unit)
        return None
    return _resolution_tags(tiff.pages[0].tags)


def _resolution_tags(tags: Any) -> tuple[float, str] | None:
    """Read the size of a pixel from TIFF's own tags; the resolutions of screens and printers are no sizes."""
    resolution, unit = tags.get("XResolution"), tags.get("ResolutionUnit")
    length = None if unit is None else MICROMETRES.get(int(unit.value))
    if resolution is None or length is None or not all(resolution.value):
        return None
    pixels = resolution.value[0] / resolution.value[1]
    per_inch = pixels * MICROMETRES[INCH] / length
    if any(math.isclose(per_inch, known, rel_tol=5e-3) for known in SCREENS):
        return None
    return _usable(length / pixels, "µm")


def channel_names(tiff: Any, count: int) -> tuple[str, ...]:
    """Name the channels of a stack: as OME's metadata do, otherwise by their numbers; one channel needs no name."""
    if count == 1:
        return ()
    pixels = _ome_pixels(tiff)
    named = [] if pixels is None else [part.get("Name", "") for part in pixels if part.tag.endswith("}Channel")]
    if len(named) == count and all(named) and len(set(named)) == count:
        return tuple(named)
    return tuple(f"channel {k + 1}" for k in range(count))


def _usable(size: float, unit: str) -> tuple[float, str] | None:
    plain = PLAIN_UNITS.get(unit, unit)
    known = re.fullmatch(r"[^\d\s.]\S{0,11}", plain) is not None
    return (size, plain) if known and math.isfinite(size) and size > 0 else None


def _ome_pixels(tiff: Any) -> ElementTree.Element | None:
    if not tiff.is_ome:
        return None
    elements = ElementTree.fromstring(tiff.ome_metadata).iter()
    return next((element for element in elements if element.tag.endswith("}Pixels")), None)
