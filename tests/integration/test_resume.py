"""A run that was killed and continued ends like one that was not; Ctrl-C leaves at once and says how to go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from video2pde.field import Field, Grid

KILLED_RUNS = Path(__file__).with_name("killed_runs.py")


def kill_runs(folder: Path, *options: str) -> list[tuple[str, bool, bool]]:
    """Return for each killed run its name, whether it ended like a whole one, and whether the kill came in time."""
    words = [sys.executable, KILLED_RUNS, folder, *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return [tuple(line) for line in json.loads(done.stdout)]


def test_killed_at_every_point_and_at_random_times_the_result_is_the_same(tmp_path: Path) -> None:
    found = kill_runs(tmp_path)
    points = [line for line in found if line[0] != "random"]
    # both ends of three stages; before and after two calls for each of the four files
    assert len(points) - 1 == 3 * 2 + 4 * 2 * 2
    assert [name for name, equal, _ in found if not equal] == []
    assert sum(killed for name, _, killed in found if name == "random") >= 10


def test_a_pipeline_without_a_seed_is_caught(tmp_path: Path) -> None:
    found = kill_runs(tmp_path, "--broken")
    assert len(found) == 3
    assert not any(equal for _, equal, _ in found)


# Stands in for the pipeline: one stage is finished, the next one is busy in a call that no signal ends.
BUSY = """
import sys, time, types
from pathlib import Path
from video2pde.runs.folder import RunFolder

def run_pipeline(film, out, settings, events, until=None, latex=False, figures=True, pdf=False, overwrite=False):
    with RunFolder(out, events) as folder:
        folder.stage("first", "k", lambda: 1)
        events.stage("second", "a long one")
        while True:
            {work}

pipeline = types.ModuleType("video2pde.pipeline")
pipeline.run_pipeline = run_pipeline
sys.modules["video2pde.pipeline"] = pipeline
from video2pde.cli.run import run
run(Path(sys.argv[2]), out=Path(sys.argv[4]))
"""
WORK = {"waiting": "time.sleep(60)", "computing": "sum(range(10**7))"}


@pytest.mark.parametrize("work", list(WORK))
@pytest.mark.posix
def test_ctrl_c_leaves_within_a_second_and_says_how_to_go_on(work: str, tmp_path: Path) -> None:
    film = Field(np.ones((8, 5, 5)), np.arange(8.0), Grid(5, 5, 1.0, 1.0)).save(tmp_path / "a film.npz")
    words = ["run", str(film), "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-c", BUSY.format(work=WORK[work]), *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "second: a long one\n"
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 130
        assert time.monotonic() - pressed < 1.0
    command = f"video2pde run '{film}' --out {tmp_path / 'out'}"
    assert rest == f"interrupted; finished stages are kept, go on with: {command}\n"
    assert (tmp_path / "out" / "stages" / "01-first.npz").exists()
    assert "interrupted" in (tmp_path / "out" / "log.txt").read_text()
