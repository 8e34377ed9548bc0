"""The films of a study: each an ordinary run in a folder of its own, which resumes by itself."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from video2pde.pipeline import run_pipeline, STAGES
from video2pde.runs.events import Events
from video2pde.runs.folder import FolderInUse, RESULT, STANDING
from video2pde.settings import Settings
from video2pde.study.plan import FilmPlan, Plan
from video2pde.study.trends import Condition
from video2pde.tasks import Failed, Workforce

LAST = "comparison"
"""The last stage of a film's run, before its report."""
FILMS = "films"
"""Folder of the study that holds the runs."""
WAIT_SECONDS, WAITS = 2.0, 150
"""How often, and how many times, a film's folder is looked at again while another process works in it: a worker that
an interrupted study left behind."""


@dataclass(frozen=True)
class FilmRun:
    """A film that was run: its folder, its conditions, and what tells its artefacts from others."""

    name: str
    folder: str
    key: str
    conditions: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True)
class FilmTask:
    """What a worker needs to run a film."""

    path: str
    folder: str
    settings: Settings
    figures: bool


def run_films(
    plan: Plan, out: Path, workforce: Workforce, events: Events, figures: bool = False
) -> tuple[tuple[FilmRun, ...], dict[str, str]]:
    """Run every film; return those that were finished, and why others were not, by name."""
    tasks = [_task(film, out, figures) for film in plan.films]
    # the report has no key, and the recovery is no stage unless it is asked for
    expected = sum(len(STAGES) - 1 - (not task.settings.frap.enabled) for task in tasks)

    def progress(done: int, total: int) -> None:
        stages = sum(count_stages(Path(task.folder)) for task in tasks)
        events.progress(stages, expected, f"{done} of {total} films done")

    outcomes = workforce.map(run_film, tasks, progress, events.note)
    finished, failed = list[FilmRun](), dict[str, str]()
    for film, task, outcome in zip(plan.films, tasks, outcomes, strict=True):
        if isinstance(outcome, Failed):
            failed[film.name] = outcome.reason
        else:
            finished.append(FilmRun(film.name, task.folder, film_key(Path(task.folder)), film.conditions))
    return tuple(finished), failed


def _task(film: FilmPlan, out: Path, figures: bool) -> FilmTask:
    folder = (out / FILMS / film.name).resolve()
    # a task keeps to one core: others run beside it
    run = film.settings.run.model_copy(update={"workers": 1, "cluster": None})
    return FilmTask(str(film.path.resolve()), str(folder), film.settings.model_copy(update={"run": run}), figures)


def run_film(task: FilmTask) -> float:
    """Run one film, in a worker; return the seconds that it took."""
    began = time.monotonic()
    for left in reversed(range(WAITS)):
        try:
            _run_what_is_left(task)
            break
        except FolderInUse:
            if not left:
                raise
            time.sleep(WAIT_SECONDS)
    return time.monotonic() - began


def _run_what_is_left(task: FilmTask) -> None:
    """Run the stages; a result that names them all afterwards belongs to them, and needs no new report."""
    run_pipeline(task.path, task.folder, task.settings, until=LAST)
    if not _is_published(Path(task.folder)):
        run_pipeline(task.path, task.folder, task.settings, figures=task.figures)


def _is_published(folder: Path) -> bool:
    """Tell whether the result was written with all that the run stands on."""
    try:
        timings = json.loads((folder / RESULT).read_text(encoding="utf-8"))["timings_s"]
    except (OSError, ValueError, KeyError):
        return False
    return set(_standing(folder)) <= set(timings)


def _standing(folder: Path) -> Mapping[str, str]:
    try:
        keys = json.loads((folder / STANDING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return keys if isinstance(keys, dict) else {}


def count_stages(folder: Path) -> int:
    """Return how many stages of a run are done."""
    return len(_standing(folder))


def film_key(folder: Path) -> str:
    """Hash the keys of all that a film's run stands on."""
    return hashlib.sha256(json.dumps(dict(_standing(folder)), sort_keys=True).encode()).hexdigest()


def keys_of(films: Sequence[FilmRun]) -> list[str]:
    return [f"{film.name} {film.key}" for film in films]
