"""Progress and messages on stderr: a bar with the time left on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from video2pde.cli.console import complain
from video2pde.errors import printable

SECONDS_BETWEEN_LINES = 10.0


class Report(Protocol):
    """Tell how far a task has come: pieces done, pieces in all (None: unknown), and the best figures so far."""

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None: ...


class Display:
    """Show what goes on. ``quiet`` leaves the warnings only."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._live = sys.stderr.isatty()

    def say(self, line: str) -> None:
        """Print a message."""
        if not self.quiet:
            complain(line)

    def warn(self, line: str) -> None:
        """Print a warning, even when quiet: it is about the result."""
        complain(f"warning: {line}")

    @contextmanager
    def task(self, name: str) -> Iterator[Report]:
        """Follow one task from its start to its end."""
        if self.quiet:
            yield _ignore
        elif self._live:
            with _bar() as bar:
                yield _Bar(bar, bar.add_task(printable(name), total=None, note=""))
        else:
            lines = _Lines(name)
            yield lines
            lines.finish()


def _ignore(_done: int, _total: int | None, _note: str = "", /) -> None:
    return


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


class _Bar:
    """Move one bar of rich's progress display."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._progress, self._task = bar, task

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None:
        self._progress.update(self._task, completed=done, total=total, note=note)


class _Lines:
    """Print a line now and then, for logs and pipes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._started = self._printed = time.monotonic()
        self._done = 0

    def __call__(self, done: int, total: int | None, note: str = "", /) -> None:
        self._done = done
        now = time.monotonic()
        if now - self._printed < SECONDS_BETWEEN_LINES:
            return
        self._printed = now
        spent = now - self._started
        left = f", about {spent * (total - done) / done:.0f} s left" if total and done else ""
        of = f" of {total}" if total else ""
        self._print(f"{done}{of} after {spent:.0f} s{left}{', ' + note if note else ''}")

    def finish(self) -> None:
        """Say how long it took."""
        count = f"{self._done} done in " if self._done else ""
        self._print(f"{count}{time.monotonic() - self._started:.1f} s")

    def _print(self, text: str) -> None:
        complain(f"{self._name}: {text}")
