"""Processes that draw figures of a run beside it, from its folder.

A process is told the names of figures, a line each, and answers with a line once a figure is drawn, empty where it
could not be. It ends when nobody tells it anything any more, however the run ended. It is a command rather than a
fork or a copy of the caller's program: that may hold threads, and may be a script that would begin anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TextIO

MOST = 4
"""Processes: there are about ten figures to be drawn at a time."""
FEW = 3
"""Figures that are not worth starting a process for."""


class Beside:
    """Have figures of a run drawn by name.

    Parameters
    ----------
    folder : of the figures, in that of the run.
    workers : processes at most; without any, nothing is ever drawn here.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._workers = folder, min(workers, MOST)
        self._futures: dict[str, Future[bool]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._processes: list[subprocess.Popen[str]] = []
        self._own = threading.local()

    def begin(self, names: Sequence[str]) -> None:
        """Have figures drawn, those that nobody was asked for yet."""
        new = [name for name in names if name not in self._futures]
        if self._workers < 1 or (self._pool is None and len(new) < FEW):
            return
        if self._pool is None:
            # a thread for each process: it waits for the answers
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="figures")
        self._futures |= {name: self._pool.submit(self._ask, name) for name in new}

    def has_begun(self, name: str) -> bool:
        """Tell whether a figure is being drawn, or is there."""
        found = self._futures.get(name)
        return found is not None and (found.running() or found.done())

    def fetch(self, name: str) -> bool:
        """Tell whether a figure is there, once it is; False: it was not begun, or it failed, and is the caller's."""
        found = self._futures.get(name)
        return found is not None and not found.cancel() and found.result()

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for future in self._futures.values():
            future.cancel()
        for process in self._processes:
            process.kill()
        if self._pool is not None:
            self._pool.shutdown()
        for process in self._processes:
            process.communicate()

    def _ask(self, name: str) -> bool:
        try:
            process = self._process()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            return process.stdout.readline() == f"{name}\n"
        except (OSError, ValueError):
            return False  # no process can be started, or it was killed: the caller draws

    def _process(self) -> subprocess.Popen[str]:
        found: subprocess.Popen[str] | None = getattr(self._own, "process", None)
        if found is None:
            found = self._own.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                # Ctrl-C is the run's: it ends these processes
                start_new_session=True,
            )
            self._processes.append(found)
        return found


def main(folder: Path, names: TextIO, answers: TextIO) -> None:
    """Draw the figures that are asked for, of the run whose folder the ``folder`` of its figures is in."""
    from video2pde.record import load_run
    from video2pde.report import style
    from video2pde.report.figures import collect_figures
    from video2pde.runs.folder import STANDING

    # the run's own work comes first
    if hasattr(os, "nice"):
        os.nice(5)
    folder.mkdir(parents=True, exist_ok=True)
    read, drawings = "", {}
    for name in map(str.strip, iter(names.readline, "")):
        answer = ""
        with suppress(Exception):  # whatever it is, the run meets it as it draws the figure itself
            standing = (folder.parent / STANDING).read_text(encoding="utf-8")
            if standing != read:
                drawings, read = dict(collect_figures(load_run(folder.parent))), standing
            with style.apply():
                style.save_png(drawings[name](), folder / name)
            answer = name
        answers.write(f"{answer}\n")
        answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin, sys.stdout)
