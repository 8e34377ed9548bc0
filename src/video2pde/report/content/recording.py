"""Sections on the recording: preprocessing and checks, smoothing, drift and background."""

from __future__ import annotations

from video2pde.drift import Drift
from video2pde.recording.read import RecordingResult
from video2pde.report.content.camera import show_camera
from video2pde.report.content.words import count, listed, number, percent, Story
from video2pde.report.document import Axis, Chart, Details, Item, Marker, Section, Series, Tiles
from video2pde.report.recording_tables import list_checks, list_preprocessing, list_smoothing

_METHODS = {
    "border": "from the frame of pixels around the picture",
    "percentile": "from a low percentile of each frame, because the plume touches the border",
    "none": "not subtracted: the centroid is the raw one",
}


def tell_preprocessing(story: Story) -> Section | None:
    """Tell how the film became a field, and what the checks say."""
    recording = story.run.recording
    if recording is None:
        return None
    items: list[Item] = []
    if recording.checks is not None:
        items += [
            story.table(list_checks(recording.checks, len(recording.field))),
            *story.picture(
                "recording-panels", "First, middle and last camera frame with the crop box, the crop, and the field."
            ),
            story.table(list_preprocessing(recording.checks)),
        ]
    items += show_camera(story)
    items += _illumination(story)
    items += story.picture(
        "snapshots",
        "The field at four times, and u along the middle row of each.",
        "Dashed: the row shown below each picture.",
    )
    if recording.checks is not None:
        background = story.picture("recording-background", "Background level over time, and saturated pixels.")
        items += [Details("Background level and saturated pixels", background)] if background else []
    return Section("preprocessing", "Preprocessing and checks", _preprocessing(recording), tuple(items))


def _illumination(story: Story) -> list[Item]:
    """Show the light before and after it was divided out; nothing where nothing was."""
    recording = story.run.recording
    light = None if recording is None else recording.illumination
    if recording is None or light is None or not light.corrected:
        return []
    times = recording.field.times
    course = Chart(
        "Light over time",
        Axis("time", "s"),
        Axis("brightness of the background", "relative"),
        (
            Series("as recorded", times, light.measured, colour="red"),
            Series("after the correction", times, light.measured / light.gain, colour="blue"),
        ),
        " ".join(f"{note[0].upper()}{note[1:]}." for note in light.notes),
        spans=story.spans(),
    )
    if light.flat is None:
        return [Tiles((course,))]
    grid, (rows, columns) = recording.field.grid, light.flat.shape
    uneven = Chart(
        "Light over the picture",
        Axis("distance along the line", grid.unit),
        Axis("f", "relative"),
        (
            Series("middle row", grid.x, light.flat[rows // 2], colour="red"),
            Series("middle column", grid.y, light.flat[:, columns // 2], colour="blue"),
        ),
        "The surface through the background that the frames were divided by, along the picture's middle lines.",
    )
    return [Tiles((course, uneven))]


def _preprocessing(recording: RecordingResult) -> str:
    field = recording.field
    ny, nx = field.grid.shape
    text = (
        f"{count(len(field), 'frame')} over {field.duration:.4g} s became a field of {ny} × {nx} cells "
        f"with u from {field.values.min():.3g} to {field.values.max():.3g}"
    )
    if recording.checks is None:
        return f"{text}; the recording was a saved field, so there are no camera frames to check."
    sheet = list_checks(recording.checks, len(field))
    failed = [
        name for name, check in zip(sheet.column("check"), sheet.column("passed"), strict=True) if check.passed is False
    ]
    return f"{text}; " + (f"to be looked at: {listed(failed)}." if failed else "every check passed.")


def tell_smoothing(story: Story) -> Section | None:
    """Tell what a Gaussian filter would do to one frame."""
    recording = story.run.recording
    if recording is None or recording.checks is None:
        return None
    sweep, used = recording.checks.sweep, story.run.settings.recording.smooth
    line = Chart(
        "Middle row under each filter",
        Axis("x", sweep.unit),
        Axis("u"),
        tuple(Series(f"σ = {row.sigma:g}", sweep.positions, sweep.line[i]) for i, row in enumerate(sweep.rows)),
        f"The middle row of the frame at {sweep.time:.4g} s for {len(sweep.rows)} filter widths.",
    )
    change = Chart(
        "Change of the frame",
        Axis("σ", "cells"),
        Axis("change of u"),
        (
            Series("rms", [r.sigma for r in sweep.rows], [r.rms for r in sweep.rows], markers=True, colour="blue"),
            Series(
                "largest", [r.sigma for r in sweep.rows], [r.maximum for r in sweep.rows], markers=True, colour="red"
            ),
        ),
        "The change grows with the filter's width.",
        markers=(Marker("used", used),),
    )
    one = next((row for row in sweep.rows if row.sigma == 1.0), sweep.rows[-1])
    effect = f"a filter of σ = {one.sigma:g} cells would change a frame by {number(one.rms, digits=2)} (rms)"
    sentence = (
        f"The fit uses the field unfiltered; {effect} and bias the coefficients."
        if used == 0
        else f"The field was filtered with σ = {used:g} cells; {effect}."
    )
    pictures = story.picture("smoothing", "One frame under each filter, and its difference from the unfiltered one.")
    items: tuple[Item, ...] = (Tiles((line, change)), *pictures, story.table(list_smoothing(sweep)))
    return Section("smoothing", "Smoothing sweep", sentence, items)


def tell_drift(story: Story) -> Section | None:
    """Tell how the plume drifts and what background was taken off."""
    drift = story.run.longest_drift
    if drift is None:
        return None
    items = (
        Tiles((_path(drift), _velocity(story, drift))),
        Tiles((_level(story, drift), _content(story, drift))),
    )
    region = story.picture("drift", "The drift in one picture, with the region over which the centroid was taken.")
    folded = (Details("Region over which the centroid was taken", region),) if region else ()
    return Section("drift", "Drift and background", _drift_sentence(drift), (*items, *folded))


def _drift_sentence(drift: Drift) -> str:
    (v_x, v_y), (e_x, e_y) = drift.mean, drift.mean_error
    if not drift.velocity.any():
        return "No drift was measured; the law is sought in the frame of the camera."
    text = (
        f"The plume drifts at ({number(v_x, digits=3)} ± {number(e_x, digits=1)}, {number(v_y, digits=3)} ± "
        f"{number(e_y, digits=1)}) {drift.unit}/s on average (x to the right, y downwards); a background of "
        f"{number(float(drift.background.mean()), digits=3)} was estimated {_METHODS[drift.method]}."
        if drift.method != "none"
        else f"The raw centroid moves at ({number(v_x, digits=3)}, {number(v_y, digits=3)}) {drift.unit}/s; "
        "the background was left in, which slows it down."
    )
    empty = len(drift.empty_frames)
    return text + (f" {count(empty, 'frame')} without signal had to be bridged." if empty else "")


def _path(drift: Drift) -> Chart:
    return Chart(
        "Path of the centroid",
        Axis("x", drift.unit),
        Axis("y", drift.unit, downwards=True),
        (
            Series("measured", drift.centroid[:, 0], drift.centroid[:, 1], style="scatter", colour="grey"),
            Series("smoothed", drift.smooth_centroid[:, 0], drift.smooth_centroid[:, 1], colour="red"),
            Series("start", drift.smooth_centroid[:1, 0], drift.smooth_centroid[:1, 1], style="scatter", colour="ink"),
        ),
        "The centroid's path over the picture, measured and smoothed.",
        equal_aspect=True,
    )


def _velocity(story: Story, drift: Drift) -> Chart:
    series = []
    for axis, name, colour in ((0, "v_x", "blue"), (1, "v_y", "red")):
        v, error = drift.velocity[:, axis], 2 * drift.velocity_error[:, axis]
        series.append(Series(name, drift.times, v, low=v - error, high=v + error, band=True, colour=colour))  # type: ignore[arg-type]
    return Chart(
        "Drift velocity",
        Axis("time", "s"),
        Axis("velocity", f"{drift.unit}/s"),
        tuple(series),
        "Both components of the drift over time, with bands of two standard errors.",
        "Bands: two standard errors.",
        spans=story.spans(),
        markers=(Marker("", 0.0, "y", "grey"),),
    )


def _level(story: Story, drift: Drift) -> Chart:
    return Chart(
        "Background",
        Axis("time", "s"),
        Axis("u"),
        (Series("background", drift.times, drift.background, colour="ink"),),
        f"The background over time; mean {drift.background.mean():.4g}.",
        spans=story.spans(),
    )


def _content(story: Story, drift: Drift) -> Chart:
    first, last = float(drift.mass[0]), float(drift.mass[-1])
    change = "" if first == 0 else f"It changes by {percent(last / first - 1)} over the recording."
    return Chart(
        "Signal above the background",
        Axis("time", "s"),
        Axis("∫(u − background) dA", f"{drift.unit}²"),
        (Series("content", drift.times, drift.mass, colour="ink"),),
        f"The plume's content over time. {change}",
        change,
        spans=story.spans(),
    )
