"""Repeat studies of known truth: how well many films know their law together, and what is said where they differ.

Usage: python tools/studies.py one|condition|outlier [--repetitions 20] [--films 12] [--first 0] [--workers 1]

``one``: films of one law, with other plumes, drifts, pitches, frame rates, lengths and noise. Asked for: pooled
coefficients within 0.3 %, their interval holds in 19 of 20, its half-width at most 1.3/√n of a single film's, equality
not rejected in 18 of 20. ``condition``: β grows with a condition; rejected in 20 of 20, slope within 3 %. ``outlier``:
one film of another law (decay beside) among the others; named, and no other. Every repetition is kept under
build/studies, so that an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.field import Grid, Provenance
from video2pde.recording.synth import exact_field, find_preset, make_case, noisy
from video2pde.settings import load_settings
from video2pde.study.order import run_study
from video2pde.study.plan import FilmPlan, Plan
from video2pde.study.result import describe_study
from video2pde.tasks import Workforce

KEPT = Path(__file__).resolve().parent.parent / "build" / "studies"
PIXELS = 5
"""Camera pixels along a cell's side: noise of a pixel is averaged over their square."""
TERMS = ("grad_squared", "laplacian")
GROWTH = 0.5
"""Relative growth of β over the range of the condition, from 1 to 2."""
DECAY = -0.02
"""What the film of another law has beside: c u, 1/s."""
SETTINGS = {"regression.law": "C", "calibration.replicates": 30, "run.workers": 1}


def make_film(kind: str, number: int, count: int, rng: np.random.Generator, folder: Path) -> tuple[Path, float]:
    """Make one film; return its path and its condition."""
    law = dict(find_preset("C").law.coefficients)
    condition = 1.0 + number / max(count - 1, 1)
    if kind == "condition":
        law["laplacian"] *= 1 + GROWTH * (condition - 1)
    if kind == "outlier" and number == count // 2:
        law["u"] = DECAY
    side, frames = int(rng.choice([72, 80, 88])), int(rng.integers(61, 91))
    times = np.linspace(0.0, float(rng.uniform(22.0, 34.0)), frames)
    drift = tuple(rng.uniform(-0.4, 0.4, 2).tolist())
    case = make_case("C", coefficients=law, background=0.1, drift=drift, seed=int(rng.integers(1, 10**6)))
    noise = float(rng.uniform(0.01, 0.03)) / PIXELS
    field = noisy(exact_field(case, Grid(side, side, 200.0, 200.0), times), noise, int(rng.integers(10**6)))
    path = folder / f"film{number:02d}.npz"
    replace(field, provenance=Provenance(path=path.name)).save(path)
    return path, condition


def repeat(kind: str, repetition: int, count: int, workers: int) -> dict[str, Any]:
    """Make the films of one repetition, study them, and keep what was found."""
    kept = KEPT / f"{kind}-{count}-{repetition:02d}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    folder = KEPT / f"{kind}-{repetition:02d}"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([21, repetition, ("one", "condition", "outlier").index(kind)])
    settings = load_settings("quick", overrides=SETTINGS)
    films = []
    for number in range(count):
        path, condition = make_film(kind, number, count, rng, folder)
        films.append(FilmPlan(path.stem, path, settings, {"condition": condition}))
    found = describe_study(run_study(Plan(kind, tuple(films), settings), folder / "study", Workforce(workers)))
    kept.write_text(json.dumps(found), encoding="utf-8")
    shutil.rmtree(folder)
    return found


def judge(kind: str, found: dict[str, Any]) -> dict[str, Any]:
    """Compare one study with the truth."""
    truth = find_preset("C").law.coefficients
    shared, films = found["selected"]["terms"], found["selected"]["films"]
    chance = found["comparison"]["equality"]["chance"]
    verdict: dict[str, Any] = {"chance": chance, "named": found["another_law"]}
    for name in TERMS:
        e = shared[name]
        half, halves = (e["high"] - e["low"]) / 2, [(f[name]["high"] - f[name]["low"]) / 2 for f in films.values()]
        inside = [f[name]["low"] <= truth[name] <= f[name]["high"] for f in films.values()]
        verdict[name] = {
            "error": e["value"] / truth[name] - 1,
            "holds": e["low"] <= truth[name] <= e["high"],
            "width": half / np.median(halves) * np.sqrt(len(films)),
            "films_hold": sum(inside),
        }
    if kind == "condition":
        trend = next(t for t in found["comparison"]["trends"] if t["term"] == "laplacian")
        verdict["slope"] = trend["line"]["slope"]["value"] / (GROWTH * truth["laplacian"]) - 1
    return verdict


def tell(kind: str, verdicts: list[dict[str, Any]]) -> None:
    """Print each repetition and the sum of all."""
    for number, verdict in enumerate(verdicts):
        parts = [
            f"{n}: {v['error']:+.2%}, holds {v['holds']}, width {v['width']:.2f}, films {v['films_hold']}"
            for n, v in verdict.items()
            if n in TERMS
        ]
        slope = f"; slope {verdict['slope']:+.1%}" if "slope" in verdict else ""
        print(f"{kind} {number}: chance {verdict['chance']:.3g}, named {verdict['named']}; {'; '.join(parts)}{slope}")
    for name in TERMS:
        errors = np.array([verdict[name]["error"] for verdict in verdicts])
        holds = sum(verdict[name]["holds"] for verdict in verdicts)
        worst, mean = np.abs(errors).max(), errors.mean()
        print(f"{name}: worst error {worst:.2%}, mean {mean:+.2%}, holds in {holds} of {len(verdicts)}")
    print(f"equality rejected in {sum(v['chance'] < 0.05 for v in verdicts)} of {len(verdicts)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Repeat studies of known truth.")
    parser.add_argument("kind", choices=("one", "condition", "outlier"))
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--films", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    verdicts = []
    for repetition in range(options.first, options.first + options.repetitions):
        verdicts.append(judge(options.kind, repeat(options.kind, repetition, options.films, options.workers)))
        print(f"{options.kind} {repetition} done", file=sys.stderr, flush=True)
    tell(options.kind, verdicts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
