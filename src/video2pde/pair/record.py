"""The record of a run of two fields, and what its stages leave in the run folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from video2pde import __version__
from video2pde.errors import InputError
from video2pde.field import Windows
from video2pde.files import plain_json
from video2pde.numbers import format_estimate
from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.check import PairFit, widen
from video2pde.pair.discover import EquationSearch, PairDiscovery
from video2pde.pair.evaluate import PairScore, PairScores
from video2pde.pair.fields import Pair
from video2pde.pair.read import is_pair, PairRecording
from video2pde.pair.select import PairSelection
from video2pde.record import STAGE
from video2pde.result import package_versions, SCHEMA, VERDICTS
from video2pde.runs.archive import load_artefact, read_meta
from video2pde.runs.folder import STANDING
from video2pde.settings import load_settings, Settings
from video2pde.stages import choose_windows
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.words import coefficient_units, describe

NO_DRIFT = "the medium is taken to stand still: a drift is not measured where two fields are recorded"


@dataclass(frozen=True, eq=False)
class PairRun:
    """Hold a run of two fields: its settings and the artefact of each stage that has been run; None: not yet."""

    settings: Settings
    timings: Mapping[str, float] = field(default_factory=dict)
    recording: PairRecording | None = field(default=None, metadata={STAGE: "film to two fields"})
    discovery: PairDiscovery | None = field(default=None, metadata={STAGE: "weak form, all sets of terms"})
    calibration: Mapping[str, PairCalibration] | None = field(
        default=None, metadata={STAGE: "rollout calibration and bootstrap"}
    )
    fit: Mapping[str, tuple[PairFit, ...]] | None = field(
        default=None, metadata={STAGE: "what the laws leave, against what noise leaves"}
    )
    validation: PairScores | None = field(default=None, metadata={STAGE: "rollouts of the calibrated laws"})
    selection: PairSelection | None = field(default=None, metadata={STAGE: "the choice, frozen"})
    test: PairScores | None = field(default=None, metadata={STAGE: "the held-out frames, once"})

    @property
    def pair(self) -> Pair | None:
        return None if self.recording is None else self.recording.pair

    @cached_property
    def windows(self) -> Windows | None:
        return None if self.pair is None else choose_windows(self.pair.u, self.settings)

    @cached_property
    def laws(self) -> Mapping[str, PairCalibration]:
        """The calibrated systems by name, with what the test of fit adds to their intervals."""
        tests = self.fit or {}
        return {name: widen(found, tests.get(name, ())) for name, found in (self.calibration or {}).items()}

    @property
    def chosen(self) -> PairCalibration | None:
        """The chosen system, calibrated; None where there is none, or none yet."""
        name = None if self.selection is None else self.selection.chosen
        return None if name is None else self.laws.get(name)

    @property
    def chosen_fit(self) -> tuple[PairFit, ...]:
        name = None if self.selection is None else self.selection.chosen
        return () if name is None or self.fit is None else self.fit[name]

    @property
    def unit(self) -> str:
        return "image units" if self.pair is None else self.pair.grid.unit

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to bear in mind, most serious first."""
        found = list[str]()
        chosen = self.chosen
        if chosen is not None and not chosen.converged:
            found.append(
                f"the fit of the rollout did not converge: {chosen.reason}; its coefficients have no intervals"
            )
        for test in self.chosen_fit:
            found += [suspect.words for suspect in test.suspects if not test.passes]
        if self.test is not None and self.selection is not None and self.selection.chosen is not None:
            score = self.test.laws[self.selection.chosen]
            if score.failure or score.skill <= 0:
                found.append("on the held-out frames the system does not beat the prediction that nothing changes")
        read = () if self.recording is None else self.recording.warnings
        notes = () if self.discovery is None else self.discovery.notes
        return (*found, *read, *notes, NO_DRIFT)

    def to_json(self) -> dict[str, Any]:
        """Return ``result.json`` of a finished run."""
        return describe_pair(self)

    def summary(self) -> str:
        """Say what was found: equations with intervals, verdict, errors, warnings."""
        return summarise_pair(self)

    def __repr__(self) -> str:
        return self.summary()


STAGES: Mapping[str, str] = {entry.name: entry.metadata[STAGE] for entry in fields(PairRun) if STAGE in entry.metadata}


def holds_pair(folder: str | os.PathLike[str]) -> bool:
    """Tell whether a folder is that of a run of two fields."""
    stored = Path(folder) / "settings.toml"
    return stored.is_file() and is_pair(load_settings(file=stored))


def load_pair_run(folder: str | os.PathLike[str]) -> PairRun:
    """Read what a run of two fields has left in its folder so far."""
    place = Path(folder)
    if not (place / "settings.toml").is_file() or not (place / "stages").is_dir():
        raise InputError(f"{place} is not the folder of a run: it has no settings.toml and stages")
    standing = json.loads((place / STANDING).read_text(encoding="utf-8"))
    artefacts: dict[str, Any] = {}
    timings: dict[str, float] = {}
    for path in sorted((place / "stages").glob("[0-9][0-9]-*.npz")):
        meta = read_meta(path)
        name = str(meta["stage"])
        if name in STAGES and standing.get(name) == meta["key"]:
            artefacts[name], timings[name] = load_artefact(path), float(meta["seconds"])
    return PairRun(load_settings(file=place / "settings.toml"), timings, **artefacts)


def describe_pair(run: PairRun) -> dict[str, Any]:
    """Return ``result.json``: the names of one field's where they mean the same, and ``fields`` with both laws.

    ``selected.terms`` and the scores' names carry the field before the term, such as ``u.laplacian``.
    """
    pair, selection, test = run.pair, run.selection, run.test
    if pair is None or selection is None or test is None or run.discovery is None or run.validation is None:
        raise InputError("the run is not finished: it has no result yet")
    plain: dict[str, Any] = plain_json(
        {
            "schema": SCHEMA,
            "verdict": selection.verdict,
            "reason": selection.reason,
            "recording": {
                "path": pair.u.provenance.path,
                "sha256": pair.u.provenance.sha256,
                "channels": list(pair.channels),
                "frames": len(pair),
                "duration_s": pair.u.duration,
                "grid": list(pair.grid.shape),
                "dx": pair.grid.dx,
                "dy": pair.grid.dy,
                "dt": pair.u.dt,
            },
            "selected": None if run.chosen is None else _law(run.chosen, pair.grid.unit),
            "alternatives": [_law(run.laws[name], pair.grid.unit) for name in selection.alternatives],
            "fit": _fit(run.chosen_fit),
            "search": {search.field: _search(search) for search in run.discovery.searches},
            "selection": {"digest": selection.digest, "candidates": list(run.laws)},
            "validation": _scores(run.validation),
            "test": _test(test, selection.chosen),
            "warnings": list(run.warnings),
            "seed": run.settings.run.seed,
            "versions": {"video2pde": __version__, "python": platform.python_version(), **package_versions()},
            "timings_s": dict(run.timings),
        }
    )
    return plain


def _law(found: PairCalibration, unit: str) -> dict[str, Any]:
    law = found.law_within()
    both: dict[str, dict[str, Any]] = {
        name: {
            "terms": {
                term: {**estimate.to_json(), "unit": coefficient_units(get_pair_term(term), unit)}
                for term, estimate in found.estimates[name].items()
            },
            "equation": {"text": law.equation(name).text, "latex": law.equation(name).latex},
        }
        for name in FIELDS
    }
    return {
        "library": found.name,
        "fields": both,
        "terms": {f"{name}.{term}": entry for name in FIELDS for term, entry in both[name]["terms"].items()},
        "equation": {"text": law.equations.text, "latex": law.equations.latex},
        "replicates": {"converged": len(found.draws), "requested": len(found.draws) + found.failures},
    }


def _fit(tests: tuple[PairFit, ...]) -> dict[str, Any] | None:
    if not tests:
        return None
    return {
        "passes": all(test.passes for test in tests),
        "unexplained": max(test.unexplained for test in tests),
        "expected": max(test.expected for test in tests),
        "suspects": [
            {
                "name": f"{suspect.field}.{suspect.term}",
                "removes": suspect.removes,
                "chance": suspect.chance,
                "words": suspect.words,
            }
            for test in tests
            for suspect in test.suspects
        ],
        "fields": {
            test.field: {
                "passes": test.passes,
                "unexplained": test.unexplained,
                "expected": test.expected,
                "limit": test.limit,
            }
            for test in tests
        },
    }


def _search(search: EquationSearch) -> dict[str, Any]:
    def entry(found: Any) -> dict[str, Any]:
        return {
            "terms": list(found.terms),
            "coefficients": dict(found.coefficients),
            "unexplained": found.unexplained,
            "criterion": found.criterion,
            "frequency": found.frequency,
        }

    return {
        "subsets": search.subsets,
        "independent": search.independent,
        "expected": search.expected,
        "front": [entry(found) for found in search.front],
        "candidates": [entry(found) for found in search.candidates],
        "inclusion": dict(search.inclusion),
    }


def _score(score: PairScore) -> dict[str, Any]:
    return {
        "rrmse": score.total,
        "fields": dict(zip(FIELDS, score.rrmse, strict=True)),
        "skill": score.skill,
        "failure": score.failure,
    }


def _scores(scores: PairScores) -> dict[str, Any]:
    return {
        "baselines": {scores.persistence.name: scores.persistence.total},
        "libraries": {name: _score(score) for name, score in scores.laws.items()},
    }


def _test(scores: PairScores, chosen: str | None) -> dict[str, Any]:
    own = {} if chosen is None else _score(scores.laws[chosen])
    still = scores.persistence
    return {
        **own,
        "baselines": {still.name: still.total},
        "baseline_fields": {still.name: dict(zip(FIELDS, still.rrmse, strict=True))},
    }


def summarise_pair(run: PairRun) -> str:
    """Say in words what was found."""
    if run.selection is None or run.test is None:
        return f"a run of two fields, finished so far: {', '.join(run.timings) or 'nothing'}"
    lines = [f"{VERDICTS[run.selection.verdict]}: {run.selection.reason}"]
    chosen = run.chosen
    if chosen is not None:
        law = chosen.law_within()
        for name in FIELDS:
            lines.append(law.equation(name).text)
            for term, estimate in chosen.estimates[name].items():
                shown, interval = format_estimate(estimate)
                unit = coefficient_units(get_pair_term(term), run.unit)
                lines.append(f"  {describe(get_pair_term(term)).text:8} {shown} {interval} {unit}".rstrip())
        score, still = run.test.laws[chosen.name], run.test.persistence
        errors = ", ".join(
            f"{name} {own:.2%} (persistence {other:.2%})"
            for name, own, other in zip(FIELDS, score.rrmse, still.rrmse, strict=True)
        )
        lines.append(f"held-out frames: {errors}")
    lines += [f"note: {text}" for text in run.warnings]
    return "\n".join(lines)
