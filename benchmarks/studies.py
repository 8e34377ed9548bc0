"""A study of 16 small films: one process, two, and a Dask cluster of two workers on this machine."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.runs.events import QuietEvents
from video2pde.settings import load_settings
from video2pde.study.films import run_films
from video2pde.study.order import run_study
from video2pde.study.plan import FilmPlan, Plan
from video2pde.tasks import Workforce

TITLE = "A study of 16 small films"
NOTES = (
    "Films of 240 × 240 pixels and 60 frames on 64 × 64 cells; law C named, preset quick. Ideal: half the time of one "
    "process with two. The scheduler's overhead is the time beyond that of two local processes. The bytes of "
    "result.json are compared. Memory: a worker that runs film after film and its part of the joint fit, beside "
    "processes that run one film each. Figures mean something on an idle machine alone."
)
FILMS, SIDE, FRAMES, CELLS = 16, 240, 60, 64
LEAST_EFFICIENCY, MOST_OVERHEAD = 0.85, 0.05
MOST_MEMORY = 1.05
"""Of a worker, over that of one film: what a page more or less makes of it."""
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Measured:
    """What a study took: seconds, the digest of its result, and the most bytes that a process below this one held."""

    seconds: float
    digest: str
    memory: int


def run() -> list[dict[str, Any]]:
    """Time the three, compare their results, and watch the memory of the workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = make_plan(folder)
        with watch_memory() as one_film:  # and compiles what is kept on disk
            run_films(Plan("two", plan.films[:2], plan.settings), folder / "each", Workforce(2), QuietEvents())
        one = measure(plan, folder / "one", Workforce(1))
        two = measure(plan, folder / "two", Workforce(2))
        cluster = over_cluster(plan, folder / "cluster")
    lost = max(0.0, 1 - one.seconds / 2 / two.seconds)
    overhead = max(0.0, cluster.seconds / two.seconds - 1)
    memory = max(two.memory, cluster.memory) / one_film.most
    return [
        {"name": "one process", "value": one.seconds, "unit": "s"},
        {"name": "two processes", "value": two.seconds, "unit": "s"},
        {"name": "two Dask workers", "value": cluster.seconds, "unit": "s"},
        # limits are upper ones: what is lost of the ideal, not what is gained
        {"name": "lost of the ideal, two processes", "value": lost, "unit": "", "limit": 1 - LEAST_EFFICIENCY},
        {"name": "overhead of the scheduler", "value": overhead, "unit": "", "limit": MOST_OVERHEAD},
        {"name": "different results among the three", "value": _different(one, two, cluster), "unit": "", "limit": 0},
        {"name": "one film in a process of its own", "value": one_film.most / 1e6, "unit": "MB"},
        {"name": "largest worker, two processes", "value": two.memory / 1e6, "unit": "MB"},
        {"name": "largest worker, Dask", "value": cluster.memory / 1e6, "unit": "MB"},
        {"name": "largest worker over one film", "value": memory, "unit": "", "limit": MOST_MEMORY},
    ]


def _different(*studies: Measured) -> int:
    return len({study.digest for study in studies}) - 1


def make_plan(folder: Path) -> Plan:
    overrides = {"regression.law": "C", "recording.grid": [CELLS, CELLS], "run.workers": 1}
    settings = load_settings("quick", overrides=overrides)
    films = []
    for number in range(FILMS):
        case = make_case("C", background=0.1, drift=(0.2, -0.1), seed=number + 1)
        camera = Camera(size=(SIDE, SIDE), frames=FRAMES, noise=0.01, seed=number)
        name = f"film{number:02d}"
        films.append(FilmPlan(name, render_film(case, folder / name, camera), settings))
    return Plan("bench", tuple(films), settings)


def measure(plan: Plan, out: Path, workforce: Workforce) -> Measured:
    """Carry the study out."""
    began = time.perf_counter()
    with watch_memory() as seen:
        run_study(plan, out, workforce)
    seconds = time.perf_counter() - began
    return Measured(seconds, hashlib.sha256((out / "result.json").read_bytes()).hexdigest(), seen.most)


def over_cluster(plan: Plan, out: Path) -> Measured:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        return measure(plan, out, Workforce(cluster=cluster.scheduler_address))


@dataclass
class Seen:
    """The most bytes that any one process held."""

    most: int = 0


@contextmanager
def watch_memory() -> Iterator[Seen]:
    """Watch the memory of every process below this one."""
    seen, over = Seen(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            for child in psutil.Process().children(recursive=True):
                try:
                    seen.most = max(seen.most, child.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
