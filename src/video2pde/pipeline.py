"""From recording to result: the stages in order. Nothing else knows the order.

Every stage's artefact is kept in the run folder under a key made of what it was made from, of the sections of the
settings that it is given, and of the code that computes it, so that a run continues where it stopped, and a change
recomputes only what depends on it. The test window is cut off before the first stage that could see it and is read by
``evaluate`` alone, after the choice is frozen. The inverse PINN is a second opinion: result and page are there before
it is trained, and the page is completed with it.

To add a stage: a field of ``record.Run``, a line of :data:`MADE_FROM`, and a call of ``work.stage``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from video2pde.device import choose_device, explain_device
from video2pde.discovery.shapes import check_together
from video2pde.drift import Drift
from video2pde.errors import InputError, missing_package, printable
from video2pde.field import Field
from video2pde.fit.omitted import ASKED
from video2pde.machine import return_memory, share_heaps
from video2pde.parallel import count_workers, threads_of_run
from video2pde.publish import Publisher
from video2pde.record import is_artefact, Run
from video2pde.record import STAGES as RECORDED
from video2pde.recording.read import read_recording
from video2pde.recording.source import hash_recording, open_recording
from video2pde.refinement.result import Refinement
from video2pde.result import headline
from video2pde.rollout.ahead import compiled_ahead
from video2pde.room import limited
from video2pde.runs.code import hash_code
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import PAGE, RESULT, RunFolder, STANDING
from video2pde.runs.keys import stage_key
from video2pde.settings import RecordingSettings, Settings
from video2pde.stages.calibration import calibrate_contenders
from video2pde.stages.drift import measure_drift
from video2pde.stages.evaluation import choose, evaluate
from video2pde.stages.fit import test_calibrated
from video2pde.stages.front import final_models, recalibrate_fronts
from video2pde.stages.recovery import measure_recovery
from video2pde.stages.refinement import refine_contenders
from video2pde.stages.steadiness import follow_coefficients
from video2pde.stages.structure import Contender, discover_structure, Discovery
from video2pde.stages.validation import compare_refined, validate_models
from video2pde.stages.windows import choose_windows
from video2pde.terms import libraries
from video2pde.zipped import let_go

Artefact = TypeVar("Artefact")
REPORT = "report"
WINDOWS = ("split", "regression")
"""The sections that say where the windows are."""
STAGES = {**RECORDED, REPORT: "page, figures, tables"}
OPINION = ("refinement", "comparison")
"""The stages of the inverse PINN, which change nothing in the result unless the fits start from it."""
IN_PARTS = ("calibration",)
"""Stages that keep their parts while they go on, so that an interrupted one repeats none of them."""
DRAWN_AFTER = ("calibration", "selection")
"""Stages after which figures are begun that are there for good: before the first of them no core is idle."""
LAWS = ("regression", "constraints", "terms", "libraries")
"""The sections that say which laws are tried."""
ROLLOUTS = ("drift", "weak", "rollout", "run")
"""The sections that a rollout over a window needs."""
MADE_FROM: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "recording": ((), ("recording",)),
    "drift": (("recording",), (*WINDOWS, "drift")),
    "discovery": (
        ("drift",),
        ("split", "drift", "weak", "search", "maps", "identifiability", *LAWS, "rollout", "run"),
    ),
    "validation": (("discovery",), ROLLOUTS),
    "calibration": (("discovery", "refinement"), ("drift", "calibration", *LAWS, "rollout", "run")),
    "fit": (
        ("calibration",),
        ("recording", "drift", "frap", "weak", "calibration", "rollout", "run", *LAWS),
    ),
    "front": (("calibration",), ("drift", "calibration", "constraints", "front", "rollout", "run")),
    "calibrated_validation": (("front",), ROLLOUTS),
    "selection": (("calibrated_validation", "fit"), ("selection", "regression")),
    "test": (("selection",), ROLLOUTS),
    "recovery": (("test",), ("frap",)),
    "steadiness": (("calibration",), ("drift", "calibration", "rollout", "run", "steadiness")),
    "refinement": (("discovery",), ("refinement", "run")),
    "comparison": (("refinement",), ROLLOUTS),
}
"""For each stage, the stages whose artefacts it is given, as far as they come before it in this run, and the sections
of the settings; it cannot read others."""


def run_pipeline(
    film: str | Path,
    out: str | Path,
    settings: Settings | None = None,
    *,
    events: Events | None = None,
    until: str | None = None,
    latex: bool = False,
    figures: bool = True,
    pdf: bool = False,
    overwrite: bool = False,
) -> Run:
    """Turn a recording into a law and leave the result in ``out``.

    Parameters
    ----------
    film : the recording.
    out : folder of the run; an unfinished run in it is continued.
    settings : None: the defaults.
    events : who is told how it goes on.
    until : the last stage to run (one of :data:`STAGES`); None: all, with the report.
    latex : write the tables as LaTeX too.
    figures, pdf : draw figures, and draw them as PDF too.
    overwrite : begin anew where the folder holds a run, of another film perhaps.

    Returns
    -------
    The run, with the artefacts of all stages up to ``until``.
    """
    settings = settings or Settings()
    # what contradicts itself is refused before anything is read
    libraries(settings)
    check_together(settings)
    if until is not None and until not in STAGES:
        raise InputError(f"there is no stage '{until}'; there are: {', '.join(STAGES)}")
    if settings.recording.channels is not None or settings.recording.second is not None:
        raise InputError(
            "recording.channels and recording.second name two fields, and this runs one; 'video2pde run' and "
            "video2pde.pair.pipeline.run_pair take two, studies and the studio do not"
        )
    if settings.refinement.enabled and find_spec("jax") is None:
        raise InputError(f"the inverse PINN: {missing_package('jax')}, or leave it out: --set refinement.enabled=false")
    events = events or QuietEvents()
    share_heaps()
    # one thread of linear algebra: with more, sums are taken in an order that depends on the machine's cores
    with (
        threadpool_limits(1),
        threads_of_run(settings.run.workers),
        compiled_ahead(settings, hash_code("video2pde.rollout.kernels"), [ASKED]),
        RunFolder(out, events) as folder,
        limited(settings.run.memory_bytes, folder.stages),
        (
            Publisher(folder.path, latex, figures, pdf, count_workers(settings.run.workers))
            if until in (None, REPORT)
            else nullcontext()
        ) as leave,
    ):
        work = _Work(folder, settings, events, until, _fingerprint(Path(film), settings), leave)
        folder.claim(_identify(Path(film), settings), overwrite)
        folder.begin(settings)
        try:
            _run_stages(work, Path(film))
        except _EndHere:
            return work.run
        work.report()
        return work.run


def _fingerprint(film: Path, settings: Settings) -> str:
    """Hash everything that is read: the recording, and the pictures, tables, velocities and potentials of it."""
    recording = hash_recording(open_recording(film, settings.recording), settings.recording)
    given = settings.drift.velocity or settings.drift.potential
    if given is None or not Path(given).is_file():
        return recording
    return hashlib.sha256(recording.encode() + Path(given).read_bytes()).hexdigest()


def _identify(film: Path, settings: Settings) -> dict[str, str]:
    """Tell a film from others, whatever is read beside it."""
    alone = RecordingSettings(kymograph=settings.recording.kymograph)
    return {"name": printable(film.name), "sha256": hash_recording(open_recording(film, alone))}


def _run_stages(work: _Work, film: Path) -> None:
    told = work.events.progress
    recording = work.stage("recording", read_recording, film, progress=told)
    work.settle_device(recording.field.grid.ny * recording.field.grid.nx)
    windows = choose_windows(recording.field, work.run.settings.only(*WINDOWS))
    known = recording.field.frames(slice(0, windows.validation_end))
    train = known.frames(windows.train)

    drift = work.stage("drift", measure_drift, known)
    train_drift = drift.frames(windows.train)
    found = work.stage("discovery", discover_structure, known, drift, windows, progress=told)
    scored = (known, windows.validation, drift)
    work.stage("validation", validate_models, *scored, found.models, found.diffusion)

    contenders = found.contenders if found.identifiability.law_seen else ()
    opinion = partial(_second_opinion, work, contenders, (train, train_drift), scored, found)
    first = work.run.settings.refinement.first
    fitted = (train, train_drift, found, opinion() if first else {})
    calibrations = work.stage("calibration", calibrate_contenders, contenders, *fitted, events=work.events)
    tests = work.stage("fit", test_calibrated, train, train_drift, windows, found, calibrations)
    fronts = work.stage("front", recalibrate_fronts, contenders, calibrations, *fitted)
    models = final_models(calibrations, fronts)

    scores = work.stage("calibrated_validation", validate_models, *scored, models, found.diffusion)
    selection = work.stage("selection", choose, known, found, calibrations, tests, scores)
    # the choice is on disk from here on; only now may the test window be read
    work.stage("test", evaluate, recording.field, windows, selection, models, found.diffusion)
    if work.run.settings.frap.enabled:
        work.stage("recovery", measure_recovery, recording.field)
    if work.run.settings.regression.law is not None and work.run.settings.steadiness.parts > 1:
        work.stage("steadiness", follow_coefficients, contenders, calibrations, train, train_drift, found)
    if not first:
        work.answer(bool(contenders))
        opinion()


def _second_opinion(
    work: _Work,
    contenders: Sequence[Contender],
    fitted: tuple[Field, Drift],
    scored: tuple[Field, slice, Drift],
    found: Discovery,
) -> Mapping[str, Refinement]:
    """Train the inverse PINN on the training window and its drift, and score it on the validation window."""
    apart = {"events": work.events, "folder": work.folder.stages}
    refined = work.stage("refinement", refine_contenders, contenders, *fitted, found, **apart)
    work.stage("comparison", compare_refined, *scored, contenders, refined, found.diffusion)
    return refined


class _EndHere(Exception):
    """The stage named by ``until`` is done."""


class _Work:
    """Carry the stages out: keep the folder, the record so far, who is told, and the keys of finished stages.

    ``leave`` writes the files that a run leaves; None: none are asked for.
    """

    def __init__(
        self,
        folder: RunFolder,
        settings: Settings,
        events: Events,
        until: str | None,
        film: str,
        leave: Publisher | None,
    ) -> None:
        self.folder, self.events = folder, events
        self.run = Run(settings)
        self._until, self._film, self._leave = until, film, leave
        self._keys: dict[str, str] = {}

    def stage(self, name: str, compute: Callable[..., Artefact], *inputs: Any, **company: Any) -> Artefact:
        """Load or compute a stage, and enter its artefact in the record.

        Parameters
        ----------
        name : a field of ``Run``, and a key of :data:`MADE_FROM`.
        compute : called with ``inputs``, the sections of the settings, and the ``company``.
        inputs : artefacts, or what is made of them without further settings.
        company : what changes nothing in the artefact: who is told, where checkpoints are kept.
        """
        self.events.stage(name, STAGES[name])
        settings = self.run.settings.only(*MADE_FROM[name][1])
        key = self._keys[name] = self._key(name, compute)
        if name in IN_PARTS:
            company["keep"] = self.folder.keep_parts(name, key)
        artefact, seconds, cached = self.folder.stage(
            name,
            key,
            lambda: compute(*inputs, settings, **company),
            accepts=partial(is_artefact, name),
            beside=name in OPINION and not self.run.settings.refinement.first,
        )
        entered: dict[str, Any] = {name: artefact}
        self.run = replace(self.run, timings={**self.run.timings, name: seconds}, **entered)
        self.folder.write_json(STANDING, self._keys)
        return_memory()
        let_go()
        self.events.done(name, seconds, cached)
        if name in DRAWN_AFTER and self._leave is not None:
            self._leave.prepare(self.run)
        if name == self._until:
            raise _EndHere
        return artefact

    def settle_device(self, cells: int) -> None:
        """Choose where stages compute, for pictures of so many cells; from here on the settings name it."""
        settings = self.run.settings
        device = choose_device(settings.run.device, cells)
        if settings.run.device == "auto":
            self.events.note(explain_device(device, cells))
        chosen = settings.run.model_copy(update={"device": device})
        self.run = replace(self.run, settings=settings.model_copy(update={"run": chosen}))

    def _key(self, name: str, compute: Callable[..., Any]) -> str:
        """Return the key of a stage whose turn it is."""
        after, sections = MADE_FROM[name]
        return stage_key(
            name,
            [self._film, *(self._keys[stage] for stage in after if stage in self._keys)],
            {section: getattr(self.run.settings, section) for section in sections},
            code=hash_code(compute.__module__),
        )

    def answer(self, contested: bool) -> None:
        """Write result and page before the inverse PINN is trained; ``contested``: there are laws to train it for."""
        wanted = contested and self.run.settings.refinement.enabled and self._leave is not None
        if not wanted or self.folder.has("refinement", self._key("refinement", refine_contenders)):
            return
        if not all((self.folder.path / name).is_file() for name in (RESULT, PAGE)):
            self.report(whole=False)
        self.events.note(
            f"{headline(self.run)}. Result and page are in {self.folder.path}; the inverse PINN follows as a second "
            "opinion, and Ctrl-C loses neither"
        )

    def report(self, whole: bool = True) -> None:
        """Write what the run leaves behind, where that is asked for; ``whole``: with the figures beside the page."""
        if self._leave is None:
            return
        before = self.run.timings.get(REPORT, 0.0)
        self.events.stage(REPORT, STAGES[REPORT])
        self.run = self._leave.publish(self.run, whole)
        self.events.done(REPORT, self.run.timings[REPORT] - before, False)
