"""What the camera did, and what was done about it: response, channel, shake, things in the picture, saturation."""

from __future__ import annotations

import numpy as np

from video2pde.recording.read import RecordingResult
from video2pde.report.content.words import Story
from video2pde.report.document import Axis, Chart, Column, Item, Note, Series, Table, Tiles

CURVE_POINTS = 65
LEFT_OUT = ("is cut off", "masked")
"""Words of the notes about parts of the picture that were left out."""


def show_camera(story: Story) -> list[Item]:
    """Show what was undone of the camera's doing; nothing where nothing was."""
    recording = story.run.recording
    if recording is None:
        return []
    moved = _motion(recording, story)
    return [*_response(recording), *_channel(recording), *moved, *_specks(recording), *_left_out(recording)]


def _response(recording: RecordingResult) -> list[Item]:
    response = None if recording.header is None else recording.header.response
    if response is None:
        return []
    pixel = np.linspace(0.0, 1.0, CURVE_POINTS)
    curve = Chart(
        "Response of the camera",
        Axis("pixel value", "share of white"),
        Axis("light", "share of white"),
        (
            Series("as recorded", pixel, pixel, colour="red"),
            Series("after the correction", pixel, response(pixel), colour="blue"),
        ),
        f"The camera's response ({response.words}) was undone before u was formed.",
    )
    return [Tiles((curve,))]


def _channel(recording: RecordingResult) -> list[Item]:
    channel = recording.channel
    if channel is None or channel.mix is None or not channel.views:
        return []
    columns = (Column("channel"), *(Column(name, align="right") for name in ("contrast", "noise", "contrast/noise")))
    rows = tuple((view.name, view.contrast, view.noise, view.ratio) for view in channel.views)
    return [Table(columns, rows, f"{channel.note[0].upper()}{channel.note[1:]}.")]


def _motion(recording: RecordingResult, story: Story) -> list[Item]:
    motion = recording.motion
    if motion is None or not motion.corrected:
        return []
    times = recording.field.times
    y, x = motion.shifts[-len(times) :].T
    course = Chart(
        "Where the camera pointed",
        Axis("time", "s"),
        Axis("displacement of the picture", "cells"),
        (
            Series("along x, as recorded", times, x, colour="red"),
            Series("along y, as recorded", times, y, colour="orange"),
            Series("after the correction", times, np.zeros(len(times)), colour="blue"),
        ),
        f"{motion.note[0].upper()}{motion.note[1:]}. Its error is {motion.error:.2g} cells in a frame.",
        spans=story.spans(),
    )
    if not motion.turns:
        return [Tiles((course,))]
    turned = Chart(
        "How the camera was held",
        Axis("time", "s"),
        Axis("angle, zoom"),
        (
            Series("angle, degrees", times, np.rad2deg(motion.angles[-len(times) :]), colour="red"),
            Series("zoom, per cent", times, 100 * motion.zooms[-len(times) :], colour="blue"),
        ),
        "Rotation and zoom of each frame, which were undone.",
        spans=story.spans(),
    )
    return [Tiles((course, turned))]


def _specks(recording: RecordingResult) -> list[Item]:
    objects, grid = recording.objects, recording.field.grid
    if objects is None or not objects.specks:
        return []
    row, column = np.unravel_index(int(np.argmin(objects.shade)), objects.shade.shape)
    across = Chart(
        "Specks that never move",
        Axis("place", grid.unit),
        Axis("share of the light let through"),
        (
            Series(f"along x, y = {grid.y[row]:.3g}", grid.x, objects.shade[row], colour="red"),
            Series(f"along y, x = {grid.x[column]:.3g}", grid.y, objects.shade[:, column], colour="orange"),
        ),
        f"{objects.note[0].upper()}{objects.note[1:]}. The row and the column through the darkest one; after the "
        "correction the share is 1 everywhere.",
    )
    return [Tiles((across,))]


def _left_out(recording: RecordingResult) -> list[Item]:
    """Name the parts of the picture that were left out; their outline is in the pictures of the field."""
    notes = [note for note in recording.field.provenance.notes if any(word in note for word in LEFT_OUT)]
    return [Note(f"{note[0].upper()}{note[1:]}.", "info") for note in notes]
