"""The figure of a recovery after a bleach: the spot, the curve with its fit, and D in parts of the recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from video2pde.field import Field
from video2pde.frap.recovery import Recovery
from video2pde.report import style


def figure_recovery(recovery: Recovery, field: Field) -> Figure:
    """Draw the first frame with the bleached region, the recovery with its fit, and D over time."""
    with style.apply():
        figure = Figure(figsize=(7.2, 2.5))
        spot, curve, parts = figure.subplots(1, 3, width_ratios=(1.0, 1.5, 1.1))
        _draw_spot(figure, spot, recovery, field)
        _draw_curve(curve, recovery)
        _draw_parts(parts, recovery)
        return figure


def _draw_spot(figure: Figure, axes: Any, recovery: Recovery, field: Field) -> None:
    extent = (0, field.grid.width, field.grid.height, 0)
    seen = field.values[0] if field.mask is None else np.where(field.mask, field.values[0], np.nan)
    picture = axes.imshow(seen, extent=extent, cmap="magma", vmin=0)
    axes.contour(field.grid.x, field.grid.y, recovery.spot, levels=[0.5], colors=[style.MODEL], linewidths=1.0)
    axes.set(xlabel=f"x ({recovery.unit})", ylabel=f"y ({recovery.unit})", title=f"bleached, {recovery.times[0]:.4g} s")
    figure.colorbar(picture, ax=axes, shrink=0.8)


def _draw_curve(axes: Any, recovery: Recovery) -> None:
    axes.axhline(recovery.before, color=style.GREY, lw=0.8, ls=":", label="before the bleach")
    axes.plot(recovery.times, recovery.measured, "o", ms=3, color=style.MEASURED, label="mean of the bleached region")
    axes.plot(recovery.times, recovery.fitted, color=style.MODEL, label="fit")
    if np.isfinite(recovery.half_time.value):
        axes.axvline(recovery.times[0] + recovery.half_time.value, color=style.GREY, lw=0.8, ls="--", label="half time")
    axes.set(xlabel="time (s)", ylabel="u", title="recovery")
    axes.legend(fontsize=6)


def _draw_parts(axes: Any, recovery: Recovery) -> None:
    steadiness, whole = recovery.steadiness, recovery.diffusion
    axes.axhspan(whole.low, whole.high, color=style.MODEL, alpha=0.15, lw=0)
    axes.axhline(whole.value, color=style.MODEL, label="whole recording")
    for (start, end), estimate in zip(steadiness.spans, steadiness.estimates, strict=True):
        bars = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
        axes.errorbar(
            [(start + end) / 2],
            [estimate.value],
            yerr=bars,
            xerr=[[(end - start) / 2]],
            fmt="o",
            ms=3,
            color=style.MEASURED,
        )
    axes.set(xlabel="time (s)", ylabel=f"D ({recovery.unit}²/s)", title="D in parts")
    axes.set_ylim(bottom=0)
