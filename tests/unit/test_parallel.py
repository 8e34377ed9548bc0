"""The one map: same results in order for any number of workers, progress, and errors that come through."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from video2pde.errors import StageError
from video2pde.parallel import count_workers, map_threads, parallel_map, threads_of_run

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


def test_threads_of_a_run_share_work_out_once_and_keep_its_order() -> None:
    def inner(x: int) -> tuple[int, str]:
        return x, threading.current_thread().name

    def outer(_: int) -> tuple[str, list[tuple[int, str]]]:
        return threading.current_thread().name, map_threads(inner, range(3))

    with threads_of_run(2):
        found = map_threads(outer, range(8))
    here = threading.current_thread().name
    assert {name for name, _ in found} <= {"video2pde_0", here}  # who shares out works as well
    for name, own in found:  # a thread that shared its work out would wait for itself
        assert own == [(0, name), (1, name), (2, name)]
    assert map_threads(inner, range(2)) == [(0, here), (1, here)]  # outside a run nobody has allowed more than one


def test_what_fails_in_a_thread_comes_through_and_the_threads_go_on() -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="three is refused"):
            map_threads(refuse_three, range(6), 2)
    assert map_threads(square, range(6), 2) == [0, 1, 4, 9, 16, 25]


def test_threads_that_others_keep_busy_are_not_waited_for() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def hold(_: int) -> bool:
        begun.release()
        return go_on.wait(SECONDS)

    other = threading.Thread(target=map_threads, args=(hold, range(2), 2))
    other.start()
    try:
        assert all(begun.acquire(timeout=SECONDS) for _ in range(2))
        assert map_threads(square, range(6), 2) == [0, 1, 4, 9, 16, 25]
        assert not go_on.is_set()
    finally:
        go_on.set()
        other.join()
