"""Joint calibration: the law shared by all films; drift, flow and initial frame each film's own.

Every film answers for itself: at a given law its own unknowns are fitted, and eliminated from its normal equations.
What is left, over the variance of its noise, adds up over films::

    H_f = (J_cᵀJ_c − J_cᵀJ_o (J_oᵀJ_o)⁻¹ J_oᵀJ_c) / σ_f²,      (Σ_f H_f) δc = −Σ_f g_f

so the parallel work is a film's, and a step of the law takes one answer from each. Replicates are each film's own, too:
to first order a change of film f moves the shared law by W_f = (ΣH)⁻¹ H_f times what it moves the film's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.rollout.model import Model
from video2pde.runs.events import Events
from video2pde.settings import Settings
from video2pde.study.films import FilmRun
from video2pde.study.own import Answer, answer, keep_own_fit, OwnFit, Question
from video2pde.study.structure import find_terms, JointContender
from video2pde.tasks import Failed, Workforce
from video2pde.terms import Term

Array = NDArray[np.float64]

ROUNDS, SETTLED = 8, 0.05
"""Most rounds of the shared law, and its change, in units of its error, below which it has settled."""
JOINT_DRAWS = 500
"""Replicates of the shared law."""


@dataclass(frozen=True, eq=False)
class JointLaw:
    """A law calibrated on all films together.

    ``estimates`` by term; ``point`` (K,): the plain fit where the films' ``answers`` were asked for, within a last step
    of the solution; ``draws`` (B, K): replicates of the shared law around zero; ``own``: what each film by itself says.
    """

    library: str
    terms: tuple[Term, ...]
    estimates: Mapping[str, Estimate]
    point: Array
    draws: Array
    own: tuple[OwnFit, ...]
    answers: tuple[Answer, ...]
    rounds: int
    converged: bool
    left_out: Mapping[str, str]

    @property
    def films(self) -> tuple[str, ...]:
        return tuple(answer.film for answer in self.answers)

    @property
    def values(self) -> Array:
        return np.array([self.estimates[term.name].value for term in self.terms])

    @property
    def model(self) -> Model:
        return Model(self.terms, tuple(self.values.tolist()))

    @property
    def failing(self) -> tuple[str, ...]:
        """Films that fail the test of fit with this law, where most pass it."""
        tested = {own.asked.film: own.passes for own in self.own if own.passes is not None}
        failing = tuple(film for film, passes in tested.items() if not passes)
        return failing if 2 * len(failing) < len(tested) else ()

    def without(self, film: str) -> Array:
        """Return the law (K,) that the other films ask for."""
        kept = [k for k, name in enumerate(self.films) if name != film]
        return solve_jointly(self.point, [self.answers[k] for k in kept], [self.own[k].shift for k in kept])


@dataclass(eq=False)
class Panel:
    """The films that are asked for one law, and who carries the questions; one that fails is left out from then on."""

    contender: JointContender
    asked: list[Question]
    workforce: Workforce
    left_out: dict[str, str] = field(default_factory=dict)

    def ask(self, function: Callable[[Question], Any], law: Array) -> list[Any]:
        """Put a question to every film; return what came back."""
        results = self.workforce.map(function, [replace(question, law=law) for question in self.asked])
        pairs = list(zip(self.asked, results, strict=True))
        self.left_out |= {question.film: r.reason for question, r in pairs if isinstance(r, Failed)}
        self.asked = [question for question, r in pairs if not isinstance(r, Failed)]
        if len(self.asked) < 2:
            reasons = "; ".join(f"{film}: {reason}" for film, reason in self.left_out.items())
            raise StageError(f"{self.contender.library} cannot be fitted to the films together ({reasons})")
        return [result for result in results if not isinstance(result, Failed)]


def own_fit_file(kept: Path, film: FilmRun, terms: Sequence[str]) -> str:
    """Name the file that keeps a film's own fit of a law."""
    return str((kept / f"{film.key[:16]}-{'+'.join(terms)}.npz").resolve())


def fit_jointly(
    contender: JointContender,
    films: Sequence[FilmRun],
    kept: Path,
    workforce: Workforce,
    settings: Settings,
    events: Events,
) -> JointLaw:
    """Calibrate a law on all films together; films that cannot answer are left out, with the reason.

    Parameters
    ----------
    contender : the law.
    films : their runs.
    kept : folder in which each film's own fit of the law is kept.
    workforce : who computes.
    settings : the study's.
    """
    kept.mkdir(parents=True, exist_ok=True)
    terms = contender.terms
    law = np.array([contender.coefficients[name] for name in terms])
    files = {film.name: own_fit_file(kept, film, terms) for film in films}
    panel = Panel(contender, [Question(f.name, f.folder, files[f.name], terms, law) for f in films], workforce)
    events.progress(0, None, f"{contender.library}: each film by itself")
    own = {fit.asked.film: fit for fit in panel.ask(keep_own_fit, law)}
    law, step, rounds, answers = _weighted_mean(list(own.values())), np.inf, 0, list[Answer]()
    point = law
    while rounds < ROUNDS and step >= SETTLED:
        rounds += 1
        events.progress(rounds, ROUNDS, f"{contender.library}: round {rounds} of the shared law")
        point, answers = law, weigh(panel.ask(answer, law), own)
        law = solve_jointly(point, answers)
        step = float(np.max(np.abs(law - point) / _error(answers)))
    fits = tuple(own[each.film] for each in answers)
    return JointLaw(
        library=contender.library,
        terms=find_terms(terms, settings),
        estimates=dict(zip(terms, _estimate(point, answers, fits), strict=True)),
        point=point,
        draws=_replicates(answers, fits, settings.calibration.seed),
        own=fits,
        answers=tuple(answers),
        rounds=rounds,
        converged=step < SETTLED,
        left_out=panel.left_out,
    )


def weigh(answers: Sequence[Answer], own: Mapping[str, OwnFit]) -> list[Answer]:
    """Give each film the weight of its own interval, which holds more than the noise that its curvature is over.

    A film with little noise beside much lack of fit knows no more than others. The shape of its curvature stays; its
    size becomes that of 1/variance by the intervals, in the geometric mean over the coefficients.
    """
    weighted = []
    for each in answers:
        white = _middle(np.diag(np.linalg.inv(each.curvature)))
        factor = white / _middle((own[each.film].asked.half / NORMAL) ** 2)
        weighted.append(replace(each, curvature=factor * each.curvature, slope=factor * each.slope))
    return weighted


def _middle(variances: Array) -> float:
    """Return the geometric mean of the coefficients' variances, whatever their units."""
    return float(np.exp(np.mean(np.log(variances))))


def _weighted_mean(own: Sequence[OwnFit]) -> Array:
    """Return the mean of the films' own laws, weighted by what each knows."""
    precision = np.stack([np.linalg.inv(fit.asked.covariance) for fit in own])
    right = sum((p @ fit.asked.values for p, fit in zip(precision, own, strict=True)), np.zeros(len(precision[0])))
    return np.asarray(np.linalg.solve(precision.sum(axis=0), right))


def _error(answers: Sequence[Answer]) -> Array:
    """Return the error (K,) of the shared law by the films' weighted curvatures, about what its interval says."""
    total = sum((each.curvature for each in answers), np.zeros_like(answers[0].curvature))
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(total))))


def solve_jointly(point: Array, answers: Sequence[Answer], shifts: Sequence[Array] | None = None) -> Array:
    """Return the law (K,) that films ask for together, one step from ``point``; ``shifts``: each film's corrections."""
    total = sum((each.curvature for each in answers), np.zeros((len(point), len(point))))
    right = -sum((each.slope for each in answers), np.zeros(len(point)))
    for each, shift in zip(answers, shifts or (), strict=shifts is not None):
        right = right + each.curvature @ shift
    return point + np.asarray(np.linalg.solve(total, right))


def joint_weights(answers: Sequence[Answer]) -> Array:
    """Return W_f = (ΣH)⁻¹ H_f, (n, K, K): how the shared law follows what film f asks for."""
    curvature = np.stack([each.curvature for each in answers])
    return np.asarray(np.linalg.solve(curvature.sum(axis=0)[None], curvature))


def _estimate(point: Array, answers: Sequence[Answer], own: Sequence[OwnFit]) -> list[Estimate]:
    """Return the shared coefficients with their intervals: errors of films are independent, but for the common ones."""
    values = solve_jointly(point, answers, [fit.shift for fit in own])
    weights = joint_weights(answers)
    squares = np.zeros(len(point))
    for weight, fit in zip(weights, own, strict=True):
        alone = np.sqrt(np.maximum(fit.asked.half**2 - (fit.common**2).sum(axis=0), 0.0))
        covariance = replace(fit.asked, half=alone).covariance * NORMAL**2
        squares += np.diag(weight @ covariance @ weight.T)
    common = sum(
        (fit.common @ np.abs(weight).T for weight, fit in zip(weights, own, strict=True)), np.zeros_like(own[0].common)
    )
    half = np.sqrt(squares + (common**2).sum(axis=0))
    return [Estimate(float(v), float(v - h), float(v + h)) for v, h in zip(values, half, strict=True)]


def _replicates(answers: Sequence[Answer], own: Sequence[OwnFit], seed: int) -> Array:
    """Combine the films' replicates into those of the shared law, (B, K), around zero."""
    rng = np.random.default_rng([seed, 22])
    total = np.zeros((JOINT_DRAWS, len(answers[0].slope)))
    for weight, fit in zip(joint_weights(answers), own, strict=True):
        total += fit.asked.draw(JOINT_DRAWS, rng) @ weight.T
    return total
