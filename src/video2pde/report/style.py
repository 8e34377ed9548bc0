"""One look for every figure: fonts, lines, and the colours of ``report.colours``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from PIL import Image

from video2pde.files import atomic_path
from video2pde.report import colours
from video2pde.report.colours import PALETTE
from video2pde.terms import CATALOGUE
from video2pde.terms.words import describe

BLACK, ORANGE, SKY, GREEN = PALETTE["ink"], PALETTE["orange"], PALETTE["sky"], PALETTE["green"]
YELLOW, BLUE, RED, PURPLE = PALETTE["olive"], PALETTE["blue"], PALETTE["red"], PALETTE["purple"]
GREY, LIGHT = PALETTE["grey"], "#d9d9d9"
EXTRA = (GREY, "#8c564b", "#17becf", "#6a3d9a", "#b2df8a")
"""Colours of terms and libraries of the user's own, in turn."""

MEASURED, MODEL, UNCERTAINTY = BLACK, RED, SKY
"""What was measured, what a model says, and how sure it is."""
DIVERGING, SEQUENTIAL = "RdBu_r", "viridis"
"""Colour maps: of signed quantities (correlations, errors), of u itself."""

_SHORT: Mapping[str, str] = {
    "drift": r"$-\mathbf{v}\cdot\nabla u$",
    "drift_x": "$-v_x u_x$",
    "drift_y": "$-v_y u_y$",
    # their parameters are the law's, not the catalogue's
    "porous_power": r"$\nabla\cdot(u^m\nabla u)$",
    "uptake": r"$u/(K + u)$",
}
DOTS_PER_INCH = 200
_STYLE: Mapping[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": DOTS_PER_INCH,
    "savefig.bbox": "tight",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "pdf.fonttype": 42,
    "image.origin": "upper",
    # cells as they are: a smoothed picture would show what the camera did not
    "image.interpolation": "nearest",
}


@contextmanager
def apply() -> Iterator[None]:
    """Draw in the project's style inside a ``with`` block; nothing outside it changes."""
    with mpl.rc_context(dict(_STYLE)):
        yield


def save_png(figure: Figure, path: Path) -> Image.Image:
    """Lay a figure out, write it as ``path``.png, and return the picture.

    The canvas is asked directly: ``savefig`` would draw each figure once more to measure it, which the layout engine
    has done already.
    """
    with apply():
        figure.set_dpi(DOTS_PER_INCH)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        # laid out once is enough: the second format takes it as it is
        figure.set_layout_engine("none")
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    with atomic_path(path.with_name(f"{path.name}.png")) as temporary:
        picture.save(temporary, "png", dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    return picture


def save_pdf(figure: Figure | None, path: Path) -> None:
    """Write a figure that :func:`save_png` has laid out as ``path``.pdf; None: none is wanted, nor an old one."""
    file = path.with_name(f"{path.name}.pdf")
    if figure is None:
        file.unlink(missing_ok=True)
        return
    with apply(), atomic_path(file) as temporary:
        FigureCanvasPdf(figure).print_pdf(temporary)


def term_colour(name: str) -> str:
    """Return a term's colour; a user's own term gets one that depends on its name alone."""
    colour = colours.term_colour(name)
    return _own_colour(name) if colour is None else PALETTE[colour]


def library_colour(name: str) -> str:
    """Return a library's colour; a user's own library gets one that depends on its name alone."""
    colour = colours.library_colour(name)
    return _own_colour(name) if colour is None else PALETTE[colour]


def _own_colour(name: str) -> str:
    return EXTRA[sum(map(ord, name)) % len(EXTRA)]


def term_label(name: str) -> str:
    """Return a term as matplotlib can typeset it; a user's own term by its name."""
    if name in _SHORT:
        return _SHORT[name]
    if name not in CATALOGUE:
        return name.replace("_", " ")
    # small labels need no growing brackets, and matplotlib has no \left for all of them
    bare = describe(CATALOGUE[name]).latex.replace(r"\left", "").replace(r"\right", "")
    return f"${bare}$"
