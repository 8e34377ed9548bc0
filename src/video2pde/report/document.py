"""The report as a document: what a page says, in frozen values that know nothing of HTML.

``content`` composes these; ``page`` writes them into one file. Text is plain text everywhere: it is shown
as it stands, whatever characters it holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = Sequence[float] | NDArray[Any]
Level: TypeAlias = Literal["info", "good", "warning", "error"]
Align: TypeAlias = Literal["left", "right", "center"]
Style: TypeAlias = Literal["line", "steps", "scatter", "bars", "histogram"]
Colour: TypeAlias = Literal["blue", "orange", "green", "purple", "sky", "red", "olive", "ink", "grey"]
ColourMap: TypeAlias = Literal["viridis", "cividis", "magma", "grey", "diverging"]

_MEDIA_TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".gif": "image/gif"}


# --- inline text ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Math:
    """Set a formula within a line; ``plain`` is read aloud and shown where LaTeX cannot be set."""

    latex: str
    plain: str


@dataclass(frozen=True)
class Code:
    """Set a name, a path or a value in a fixed-width face."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Stress a few words."""

    text: str


@dataclass(frozen=True)
class Link:
    """Point to another section of the same page."""

    text: str
    section: str


Inline: TypeAlias = str | Math | Code | Strong | Link
Text: TypeAlias = Inline | tuple[Inline, ...]


# --- blocks -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """Say something in running text."""

    text: Text


@dataclass(frozen=True)
class Note:
    """Set a remark apart: ``info``, ``good``, ``warning`` or ``error``."""

    text: Text
    level: Level = "info"
    title: str = ""


@dataclass(frozen=True)
class Equation:
    """Typeset an equation on its own line; ``plain`` is its Unicode text."""

    latex: str
    plain: str
    caption: Text = ""


@dataclass(frozen=True)
class Column:
    """Head a table's column; ``format`` is a Python format for its numbers."""

    label: Text
    unit: str = ""
    align: Align = "left"
    format: str = ".4g"


@dataclass(frozen=True)
class Estimate:
    """Give a value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Check:
    """Mark a cell as passed, failed or (None) not applicable, in colour, sign and words."""

    passed: bool | None
    text: str = ""


Cell: TypeAlias = str | int | float | Estimate | Check | Math | Code | Strong | None


@dataclass(frozen=True)
class Table:
    """Show rows under headed columns; the reader can sort them."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: Text = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"table row {number} has {len(row)} cells for {len(self.columns)} columns")


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
    """Plot series over common axes. ``alt`` says in words what the picture shows."""

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
    value: float | None = None
    low: float | None = None
    high: float | None = None
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


@dataclass(frozen=True)
class Image:
    """Show a finished picture (PNG, SVG, JPEG or GIF); ``alt`` says in words what it shows."""

    data: bytes
    media_type: str
    alt: str
    caption: Text = ""

    @classmethod
    def from_file(cls, path: str | Path, alt: str, caption: Text = "") -> Image:
        """Read a picture whose suffix names its format."""
        file = Path(path)
        media_type = _MEDIA_TYPES.get(file.suffix.lower())
        if media_type is None:
            raise ValueError(f"{file} is none of {', '.join(_MEDIA_TYPES)}")
        return cls(file.read_bytes(), media_type, alt, caption)


@dataclass(frozen=True)
class Film:
    """Hold compressed, quantised frames: u ≈ low + (high − low) · level / 255 (see ``films.encode``).

    Parameters
    ----------
    payload : the levels, delta-coded in time and deflated.
    frames : which of the player's frames these are, increasing.
    ny, nx : rows and columns of a frame.
    clipped : whether values beyond [low, high] were cut off.
    """

    payload: bytes
    frames: tuple[int, ...]
    ny: int
    nx: int
    low: float
    high: float
    clipped: bool = False


@dataclass(frozen=True)
class Window:
    """Mark the player's frames start ≤ i < end on its time line."""

    label: str
    start: int
    end: int
    colour: Colour = "grey"


@dataclass(frozen=True, eq=False)
class Player:
    """Play observed, predicted and difference side by side (``films.make_player`` builds one).

    Parameters
    ----------
    times : seconds, shape (frames,).
    width, height : size of the picture, in ``unit``; pixels are cells, y grows downwards.
    mask : bool, shape (y, x): True where the law holds; None: everywhere.
    """

    title: str
    times: Numbers
    width: float
    height: float
    unit: str
    observed: Film
    predicted: Film | None
    difference: Film | None
    windows: tuple[Window, ...]
    alt: str
    quantity: str = "u"
    mask: NDArray[np.bool_] | None = None
    caption: Text = ""


@dataclass(frozen=True)
class Tiles:
    """Set items side by side where the page is wide enough."""

    items: tuple[Item, ...]
    columns: int = 2


@dataclass(frozen=True)
class Details:
    """Fold items under a line that opens them."""

    title: str
    items: tuple[Item, ...]
    open: bool = False


Item: TypeAlias = Paragraph | Note | Equation | Table | Chart | Heatmap | Pairs | Image | Player | Tiles | Details


# --- the page ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """Tell one stage: a title, a sentence of what it found, and the evidence."""

    id: str
    title: str
    sentence: Text
    items: tuple[Item, ...] = ()
    collapsed: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.id):
            raise ValueError(f"section id {self.id!r}: use lower-case letters, digits and hyphens")


@dataclass(frozen=True)
class Coefficient:
    """Give one coefficient of the law with its 95 % interval (None: not estimated)."""

    symbol: Math
    meaning: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Headline:
    """Show one number in large type, such as the held-out error."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """Name one competitor and its number."""

    name: str
    value: float
    ours: bool = False


@dataclass(frozen=True)
class Comparison:
    """Compare our number with the baselines as bars; less is better."""

    label: str
    bars: tuple[Bar, ...]
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Head:
    """Open the page: the verdict, the law, its coefficients, and how well it predicts."""

    verdict: str
    level: Level
    summary: Text
    equation: Equation | None = None
    coefficients: tuple[Coefficient, ...] = ()
    headlines: tuple[Headline, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    player: Player | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Page:
    """Hold the whole report."""

    title: str
    head: Head
    sections: tuple[Section, ...]
    subtitle: str = ""
    footer: Text = ""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for section in self.sections:
            if section.id in seen:
                raise ValueError(f"two sections have the id {section.id!r}")
            seen.add(section.id)
