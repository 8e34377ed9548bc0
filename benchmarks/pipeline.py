"""The whole command: a paper-size film, and the demo film with empty and with full caches.

The paper-size film is 1920 × 1080, 1009 frames over 34 s, law C, rendered here; the demo film is that of ``make demo``.
Each run is ``video2pde run`` with the default preset in a process of its own. "until report.html" is what a user waits
for: result and page are there, and the inverse PINN follows.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.runs.memory import estimate_memory
from video2pde.settings import load_settings

FRAMES = 1009
LIMIT_S = 360.0
COLD_S, WARM_S = 75.0, 45.0
"""Seconds until the demo film's page is there, on two quiet cores: on a fresh machine, and later."""
COMMAND = (sys.executable, "-m", "video2pde.cli")
CROP = ("--crop", "450,0,1080,1080", "--border", "8", "--grid", "200,200")


@dataclass(frozen=True)
class Timed:
    """A run: its folder's result, and the seconds until its page was there and until it ended."""

    result: dict[str, Any]
    page_mb: float
    answered: float
    ended: float

    def rows(self, film: str) -> list[dict[str, Any]]:
        """List the seconds of each stage, and of the whole."""
        stages = [
            {"name": f"{film}, stage {name}", "value": value, "unit": "s"}
            for name, value in self.result["timings_s"].items()
        ]
        return [*stages, {"name": f"{film}, the whole command", "value": self.ended, "unit": "s"}]


def time_run(film: Path, out: Path, *options: str, caches: Path | None = None) -> Timed:
    """Run the command on a film; ``caches``: a folder for compiled code instead of the user's."""
    kept = {} if caches is None else {"VIDEO2PDE_CACHE": str(caches), "NUMBA_CACHE_DIR": str(caches / "numba")}
    page = out / "report.html"
    began = time.perf_counter()
    command = [*COMMAND, "run", str(film), "--out", str(out), "--quiet", *options]
    with subprocess.Popen(command, env={**os.environ, **kept}, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not page.is_file():
            time.sleep(0.05)
        answered = time.perf_counter() - began
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, command)
    ended = time.perf_counter() - began
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return Timed(result, page.stat().st_size / 1e6, answered, ended)


def run_demo(folder: Path) -> list[dict[str, Any]]:
    """Run the demo film twice, first with empty caches."""
    subprocess.run([*COMMAND, "synth", "demo", "--out", str(folder), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    rows: list[dict[str, Any]] = []
    for name, limit in (("demo film, empty caches", COLD_S), ("demo film, full caches", WARM_S)):
        timed = time_run(folder / "film.mp4", folder / name.replace(" ", "-"), caches=folder / "caches")
        rows.append({"name": f"{name}, until report.html", "value": timed.answered, "unit": "s", "limit": limit})
        rows += timed.rows(name)
    return rows


def run_paper(folder: Path) -> list[dict[str, Any]]:
    """Render the paper-size film, run the command on it, and compare with the truth."""
    film, name = render_film(make_case("C"), folder / "film", Camera(frames=FRAMES)), "paper-size film"
    timed = time_run(film, folder / "run", *CROP)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    estimate = estimate_memory(FRAMES, (200, 200), load_settings(), (1080, 1920)) / 2**20
    rows: list[dict[str, Any]] = [
        {"name": f"{name}, until report.html", "value": timed.answered, "unit": "s", "limit": LIMIT_S},
        {"name": f"{name}, peak memory", "value": peak, "unit": "MiB"},
        {"name": f"{name}, peak memory / what was estimated", "value": peak / estimate, "unit": "×", "limit": 1.0},
        {"name": f"{name}, report.html", "value": timed.page_mb, "unit": "MB", "limit": 12.0},
    ]
    rows += timed.rows(name)
    found = (timed.result["selected"] or {"terms": {}})["terms"]
    for term, value in make_case("C").law.coefficients.items():
        error = 100 * (found[term]["value"] / value - 1) if term in found else float("nan")
        rows.append({"name": f"{name}, error of {term}", "value": error, "unit": "%"})
    return rows


def run() -> list[dict[str, Any]]:
    """Return all rows; the paper-size film comes first: its peak is the largest of all processes so far."""
    with tempfile.TemporaryDirectory() as folder:
        return [*run_paper(Path(folder)), *run_demo(Path(folder) / "demo")]


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']}: {row['value']:.4g} {row['unit']}")
