"""What a report draws: the artefacts of a run's stages, as many as there are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from video2pde.calibration import Calibration
from video2pde.calibration.front import FrontFit
from video2pde.caveats import collect_caveats, judge_fit
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.recording import RecordingResult
from video2pde.refinement.result import Refinement
from video2pde.result import Result
from video2pde.rollout.validate import Score, Validation
from video2pde.runs.archive import load_artefact, read_meta
from video2pde.runs.folder import STANDING
from video2pde.selection import Selection
from video2pde.settings import load_settings, Settings
from video2pde.stages import choose_windows, Discovery, Evaluation


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Hold a run's settings, its stages' artefacts by name, and the seconds that each took.

    A stage that has not been run yet is missing; what it would give is then None or empty.
    """

    settings: Settings
    stages: Mapping[str, Any]
    timings: Mapping[str, float]

    @property
    def recording(self) -> RecordingResult | None:
        return self.stages.get("recording")

    @property
    def field(self) -> Field | None:
        return None if self.recording is None else self.recording.field

    @cached_property
    def windows(self) -> Windows | None:
        return None if self.field is None else choose_windows(self.field, self.settings)

    @property
    def unit(self) -> str:
        return "image units" if self.field is None else self.field.grid.unit

    @property
    def drift(self) -> Drift | None:
        """The drift of the whole recording once the test window has been read, else of what comes before it."""
        if self.evaluation is not None:
            return self.evaluation.drift
        return self.stages["drift"][0] if "drift" in self.stages else None

    @property
    def discovery(self) -> Discovery | None:
        return self.stages.get("discovery")

    @property
    def validation(self) -> Validation | None:
        return self.stages.get("validation")

    @property
    def refined(self) -> Mapping[str, Refinement]:
        return self.stages.get("refinement") or {}

    @property
    def comparison(self) -> Validation | None:
        return self.stages.get("comparison")

    @property
    def calibrations(self) -> Mapping[str, Calibration]:
        return self.stages.get("calibration") or {}

    @property
    def fronts(self) -> Mapping[str, tuple[FrontFit, ...]]:
        return self.stages.get("front") or {}

    @property
    def selection(self) -> Selection | None:
        return self.stages["selection"][0] if "selection" in self.stages else None

    @property
    def final_validation(self) -> Validation | None:
        """The calibrated models' rollouts over the validation window."""
        return self.stages["selection"][1] if "selection" in self.stages else None

    @property
    def evaluation(self) -> Evaluation | None:
        return self.stages.get("test")

    @property
    def chosen(self) -> Calibration | None:
        name = None if self.selection is None else self.selection.chosen
        return None if name is None else self.calibrations[name]

    @property
    def test_score(self) -> Score | None:
        """The chosen law on the test window."""
        if self.evaluation is None or self.selection is None:
            return None
        rows = self.evaluation.scores.rows
        return next((row.measured for row in rows if row.library == self.selection.chosen), None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        found = () if self.recording is None else self.recording.warnings
        notes = self.stages["drift"][1] if "drift" in self.stages else ()
        if self.discovery is None:
            return (*found, *notes)
        judged = () if self.chosen is None else judge_fit(self.chosen, self.test_score)
        return (*judged, *found, *notes, *collect_caveats(self.discovery, self.calibrations, self.refined))

    @cached_property
    def result(self) -> Result:
        """The result of a finished run."""
        if self.evaluation is None:
            raise InputError("the run is not finished: its test window has not been predicted yet; finish it first")
        return Result(
            self.stages["recording"].field, self.evaluation.drift, self.stages["discovery"], self.stages["validation"],
            self.calibrations, self.stages["selection"][0], self.final_validation, self.evaluation.scores,
            self.settings, self.warnings,
        )  # fmt: skip


def load_artefacts(folder: Path) -> Artefacts:
    """Read what a run has left in its folder so far; artefacts of an older run with other settings are left out."""
    stored = folder / "settings.toml"
    if not stored.is_file() or not (folder / "stages").is_dir():
        raise InputError(f"{folder} is not the folder of a run: it has no settings.toml and stages")
    standing = _standing(folder / STANDING)
    stages: dict[str, Any] = {}
    timings: dict[str, float] = {}
    for path in sorted((folder / "stages").glob("[0-9][0-9]-*.npz")):
        meta = read_meta(path)
        name = str(meta["stage"])
        if standing is None or standing.get(name) == meta["key"]:
            stages[name] = load_artefact(path)
            timings[name] = float(meta["seconds"])
    return Artefacts(load_settings(file=stored), stages, timings)


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
