"""Film laws that are known, run the whole pipeline on each film, and keep the score.

Usage: python tools/scoreboard.py [--workers N] [--only TEXT] [--flow auto] [--page docs/scoreboard.md]

Laws × camera noise × compression × background, one film each; ten seeds of camera noise for the case that the
intervals are judged on; more films without noise; full-size films of every law; films in which no law is to
be found. Each film's score is kept under build/scoreboard as soon as it is there, so that an interrupted run continues.
With ``--flow auto`` a flow may be found as well; none of these films has one, so that all must stay uniform, and then
every number is what the default gives, to the digit.
The exit status is 1 where a bar was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TYPE_CHECKING

from kept import fingerprint, recall, ROOT
from scoreboard_page import write_page

from video2pde.errors import Video2pdeError
from video2pde.parallel import parallel_map

if TYPE_CHECKING:
    from video2pde.recording.synth import Camera, Case

KEPT = ROOT / "build" / "scoreboard"
LIBRARY = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
BRIGHTEST = 0.95
"""Largest u of a film: a plume on a background is made lower where it would not fit the camera's range."""
NOISES, QUALITIES, SEEDS = (0.0, 0.01, 0.02, 0.05), (18, 28), 10
BACKGROUNDS = {name: (0.0, 0.1) if name == "Fisher" else (0.1, 0.25) for name in LIBRARY}


@dataclass(frozen=True)
class Film:
    """One film of the board: which law, and how it was filmed."""

    part: str
    law: str
    noise: float
    crf: int
    background: float
    seed: int = 0
    size: int = 540
    frames: int = 205
    grid: int = 100

    @property
    def key(self) -> str:
        return f"{self.part}-{self.law}-n{self.noise:g}-q{self.crf}-b{self.background:g}-s{self.seed}"


def list_films() -> Iterator[Film]:
    """Name every film of the board, the quick ones first."""
    for law in ("static", "noise", "drift"):
        for noise in (0.0, 0.02) if law != "noise" else (0.02, 0.05):
            for seed in range(2):
                yield Film("nothing", law, noise, 23, 0.3 if law == "noise" else 0.1, seed)
    for noise in NOISES:
        for crf in QUALITIES:
            for law in LIBRARY:
                for background in BACKGROUNDS[law]:
                    yield Film("grid", law, noise, crf, background)
    for seed in range(SEEDS):
        for law in LIBRARY:
            yield Film("seeds", law, 0.02, 23, BACKGROUNDS[law][0], seed)
    for crf in (0, 23):
        for law in LIBRARY:
            yield Film("no noise", law, 0.0, crf, BACKGROUNDS[law][0])
    for noise, crf in ((0.0, 0), (0.0, 18), (0.0, 23), (0.02, 23)):
        for law in LIBRARY:
            yield Film("full size", law, noise, crf, BACKGROUNDS[law][0], size=1080, frames=405, grid=200)


def film_case(film: Film) -> tuple[Case, Camera]:
    """Return what is filmed, and the camera."""
    from video2pde.recording.synth import Camera, find_preset, make_case

    peak = min(find_preset(film.law).plume.peak, BRIGHTEST - film.background)
    case = make_case(film.law, background=film.background, peak=peak)
    camera = Camera(size=(film.size, film.size), frames=film.frames, noise=film.noise, crf=film.crf, seed=film.seed)
    return case, camera


def score(film: Film, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Film the law, run the pipeline up to the choice with ``more`` settings, and compare with the truth."""
    from video2pde.pipeline import run_pipeline
    from video2pde.recording.synth import render_film
    from video2pde.settings import load_settings

    case, camera = film_case(film)
    overrides = {
        "recording.grid": (film.grid, film.grid),
        "run.workers": 1,
        # a second opinion and an alternative, which the choice of the law and its coefficients do not use
        "refinement.enabled": False,
        "front.enabled": False,
        **(more or {}),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = render_film(case, folder, camera)
        began = time.perf_counter()
        try:
            run = run_pipeline(recording, folder / "run", load_settings(overrides=overrides), until="selection")
        except Video2pdeError as error:
            said = str(error).replace(str(folder), "").strip()
            return {**asdict(film), "verdict": f"error: {said}", "chosen": None, "right": False, "terms": {}}
        seconds = time.perf_counter() - began
    # intervals as a user is given them, with what the test of fit adds
    selection, laws = run.selection, run.laws
    assert selection is not None
    expected = LIBRARY.get(film.law)
    terms = {}
    chosen = selection.chosen
    estimates = {} if chosen is None else laws[chosen].estimates
    # the law is its terms: a library of which a term was left out is not the law
    same = expected is not None and estimates.keys() == case.law.coefficients.keys()
    if same:
        for term, truth in case.law.coefficients.items():
            found = estimates[term]
            held, width = bool(found.low <= truth <= found.high), (found.high - found.low) / 2 / abs(truth)
            terms[term] = {"error": found.value / truth - 1, "held": held, "width": width}
    right = selection.verdict == "law" and same if expected else selection.verdict == "no_law"
    if chosen is not None and not same:
        chosen = f"{chosen}: {', '.join(estimates)}"
    return {
        **asdict(film),
        "verdict": selection.verdict,
        "chosen": chosen,
        "right": right,
        "terms": terms,
        "flow": None if run.discovery is None or run.discovery.flow is None else run.discovery.flow.chosen,
        "seconds": round(seconds, 1),
    }


def score_once(sources: str, flow: str, film: Film) -> dict[str, Any]:
    """Return a film's score, from an earlier run of the same sources where there is one."""
    path = KEPT / f"{film.key}{'' if flow == 'uniform' else f'-{flow}'}.json".replace(" ", "-")

    def say(found: dict[str, Any]) -> str:
        return f"{film.key}: {found['verdict']} {found['chosen'] or ''} {found.get('flow') or ''}"

    return recall(path, sources, partial(score, film, {"drift.flow": flow}), say)


def main() -> int:
    parser = argparse.ArgumentParser(description="Recover known laws from films and keep the score.")
    parser.add_argument("--workers", type=int, default=2, help="films at a time, each on one core")
    parser.add_argument("--only", default="", help="only the films whose name contains this text; writes no page")
    parser.add_argument("--flow", choices=("uniform", "auto"), default="uniform", help="drift.flow")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "scoreboard.md", help="the page to write")
    options = parser.parse_args()
    films = [film for film in list_films() if options.only in film.key]
    print(f"{len(films)} films", file=sys.stderr, flush=True)
    began = time.perf_counter()

    def report(done: int, total: int) -> None:
        left = (time.perf_counter() - began) / done * (total - done) / 60
        print(f"{done} of {total} films, about {left:.0f} min left", file=sys.stderr, flush=True)

    scores = parallel_map(partial(score_once, fingerprint(), options.flow), films, options.workers, report)
    page, missed = write_page(scores)
    print(page)
    if not options.only:
        options.page.write_text(page, encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
