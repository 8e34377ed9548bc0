"""The commands on many runs: study (many films), sensitivity (one film under many settings)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

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
from video2pde.cli.run import interruptible
from video2pde.errors import InputError

Cluster = Annotated[
    str | None, Parameter(help="Address of a dask.distributed scheduler, such as tcp://host:8786, that computes.")
]


def study(
    *films: Annotated[Path, Parameter(help="A study.toml, or films that share their settings.")],
    out: Annotated[Path, Parameter(help="Folder of the study; an unfinished one in it is continued.")],
    cluster: Cluster = None,
    figures: Annotated[bool, flag("Draw every film's figures, too.")] = False,
    law: LawOptions = DEFAULT_LAW,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Find one law for many films, or that there is none.

    Every film becomes an ordinary run in OUT/films; then weak systems are stacked, the law is calibrated on all films
    together, and tested: do the films share it, does it depend on a condition, does it predict a film that it was not
    fitted to. Leaves result.json, tables/ and report.html. Started again, it goes on from what is valid:

        video2pde study study.toml --out result
        video2pde study a.mp4 b.mp4 c.mp4 --out result --preset quick
        video2pde study study.toml --out result --cluster tcp://head:8786
    """
    from video2pde.runs.events import choose_events
    from video2pde.study.order import run_study
    from video2pde.study.plan import check_plan, Given, plan_films, read_plan
    from video2pde.study.result import summarise_study
    from video2pde.tasks import Workforce

    preset = None if settings.preset == DEFAULT_SETTINGS.preset else settings.preset
    given = Given(preset, settings.settings, law.joined(settings).set)
    if not films:
        raise InputError("study needs a study.toml, or two films or more")
    plan = read_plan(films[0], given) if len(films) == 1 and films[0].suffix == ".toml" else plan_films(films, given)
    if wrong := check_plan(plan):
        for line in wrong:
            complain(f"error: {line}")
        raise InputError(
            f"nothing was started: {len(wrong)} thing{'s are' if len(wrong) > 1 else ' is'} wrong with the study"
        )
    run = plan.settings.run
    workforce = Workforce(run.workers, cluster or run.cluster)
    logging.captureWarnings(True)  # into log.txt: a library's warnings would tear the display apart
    try:
        with choose_events(settings.quiet) as events:
            found = interruptible(lambda: run_study(plan, out, workforce, events=events, figures=figures), events)
    finally:
        logging.captureWarnings(False)
    tell(summarise_study(found))
    tell(f"report: {out / 'report.html'}")


def sensitivity(
    film: Film,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for the runs; unfinished ones in it are continued.")],
    vary: Annotated[
        tuple[str, ...],
        Parameter(help="section.key=value,value: settings to vary in place of the usual ones.", show_default=False),
    ] = (),
    samples: Annotated[int, Parameter(help="Settings in which all are changed at once, spread over the levels.")] = 12,
    cluster: Cluster = None,
    law: LawOptions = DEFAULT_LAW,
    recording: RecordingOptions = DEFAULT_RECORDING,
    settings: SettingsOptions = DEFAULT_SETTINGS,
) -> None:
    """Ask how a film's law depends on settings: crop, border, grid, smoothing, windows, test functions, seeds.

    One setting is changed at a time, and all at once in a space-filling sample; each is a run of its own, up to the
    choice. Leaves result.json, tables/ and report.html with specification curves and tornados:

        video2pde sensitivity film.mp4 --out result --crop 450,0,1080,1080
        video2pde sensitivity film.mp4 --out result --preset quick --samples 0
        video2pde sensitivity film.mp4 --out result --vary weak.sigma_space=0.04,0.08 --vary run.seed=1,2,3
    """
    from video2pde.runs.events import choose_events
    from video2pde.runs.folder import RunFolder
    from video2pde.runs.memory import check_recording
    from video2pde.study.sensitivity import run_specifications, Sensitivity
    from video2pde.study.sensitivity_page import publish_sensitivity, summarise_sensitivity
    from video2pde.study.specifications import list_specifications, named_factors, usual_factors
    from video2pde.tasks import Workforce

    chosen = law.joined(settings).load(recording)
    if samples < 0:
        raise InputError(f"--samples {samples}: give 0 or more")
    check_recording(film, chosen)
    factors = named_factors(vary, chosen) if vary else usual_factors(film, chosen)
    specifications = list_specifications(film, chosen, factors, samples, chosen.run.seed)
    workforce = Workforce(chosen.run.workers, cluster or chosen.run.cluster)

    def work() -> Sensitivity:
        with RunFolder(out, events):
            found = run_specifications(film, factors, specifications, out, workforce, events)
            publish_sensitivity(out, found)
            return found

    logging.captureWarnings(True)
    try:
        with choose_events(settings.quiet) as events:
            found = interruptible(work, events)
    finally:
        logging.captureWarnings(False)
    tell(summarise_sensitivity(found))
    tell(f"report: {out / 'report.html'}")
