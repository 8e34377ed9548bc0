"""What the studio knows, shared by all pages: recordings that are open, jobs, and who wants to hear of changes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio.to_thread

from video2pde.errors import InputError
from video2pde.studio.folder import Folder
from video2pde.studio.jobs import Jobs
from video2pde.studio.library import is_running
from video2pde.studio.screen import Screen
from video2pde.studio.watch import read_state

BEAT = 0.5
"""Seconds between two looks at the runs."""
QUEUED = 64
DONE = ("done", "cached")
Event = tuple[str, str]


class Hub:
    """Hold the state of one studio, and tell the pages what changes."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.screen = Screen(folder)
        self.jobs = Jobs(folder)
        self.closing = asyncio.Event()
        self._listeners: dict[asyncio.Queue[Event], str | None] = {}
        self._told: dict[str, str] = {}
        self._drawn: dict[str, int] = {}
        self._drawing: asyncio.Task[None] | None = None
        self._workers: set[asyncio.subprocess.Process] = set()
        self._seen = -1

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look after jobs and listeners while the server runs."""
        beat = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beat.cancel()
            if self._drawing is not None:
                self._drawing.cancel()
            await self.close_streams()
            self.screen.close()
            self.jobs.release()

    async def close_streams(self) -> None:
        """End what would go on for as long as a page listens: event streams, and checks with their processes."""
        self.closing.set()
        for process in list(self._workers):
            await _end(process)

    async def listen(self, run: str | None) -> AsyncIterator[Event]:
        """Return events as they come: jobs for everybody, the stages of ``run`` for who watches it."""
        queue: asyncio.Queue[Event] = asyncio.Queue(QUEUED)
        self._listeners[queue] = run
        try:
            yield "jobs", self.jobs_text()
            if run is not None:
                yield "run", await self._run_text(run)
            while not self.closing.is_set():
                try:
                    yield await asyncio.wait_for(queue.get(), 1.0)
                except TimeoutError:
                    continue
        finally:
            del self._listeners[queue]

    def tell(self, event: str, text: str, run: str | None = None) -> None:
        """Send an event to all pages, or to those that watch a run; a page that does not listen is left behind."""
        for queue, watched in self._listeners.items():
            if (run is None or watched == run) and not queue.full():
                queue.put_nowait((event, text))

    def jobs_text(self) -> str:
        from dataclasses import asdict

        return json.dumps([asdict(job) for job in self.jobs.all])

    def live_page(self, run: str) -> Path:
        """Return the file that holds the page of a run as far as it has come."""
        return self.folder.own / f"live-{hashlib.sha256(run.encode()).hexdigest()[:16]}.html"

    async def _beat(self) -> None:
        while True:
            await anyio.to_thread.run_sync(self.jobs.tend)
            if self.jobs.changes != self._seen:
                self._seen = self.jobs.changes
                self.tell("jobs", self.jobs_text())
            for run in {watched for watched in self._listeners.values() if watched is not None}:
                with contextlib.suppress(InputError, OSError):
                    await self._tell_run(run)
            await asyncio.sleep(BEAT)

    async def _tell_run(self, run: str) -> None:
        text = await self._run_text(run)
        if self._told.get(run) != text:
            self._told[run] = text
            self.tell("run", text, run)
        state = json.loads(text)
        count = sum(stage["state"] in DONE for stage in state["stages"])
        idle = self._drawing is None or self._drawing.done()
        if count and self._drawn.get(run, 0) != count and idle and not state["finished"]:
            self._drawn[run] = count
            self._drawing = asyncio.create_task(self._draw(run))

    async def _run_text(self, run: str) -> str:
        path = self.folder.place(run)
        state = await anyio.to_thread.run_sync(read_state, path)
        working = is_running(path)
        finished = (path / "report.html").is_file() and not working
        return json.dumps({"run": run, "working": working, "finished": finished, **state.plain()})

    async def _draw(self, run: str) -> None:
        """Have the page of an unfinished run written anew, and say so."""
        request = {"run": str(self.folder.place(run)), "target": str(self.live_page(run))}
        with contextlib.suppress(InputError, OSError):
            async for answer in self.work("live", request):
                if "result" in answer:
                    self.tell("live", json.dumps({"run": run}), run)

    async def work(self, task: str, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Carry a task out in a process of its own and yield its answers; leaving the loop ends the process."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "video2pde.studio.worker",
            task,
            cwd=self.folder.root,
            limit=256_000_000,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._workers.add(process)
        assert process.stdin is not None
        assert process.stdout is not None
        answered = False
        try:
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            async for line in process.stdout:
                answer = json.loads(line)
                answered = answered or "result" in answer or "error" in answer
                yield answer
            await process.wait()
            if not answered:
                yield {"error": f"it ended early (exit status {process.returncode}); there may be too little memory"}
        finally:
            self._workers.discard(process)
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
