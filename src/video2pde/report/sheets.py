"""A table once, in three forms: CSV for programs, LaTeX for papers, and the page's own."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from video2pde.estimate import Estimate
from video2pde.numbers import format_estimate, format_number
from video2pde.report.document import Cell, Check, Column, Table

_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "×": r"$\times$",
    "∇": r"$\nabla$",
    "Δ": r"$\Delta$",
    "β": r"$\beta$",
    "σ": r"$\sigma$",
    "γ": r"$\gamma$",
    "κ": r"$\kappa$",
    "·": r"$\cdot$",
    "∞": r"$\infty$",
    "²": "$^2$",
    "³": "$^3$",
    "⁴": "$^4$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "–": "--",
    "\n": " ",
    "|": r"$\vert$",
    "<": r"$<$",
    ">": r"$>$",
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


@dataclass(frozen=True)
class Entry:
    """Head one column: its key in the CSV, its label, unit and number format for people.

    A ``percent`` column holds shares, which people see in per cent.
    """

    key: str
    label: str
    unit: str = ""
    format: str = ".4g"
    percent: bool = False


LIBRARY, TERM = Entry("library", "library"), Entry("term", "term")
RRMSE = Entry("rrmse", "rRMSE", percent=True, format=".3g")


@dataclass(frozen=True)
class Sheet:
    """Hold one table: rows of cells under entries. ``name`` is its file's."""

    name: str
    caption: str
    entries: tuple[Entry, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, key: str) -> list[Any]:
        index = [entry.key for entry in self.entries].index(key)
        return [row[index] for row in self.rows]

    def only(self, *keys: str) -> Sheet:
        """Take some of the columns."""
        places = [[entry.key for entry in self.entries].index(key) for key in keys]
        entries = tuple(self.entries[place] for place in places)
        return Sheet(self.name, self.caption, entries, tuple(tuple(row[i] for i in places) for row in self.rows))


def fill(name: str, caption: str, entries: Sequence[Entry], rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """Make a sheet of rows given by key; what a row does not have stays empty."""
    return Sheet(name, caption, tuple(entries), tuple(tuple(row.get(e.key) for e in entries) for row in rows))


def to_table(sheet: Sheet) -> Table:
    """Return the sheet as the page shows it."""
    numeric = [_is_numeric(sheet, place) for place in range(len(sheet.entries))]
    columns = tuple(
        Column(e.label, "%" if e.percent else e.unit, "right" if n else "left", e.format)
        for e, n in zip(sheet.entries, numeric, strict=True)
    )
    rows = tuple(tuple(_shown(c, e) for c, e in zip(row, sheet.entries, strict=True)) for row in sheet.rows)
    return Table(columns, rows, sheet.caption)


def to_csv(sheet: Sheet) -> str:
    """Return the sheet as CSV with all digits; an estimate takes three columns, a check becomes true or false."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    spread = [any(isinstance(row[i], Estimate) for row in sheet.rows) for i in range(len(sheet.entries))]
    heads: list[str] = []
    for entry, wide in zip(sheet.entries, spread, strict=True):
        heads += [entry.key, f"{entry.key}_low", f"{entry.key}_high"] if wide else [entry.key]
    writer.writerow(heads)
    for row in sheet.rows:
        values: list[Any] = []
        for cell, wide in zip(row, spread, strict=True):
            values += _raw(cell, wide)
        writer.writerow(values)
    return file.getvalue()


def to_latex(sheet: Sheet) -> str:
    """Return the sheet as a LaTeX table for the booktabs package."""
    numeric = [_is_numeric(sheet, place) for place in range(len(sheet.entries))]
    heads = [
        _tex(e.label + (f" ({'%' if e.percent else e.unit})" if e.percent or e.unit else "")) for e in sheet.entries
    ]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(sheet.caption)}}}", rf"\label{{tab:{sheet.name}}}"]
    lines += [rf"\begin{{tabular}}{{{''.join('r' if n else 'l' for n in numeric)}}}", r"\toprule"]
    lines += [" & ".join(heads) + r" \\", r"\midrule"]
    for row in sheet.rows:
        texts = [_text(_shown(c, e), e.format) for c, e in zip(row, sheet.entries, strict=True)]
        lines.append(" & ".join(_tex(text) for text in texts) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _is_numeric(sheet: Sheet, place: int) -> bool:
    cells = [row[place] for row in sheet.rows if row[place] is not None]
    return bool(cells) and all(isinstance(c, int | float | Estimate) and not isinstance(c, bool) for c in cells)


def _shown(cell: Cell, entry: Entry) -> Cell:
    """Scale shares to per cent; a pass or fail stays what it is."""
    if isinstance(cell, bool):
        return Check(cell, "yes" if cell else "no")
    if not entry.percent or cell is None or not isinstance(cell, int | float | Estimate):
        return cell
    if isinstance(cell, Estimate):
        return cell.scaled(100.0)
    return 100.0 * cell


def _raw(cell: Any, wide: bool) -> list[Any]:
    match cell:
        case Estimate():
            return [_finite(cell.value), _finite(cell.low), _finite(cell.high)]
        case Check():
            value: Any = cell.text if cell.passed is None else str(cell.passed).lower()
        case bool():
            value = str(cell).lower()
        case int() | float():
            value = _finite(float(cell)) if isinstance(cell, float) else cell
        case None:
            value = ""
        case _:
            value = _harmless(cell if isinstance(cell, str) else getattr(cell, "text", None) or cell.plain)
    return [value, "", ""] if wide else [value]


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking outside text for a formula."""
    return f"'{text}" if text[:1] in FORMULA else text


def _finite(value: float) -> Any:
    return float(value) if math.isfinite(value) else ""


def _text(cell: Any, spec: str) -> str:
    match cell:
        case None:
            return "–"
        case Check():
            return cell.text or {True: "pass", False: "fail", None: "–"}[cell.passed]
        case Estimate():
            return " ".join(format_estimate(cell, spec)).strip()
        case str():
            return cell
        case int() | float():
            return format_number(cell, spec)
    return str(getattr(cell, "text", None) or cell.plain)


def _tex(text: str) -> str:
    powers = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{2,}|[⁰¹⁵⁶⁷⁸⁹]", lambda m: f"\0{m[0].translate(_SUPERSCRIPTS)}\1", text)
    safe = "".join(_TEX.get(letter, letter) for letter in powers)
    return safe.replace("\0", "$^{").replace("\1", "}$")
