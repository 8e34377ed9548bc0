"""Compare the search over sets of terms with the libraries on a sample of the scoreboard's films: one for each law.

Usage: python tools/searched.py [--only TEXT] [--page FILE]

The law must be the same, and its coefficients and intervals to the last digits. Results are kept under build/searched
as soon as they are there, under the sources' fingerprint; an interrupted run continues.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kept import fingerprint, recall, ROOT, show
from scoreboard import BACKGROUNDS, Film, LIBRARY, score

KEPT = ROOT / "build" / "searched"
SAME = 1e-6
"""Relative difference up to which two numbers are the same: sums of the same terms in another order."""
SAMPLE = (
    *(Film("grid", law, 0.01, 18, BACKGROUNDS[law][0]) for law in LIBRARY),
    *(Film("nothing", law, 0.02, 23, 0.3 if law == "noise" else 0.1) for law in ("static", "noise", "drift")),
)


def compare(film: Film) -> dict[str, Any]:
    """Run a film both ways."""
    plain, searched = score(film), score(film, {"search.over": "subsets"})
    same = plain["verdict"] == searched["verdict"] and plain["terms"].keys() == searched["terms"].keys()
    apart = [
        abs(plain["terms"][name][key] - searched["terms"][name][key])
        for name in plain["terms"]
        if name in searched["terms"]
        for key in ("error", "width")
    ]
    return {"key": film.key, "same": same and max(apart, default=0.0) < SAME, "libraries": plain, "subsets": searched}


def _row(result: dict[str, Any]) -> str:
    def told(found: dict[str, Any]) -> str:
        errors = ", ".join(f"{name} {100 * term['error']:+.3f} %" for name, term in found["terms"].items())
        return f"{found['verdict'].split(':')[0]}: {found['chosen'] or '–'} {errors}".strip()

    return f"| {result['key']} | {told(result['libraries'])} | {told(result['subsets'])} | {result['same']} |"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the search with the libraries on a sample of films.")
    parser.add_argument("--only", default="", help="only the films whose name contains this text")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    films, sources = [film for film in SAMPLE if options.only in film.key], fingerprint()
    results = [recall(KEPT / f"{film.key}.json", sources, partial(compare, film), _row) for film in films]
    head = ["| film | libraries | subsets | the same |", "| --- | --- | --- | --- |"]
    same = f"- the same law and numbers: {sum(result['same'] for result in results)} of {len(results)}"
    show("\n".join([same, "", *head, *(_row(result) for result in results), ""]), options.page)
    return 0 if all(result["same"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
