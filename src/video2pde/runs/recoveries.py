"""Recoveries after a bleach side by side: a table over several recordings, with what they have in common."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.runs.folder import RESULT
from video2pde.runs.listing import summarise_run

COLUMNS = {
    "diffusion": "D",
    "mobile_fraction": "mobile",
    "half_time_s": "half time (s)",
    "bleaching_rate": "bleaching (1/s)",
}
LEAST_FOR_SPREAD = 2


@dataclass(frozen=True)
class RecoveryRow:
    """The recovery of one run: its folder, estimates by name, the unit of D, whether D is steady (None: unknown)."""

    folder: str
    estimates: dict[str, Estimate | None]
    unit: str
    steady: bool | None


def read_recovery(folder: Path) -> RecoveryRow:
    """Read the recovery that a run with ``frap.enabled`` measured."""
    summarise_run(folder)  # says what is wrong with a folder that is no run, or no finished one
    path = folder / RESULT
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    found = result.get("frap")
    if found is None:
        raise InputError(f"{folder} has no recovery; run it with --preset frap")
    estimates = {name: _estimate(found.get(name)) for name in COLUMNS}
    return RecoveryRow(str(folder), estimates, str(found["diffusion"].get("unit", "")), found.get("steady"))


def _estimate(entry: dict[str, Any] | None) -> Estimate | None:
    return None if entry is None or entry.get("value") is None else Estimate.from_json(entry)


def tabulate_recoveries(rows: Sequence[RecoveryRow]) -> str:
    """Write recoveries as a table, and below it their mean and their spread from recording to recording."""
    units = sorted({row.unit for row in rows})
    heading = ["run", f"D ({units[0]})" if len(units) == 1 else "D", *list(COLUMNS.values())[1:], "D steady"]
    lines = [heading]
    for row in rows:
        cells = [_cell(row.estimates[name]) for name in COLUMNS]
        if len(units) > 1:
            cells[0] += f" {row.unit}"
        lines.append([row.folder, *cells, {True: "yes", False: "no", None: "–"}[row.steady]])
    if len(rows) >= LEAST_FOR_SPREAD and len(units) == 1:
        lines.append(["mean ± standard deviation", *(_spread(rows, name) for name in COLUMNS), ""])
    widths = [max(len(line[k]) for line in lines) for k in range(len(heading))]
    return "\n".join("  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)).rstrip() for line in lines)


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    ends = f" [{estimate.low:.3g}, {estimate.high:.3g}]" if estimate.has_interval else ""
    return f"{estimate.value:.4g}{ends}"


def _spread(rows: Sequence[RecoveryRow], name: str) -> str:
    values = [estimate.value for row in rows if (estimate := row.estimates[name]) is not None]
    if len(values) < LEAST_FOR_SPREAD:
        return "–"
    return f"{mean(values):.4g} ± {stdev(values):.2g}"


def recoveries_as_csv(rows: Sequence[RecoveryRow]) -> str:
    """Write recoveries as CSV: value, low and high of each number."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["run", "unit", *(f"{name}{end}" for name in COLUMNS for end in ("", "_low", "_high")), "steady"])
    for row in rows:
        numbers: list[float | str] = []
        for name in COLUMNS:
            e = row.estimates[name]
            numbers += ["", "", ""] if e is None else [e.value, e.low, e.high] if e.has_interval else [e.value, "", ""]
        writer.writerow([row.folder, row.unit, *numbers, "" if row.steady is None else row.steady])
    return file.getvalue()
