"""Read a recording into a field: one pass over the frames, each reduced as soon as it is decoded."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Field, Provenance
from video2pde.progress import Progress
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.base import DamagedError, Header, Picture
from video2pde.recording.channel import Channel
from video2pde.recording.checks import (
    camera_stages,
    Checks,
    field_stage,
    measure_retention,
    measure_saturation,
    resize_mean_change,
    sweep_smoothing,
)
from video2pde.recording.clipping import find_clipping, remove_clipping
from video2pde.recording.edge import restore_edge
from video2pde.recording.encoding import measure_encoding
from video2pde.recording.fade import require_light
from video2pde.recording.illumination import even_out, Illumination
from video2pde.recording.jumps import describe_jump, find_jumps
from video2pde.recording.layout import Layout, plan_layout
from video2pde.recording.light import calibrate_light, dark_offset, Light, read_light_picture
from video2pde.recording.mask import make_mask, threshold_mask, without_rim
from video2pde.recording.observable import (
    choose_white,
    clip_headroom,
    LogIntensity,
    Normalisation,
    normalise,
    percentile_picture,
    REFERENCE_PERCENTILE,
    ReferenceFrames,
    smooth_frames,
    take_absorbance,
)
from video2pde.recording.resize import AreaResizer, native
from video2pde.recording.sampling import Sample, Sampler, StreamedFrame
from video2pde.recording.seen import Seen
from video2pde.recording.source import (
    BEFORE,
    hash_recording,
    names_picture,
    open_recording,
    OUTSIDE,
    require_readable,
)
from video2pde.recording.stability import measure_contact, measure_flicker, measure_shake, RepeatCounter
from video2pde.recording.timing import assemble, FrameStore, plan_times
from video2pde.recording.warn import collect_warnings
from video2pde.settings import RecordingSettings, Settings

SAVED_FIELD_KEYS = ("start", "stop", "every", "mask", "edges", "allow_truncated")


@dataclass(frozen=True, eq=False)
class RecordingResult:
    """Hold a field with the checks on it and a few small camera frames for the pictures.

    ``samples`` are whole camera frames, reduced; ``layout`` says which part of them became the field.
    All of them are None or empty where a saved field was loaded, which has no camera frames.
    """

    field: Field
    warnings: tuple[str, ...]
    checks: Checks | None = None
    samples: tuple[Sample, ...] = ()
    layout: Layout | None = None
    header: Header | None = None
    illumination: Illumination | None = None
    channel: Channel | None = None


def read_field(
    path: str | os.PathLike[str],
    settings: RecordingSettings | Settings | None = None,
    progress: Progress | None = None,
) -> Field:
    """Read a recording of any kind into the field u(t, y, x).

    Parameters
    ----------
    path : film, stack, folder of pictures, array file or saved field.
    settings : None: the defaults.
    progress : called with the number of frames read and the number expected, None where that is unknown.

    Returns
    -------
    The field.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = vp.example_field().save(pathlib.Path(tempfile.mkdtemp()) / "field.npz")
    >>> read_field(path)
    Field(60 frames of 40×40, 8 s, 40×40 image units, u in [-0.008037, 0.789])
    """
    return read_recording(path, settings, progress).field


def read_recording(
    path: str | os.PathLike[str],
    settings: RecordingSettings | Settings | None = None,
    progress: Progress | None = None,
) -> RecordingResult:
    """Read a recording into a field, with checks, warnings and sample frames.

    The order is the paper's: grey values, crop, border, observable, resize, smoothing.

    Parameters
    ----------
    path : film, stack, folder of pictures, array file or saved field.
    settings : None: the defaults.
    progress : called with the number of frames read and the number expected, None where that is unknown.

    Returns
    -------
    The field with checks, warnings and a few camera frames.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = vp.example_field().save(pathlib.Path(tempfile.mkdtemp()) / "field.npz")
    >>> read_recording(path).field
    Field(60 frames of 40×40, 8 s, 40×40 image units, u in [-0.008037, 0.789])
    """
    chosen = settings.recording if isinstance(settings, Settings) else settings or RecordingSettings()
    source = Path(path)
    require_readable(source)
    if source.is_file() and is_saved_field(source):
        return _load_saved(source, chosen)
    recording = Seen(open_recording(source, chosen), chosen)
    header = recording.header
    layout = plan_layout(header, chosen)
    if chosen.fps is None and not header.timed:
        raise InputError(f"{source} carries no frame times; give the frame rate (--fps, recording.fps)")
    reading = _Reading(recording, chosen, layout)
    reading.run(progress)
    return _build(reading)


def frame_time(header: Header, settings: RecordingSettings, index: int, recorded: float) -> float:
    """Return the time of a frame, s: as recorded, or by the frame rate that was given."""
    if settings.fps is None:
        return recorded
    return (recorded if header.counted else index) / settings.fps


class _Reading:
    """Stream the frames once and keep, of each, the grid's cell means; of some, a sample."""

    def __init__(self, recording: Seen, settings: RecordingSettings, layout: Layout) -> None:
        self.recording, self.settings, self.layout = recording, settings, layout
        self.header = recording.header
        _, _, width, height = layout.inner
        self.resizer = AreaResizer((height, width), layout.grid.shape)
        self.store = FrameStore(layout.grid.shape)
        self.sampler = Sampler(self.header, layout, self.resizer, self._expected())
        self.log = LogIntensity(self.header, self._dark_picture()) if settings.observable == "absorbance" else None
        self.reference = ReferenceFrames(settings.reference, (height, width))
        self.first = 0
        self.light: Light | None = None
        self.repeats = RepeatCounter()
        self.find_brightest = settings.white is None and self.header.white is None
        self.warnings: list[str] = []
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

    def even_out(self, values: NDArray[np.float32]) -> Illumination | None:
        """Divide the light out of the reduced frames, in place, where it changes or is uneven."""
        white = self.settings.white or self.header.white
        found = even_out(values, self.settings, self.header, white, self.log is not None)
        if found is not None:
            self.notes += found.notes
            self.warnings += found.doubts
        return found

    def begin_after_jump(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Say where the scene jumps, and leave out what comes before a bleach where the start is to be found."""
        jumps = find_jumps(values)
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


def _build(reading: _Reading) -> RecordingResult:
    """Assemble the field from the reduced frames, then check it."""
    settings, layout, header = reading.settings, reading.layout, reading.header
    whole = assemble(reading.store)
    found = settings.start == "auto"
    illumination = None if found else reading.even_out(whole)  # before jumps are looked for: light jumps, too
    values = reading.begin_after_jump(whole)
    illumination = reading.even_out(values) if found else illumination
    recorded = np.asarray(reading.recorded[reading.first :], dtype=np.float64)
    plan = plan_times(recorded, 0.0 if settings.fps else header.tick)
    reading.notes.append(plan.note)
    reading.warnings += [plan.warning] if plan.warning else []
    if settings.observable == "dark" and reading.log is None:
        first = reading.first if settings.start == "auto" else settings.start + settings.every * reading.first
        require_light(values, header.black, first, settings.every, str(reading.recording.path))
    line = reading.to_observable(values, whole[: reading.first])
    if values.min() == values.max():
        raise InputError(
            f"{reading.recording.path} is constant: every value of the field is {values.flat[0]:.4g}; nothing to learn"
        )
    samples = reading.sampler.after(reading.first)
    saturation = measure_saturation(samples, layout, values, plan.times)
    if settings.unclip and not line.by_picture:
        reading.notes += _mend_empty_end(values, saturation.cells, abs(line.slope), header.limit)
    stages = [*camera_stages(samples, len(plan.recorded), layout, header, line), field_stage("resized", values)]
    middle = len(values) // 2
    sweep = sweep_smoothing(values[middle], middle, float(plan.times[middle]), layout.grid)
    if settings.smooth > 0:
        smooth_frames(values, settings.smooth)
        stages.append(field_stage(f"smoothed, σ = {settings.smooth:g}", values))
    mask = None if settings.mask is None else make_mask(settings.mask, values, layout, header, reading.light)
    if mask is None and reading.light is not None and not reading.light.lit.all():
        mask = reading.light.lit
        reading.notes.append(
            "the law is taken to hold where the reference has light; --mask droplet keeps off its edge"
        )
    if mask is None and settings.edges == "measured":
        mask = without_rim(layout.grid.shape)
        reading.notes.append("measured edges: the picture's rim follows the recording, the law holds inside it")
    provenance = Provenance(
        str(reading.recording.path),
        hash_recording(open_recording(reading.recording.path, settings), settings),
        settings.model_dump(mode="json"),
        tuple(note for note in reading.notes if note),
        None if reading.header.limit is None else int(reading.header.limit).bit_length(),
    )
    b_frames = np.array(reading.b_frames[reading.first :]) if any(reading.b_frames) else None
    encoding = None if header.limit is None else measure_encoding(values, _level(line, header.limit), b_frames)
    field = Field(values, plan.times, layout.grid, mask, plan.recorded, provenance, encoding)
    checks = Checks(
        sampled=len(samples),
        stages=tuple(stages),
        resize_mean_change=resize_mean_change(samples, line),
        retention=measure_retention(samples, header, layout),
        sweep=sweep,
        saturation=saturation,
        flicker=measure_flicker(values),
        shake=measure_shake(values),
        repeats=reading.repeats.result(),
        held_back=0.0 if encoding is None else encoding.held_back,
        contact=measure_contact(values, plan.times),
    )
    warnings = (*reading.warnings, *collect_warnings(checks, len(plan.recorded), mask is not None))
    channel = reading.recording.channel
    return RecordingResult(field, warnings, checks, tuple(samples), layout, header, illumination, channel)


def _level(line: Normalisation, limit: float) -> float:
    """Return one step of a pixel's whole numbers in units of u; of absorbance, that of a white pixel."""
    return abs(line.slope) / (limit * np.log(10)) if line.logarithmic else abs(line.slope)


def _mend_empty_end(
    values: NDArray[np.float32], saturated: NDArray[np.float32], level: float, limit: float | None
) -> list[str]:
    """Undo, in place, what a camera does where there is nothing to see; say what was done."""
    clipping = find_clipping(values, saturated)
    if clipping is not None:
        remove_clipping(values, clipping)
        return [clipping.note]
    if limit is not None and limit <= 255 and restore_edge(values, level):
        return ["a film without noise: the edge of the picture, which 8 bits round away, was continued outwards"]
    return []


def _load_saved(path: Path, settings: RecordingSettings) -> RecordingResult:
    """Load a field that was saved before; of the settings, frame selection and a threshold mask apply."""
    field = Field.load(path)
    if field.encoding is None and field.provenance.bits is not None:
        # written before fields carried it
        field = replace(field, encoding=measure_encoding(field.values, 1 / (2**field.provenance.bits - 1)))
    defaults = RecordingSettings()
    ignored = [
        name
        for name in RecordingSettings.model_fields
        if name not in SAVED_FIELD_KEYS and getattr(settings, name) != getattr(defaults, name)
    ]
    selected = slice(settings.first, settings.stop, settings.every)
    if len(range(*selected.indices(len(field)))) < 2:
        raise InputError(
            f"start={settings.start}, stop={settings.stop}, every={settings.every} select fewer than two of the "
            f"{len(field)} frames of {path}"
        )
    if settings.first or settings.stop is not None or settings.every > 1:
        field = replace(field.frames(selected), recorded_times=None)
    if settings.mask is not None:
        field = replace(field, mask=threshold_mask(settings.mask, field.values))
    elif field.mask is None and settings.edges == "measured":
        field = replace(field, mask=without_rim(field.grid.shape))
    warnings = (f"{path} is a saved field: {', '.join(ignored)} do not apply to it",) if ignored else ()
    return RecordingResult(field, warnings)
