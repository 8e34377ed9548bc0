"""Kill a small pipeline again and again, continue it, and print how every continued run differs from a whole one.

A process of its own that forks: ``python killed_runs.py FOLDER [--broken]``. The pipeline has three stages, each made
from the one before, and leaves a result.json. It is killed at every point where something changes on disk, before and
after, at both ends of every stage, and at random times. The broken one draws its noise without a seed.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.field import Grid
from video2pde.runs.events import QuietEvents
from video2pde.runs.folder import RunFolder, stage_key

RANDOM_KILLS = 25
BROKEN = "--broken" in sys.argv
Step = Callable[[], None]


def run(path: Path, reached: Step) -> None:
    """Run the three stages; ``reached`` is called at both ends of each."""
    timings = {}
    with RunFolder(path, QuietEvents()) as folder:
        key, values = "film", np.arange(200_000.0)
        for name in ("read", "fit", "choose"):
            key = stage_key(name, [key], {"scale": 3, "seed": 5})

            def compute(values: Any = values, name: str = name) -> Any:
                reached()
                noise = np.random.default_rng(None if BROKEN else [5, len(name)]).normal(size=len(values))
                time.sleep(0.003)
                reached()
                return {"values": np.sqrt(np.abs(values)) + noise, "grid": Grid(2, 3, 1.0, 1.0), "name": name}

            artefact, seconds, _ = folder.stage(name, key, compute)
            values, timings[name] = artefact["values"], seconds
        folder.write_json(
            "result.json", {"mean": float(values.mean()), "sum": float(values.sum()), "timings_s": timings}
        )


def forked(task: Step) -> int:
    """Run a task in a child process and return the child's id."""
    child = os.fork()
    if child == 0:
        task()
        os._exit(0)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class KillAt:
    """Kill this process when the n-th point is reached; calls that change the disk are points before and after."""

    def __init__(self, point: int) -> None:
        self.point, self.count = point, 0
        for name in ("fsync", "replace"):
            setattr(os, name, self._around(getattr(os, name)))

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.point:
            os.kill(os.getpid(), signal.SIGKILL)

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self()
            answer = call(*arguments, **options)
            self()
            return answer

        return watched


def contents(path: Path) -> dict[str, Any]:
    """Return all that a run leaves, less times of day and durations."""
    result = json.loads((path / "result.json").read_text())
    left: dict[str, Any] = {"timed": sorted(result.pop("timings_s")), "result.json": result}
    for file in sorted(path.rglob("*")):
        if file.suffix == ".npz":
            with zipfile.ZipFile(file) as archive:
                left[file.name] = {n: archive.read(n).hex() for n in archive.namelist() if n != "meta.json"}
        elif file.name not in ("result.json", "log.txt", ".lock", ".lock-holder"):
            left[file.name] = "folder" if file.is_dir() else "a file too many"
    return left


def kill_everywhere(folder: Path, whole: dict[str, Any], report: Callable[[str, bool, bool], None]) -> None:
    for point in range(1, 4 if BROKEN else 1000):
        path = folder / "killed"
        status = ended(forked(lambda path=path, point=point: run(path, KillAt(point))))
        if status == 0:
            report(f"{point - 1} points", contents(path) == whole, True)
            return
        assert status == -signal.SIGKILL
        assert ended(forked(lambda path=path: run(path, lambda: None))) == 0
        report(f"point {point}", contents(path) == whole, True)
        shutil.rmtree(path)


def kill_at_random(folder: Path, whole: dict[str, Any], report: Callable[[str, bool, bool], None], last: float) -> None:
    draw = random.Random(1)
    path = folder / "random"
    for _ in range(RANDOM_KILLS):
        child = forked(lambda: run(path, lambda: None))
        time.sleep(draw.uniform(0, last))
        os.kill(child, signal.SIGKILL)
        killed = ended(child) == -signal.SIGKILL
        assert ended(forked(lambda: run(path, lambda: None))) == 0
        report("random", contents(path) == whole, killed)
        shutil.rmtree(path)


def main(folder: Path) -> None:
    started = time.monotonic()
    assert ended(forked(lambda: run(folder / "whole", lambda: None))) == 0
    took = time.monotonic() - started
    whole = contents(folder / "whole")
    found: list[tuple[str, bool, bool]] = []
    kill_everywhere(folder, whole, lambda *line: found.append(line))
    if not BROKEN:
        kill_at_random(folder, whole, lambda *line: found.append(line), took)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
