"""Figures of the validation: error bars, errors over time, snapshots, front radii. They compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from video2pde.report import style
from video2pde.report.colours import base_library
from video2pde.rollout.validate import Score, Validation

LEVELS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.RED, style.SKY, style.BLACK, style.YELLOW)
WIDTH = 7.2


def figure_errors(validation: Validation) -> Figure:
    """Draw the rollout error of every library under both drift modes, and of the baselines as lines."""
    rows = validation.rows
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(rows))
    for offset, color, label, scores in (
        (-0.2, style.ORANGE, "A: learned drift", [row.learned for row in rows]),
        (0.2, style.BLUE, "B: measured drift", [row.measured for row in rows]),
    ):
        heights = [100 * score.full.rrmse if not score.failure else 0.0 for score in scores]
        axes.bar(places + offset, heights, 0.38, color=color, label=label)
        for place, height, score in zip(places + offset, heights, scores, strict=True):
            text = "failed" if score.failure else _short(height)
            axes.annotate(
                text,
                (place, height),
                (0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=7,
                color=style.BLACK,
            )
    for dashes, score in zip(("-", "--", ":"), validation.baselines, strict=False):
        if not score.failure:
            axes.axhline(100 * score.full.rrmse, color=style.GREY, ls=dashes, lw=1.1, label=score.name, zorder=0)
    axes.set_xticks(places, [row.library for row in rows])
    axes.set_ylabel("rRMSE of the rollout (%)")
    axes.margins(y=0.12)
    _finish(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    return figure


def figure_errors_over_time(validation: Validation, scores: Sequence[Score] | None = None) -> Figure:
    """Draw relative, centroid and mean front error over time, of each model's better mode where no scores are given."""
    figure = Figure(figsize=(WIDTH, 6.4), layout="constrained")
    panels = figure.subplots(3, sharex=True)
    labels = ("relative error\n(%)", f"centroid error\n({validation.unit})", f"mean front error\n({validation.unit})")
    # a rollout that failed runs out of the picture instead of hiding the others
    tops = [0.0, 0.0, 0.0]
    for score, color, dashes in _drawn(validation, scores):
        metrics = score.full
        front = np.abs(metrics.front_error).mean(axis=1)
        curves = (100 * metrics.rrmse_over_time, metrics.centroid_error, front)
        if not score.failure:
            tops = [max(top, float(curve.max())) for top, curve in zip(tops, curves, strict=True)]
        for axes, values in zip(panels, curves, strict=True):
            shown = np.where(np.isfinite(values), values, np.nan)
            axes.plot(validation.times, shown, color=color, ls=dashes, lw=1.3, label=_label(score))
    for axes, label, top in zip(panels, labels, tops, strict=True):
        axes.set_ylabel(label)
        axes.set_ylim(0, 1.08 * top if top > 0 else 1.0)
        _finish(axes)
    panels[-1].set_xlabel("time (s)")
    figure.align_ylabels()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8
    )
    return figure


def figure_snapshots(validation: Validation, score: Score | None = None) -> Figure:
    """Draw observed, predicted and difference pictures; of the best library where no score is given."""
    chosen = score or (validation.best.best if validation.best else validation.baselines[-1])
    observed, predicted = validation.observed_snapshots, chosen.snapshots
    difference = predicted - observed
    height, width = validation.extent
    count = len(validation.snapshot_frames)
    figure = Figure(figsize=(WIDTH, 0.6 + 3 * (WIDTH - 1.1) / count * height / width), layout="constrained")
    panels = figure.subplots(3, count, squeeze=False)
    limits = float(observed.min()), float(observed.max())
    finite = np.abs(difference[np.isfinite(difference)])
    spread = float(finite.max()) if finite.size and finite.max() > 0 else 1e-6
    rows = (
        ("observed", observed, style.SEQUENTIAL, limits),
        (f"predicted, {_label(chosen)}", predicted, style.SEQUENTIAL, limits),
        ("difference", difference, style.DIVERGING, (-spread, spread)),
    )
    for line, (name, pictures, colors, (low, high)) in zip(panels, rows, strict=True):
        for axes, picture in zip(line, pictures, strict=True):
            image = axes.imshow(picture, cmap=colors, vmin=low, vmax=high, extent=(0, width, height, 0))
            axes.set_xticks([])
            axes.set_yticks([])
        line[0].set_ylabel(name, fontsize=8)
        bar = figure.colorbar(image, ax=list(line), shrink=0.85, pad=0.015)
        bar.ax.tick_params(labelsize=7)
        bar.ax.yaxis.get_offset_text().set_fontsize(7)
    for axes, frame in zip(panels[0], validation.snapshot_frames, strict=True):
        axes.set_title(f"t = {validation.times[frame]:.4g} s", fontsize=8)
    return figure


def figure_fronts(validation: Validation, score: Score | None = None) -> Figure:
    """Draw observed and predicted front radii at all levels; of the best library where no score is given."""
    chosen = score or (validation.best.best if validation.best else validation.baselines[-1])
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    axes = figure.add_subplot()
    for n, level in enumerate(chosen.full.levels):
        color = LEVELS[n % len(LEVELS)]
        axes.plot(validation.times, chosen.full.radii_observed[:, n], color=color, lw=2.6, alpha=0.35)
        predicted = chosen.full.radii_predicted[:, n]
        axes.plot(
            validation.times,
            np.where(np.isfinite(predicted), predicted, np.nan),
            color=color,
            lw=1.2,
            label=f"γ = {level:g}",
        )
    axes.plot([], [], color=style.BLACK, lw=2.6, alpha=0.35, label="observed")
    axes.plot([], [], color=style.BLACK, lw=1.2, label=_label(chosen))
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"front radius ({validation.unit})")
    _finish(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def _drawn(validation: Validation, scores: Sequence[Score] | None) -> list[tuple[Score, str, str]]:
    """Return what the curves show: baselines in grey, each library in its own colour, its variants dashed."""
    baselines = [(s, style.GREY, dashes) for s, dashes in zip(validation.baselines, ("-", "--", ":"), strict=False)]
    chosen = [row.best for row in validation.rows] if scores is None else scores
    return baselines + [(s, style.library_colour(s.name), _dashes(s.name)) for s in chosen]


def _dashes(name: str) -> str:
    return "-" if name == base_library(name) else "--"


def _label(score: Score) -> str:
    name = score.name if score.mode == "baseline" else f"{score.name} ({score.mode})"
    return f"{name}, failed" if score.failure else name


def _short(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _finish(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=style.LIGHT, lw=0.6)
    axes.set_axisbelow(True)
