"""Uneven and changing light: I(x, y, t) = g(t) · f(x, y) · scene, from what the background shows.

Background is where nothing but the light changes. Its brightness over time is g(t), its brightness over the picture,
continued by a smooth surface under the plume, is f(x, y). Both divide the intensity before the observable is formed, so
that 1 − I/I₀ stays right. Jumps and flicker are never a law's doing. A slow change may be: a background of dye that
decays or grows looks the same. Which of the two it is follows from the plume, which light makes fainter by the same
share and a law by another; where that does not decide, nothing is changed and the question is passed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.recording.background import Background, find_background
from video2pde.recording.base import Header
from video2pde.recording.course import Course, FAST, take_apart
from video2pde.recording.lightorlaw import fade_beside_flicker, SLOW, weigh
from video2pde.recording.othercolour import alike, find_loosely, lend_surface, OtherColour
from video2pde.recording.surface import fit_surface
from video2pde.room import empty
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]
Other = Callable[[], OtherColour | None]
Surface = Callable[[Array], tuple[NDArray[np.float32] | None, float]]

UNEVEN = 0.012  # unevenness of the light, relative, below which it is left alone
LEFT = 0.0002  # relative change of the light that is left where it was divided out
FEWEST = 40  # frames below which a plume may pass for background, because it hardly moves


@dataclass(frozen=True, eq=False)
class Illumination:
    """Hold what was found out about the light, and what was corrected.

    Parameters
    ----------
    gain : g(t), shape (t,), as divided out; ones where nothing was. measured : the background's brightness over time,
        relative to the beginning. flat : f(y, x), as divided out, 1 at the brightest place; None: none was.
    background : cells that show nothing but light, (y, x).
    flicker : rms of the fast part; jumps : frames at which the light jumps; slow : range of the slow part;
    uneven : range of f. All relative.
    slow_is : what the slow change was taken for: "light", "law", "unknown", or "none" where there is none.
    level : how well the light's mean level is known, relative, where it flickers over a background that is the law's.
    notes : what was done, in words. doubts : what could not be decided, with the setting that decides it.
    """

    gain: Array
    measured: Array
    flat: NDArray[np.float32] | None
    background: NDArray[np.bool_]
    flicker: float
    jumps: tuple[int, ...]
    slow: float
    uneven: float
    slow_is: str
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    level: float = 0.0

    @property
    def corrected(self) -> bool:
        return bool(self.flat is not None or np.any(self.gain != 1))

    @property
    def unknown(self) -> float:
        """Relative change of the light, from beginning to end, that may be left: what was seen and not divided out.

        Where the background is the law's, light that flickers leaves its own level open (``level``): in the rate of a
        reaction that is as much as if the light had changed by it.
        """
        return math.hypot(LEFT, self.slow if self.slow_is == "none" else 0.0, self.level)


def measure_illumination(
    intensity: NDArray[np.float32],
    mode: str,
    bright: bool,
    white: float | None,
    level: float = 0.0,
    other: Other | None = None,
) -> Illumination | None:
    """Find g(t) and f(x, y) of a film; None where no background is to be seen.

    Parameters
    ----------
    intensity : reduced frames, shape (t, y, x), 0 is black.
    mode : auto, auto gain, gain, flat or gain+flat: what may be corrected; auto corrects what is needed and certain.
    bright : whether u is the light itself, where a slow change of light and decay are one and the same.
    white : intensity of u = 0 (dark); None: unknown, and then light and decay cannot be told apart.
    level : one step of the camera's whole numbers; without noise a background climbs them like stairs. 0: none.
    other : reads the film in a colour in which what spreads hardly shows, where there is one: what changes there is
        light, and what changes only here is the dye's own.
    """
    seen, colour = find_background(intensity), other() if other is not None and mode.startswith("auto") else None
    if seen is None:
        own = None if colour is None else find_loosely(intensity)
        light = None if own is None or colour is None else colour.light_beside(intensity, own)
        if own is None or colour is None or light is None:
            return None
        there, here = take_apart(light, colour.level), take_apart(own, 0.0)
        slow_is = _compare(there, here)
        # where this colour blurs what its background does, that it does something else tells nothing
        slow_is = "unknown" if slow_is == "light" and not alike(here.slow, there.slow) else slow_is
        return _correct(own, there, slow_is, mode, _lent(colour, light, intensity, own), colour.name)
    course, asked, lent = take_apart(seen, level), mode in ("gain", "gain+flat"), ""
    light = None if colour is None or course.by_chance else colour.light_beside(intensity, seen)
    if colour is None or light is None:
        slow_is, course = _explain_slow(course, asked, intensity, seen.cells, None if bright else white)
    else:
        there = take_apart(light, colour.level)
        slow_is = _compare(there, course)
        if slow_is == "light" and not alike(course.slow, there.slow):
            # jumps and flicker, an encoder's included, are those of the colour that is read
            course, lent = replace(course, slow=there.slow), colour.name
    return _correct(seen, course, slow_is, mode, lambda gain: fit_surface(intensity, gain, seen.inner), lent)


def _compare(light: Course, here: Course) -> str:
    """Say what a slow change is, ``light`` being known from another colour: what is not light is the dye's own."""
    changes, shown = (float(np.ptp(course.slow)) > SLOW for course in (here, light))
    return "light" if shown or light.by_chance else "law" if changes else "none"


def _lent(colour: OtherColour, light: Background, intensity: NDArray[np.float32], own: Background) -> Surface:
    """Lay f(x, y) through the background of another colour."""

    def lay(gain: Array) -> tuple[NDArray[np.float32] | None, float]:
        flat = lend_surface(fit_surface(colour.intensity, gain, light.inner)[0], intensity, own)
        return flat, 0.0 if flat is None else float(np.ptp(flat))

    return lay


def _correct(
    seen: Background,
    course: Course,
    slow_is: str,
    mode: str,
    surface: Surface,
    lent: str,
) -> Illumination:
    """Say what is divided out of a film.

    ``surface``: lays f(x, y), with its range, once g(t) is known; ``lent``: the other channel that showed the light.
    """
    asked, left_alone = mode in ("gain", "gain+flat"), mode in ("flat", "none")
    gain, notes, doubts = np.ones(len(course.slow)), list[str](), list[str]()
    if asked or (mode.startswith("auto") and (course.flickers or course.jumps)):
        gain *= np.exp(course.jumped + course.fast if asked else course.quick)
        notes.append(_tell_fast(course.flicker if course.flickers or asked else 0.0, course.jumps))
    if course.by_chance and slow_is != "law":
        gain *= 1.0 if left_alone else np.exp(course.slow - course.slow.mean())
    elif slow_is == "light" and not left_alone:
        gain *= np.exp(course.slow)
        divided = "it" if lent else "its background's brightness"
        notes.append(f"the light {_tell_slow(course.slow)}: each frame was divided by {divided}")
    elif slow_is == "unknown" and mode.startswith("auto"):
        doubts.append(
            f"the background {_tell_slow(course.slow)}; light that changes and dye that decays or grows look alike "
            "here: set recording.illumination to gain if it is the light, to steady if it is not"
        )
    flat, uneven = (None, 0.0) if mode in ("gain", "auto gain", "none") else surface(gain)
    flat = flat if uneven > UNEVEN or mode in ("flat", "gain+flat") else None
    if flat is not None:
        notes.append(f"uneven light: brightness varies by {uneven:.1%} over the picture, and was divided out")
    if lent and notes:
        notes.append(f"the light was measured in the channel {lent}, in which what spreads hardly shows")
    return Illumination(
        gain=gain,
        measured=np.exp(course.log),
        flat=flat,
        background=seen.cells,
        flicker=course.flicker,
        jumps=course.jumps,
        slow=float(np.ptp(course.slow)),
        uneven=uneven,
        slow_is=slow_is,
        notes=tuple(note for note in notes if note),
        doubts=tuple(doubts),
        level=course.flicker / len(gain) ** 0.5 if course.flickers and slow_is == "law" else 0.0,
    )


def _explain_slow(
    course: Course, asked: bool, intensity: NDArray[np.float32], cells: NDArray[np.bool_], white: float | None
) -> tuple[str, Course]:
    """Say what a slow change is: light, where that is asked for or the plume says so, law, unknown, or none.

    With the course, whose slow part may be known better for it.
    """
    if course.by_chance:
        return "light", course
    if float(np.ptp(course.slow)) <= SLOW:
        return "none", course
    if asked:
        return "light", course
    if white is None:
        return "unknown", course
    faded = fade_beside_flicker(intensity, cells, course, white)
    if faded is not None:
        return "law", course.taken_for(faded)
    return weigh(intensity, cells, course, white), course


def even_out(
    values: NDArray[np.float32],
    settings: RecordingSettings,
    header: Header,
    white: float | None,
    logarithmic: bool,
    other: Other | None = None,
) -> Illumination | None:
    """Divide reduced frames by g(t) f(x, y), in place; None where no background is to be seen or none is asked for.

    Parameters
    ----------
    values : shape (t, y, x), pixel values, or log10 of the intensity where ``logarithmic``.
    white : intensity of u = 0; None: unknown.
    other : see :func:`measure_illumination`.
    """
    if settings.illumination in ("none", "steady") or len(values) < (FEWEST if settings.illumination == "auto" else 3):
        return None
    black, gain = (0.0, 1.0) if logarithmic else (header.black, header.gain)
    intensity = empty(values.shape, np.float32)
    for frame, light in zip(values, intensity, strict=True):
        light[...] = (
            np.power(10.0, frame, dtype=np.float32) if logarithmic else (frame - np.float32(black)) * np.float32(gain)
        )
    mode: str = settings.illumination
    if settings.reference is not None or logarithmic:  # f(x, y) is in the reference picture already
        mode = {"auto": "auto gain", "flat": "none", "gain+flat": "gain"}.get(mode, mode)
    level = header.gain if header.limit is not None and not logarithmic else 0.0
    found = measure_illumination(intensity, mode, settings.observable == "bright", white, level, other)
    if found is not None and found.corrected:
        _divide(values, found, black, logarithmic)
    return found


def _divide(values: NDArray[np.float32], light: Illumination, black: float, logarithmic: bool) -> None:
    """Divide the intensity of each frame by the light, in place."""
    flat = np.ones(values.shape[1:], dtype=np.float32) if light.flat is None else light.flat
    for frame, gain in zip(values, light.gain, strict=True):
        if logarithmic:
            frame -= np.log10(np.float32(gain) * flat)
        elif gain != 1 or light.flat is not None:
            frame[...] = np.float32(black) + (frame - np.float32(black)) / (np.float32(gain) * flat)


def _tell_fast(flicker: float, jumps: tuple[int, ...]) -> str:
    parts = [f"flicker of {flicker:.2%} (rms)"] if flicker > FAST else []
    if jumps:
        parts.append(f"jumps of the light at {'frame' if len(jumps) == 1 else 'frames'} {', '.join(map(str, jumps))}")
    return f"{' and '.join(parts)} divided out, as the background shows it" if parts else ""


def _tell_slow(slow: Array) -> str:
    change = float(np.expm1(slow[-1]))
    if abs(change) > 0.6 * float(np.ptp(slow)):
        return f"{'dims' if change < 0 else 'brightens'} by {abs(change):.1%} over the film"
    return f"changes by up to {float(np.ptp(slow)):.1%}"
