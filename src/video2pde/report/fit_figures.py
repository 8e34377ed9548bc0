"""Figures of the test of fit: where and when a law fails, and whether it says the same in every part."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.field import Field
from video2pde.fit import FitTest
from video2pde.fit.result import Maps
from video2pde.report import style
from video2pde.terms.words import coefficient_units

Array = NDArray[np.float64]

TIMES = 4
"""Times at which maps are shown, spread over the window."""
SHOWN = 4.0
"""Standard deviations at which the colours end at least."""


def draw_maps(maps: Maps, field: Field) -> Figure:
    """Draw what the law leaves, in standard deviations of noise, beside what noise alone looks like."""
    seconds = field.duration * (np.arange(len(maps.blocks)) + 0.5) / max(len(maps.blocks), 1)
    rows = [("rate of change", maps.weak, maps.weak_noise, maps.weak_axes[0] - field.times[0])]
    if maps.blocks.size:
        rows.append(("rollout", maps.blocks, maps.blocks_noise, seconds))
    figure = Figure(figsize=(9.6, 1.9 * 2 * len(rows) + 0.4))
    axes = figure.subplots(2 * len(rows), TIMES, squeeze=False)
    for index, (name, left, noise, times) in enumerate(rows):
        largest = max(SHOWN, float(np.nanquantile(np.abs(left), 0.995)))
        for line, (label, values) in enumerate((("the law leaves", left), ("noise alone", noise))):
            image = _row(axes[2 * index + line], values, times, field, largest)
            axes[2 * index + line][0].set_ylabel(f"{name}:\n{label}")
            figure.colorbar(image, ax=axes[2 * index + line].tolist(), fraction=0.02, pad=0.01, label="σ of noise")
    return figure


def _row(axes: NDArray[Any], values: Array, times: Array, field: Field, largest: float) -> Any:
    """Draw one kind of map at a few times; the last image."""
    chosen = np.unique(np.linspace(0, len(values) - 1, TIMES).round().astype(int))
    image = None
    for axis, frame in zip(axes, chosen, strict=False):
        image = axis.imshow(
            values[frame],
            cmap=style.DIVERGING,
            vmin=-largest,
            vmax=largest,
            extent=(0.0, field.grid.width, field.grid.height, 0.0),
        )
        axis.set_title(f"{times[frame]:.3g} s")
        axis.set_xticks([])
        axis.set_yticks([])
    for axis in axes[len(chosen) :]:
        axis.set_axis_off()
    return image


def draw_consistency(test: FitTest, law: Calibration, unit: str) -> Figure:
    """Draw each coefficient as parts of the window ask for it, over the interval of the whole."""
    terms, parts = law.terms, test.consistency
    figure = Figure(figsize=(max(4.4 * len(terms), 5.5), 0.26 * len(parts) + 1.2))
    axes = figure.subplots(1, len(terms), sharey=True, squeeze=False)[0]
    places = np.arange(len(parts))
    for axis, term in zip(axes, terms, strict=True):
        estimate = law.estimates[term.name]
        if estimate.has_interval:
            axis.axvspan(estimate.low, estimate.high, color=style.UNCERTAINTY, alpha=0.25, linewidth=0)
        axis.axvline(estimate.value, color=style.MODEL, linewidth=1.0)
        for place, part in zip(places, parts, strict=True):
            colour = style.BLACK if part.excess[term.name] == 0 else style.ORANGE
            axis.errorbar(
                part.coefficients[term.name],
                place,
                xerr=NORMAL * part.errors[term.name],
                fmt="o",
                color=colour,
                capsize=2,
            )
        axis.set_xlabel(f"{style.term_label(term.name)} ({coefficient_units(term, unit)})")
        axis.grid(axis="x")
    axes[0].set_yticks(places, [part.name for part in parts])
    axes[0].invert_yaxis()
    return figure
