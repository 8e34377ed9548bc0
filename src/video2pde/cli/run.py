"""The commands on runs: the whole mission (run), its stages one by one, and finished runs side by side (runs)."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TYPE_CHECKING, TypeVar

from cyclopts import App, Parameter

from video2pde.cli.console import complain, tell
from video2pde.cli.options import (
    DEFAULT_LAW,
    DEFAULT_RECORDING,
    DEFAULT_SETTINGS,
    flag,
    LawOptions,
    RecordingOptions,
    SettingsOptions,
)
from video2pde.cli.recording import Film
from video2pde.errors import InputError

if TYPE_CHECKING:
    from video2pde.runs.events import QuietEvents
    from video2pde.runs.listing import RunSummary

Answer = TypeVar("Answer")
INTERRUPTED = 130
POLL_SECONDS = 0.1
Out = Annotated[Path, Parameter(help="Folder of the run; an unfinished run in it is continued.")]
Latex = Annotated[bool, flag("Write the tables as LaTeX too.")]
Figures = Annotated[bool, Parameter(help="Draw figures/ as PNG; the page has its own.")]
Pdf = Annotated[bool, flag("Draw figures/ as PDF too, for a paper.")]


def run(
    film: Film,
    /,
    *,
    out: Out,
    latex: Latex = False,
    figures: Figures = True,
    pdf: Pdf = False,
    overwrite: Annotated[bool, flag("Begin anew in a folder that holds a run, of another film perhaps.")] = False,
    law: LawOptions = DEFAULT_LAW,
    recording: RecordingOptions = DEFAULT_RECORDING,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Find the equation that a recording follows, from film to report.

    Leaves result.json, model.json, report.html, figures/, tables/, settings.toml and log.txt in the folder, and
    prints the equation with its intervals. Started again in the same folder, it goes on from what is valid:

        video2pde run film.mp4 --out result --crop 450,0,1080,1080
        video2pde run film.mp4 --out result --preset quick
        video2pde run film.mp4 --out result --set calibration.replicates=200 --latex --pdf
        video2pde run pictures/ --out frap --preset frap --law laplacian --reference before.tif --dark dark.tif

    Two dyes or fluorophores in two channels are two fields u and w, whose laws are found together:

        video2pde run two.mp4 --out result --channels r,g --observable bright
        video2pde run two.tif --out result --channels 1,2 --observable bright --law "laplacian,u_w; laplacian_w,u_w"
    """
    _follow(film, out, recording, law.joined(settings), latex=latex, figures=figures, pdf=pdf, overwrite=overwrite)


@dataclass(frozen=True)
class StageCommand:
    """A command that goes on up to one stage: its name, the last stage that it runs, and what that does."""

    name: str
    until: str
    text: str


STAGE_COMMANDS = (
    StageCommand("discover", "discovery", "Measure the drift, fit every library, and see what can be told apart."),
    StageCommand("validate", "validation", "Roll every library out over the validation frames."),
    StageCommand("calibrate", "front", "Fit the contenders' rollouts, with intervals, and to the fronts."),
    StageCommand("select", "selection", "Choose the law and freeze the choice."),
    StageCommand("evaluate", "test", "Predict the held-out frames with the chosen law, once."),
    StageCommand("refine", "comparison", "Refine the contenders' coefficients by the inverse PINN, a second opinion."),
)


def make_stage_command(stage: StageCommand) -> Callable[..., None]:
    """Make the command that runs up to ``stage``."""

    def command(
        film: Film,
        /,
        *,
        out: Out,
        latex: Latex = False,
        recording: RecordingOptions = DEFAULT_RECORDING,
        settings: SettingsOptions = DEFAULT_SETTINGS,
    ) -> None:
        _follow(film, out, recording, _continued(settings, out), until=stage.until, latex=latex)

    command.__name__ = stage.name
    command.__doc__ = f"""{stage.text}

    Goes on in the folder of a run, with the settings that it has, up to and including this stage; what is there
    and valid is not computed again. 'video2pde run' finishes it:

        video2pde {stage.name} film.mp4 --out result
        video2pde {stage.name} film.mp4 --out result --set run.seed=1
    """
    return command


def runs(
    *folders: Annotated[Path, Parameter(help="Folders of runs.")],
    json_: Annotated[bool, Parameter(name="--json", help="Print JSON.", negative="", show_default=False)] = False,
    frap: Annotated[
        bool, Parameter(help="Recoveries instead: D, mobile fraction, half time.", negative="", show_default=False)
    ] = False,
    csv: Annotated[Path | None, Parameter(help="Write the recoveries to this CSV file, too.")] = None,
) -> None:
    """List runs side by side: law, coefficients with 95 % intervals, error on the held-out frames, time.

    For example:

        video2pde runs result-1 result-2
        video2pde runs results/* --json
        video2pde runs results/* --frap --csv recoveries.csv
    """
    from video2pde.runs.listing import summarise_run

    if not folders:
        raise InputError("runs needs one or more folders, such as 'runs result-1 result-2'")
    if frap or csv is not None:
        _tell_recoveries(folders, csv)
        return
    found = [summarise_run(folder) for folder in folders]
    if json_:
        tell(json.dumps([asdict(summary) for summary in found], indent=2, ensure_ascii=False))
    else:
        tell(_tabulate(found))


def _tell_recoveries(folders: Sequence[Path], file: Path | None) -> None:
    from video2pde.files import write_text
    from video2pde.runs.recoveries import read_recovery, recoveries_as_csv, tabulate_recoveries

    rows = [read_recovery(folder) for folder in folders]
    if file is not None:
        write_text(file, recoveries_as_csv(rows))
    tell(tabulate_recoveries(rows))


def report(
    folder: Annotated[Path, Parameter(help="folder of a run, finished or not")],
    /,
    *,
    latex: Latex = False,
    figures: Figures = True,
    pdf: Pdf = False,
) -> None:
    """Render a run's page, figures and tables again from what it has stored.

    Nothing is computed anew; of an unfinished run the page shows what is there.

    Examples
    --------
        video2pde report result
        video2pde report result --latex --pdf
    """
    from video2pde.pair.record import holds_pair

    if holds_pair(folder):
        from video2pde.pair.publish import render_pair

        tell(f"report: {render_pair(folder, latex, figures, pdf)}")
        return
    from video2pde.publish import render_folder

    tell(f"report: {render_folder(folder, latex, figures, pdf)}")


def register(app: App) -> None:
    """Add the commands of this module to the application."""
    app.command(run)
    for stage in STAGE_COMMANDS:
        app.command(make_stage_command(stage), name=stage.name)
    app.command(report)
    app.command(runs)


def _continued(options: SettingsOptions, out: Path) -> SettingsOptions:
    """Start from the settings that the run has, unless others are named."""
    used = out / "settings.toml"
    plain = options.settings is None and options.preset == DEFAULT_SETTINGS.preset
    return replace(options, settings=used) if plain and used.is_file() else options


def _follow(
    film: Path,
    out: Path,
    recording: RecordingOptions,
    options: SettingsOptions,
    *,
    until: str | None = None,
    **choices: bool,
) -> None:
    """Run the pipeline, show how it goes on, and print what it found; ``choices`` are those of ``run_pipeline``."""
    settings = options.load(recording)
    from video2pde.pair.read import is_pair
    from video2pde.runs.events import choose_events
    from video2pde.runs.memory import check_recording

    run_pipeline: Callable[..., Any]
    if is_pair(settings):
        from video2pde.pair.pipeline import run_pair as run_pipeline
    else:
        from video2pde.pipeline import run_pipeline
    check_recording(film, settings)
    logging.captureWarnings(True)  # into log.txt: a library's warnings would tear the display apart
    try:
        with choose_events(options.quiet) as events:
            result = interruptible(
                lambda: run_pipeline(film, out, settings, events=events, until=until, **choices), events
            )
    finally:
        logging.captureWarnings(False)
    if result.test is None:
        complain(f"stage '{until}' is done; 'video2pde run' goes on from here")
        return
    tell(result.summary())
    if until is None:
        tell(f"report: {out / 'report.html'}")


def interruptible(task: Callable[[], Answer], events: QuietEvents) -> Answer:
    """Carry a task out so that Ctrl-C ends the process within a second, whatever compiled code is running.

    The task runs in a thread of its own, and this one waits for it and for Ctrl-C. Every finished stage is on
    disk, so that nothing is lost by leaving at once.
    """
    outcome: Future[Answer] = Future()

    def work() -> None:
        try:
            outcome.set_result(task())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="pipeline", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
        return outcome.result()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # leaving takes a moment: a second Ctrl-C must not disturb it
        _leave(events)
        raise


def _leave(events: QuietEvents) -> None:
    """Say how to go on, end the workers, and end this process without waiting for its threads."""
    events.close()
    command = shlex.join(["video2pde", *sys.argv[1:]])
    logging.getLogger("video2pde").warning("interrupted")
    complain(f"interrupted; finished stages are kept, go on with: {command}")
    for worker in multiprocessing.active_children():
        worker.kill()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(INTERRUPTED)


HEADINGS = ("run", "verdict", "law", "coefficients, 95 % intervals", "test error", "persistence", "time")


def _tabulate(found: list[RunSummary]) -> str:
    """Write the runs as a table, with one line for each coefficient."""
    blocks = [[[heading] for heading in HEADINGS], *(_cells(summary) for summary in found)]
    widths = [max(len(line) for block in blocks for line in block[column]) for column in range(len(HEADINGS))]
    lines = []
    for block in blocks:
        for row in range(max(len(cell) for cell in block)):
            texts = [cell[row] if row < len(cell) else "" for cell in block]
            lines.append("  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _cells(summary: RunSummary) -> list[list[str]]:
    from video2pde.numbers import format_estimate, format_number

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{format_number(100 * value, '.3g')} %"

    terms: dict[str, Any] = dict(summary.terms or {})
    name_width = max(map(len, terms), default=0)
    coefficients = [
        " ".join([name.ljust(name_width), *format_estimate(entry)]).rstrip() for name, entry in terms.items()
    ]
    law = f"{summary.library}: {summary.equation}" if summary.library else "–"
    time = "–" if summary.seconds is None else f"{summary.seconds:.0f} s"
    return [
        [summary.folder],
        [summary.verdict],
        [law],
        coefficients or ["–"],
        [percent(summary.rrmse)],
        [percent(summary.persistence)],
        [time],
    ]
