"""One pass over the frames: each is cut, reduced to the grid and let go; a second one where the camera shook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.progress import Progress
from video2pde.recording.base import DamagedError, Header, Picture
from video2pde.recording.displacement import turn
from video2pde.recording.dripping import find_end_of_source
from video2pde.recording.encoding import STEPS
from video2pde.recording.goodrun import find_good_run
from video2pde.recording.illumination import even_out, Illumination
from video2pde.recording.jumps import describe_jump, find_jumps
from video2pde.recording.layout import Layout
from video2pde.recording.light import calibrate_light, dark_offset, Light, read_light_picture
from video2pde.recording.objects import fill, look_for_objects, Objects
from video2pde.recording.observable import (
    choose_white,
    clip_headroom,
    LogIntensity,
    Normalisation,
    normalise,
    percentile_picture,
    REFERENCE_PERCENTILE,
    ReferenceFrames,
    take_absorbance,
)
from video2pde.recording.othercolour import least_coloured, OtherColour, SIDE
from video2pde.recording.resize import AreaResizer, native, ShiftedResizer
from video2pde.recording.sampling import Sampler, StreamedFrame
from video2pde.recording.seen import Seen
from video2pde.recording.source import BEFORE, names_picture, OUTSIDE
from video2pde.recording.stabilise import measure_motion, Motion
from video2pde.recording.stability import RepeatCounter
from video2pde.recording.timing import FrameStore
from video2pde.room import empty, require_space
from video2pde.settings import RecordingSettings

FIELD_COPIES = 2
"""Fields that are held for a moment: the frames as they came, and in one piece."""


def frame_time(header: Header, settings: RecordingSettings, index: int, recorded: float) -> float:
    """Return the time of a frame, s: as recorded, or by the frame rate that was given."""
    if settings.fps is None:
        return recorded
    return (recorded if header.counted else index) / settings.fps


class Reading:
    """Stream the frames once and keep, of each, the grid's cell means; of some, a sample.

    ``whole``: the grid's shape before anything was cut off, where it was.
    """

    def __init__(
        self, recording: Seen, settings: RecordingSettings, layout: Layout, whole: tuple[int, int] | None = None
    ) -> None:
        self.recording, self.settings, self.layout = recording, settings, layout
        self.whole = whole or layout.grid.shape
        self.header = recording.header
        _, _, width, height = layout.inner
        self.resizer = AreaResizer((height, width), layout.grid.shape, sloped=True)
        self.store = FrameStore(layout.grid.shape)
        self.sampler = Sampler(self.header, layout, self._require_space())
        self.log = LogIntensity(self.header, self._dark_picture()) if settings.observable == "absorbance" else None
        self.reference = ReferenceFrames(settings.reference, (height, width))
        self.first = self.begin = 0
        self.light: Light | None = None
        self.motion: Motion | None = None
        self.objects: Objects | None = None
        self.repeats = RepeatCounter()
        self.find_brightest = settings.white is None and self.header.white is None
        self.warnings: list[str] = [line for line in (recording.losses,) if line]
        self.brightest = -np.inf
        self.recorded: list[float] = []
        self.b_frames: list[bool] = []
        self.notes: list[str] = [*self.header.notes, *layout.notes]

    def _dark_picture(self) -> Picture | float | None:
        """Read what the camera shows without light: a level, or a picture at its resolution."""
        dark = self.settings.dark
        if not names_picture(dark):
            return float(dark) if isinstance(dark, int | float) else None
        return read_light_picture(self.recording.path, str(dark), self.layout, self.header)

    def _reference_picture(self) -> Picture | None:
        """Read the reference picture at the camera's resolution, or average the frames that are it; None: neither."""
        name = self.settings.reference
        if isinstance(name, str) and name != BEFORE:
            return read_light_picture(self.recording.path, name, self.layout, self.header)
        return self.reference.mean() if isinstance(name, tuple) else None

    def _expected(self) -> int | None:
        """Estimate how many frames will be selected."""
        if self.header.frames is None:
            return None
        end = self.header.frames if self.settings.stop is None else min(self.settings.stop, self.header.frames)
        return max(0, -(-(end - self.settings.first) // self.settings.every))

    def _require_space(self) -> int | None:
        """Estimate how many frames will be selected, and refuse more than memory and disk hold."""
        frames, grid = self._expected(), self.layout.grid.shape
        if frames is not None:
            require_space(
                FIELD_COPIES * 4.0 * frames * grid[0] * grid[1],
                f"{frames} frames on a grid of {grid[0]}×{grid[1]}",
                "use a smaller grid (--grid) or fewer frames (--every, --stop)",
            )
        return frames

    def run(self, progress: Progress | None) -> None:
        """Read to the end, to ``stop``, or to where the file breaks, if that is allowed."""
        start, stop, every = self.settings.first, self.settings.stop, self.settings.every
        total = self.header.frames if stop is None or self.header.frames is None else min(self.header.frames, stop)
        count = 0
        last: StreamedFrame | None = None
        try:
            for index, (recorded, picture, b_frame) in enumerate(self.recording.frames()):
                self.reference.offer(index, self.layout.cut(picture))
                if index >= start and (index - start) % every == 0:
                    last = self._reduce(index, recorded, picture)
                    self.b_frames.append(b_frame)
                count = index + 1
                if progress is not None:
                    progress(count, total)
                if count == stop:
                    break  # before the next frame is decoded: what lies beyond may be damaged
        except DamagedError as error:
            if not self.settings.allow_truncated or error.readable == 0:
                raise
            self.notes.append(str(error).split(";")[0] + "; the readable frames were used")
        if last is None or len(self.store) < 2:
            raise InputError(
                f"start={start}, stop={stop}, every={every} select {len(self.store)} of the {count} frames read from "
                f"{self.recording.path}; at least two are needed"
            )
        self.sampler.take(len(self.store) - 1, last)

    def _reduce(self, index: int, recorded: float, picture: Picture) -> StreamedFrame:
        time = frame_time(self.header, self.settings, index, recorded)
        if not np.isfinite(time):
            raise InputError(
                f"{self.recording.path}: frame {index} carries no time; give the frame rate (--fps, recording.fps)"
            )
        inner = native(self.layout.cut(picture))
        if self.find_brightest:
            self.brightest = max(self.brightest, float(inner.max()))
        averaged = inner if self.log is None else self.log(inner)
        number, reduced = len(self.store), self.store.slot()
        self.resizer.into(averaged, reduced)
        self.recorded.append(time)
        self.repeats.offer(number, reduced)
        frame = StreamedFrame(time, picture, inner, averaged, reduced)
        self.sampler.offer(number, frame)
        return frame

    def keep_good_run(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Leave out black frames, a hand, what follows a cut: keep the longest run of frames of one scene."""
        if self.settings.frames == "all" or self.settings.start == "auto" or self.header.line:
            return values
        found = find_good_run(values, self.header.black)
        if found is None:
            return values
        start, stop = (self.settings.first + self.settings.every * k for k in (found.first, found.stop))
        counted = "" if start == found.first else " (counted from the first that is used)"
        self.warnings.append(
            f"{'; '.join(found.reasons)}{counted}: the longest run of one scene was used, frames {start} to {stop - 1} "
            f'(--start {start} --stop {stop}); recording.frames = "all" uses all'
        )
        return self._keep(values, slice(found.first, found.stop))

    def begin_after_source(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Leave out the frames during which dye still comes in, where its end is seen."""
        plain = self.settings.observable == "dark" and self.settings.reference is None
        all_asked = self.settings.frames == "all" or self.settings.dripping == "none"
        if all_asked or not plain or self.settings.start == "auto" or self.header.line:
            return values
        found = find_end_of_source(values, np.asarray(self.recorded, float), self.header.black)
        if found is None:
            return values
        start = self.settings.first + self.settings.every * (self.begin + found.first)
        self.warnings.append(
            f"dye comes in until shortly before frame {start} ({found.share:.0%} of what is there then), and no law of "
            f"what spreads holds while it does: the recording begins there (--start {start}); "
            'recording.dripping = "none" uses all'
        )
        return self._keep(values, slice(found.first, len(values)))

    def _keep(self, values: NDArray[np.float32], kept: slice) -> NDArray[np.float32]:
        """Leave out all frames but these, of everything that there is one of for each frame."""
        self.begin += kept.start
        self.recorded, self.b_frames = self.recorded[kept], self.b_frames[kept]
        self.sampler.keep(kept.start, kept.stop)
        return values[kept]

    def look_for_objects(self, values: NDArray[np.float32]) -> Objects | None:
        """Find what never moves, where light passes through the scene and nothing was said about the picture."""
        plain = self.settings.observable == "dark" and self.settings.reference is None
        if self.settings.objects == "none" or not plain or self.settings.start == "auto" or self.header.line:
            return None
        return look_for_objects(values, self.header.black, self.whole)

    def dust_off(self, values: NDArray[np.float32]) -> None:
        """Divide specks out of the reduced frames, in place; say what else is in the picture and stays there."""
        self.objects = found = self.look_for_objects(values)
        if found is not None:
            found.divide_out(values, self.header.black)
            if self.hidden is not None:
                fill(values, self.hidden)
            self.notes += [found.note, "" if self.hidden is None else found.mask_note]
            self.warnings += [found.doubt] if found.doubt else []

    @property
    def hidden(self) -> NDArray[np.bool_] | None:
        """Cells (y, x) of things in which no law holds; None: there are none, or it was said where the law holds."""
        found, said = self.objects, self.settings.mask is not None or self.settings.edges == "no_flux"
        return None if found is None or not found.masked or said else found.hidden

    def settle(self, values: NDArray[np.float32], progress: Progress | None, known: Motion | None = None) -> None:
        """Find how the camera shook; where it did, read the frames again and reduce each from where it was taken.

        ``known``: how it moved, where that has been measured already.
        """
        mode = self.settings.stabilise
        if self.header.line:
            return  # the rows of a line are all the same: nothing shows how it moved
        if mode == "auto" and self.settings.start == "auto":
            mode = "none"  # a bleach jumps, and a droplet that fills again is not told from one that moves
        fits = known is not None and len(known.shifts) == len(values)
        self.motion = motion = known if fits else measure_motion(values, mode)
        if motion is None or not motion.corrected:
            return
        self.notes.append(motion.note)
        _, _, width, height = self.layout.inner
        pixels = np.array([height, width]) / self.layout.grid.shape
        shifted = ShiftedResizer((height, width), self.layout.grid.shape)
        for number, picture in enumerate(self._selected(progress), start=-self.begin):
            if number < 0:
                continue
            inner = native(self.layout.cut(picture))
            averaged = inner if self.log is None else self.log(inner)
            dy, dx = motion.shifts[number] * pixels
            if motion.turns:
                turned = turn(motion.angles[number], motion.zooms[number])
                shifted.turned_into(averaged, (dy, dx), turned, values[number])
            else:
                shifted.into(averaged, (dy, dx), values[number])
            if number + 1 == len(values):
                return

    def _selected(self, progress: Progress | None, recording: Seen | None = None) -> Iterator[Picture]:
        """Return the selected frames once more, in the channel that is read or in that of another ``recording``."""
        start, every = self.settings.first, self.settings.every
        for index, frame in enumerate((recording or self.recording).frames()):
            if index >= start and (index - start) % every == 0:
                yield frame.picture
            if progress is not None:
                progress(index + 1, self.header.frames)

    def colour_differences(self) -> tuple[NDArray[np.float32], float] | None:
        """Reduce the colour differences that the channel lies in, of frames a given share of the film apart.

        Returns them (t, y, x) in pixel values, and the size of a step; None where the channel lies in luma. In a
        channel, the noise of luma hides what the encoder held back of them.
        """
        found = self.recording.differences()
        if found is None:
            return None
        step, frames = found
        start, every = self.settings.first + self.settings.every * (self.begin + self.first), self.settings.every
        count = len(self.recorded) - self.first
        wanted = {start + every * k for k in range(0, count, max(1, round(count / STEPS)))}
        reduced = np.empty((len(wanted), *self.layout.grid.shape), np.float32)
        places = iter(reduced)
        for index, frame in enumerate(frames):
            if index in wanted:
                self.resizer.into(native(self.layout.cut(frame.picture)), next(places))
            if index == max(wanted):
                break
        return reduced, step

    def even_out(self, values: NDArray[np.float32]) -> Illumination | None:
        """Divide the light out of the reduced frames, in place, where it changes or is uneven."""
        white = self.settings.white or self.header.white
        other = None if self.log is not None else partial(self._other_colour, len(values))
        found = even_out(values, self.settings, self.header, white, self.log is not None, other)
        if found is not None:
            self.notes += found.notes
            self.warnings += found.doubts
        return found

    def _other_colour(self, frames: int) -> OtherColour | None:
        """Read the film in the colour in which what spreads shows least; None where it shows in all of them."""
        name = least_coloured(self.recording.channel)
        if name is None:
            return None
        seen, (_, _, width, height), grid = self.recording.in_channel(name), self.layout.inner, self.layout.grid.shape
        coarse = tuple(max(1, round(n * min(1.0, SIDE / max(grid)))) for n in grid)
        resize, header = AreaResizer((height, width), (coarse[0], coarse[1])), seen.header
        intensity = empty((frames, *coarse), np.float32)
        skipped = self.begin + self.first
        for number, picture in enumerate(self._selected(None, seen), start=-skipped):
            if number >= 0:
                intensity[number] = resize(native(self.layout.cut(picture)))
            if number + 1 == frames:
                break
        intensity -= np.float32(header.black)
        intensity *= np.float32(header.gain)
        return OtherColour(name, intensity, 0.0 if header.limit is None else header.gain)

    def begin_after_jump(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Say where the scene jumps, and leave out what comes before a bleach where the start is to be found."""
        jumps = tuple(replace(jump, first=jump.first + self.begin) for jump in find_jumps(values))
        bleach = max(jumps, key=lambda jump: jump.size, default=None)
        if self.settings.start != "auto":
            self.warnings += [describe_jump(jump, self.settings) for jump in jumps]
            return values
        if bleach is None:
            self.notes.append("no jump of the scene was found: all frames are used")
            return values
        self.notes.append(
            f"the scene jumps (a bleach) before frame {self.settings.every * bleach.first}: the recording begins there"
        )
        self.first = bleach.first
        self.warnings += [describe_jump(jump, self.settings) for jump in jumps if jump.first > bleach.first]
        return values[bleach.first :]

    def to_observable(self, values: NDArray[np.float32], before: NDArray[np.float32]) -> Normalisation:
        """Turn the reduced frames into u, in place; ``before``: the reduced frames that a bleach cut off."""
        settings = self.settings
        picture = self._reference_picture()
        if settings.reference == BEFORE and not len(before):
            raise InputError(
                "the reference is what comes before the bleach, and no bleach was found; name the frames "
                "(--reference 0,2) or a picture"
            )
        if self.log is not None:
            if picture is None and not len(before):
                self.notes.append(f"I0 is each cell's {REFERENCE_PERCENTILE:g}th percentile of brightness in time")
                return take_absorbance(values, percentile_picture(values))
            level = before.mean(axis=0) if picture is None else self.resizer(self.log(picture))
            return take_absorbance(values, np.asarray(level, float))
        if picture is not None or settings.reference == BEFORE:
            reduced = before.mean(axis=0, dtype=float) if picture is None else self.resizer(np.asarray(picture, float))
            return self._divide(values, np.asarray(reduced, float))
        at_limit = float(np.mean([sample.white_share for sample in self.sampler.samples]))
        dark = dark_offset(settings, self.header, values, self._dark_picture())
        white = choose_white(settings, self.header, values, self.brightest, at_limit)
        line = normalise(values, settings.observable, self.header, white.value, dark)
        self.notes += [white.note, clip_headroom(values, self.header, line)]
        self.warnings += [white.warning] if white.warning else []
        return line

    def _divide(self, values: NDArray[np.float32], reference: NDArray[np.float64]) -> Normalisation:
        """Divide by the reference, both less the dark level; pictures are intensities, a film's luma is made one."""
        black, gain = np.float32(self.header.black), np.float32(self.header.gain)
        values -= black
        values *= gain
        if not names_picture(self.settings.reference):
            reference = (reference - float(black)) * float(gain)
        dark = self.settings.dark if self.settings.dark == OUTSIDE else self._dark_picture()
        if isinstance(dark, np.ndarray):
            dark = np.asarray(self.resizer(np.asarray(dark, float)), float)
        named = self.settings.reference
        origin = (
            f"{named}"
            if isinstance(named, str)
            else f"the mean of frames {self.reference.first} to {self.reference.last}"
        )
        if named == BEFORE:
            origin = f"the mean of the {self.first} frames before the bleach"
        self.light = light = calibrate_light(reference, dark, origin)
        light.apply(values, self.settings.observable)
        self.notes += light.notes
        self.warnings += light.warnings
        slope = float(gain) * float(np.mean(1.0 / light.span))
        sign = 1.0 if self.settings.observable == "bright" else -1.0
        base = -float(np.mean((light.dark + float(black * gain)) / light.span))
        return Normalisation(sign * slope, base if sign > 0 else 1.0 - base, by_picture=True)
