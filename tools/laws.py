"""Run the whole pipeline on films of every kind of law beyond the scoreboard's, and count.

Usage: python tools/laws.py [--only TEXT] [--workers N] [--page FILE]

The law must have the film's terms, its coefficients must lie within 5 % (of two fields: 3 %) and inside their
intervals; of maps the root mean square of the error counts, each place weighed by its signal, and the share of the
map, weighed alike, whose interval holds the truth. Results are kept under build/laws as soon as they are there, under
the sources' fingerprint; an interrupted run continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kept import fingerprint, recall, ROOT, show
from law_films import LawFilm, LAWS, NOISE, PairFilm, PAIRS, POPULATIONS, QUALITY, RecoveryFilm

from video2pde.errors import Video2pdeError
from video2pde.field import Grid
from video2pde.maps import CoefficientMap
from video2pde.parallel import parallel_map
from video2pde.record import Run

KEPT = ROOT / "build" / "laws"
CLOSE, CLOSE_PAIRS = 0.05, 0.03
PLAIN = {"run.workers": 1, "refinement.enabled": False, "front.enabled": False}
BEFORE = 12
"""Frames before a bleach."""
LEVEL = 0.75
"""Brightness before it."""
Film = LawFilm | RecoveryFilm | PairFilm


def run_film(film: Film) -> dict[str, Any]:
    """Film a law, run the pipeline on it, and compare."""
    began = time.perf_counter()
    kind = {LawFilm: _one_field, RecoveryFilm: _recovery, PairFilm: _two_fields}[type(film)]
    with tempfile.TemporaryDirectory() as name:
        try:
            found = kind(film, Path(name))
        except Video2pdeError as error:
            said = str(error).replace(name, "").strip()
            found = {"verdict": f"error: {said}", "right": False, "numbers": {}}
    return {"film": film.name, **found, "seconds": round(time.perf_counter() - began, 1)}


def _one_field(film: LawFilm, folder: Path) -> dict[str, Any]:
    from video2pde.pipeline import run_pipeline
    from video2pde.recording.synth import sample_case
    from video2pde.recording.synth.render import render_pictures
    from video2pde.settings import load_settings

    camera, case = film.camera, film.case
    at = camera.pixel * (np.arange(film.pixels) + 0.5 - film.pixels / 2)
    pictures = sample_case(
        case,
        at,
        at,
        (camera.pixel, camera.pixel),
        camera.times(case),
        single=True,
        spacing=film.spacing,
        domain=film.domain,
    )
    path = render_pictures(pictures, folder, camera, case.duration)
    settings = load_settings(overrides={"recording.grid": (film.cells, film.cells), **PLAIN, **film.ask})
    run = run_pipeline(path, folder / "run", settings, until="test")
    result = run.to_json()
    selected = result["selected"] or {"terms": {}, "derived": [], "directions": None}
    numbers = _compare(film.case.law.coefficients, selected["terms"])
    for number in selected["derived"]:
        numbers |= _compare(
            {s: v for s, v in film.derived.items() if s == number["symbol"]}, {number["symbol"]: number}
        )
    right = selected["terms"].keys() == case.law.coefficients.keys()
    if film.directions is not None:
        right = set(selected["terms"]) == {"dxx", "dyy", "dxy"}
        found = selected["directions"] or {}
        numbers = _compare(dict(zip(("along", "across"), film.directions, strict=True)), found)
    maps = _compare_maps(film, run)
    numbers = {name: number for name, number in numbers.items() if not (maps and name == case.medium.varies)}
    return {
        "verdict": result["verdict"],
        "reason": result["reason"],
        "terms": list(selected["terms"]),
        "right": right,
        "numbers": numbers,
        **maps,
    }


def _compare(truth: Mapping[str, float], found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Compare estimates with what is true, by name."""
    numbers = {}
    for name, true in truth.items():
        estimate = found.get(name)
        if estimate is None:
            continue
        low, high = estimate["low"], estimate["high"]
        held = low is not None and bool(low <= true <= high)
        numbers[name] = {"true": true, "value": estimate["value"], "low": low, "high": high, "held": held}
    return numbers


def _compare_maps(film: LawFilm, run: Run) -> dict[str, Any]:
    """Compare the chosen law's map with the true one."""
    law = run.chosen
    if law is None or not law.maps or run.field is None or run.windows is None:
        return {}
    [each], grid = law.maps, run.field.grid
    times = run.field.times[run.windows.train]
    basis, true = each.basis(grid, times), _true_map(film, each, grid, times)
    mean = law.estimates[each.term].value
    weight = np.tensordot(each.signal, basis, axes=1)
    error = each.values(mean, basis) - true
    held = np.abs(error) <= 1.96 * each.error(mean, basis)
    return {
        "map_error": float(np.sqrt(np.sum(weight * (error / true) ** 2) / np.sum(weight))),
        "map_held": float(np.sum(weight * held) / np.sum(weight)),
        "varies": each.varies,
    }


def _true_map(film: LawFilm, each: CoefficientMap, grid: Grid, times: Any) -> Any:
    case, medium = film.case, film.case.medium
    value = case.law.coefficients[medium.varies]
    x, y = np.meshgrid(grid.x - grid.width / 2, grid.y - grid.height / 2)
    if each.over == "space":
        return value * medium.factor(x, y, 0.0, case.duration)
    return np.array([value * float(medium.factor(0.0, 0.0, float(t), case.duration)) for t in times])


def _recovery(film: RecoveryFilm, folder: Path) -> dict[str, Any]:
    from video2pde.pipeline import run_pipeline
    from video2pde.recording.synth import Camera
    from video2pde.recording.synth.populations import recovery_field
    from video2pde.recording.synth.render import render_pictures
    from video2pde.settings import load_settings

    side, frames, duration = 160, 90, 60.0
    seen = recovery_field(film.case, Grid(side, side, 200.0, 200.0), np.linspace(0, duration, frames)).values
    whole = np.concatenate([np.ones((BEFORE, side, side), np.float32), seen])
    interval = duration / (frames - 1)
    camera = Camera(size=(side, side), border=0, frames=len(whole), noise=NOISE, crf=QUALITY, seed=film.seed)
    path = render_pictures((1 - LEVEL * u for u in whole), folder, camera, interval * (len(whole) - 1))
    overrides = {
        **PLAIN,
        "recording.grid": (40, 40),
        "recording.border": 0,
        "recording.observable": "bright",
        "recording.reference": "before",
        "regression.law": "laplacian,u",
        "frap.populations": True,
    }
    run = run_pipeline(path, folder / "run", load_settings("frap", overrides=overrides), until="recovery")
    told = (run.to_json()["frap"] or {}).get("populations")
    if not isinstance(told, dict):
        return {"verdict": f"not compared: {told}", "right": False, "numbers": {}}
    numbers = _compare(film.truth, told["laws"][film.law]["parameters"])
    return {
        "verdict": told["chosen"],
        "reason": told["verdict"],
        "right": told["chosen"] == film.law,
        "numbers": numbers,
    }


def _two_fields(film: PairFilm, folder: Path) -> dict[str, Any]:
    from video2pde.pair.pipeline import run_pair
    from video2pde.recording.synth import write_system
    from video2pde.settings import load_settings

    path = write_system(film.system, folder, film.camera)
    overrides = {
        **PLAIN,
        "recording.channels": ["r", "g"],
        "recording.observable": "bright",
        "recording.grid": (film.cells, film.cells),
        "recording.border": 0,
    }
    run = run_pair(path, folder / "run", load_settings(overrides=overrides), until="test")
    result = run.to_json()
    truth = {f"u.{n}": v for n, v in film.system.u.items()} | {f"w.{n}": v for n, v in film.system.w.items()}
    terms = (result["selected"] or {"terms": {}})["terms"]
    return {
        "verdict": result["verdict"],
        "reason": result["reason"],
        "terms": list(terms),
        "right": terms.keys() == truth.keys(),
        "numbers": _compare(truth, terms),
        "tuned_on": film.tuned_on,
        "two": True,
    }


def _worst(result: dict[str, Any]) -> float:
    errors = [abs(number["value"] / number["true"] - 1) for number in result["numbers"].values()]
    return max([*errors, result.get("map_error", 0.0)], default=float("inf"))


def _row(result: dict[str, Any]) -> str:
    numbers = "; ".join(
        f"{name} {n['value']:.4g} [{n['low']:.4g}, {n['high']:.4g}] ({n['true']:.4g})"
        if n["low"] is not None
        else f"{name} {n['value']:.4g} ({n['true']:.4g})"
        for name, n in result["numbers"].items()
    )
    if "map_error" in result:
        numbers += f"; map {result['map_error']:.1%} off, {result['map_held']:.0%} held"
    verdict, terms = result["verdict"].split(":")[0], "right" if result["right"] else ", ".join(result.get("terms", []))
    name = result["film"] + (" (tuned on)" if result.get("tuned_on") else "")
    return f"| {name} | {verdict} | {terms} | {numbers} | {_worst(result):.1%} | {result['seconds']:.0f} |"


def summarise(results: list[dict[str, Any]]) -> str:
    """Write counts and a row for each film, in Markdown."""
    numbers = [number for result in results for number in result["numbers"].values()]
    close = [r for r in results if r["right"] and _worst(r) <= (CLOSE_PAIRS if r.get("two") else CLOSE)]
    return "\n".join(
        [
            f"- right terms: {sum(result['right'] for result in results)} of {len(results)}",
            f"- all coefficients within 5 % (of two fields: 3 %): {len(close)} of {len(results)}",
            f"- coefficients inside their intervals: {sum(n['held'] for n in numbers)} of {len(numbers)}",
            "",
            "| film | verdict | terms | found [interval] (true) | farthest off | seconds |",
            "| --- | --- | --- | --- | --- | --- |",
            *(_row(result) for result in results),
            "",
        ]
    )


def run_once(sources: str, film: Film) -> dict[str, Any]:
    """Return a film's result, from an earlier run of the same sources where there is one."""
    name = "".join(c if c.isalnum() else "-" for c in film.name.lower())
    return recall(KEPT / f"{name}.json", sources, partial(run_film, film), _row)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run films of every kind of law.")
    parser.add_argument("--only", default="", help="only the films whose name contains this text, or one of several|so")
    parser.add_argument("--workers", type=int, default=1, help="films at a time, each on one core")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    names = options.only.split("|")
    films = [film for film in (*LAWS, *POPULATIONS, *PAIRS) if any(text in film.name for text in names)]
    results = parallel_map(partial(run_once, fingerprint()), films, options.workers)
    show(summarise(results), options.page)
    return 0 if all(result["right"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
