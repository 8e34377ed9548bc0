"""Figures of the recording stage: camera frames, fields and checks, drawn as the stage left them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from video2pde.errors import InputError
from video2pde.files import atomic_path
from video2pde.recording.base import Header
from video2pde.recording.checks import Checks
from video2pde.recording.layout import Layout
from video2pde.recording.preview_figure import CROP_BOX
from video2pde.recording.read import RecordingResult

FIELD_COLOURS = "viridis"
DOTS_PER_INCH = 120


def write_recording_figures(
    result: RecordingResult, folder: str | os.PathLike[str], formats: tuple[str, ...] = ("png",)
) -> tuple[Path, ...]:
    """Draw all pictures of a recording into ``folder`` and return their paths."""
    _, _, _ = _parts(result)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    drawings: dict[str, Callable[[RecordingResult], Figure]] = {
        "recording-panels": draw_panels,
        "recording-snapshots": draw_snapshots,
        "recording-smoothing": draw_smoothing,
        "recording-midline": draw_midline,
        "recording-background": draw_background,
    }
    written = []
    for name, draw in drawings.items():
        figure = draw(result)
        for kind in formats:
            path = target / f"{name}.{kind}"
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH)
            written.append(path)
    return tuple(written)


def draw_panels(result: RecordingResult) -> Figure:
    """Show first, middle and last sampled frame: whole with the crop box, cropped, and as the field."""
    _, layout, header = _parts(result)
    field = result.field
    chosen = [result.samples[0], result.samples[len(result.samples) // 2], result.samples[-1]]
    figure = _figure(10.5, 9.0)
    axes = figure.subplots(3, 3, width_ratios=(header.width / header.height * 0.75 + 0.25, 1, 1.15))
    low, high = _limits(result)
    limits = min(float(s.thumbnail.min()) for s in chosen), max(float(s.thumbnail.max()) for s in chosen)
    for row, sample in zip(axes, chosen, strict=True):
        _camera(row[0], sample.thumbnail, header, limits)
        row[0].add_patch(Rectangle(layout.crop[:2], *layout.crop[2:], **CROP_BOX))
        row[0].set_title(f"frame at {sample.time:.3g} s, crop box", fontsize=9)
        _camera(row[1], sample.thumbnail, header, limits)
        x0, y0, width, height = layout.inner
        row[1].set(xlim=(x0, x0 + width), ylim=(y0 + height, y0))
        row[1].set_title("crop without border", fontsize=9)
        index = int(np.argmin(np.abs(field.times - sample.time)))
        image = _show(row[2], field.values[index], result, low, high)
        row[2].set_title(f"field u at {field.times[index]:.3g} s", fontsize=9)
    for axis in axes[:-1].flat:  # those below have the same scale
        axis.set_xlabel("")
        axis.tick_params(labelbottom=False)
    figure.colorbar(image, ax=list(axes[:, 2]), label="u", fraction=0.046)
    return figure


def draw_snapshots(result: RecordingResult, count: int = 4) -> Figure:
    """Show the field at several times, each with its middle row below."""
    field = result.field
    indices = np.linspace(0, len(field) - 1, count).round().astype(int)
    low, high = _limits(result)
    figure = _figure(3.1 * count, 5.0)
    axes = figure.subplots(2, count, height_ratios=(1.6, 1), sharex="col", sharey="row")
    for column, index in enumerate(indices):
        top, bottom = axes[0, column], axes[1, column]
        image = _show(top, field.values[index], result, low, high)
        middle = field.grid.ny // 2
        top.axhline(field.grid.y[middle], color="white", linewidth=0.8, linestyle="--")
        top.set_title(f"t = {field.times[index]:.3g} s", fontsize=10)
        bottom.plot(field.grid.x, field.values[index, middle], color="#2a6f97")
        bottom.set(xlabel=f"x ({field.grid.unit})", ylim=_padded(low, high))
        bottom.grid(alpha=0.3)
        top.set(xlabel="", ylabel=top.get_ylabel() if column == 0 else "")
    axes[1, 0].set_ylabel("u on the middle row")
    figure.colorbar(image, ax=list(axes[0]), label="u", fraction=0.02)
    return figure


def draw_smoothing(result: RecordingResult) -> Figure:
    """Show one frame under each smoothing width, and its difference from the unsmoothed one."""
    checks, _, _ = _parts(result)
    sweep = checks.sweep
    count = len(sweep.rows)
    low, high = float(sweep.frames[0].min()), float(sweep.frames[0].max())
    largest = max(row.maximum for row in sweep.rows) or 1.0
    figure = _figure(2.3 * count, 5.2)
    axes = figure.subplots(2, count)
    for column, row in enumerate(sweep.rows):
        image = _show(axes[0, column], sweep.frames[column], result, low, high)
        axes[0, column].set_title(f"σ = {row.sigma:g} cells", fontsize=10)
        difference = sweep.frames[column] - sweep.frames[0]
        change = _show(axes[1, column], difference, result, -largest, largest, "RdBu_r")
        axes[1, column].set_title(f"rms {row.rms:.2g}, max {row.maximum:.2g}", fontsize=9)
        for axis in axes[:, column]:
            axis.set(xlabel="", ylabel="", xticks=[], yticks=[])
    axes[0, 0].set_ylabel(f"u at {sweep.time:.3g} s")
    axes[1, 0].set_ylabel("smoothed − unsmoothed")
    figure.colorbar(image, ax=list(axes[0]), label="u", fraction=0.02)
    figure.colorbar(change, ax=list(axes[1]), label="difference in u", fraction=0.02)
    return figure


def draw_midline(result: RecordingResult) -> Figure:
    """Show the middle row of one frame under each smoothing width."""
    checks, _, _ = _parts(result)
    sweep = checks.sweep
    figure = _figure(7.0, 4.0)
    axis = figure.subplots()
    for k, row in enumerate(sweep.rows):
        shade = 0.9 * k / max(1, len(sweep.rows) - 1)
        axis.plot(sweep.positions, sweep.line[k], color=(shade, 0.35, 1 - shade), label=f"σ = {row.sigma:g}")
    axis.set(xlabel=f"x ({sweep.unit})", ylabel="u", title=f"middle row at {sweep.time:.3g} s")
    axis.grid(alpha=0.3)
    axis.legend(title="cells", fontsize=8)
    return figure


def draw_background(result: RecordingResult) -> Figure:
    """Show the background level in time, and where camera pixels are saturated."""
    checks, _, _ = _parts(result)
    figure = _figure(10.0, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    left.plot(result.field.times, checks.flicker.level, color="#2a6f97", linewidth=1)
    left.set(xlabel="t (s)", ylabel="background level of u")
    left.set_title(f"fast part: {checks.flicker.rms:.2g} rms, {checks.flicker.share:.2%} of the signal", fontsize=10)
    left.grid(alpha=0.3)
    image = _show(right, checks.saturation.cells, result, 0, max(float(checks.saturation.cells.max()), 0.01), "magma")
    black, white = checks.saturation.black, checks.saturation.white
    right.set_title(f"saturated pixels: {black:.2%} black, {white:.2%} white", fontsize=10)
    figure.colorbar(image, ax=right, label="share of the cell's pixels", fraction=0.046)
    return figure


def _parts(result: RecordingResult) -> tuple[Checks, Layout, Header]:
    if result.checks is None or result.layout is None or result.header is None:
        raise InputError("a loaded field has no camera frames to draw; read the recording itself")
    return result.checks, result.layout, result.header


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _camera(axis: Any, thumbnail: Any, header: Header, limits: tuple[float, float]) -> None:
    axis.imshow(thumbnail, cmap="gray", vmin=limits[0], vmax=limits[1], extent=(0, header.width, header.height, 0))
    axis.set_xlabel("x (camera pixels)", fontsize=8)
    axis.set_ylabel("y (camera pixels)", fontsize=8)
    axis.tick_params(labelsize=7)


def _show(axis: Any, frame: Any, result: RecordingResult, low: float, high: float, colours: str = FIELD_COLOURS) -> Any:
    grid = result.field.grid
    image = axis.imshow(frame, cmap=colours, vmin=low, vmax=high, extent=(0, grid.width, grid.height, 0))
    if result.field.mask is not None and not result.field.mask.all():
        axis.contour(grid.x, grid.y, result.field.mask, levels=[0.5], colors="#e4572e", linewidths=1)
    axis.set_xlabel(f"x ({grid.unit})", fontsize=8)
    axis.set_ylabel(f"y ({grid.unit})", fontsize=8)
    axis.tick_params(labelsize=7)
    return image


def _limits(result: RecordingResult) -> tuple[float, float]:
    return float(result.field.values.min()), float(result.field.values.max())


def _padded(low: float, high: float) -> tuple[float, float]:
    return low - 0.04 * (high - low), high + 0.04 * (high - low)
