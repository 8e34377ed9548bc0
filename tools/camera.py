"""Run the films of a camera's faults and hold them against undisturbed ones: right law, intervals, errors.

Usage: python tools/camera.py [--set camera|"camera again"|"camera third"|"camera fourth"]
           [--only TEXT] [--kept] [--page FILE]

A fault is undone where the film ends with its own terms, where its true coefficients lie inside their intervals, and
where their errors are below twice those of undisturbed films (the rms over their seeds, coefficient by coefficient).
Results are those of tools/deviations.py, kept under build/deviations; ``--kept`` takes those of any sources and runs
nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from camera_sets import CAMERA_SETS
from deviations import KEPT, run_once
from films import list_films
from kept import fingerprint, show

TIMES = 2.0
"""Error, in units of that of undisturbed films, below which a fault costs nothing that matters."""
SHORT = {"laplacian": "D", "grad_squared": "a"}


def usual_errors(results: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the rms error of undisturbed films, by law and term, relative."""
    errors = defaultdict(list)
    for result in results:
        for name, term in result.get("terms", {}).items():
            if not result["deviation"]:
                errors[result["base"], name].append(term["error"])
    return {key: float(np.sqrt(np.mean(np.square(found)))) for key, found in errors.items()}


def has_law(result: dict[str, Any]) -> bool:
    """Tell whether the film ends with its own terms, as a law or as an approximation."""
    return set(result.get("found", {})) == set(result["nominal"]) == set(result.get("terms", {}))


def write_table(results: list[dict[str, Any]]) -> str:
    """Write the counts and a row for each film, in Markdown."""
    usual = usual_errors(results)
    disturbed = [result for result in results if result["deviation"]]
    terms = [(result, name, term) for result in disturbed if has_law(result) for name, term in result["terms"].items()]
    near = [abs(term["error"]) < TIMES * usual.get((result["base"], name), 0.0) for result, name, term in terms]
    lines = [
        f"- own terms: {sum(map(has_law, disturbed))} of {len(disturbed)}, as a law "
        f"{sum(has_law(result) and result['verdict'] == 'law' for result in disturbed)}",
        f"- true coefficients inside their intervals: {sum(term['held'] for *_, term in terms)} of {len(terms)}",
        f"- errors below {TIMES:g} times those of undisturbed films: {sum(near)} of {len(near)}",
        f"- sure and wrong: {sum(result['outcome'] == 'sure and wrong' for result in disturbed)}",
        "",
        "| film | verdict | found [interval] (true) | error, in those of undisturbed films |",
        "| --- | --- | --- | --- |",
    ]
    for result in results:
        what = f"{result['deviation']} {result['strength']:g}" if result["deviation"] else "undisturbed"
        lines.append(f"| {result['base']}, {what} | {result['verdict'].split(':')[0]} | {_found(result, usual)} |")
    return "\n".join(lines) + "\n"


def _found(result: dict[str, Any], usual: dict[tuple[str, str], float]) -> str:
    if not has_law(result):
        return (", ".join(result.get("found", {})) or "–") + " | –"
    found, errors = [], []
    for name, term in result["terms"].items():
        inside = "" if term["held"] else " **outside**"
        value, low, high = (f"{term[key]:.3g}" for key in ("value", "low", "high"))
        found.append(f"{SHORT.get(name, name)} = {value} [{low}, {high}] ({term['true']:g}){inside}")
        size = usual.get((result["base"], name))
        errors.append("–" if not size else f"{abs(term['error']) / size:.1f}")
    return f"{', '.join(found)} | {', '.join(errors)}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold films of a camera's faults against undisturbed ones.")
    parser.add_argument("--set", choices=tuple(CAMERA_SETS), default="camera", help="which films")
    parser.add_argument("--only", default="", help="only the films whose name contains this text, or one of several|so")
    parser.add_argument("--kept", action="store_true", help="run nothing: results that are there, of any sources")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    films = [film for film in list_films(options.set) if any(text in film.key for text in options.only.split("|"))]
    if options.kept:
        paths = [KEPT / f"{film.key}.json" for film in films]
        results = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    else:
        sources = fingerprint()
        results = [run_once(sources, False, film) for film in films]
    show(write_table(results), options.page)
    return 1 if any(result["outcome"] == "sure and wrong" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
