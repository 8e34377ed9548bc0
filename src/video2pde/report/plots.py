"""What the page draws: charts, heat maps and pairs plots, as frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from video2pde.estimate import Estimate
from video2pde.report.inline import Text

Numbers: TypeAlias = Sequence[float] | NDArray[Any]
Style: TypeAlias = Literal["line", "steps", "scatter", "bars", "histogram"]
Colour: TypeAlias = Literal["blue", "orange", "green", "purple", "sky", "red", "olive", "ink", "grey"]
ColourMap: TypeAlias = Literal["viridis", "cividis", "magma", "grey", "diverging"]


@dataclass(frozen=True)
class Axis:
    """Describe an axis. With ``categories``, data positions are 0, 1, 2, … in their order."""

    label: str
    unit: str = ""
    log: bool = False
    categories: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    downwards: bool = False


@dataclass(frozen=True, eq=False)
class Series:
    """Draw one set of numbers in a chart.

    Parameters
    ----------
    name : shown in the legend and the tooltip.
    x, y : positions, shape (n,). For ``histogram`` x holds the n + 1 bin edges.
    style : ``line``, ``steps``, ``scatter``, ``bars`` or ``histogram``.
    low, high : lower and upper ends of an interval around y, shape (n,).
    band : draw the interval as a band; otherwise as bars.
    colour : a palette colour; None takes the next one.
    labels : text for each point's tooltip.
    """

    name: str
    x: Numbers
    y: Numbers
    style: Style = "line"
    low: Numbers | None = None
    high: Numbers | None = None
    band: bool = False
    colour: Colour | None = None
    dashed: bool = False
    markers: bool = False
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.y)
        expected = count + 1 if self.style == "histogram" else count
        if len(self.x) != expected:
            raise ValueError(f"series {self.name!r}: {len(self.x)} x values for {count} y values")
        for ends in (self.low, self.high):
            if ends is not None and len(ends) != count:
                raise ValueError(f"series {self.name!r}: {len(ends)} interval ends for {count} y values")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"series {self.name!r}: an interval needs both its ends")
        if self.labels and len(self.labels) != count:
            raise ValueError(f"series {self.name!r}: {len(self.labels)} labels for {count} y values")


def histogram(name: str, samples: Numbers, bins: int | str = "auto", colour: Colour | None = None) -> Series:
    """Count samples in bins, ready to draw; samples that are not finite are left out."""
    values = np.asarray(samples, dtype=float)
    counts, edges = np.histogram(values[np.isfinite(values)], bins=bins)
    return Series(name, edges, counts, style="histogram", colour=colour)


@dataclass(frozen=True)
class Span:
    """Shade a stretch of the x axis, such as the training window."""

    label: str
    start: float
    end: float
    colour: Colour = "grey"


@dataclass(frozen=True)
class Marker:
    """Draw a line across the chart at one value of x (or y)."""

    label: str
    at: float
    axis: Literal["x", "y"] = "x"
    colour: Colour = "ink"


@dataclass(frozen=True)
class Ellipse:
    """Draw {z : (z − centre)ᵀ C⁻¹ (z − centre) = radius²}; radius 2.448 holds 95 % of a normal law."""

    name: str
    centre: tuple[float, float]
    covariance: tuple[tuple[float, float], tuple[float, float]]
    radius: float = 2.448
    colour: Colour | None = None


@dataclass(frozen=True)
class Chart:
    """Plot series over common axes.

    ``alt`` says in words what the picture shows; ``stacked`` sets the bars of each series on those before it, instead
    of beside them.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    alt: str
    caption: Text = ""
    spans: tuple[Span, ...] = ()
    markers: tuple[Marker, ...] = ()
    ellipses: tuple[Ellipse, ...] = ()
    equal_aspect: bool = False
    stacked: bool = False


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Colour a matrix of values, shape (rows, columns); values that are not finite stay blank."""

    title: str
    values: NDArray[Any]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    alt: str
    label: str = ""
    colour_map: ColourMap = "viridis"
    limits: tuple[float, float] | None = None
    caption: Text = ""
    format: str = ".2f"
    row_title: str = ""
    column_title: str = ""

    def __post_init__(self) -> None:
        if np.shape(self.values) != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"heatmap {self.title!r}: values {np.shape(self.values)} for {len(self.rows)} rows "
                f"and {len(self.columns)} columns"
            )


@dataclass(frozen=True)
class Quantity:
    """Name one column of a pairs plot, its unit, estimate, interval and (where known) true value."""

    name: str
    unit: str = ""
    estimate: Estimate | None = None
    truth: float | None = None


@dataclass(frozen=True, eq=False)
class Pairs:
    """Plot every pair of k quantities: histograms on the diagonal, points and ellipses below it.

    Parameters
    ----------
    samples : shape (n, k).
    centre, covariance : of the ellipses, shapes (k,) and (k, k); None draws none.
    radius : of the ellipses, in standard deviations.
    """

    title: str
    quantities: tuple[Quantity, ...]
    samples: NDArray[Any]
    alt: str
    centre: Numbers | None = None
    covariance: NDArray[Any] | None = None
    radius: float = 2.448
    caption: Text = ""
    colour: Colour = "blue"

    def __post_init__(self) -> None:
        count = len(self.quantities)
        if np.ndim(self.samples) != 2 or np.shape(self.samples)[1] != count:
            raise ValueError(f"pairs {self.title!r}: samples {np.shape(self.samples)} for {count} quantities")
        if (self.centre is None) != (self.covariance is None):
            raise ValueError(f"pairs {self.title!r}: an ellipse needs both its centre and its covariance")
