"""A study from plan to report: its steps in order. Nothing else knows the order.

    films ─► weak systems stacked ─► contenders ─► joint calibration ─► validation windows ─► choice, frozen
          ─► is it one law? ─► test windows, once: shared law, leave one out, transfer ─► report

Every step's artefact is kept in the study's folder under a key of the films' own, so that a study resumes film by film
and step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from video2pde.agreement import NORMAL
from video2pde.errors import InputError, StageError
from video2pde.record import load_run
from video2pde.runs.code import hash_code
from video2pde.runs.events import Events, QuietEvents
from video2pde.runs.folder import RunFolder
from video2pde.runs.keys import stage_key
from video2pde.study.choice import Choice, choose_shared
from video2pde.study.equality import Equality, find_outliers, judge_equality, Outlier
from video2pde.study.films import FilmRun, keys_of, run_films
from video2pde.study.joint import fit_jointly, JointLaw, own_fit_file
from video2pde.study.meta import pool, RandomEffects
from video2pde.study.plan import check_plan, Plan
from video2pde.study.prediction import Forecast, gather, law_of, OTHERS, predict, Predicted, Predictions, SHARED
from video2pde.study.structure import stack_films, Structure
from video2pde.study.trends import find_trend, Trend
from video2pde.tasks import Failed, Workforce

Artefact = TypeVar("Artefact")
STEPS = {
    "films": "every film by itself",
    "structure": "weak systems stacked: which terms the films support together",
    "joint": "joint calibration, the law shared",
    "choice": "the choice, frozen",
    "comparison": "is it one law?",
    "prediction": "test windows: shared law, leave one out, transfer",
    "report": "page and tables",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Whether the films share one law, and how its coefficients scatter and depend on conditions.

    ``pooled`` by term: the random-effects mean; ``outliers``: the films from the one that stands out most.
    """

    equality: Equality
    pooled: Mapping[str, RandomEffects]
    outliers: tuple[Outlier, ...]
    trends: tuple[Trend, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """What a study has found; what it has not come to is None, or empty."""

    title: str
    unit: str
    films: tuple[FilmRun, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    structure: Structure | None = None
    laws: Mapping[str, JointLaw] = field(default_factory=dict)
    choice: Choice | None = None
    comparison: Comparison | None = None
    predictions: Predictions | None = None

    @property
    def chosen(self) -> JointLaw | None:
        return None if self.choice is None or self.choice.chosen is None else self.laws[self.choice.chosen]

    @property
    def another_law(self) -> tuple[str, ...]:
        """Films that seem to obey another law than most.

        By their coefficients; by what the others' law predicts of them, beside their own; or because the law that most
        films pass the test of fit with fails theirs, and the others' law predicts them badly: under a law that is not
        theirs coefficients have intervals so wide that they contradict nothing.
        """
        named = [] if self.comparison is None else [o.film for o in self.comparison.outliers if o.stands_out]
        if self.predictions is not None and self.chosen is not None:
            failing = self.chosen.failing
            named += [*self.predictions.misfits, *(f for f in self.predictions.badly_predicted if f in failing)]
        return tuple(dict.fromkeys(named))


def run_study(
    plan: Plan,
    out: str | Path,
    workforce: Workforce | None = None,
    *,
    events: Events | None = None,
    figures: bool = False,
) -> Study:
    """Carry a study out and leave it in ``out``; an unfinished one is continued.

    Parameters
    ----------
    plan : from :func:`video2pde.study.plan.read_plan`.
    out : folder of the study; each film's run lies in ``films/NAME``.
    workforce : who computes; None: one process.
    events : who is told how it goes on.
    figures : draw every film's figures for a paper, too.
    """
    if wrong := check_plan(plan):
        raise InputError("; ".join(wrong))
    told, force = events or QuietEvents(), workforce or Workforce()
    with threadpool_limits(1), RunFolder(out, told) as folder, force.stay():
        steps = _Steps(plan, folder, force, told)
        folder.begin(plan.settings)
        study = steps.run(figures)
        from video2pde.study.publish import publish

        told.stage("report", STEPS["report"])
        publish(Path(out), study)
        return study


class _Steps:
    """Carry the steps out: who computes, who is told, and the films so far."""

    def __init__(self, plan: Plan, folder: RunFolder, workforce: Workforce, events: Events) -> None:
        self.plan, self.folder, self.workforce, self.events = plan, folder, workforce, events
        self.films: tuple[FilmRun, ...] = ()

    @property
    def kept(self) -> Path:
        return self.folder.path / "stages" / "own"

    def run(self, figures: bool) -> Study:
        plan = self.plan
        self.events.stage("films", STEPS["films"])
        self.films, failed = run_films(plan, self.folder.path, self.workforce, self.events, figures)
        for name, reason in failed.items():
            self.events.warn(f"{name} is left out: {reason}")
        if len(self.films) < 2:
            raise StageError(f"{len(self.films)} of {len(plan.films)} films could be run; a study needs two")
        unit = load_run(self.films[0].folder, ("recording",)).unit
        structure = self.step("structure", self._stack)
        laws = self.step("joint", lambda: self._fit(structure))
        choice = self.step("choice", lambda: self._choose(structure, laws))
        study = Study(plan.title, unit, self.films, failed, structure, laws, choice)
        if study.chosen is None:
            return study
        comparison = self.step("comparison", lambda: compare(study.chosen, self.films, plan.conditions))
        # the choice is on disk from here on; only now may the test windows be read
        predictions = self.step("prediction", lambda: self._predict(study.chosen))
        return Study(plan.title, unit, self.films, failed, structure, laws, choice, comparison, predictions)

    def step(self, name: str, compute: Callable[[], Artefact]) -> Artefact:
        self.events.stage(name, STEPS[name])
        conditions = [[film.name, dict(film.conditions)] for film in self.films]
        key = stage_key(name, keys_of(self.films), [self.plan.settings, conditions], code=hash_code(__name__))
        done = self.folder.stage(name, key, compute)
        self.events.done(name, done.seconds, done.cached)
        return done.artefact

    def _stack(self) -> Structure:
        found = {}
        for film in self.films:
            discovery = load_run(film.folder, ("discovery",)).discovery
            assert discovery is not None
            found[film.name] = discovery
        return stack_films(found, self.plan.settings)

    def _fit(self, structure: Structure) -> dict[str, JointLaw]:
        laws = {}
        for contender in structure.contenders:
            try:
                law = fit_jointly(contender, self.films, self.kept, self.workforce, self.plan.settings, self.events)
            except StageError as error:
                self.events.warn(str(error))
                continue
            for film, reason in law.left_out.items():
                self.events.warn(f"{film} has no part in the shared fit of {contender.library}: {reason}")
            laws[contender.library] = law
        return laws

    def _forecast(self, film: FilmRun, law: JointLaw, **more: Any) -> Forecast:
        kept = own_fit_file(self.kept, film, [term.name for term in law.terms])
        return Forecast(film.name, film.folder, kept, **more)

    def _choose(self, structure: Structure, laws: Mapping[str, JointLaw]) -> Choice:
        why_not = (
            "" if structure.identifiability.law_seen else structure.identifiability.verdict.removeprefix("no law: ")
        )
        if not laws:
            return choose_shared(laws, (), self.plan.settings.selection, why_not)
        offered = {name: _written(law, law.values) for name, law in laws.items()}
        first = next(iter(laws.values()))
        tasks = [self._forecast(film, first, laws=offered, window="validation") for film in self.films]
        return choose_shared(laws, self._predicted(tasks), self.plan.settings.selection, why_not)

    def _predict(self, law: JointLaw | None) -> Predictions:
        assert law is not None
        own = {law_of(film): _written(law, fit.asked.values) for film, fit in zip(law.films, law.own, strict=True)}
        others = {film: law.without(film) for film in law.films}
        tasks = []
        for film in (film for film in self.films if film.name in others):
            laws = {SHARED: _written(law, law.values), OTHERS: _written(law, others[film.name]), **own}
            tasks.append(self._forecast(film, law, laws=laws, window="test", show=SHARED))
        found = self._predicted(tasks)
        return gather([each.film for each in found], others, found)

    def _predicted(self, tasks: Sequence[Forecast]) -> list[Predicted]:
        found = self.workforce.map(predict, tasks, lambda done, total: self.events.progress(done, total))
        for task, result in zip(tasks, found, strict=True):
            if isinstance(result, Failed):
                self.events.warn(f"{task.film} could not be predicted: {result.reason}")
        return [result for result in found if not isinstance(result, Failed)]


def _written(law: JointLaw, values: np.ndarray[Any, Any]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    return tuple(term.name for term in law.terms), tuple(float(value) for value in values)


def compare(law: JointLaw | None, films: Sequence[FilmRun], conditions: Sequence[str]) -> Comparison:
    """Ask whether the films share one law, and set its coefficients against their conditions."""
    assert law is not None
    asked = [own.asked for own in law.own]
    by_name = {film.name: film for film in films}
    pooled, trends = {}, []
    for k, term in enumerate(law.terms):
        values = np.array([film.values[k] for film in asked])
        variances = np.array([(film.half[k] / NORMAL) ** 2 for film in asked])
        pooled[term.name] = pool(values, variances)
        for name in conditions:
            given = [by_name[film.film].conditions[name] for film in asked]
            trends.append(find_trend(term.name, name, given, values, variances))
    return Comparison(judge_equality(asked), pooled, tuple(find_outliers(asked)), tuple(trends))
