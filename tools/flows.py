"""Run the whole pipeline on films of five laws in five flows, with the flow left to be found, and count.

Usage: python tools/flows.py [--set usual|check] [--flow auto|uniform] [--only TEXT] [--workers N] [--page FILE]

With ``auto``, the law must be right, its coefficients within 3 % and inside their intervals, and the flow within 5 %
(rms, where there is dye, less its mean, which is drift). With ``uniform`` no film may be sure and wrong. Results are
kept under build/flows as soon as they are there, under the sources' fingerprint; an interrupted run continues. Rules
were made on the usual set; the other is there to check on.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from deviations import OUTCOMES, run_film
from films import Film, list_flow_check, list_flow_films
from kept import fingerprint, recall, ROOT, show

from video2pde.parallel import parallel_map
from video2pde.record import Run

KEPT = ROOT / "build" / "flows"
CLOSE, FLOW_CLOSE = 0.03, 0.05
HELD = 0.93
EVERY = 6
"""Frames from one at which flows are compared to the next."""
DYE = 0.05
"""How far u must rise above the background for a flow to be compared there."""


def compare_flow(film: Film, run: Run) -> dict[str, Any]:
    """Compare the chosen law's flow with the true one over the training window."""
    law = run.chosen
    flow = None if law is None else law.model.flow
    if flow is None or run.windows is None or run.field is None:
        return {"flow": None, "flow_error": None}
    field, train = run.field, run.windows.train
    truth = film.deviated()[0].medium.flow
    x, y = np.meshgrid(field.grid.x - field.grid.width / 2, field.grid.y - field.grid.height / 2)
    error = size = 0.0
    for k in range(train.start, train.stop, EVERY):
        dye = np.maximum(field.values[k] - field.values[k].min() - DYE, 0.0)
        true = np.stack(truth.velocity(x, y, float(field.times[k])))
        found = flow.velocity(field.times[k : k + 1], field.grid)[0]
        for v in (true, found):
            v -= (v * dye).sum(axis=(1, 2), keepdims=True) / dye.sum()
        error += float(np.sum(dye * (found - true) ** 2))
        size += float(np.sum(dye * true**2))
    course = "" if flow.steady else ", pulsing" if flow.shape.course else ", changing"
    return {"flow": f"{flow.kind}{course}", "flow_error": float(np.sqrt(error / size))}


def run_once(sources: str, flow: str, film: Film) -> dict[str, Any]:
    """Return a film's result, from an earlier run of the same sources where there is one."""

    def compute() -> dict[str, Any]:
        return {**run_film(film, {"drift.flow": flow}, compare_flow), "crf": film.camera.crf}

    return recall(KEPT / f"{film.key}-{film.camera.crf}-{flow}.json", sources, compute, _row)


def _row(result: dict[str, Any]) -> str:
    errors = ", ".join(
        f"{name} {100 * term['error']:+.1f} %{'' if term['held'] else ' (outside)'}"
        for name, term in result.get("terms", {}).items()
    )
    flow = result.get("flow_error")
    off = "–" if flow is None else f"{100 * flow:.0f} %"
    name = f"{result['base']}, {result['deviation']}, quality {result['crf']}"
    verdict = result["verdict"].split(":")[0]
    return f"| {name} | {verdict}: {result.get('chosen')} | {errors} | {result.get('flow') or '–'} | {off} |"


def summarise(results: list[dict[str, Any]]) -> str:
    """Write counts and a row for each film, in Markdown."""
    terms = [term for result in results for term in result.get("terms", {}).values()]
    right = [result for result in results if result["outcome"] != OUTCOMES[2] and _same_law(result)]
    close = [r for r in right if all(abs(term["error"]) <= CLOSE for term in r["terms"].values())]
    flows = [result["flow_error"] for result in results if result.get("flow_error") is not None]
    lines = [
        f"- right law: {len(right)} of {len(results)}; verdict `law`: {sum(r['verdict'] == 'law' for r in results)}",
        f"- all coefficients within 3 %: {len(close)} of {len(results)}",
        f"- coefficients inside their intervals: {sum(term['held'] for term in terms)} of {len(terms)}",
        f"- flow within 5 % (rms): {sum(error <= FLOW_CLOSE for error in flows)} of {len(results)}",
        f"- sure and wrong: {sum(result['outcome'] == OUTCOMES[2] for result in results)} of {len(results)}",
        "",
        "| film | verdict | errors | flow found | flow off by |",
        "| --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *(_row(result) for result in results)]) + "\n"


def _same_law(result: dict[str, Any]) -> bool:
    return result.get("found", {}).keys() == result["nominal"].keys()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run films of five laws in five flows.")
    parser.add_argument("--set", dest="chosen", choices=("usual", "check"), default="usual", help="which films")
    parser.add_argument("--flow", choices=("auto", "uniform", "affine", "stream"), default="auto", help="drift.flow")
    parser.add_argument("--only", default="", help="only the films whose name contains this text, or one of several|so")
    parser.add_argument("--workers", type=int, default=1, help="films at a time, each on one core")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    names = options.only.split("|")
    every = list_flow_films() if options.chosen == "usual" else list_flow_check()
    films = [film for film in every if any(text in f"{film.key}-{film.camera.crf}" for text in names)]
    results = parallel_map(partial(run_once, fingerprint(), options.flow), films, options.workers)
    show(summarise(results), options.page)
    return 1 if any(result["outcome"] == OUTCOMES[2] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
