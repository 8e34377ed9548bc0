"""The picture of ``preview``: three frames with the crop that was given or is suggested."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from video2pde.recording.look import Preview

CROP_BOX: dict[str, Any] = {"fill": False, "edgecolor": "#e4572e", "linewidth": 1.6}


def draw_preview(result: Preview) -> Figure:
    """Show first, middle and last frame with the crop box."""
    header = result.header
    figure = Figure(figsize=(14.0, 14.0 / 3 * header.height / header.width + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3)
    low, high = min(float(f.min()) for f in result.frames), max(float(f.max()) for f in result.frames)
    for axis, name, time, frame in zip(axes, ("first", "middle", "last"), result.times, result.frames, strict=True):
        axis.imshow(frame, cmap="gray", vmin=low, vmax=high, extent=(0, header.width, header.height, 0))
        axis.add_patch(Rectangle(result.crop[:2], *result.crop[2:], **CROP_BOX))
        axis.set_title(f"{name} frame, {time:.4g} {result.time_unit}")
        axis.set_xlabel("x (camera pixels)")
    axes[0].set_ylabel("y (camera pixels)")
    word = "suggested crop" if result.suggested else "crop"
    box = ", ".join(map(str, result.crop))
    figure.suptitle(f"{result.path.name}: {result.count} frames of {header.width}×{header.height}; {word} = [{box}]")
    return figure
