"""Studies whose worker, scheduler or command is killed in the middle: the same command goes on, to the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dask_cluster import Cluster
from video2pde.field import Field, Grid

pytestmark = [pytest.mark.recovery, pytest.mark.posix]

SETTINGS = ("regression.law=laplacian", "weak.test_functions=300", "calibration.replicates=8", "run.workers=1")
FILMS, SECONDS = 4, 600


def save_films(folder: Path) -> list[Path]:
    x = np.arange(32) - 15.5
    paths = []
    for number in range(FILMS):
        rng = np.random.default_rng(number)
        spread = np.linspace(6.0, 16.0, 50 + number)[:, None, None]
        values = 4.0 / spread * np.exp(-(x**2 + x[:, None] ** 2) / (2 * spread))
        noisy = (values + 0.002 * rng.standard_normal(values.shape)).astype(np.float32)
        field = Field(noisy, np.linspace(0.0, 5.0, len(noisy)), Grid(32, 32, 32.0, 32.0))
        paths.append(field.save(folder / f"film{number}.npz"))
    return paths


class Studies:
    """Start the same study again and again, here or on a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.films = folder, save_films(folder)

    def start(self, out: str, *more: str) -> subprocess.Popen[str]:
        settings = [word for text in SETTINGS for word in ("--set", text)]
        words = ["study", *map(str, self.films), "--out", out, "--preset", "quick", *settings, *more]
        command = [sys.executable, "-m", "video2pde.cli", *words]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, out: str, *more: str) -> bytes:
        process = self.start(out, *more)
        said, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
        return (self.folder / out / "result.json").read_bytes()

    def wait_for_stages(self, out: str, count: int) -> None:
        """Wait until so many stages of the films are done."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            done = 0
            for path in (self.folder / out).glob("films/*/stages/standing.json"):
                try:
                    done += len(json.loads(path.read_text()))
                except (OSError, ValueError):
                    continue
            if done >= count:
                return
            time.sleep(0.05)
        raise AssertionError(f"{out} has not come to {count} stages")


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Studies:
    pytest.importorskip("distributed")
    return Studies(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def undisturbed(studies: Studies) -> bytes:
    return studies.finish("undisturbed")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[[], Cluster]]:
    made: list[Cluster] = []

    def make() -> Cluster:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Cluster(folder))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_two_processes_and_a_cluster_give_the_same_bytes(
    studies: Studies, undisturbed: bytes, cluster: Callable[[], Cluster]
) -> None:
    assert studies.finish("two", "--set", "run.workers=2") == undisturbed
    assert studies.finish("cluster", "--cluster", cluster().address) == undisturbed


def test_a_killed_worker(studies: Studies, undisturbed: bytes, cluster: Callable[[], Cluster]) -> None:
    made = cluster()
    process = studies.start("worker", "--cluster", made.address)
    studies.wait_for_stages("worker", 6)
    made.workers[0].kill()
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert (studies.folder / "worker" / "result.json").read_bytes() == undisturbed


def test_a_killed_scheduler(studies: Studies, undisturbed: bytes, cluster: Callable[[], Cluster]) -> None:
    made = cluster()
    process = studies.start("scheduler", "--cluster", made.address)
    studies.wait_for_stages("scheduler", 6)
    made.scheduler.kill()
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, said
    assert "was lost after" in said
    made.close()
    assert studies.finish("scheduler", "--cluster", cluster().address) == undisturbed


def test_a_killed_command(studies: Studies, undisturbed: bytes, cluster: Callable[[], Cluster]) -> None:
    made = cluster()
    process = studies.start("command", "--cluster", made.address)
    studies.wait_for_stages("command", 6)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    assert studies.finish("command", "--cluster", made.address) == undisturbed
