"""Words and colours that all sections share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Windows
from video2pde.numbers import format_number
from video2pde.record import Run
from video2pde.report.document import Cell, Image, Inline, Math, Span, Table, Text
from video2pde.report.plots import Colour
from video2pde.report.sheets import Sheet, to_table
from video2pde.terms import CATALOGUE, Term
from video2pde.terms.catalogue import all_own_terms
from video2pde.terms.words import coefficient_units, describe
from video2pde.using.analysis import Analysis
from video2pde.using.modelfile import SavedModel

MEANINGS = {
    "constant": "growth at the same rate everywhere",
    "u": "growth or decay",
    "u_squared": "saturation",
    "u_cubed": "saturation",
    "grad_squared": "spreading driven by gradients",
    "u_grad_squared": "spreading driven by gradients, stronger where u is large",
    "laplacian": "diffusion",
    "porous": "diffusion that grows with u",
    "porous_squared": "diffusion that grows with u²",
    "u_laplacian": "diffusion weighted by u",
    "biharmonic": "smoothing of the fourth order",
    "saturation": "growth or decay that saturates",
    "uptake": "growth or decay that saturates, half of its most at u = K",
    "porous_power": "diffusion that grows with a power of u",
    "dx": "transport along x",
    "dy": "transport along y",
    "dxx": "diffusion along x",
    "dyy": "diffusion along y",
    "dxy": "diffusion along one diagonal more than along the other",
}
NARROW = "\u202f"
"""A narrow space that does not break, between a number and its per cent sign."""
_DRIFT = {"drift_x": "−v_x u_x", "drift_y": "−v_y u_y", "drift": "−v·∇u"}


@dataclass(frozen=True, eq=False)
class Story:
    """What the sections tell from: the run, finished pictures (PNG by name), the law's analysis, and the law itself."""

    run: Run
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    analysis: Analysis | None = None
    model: SavedModel | None = None

    @property
    def unit(self) -> str:
        return self.run.unit

    def picture(self, name: str, alt: str, caption: Text = "") -> tuple[Image, ...]:
        """Return a picture if it was drawn."""
        data = self.pictures.get(name)
        return () if data is None else (Image(data, "image/png", alt, caption),)

    def spans(self) -> tuple[Span, ...]:
        """Mark training, validation and test on a time axis."""
        windows, film = self.run.windows, self.run.field
        if windows is None or film is None:
            return ()
        end = 0 if self.run.longest_drift is None else len(self.run.longest_drift.times)
        return tuple(
            Span(label, float(film.times[part.start]), float(film.times[min(part.stop, end) - 1]), colour)
            for label, part, colour in named_windows(windows)
            if part.start < end
        )

    def terms(self) -> Mapping[str, Term]:
        """All terms by name, the user's own included, with the parameters that the laws have."""
        fitted = {term.name: term for law in self.run.calibration.values() for term in law.terms}
        return {**CATALOGUE, **all_own_terms(self.run.settings), **fitted}

    def term(self, name: str) -> str:
        """Write a term in Unicode."""
        if name in _DRIFT:
            return _DRIFT[name]
        known = self.terms()
        return describe(known[name]).text if name in known else name

    def term_math(self, name: str) -> Math:
        known = self.terms()
        if name in known and name not in _DRIFT:
            words = describe(known[name])
            return Math(words.latex, words.text)
        letter = name.removeprefix("drift_")
        return Math(rf"-v_{letter}\,u_{letter}" if len(letter) == 1 else r"-\mathbf{v}\cdot\nabla u", self.term(name))

    def table(self, sheet: Sheet, caption: str | None = None) -> Table:
        """Return a sheet as a table whose terms are written as formulas."""
        table = to_table(sheet)
        places = {i for i, entry in enumerate(sheet.entries) if entry.key in ("term", "terms", "active")}
        prose = {i for i, entry in enumerate(sheet.entries) if entry.key in ("verdict", "coefficients", "reason")}
        rows = tuple(
            tuple(
                self.prose(c) if i in prose and isinstance(c, str) else self._cell(c, i in places)
                for i, c in enumerate(row)
            )
            for row in table.rows
        )
        return Table(table.columns, rows, table.caption if caption is None else caption)

    def prose(self, text: str) -> str:
        """Write the names of terms in a text as formulas, and keep each number and its per cent sign together.

        Options stay as they are typed.
        """
        longest = sorted((n for n in self.terms() if len(n) > 2), key=len, reverse=True)
        named = rf"--law \S+|\b(?:{'|'.join(map(re.escape, longest))})\b"
        shown = re.sub(named, lambda match: match[0] if match[0].startswith("--") else self.term(match[0]), text)
        return re.sub(r"(?<=\d)%", f"{NARROW}%", shown)

    def law_in_words(self, name: str) -> str:
        """Write a calibrated law with the intervals of its coefficients, in one line."""
        law = self.run.laws[name]
        estimates = (
            f"{self.term(term.name)} {law.estimates[term.name]} {coefficient_units(term, self.unit)}"
            for term in law.terms
        )
        return f"{law.model.equation.text}, with {', '.join(estimates)}"

    def _cell(self, cell: Cell, term: bool) -> Cell:
        if not term or not isinstance(cell, str):
            return cell
        every = [name for name in cell.split(", ") if name]
        if len(every) == 1:
            return self.term_math(every[0])
        shown = [self.term(name) for name in every if name not in _DRIFT]
        return ", ".join([*shown, "drift"] if len(shown) < len(every) else shown) or "nothing"


def named_windows(windows: Windows) -> tuple[tuple[str, slice, Colour], ...]:
    """Return the three windows with their names and colours."""
    return (
        ("train", windows.train, "blue"),
        ("validation", windows.validation, "orange"),
        ("test", windows.test, "green"),
    )


def percent(share: float | None, digits: int = 3) -> str:
    """Write a share in per cent; what is not a number is called undefined."""
    if share is None or math.isnan(share):
        return "undefined"
    return f"{format_number(100.0 * share, f'.{digits}g')}{NARROW}%"


def number(value: float | None, unit: str = "", digits: int = 4) -> str:
    """Write a number with its unit."""
    text = format_number(value, f".{digits}g")
    return f"{text} {unit}".strip()


def listed(names: Iterable[str], last: str = "and") -> str:
    """Join names as in a sentence."""
    every = list(names)
    if len(every) < 2:
        return "".join(every)
    return f"{', '.join(every[:-1])} {last} {every[-1]}"


def count(amount: int, one: str, many: str | None = None) -> str:
    """Count things: no …, one …, 3 …."""
    words = many or f"{one}s"
    return f"no {words}" if amount == 0 else f"one {one}" if amount == 1 else f"{amount} {words}"


def join_maths(formulas: Sequence[Math], last: str = " and ") -> tuple[Inline, ...]:
    """Join formulas as in a sentence."""
    between = [", "] * max(len(formulas) - 2, 0) + [last] * (len(formulas) > 1)
    return tuple(part for pair in zip_longest(formulas, between) for part in pair if part is not None)


def is_variant(name: str) -> bool:
    """Tell whether a model is a variant of a library, such as "C front-aware" or "C, refined"."""
    return "," in name or " " in name


def finite(values: Any) -> NDArray[np.float64]:
    """Leave out what is not finite, so that a failed rollout ends its line instead of the chart."""
    array = np.asarray(values, float)
    return np.where(np.isfinite(array), array, np.nan)
