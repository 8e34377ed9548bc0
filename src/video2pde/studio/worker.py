"""Work that needs the heavy packages, in a process of its own that gives its memory back when it ends.

``check``: read a recording with given settings and tell what the recording stage finds, with u as a film.
``live``: write the page of a run as far as it has come.

Progress and result are lines of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from video2pde.errors import Video2pdeError
from video2pde.settings import load_settings


def check(request: dict[str, Any]) -> dict[str, Any]:
    """Read the recording as a run would, and gather its checks."""
    from video2pde.recording import read_recording
    from video2pde.report.films import make_player
    from video2pde.report.page import pack

    settings = load_settings(request["preset"], overrides=request["settings"])
    told = 0.0

    def progress(done: int, total: int | None) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told > 0.2:
            told = now
            _say({"done": done, "total": total})

    result = read_recording(request["film"], settings, progress)
    player = make_player(
        result.field,
        title="u, as a run would see it",
        alt="Film of the observable u on the run's grid.",
        budget=3_000_000,
    )
    document, films = pack(player)
    return {
        "warnings": list(result.warnings),
        "notes": list(result.field.provenance.notes),
        "numbers": None if result.checks is None else result.checks.summary(),
        "frames": len(result.field),
        "grid": list(result.field.grid.shape),
        "player": document,
        "films": films,
    }


def live(request: dict[str, Any]) -> dict[str, Any]:
    """Write the page of a run, finished or not, to a file of the studio's own."""
    from video2pde.record import load_run
    from video2pde.report.content import compose_page, Story
    from video2pde.report.page import write_page

    write_page(compose_page(Story(load_run(request["run"]), {}, None)), request["target"])
    return {"written": True}


TASKS = {"check": check, "live": live}


def main() -> int:
    """Carry out the task whose request is on stdin."""
    if hasattr(os, "nice"):  # the page and the runs come first
        os.nice(5)
    request = json.load(sys.stdin)
    try:
        _say({"result": TASKS[sys.argv[1]](request)})
    except Video2pdeError as error:
        _say({"error": " ".join(str(error).split())})
    return 0


def _say(value: dict[str, Any]) -> None:
    print(json.dumps(value, allow_nan=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
