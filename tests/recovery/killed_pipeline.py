"""Kill the whole pipeline fifty times at random moments, the page's writing included, and continue it each time.

A process of its own that forks: ``python killed_pipeline.py FIELD FOLDER``. It prints, as JSON, in which stage each
kill fell, and for every finished run how it differs from an undisturbed one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import video2pde.publish
from video2pde.pipeline import run_pipeline
from video2pde.settings import load_settings

KILLS = 50
IN_REPORT = 3
"""One kill in so many waits for the report to begin."""
SEED = 20240611
SETTINGS = load_settings(
    "quick",
    overrides={
        "weak.test_functions": 200,
        "identifiability.stability_runs": 4,
        "calibration.replicates": 3,
        "run.workers": 1,
    },
)
VARIES = ("timings_s",)


def start(field: Path, out: Path) -> int:
    """Run the pipeline in a child process and return its id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_pipeline(field, out, SETTINGS, latex=True)
            status = 0
        finally:
            os._exit(status)
    return child


def wait(child: int, seconds: float) -> int | None:
    """Wait for a child; None where it still runs after so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def last_stage(out: Path) -> str:
    """Tell from the log which stage was at work."""
    try:
        lines = (out / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "start"
    marks = [line.split("INFO")[1].strip() for line in lines if "INFO" in line and ":" in line.split("INFO")[1]]
    return marks[-1].split(":")[0] if marks else "start"


def contents(out: Path) -> dict[str, Any]:
    """Return all that a run leaves, less durations and times of day."""
    left: dict[str, Any] = {}
    for file in sorted(out.rglob("*")):
        name = file.relative_to(out).as_posix()
        if file.is_dir() or file.name.startswith(".lock") or name == "log.txt":
            continue
        if file.suffix == ".npz":
            with zipfile.ZipFile(file) as archive:
                left[name] = {n: archive.read(n).hex() for n in archive.namelist() if n != "meta.json"}
        elif name == "result.json":
            result = json.loads(file.read_text(encoding="utf-8"))
            left[name] = {key: value for key, value in result.items() if key not in VARIES}
        elif name == "report.html":
            left[name] = file.read_text(encoding="utf-8").rstrip().endswith("</html>")
        elif file.suffix in (".png", ".pdf"):
            left[name] = file.stat().st_size > 500
        else:
            left[name] = file.read_text(encoding="utf-8")
    return left


def main(field: Path, folder: Path) -> None:
    draw = random.Random(SEED)
    began = time.monotonic()
    child = start(field, folder / "warm")  # fills the caches of compiled code
    assert wait(child, 600) == 0
    shutil.rmtree(folder / "warm")
    began = time.monotonic()
    assert wait(start(field, folder / "whole"), 600) == 0
    took = time.monotonic() - began
    whole = contents(folder / "whole")
    places: Counter[str] = Counter()
    differences: list[list[str]] = []
    kills, out = 0, folder / "killed"
    while kills < KILLS:
        child = start(field, out)
        status: int | None = None
        if kills % IN_REPORT == 0:
            until = time.monotonic() + 60
            while status is None and last_stage(out) != "report" and time.monotonic() < until:
                status = wait(child, 0.01)
        status = wait(child, draw.uniform(0, took / 2)) if status is None else status
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
            places[last_stage(out)] += 1
            continue
        assert status == 0, f"a continued run ended with status {status}"
        found = contents(out)
        differences.append(sorted(name for name in {*whole, *found} if whole.get(name) != found.get(name)))
        shutil.rmtree(out)
    assert wait(start(field, out), 600) == 0
    found = contents(out)
    differences.append(sorted(name for name in {*whole, *found} if whole.get(name) != found.get(name)))
    print(json.dumps({"kills": kills, "places": places, "differences": differences, "seconds": took}))


if __name__ == "__main__":
    assert video2pde.publish is not None
    main(Path(sys.argv[1]), Path(sys.argv[2]))
