"""Figures of calibration, bootstrap and front-aware fits: they draw artefacts and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from video2pde.calibration import Calibration
from video2pde.refinement.result import Refinement
from video2pde.report import style
from video2pde.report.summaries import bootstrap_covariance, ellipse_path, running_intervals
from video2pde.rollout.validate import Validation
from video2pde.stages import FRONT
from video2pde.terms.words import coefficient_units

WIDTH = 7.2


def figure_pairs(calibration: Calibration, unit: str) -> Figure:
    """Draw every pair of bootstrapped coefficients with its 95 % ellipse, and histograms with the interval."""
    boot, terms = calibration.bootstrap, calibration.terms
    assert boot is not None
    size = len(terms)
    centre, covariance = bootstrap_covariance(boot)
    with style.apply():
        side = min(2.4 * size, WIDTH)
        figure = Figure(figsize=(side + 0.8, side))
        grid: Any = figure.subplots(size, size, squeeze=False)
        for row in range(size):
            for column in range(size):
                axes = grid[row, column]
                if column > row:
                    axes.set_visible(False)
                elif column == row:
                    _draw_histogram(axes, boot.draws[:, row], calibration, row)
                else:
                    axes.plot(boot.draws[:, column], boot.draws[:, row], ".", color=style.UNCERTAINTY)
                    pair = [column, row]
                    path = ellipse_path(centre[pair], covariance[np.ix_(pair, pair)])
                    axes.plot(*path.T, color=style.MODEL, lw=1.1, label="95 % of replicates")
                    fitted = [calibration.fit.coefficients[index] for index in pair]
                    axes.plot(*fitted, "+", color=style.BLACK, ms=8, label="fit")
                axes.xaxis.set_major_locator(MaxNLocator(4))
                if row == size - 1:
                    axes.set_xlabel(_label(calibration, column, unit))
                if column == 0 and row > 0:
                    axes.set_ylabel(_label(calibration, row, unit))
        drawn = [axes.get_legend_handles_labels() for axes in grid.flat]
        labels = {label: handle for handles, names in drawn for handle, label in zip(handles, names, strict=True)}
        figure.legend(labels.values(), labels.keys(), loc="outside right upper")
        figure.suptitle(f"{calibration.library}: {boot.converged} of {boot.requested} replicates", fontsize=9)
        return figure


def _draw_histogram(axes: Any, draws: Any, calibration: Calibration, index: int) -> None:
    term = calibration.terms[index].name
    estimate = calibration.estimates[term]
    axes.hist(draws, bins="auto", color=style.term_colour(term), alpha=0.75)
    if estimate.has_interval:
        axes.axvspan(estimate.low, estimate.high, color=style.LIGHT, alpha=0.6, zorder=0, label="95 % interval")
    axes.axvline(calibration.fit.coefficients[index], color=style.BLACK, lw=0.9, label="fit")
    axes.set_ylabel("replicates")


def figure_convergence(calibration: Calibration, unit: str) -> Figure:
    """Draw median and 95 % range of the first n replicates against n."""
    boot = calibration.bootstrap
    assert boot is not None
    counts, middle, low, high = running_intervals(boot.draws)
    with style.apply():
        figure = Figure(figsize=(WIDTH, 1.5 * len(calibration.terms) + 0.7))
        panels = figure.subplots(len(calibration.terms), sharex=True, squeeze=False)[:, 0]
        for index, (axes, term) in enumerate(zip(panels, calibration.terms, strict=True)):
            colour = style.term_colour(term.name)
            axes.fill_between(counts, low[:, index], high[:, index], color=colour, alpha=0.25, lw=0, label="95 % range")
            axes.plot(counts, middle[:, index], color=colour, label="median")
            axes.set_ylabel(_label(calibration, index, unit))
            axes.grid(visible=True)
        panels[0].legend(loc="upper right")
        panels[-1].set_xlabel("replicates")
        figure.suptitle(calibration.library, fontsize=9)
        return figure


def figure_intervals(
    calibrations: Mapping[str, Calibration],
    refined: Mapping[str, Refinement],
    weak: Mapping[str, Mapping[str, float]],
    unit: str,
) -> Figure:
    """Draw, term by term, what the weak fit, the inverse PINN and the calibration say for every library."""
    terms = {term.name: term for calibration in calibrations.values() for term in calibration.terms}
    with style.apply():
        figure = Figure(figsize=(WIDTH, 0.55 + sum(0.5 + 0.32 * _having(calibrations, name) for name in terms)))
        heights = [0.5 + 0.32 * _having(calibrations, name) for name in terms]
        panels = figure.subplots(len(terms), squeeze=False, height_ratios=heights)[:, 0]
        for axes, (name, term) in zip(panels, terms.items(), strict=True):
            libraries = [library for library, c in calibrations.items() if name in c.estimates]
            for place, library in enumerate(libraries):
                _draw_estimates(
                    axes, place, library, name, calibrations[library], refined.get(library), weak.get(library, {})
                )
            axes.set_yticks(range(len(libraries)), libraries)
            axes.set_ylim(len(libraries) - 0.5, -0.5)
            axes.set_xlabel(f"{style.term_label(name)}  ({coefficient_units(term, unit)})")
            axes.grid(axis="x")
        for marker, label in (("s", "weak fit"), ("^", "inverse PINN"), ("o", "calibrated, 95 %")):
            panels[0].plot([], [], marker, color=style.BLACK, label=label, mfc="none" if marker != "o" else style.BLACK)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return figure


def _draw_estimates(
    axes: Any,
    place: int,
    library: str,
    name: str,
    calibration: Calibration,
    refinement: Refinement | None,
    weak: Mapping[str, float],
) -> None:
    colour, estimate = style.library_colour(library), calibration.estimates[name]
    if name in weak:
        axes.plot(weak[name], place - 0.22, "s", color=colour, mfc="none")
    if refinement is not None:
        axes.plot(refinement.coefficients[name], place + 0.22, "^", color=colour, mfc="none")
    if estimate.has_interval:
        axes.plot([estimate.low, estimate.high], [place, place], color=colour, lw=2)
    axes.plot(estimate.value, place, "o", color=colour)


def _having(calibrations: Mapping[str, Calibration], name: str) -> int:
    return sum(name in calibration.estimates for calibration in calibrations.values())


def figure_front_fits(validation: Validation, library: str) -> Figure:
    """Draw observed front radii and those of the calibrated and the front-aware law, level by level."""
    scores = {row.library: row.measured for row in validation.rows}
    drawn = [(library, "-"), (f"{library} {FRONT}", "--")]
    with style.apply():
        figure = Figure(figsize=(WIDTH, 3.8))
        axes = figure.subplots()
        metrics = scores[library].full
        for index, level in enumerate(metrics.levels):
            colour = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.RED)[index % 5]
            axes.plot(validation.times, metrics.radii_observed[:, index], color=colour, lw=3, alpha=0.3)
            for name, dashes in drawn:
                axes.plot(
                    validation.times, scores[name].full.radii_predicted[:, index], color=colour, ls=dashes, lw=1.1
                )
            axes.plot([], [], color=colour, lw=1.1, label=f"γ = {level:g}")
        axes.plot([], [], color=style.BLACK, lw=3, alpha=0.3, label="observed")
        for name, dashes in drawn:
            axes.plot([], [], color=style.BLACK, ls=dashes, lw=1.1, label=name)
        axes.set(xlabel="time (s)", ylabel=f"front radius ({validation.unit})")
        axes.grid(axis="y")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return figure


def _label(calibration: Calibration, index: int, unit: str) -> str:
    term = calibration.terms[index]
    return f"{style.term_label(term.name)}  ({coefficient_units(term, unit)})"
