"""A study of 16 small films: one process, two, and a Dask cluster of two workers on this machine."""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from video2pde.field import Grid
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.settings import load_settings
from video2pde.study.order import run_study
from video2pde.study.plan import FilmPlan, Plan
from video2pde.tasks import Workforce

TITLE = "A study of 16 small films"
NOTES = (
    "Law C named, preset quick, 48 × 48 × 60. Ideal: half the time of one process with two. The scheduler's overhead "
    "is the time beyond that of two local processes. The bytes of result.json are compared. Figures mean something on "
    "an idle machine alone."
)
FILMS = 16
LEAST_EFFICIENCY, MOST_OVERHEAD = 0.85, 0.05


def run() -> list[dict[str, Any]]:
    """Time the three, compare their results, and watch the memory of the workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = make_plan(folder)
        run_study(Plan("warm", plan.films[:2], plan.settings), folder / "warm", Workforce(2))  # compiles what is kept
        one = measure(plan, folder / "one", Workforce(1))
        two = measure(plan, folder / "two", Workforce(2))
        cluster = over_cluster(plan, folder / "cluster")
    digests = {found["digest"] for found in (one, two, cluster)}
    return [
        {"name": "one process", "value": one["seconds"], "unit": "s"},
        {"name": "two processes", "value": two["seconds"], "unit": "s"},
        {"name": "two Dask workers", "value": cluster["seconds"], "unit": "s"},
        # limits are upper ones: what is lost of the ideal, not what is gained
        {
            "name": "lost of the ideal, two processes",
            "value": lost(one, two),
            "unit": "",
            "limit": 1 - LEAST_EFFICIENCY,
        },
        {"name": "overhead of the scheduler", "value": overhead(two, cluster), "unit": "", "limit": MOST_OVERHEAD},
        {"name": "different results among the three", "value": len(digests) - 1, "unit": "", "limit": 0},
        {"name": "largest worker, two processes", "value": two["memory"] / 1e6, "unit": "MB"},
        {"name": "largest worker, Dask", "value": cluster["memory"] / 1e6, "unit": "MB"},
    ]


def lost(one: dict[str, Any], two: dict[str, Any]) -> float:
    return float(max(0.0, 1 - one["seconds"] / 2 / two["seconds"]))


def overhead(two: dict[str, Any], cluster: dict[str, Any]) -> float:
    return float(max(0.0, cluster["seconds"] / two["seconds"] - 1))


def make_plan(folder: Path) -> Plan:
    settings = load_settings(
        "quick",
        overrides={"regression.law": "C", "weak.test_functions": 300, "calibration.replicates": 8, "run.workers": 1},
    )
    films = []
    for number in range(FILMS):
        case = make_case("C", background=0.1, drift=(0.2, -0.1), seed=number + 1)
        field = noisy(exact_field(case, Grid(48, 48, 200.0, 200.0), np.linspace(0.0, 30.0, 60)), 0.003, number)
        films.append(FilmPlan(f"film{number:02d}", field.save(folder / f"film{number:02d}.npz"), settings))
    return Plan("bench", tuple(films), settings)


def measure(plan: Plan, out: Path, workforce: Workforce) -> dict[str, Any]:
    """Carry the study out; return seconds, the digest of its result, and the most memory that a process below held."""
    peak, began = 0, time.perf_counter()

    class Watch:
        """Look at the processes whenever something is told."""

        def __getattr__(self, _: str) -> Any:
            return self.look

        def look(self, *_: Any) -> None:
            nonlocal peak
            for child in psutil.Process().children(recursive=True):
                try:
                    peak = max(peak, child.memory_info().rss)
                except psutil.Error:
                    continue

    run_study(plan, out, workforce, events=Watch())
    seconds = time.perf_counter() - began
    digest = hashlib.sha256((out / "result.json").read_bytes()).hexdigest()
    return {"seconds": seconds, "digest": digest, "memory": peak}


def over_cluster(plan: Plan, out: Path) -> dict[str, Any]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        return measure(plan, out, Workforce(cluster=cluster.scheduler_address))
