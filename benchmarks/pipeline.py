"""The whole command on a paper-size film: time of each stage and peak memory.

The film is 1920 × 1080, 1009 frames over 34 s, law C, rendered here; the run is ``video2pde run`` with the default
preset in a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.runs.memory import estimate_memory
from video2pde.settings import load_settings

FRAMES = 1009
LIMIT_S = 360.0


def run() -> list[dict[str, Any]]:
    """Render the film, run the command on it, and return the rows."""
    with tempfile.TemporaryDirectory() as folder:
        film = render_film(make_case("C"), Path(folder) / "film", Camera(frames=FRAMES))
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "video2pde.cli", "run", str(film), "--out", str(out), "--quiet"]
        crop = ["--crop", "450,0,1080,1080", "--border", "8", "--grid", "200,200"]
        began = time.perf_counter()
        subprocess.run([*command, *crop], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        result = json.loads((out / "result.json").read_text(encoding="utf-8"))
        page = (out / "report.html").stat().st_size / 1e6
    truth = make_case("C").law.coefficients
    estimate = estimate_memory(FRAMES, (200, 200), load_settings(), (1080, 1920)) / 2**20
    rows: list[dict[str, Any]] = [
        {"name": "paper-size film, the whole command", "value": seconds, "unit": "s", "limit": LIMIT_S},
        {"name": "paper-size film, peak memory", "value": peak, "unit": "MiB"},
        {
            "name": "paper-size film, peak memory / what was estimated",
            "value": peak / estimate,
            "unit": "×",
            "limit": 1.0,
        },
        {"name": "paper-size film, report.html", "value": page, "unit": "MB", "limit": 12.0},
    ]
    rows += [
        {"name": f"paper-size film, stage {name}", "value": value, "unit": "s"}
        for name, value in result["timings_s"].items()
    ]
    found = (result["selected"] or {"terms": {}})["terms"]
    for term, value in truth.items():
        error = 100 * (found[term]["value"] / value - 1) if term in found else float("nan")
        rows.append({"name": f"paper-size film, error of {term}", "value": error, "unit": "%"})
    return rows


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']}: {row['value']:.4g} {row['unit']}")
