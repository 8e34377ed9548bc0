"""The report as a document: what a page says, in frozen values that know nothing of HTML.

``content`` composes these; ``page`` writes them into one file. Text is plain text everywhere: it is shown
as it stands, whatever characters it holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from video2pde.estimate import Estimate
from video2pde.report.inline import Code, Inline, Link, Math, Strong, Text
from video2pde.report.plots import (
    Axis,
    Chart,
    Colour,
    Ellipse,
    Heatmap,
    histogram,
    Marker,
    Numbers,
    Pairs,
    Quantity,
    Series,
    Span,
)

__all__ = [
    "Align",
    "Axis",
    "Bar",
    "Cell",
    "Chart",
    "Check",
    "Code",
    "Coefficient",
    "Colour",
    "Column",
    "Comparison",
    "Details",
    "Dial",
    "Ellipse",
    "Equation",
    "Film",
    "Head",
    "Headline",
    "Heatmap",
    "Image",
    "Inline",
    "Item",
    "Level",
    "Link",
    "Marker",
    "Math",
    "Note",
    "Numbers",
    "Page",
    "Pairs",
    "Paragraph",
    "Play",
    "Player",
    "Quantity",
    "Section",
    "Series",
    "Span",
    "Strong",
    "Table",
    "Text",
    "Tiles",
    "Window",
    "histogram",
]

Level: TypeAlias = Literal["info", "good", "warning", "error"]
Align: TypeAlias = Literal["left", "right", "center"]

_MEDIA_TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".gif": "image/gif"}


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
class Dial:
    """Let the reader turn one coefficient: its estimate, and the interval that is marked on the scale."""

    symbol: Math
    meaning: str
    value: float
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True, eq=False)
class Play:
    """Run the law live beside the film (``play.make_play`` builds one).

    Parameters
    ----------
    law, source : the law's key, and the JavaScript that defines it under that key.
    dials : the coefficients, in the order of the law's terms.
    film : the observed field; ``times``: its frames' times, seconds.
    width, height : size of the picture, in ``unit``.
    drift_times, drift : seconds, shape (n,), and length per second, shape (n, 2).
    clip : limits that values are held within; None: none.
    outside : bool, shape (y, x): True where the simulation follows the film; None: nowhere.
    flow, flow_weights : v_x, v_y on the film's cells, shape (l, 2, y, x), and their factors in each interval between
        frames, shape (t − 1, l); None: no flow beside the drift.
    """

    law: str
    source: str
    dials: tuple[Dial, ...]
    film: Film
    times: Numbers
    width: float
    height: float
    unit: str
    drift_times: Numbers
    drift: NDArray[np.float64]
    periodic: bool
    clip: tuple[float, float] | None
    safety: float
    max_substeps: int
    outside: NDArray[np.bool_] | None = None
    flow: NDArray[np.float32] | None = None
    flow_weights: NDArray[np.float64] | None = None
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


Item: TypeAlias = (
    Paragraph | Note | Equation | Table | Chart | Heatmap | Pairs | Image | Player | Play | Tiles | Details
)


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
    """Show one coefficient of the law with its 95 % interval."""

    symbol: Math
    meaning: str
    estimate: Estimate
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
