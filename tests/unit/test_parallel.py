"""The one map: same results in order for any number of workers, progress, and errors that come through."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from video2pde.errors import StageError
from video2pde.parallel import count_workers, parallel_map

SECONDS = 60
"""How long a busy machine may take to start or end a process."""


def square(x: int) -> int:
    return x * x


def refuse_three(x: int) -> int:
    if x == 3:
        raise ValueError("three is refused")
    return x


def die(x: int) -> int:
    os._exit(x)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_with_progress(workers: int) -> None:
    seen: list[tuple[int, int]] = []
    assert parallel_map(square, range(6), workers, lambda done, total: seen.append((done, total))) == [
        0,
        1,
        4,
        9,
        16,
        25,
    ]
    assert seen == [(k, 6) for k in range(1, 7)]


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_come_through(workers: int) -> None:
    with pytest.raises(ValueError, match="three is refused"):
        parallel_map(refuse_three, range(6), workers)


def test_a_dead_worker_is_reported_with_a_cure() -> None:
    with pytest.raises(StageError, match=r"run\.workers=1"):
        parallel_map(die, [1, 2], 2)


def test_nothing_to_do() -> None:
    assert parallel_map(square, [], 4) == []


def test_workers_as_given_or_one_per_core() -> None:
    assert count_workers(3) == 3
    assert count_workers("auto") == len(psutil.Process().cpu_affinity())


def stay(_: int) -> None:
    time.sleep(600)


@pytest.mark.posix
def test_workers_end_with_a_starter_that_is_killed() -> None:
    words = "from test_parallel import stay; from video2pde.parallel import parallel_map; parallel_map(stay, [1, 2], 2)"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", f"if __name__ == '__main__':\n    {words}"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}) as starter:
        workers = wait_for(lambda: busy_workers(starter.pid))
        starter.kill()
    _, left = psutil.wait_procs(workers, timeout=SECONDS)
    assert left == []


def busy_workers(pid: int) -> list[psutil.Process]:
    """Return the two workers of a process once both have imported what they are to carry out."""
    children = psutil.Process(pid).children()
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    return workers if len(workers) == 2 and all(worker.num_threads() > 1 for worker in workers) else []


def wait_for(ready: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if found := ready():
            return found
        time.sleep(0.05)
    raise AssertionError("no workers were started")
