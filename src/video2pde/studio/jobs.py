"""Runs that the studio starts: the ordinary command in processes of their own, one after the other.

A process that was started lives on when the page is closed, and when the studio is. The list of jobs is kept in the
folder, so that the next studio there finds what is waiting, running or done. Stopping is Ctrl-C; continuing is the same
command again.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from video2pde.errors import InputError
from video2pde.files import atomic_write
from video2pde.studio.folder import Folder
from video2pde.studio.library import is_running
from video2pde.studio.prepare import Wish

PATIENCE = 4.0
"""Seconds after Ctrl-C until a process that does not listen to it is ended."""
ENDS = {0: "done", 2: "refused", 130: "stopped"}


@dataclass(frozen=True)
class Job:
    """One run, wished for: ``state`` is waiting, running, stopping, done, stopped, refused or failed."""

    id: str
    film: str
    out: str
    arguments: tuple[str, ...]
    command: str
    created: float
    state: str = "waiting"
    process: int | None = None
    started: float | None = None
    ended: float | None = None
    message: str = ""

    @property
    def open(self) -> bool:
        return self.state in ("waiting", "running", "stopping")


class Jobs:
    """Keep the list of jobs and see to it that one of them runs at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._file = folder.root / ".video2pde-studio" / "jobs.json"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._asked: dict[str, float] = {}
        self.all: list[Job] = _load(self._file)
        self.changes = 0

    def add(self, wish: Wish) -> Job:
        """Put a run into the queue."""
        self._folder.find(wish.film)
        place = self._folder.place(wish.out)
        if any(job.open and job.out == wish.out for job in self.all):
            raise InputError(
                f"a run into '{wish.out}' is waiting or running already; choose another folder for this one"
            )
        if is_running(place):
            raise InputError(f"another program works in '{wish.out}'; choose another folder for this run")
        _ = wish.settings
        job = Job(secrets.token_hex(6), wish.film, wish.out, tuple(wish.arguments()), wish.command(), time.time())
        self._put([*self.all, job])
        self.tend()
        return job

    def stop(self, name: str) -> Job:
        """Take a job from the queue, or interrupt it; what it has finished is kept."""
        job = self.get(name)
        if job.state == "waiting":
            return self._change(job, state="stopped", message="taken from the queue")
        if job.state == "running" and job.process is not None:
            self._asked[job.id] = time.monotonic()
            _signal(job.process, signal.SIGINT)
            return self._change(job, state="stopping")
        raise InputError("this run is not running")

    def go_on(self, name: str) -> Job:
        """Queue a job that ended, again; it goes on from what is in its folder."""
        job = self.get(name)
        if job.open:
            raise InputError("this run is waiting or running already")
        again = self._change(job, state="waiting", process=None, started=None, ended=None, message="")
        self.tend()
        return again

    def remove(self, name: str) -> None:
        """Forget a job that ended; its folder stays."""
        job = self.get(name)
        if job.open:
            raise InputError("stop this run first")
        self._put([other for other in self.all if other.id != name])

    def get(self, name: str) -> Job:
        """Find a job."""
        for job in self.all:
            if job.id == name:
                return job
        raise InputError("there is no such run in the list any more")

    def tend(self) -> None:
        """See which processes have ended, and start the next job."""
        for job in self.all:
            if job.state in ("running", "stopping"):
                self._look_after(job)
        if not any(job.state in ("running", "stopping") for job in self.all):
            waiting = [job for job in self.all if job.state == "waiting"]
            if waiting:
                self._start(min(waiting, key=lambda job: job.created))

    def release(self) -> None:
        """Let the processes go on by themselves: they outlive the studio, and nobody waits for them."""
        for child in self._children.values():
            if child.poll() is None:
                child.returncode = 0  # or Python complains that a process was left behind, which is meant here
        self._children.clear()

    def output(self, job: Job) -> Path:
        """Return the file of what a job's process printed."""
        return self._folder.own / f"{job.id}.txt"

    def _start(self, job: Job) -> None:
        command = [sys.executable, "-m", "video2pde.cli", *job.arguments]
        try:
            with self.output(job).open("wb") as printed:
                child = subprocess.Popen(
                    command,
                    cwd=self._folder.root,
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=printed,
                    start_new_session=True,
                )
        except OSError as error:
            self._change(job, state="failed", ended=time.time(), message=f"it cannot be started: {error}")
            return
        self._children[job.id] = child
        self._change(job, state="running", process=child.pid, started=time.time())

    def _look_after(self, job: Job) -> None:
        child = self._children.get(job.id)
        status = child.poll() if child is not None else None
        if child is None and not is_running(self._folder.root / job.out):
            # a process of an earlier studio: nobody can ask for its exit status, but a run says how it ended
            status = 0 if _finished_since(self._folder.root / job.out, job.started) else 130
        if status is None:
            self._insist(job)
            return
        self._children.pop(job.id, None)
        asked = self._asked.pop(job.id, None) is not None
        state = "stopped" if asked and status != 0 else ENDS.get(status, "failed")
        self._change(job, state=state, ended=time.time(), message="" if state == "done" else self._last_words(job))

    def _insist(self, job: Job) -> None:
        asked = self._asked.get(job.id)
        if asked is not None and job.process is not None and time.monotonic() - asked > PATIENCE:
            _signal(job.process, signal.SIGTERM)

    def _last_words(self, job: Job) -> str:
        try:
            lines = self.output(job).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        told = [line for line in lines if line.startswith(("error:", "interrupted"))]
        return (told or lines or [""])[-1][:500]

    def _change(self, job: Job, **values: Any) -> Job:
        new = replace(job, **values)
        self._put([new if other.id == job.id else other for other in self.all])
        return new

    def _put(self, jobs: list[Job]) -> None:
        self.all = jobs
        self.changes += 1
        _ = self._folder.own
        with atomic_write(self._file) as file:
            file.write(json.dumps([asdict(job) for job in jobs], indent=1).encode())


def _load(path: Path) -> list[Job]:
    """Read the list that an earlier studio left; one that cannot be read counts as none."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return [Job(**{**entry, "arguments": tuple(entry["arguments"])}) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _signal(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return


def _finished_since(out: Path, started: float | None) -> bool:
    try:
        return (out / "result.json").stat().st_mtime >= (started or 0.0)
    except OSError:
        return False
