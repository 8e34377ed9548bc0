"""One colour for each term, library and baseline, on the page and in the figures.

The colours are Okabe and Ito's palette, which people with any colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from video2pde.report.plots import Colour

PALETTE: Mapping[Colour, str] = {
    "ink": "#1a1a1a",
    "orange": "#e69f00",
    "sky": "#56b4e9",
    "green": "#009e73",
    "olive": "#d8c700",
    "blue": "#0072b2",
    "red": "#d55e00",
    "purple": "#cc79a7",
    "grey": "#7f7f7f",
}
"""The colours as figures draw them; the page has its own shades under the same names, for light and dark."""
TERMS: Mapping[str, Colour] = {
    "constant": "grey",
    "u": "orange",
    "u_squared": "olive",
    "grad_squared": "red",
    "u_grad_squared": "purple",
    "laplacian": "blue",
    "porous": "green",
    "drift_x": "sky",
    "drift_y": "ink",
    "drift": "sky",
}
LIBRARIES: Mapping[str, Colour] = {
    "A": "sky",
    "B": "orange",
    "C": "red",
    "C-alt": "purple",
    "C-both": "olive",
    "Full": "ink",
    "R": "green",
    "P": "blue",
}
BUDGET: Mapping[str, Colour] = {
    "statistics": "blue",
    "rounding": "grey",
    "initial frame": "purple",
    "grid": "green",
    "lack of fit": "orange",
    "encoder": "red",
    "light": "sky",
}
"""The lines of the error budget."""
BASELINES: tuple[Colour, ...] = ("grey", "ink", "olive")


def term_colour(name: str) -> Colour | None:
    """Return a term's colour; None for a user's own."""
    return TERMS.get(name)


def library_colour(name: str) -> Colour | None:
    """Return a library's colour, also for its variants such as "C front-aware"; None for a user's own."""
    return LIBRARIES.get(name) or LIBRARIES.get(base_library(name))


def baseline_colour(index: int) -> Colour:
    """Return the colour of a baseline by its place on the ladder."""
    return BASELINES[index % len(BASELINES)]


def base_library(name: str) -> str:
    """Return the library of a variant: C of "C front-aware" and of "C, refined"."""
    return name.split(",")[0].split(" ")[0]
