"""Read a recording into a field: one pass over the frames, each reduced as soon as it is decoded."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Encoding, Field, Light, Provenance
from video2pde.progress import Progress
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.base import Header
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
from video2pde.recording.clipping import Clipping, find_clipping, remove_clipping
from video2pde.recording.edge import restore_edge
from video2pde.recording.encoding import also_held_back, measure_encoding
from video2pde.recording.fade import require_light
from video2pde.recording.illumination import Illumination
from video2pde.recording.layout import Layout, plan_layout
from video2pde.recording.mask import enclose, threshold_mask, without_rim
from video2pde.recording.objects import Objects
from video2pde.recording.observable import (
    Normalisation,
    smooth_frames,
)
from video2pde.recording.reading import Reading
from video2pde.recording.region import choose_region, drive_rim
from video2pde.recording.sampling import Sample
from video2pde.recording.seen import Seen
from video2pde.recording.source import (
    hash_recording,
    open_recording,
    require_readable,
)
from video2pde.recording.stabilise import Motion
from video2pde.recording.stability import measure_contact, measure_flicker, Shake
from video2pde.recording.timing import assemble, plan_times
from video2pde.recording.warn import collect_warnings
from video2pde.settings import RecordingSettings, Settings

Frames = NDArray[np.float32]

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
    motion: Motion | None = None
    objects: Objects | None = None


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
    reading, whole = _read_scene(recording, chosen, layout, progress)
    return _build(reading, whole)


def _read_scene(
    recording: Seen, settings: RecordingSettings, layout: Layout, progress: Progress | None
) -> tuple[Reading, Frames]:
    """Read the frames of one scene; where walls or letters stand at its side, once more without them."""
    reading = Reading(recording, settings, layout)
    reading.run(progress)
    whole = reading.begin_after_source(reading.keep_good_run(assemble(reading.store)))
    reading.settle(whole, progress)
    asked = settings.crop is not None or settings.mask is not None
    found = None if asked else reading.look_for_objects(whole)
    if found is None or found.box is None:
        return reading, whole
    motion = None if reading.motion is None else reading.motion.about(*_middle_moves(layout, found.box))
    whole_shape, layout = layout.grid.shape, layout.within(found.box)
    reading = Reading(recording, settings, layout, whole_shape)
    reading.run(progress)
    whole = reading.begin_after_source(reading.keep_good_run(assemble(reading.store)))
    reading.notes.append(
        "what never moves at the picture's side (walls, a rim, letters) is cut off: "
        f'--crop {",".join(map(str, layout.crop))}; recording.objects = "none" leaves it'
    )
    reading.settle(whole, progress, motion)
    return reading, whole


def _middle_moves(layout: Layout, box: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return how far the middle of a part (y0, x0, height, width) lies from that of the whole, grid cells."""
    row, column, height, width = box
    return row + height / 2 - layout.grid.ny / 2, column + width / 2 - layout.grid.nx / 2


def _build(reading: Reading, whole: Frames) -> RecordingResult:
    """Assemble the field from the reduced frames, then check it."""
    settings, layout, header = reading.settings, reading.layout, reading.header
    values, before, illumination = _begin(reading, whole)
    plan = plan_times(np.asarray(reading.recorded[reading.first :], float), 0.0 if settings.fps else header.tick)
    reading.notes.append(plan.note)
    reading.warnings += [plan.warning] if plan.warning else []
    line = _observe(reading, values, before)
    samples = reading.sampler.after(reading.first)
    saturation = measure_saturation(samples, layout, values, plan.times)
    clipping = None
    if settings.unclip and not line.by_picture:
        clipping, notes = _mend_empty_end(values, saturation.cells, abs(line.slope), header.limit)
        reading.notes += notes
    stages = [*camera_stages(samples, len(plan.recorded), layout, header, line), field_stage("resized", values)]
    middle = len(values) // 2
    sweep = sweep_smoothing(values[middle], middle, float(plan.times[middle]), layout.grid)
    if settings.smooth > 0:
        smooth_frames(values, settings.smooth)
        stages.append(field_stage(f"smoothed, σ = {settings.smooth:g}", values))
    region = choose_region(reading, values, plan.times, saturation)
    encoding = _measure_encoding(reading, values, line, illumination)
    if encoding is not None and clipping is not None:
        encoding = replace(encoding, clipped_noise=clipping.sigma)
    light = None if illumination is None else Light(illumination.unknown, settings.observable)
    provenance = _provenance(reading)
    field = Field(values, plan.times, layout.grid, region.mask, plan.recorded, provenance, encoding, light=light)
    field = enclose(field) if settings.edges == "no_flux" else field
    checks = Checks(
        sampled=len(samples),
        stages=tuple(stages),
        resize_mean_change=resize_mean_change(samples, line),
        retention=measure_retention(samples, header, layout),
        sweep=sweep,
        saturation=saturation,
        flicker=measure_flicker(values),
        shake=_shake_left(reading.motion),
        repeats=reading.repeats.result(),
        held_back=0.0 if encoding is None else encoding.held_back,
        contact=measure_contact(values, plan.times),
    )
    found = collect_warnings(checks, len(plan.recorded), region.bounded, header.line, region.left_out)
    warnings = (*reading.warnings, *found)
    channel, motion = reading.recording.channel, reading.motion
    return RecordingResult(
        field=field,
        warnings=warnings,
        checks=checks,
        samples=tuple(samples),
        layout=layout,
        header=header,
        illumination=illumination,
        channel=channel,
        motion=motion,
        objects=reading.objects,
    )


def _begin(reading: Reading, whole: Frames) -> tuple[Frames, Frames, Illumination | None]:
    """Return the frames from the beginning on, those before it, and what light was divided out."""
    reading.dust_off(whole)
    if reading.settings.start == "auto":
        values = reading.begin_after_jump(whole)
        illumination = reading.even_out(values)
    else:  # before jumps are looked for: light jumps, too
        illumination = reading.even_out(whole)
        values = reading.begin_after_jump(whole)
    return values, whole[: reading.first], illumination


def _observe(reading: Reading, values: Frames, before: Frames) -> Normalisation:
    """Turn grey values into u, in place; refuse what shows nothing."""
    settings, path = reading.settings, reading.recording.path
    if settings.observable == "dark" and reading.log is None:
        first = settings.first + settings.every * (reading.begin + reading.first)
        require_light(values, reading.header.black, first, settings.every, str(path))
    line = reading.to_observable(values, before)
    if values.min() == values.max():
        raise InputError(f"{path} is constant: every value of the field is {values.flat[0]:.4g}; nothing to learn")
    return line


def _measure_encoding(
    reading: Reading, values: Frames, line: Normalisation, illumination: Illumination | None
) -> Encoding | None:
    """Measure what an encoder did; None where pixels are no whole numbers."""
    if reading.header.limit is None:
        return None
    b_frames = np.array(reading.b_frames[reading.first :]) if any(reading.b_frames) else None
    corrected = any(part is not None and part.corrected for part in (illumination, reading.motion))
    remade = reading.layout.inner[2] / reading.layout.grid.shape[1] if corrected else None
    level, differences = _level(line, reading.header.limit), reading.colour_differences()
    found = measure_encoding(values, level, b_frames, remade)
    if differences is None:
        return found
    values, step = differences
    (_, _, width, height), (ny, nx) = reading.layout.inner, reading.layout.grid.shape
    return also_held_back(found, np.float32(abs(line.slope)) * values, step * level, width * height / (4 * ny * nx))


def _provenance(reading: Reading) -> Provenance:
    settings, limit = reading.settings, reading.header.limit
    return Provenance(
        str(reading.recording.path),
        hash_recording(open_recording(reading.recording.path, settings), settings),
        settings.model_dump(mode="json"),
        tuple(note for note in reading.notes if note),
        None if limit is None else int(limit).bit_length(),
    )


def _shake_left(motion: Motion | None) -> Shake:
    """Return how much the field still shakes: what was measured, or its error where frames were put back."""
    if motion is None:
        return Shake(0.0, 0.0)
    return Shake(motion.error if motion.corrected else motion.rms, motion.error)


def _level(line: Normalisation, limit: float) -> float:
    """Return one step of a pixel's whole numbers in units of u; of absorbance, that of a white pixel."""
    return abs(line.slope) / (limit * np.log(10)) if line.logarithmic else abs(line.slope)


def _mend_empty_end(
    values: Frames, saturated: Frames, level: float, limit: float | None
) -> tuple[Clipping | None, list[str]]:
    """Undo, in place, what a camera does where there is nothing to see; say what was done."""
    clipping = find_clipping(values, saturated)
    if clipping is not None:
        remove_clipping(values, clipping)
        return clipping, [clipping.note]
    if limit is not None and limit <= 255 and restore_edge(values, level):
        return None, ["a film without noise: the edge of the picture, which 8 bits round away, was continued outwards"]
    return None, []


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
    elif drive_rim(field, settings):
        field = replace(field, mask=without_rim(field.grid.shape))
    if settings.edges == "no_flux":
        field = enclose(field)
    warnings = (f"{path} is a saved field: {', '.join(ignored)} do not apply to it",) if ignored else ()
    return RecordingResult(field, warnings)
