"""Rows to Markdown: one table for each kind of row, and the page of the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]
Result = Mapping[str, Any]

INTRODUCTION = """\
# Benchmarks

Written by `make bench` (`python -m benchmarks` in the environment that it makes), which measures everything below in
one run, peers from PyPI included, and takes about twenty minutes on two quiet cores. `python -m benchmarks peers`
runs one module alone and leaves this page as it is. The same figures lie in `benchmarks/results/latest.json`. Times
depend on the machine; a limit beside a figure is one that the run checks.
"""


def exceeds(row: Row) -> bool:
    """Tell whether a row breaks its limit."""
    return row.get("limit") is not None and row["value"] > row["limit"]


def to_tables(rows: Sequence[Row]) -> list[str]:
    """Write rows as tables, a new one wherever the columns change.

    A row {"name", "value", "unit"} (and perhaps "limit") is a measurement; any other row's keys are its columns.
    """
    lines: list[str] = []
    for columns, group in groupby(map(_cells, rows), key=list):
        members = list(group)
        aligned = [_is_numeric(cells[name] for cells in members) for name in columns]
        lines += [_line(columns), _line("---:" if numeric else "---" for numeric in aligned)]
        lines += [_line(cells.values()) for cells in members]
        lines.append("")
    return lines


def _cells(row: Row) -> dict[str, str]:
    """Return a row's cells by column, as text."""
    if "value" not in row:
        return {str(key): format_value(value) for key, value in row.items()}
    limit = "" if row.get("limit") is None else f"{row['limit']:g}{' EXCEEDED' if exceeds(row) else ''}"
    unit = str(row.get("unit", ""))
    return {"measurement": str(row["name"]), "value": format_value(row["value"]), "unit": unit, "limit": limit}


def format_value(value: Any) -> str:
    """Write a number with three or four figures, what is not a number as a dash."""
    if isinstance(value, float):
        return "—" if math.isnan(value) else f"{value:.4g}" if abs(value) >= 1 else f"{value:.3g}"
    return str(value)


def _is_numeric(cells: Any) -> bool:
    """Tell whether a column holds numbers, dashes and gaps alone."""
    texts = [text for text in cells if text not in ("", "—")]
    return bool(texts) and all(_parses(text.removesuffix(" EXCEEDED")) for text in texts)


def _parses(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def to_markdown(machine: Mapping[str, Any], results: Sequence[Result]) -> str:
    """Write the machine and every module's rows as one page."""
    lines = [INTRODUCTION, "## Machine and versions", "", *(f"- {key}: {value}" for key, value in machine.items()), ""]
    for result in results:
        lines += [f"## {result['title']}", "", f"`benchmarks/{result['module']}.py`, {result['seconds']:.0f} s.", ""]
        lines += [result["notes"].strip(), ""] if result["notes"] else []
        lines += [f"failed: {result['failure']}", ""] if result["failure"] else []
        lines += to_tables(result["rows"])
    return "\n".join(lines).rstrip() + "\n"
