"""Sensitivity: the law of one film under other reasonable settings.

Every specification is an ordinary run in a folder of its own, up to the choice; the test window stays shut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.pipeline import run_pipeline, STAGES
from video2pde.record import load_run
from video2pde.runs.events import Events
from video2pde.settings import Settings
from video2pde.study.films import count_stages
from video2pde.study.specifications import Factor, Specification
from video2pde.tasks import Failed, Workforce
from video2pde.terms import Term

Array = NDArray[np.float64]

LAST = "selection"
SPECIFICATIONS = "settings"
"""Folder that holds the runs."""
NEEDED = ("recording", "calibration", "fit", "selection")


@dataclass(frozen=True)
class Task:
    """What a worker needs: the film, the folder and the settings."""

    film: str
    folder: str
    settings: Settings


@dataclass(frozen=True)
class Found:
    """What one specification found: the verdict, the terms that were chosen, and the base law's coefficients."""

    specification: Specification
    verdict: str
    terms: tuple[str, ...]
    estimates: Mapping[str, Estimate]
    failure: str = ""


@dataclass(frozen=True)
class Effect:
    """How far one factor alone moves a coefficient: lowest and highest value over its levels, the base's among them.

    ``another``: levels under which another law is chosen, or none.
    """

    factor: str
    low: float
    high: float
    at_low: str
    at_high: str
    another: tuple[str, ...] = ()

    @property
    def range(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A film's law under all specifications; the first of ``found`` has the settings as they were given."""

    film: str
    unit: str
    factors: tuple[Factor, ...]
    terms: tuple[Term, ...]
    found: tuple[Found, ...]

    @property
    def base(self) -> Found:
        return self.found[0]

    @property
    def alike(self) -> tuple[Found, ...]:
        """The specifications that choose the same terms, the base first: a law that is not chosen says nothing."""
        return tuple(f for f in self.found if not f.failure and set(f.terms) == set(self.base.terms))

    @property
    def same_law(self) -> float:
        """The share of the other specifications under which the same terms are chosen, of those that did not fail."""
        tried = sum(not found.failure for found in self.found) - 1
        return (len(self.alike) - 1) / tried if tried else float("nan")

    def inside(self, term: str) -> float:
        """Return the share of a coefficient's other values that lie inside its interval under the settings as given."""
        here = self.base.estimates[term]
        values = [found.estimates[term].value for found in self.alike[1:]]
        if not values or not here.has_interval:
            return float("nan")
        return float(np.mean([here.low <= value <= here.high for value in values]))

    def effects(self, term: str) -> list[Effect]:
        """Return what each factor alone does to a coefficient, the largest first."""
        here, alike, effects = self.base.estimates[term].value, self.alike, []
        for k, factor in enumerate(self.factors):
            seen, other = [(here, factor.levels[0].label)], []
            for each in (f for f in self.found if f.specification.changed == (k,) and not f.failure):
                label = factor.levels[each.specification.levels[k]].label
                if each in alike:
                    seen.append((each.estimates[term].value, label))
                else:
                    other.append(label)
            (low, at_low), (high, at_high) = min(seen), max(seen)
            effects.append(Effect(factor.name, low, high, at_low, at_high, tuple(other)))
        return sorted(effects, key=lambda effect: -effect.range)

    def explained(self, term: str) -> dict[str, float]:
        """Return the share of a coefficient's scatter over all specifications that each factor's levels account for."""
        seen = self.alike
        values = np.array([f.estimates[term].value for f in seen])
        total = float(np.sum((values - values.mean()) ** 2))
        shares = {}
        for k, factor in enumerate(self.factors):
            levels = np.array([f.specification.levels[k] for f in seen])
            means = {level: values[levels == level].mean() for level in set(levels.tolist())}
            between = float(sum((means[level] - values.mean()) ** 2 for level in levels.tolist()))
            shares[factor.name] = between / total if total > 0 else 0.0
        return shares


def run_specifications(
    film: Path,
    factors: Sequence[Factor],
    specifications: Sequence[Specification],
    out: Path,
    workforce: Workforce,
    events: Events,
) -> Sensitivity:
    """Run the film under every specification, and gather what became of its law."""
    tasks = [_task(film, each, out) for each in specifications]
    events.stage("settings", "the film under other settings")

    def progress(done: int, total: int) -> None:
        stages = sum(count_stages(Path(task.folder)) for task in tasks)
        events.progress(stages, total * (list(STAGES).index(LAST) + 1), f"{done} of {total} settings done")

    outcomes = workforce.map(run_specification, tasks, progress, events.note)
    if isinstance(outcomes[0], Failed):
        raise StageError(f"the film cannot be analysed with the settings as given: {outcomes[0].reason}")
    base = load_run(tasks[0].folder, NEEDED)
    law = base.chosen
    if law is None:
        reason = "" if base.selection is None else base.selection.reason
        raise StageError(f"there is no law whose sensitivity could be asked for: {reason}")
    names = tuple(term.name for term in law.terms)
    found = [
        _gather(each, task, outcome, names) for each, task, outcome in zip(specifications, tasks, outcomes, strict=True)
    ]
    return Sensitivity(film.name, base.unit, tuple(factors), law.terms, tuple(found))


def _task(film: Path, specification: Specification, out: Path) -> Task:
    # a task keeps to one core: others run beside it
    run = specification.settings.run.model_copy(update={"workers": 1, "cluster": None})
    settings = specification.settings.model_copy(update={"run": run})
    return Task(str(film.resolve()), str((out / SPECIFICATIONS / specification.name).resolve()), settings)


def run_specification(task: Task) -> str:
    """Run the film under one specification up to the choice, in a worker."""
    run = run_pipeline(task.film, task.folder, task.settings, until=LAST)
    assert run.selection is not None
    return run.selection.verdict


def _gather(specification: Specification, task: Task, outcome: str | Failed, names: Sequence[str]) -> Found:
    if isinstance(outcome, Failed):
        return Found(specification, "", (), {}, outcome.reason)
    run = load_run(task.folder, NEEDED)
    chosen = () if run.chosen is None else tuple(term.name for term in run.chosen.terms)
    same = next((law for law in run.laws.values() if {term.name for term in law.terms} == set(names)), None)
    estimates = {} if same is None else {name: same.estimates[name] for name in names}
    return Found(specification, outcome, chosen, estimates)
