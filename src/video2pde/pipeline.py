"""From recording to result: the stages in order. Nothing else knows the order.

Every stage's artefact is kept in the run folder under a key made of its settings and of what it was made from, so
that a run continues where it stopped, and a changed setting recomputes only what depends on it. The test window
is cut off before the first stage that could see it and is read by ``evaluate`` alone, after the choice is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from video2pde import __version__
from video2pde.errors import InputError, StageError
from video2pde.recording import read_recording
from video2pde.recording.source import hash_recording, open_recording
from video2pde.refinement.result import Refinement
from video2pde.result import Result
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import RunFolder, stage_key, STANDING
from video2pde.selection import select
from video2pde.settings import Settings
from video2pde.stages import (
    calibrate_contender,
    choose_windows,
    compare_refined,
    Contender,
    discover_structure,
    evaluate,
    final_models,
    measure_drift,
    recalibrate_front,
    validate_models,
)

Artefact = TypeVar("Artefact")
STAGES = {
    "recording": "film to field",
    "drift": "background, centroid, drift",
    "discovery": "weak form, sparse fits, identifiability",
    "validation": "rollouts of every library",
    "refinement": "inverse PINN",
    "comparison": "weak and refined coefficients side by side",
    "calibration": "rollout calibration and bootstrap",
    "front": "front-aware recalibration",
    "selection": "the choice, frozen",
    "test": "the held-out frames, once",
    "report": "page, figures, tables",
}


def run_pipeline(
    film: str | Path,
    out: str | Path,
    settings: Settings | None = None,
    events: Events | None = None,
    until: str | None = None,
    latex: bool = False,
    figures: bool = True,
) -> Result | None:
    """Turn a recording into a law and leave the result in ``out``; None where ``until`` stops it early.

    ``until`` names the last stage to run (one of :data:`STAGES`); ``figures`` writes the files for a paper too.
    """
    settings = settings or Settings()
    if until is not None and until not in STAGES:
        raise InputError(f"there is no stage '{until}'; there are: {', '.join(STAGES)}")
    events = events or QuietEvents()
    with RunFolder(out, events) as folder:
        run = _Run(folder, settings, events, until, _fingerprint(Path(film), settings))
        folder.write_text("settings.toml", settings.to_toml())
        folder.write_json(STANDING, {})
        try:
            return _run_stages(run, Path(film), latex, figures)
        except _EndHere:
            return None


run = run_pipeline
"""The whole way from Python: ``video2pde.run(film, out, settings)``."""


def _fingerprint(film: Path, settings: Settings) -> str:
    """Give the hash of everything that is read: the recording, and the pictures and tables that go with it."""
    return hash_recording(open_recording(film, settings.recording), settings.recording)


def _run_stages(run: _Run, film: Path, latex: bool, figures: bool) -> Result:
    s = run.settings
    recording = run.stage("recording", lambda: read_recording(film, s, run.progress), (), s.recording)
    field = recording.field
    windows = choose_windows(field, s)
    known = field.frames(slice(0, windows.validation_end))
    train = known.frames(windows.train)

    drift, _ = run.stage("drift", lambda: measure_drift(known, s), ("recording",), s.drift, s.split)
    found = run.stage(
        "discovery", lambda: discover_structure(known, drift, windows, s, run.progress),
        ("drift",), s.weak, s.regression, s.identifiability, s.terms, s.libraries, s.run.seed, s.rollout,
    )  # fmt: skip
    diffusion = found.diffusion
    run.stage(
        "validation",
        lambda: validate_models(known, windows.validation, drift, found.models, diffusion, s),
        ("discovery",), s.rollout, s.run.device,
    )  # fmt: skip

    contenders = found.contenders if found.identifiability.law_seen else ()
    refined = run.stage(
        "refinement", lambda: _refine(run, contenders, train, drift, found), ("discovery",), s.refinement, s.run.device
    )

    run.stage(
        "comparison",
        lambda: compare_refined(known, windows.validation, drift, contenders, refined, diffusion, s),
        ("refinement",), s.rollout,
    )  # fmt: skip

    def calibrate_all() -> dict[str, Any]:
        done = {}
        for index, contender in enumerate(contenders):
            # one contender may take ten times as long as another: the time left is not known
            doing = f"{contender.library}, contender {index + 1} of {len(contenders)}"
            run.events.progress(0, None, f"{doing}: fitting")

            def tell(replicates: int, total: int, doing: str = doing) -> None:
                run.events.progress(0, None, f"{doing}: bootstrap replicate {replicates} of {total}")

            try:
                done[contender.library] = calibrate_contender(
                    contender, train, drift.frames(windows.train), found, refined.get(contender.library), s, tell
                )
            except StageError as error:
                run.events.warn(f"{contender.library} is left out: {error}")
        return done

    calibrations = run.stage("calibration", calibrate_all, ("refinement",), s.calibration, s.rollout)

    def all_fronts() -> dict[str, Any]:
        wanted = [c for c in contenders if s.front.enabled and c.library in calibrations and _tracks_front(c)]
        wanted = sorted(wanted, key=lambda c: calibrations[c.library].fit.mse)[: s.front.contenders]
        return {
            c.library: recalibrate_front(
                c, calibrations[c.library], train, drift.frames(windows.train), found, refined.get(c.library), s
            )
            for c in wanted
        }

    fronts = run.stage("front", all_fronts, ("calibration",), s.front)
    models = final_models(calibrations, fronts)

    def choose() -> Any:
        final = validate_models(known, windows.validation, drift, models, diffusion, s)
        why_not = "" if found.identifiability.law_seen else found.identifiability.verdict.removeprefix("no law: ")
        named = s.regression.law is not None
        return select(calibrations, final, s.selection, min(field.grid.dx, field.grid.dy), why_not, named), final

    selection, _ = run.stage("selection", choose, ("front", "validation"), s.selection)
    # the choice is on disk from here on; only now may the test window be read
    run.stage("test", lambda: evaluate(field, windows, selection, models, diffusion, s), ("selection",))
    from video2pde.report.publish import Artefacts, publish

    artefacts = Artefacts(s, run.artefacts, run.timings)
    if run.until == "test":
        return artefacts.result
    run.begin("report")
    publish(run.folder.path, artefacts, latex, figures)
    run.finish("report")
    return artefacts.result


def _tracks_front(contender: Contender) -> bool:
    """Tell whether front-aware recalibration means anything: the paper's gradient family, and diffusion."""
    return any(term.name == "laplacian" for term in contender.terms) and len(contender.terms) > 1


def _refine(run: _Run, contenders: Sequence[Contender], train: Any, drift: Any, found: Any) -> dict[str, Refinement]:
    """Refine the leading contenders by the inverse PINN, each with its own checkpoint."""
    options = run.settings.refinement
    if not options.enabled or not contenders:
        return {}
    from video2pde.refinement.refine import refine

    done = {}
    chosen = contenders[: options.contenders]
    for index, contender in enumerate(chosen):
        weak = {term.name: contender.coefficients[term.name] for term in contender.terms}
        velocity = contender.velocity(train, drift.frames(slice(0, len(train))), found.moments)

        def tell(standing: Any, index: int = index, name: str = contender.library) -> None:
            figures = ", ".join(f"{term} {value:.4g}" for term, value in standing.coefficients.items())
            before = 0 if standing.phase == "pretraining" else options.pretrain_steps
            share = (before + standing.step) / (options.pretrain_steps + options.joint_steps)
            run.events.progress(round(1000 * (index + share)), 1000 * len(chosen), f"{name}: {figures}")

        done[contender.library] = refine(
            train, contender.terms, velocity, list(weak.values()), options, device=run.settings.run.device,
            checkpoint=run.folder.path / "stages" / f"refinement-{contender.library}.npz", progress=tell,
        )  # fmt: skip
        if done[contender.library].interrupted:
            raise KeyboardInterrupt
    return done


class _EndHere(Exception):
    """The stage named by ``until`` is done."""


class _Run:
    """Keep what every stage needs: the folder, the settings, who is told, and the keys of finished stages."""

    def __init__(self, folder: RunFolder, settings: Settings, events: Events, until: str | None, film: str) -> None:
        self.folder, self.settings, self.events, self.until = folder, settings, events, until
        self.timings: dict[str, float] = {}
        self.artefacts: dict[str, Any] = {}
        self._film, self._keys = film, dict[str, str]()

    def progress(self, done: int, total: int | None) -> None:
        self.events.progress(done, total)

    def stage(self, name: str, compute: Callable[[], Artefact], after: Sequence[str], *settings: Any) -> Artefact:
        """Load or compute a stage; its key holds the settings that it uses and the keys of what it is made from."""
        self.begin(name)
        inputs = [self._film, *(self._keys[stage] for stage in after)]
        key = self._keys[name] = stage_key(name, inputs, [_dump(value) for value in settings], __version__)
        artefact, seconds, cached = self.folder.stage(name, key, compute)
        self.timings[name], self.artefacts[name] = seconds, artefact
        self.folder.write_json(STANDING, self._keys)
        self.events.done(name, seconds, cached)
        if name == self.until != "test":
            raise _EndHere
        return artefact

    def begin(self, name: str) -> None:
        self.events.stage(name, STAGES[name])

    def finish(self, name: str) -> None:
        self.events.done(name, 0.0, False)


def _dump(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dump(item) for item in value]
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
