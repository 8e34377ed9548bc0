"""Tasks over processes and over a cluster: results, failures, and workers that die."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dask_cluster import Cluster
from video2pde.errors import InputError
from video2pde.tasks import Failed, Workforce


def double(number: int) -> int:
    if number < 0:
        raise InputError(f"{number} is negative")
    return 2 * number


def die_once(path: str) -> str:
    """Kill the process that carries this out, the first time."""
    mark = Path(path)
    if not mark.exists():
        mark.write_text("died", encoding="ascii")
        os.kill(os.getpid(), signal.SIGKILL)
    return mark.read_text(encoding="ascii")


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stumble_once(path: str) -> str:
    mark = Path(path)
    if not mark.exists():
        mark.write_text("stumbled", encoding="ascii")
        raise RuntimeError("once")
    return mark.read_text(encoding="ascii")


def stumble(_: int) -> None:
    raise RuntimeError("always")


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_a_failure_is_one_of_them(workers: int) -> None:
    seen: list[tuple[int, int]] = []
    found = Workforce(workers).map(double, [3, -1, 5], lambda done, total: seen.append((done, total)))
    assert found == [6, Failed("-1 is negative"), 10]
    assert seen[-1] == (3, 3)


@pytest.mark.parametrize("workers", [1, 2])
def test_long_tasks_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr("video2pde.tasks.TICK_SECONDS", 0.02)
    seen: list[tuple[int, int]] = []
    Workforce(workers).map(time.sleep, [0.3, 0.3], lambda done, total: seen.append((done, total)))
    assert seen.count((0, 2)) > 3
    assert seen[-1] == (2, 2)


@pytest.mark.posix
def test_a_process_that_dies_is_replaced_and_its_task_begun_again(tmp_path: Path) -> None:
    marks = [str(tmp_path / name) for name in "abc"]
    assert Workforce(2).map(die_once, marks) == ["died"] * 3


def test_processes_stay_from_one_map_to_the_next() -> None:
    workforce = Workforce(2)
    with workforce.stay():
        first, second = (set(workforce.map(name_process, range(6))) for _ in range(2))
    assert first & second
    assert os.getpid() not in first
    assert not first & set(workforce.map(name_process, range(6)))


def name_process(_: int) -> int:
    return os.getpid()


@pytest.mark.posix
def test_a_task_that_kills_its_process_twice_stops_no_other() -> None:
    found = Workforce(2).map(die_or_double, [0, 1, 2, 3])
    assert found[1:] == [2, 4, 6]
    assert isinstance(found[0], Failed)
    assert "its worker process died" in found[0].reason
    assert found[0].reason.endswith("twice")


def die_or_double(number: int) -> int:
    return double(number) if number else die(number) or 0


@pytest.mark.parametrize("workers", [1, 2])
def test_an_unexpected_error_is_tried_again(tmp_path: Path, workers: int) -> None:
    marks = [str(tmp_path / name) for name in "ab"]
    assert Workforce(workers).map(stumble_once, marks) == ["stumbled"] * 2
    assert Workforce(workers).map(stumble, [1, 2]) == [Failed("unexpected RuntimeError: always, twice")] * 2


# --- a cluster ----------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.mark.posix
def test_a_cluster_gives_the_same_results(cluster: Cluster) -> None:
    told: list[str] = []
    found = Workforce(cluster=cluster.address).map(double, [3, -1, 5], told=told.append)
    assert found == [6, Failed("-1 is negative"), 10]
    assert cluster.address in told[0]
    assert "dashboard http" in told[0]


@pytest.mark.posix
def test_a_worker_of_a_cluster_that_dies_is_replaced_by_another(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert Workforce(cluster=cluster.address).map(die_once, [str(mark)]) == ["died"]
    assert sum(worker.poll() is not None for worker in cluster.workers) == 1


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("video2pde.tasks.PATIENCE_SECONDS", 1.0)
    with pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1 "):
        Workforce(cluster="tcp://127.0.0.1:1").map(double, [1])


@pytest.mark.parametrize("address", ["nonsense", "http://head:8786", "tcp://head"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=f"no scheduler answers at {address} "):
        Workforce(cluster=address).map(double, [1])


def test_a_cluster_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'video2pde\[cluster\]'"):
        Workforce(cluster="tcp://127.0.0.1:1").map(double, [1])
