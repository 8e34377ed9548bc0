"""Where the law is taken to hold: in the region that is asked for, off things, saturated parts and letters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.drift import estimate_background
from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.recording.checks import Saturation
from video2pde.recording.entering import entering_side
from video2pde.recording.mask import make_mask, off_overlay, without_rim
from video2pde.recording.reading import Reading
from video2pde.recording.warn import SIGNAL_SATURATED
from video2pde.settings import DriftSettings, RecordingSettings

Frames = NDArray[np.float32]
Mask = NDArray[np.bool_]

MOST_SATURATED, MOST_MASKED = 0.3, 0.1
"""Share of the signal's stronger half, and of the picture, beyond which a saturated part is warned of and not masked:
too little would be left."""


@dataclass(frozen=True, eq=False)
class Region:
    """Where the law holds: ``mask`` (y, x), None: everywhere.

    ``bounded``: whether the picture's border was left to the recording or masked. ``left_out``: the end of the range,
    black or white, at which a saturated signal is masked; empty: none is.
    """

    mask: Mask | None
    bounded: bool
    left_out: str = ""


def choose_region(reading: Reading, values: Frames, times: NDArray[np.float64], saturation: Saturation) -> Region:
    """Choose where the law is taken to hold for u (t, y, x) at ``times`` (s), and say why."""
    region = _off_overlay(reading, _asked(reading, values, times))
    bounded, settings = region is not None, reading.settings
    hides = _leave_out(reading, saturation)
    for hidden in (reading.hidden, saturation.hidden if hides else None):
        if hidden is not None:
            region = ~hidden if region is None else region & ~hidden
    end = "white" if settings.observable == "bright" else "black"
    return Region(region, bounded, end if hides else "")


def _leave_out(reading: Reading, saturation: Saturation) -> bool:
    """Decide whether the parts in which the signal is saturated are masked, and say so."""
    settings, share = reading.settings, float(saturation.hidden.mean())
    asked = settings.mask is not None or settings.start == "auto" or settings.edges == "no_flux" or reading.header.line
    some = SIGNAL_SATURATED < saturation.signal <= MOST_SATURATED and share <= MOST_MASKED
    if settings.saturated == "none" or asked or not some:
        return False
    reading.notes.append(
        f"{share:.1%} of the picture, in which the signal is saturated at some time, is masked: the law is taken to "
        'hold beside it; recording.saturated = "none" leaves it'
    )
    return True


def _off_overlay(reading: Reading, region: Mask | None) -> Mask | None:
    """Return the region off what is drawn over the pictures."""
    overlay, settings = reading.recording.overlay, reading.settings
    if overlay is None or settings.overlays == "none":
        return region
    free = off_overlay(overlay, reading.layout)
    if free.all():
        return region
    if settings.edges == "no_flux":  # there are no walls around letters
        reading.notes.append("letters and lines over the pictures are not left out, because nothing passes the edges")
        return region
    if not free.any():
        raise InputError("text, lines or a legend lie over the whole picture; crop, or set recording.overlays to none")
    reading.notes.append(
        f"text, lines or a legend over {1 - free.mean():.1%} of the picture: the law is taken to hold beside them "
        "(recording.overlays)"
    )
    return free if region is None else region & free


def _asked(reading: Reading, values: Frames, times: NDArray[np.float64]) -> Mask | None:
    """Return the mask that is asked for, where there is light, or the picture off a measured rim."""
    settings, layout = reading.settings, reading.layout
    if settings.mask is not None:
        walls = settings.edges == "no_flux"
        return make_mask(settings.mask, values, layout, reading.header, reading.light, walls)
    if reading.light is not None and not reading.light.lit.all():
        reading.notes.append(
            "the law is taken to hold where the reference has light; --mask droplet keeps off its edge"
        )
        return reading.light.lit
    rim = drive_rim(Field(values, times, layout.grid), settings)
    if rim:
        reading.notes.append(rim)
        return without_rim(layout.grid.shape)
    return None


def drive_rim(field: Field, settings: RecordingSettings) -> str:
    """Say why the picture's rim as it was recorded drives the law inside it; an empty text: it does not."""
    if field.mask is not None or settings.edges not in ("auto", "measured"):
        return ""
    follows = "the picture's rim follows the recording, the law holds inside it"
    if settings.edges == "measured":
        return f"measured edges: {follows}"
    background, _ = estimate_background(field, DriftSettings())
    side = entering_side(field.values, background)
    if side is None:
        return ""
    return f"something spreads into the picture through its {side} edge: {follows} (--edges no_flux closes it)"
