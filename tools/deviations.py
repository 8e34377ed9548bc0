"""Run the whole pipeline on films with one broken assumption each, and count who was sure and wrong.

Usage: python tools/deviations.py --set tuning|check|second|third|fourth|fifth|camera|"camera again"|"camera third"|
           "camera fourth" [--only TEXT] [--workers N] [--page FILE]

    right                 verdict ``law``, the film's terms, every true coefficient inside its interval
    wrong but said so     any other verdict, or a warning of the recording or of the fit
    sure and wrong        verdict ``law``, wrong terms or a coefficient outside, and nothing said

Each film's result is kept under build/deviations as soon as it is there, under the sources' fingerprint; an interrupted
run continues. The exit status is 1 where a film was sure and wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from camera_sets import CAMERA_SETS
from check_sets import CHECKS
from films import Film, list_films, render
from kept import fingerprint, recall, ROOT, show

from video2pde.errors import Video2pdeError
from video2pde.parallel import parallel_map
from video2pde.record import Run

KEPT = ROOT / "build" / "deviations"
CELL = 2
"""Camera pixels along a cell of the grid."""
OUTCOMES = ("right", "wrong but said so", "sure and wrong")
NAMES: dict[str, tuple[str, ...]] = {
    "rotation": ("rotation", "flow"),
    "shear": ("strain", "flow"),
    "strain": ("strain", "flow"),
    "vortex": ("flow",),
    "pulse": ("flow",),
    "divergence": ("divergence",),
    "source": ("source",),
    "halves": ("coefficients in space",),
    "slowing": ("coefficients in time",),
    "anisotropy": ("anisotropy",),
    "fading": ("missing constant and u",),
    "steep": ("narrow front",),
    "fourth": ("missing biharmonic",),
    "memory": ("memory",),
    "immobile": ("immobile part",),
    "dimming": ("gain",),
    "exposure": ("gain",),
    "flicker": ("flicker",),
    "steps": ("gain", "flicker"),
    "vignetting": ("uneven light",),
    "dome": ("uneven light",),
    "gamma": ("response",),
}
"""The suspects that are a deviation's right name; of other deviations no suspect is."""
SAID = {
    "gamma": "response",
    "saturation": "saturated",
    "shake": "shake",
    "handheld": "shake",
    "exposure": "background",
    "dimming": "background",
}
"""Deviations that a warning names, and its word."""
HARMLESS = ("compression", "the starts of", "only ")
"""How warnings begin that say nothing about the law."""


def run_film(
    film: Film, overrides: dict[str, Any] | None = None, look: Callable[[Film, Run], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Render the film, run the pipeline on it, and return its result with the verdict on it.

    ``look`` adds to the result what else is to be seen in the run.
    """
    from video2pde.pipeline import run_pipeline
    from video2pde.settings import load_settings

    settings = load_settings(
        overrides={
            "recording.grid": tuple(side // CELL for side in film.camera.size),
            "run.workers": 1,
            "refinement.enabled": False,
            "front.enabled": False,
            **(overrides or {}),
        }
    )
    with tempfile.TemporaryDirectory() as name:
        path, truth = render(film, Path(name))
        began = time.perf_counter()
        try:
            run = run_pipeline(path, Path(name) / "run", settings, until="test")
        except Video2pdeError as error:
            said = str(error).replace(name, "").strip()
            return {**film.describe(), "truth": truth, "outcome": OUTCOMES[1], "verdict": f"error: {said}"}
        seconds = time.perf_counter() - began
        found, warnings = run.to_json(), list(run.warnings)
        more = {"moves": moves(film, run), **({} if look is None else look(film, run))}
    judged = judge(film, found, warnings)
    return {**film.describe(), "truth": truth, **judged, **more, "seconds": round(seconds, 1)}


def moves(film: Film, run: Run) -> bool:
    """Tell whether the deviation moves a coefficient outside the interval that calibration alone gives it, or the law.

    Intervals of the result are widened by what the test of fit finds; a strength that matters is one that matters
    without it.
    """
    chosen = None if run.selection is None else run.selection.chosen
    law = run.calibration.get(chosen or "")
    if law is None or law.estimates.keys() != film.nominal.keys():
        return True
    return not all(law.estimates[name].low <= true <= law.estimates[name].high for name, true in film.nominal.items())


def judge(film: Film, found: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Compare what was found with what is true."""
    selected = found["selected"] or {"terms": {}, "library": None}
    terms = {}
    for term, true in film.nominal.items():
        estimate = selected["terms"].get(term)
        if estimate is not None and estimate["low"] is not None:
            terms[term] = {
                "true": true,
                **{key: estimate[key] for key in ("value", "low", "high")},
                "error": estimate["value"] / true - 1,
                "held": bool(estimate["low"] <= true <= estimate["high"]),
            }
    same = selected["terms"].keys() == film.nominal.keys()
    right = found["verdict"] == "law" and same and len(terms) == len(film.nominal)
    right = right and all(term["held"] for term in terms.values())
    said = found["verdict"] != "law" or any(not line.startswith(HARMLESS) for line in warnings)
    fit = found.get("fit") or {}
    return {
        "outcome": OUTCOMES[0] if right else OUTCOMES[1] if said else OUTCOMES[2],
        "verdict": found["verdict"],
        "reason": found["reason"],
        "chosen": selected["library"],
        "found": {name: entry["value"] for name, entry in selected["terms"].items()},
        "terms": terms,
        "named": _named(film.deviation, fit, [found["reason"], *warnings]),
        "warnings": warnings,
        "fit": fit,
        "suspects": [entry["name"] for entry in fit.get("suspects", [])],
    }


def _named(deviation: str, fit: dict[str, Any], warnings: list[str]) -> bool | None:
    """Say whether the cause was named rightly; None where there is no name for it."""
    if deviation not in NAMES and deviation not in SAID:
        return None
    cause = (fit.get("cause") or {}).get("name")
    word = SAID.get(deviation)
    return cause in NAMES.get(deviation, ()) or any(word is not None and word in line for line in warnings)


def run_once(sources: str, again: bool, film: Film) -> dict[str, Any]:
    """Return a film's result, from an earlier run of the same sources where there is one."""
    return recall(KEPT / f"{film.key}.json", sources, partial(run_film, film), _line, again)


def _line(result: dict[str, Any]) -> str:
    found = ", ".join(f"{name} {value:.3g}" for name, value in result.get("found", {}).items())
    suspects = ", ".join(result.get("suspects", [])[:2])
    return f"{result['key']:32} {result['outcome']:18} {result['verdict'][:40]:14} {found}  {suspects}"


def write_table(results: list[dict[str, Any]]) -> str:
    """Write the counts and a row for each film, in Markdown."""
    lines = []
    for outcome in OUTCOMES:
        count = sum(result["outcome"] == outcome for result in results)
        lines.append(f"- {outcome}: {count} of {len(results)}")
    asked = [result for result in results if result["outcome"] == OUTCOMES[1] and result.get("named") is not None]
    moved = [result for result in asked if result["moves"]]
    for kind, part in (("", asked), (", where a coefficient or the law moves", moved)):
        lines.append(f"- the cause named rightly{kind}: {sum(result['named'] for result in part)} of {len(part)}")
    lines += ["", "| film | outcome | verdict | found (true) | named causes |", "| --- | --- | --- | --- | --- |"]
    for result in results:
        nominal = result["nominal"]
        pairs = {**dict.fromkeys(nominal), **result.get("found", {})}
        found = ", ".join(
            f"{name} {'–' if value is None else format(value, '.3g')} ({nominal.get(name, 0):g})"
            for name, value in pairs.items()
        )
        name = f"{result['base']}, {result['deviation'] or 'undisturbed'} {result['strength']:g}"
        causes = ", ".join(result.get("suspects", [])[:2]) or "–"
        lines.append(f"| {name} | {result['outcome']} | {result['verdict'].split(':')[0]} | {found} | {causes} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run films with one broken assumption each.")
    parser.add_argument("--set", choices=("tuning", *CHECKS, *CAMERA_SETS), default="tuning", help="which films")
    parser.add_argument("--only", default="", help="only the films whose name contains this text, or one of several|so")
    parser.add_argument("--workers", type=int, default=1, help="films at a time, each on one core")
    parser.add_argument("--again", action="store_true", help="run films again that have a result of these sources")
    parser.add_argument("--list", action="store_true", help="only name the films")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    films = [film for film in list_films(options.set) if any(text in film.key for text in options.only.split("|"))]
    if options.list:
        print("\n".join(film.key for film in films))
        return 0
    results = parallel_map(partial(run_once, fingerprint(), options.again), films, options.workers)
    show(write_table(results), options.page)
    return 1 if any(result["outcome"] == OUTCOMES[2] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
