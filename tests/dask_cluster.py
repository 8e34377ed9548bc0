"""A Dask scheduler and its workers in processes of their own, which tests may kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 120
"""How long a busy machine may take to start a scheduler."""


class Cluster:
    """A scheduler and workers in processes of their own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        where = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--dashboard-address", ":0", "--scheduler-file", str(where)
        )
        deadline = time.monotonic() + SECONDS
        while not where.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.2)
        self.address: str = json.loads(where.read_text())["address"]
        self.workers = [self.add_worker() for _ in range(workers)]

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny")

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent / "unit")])}
        started = subprocess.Popen(
            command, cwd=self._folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.processes.append(started)
        return started

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
