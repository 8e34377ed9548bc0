"""Repeat studies of known truth: how well many films know their law together, and what is said where they differ.

Usage: python tools/studies.py one|condition|outlier [--repetitions 20] [--films 12] [--first 0] [--workers 1]

``one``: films of one law, with other plumes, drifts, pitches, frame rates, lengths and noise. Asked for: pooled
coefficients within 0.3 %, their interval holds in 19 of 20, its half-width at most 1.3/√n of a single film's, equality
not rejected in 18 of 20. ``condition``: β grows with a condition; rejected in 20 of 20, slope within 3 %. ``outlier``:
one film of another law (decay beside) among the others; named, and no other. Every film is rendered and encoded. Every
repetition is kept under build/studies as soon as it is there, under the sources' fingerprint; an interrupted run
continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from kept import fingerprint, recall, ROOT

from video2pde.recording.synth import Camera, find_preset, make_case, render_film
from video2pde.settings import load_settings
from video2pde.study.equality import REJECTED
from video2pde.study.order import run_study
from video2pde.study.plan import FilmPlan, Plan
from video2pde.study.result import describe_study
from video2pde.tasks import Workforce

KEPT = ROOT / "build" / "studies"
KINDS = ("one", "condition", "outlier")
TERMS = ("grad_squared", "laplacian")
GROWTH = 0.5
"""Relative growth of β over the range of the condition, from 1 to 2."""
DECAY = -0.02
"""What the film of another law has beside: c u, 1/s."""
SETTINGS = {"regression.law": "C", "calibration.replicates": 30, "run.workers": 1, "steadiness.parts": 0}
SIDES, CELLS, FRAMES, SECONDS = (432, 480, 528), (76, 84, 92), (61, 91), (22.0, 34.0)
"""Camera pixels and cells along a side, one of each; fewest and most frames, and seconds, of a film."""
NOISE = (0.01, 0.03)
"""Of a camera pixel, share of full scale."""


def make_film(kind: str, number: int, count: int, rng: np.random.Generator, folder: Path) -> FilmPlan:
    """Render one film, and say how it is to be read."""
    law = dict(find_preset("C").law.coefficients)
    condition = 1.0 + number / max(count - 1, 1)
    if kind == "condition":
        law["laplacian"] *= 1 + GROWTH * (condition - 1)
    if kind == "outlier" and number == count // 2:
        law["u"] = DECAY
    side, cells, frames = int(rng.choice(SIDES)), int(rng.choice(CELLS)), int(rng.integers(*FRAMES))
    drift = tuple(rng.uniform(-0.4, 0.4, 2).tolist())
    plume, seconds = int(rng.integers(1, 10**6)), float(rng.uniform(*SECONDS))
    case = make_case("C", coefficients=law, background=0.1, drift=drift, seed=plume, duration=seconds)
    noise, seed = float(rng.uniform(*NOISE)), int(rng.integers(10**6))
    name = f"film{number:02d}"
    path = render_film(case, folder / name, Camera(size=(side, side), frames=frames, noise=noise, seed=seed))
    settings = load_settings("quick", overrides={**SETTINGS, "recording.grid": [cells, cells]})
    return FilmPlan(name, path, settings, {"condition": condition})


def study_films(kind: str, repetition: int, count: int, workers: int) -> dict[str, Any]:
    """Render the films of one repetition, study them, and return what was found."""
    rng = np.random.default_rng([21, repetition, KINDS.index(kind)])
    with tempfile.TemporaryDirectory(prefix="studies-") as name:
        folder = Path(name)
        films = tuple(make_film(kind, number, count, rng, folder) for number in range(count))
        plan = Plan(kind, films, load_settings("quick", overrides=SETTINGS))
        return describe_study(run_study(plan, folder / "study", Workforce(workers)))


def repeat(kind: str, repetition: int, count: int, workers: int) -> dict[str, Any]:
    """Return one repetition, from an earlier run of the same sources where there is one."""
    return recall(
        KEPT / f"{kind}-{count}-{repetition:02d}.json",
        fingerprint(),
        lambda: study_films(kind, repetition, count, workers),
        lambda found: write_row(kind, repetition, judge(kind, found)),
    )


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
            "width": float(half / np.median(halves) * np.sqrt(len(films))),
            "films_hold": sum(inside),
        }
    if kind == "condition":
        slope = next(t for t in found["comparison"]["trends"] if t["term"] == "laplacian")["line"]["slope"]
        true = GROWTH * truth["laplacian"]
        verdict["slope"] = {"error": slope["value"] / true - 1, "holds": slope["low"] <= true <= slope["high"]}
    return verdict


def write_row(kind: str, repetition: int, verdict: dict[str, Any]) -> str:
    """Write one repetition in a line."""
    parts = [f"{kind} {repetition:2d}: chance {verdict['chance']:.3g}, named {', '.join(verdict['named']) or 'none'}"]
    for name in TERMS:
        v = verdict[name]
        parts.append(
            f"{name} {v['error']:+.2%}, holds {v['holds']}, width {v['width']:.2f}, in {v['films_hold']} films"
        )
    if "slope" in verdict:
        parts.append(f"slope {verdict['slope']['error']:+.1%}, holds {verdict['slope']['holds']}")
    return "; ".join(parts)


def summarise(verdicts: list[dict[str, Any]]) -> str:
    """Write what all repetitions say together."""
    lines = []
    for name in (name for name in (*TERMS, "slope") if name in verdicts[0]):
        found = [verdict[name] for verdict in verdicts]
        errors = np.array([each["error"] for each in found])
        line = f"{name}: worst error {np.abs(errors).max():.2%}, mean {errors.mean():+.2%}, rms {rms(errors):.2%}"
        line += f", interval holds in {sum(each['holds'] for each in found)}"
        if "width" in found[0]:
            widths = [each["width"] for each in found]
            line += f", half-width {np.median(widths):.2f}/√n of a film's at the median, {max(widths):.2f} at most"
        lines.append(line)
    lines.append(f"equality rejected in {sum(v['chance'] < REJECTED for v in verdicts)} of {len(verdicts)}")
    named = ["+".join(v["named"]) or "none" for v in verdicts]
    lines.append("named: " + ", ".join(f"{name} in {count}" for name, count in Counter(named).items()))
    return "\n".join(lines)


def rms(values: np.ndarray[Any, Any]) -> float:
    return float(np.sqrt(np.mean(values**2)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Repeat studies of known truth.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--films", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.repetitions)
    verdicts = [judge(options.kind, repeat(options.kind, n, options.films, options.workers)) for n in numbers]
    for number, verdict in zip(numbers, verdicts, strict=True):
        print(write_row(options.kind, number, verdict))
    print(summarise(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
