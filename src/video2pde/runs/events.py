"""What a run tells while it goes on: on a terminal, in plain lines, or not at all; always into the log.

The pipeline calls the five methods of :class:`Events` and knows nothing of who is listening.
"""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType
from typing import Any, Protocol, Self

from video2pde.errors import printable

LOGGER = logging.getLogger("video2pde.run")
SECONDS_BETWEEN_LINES = 5.0
SHARE_BETWEEN_LINES = 0.1
LEAST_SECONDS = 0.5
"""However fast a stage is, it does not print lines more often than this."""


class Events(Protocol):
    """Listen to a run."""

    def stage(self, name: str, title: str) -> None:
        """Begin a stage; ``title`` says in words what it does."""

    def progress(self, done: int, total: int | None, note: str = "") -> None:
        """Say how far the stage has come (``total`` None: unknown), and its best figures so far."""

    def note(self, text: str) -> None:
        """Tell what the user may want to know."""

    def warn(self, text: str) -> None:
        """Tell what the user must bear in mind when reading the result."""

    def done(self, name: str, seconds: float, cached: bool) -> None:
        """End a stage; ``cached``: it was taken from the run folder, and took ``seconds`` when it was computed."""


class QuietEvents:
    """Show warnings alone, log everything, and count what the other kinds of events need.

    Also the base of the others, which override the ``show_…`` methods. Use it as a context manager: a live
    display must be taken down whatever happens.
    """

    def __init__(self) -> None:
        self.name = self.title = ""
        self._started = self._printed = time.monotonic()
        self._share = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def stage(self, name: str, title: str) -> None:
        self.name, self.title = name, title
        self._started = self._printed = time.monotonic()
        self._share = 0.0
        LOGGER.info("%s: %s", name, title)
        self.show_stage()

    def progress(self, done: int, total: int | None, note: str = "") -> None:
        total = total or None
        self.show_progress(done, total, note)
        due = self._is_due(done, total)
        if due or note:  # figures so far are logged at every step: who watches the run draws them
            line = describe_progress(done, total, time.monotonic() - self._started, note)
            LOGGER.log(logging.INFO if due else logging.DEBUG, "%s: %s", self.name, line)
            if due:
                self.show_line(line)

    def note(self, text: str) -> None:
        LOGGER.info("%s", text)
        self.show_note(text)

    def warn(self, text: str) -> None:
        LOGGER.warning("%s", text)
        self.show_warning(text)

    def done(self, name: str, seconds: float, cached: bool) -> None:
        LOGGER.info("%s: %s", name, describe_end(seconds, cached))
        self.show_done(name, seconds, cached)

    def _is_due(self, done: int, total: int | None) -> bool:
        """Tell whether five seconds or a tenth of the stage have passed since the last line."""
        now, share = time.monotonic(), (done / total if total else 0.0)
        waited = now - self._printed
        if waited < LEAST_SECONDS or (waited < SECONDS_BETWEEN_LINES and share - self._share < SHARE_BETWEEN_LINES):
            return False
        self._printed, self._share = now, share
        return True

    def show_stage(self) -> None:
        """Show that a stage begins."""

    def show_progress(self, done: int, total: int | None, note: str) -> None:
        """Show every step."""

    def show_line(self, line: str) -> None:
        """Show a step now and then."""

    def show_note(self, text: str) -> None:
        """Show a note."""

    def show_warning(self, text: str) -> None:
        """Show a warning, even when quiet: it is about the result."""
        _say(f"warning: {text}")

    def show_done(self, name: str, seconds: float, cached: bool) -> None:
        """Show that a stage has ended."""

    def close(self) -> None:
        """Take the display down."""


class PlainEvents(QuietEvents):
    """Print plain lines to stderr, for logs and pipes."""

    def show_stage(self) -> None:
        _say(f"{self.name}: {self.title}")

    def show_line(self, line: str) -> None:
        _say(f"{self.name}: {line}")

    def show_note(self, text: str) -> None:
        _say(f"note: {text}")

    def show_done(self, name: str, seconds: float, cached: bool) -> None:
        _say(f"{name}: {describe_end(seconds, cached)}")


class LiveEvents(QuietEvents):
    """Keep one display on the terminal: the stages so far, a bar, the time left, the best figures so far."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        super().__init__()
        self._progress = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console or Console(stderr=True),
        )
        self._task: Any = None
        self._progress.start()

    def show_stage(self) -> None:
        self._task = self._progress.add_task(self.title, total=None, note="")

    def show_progress(self, done: int, total: int | None, note: str) -> None:
        self._progress.update(self._task, completed=done, total=total)
        if note:
            self._progress.update(self._task, note=note)

    def show_note(self, text: str) -> None:
        self._progress.console.print(printable(f"note: {text}"), markup=False, highlight=False)

    def show_warning(self, text: str) -> None:
        self._progress.console.print(printable(f"warning: {text}"), markup=False, highlight=False)

    def show_done(self, name: str, seconds: float, cached: bool) -> None:  # noqa: ARG002 - the title says it here
        task = self._progress.tasks[-1]
        note = describe_end(seconds, cached) if cached else task.fields["note"]
        self._progress.update(self._task, total=1, completed=1, note=note)

    def close(self) -> None:
        self._progress.stop()


def choose_events(quiet: bool = False) -> QuietEvents:
    """Take the display that suits stderr."""
    if quiet:
        return QuietEvents()
    return LiveEvents() if sys.stderr.isatty() else PlainEvents()


def describe_progress(done: int, total: int | None, spent: float, note: str = "") -> str:
    """Say how far a task has come after ``spent`` seconds, and when it may end; where that is unknown, what it does."""
    if note and not total and not done:
        return f"{note}, after {spent:.0f} s"
    of = f" of {total}" if total else ""
    left = f", about {spent * (total - done) / done:.0f} s left" if total and done else ""
    return f"{done}{of} after {spent:.0f} s{left}{', ' + note if note else ''}"


def describe_end(seconds: float, cached: bool) -> str:
    """Say how long a stage took."""
    return f"taken from the run folder (it took {seconds:.1f} s)" if cached else f"done in {seconds:.1f} s"


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
