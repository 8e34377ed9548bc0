"""From a recording of two fields to a result: the stages in order, kept in the run folder like those of one field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from video2pde.errors import InputError, printable, StageError
from video2pde.pair.calibrate import calibrate_pair, PairCalibration
from video2pde.pair.check import check_laws
from video2pde.pair.discover import discover, PairDiscovery
from video2pde.pair.evaluate import PairScores, score_laws
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.problem import PairProblem
from video2pde.pair.publish import publish_pair
from video2pde.pair.read import hash_pair, read_pair
from video2pde.pair.record import PairRun, STAGES
from video2pde.pair.select import PairSelection, select_law
from video2pde.runs.code import hash_code
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import RunFolder, STANDING
from video2pde.runs.keys import stage_key
from video2pde.settings import Settings
from video2pde.stages import choose_windows

Artefact = TypeVar("Artefact")
REPORT = "report"
ROLLOUTS = ("rollout", "run")
MADE_FROM: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "recording": ((), ("recording",)),
    "discovery": (("recording",), ("split", "weak", "search", "regression", "identifiability", "run")),
    "calibration": (("discovery",), ("calibration", *ROLLOUTS)),
    "fit": (("calibration",), ("weak", "run")),
    "validation": (("calibration",), ROLLOUTS),
    "selection": (("validation", "fit"), ("selection",)),
    "test": (("selection",), ROLLOUTS),
}
"""For each stage, the stages whose artefacts it is given, and the sections of the settings that it may read."""
UNTIL = {"front": "calibration", "calibrated_validation": "validation"}
"""Stages of one field, and those that come to the same with two."""


def run_pair(
    film: str | Path,
    out: str | Path,
    settings: Settings,
    *,
    events: Events | None = None,
    until: str | None = None,
    latex: bool = False,
    figures: bool = True,
    pdf: bool = False,
    overwrite: bool = False,
) -> PairRun:
    """Find the laws of two fields that were recorded together, and leave the result in ``out``.

    Parameters are those of ``pipeline.run_pipeline``; ``settings.recording`` names two channels, or a second recording.
    """
    last = UNTIL.get(until or "", until)
    if last is not None and last not in (*STAGES, REPORT):
        raise InputError(f"with two fields there is no stage '{until}'; there are: {', '.join((*STAGES, REPORT))}")
    events, path = events or QuietEvents(), Path(film)
    with threadpool_limits(1), RunFolder(out, events) as folder:
        work = _Work(folder, settings, events, last, hash_pair(path, settings))
        folder.claim({"name": printable(path.name), "sha256": _identify(path, settings)}, overwrite)
        folder.begin(settings)
        try:
            _run_stages(work, path)
        except _EndHere:
            return work.run
        events.stage(REPORT, "page, figures, tables")
        work.run = publish_pair(work.run, folder.path, latex, figures, pdf)
        events.done(REPORT, work.run.timings[REPORT], False)
        return work.run


def _identify(film: Path, settings: Settings) -> str:
    """Tell a recording from others, whatever else the settings say."""
    second = settings.recording.second or ""
    return hashlib.sha256(f"{hash_pair(film, settings)} {second}".encode()).hexdigest()


def _run_stages(work: _Work, film: Path) -> None:
    told = work.events.progress
    recording = work.stage("recording", read_pair, film, progress=told)
    pair = recording.pair
    windows = choose_windows(pair.u, work.run.settings.only("split"))
    known = pair.frames(slice(0, windows.validation_end))
    train = known.frames(windows.train)
    found = work.stage("discovery", discover, train, len(pair), progress=told)
    calibrations = work.stage("calibration", calibrate_all, train, found, progress=told)
    fits = work.stage("fit", check_laws, train, len(pair), calibrations)
    laws = {name: calibration.law_within() for name, calibration in calibrations.items()}
    scores = work.stage("validation", score_calibrated, known, windows.validation, laws)
    selection = work.stage("selection", select_law, found, calibrations, fits, scores)
    # the choice is on disk from here on; only now may the test window be read
    work.stage("test", evaluate_chosen, pair, windows.test, selection, laws)


def calibrate_all(
    train: Pair, found: PairDiscovery, settings: Settings, progress: Any = None
) -> dict[str, PairCalibration]:
    """Calibrate every system that discovery hands on; one that cannot be rolled out is left out."""
    problem = PairProblem.of(train, settings)
    calibrated = {}
    for name, law in found.laws.items():
        try:
            calibrated[name] = calibrate_pair(name, problem, law, settings, progress)
        except StageError:
            continue
    return calibrated


def score_calibrated(known: Pair, window: slice, laws: Mapping[str, PairLaw], settings: Settings) -> PairScores:
    """Roll the calibrated systems out over the validation window, and keep what they predict."""
    return score_laws(known, window, laws, settings, tuple(laws)[:1])


def evaluate_chosen(
    pair: Pair, window: slice, selection: PairSelection, laws: Mapping[str, PairLaw], settings: Settings
) -> PairScores:
    """Predict the test window with the chosen system, once."""
    chosen = {} if selection.chosen is None else {selection.chosen: laws[selection.chosen]}
    return score_laws(pair, window, chosen, settings, tuple(chosen))


class _EndHere(Exception):
    """The stage named by ``until`` is done."""


class _Work:
    """Carry the stages out: keep the folder, the record so far, who is told, and the keys of finished stages."""

    def __init__(self, folder: RunFolder, settings: Settings, events: Events, until: str | None, film: str) -> None:
        self.folder, self.events, self.run = folder, events, PairRun(settings)
        self._until, self._film = until, film
        self._keys: dict[str, str] = {}

    def stage(self, name: str, compute: Callable[..., Artefact], *inputs: Any, **company: Any) -> Artefact:
        """Load or compute a stage, and enter its artefact in the record (see ``pipeline``)."""
        self.events.stage(name, STAGES[name])
        after, sections = MADE_FROM[name]
        settings = self.run.settings
        key = self._keys[name] = stage_key(
            f"pair {name}",
            [self._film, *(self._keys[stage] for stage in after)],
            {section: getattr(settings, section) for section in sections},
            code=hash_code(compute.__module__),
        )
        artefact, seconds, cached = self.folder.stage(
            name, key, lambda: compute(*inputs, settings.only(*sections), **company)
        )
        entered: dict[str, Any] = {name: artefact}
        self.run = replace(self.run, timings={**self.run.timings, name: seconds}, **entered)
        self.folder.write_json(STANDING, self._keys)
        self.events.done(name, seconds, cached)
        if name == self._until:
            raise _EndHere
        return artefact
