"""Figures of the drift and of structure discovery: they draw artefacts and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from video2pde.discovery import Identifiability
from video2pde.discovery.identifiability import LibraryDiagnosis
from video2pde.discovery.search import Search
from video2pde.drift import Drift
from video2pde.field import Field
from video2pde.report import style
from video2pde.terms import CATALOGUE
from video2pde.terms.words import coefficient_units

PANEL = 2.6
"""Width of a small panel, inches."""
THRESHOLD_LABELS = {"share": "threshold on a term's share of the signal", "coefficient": "threshold on |coefficient|"}


def draw_correlations(found: Identifiability, libraries: Sequence[str] | None = None) -> Figure:
    """Draw the correlations of the normalised columns, one heatmap for each library."""
    with style.apply():
        figure, panels = _panels(found, libraries, height=1.05)
        for axes, diagnosis in panels:
            size = len(diagnosis.names)
            image = axes.imshow(diagnosis.correlation, cmap=style.DIVERGING, vmin=-1, vmax=1)
            labels = [style.term_label(name) for name in diagnosis.names]
            axes.set_xticks(range(size), labels, rotation=60, ha="right", rotation_mode="anchor")
            axes.set_yticks(range(size), labels)
            axes.spines[:].set_visible(False)
            for i in range(size):
                for j in range(size):
                    value = float(diagnosis.correlation[i, j])
                    colour = "white" if abs(value) > 0.6 else style.BLACK
                    axes.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=9 - 0.6 * size)
            axes.set_title(f"{diagnosis.library}   κ = {diagnosis.condition:.3g}")
        figure.colorbar(image, ax=[axes for axes, _ in panels], label="column correlation", shrink=0.6)
        return figure


def draw_threshold_counts(
    found: Identifiability, libraries: Sequence[str] | None = None, threshold_on: str = "share"
) -> Figure:
    """Draw how many terms stay active as the threshold rises, all libraries in one picture."""
    with style.apply():
        figure = Figure(figsize=(5.2, 3.2))
        axes = figure.subplots()
        chosen = _chosen(found, libraries)
        for index, diagnosis in enumerate(chosen):
            # a small offset keeps equal counts apart
            shift = 0.06 * (index - (len(chosen) - 1) / 2)
            axes.step(
                diagnosis.sweep.thresholds,
                diagnosis.sweep.counts + shift,
                where="mid",
                color=style.library_colour(diagnosis.library),
                label=diagnosis.library,
            )
        axes.set_xscale("log")
        axes.set_xlabel(THRESHOLD_LABELS[threshold_on])
        axes.set_ylabel("active terms, drift included")
        axes.grid(axis="y")
        axes.legend(ncols=2, title="library")
        return figure


def draw_coefficient_paths(
    found: Identifiability, libraries: Sequence[str] | None = None, threshold_on: str = "share"
) -> Figure:
    """Draw each coefficient against the threshold, as a multiple of its value at the smallest one."""
    with style.apply():
        figure, panels = _panels(found, libraries, height=0.95, share=True)
        for axes, diagnosis in panels:
            sweep = diagnosis.sweep
            for column, name in enumerate(diagnosis.names):
                path = sweep.coefficients[:, column]
                label = f"{style.term_label(name)}  {path[0]:.3g}"
                # later lines are thinner, so that those below stay visible where paths coincide
                axes.plot(
                    sweep.thresholds,
                    np.divide(path, abs(path[0]) or 1.0),
                    color=style.term_colour(name),
                    label=label,
                    linewidth=max(3.4 - 0.5 * column, 0.7),
                )
            axes.set_xscale("log")
            axes.axhline(0, color=style.GREY, linewidth=0.6)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_title(diagnosis.library)
            axes.legend(fontsize=6, title="term, coefficient at the left", title_fontsize=6, loc="lower left")
        figure.supxlabel(THRESHOLD_LABELS[threshold_on], fontsize=9)
        figure.supylabel("coefficient relative to its first value", fontsize=9)
        return figure


def draw_selection_frequencies(found: Identifiability, libraries: Sequence[str] | None = None) -> Figure:
    """Draw in how many of the random-centre runs each term is selected."""
    with style.apply():
        figure, panels = _panels(found, libraries, height=0.85)
        for axes, diagnosis in panels:
            names = diagnosis.names
            frequencies = [diagnosis.stability.frequency[name] for name in names]
            bars = axes.bar(range(len(names)), frequencies, color=[style.term_colour(name) for name in names])
            axes.bar_label(bars, [f"{f:.0%}" for f in frequencies], fontsize=6, padding=1)
            axes.set_xticks(
                range(len(names)), [style.term_label(n) for n in names], rotation=60, ha="right", rotation_mode="anchor"
            )
            axes.set_ylim(0, 1.15)
            axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
            axes.set_title(diagnosis.library + ("" if diagnosis.contender else "  (out)"))
        runs = panels[0][1].stability.runs
        figure.supylabel(f"selected in … of {runs} runs", fontsize=9)
        return figure


def draw_coefficient_stability(
    found: Identifiability, libraries: Sequence[str] | None = None, unit: str = "image units"
) -> Figure:
    """Draw mean and standard deviation of each selected coefficient over the random-centre runs."""
    with style.apply():
        chosen = _chosen(found, libraries)
        names = list(dict.fromkeys(name for diagnosis in chosen for name in diagnosis.names))
        columns = min(4, len(names))
        rows = -(-len(names) // columns)
        figure = Figure(figsize=(PANEL * columns, 0.2 * len(chosen) * rows + 0.9 * rows))
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, name in zip(grid.flat, names, strict=False):
            _draw_one_term(axes, name, [diagnosis for diagnosis in chosen if name in diagnosis.names], unit)
        for axes in grid.flat[len(names) :]:
            axes.set_visible(False)
        return figure


def _draw_one_term(axes: Any, name: str, chosen: list[LibraryDiagnosis], unit: str) -> None:
    for row, diagnosis in enumerate(chosen):
        mean = diagnosis.stability.mean.get(name, float("nan"))
        if np.isfinite(mean):
            axes.errorbar(
                mean,
                row,
                xerr=diagnosis.stability.std[name],
                fmt="o",
                capsize=2,
                color=style.library_colour(diagnosis.library),
            )
    axes.axvline(1.0 if name.startswith("drift") else 0.0, color=style.GREY, linewidth=0.6, linestyle="--")
    axes.set_yticks(range(len(chosen)), [d.library for d in chosen])
    axes.set_ylim(len(chosen) - 0.5, -0.5)
    axes.set_title(style.term_label(name))
    axes.set_xlabel(_unit_of(name, unit), fontsize=8)
    axes.grid(axis="x")


def _unit_of(name: str, unit: str) -> str:
    if name.startswith("drift"):
        return "drift scale (1 = as measured)"
    return f"coefficient ({coefficient_units(CATALOGUE[name], unit)})" if name in CATALOGUE else "coefficient"


def draw_front(found: Search) -> Figure:
    """Draw what the best set of terms of each size leaves, with its terms, and which of them go on."""
    with style.apply():
        figure = Figure(figsize=(6.4, 3.6))
        axes = figure.subplots()
        sizes = [len(law.terms) for law in found.front]
        axes.plot(sizes, [law.unexplained for law in found.front], color=style.LIGHT, zorder=1)
        for law in (*found.front, *found.others):
            colour = style.BLUE if law.goes_on else style.GREY
            marker = "o" if law in found.front else "x"
            axes.plot(len(law.terms), law.unexplained, marker, color=colour)
        for law in found.front:
            words = ", ".join(style.term_label(name) for name in law.terms)
            label = f"{law.name}:  {words}" if law.goes_on else words
            place: dict[str, Any] = {"xytext": (5, 5), "textcoords": "offset points", "fontsize": 6, "rotation": 20}
            axes.annotate(label, (len(law.terms), law.unexplained), color=style.BLACK, **place)
        axes.set_yscale("log")
        axes.set_xticks(sizes)
        axes.set_xlim(0.7, max(sizes, default=1) + 2.0)
        axes.margins(y=0.15)
        axes.set_xlabel("terms, without the drift")
        axes.set_ylabel("share of the weak signal that is left")
        axes.grid(axis="y")
        axes.set_title(f"best of {found.subsets} sets of terms; blue: goes on to rollouts")
        return figure


def draw_drift(drift: Drift, field: Field | None = None) -> Figure:
    """Draw the centroid's path, M(t), the velocity with its error, the background, and the plume's region.

    ``field``, where given, puts its first frame under the region.
    """
    with style.apply():
        figure = Figure(figsize=(9.4, 5.4))
        panels: dict[str, Any] = figure.subplot_mosaic(
            [["path", "velocity", "velocity"], ["region", "mass", "background"]]
        )
        _draw_path(panels["path"], drift)
        for axis, colour in ((0, style.BLUE), (1, style.RED)):
            v, error = drift.velocity[:, axis], drift.velocity_error[:, axis]
            label = f"$v_{'xy'[axis]}$, mean {drift.mean[axis]:.4g} ± {drift.mean_error[axis]:.1g}"
            panels["velocity"].plot(drift.times, v, color=colour, label=label)
            panels["velocity"].fill_between(
                drift.times, v - 2 * error, v + 2 * error, color=colour, alpha=0.2, linewidth=0
            )
        panels["velocity"].axhline(0, color=style.GREY, linewidth=0.6)
        panels["velocity"].set(
            xlabel="time (s)", ylabel=f"velocity ({drift.unit}/s)", title="drift velocity, ± 2 standard errors"
        )
        panels["velocity"].legend()
        panels["mass"].plot(drift.times, drift.mass, color=style.MEASURED)
        panels["mass"].set(xlabel="time (s)", ylabel=f"M(t) ({drift.unit}²)", title="signal above the background")
        panels["mass"].set_ylim(bottom=min(0.0, float(drift.mass.min())))
        panels["background"].plot(drift.times, drift.background, color=style.MEASURED)
        panels["background"].set(xlabel="time (s)", ylabel="u", title=f"background, from: {drift.method}")
        for name in ("mass", "background"):
            panels[name].plot(
                drift.times[list(drift.empty_frames)],
                (drift.mass if name == "mass" else drift.background)[list(drift.empty_frames)],
                "x",
                color=style.ORANGE,
            )
        _draw_region(panels["region"], drift, field)
        return figure


def _draw_path(axes: Any, drift: Drift) -> None:
    axes.plot(*drift.centroid.T, ".", color=style.LIGHT, markersize=3, label="centroid")
    axes.plot(*drift.smooth_centroid.T, color=style.MODEL, label="Savitzky–Golay")
    axes.plot(*drift.smooth_centroid[0], "o", color=style.MODEL)
    axes.annotate("start", drift.smooth_centroid[0], textcoords="offset points", xytext=(5, 5), fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.invert_yaxis()
    axes.set(xlabel=f"x ({drift.unit})", ylabel=f"y ({drift.unit}, downwards)", title="path of the centroid")
    axes.legend()


def _draw_region(axes: Any, drift: Drift, field: Field | None) -> None:
    extent = None
    if field is not None:
        extent = (0.0, field.grid.width, field.grid.height, 0.0)
        axes.imshow(field.values[0], cmap=style.SEQUENTIAL, extent=extent)
    shade = np.where(drift.region, np.nan, 1.0)
    axes.imshow(shade, cmap=ListedColormap(["white"]), alpha=0.55, extent=extent, vmin=0, vmax=1)
    axes.set_title("region of the moments" + (" over the first frame" if field is not None else ""))
    unit = "pixels" if field is None else drift.unit
    axes.set(xlabel=f"x ({unit})", ylabel=f"y ({unit}, downwards)")


def _chosen(found: Identifiability, libraries: Sequence[str] | None) -> list[LibraryDiagnosis]:
    return [found.libraries[name] for name in (found.libraries if libraries is None else libraries)]


def _panels(
    found: Identifiability, libraries: Sequence[str] | None, height: float, share: bool = False
) -> tuple[Figure, list[tuple[Any, LibraryDiagnosis]]]:
    chosen = _chosen(found, libraries)
    columns = min(4, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = Figure(figsize=(PANEL * columns, PANEL * height * rows))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    return figure, list(zip(grid.flat, chosen, strict=False))
