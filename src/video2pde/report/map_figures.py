"""Figures of coefficients that vary: the map with its standard error, the course with its band."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.field import Field, Grid
from video2pde.maps import CoefficientMap
from video2pde.report import style
from video2pde.terms.words import coefficient_units, describe

TIMES = 120
UNTOLD = "0.8"
"""Grey of what the recording says nothing about."""


def draw_maps(law: Calibration, field: Field) -> Figure:
    """Draw every coefficient that varies: over space as two pictures, over time as a curve."""
    figure = Figure(figsize=(8.6, 3.8 * len(law.maps)), layout="constrained")
    rows = figure.subplots(len(law.maps), 2, squeeze=False)
    for (left, right), each in zip(rows, law.maps, strict=True):
        term = next(term for term in law.terms if term.name == each.term)
        mean = law.estimates[each.term].value
        name, unit = describe(term).text, coefficient_units(term, field.grid.unit)
        if each.over == "space":
            _draw_space(figure, (left, right), each, mean, field, (name, unit))
        else:
            right.set_visible(False)
            _draw_time(left, each, mean, field, (name, unit))
    return figure


def _draw_space(
    figure: Figure, axes: tuple[Any, Any], each: CoefficientMap, mean: float, field: Field, words: tuple[str, str]
) -> None:
    grid, (name, unit) = field.grid, words
    basis = each.basis(grid)
    told, values, error = each.told(mean, basis), each.values(mean, basis), each.error(mean, basis)
    dye = np.abs(field.values.mean(axis=0) - np.median(field.values.mean(axis=0)))
    for axis, picture, colours, title in (
        (axes[0], values, "viridis", f"coefficient of {name}"),
        (axes[1], error, "magma", "its standard error"),
    ):
        axis.set_facecolor(UNTOLD)
        image = axis.imshow(np.where(told, picture, np.nan), cmap=colours, extent=_extent(grid))
        axis.contour(grid.x, grid.y, dye, levels=[0.1 * float(dye.max())], colors="white", linewidths=0.6)
        axis.set(title=title, xlabel=f"x ({grid.unit})", ylabel=f"y ({grid.unit})")
        figure.colorbar(image, ax=axis, fraction=0.046, label=unit)


def _draw_time(axis: Any, each: CoefficientMap, mean: float, field: Field, words: tuple[str, str]) -> None:
    name, unit = words
    times = np.linspace(field.times[0], field.times[-1], TIMES)
    basis = each.basis(times=times)
    values, error = each.values(mean, basis), each.error(mean, basis)
    axis.plot(times, values, color=style.BLUE)
    axis.fill_between(times, values - NORMAL * error, values + NORMAL * error, color=style.BLUE, alpha=0.2, linewidth=0)
    axis.axhline(mean, color=style.GREY, linewidth=0.8, linestyle="--")
    axis.axvspan(each.shape.span[1], times[-1], color=style.LIGHT, alpha=0.5, linewidth=0)
    axis.set(xlabel="t (s)", ylabel=f"coefficient of {name} ({unit})", title="95 % band; grey: taken to stay")


def _extent(grid: Grid) -> tuple[float, float, float, float]:
    return 0.0, grid.width, grid.height, 0.0
