"""Count which flow ``drift.flow = "auto"`` takes on films that have none: those of the scoreboard, or of a check set.

Usage: python tools/flow_choices.py --set board|tuning|check|… [--only TEXT] [--workers N] [--page FILE]

Films are rendered and read, and the flow is chosen; nothing after that is run. On the scoreboard every film must stay
uniform (exit status 1 otherwise). On a check set, a fault other than a flow may look like one: the table says which.
Choices are kept under build/flow_choices, under the sources' fingerprint; an interrupted run continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import films
import scoreboard
from kept import fingerprint, recall, ROOT, show

from video2pde.errors import Video2pdeError
from video2pde.parallel import parallel_map

KEPT = ROOT / "build" / "flow_choices"
Film = films.Film | scoreboard.Film


def choose(film: Film) -> dict[str, Any]:
    """Render a film and choose its flow."""
    from video2pde.pipeline import run_pipeline
    from video2pde.recording.synth import render_film
    from video2pde.settings import load_settings

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if isinstance(film, films.Film):
            path, _ = films.render(film, folder)
            grid = tuple(side // 2 for side in film.camera.size)
        else:
            case, camera = scoreboard.film_case(film)
            path, grid = render_film(case, folder, camera), (film.grid, film.grid)
        overrides = {"recording.grid": grid, "run.workers": 1, "drift.flow": "auto"}
        try:
            run = run_pipeline(path, folder / "run", load_settings(overrides=overrides), until="discovery")
        except Video2pdeError as error:
            return {"flow": f"error: {str(error).replace(name, '').strip()}"}
    found = None if run.discovery is None else run.discovery.flow
    if found is None:
        return {"flow": "none tried"}
    return {"flow": found.chosen, "left": {each.name: each.unexplained for each in found.candidates}}


def choose_once(sources: str, chosen: str, film: Film) -> dict[str, Any]:
    """Return a film's choice, from an earlier run of the same sources where there is one."""
    path = KEPT / f"{chosen}-{film.key}.json".replace(" ", "-")
    compute = partial(choose, film)
    return recall(path, sources, lambda: {"film": film.key, **compute()}, lambda found: f"{film.key}: {found['flow']}")


def summarise(results: list[dict[str, Any]]) -> str:
    """Write counts, and a row for each film that is not uniform, in Markdown."""
    counts = Counter(result["flow"] for result in results)
    lines = [f"- {flow}: {count} of {len(results)}" for flow, count in counts.most_common()]
    taken = [result for result in results if result["flow"] not in ("uniform", "none tried")]
    rows = [f"| {result['film']} | {result['flow']} |" for result in taken]
    return "\n".join([*lines, "", "| film | flow |", "| --- | --- |", *rows]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Count which flow is taken on films without one.")
    parser.add_argument("--set", dest="chosen", default="board", help="board, or the name of a check set")
    parser.add_argument("--only", default="", help="only the films whose name contains this text")
    parser.add_argument("--workers", type=int, default=1, help="films at a time, each on one core")
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    board = options.chosen == "board"
    every = list(scoreboard.list_films()) if board else list(films.list_films(options.chosen))
    todo = [film for film in every if options.only in film.key and not any(flow in film.key for flow in films.FLOWS)]
    results = parallel_map(partial(choose_once, fingerprint(), options.chosen), todo, options.workers)
    show(summarise(results), options.page)
    return int(board and any(result["flow"] not in ("uniform", "none tried") for result in results))


if __name__ == "__main__":
    sys.exit(main())
