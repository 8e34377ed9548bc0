"""The application: its commands, and what becomes of their errors.

Exit status: 0 done, 1 a stage failed, 2 bad input or settings, 130 interrupted. Data goes to stdout, progress and
messages to stderr. An error is one line; ``VIDEO2PDE_DEBUG=1`` adds the traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from video2pde import __version__
from video2pde.cli import recording, using
from video2pde.cli import run as run_commands
from video2pde.cli import studio as studio_command
from video2pde.cli import study as study_command
from video2pde.cli.console import complain, prepare_console
from video2pde.errors import InputError, missing_package, Video2pdeError

OVERVIEW = """Turn a recording of something that spreads into the equation that it follows.

The whole way, from film to report:

    video2pde preview film.mp4
    video2pde run film.mp4 --crop 450,0,1080,1080 --out result

A film whose law is known, to try it on:

    video2pde synth C --out known

'video2pde COMMAND --help' explains a command and shows how it is used.
Exit status: 0 done, 1 a stage failed, 2 bad input or settings, 130 interrupted.
"""
DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = App(name="video2pde", help=OVERVIEW, help_format="plaintext", version=__version__)
run_commands.register(app)
app.command(recording.preview)
app.command(recording.field)
app.command(recording.synth)
app.command(using.simulate)
app.command(using.export)
app.command(using.analyse)
app.command(using.apply)
app.command(studio_command.studio)
app.command(study_command.study)
app.command(study_command.sensitivity)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status; every error ends as one line on stderr."""
    prepare_console()
    try:
        status = _execute(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does. Nothing failed; keep the interpreter from complaining.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = DONE
    except KeyboardInterrupt:
        complain("interrupted; what was finished before is kept")
        status = INTERRUPTED
    except Exception as error:
        status = explain(error)
    return status


def _execute(tokens: list[str]) -> int:
    for before, token in zip(["", *tokens], tokens, strict=False):
        if not token or (token.startswith("--") and token.endswith("=")):
            raise InputError(
                f"the value after '{token.rstrip('=') or before or 'video2pde'}' is empty; give one, or leave it out"
            )
    try:
        command, bound, *_ = app.parse_args(tokens or ["--help"], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise InputError(f"{_one_line(error)} (video2pde --help shows how)") from error
    result = command(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else DONE


def explain(error: Exception) -> int:
    """Print ``error`` as one line, with its traceback where VIDEO2PDE_DEBUG is set, and return the exit status."""
    if os.environ.get("VIDEO2PDE_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, Video2pdeError):
        complain(f"error: {_one_line(error)}")
        return error.exit_status
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("video2pde"):
        complain(f"error: {missing_package(error.name)}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        complain("error: not enough memory; use a smaller grid (--grid) or fewer frames (--every)")
        return FAILED
    if isinstance(error, OSError) and error.filename is not None:
        complain(f"error: {error.filename}: {error.strerror or error}")
        return BAD_INPUT
    name = type(error).__name__
    complain(f"error: unexpected {name}: {_one_line(error)} (VIDEO2PDE_DEBUG=1 shows where; please report it)")
    return FAILED


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
