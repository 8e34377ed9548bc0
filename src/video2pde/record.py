"""The record of a run: one typed object that holds what every stage has left.

A stage is a field of :class:`Run` that is marked as one; its name is the name of the stage in the run folder, in
``result.json`` and on the command line. ``pipeline.py`` fills the fields in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from video2pde.calibration import Calibration
from video2pde.calibration.parts import InParts, reach_to_parts
from video2pde.caveats import bleaching_note, collect_caveats, constraint_notes, flow_notes, judge_fit, steadiness_notes
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.fit import FitTest, widen_all
from video2pde.frap.recovery import Recovery
from video2pde.front import FrontFit
from video2pde.html import table
from video2pde.recording import RecordingResult
from video2pde.refinement.result import Refinement
from video2pde.rollout.validate import Score, Validation
from video2pde.runs.archive import load_artefact, read_meta
from video2pde.runs.folder import STANDING
from video2pde.selection import Selection
from video2pde.settings import load_settings, Settings
from video2pde.stages import choose_windows, Discovery, Evaluation
from video2pde.terms.words import coefficient_units, describe

STAGE = "stage"
"""Marks a field as a stage's artefact; its value says in words what the stage does."""


@dataclass(frozen=True, eq=False)
class Run:
    """Hold a run: its settings and the artefact of each stage that has been run.

    A stage that has not been run yet is None, or empty where it keeps its artefacts by library.

    Parameters
    ----------
    settings : every value used.
    timings : seconds that each stage took, in order; a stage is done if it is listed here.
    recording : the field, with the checks on it.
    drift : of the frames before the test window.
    discovery : weak system, sparse fits and identifiability of every library.
    validation : rollouts of the sparse fits over the validation window.
    calibration, fit, front : by library.
    calibrated_validation : rollouts of the calibrated laws over the validation window.
    selection : the choice, frozen.
    test : the held-out frames, predicted once.
    recovery : a bleach's recovery in numbers; a text where there is none to be seen, None where it was not asked for.
    steadiness : a named law's coefficients in parts of the training window; a text says why not, None without a name.
    refinement : the inverse PINN's coefficients, by library.
    comparison : rollouts of weak and refined coefficients; None also where nothing was refined.

    Examples
    --------
    >>> run = vp.example_run()
    >>> round(run.calibration["A"].estimates["laplacian"].value, 2)
    1.0
    """

    settings: Settings
    timings: Mapping[str, float] = field(default_factory=dict)
    recording: RecordingResult | None = field(default=None, metadata={STAGE: "film to field"})
    drift: Drift | None = field(default=None, metadata={STAGE: "background, centroid, drift"})
    discovery: Discovery | None = field(default=None, metadata={STAGE: "weak form, sparse fits, identifiability"})
    validation: Validation | None = field(default=None, metadata={STAGE: "rollouts of every library"})
    calibration: Mapping[str, Calibration] = field(
        default_factory=dict, metadata={STAGE: "rollout calibration and bootstrap"}
    )
    fit: Mapping[str, FitTest] = field(
        default_factory=dict, metadata={STAGE: "what the laws leave, against what noise leaves"}
    )
    front: Mapping[str, tuple[FrontFit, ...]] = field(
        default_factory=dict, metadata={STAGE: "front-aware recalibration"}
    )
    calibrated_validation: Validation | None = field(default=None, metadata={STAGE: "rollouts of the calibrated laws"})
    selection: Selection | None = field(default=None, metadata={STAGE: "the choice, frozen"})
    test: Evaluation | None = field(default=None, metadata={STAGE: "the held-out frames, once"})
    recovery: Recovery | str | None = field(default=None, metadata={STAGE: "recovery after a bleach"})
    steadiness: InParts | str | None = field(default=None, metadata={STAGE: "the named law in parts of the recording"})
    refinement: Mapping[str, Refinement] = field(default_factory=dict, metadata={STAGE: "inverse PINN"})
    comparison: Validation | None = field(default=None, metadata={STAGE: "weak and refined coefficients side by side"})

    def has(self, stage: str) -> bool:
        """Tell whether a stage has been run."""
        return stage in self.timings

    @property
    def field(self) -> Field | None:
        return None if self.recording is None else self.recording.field

    @cached_property
    def windows(self) -> Windows | None:
        return None if self.field is None else choose_windows(self.field, self.settings)

    @property
    def unit(self) -> str:
        """The unit of lengths."""
        return "image units" if self.field is None else self.field.grid.unit

    @property
    def longest_drift(self) -> Drift | None:
        """The drift of the whole recording once the test window has been read, else of what comes before it."""
        return self.drift if self.test is None else self.test.drift

    @property
    def chosen(self) -> Calibration | None:
        """The chosen law, calibrated; None where there is none, or none yet."""
        name = None if self.selection is None else self.selection.chosen
        return None if name is None else self.laws[name]

    @cached_property
    def laws(self) -> dict[str, Calibration]:
        """The calibrated laws, their intervals widened by their lack of fit."""
        found, laws = self.steadiness, dict(self.calibration)
        if isinstance(found, InParts) and found.library in laws:
            laws[found.library] = reach_to_parts(laws[found.library], found)
        return widen_all(laws, self.fit)

    @property
    def chosen_fit(self) -> FitTest | None:
        """The test of fit of the chosen law."""
        return None if self.selection is None else self.fit.get(self.selection.chosen or "")

    @property
    def test_score(self) -> Score | None:
        """The chosen law on the test window."""
        if self.test is None or self.selection is None:
            return None
        rows = self.test.scores.rows
        return next((row.measured for row in rows if row.library == self.selection.chosen), None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to bear in mind, most serious first."""
        found = () if self.recording is None else self.recording.warnings
        notes = () if self.drift is None else self.drift.notes
        if self.discovery is None:
            return (*found, *notes)
        judged = () if self.chosen is None else judge_fit(self.chosen, self.test_score, self.chosen_fit)
        if self.has("fit") and self.calibration and not self.fit:
            untested = "the recording is too small, or its frames too few or uneven in time, for a test of fit"
            judged = (*judged, f"{untested}: nothing says whether the law is right")
        flowing = flow_notes(self.discovery.flow, None if self.selection is None else self.selection.chosen)
        recovery = (self.recovery,) if isinstance(self.recovery, str) else getattr(self.recovery, "notes", ())
        if self.field is not None:
            recovery = (*bleaching_note(self.chosen, self.recovery, self.field.duration), *recovery)
        known = constraint_notes(self.chosen, self.discovery)
        fits = collect_caveats(self.discovery, self.calibration, self.refinement)
        steady = steadiness_notes(self.steadiness, self.unit)
        return (*judged, *known, *steady, *recovery, *flowing, *found, *notes, *fits)

    def to_json(self) -> dict[str, Any]:
        """Return what ``result.json`` holds of a finished run; numbers that do not exist are null."""
        from video2pde.result import describe_run

        return describe_run(self)

    def summary(self) -> str:
        """Say what was found: equation with intervals, verdict, errors, warnings."""
        from video2pde.result import summarise

        return summarise(self)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Show the run in a notebook: the law, its coefficients with intervals, verdict, errors and warnings."""
        if self.selection is None:
            return f"<p>{escape(self.summary())}</p>"
        parts = [self._law_html(), f"<p><strong>{self.selection.verdict}</strong>: {escape(self.selection.reason)}</p>"]
        if self.test is not None:
            scores = [*(() if self.test_score is None else (self.test_score,)), *self.test.scores.baselines]
            rows = [(score.name, f"{score.full.rrmse:.3%}", f"{score.skill:.3f}") for score in scores]
            parts.append(table(("held-out frames", "error", "skill"), rows))
        if self.warnings:
            parts.append(f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in self.warnings)}</ul>")
        return "".join(parts)

    def _law_html(self) -> str:
        if self.chosen is None:
            return ""
        words = self.chosen.model.equation
        rows = [
            (describe(term).text, str(self.chosen.estimates[term.name]), coefficient_units(term, self.unit))
            for term in self.chosen.terms
        ]
        return table(("term", "coefficient and 95 % interval", "unit"), rows, words.text)


STAGES: Mapping[str, str] = {entry.name: entry.metadata[STAGE] for entry in fields(Run) if STAGE in entry.metadata}
"""What each stage does, in words, in the order of the stages."""


MAY_BE_NONE = ("comparison", "recovery", "steadiness")
"""Stages that may have nothing to say."""


def is_artefact(stage: str, value: Any) -> bool:
    """Tell whether a value is of the type that the record holds for a stage."""
    if value is None:
        return stage in MAY_BE_NONE
    return _fits(value, get_type_hints(Run)[stage])


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = get_origin(hint), get_args(hint)
    if kind is UnionType:
        return any(_fits(value, part) for part in parts)
    if kind is Mapping:
        return isinstance(value, Mapping) and all(_fits(entry, parts[1]) for entry in value.values())
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(entry, parts[0]) for entry in value)
    return isinstance(value, hint)


def load_run(folder: str | os.PathLike[str], stages: Collection[str] | None = None) -> Run:
    """Read what a run has left in its folder so far.

    Parameters
    ----------
    folder : as given to ``--out``; artefacts in it of an older run with other settings are left out.
    stages : those to read; None: all.

    Returns
    -------
    The run, finished or not.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = vp.run(vp.example_field(), folder, until="drift")
    >>> list(load_run(folder).timings)
    ['recording', 'drift']
    """
    place = Path(folder)
    stored = place / "settings.toml"
    if not stored.is_file() or not (place / "stages").is_dir():
        raise InputError(f"{place} is not the folder of a run: it has no settings.toml and stages")
    standing = _standing(place / STANDING)
    artefacts: dict[str, Any] = {}
    timings: dict[str, float] = {}
    for path in sorted((place / "stages").glob("[0-9][0-9]-*.npz")):
        meta = read_meta(path)
        name = str(meta["stage"])
        wanted = name in (STAGES if stages is None else stages)
        if wanted and (standing is None or standing.get(name) == meta["key"]):
            artefacts[name] = load_artefact(path)
            if not is_artefact(name, artefacts[name]):
                raise InputError(f"{path} holds no artefact of its stage; run 'video2pde run' again")
            timings[name] = float(meta["seconds"])
    run = Run(load_settings(file=stored), timings, **artefacts)
    if stages is None and run.selection is not None and run.selection.chosen not in (None, *run.calibration):
        raise InputError(f"{place}: the choice and the calibrated laws are of two runs; run 'video2pde run' again")
    return run


def _standing(path: Path) -> Mapping[str, str] | None:
    """Read which keys the run stands on; None: a run that kept no list, whose stages all count."""
    try:
        keys = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(keys, dict):
        raise InputError(f"{path} holds no keys by stage; run 'video2pde run' again")
    return keys
