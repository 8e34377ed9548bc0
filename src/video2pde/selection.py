"""Choose the law: contenders against four criteria, frozen before the test window is read.

Criteria on the validation window: error of the long rollout, front radius, centroid, sign of the diffusion.
The smallest model whose error is within the uncertainty of the best wins, so that a nested tie goes to the
simpler law. Laws of the same size that cannot be told apart make the verdict ``ambiguous``; where nothing beats
persistence by more than its uncertainty there is ``no_law``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.estimate import Estimate
from video2pde.fit import FitTest
from video2pde.html import table
from video2pde.rollout.validate import Score, Validation
from video2pde.settings import SelectionSettings
from video2pde.terms.symbol import damping, DIRECTIONS, smoothing_order

Array = NDArray[np.float64]
Verdict = Literal["law", "approximation", "ambiguous", "no_law"]

CERTAIN = 2.0
"""Standard errors by which a difference must exceed zero to count."""
LEAST_SKILL = 0.1
"""Share of persistence's squared error that a law must remove; what coding does to a still picture reaches 4 %."""
GEOMETRY = 0.5
"""Relative excess of front and centroid errors over the best contender's that still passes."""
CERTAIN_BLOCKS, BLOCK_RATIO = 3.0, 1.5
"""Standard errors, and the factor, by which a law's blocks must leave more than another's to count."""
DIFFUSION_LEVELS = 5
"""Values of u, over the range that was seen, at which a law's diffusion is looked at."""
FORWARD = "forward diffusion"
ROUNDING = 1e-12
PIXEL = 0.05
"""Front and centroid errors below this share of a pixel always pass."""


@dataclass(frozen=True)
class Criterion:
    """One entry of the table: value, the limit it must keep, whether it passes, and by what share of the limit."""

    name: str
    value: float
    limit: float
    passed: bool
    margin: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A contender in the final comparison."""

    library: str
    terms: tuple[str, ...]
    estimates: Mapping[str, Estimate]
    rrmse: float
    front_rmse: float
    centroid_rmse: float
    skill: float
    beats_persistence: bool
    criteria: tuple[Criterion, ...]

    @property
    def admissible(self) -> bool:
        return self.beats_persistence and self.criteria[-1].passed


@dataclass(frozen=True, eq=False)
class Selection:
    """The frozen choice. ``digest`` is the SHA-256 of what was chosen and why; ``tolerance`` the relative tie.

    ``tied``: the laws that cannot be told apart, the chosen one first, where the verdict is ``ambiguous``.
    """

    verdict: Verdict
    reason: str
    chosen: str | None
    alternatives: tuple[str, ...]
    front_best: str | None
    candidates: tuple[Candidate, ...]
    tolerance: float
    digest: str
    tied: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Selection({self.verdict}: {self.reason})"

    def _repr_html_(self) -> str:
        """Show the choice in a notebook: verdict, reason and the table of criteria."""
        names = [criterion.name for criterion in self.candidates[0].criteria] if self.candidates else []
        rows = [
            (
                f"{c.library}, chosen" if c.library == self.chosen else c.library,
                ", ".join(c.terms),
                *(f"{'✓' if k.passed else '✗'} {k.value:.3g}" for k in c.criteria),
                f"{c.skill:.3f}",
            )
            for c in sorted(self.candidates, key=lambda c: c.rrmse)
        ]
        shown = table(("library", "terms", *names, "skill"), rows) if rows else ""
        return f"<p><strong>{escape(self.verdict)}</strong>: {escape(self.reason)}</p>{shown}"


def block_error(series: Array) -> float:
    """Estimate the standard error of a time series' mean from blocks of √n neighbours."""
    length = max(1, round(np.sqrt(len(series))))
    count = len(series) // length
    if count < 2:
        return float(np.std(series)) if len(series) > 1 else 0.0
    means = series[: count * length].reshape(count, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(count))


def exceeds(first: Array, second: Array) -> bool:
    """Tell whether a series of errors is larger than another one, frame by frame, beyond its uncertainty.

    Compared is (e₁ − e₂)/(e₁ + e₂): errors of rollouts grow from zero, and a plain difference would take that growth
    for scatter.
    """
    e1, e2 = np.asarray(first, float), np.asarray(second, float)
    if not np.isfinite(e1).all():
        return bool(np.isfinite(e2).all())
    if not np.isfinite(e2).all():
        return False
    # where both are the same, as in the frame that both start from, nothing is compared
    there = e1 != e2
    if np.count_nonzero(there) < 2:
        return False
    relative = (e1[there] - e2[there]) / (e1[there] + e2[there])
    return bool(relative.mean() > CERTAIN * block_error(relative))


def select(
    calibrations: Mapping[str, Calibration],
    validation: Validation,
    settings: SelectionSettings | None = None,
    pixel: float = 1.0,
    why_not: str = "",
    named: bool = False,
    tests: Mapping[str, FitTest] | None = None,
) -> Selection:
    """Choose among calibrated contenders by their rollouts over the validation window.

    Parameters
    ----------
    calibrations : by library.
    validation : their rollouts, and those of further models (front-aware ones), which are compared but not chosen.
    settings : None: the defaults.
    pixel : size of a pixel, below a share of which geometric errors mean nothing.
    why_not : a reason found earlier for there being no law.
    named : the law was named by the user; there is nothing to choose, only to say whether it predicts.
    tests : of fit, by library; a law that leaves more than noise is an approximation.

    Returns
    -------
    The choice with its reason, and the table of criteria.

    Examples
    --------
    >>> run = vp.example_run()
    >>> select(run.calibration, run.calibrated_validation).chosen
    'A'
    """
    tests = tests or {}
    settings = settings or SelectionSettings()
    scores = {row.library: row.measured for row in validation.rows}
    if why_not or not calibrations:
        return _freeze("no_law", why_not or "no library was left to calibrate", None, (), None, (), 0.0)
    best = min((scores[name] for name in calibrations), key=lambda score: score.full.rrmse)
    tolerance = max(settings.tie, 0.5 * block_error(best.full.mse) / max(float(best.full.mse.mean()), 1e-300))
    table = _compare(calibrations, scores, validation, tolerance, pixel)
    if named and len(table) == 1:
        score = scores[table[0].library]
        return _weigh_fit(_judge_named(table[0], calibrations, score, validation.persistence, tolerance), tests)
    forward = [c for c in table if c.admissible]
    # a law whose fit did not converge has no interval, and is no law that anyone could use
    admissible = [c for c in forward if calibrations[c.library].fit.converged]
    if not any(c.beats_persistence for c in table):
        reason = (
            "nothing beats persistence by more than its uncertainty "
            f"(persistence {validation.persistence.full.rrmse:.2%}, best law {best.full.rrmse:.2%}){_nearest(table)}"
        )
        return _freeze("no_law", reason, None, (), None, table, tolerance)
    if forward and not admissible:
        reasons = "; ".join(f"{c.library}: {calibrations[c.library].fit.reason}" for c in forward)
        reason = f"no fit of a law that predicts has converged ({reasons}){_nearest(forward)}"
        return _freeze("no_law", reason, None, (), None, table, tolerance)
    if not admissible:
        reason = f"only laws with backward diffusion fit, and those cannot be run forward{_nearest(table)}"
        return _freeze("no_law", reason, None, (), None, table, tolerance)
    # a law that leaves no more than noise is not passed over for one that does
    admissible = [c for c in admissible if c.library in tests and tests[c.library].passes] or admissible
    admissible = [c for c in admissible if not _leaves_more(c, admissible, tests)]
    lowest = min(c.rrmse for c in admissible)
    leader = min(admissible, key=lambda c: c.rrmse)
    close = [
        c
        for c in admissible
        if c.rrmse <= lowest * (1 + tolerance) and not _clearly_worse(c, leader, calibrations, scores, settings)
    ]
    smallest = min(len(c.terms) for c in close)
    rivals = sorted((c for c in close if len(c.terms) == smallest), key=lambda c: c.rrmse)
    winner = _best_of_one_size(rivals, calibrations, scores, settings, tests)
    equal = [c for c in rivals if c is not winner and not _told_apart(c, winner, calibrations, scores, settings, tests)]
    fronts = {name: score.full.front_rmse for name, score in scores.items() if not score.failure}
    front_best = min(fronts, key=lambda name: fronts[name])
    others = tuple(c.library for c in sorted(table, key=lambda c: c.rrmse) if c.library != winner.library)
    if equal:
        tied = (winner.library, *(c.library for c in equal))
        names = " and ".join(tied)
        reason = (
            f"{names} have {smallest} terms each and predict this recording equally well; a recording with a wider "
            "range of u and of gradients, or a longer one, would decide"
        )
        found = _freeze("ambiguous", reason, winner.library, others, front_best, table, tolerance, tied)
        return _weigh_fit(found, tests)
    reason = _reason(winner, table, tolerance, calibrations)
    found = _freeze("law", reason, winner.library, others, front_best, table, tolerance)
    return _weigh_fit(found, tests)


def _weigh_fit(found: Selection, tests: Mapping[str, FitTest]) -> Selection:
    """Let a choice be called a law only if it leaves no more than noise, and nothing simpler says as much."""
    test = tests.get(found.chosen or "")
    if test is None or found.verdict == "no_law":
        return found
    if not test.passes:
        reason = f"{found.reason}; but {test.reason}"
        if test.cause is not None:
            beside = "" if test.cause.law == found.chosen else f" beside {test.cause.law}"
            reason += f". Most likely{beside}: {test.cause.words}"
        return _renamed(found, "ambiguous" if found.verdict == "ambiguous" else "approximation", reason)
    if test.rival and found.verdict == "law":
        return _renamed(found, "ambiguous", f"{found.reason}; but {test.rival}")
    return found


def _renamed(found: Selection, verdict: Verdict, reason: str) -> Selection:
    return _freeze(
        verdict,
        reason,
        found.chosen,
        found.alternatives,
        found.front_best,
        found.candidates,
        found.tolerance,
        found.tied or ((found.chosen,) if verdict == "ambiguous" and found.chosen else ()),
    )


def _leaves_more(candidate: Candidate, others: Sequence[Candidate], tests: Mapping[str, FitTest]) -> bool:
    """Tell whether another law leaves clearly less of the training window, block by block."""
    own = tests.get(candidate.library)
    rivals = [tests[c.library] for c in others if c is not candidate and c.library in tests]
    return own is not None and not own.passes and any(leaves_less(rival, own) for rival in rivals)


def leaves_less(first: FitTest, second: FitTest) -> bool:
    """Tell whether a law leaves less than another one, in blocks of space and time and beyond chance.

    Compared are squared block means in units of noise, block by block (Vuong's test of two laws): pixel errors are
    nearly all noise, and blocks are not.
    """
    if len(first.blocks) != len(second.blocks) or len(first.blocks) < 2:
        return False
    difference = second.blocks - first.blocks
    certain = CERTAIN_BLOCKS * float(difference.std(ddof=1)) / len(difference) ** 0.5
    return bool(difference.mean() > certain and second.blocks.mean() > BLOCK_RATIO * max(first.blocks.mean(), 1.0))


def _nearest(table: Sequence[Candidate]) -> str:
    """Name the candidate with the smallest error, with its coefficients: what came nearest is worth knowing."""
    finite = [c for c in table if np.isfinite(c.rrmse)]
    if not finite:
        return ""
    best = min(finite, key=lambda c: c.rrmse)
    listed = ", ".join(f"{name} {estimate.value:.4g}" for name, estimate in best.estimates.items())
    return f"; nearest comes {best.library} ({listed}) with an error of {best.rrmse:.2%}"


def _judge_named(
    only: Candidate, calibrations: Mapping[str, Calibration], score: Score, persistence: Score, tolerance: float
) -> Selection:
    """Take the law that was named, and say what speaks against it; its coefficients are shown in any case.

    Late in a recovery little changes, and pixel by pixel noise hides that: averages over blocks decide then.
    """
    against = []
    fit = calibrations[only.library].fit
    if not fit.converged:
        against.append(f"its fit did not converge ({fit.reason})")
    if not only.criteria[-1].passed:
        against.append("its diffusion is negative")
    in_blocks = score.coarse_skill > LEAST_SKILL and exceeds(persistence.full.coarse, score.full.coarse)
    if not (only.beats_persistence or in_blocks) and max(only.skill, score.coarse_skill) > LEAST_SKILL:
        against.append(
            f"the validation frames are too few to be sure that it predicts (error {only.rrmse:.2%}, of a picture that "
            f"stands still {persistence.full.rrmse:.2%})"
        )
    elif not (only.beats_persistence or in_blocks):
        against.append(
            "on the validation frames it is not better than a picture that stands still by more than its uncertainty "
            f"(errors {only.rrmse:.2%} and {persistence.full.rrmse:.2%}): little changes there, or the law is wrong"
        )
    front = only.library if np.isfinite(only.front_rmse) else None
    if against:
        reason = f"the named law, {only.library}, was fitted, but {'; '.join(against)}"
        verdict: Verdict = "law" if fit.converged and only.criteria[-1].passed else "no_law"
        return _freeze(verdict, reason, only.library, (), front, (only,), tolerance)
    reason = f"the named law, {only.library}, predicts the validation window with an error of {only.rrmse:.2%}"
    if not only.beats_persistence:
        reason += (
            f", nearly all of it noise and fine detail; in averages over blocks it removes {score.coarse_skill:.0%} of "
            "the squared error of a picture that stands still"
        )
    return _freeze("law", reason, only.library, (), front, (only,), tolerance)


def _compare(
    calibrations: Mapping[str, Calibration],
    scores: Mapping[str, Score],
    validation: Validation,
    tolerance: float,
    pixel: float,
) -> tuple[Candidate, ...]:
    chosen = {name: scores[name] for name in calibrations}
    lowest = {
        "rrmse": min(s.full.rrmse for s in chosen.values()),
        "front": min(s.full.front_rmse for s in chosen.values()),
        "centroid": min(s.full.centroid_rmse for s in chosen.values()),
    }
    limits = {
        "rrmse": lowest["rrmse"] * (1 + tolerance),
        "front": max(lowest["front"] * (1 + GEOMETRY), PIXEL * pixel),
        "centroid": max(lowest["centroid"] * (1 + GEOMETRY), PIXEL * pixel),
    }
    table = []
    frames = validation.observed_snapshots
    levels = np.linspace(float(frames.min()), float(frames.max()), DIFFUSION_LEVELS)
    for name, score in chosen.items():
        estimates = calibrations[name].estimates
        full = score.full
        criteria = (
            _below("validation rRMSE", full.rrmse, limits["rrmse"]),
            _below("front radius", full.front_rmse, limits["front"]),
            _below("centroid", full.centroid_rmse, limits["centroid"]),
            _forward(calibrations[name], levels),
        )
        beats = not score.failure and score.skill > LEAST_SKILL and exceeds(validation.persistence.full.mse, full.mse)
        table.append(
            Candidate(
                name,
                tuple(estimates),
                estimates,
                full.rrmse,
                full.front_rmse,
                full.centroid_rmse,
                score.skill,
                beats,
                criteria,
            )
        )
    return tuple(table)


def _below(name: str, value: float, limit: float) -> Criterion:
    return Criterion(name, value, limit, bool(value <= limit), float((limit - value) / limit) if limit > 0 else 0.0)


def _forward(calibration: Calibration, levels: Array) -> Criterion:
    """Check that short waves decay: the law's diffusion is nowhere negative at the levels of u that were seen.

    The terms of highest even order decide (``terms.symbol``). Each counts with the end of its interval that favours the
    law: what cannot be told from zero is not backward diffusion.
    """
    order = max((smoothing_order(term) for term in calibration.terms), default=0)
    if order == 0:
        return Criterion(FORWARD, 0.0, 0.0, True, 0.0)
    value, best = np.zeros((2, len(levels), len(DIRECTIONS)))
    for term in calibration.terms:
        estimate = calibration.estimates[term.name]
        ends = (estimate.low, estimate.high) if estimate.has_interval else (estimate.value,)
        unit = np.stack([damping(term, float(level), order) for level in levels])
        value = value + estimate.value * unit
        best = best + np.max([end * unit for end in ends], axis=0)
    least = float(value.min())
    return Criterion(FORWARD, least, 0.0, bool(best.min() >= -ROUNDING * abs(best).max()), least)


def _clearly_worse(
    candidate: Candidate,
    leader: Candidate,
    calibrations: Mapping[str, Calibration],
    scores: Mapping[str, Score],
    settings: SelectionSettings,
) -> bool:
    """Tell whether a law within the tie loses all the same: frame by frame on validation, and in training too.

    Much of a rollout's error may be noise that all laws have in common, under which a tie in per cent hides much.
    """
    predicts_worse = exceeds(scores[candidate.library].full.mse, scores[leader.library].full.mse)
    return predicts_worse and _trains_worse(candidate, leader, calibrations, settings)


def _trains_worse(
    first: Candidate, second: Candidate, calibrations: Mapping[str, Calibration], settings: SelectionSettings
) -> bool:
    """Tell whether a law fits the training window worse than another one, by more than the tie."""
    return calibrations[first.library].fit.mse > calibrations[second.library].fit.mse * (1 + settings.tie)


def _best_of_one_size(
    rivals: Sequence[Candidate],
    calibrations: Mapping[str, Calibration],
    scores: Mapping[str, Score],
    settings: SelectionSettings,
    tests: Mapping[str, FitTest],
) -> Candidate:
    """Take the law with the smallest validation error, unless training decides what validation cannot."""
    best = rivals[0]
    for rival in rivals[1:]:
        if rival.library in tests and best.library in tests:
            if leaves_less(tests[rival.library], tests[best.library]):
                best = rival
            continue
        tied = not exceeds(scores[rival.library].full.mse, scores[best.library].full.mse)
        if tied and _trains_worse(best, rival, calibrations, settings):
            best = rival
    return best


def _told_apart(
    rival: Candidate,
    winner: Candidate,
    calibrations: Mapping[str, Calibration],
    scores: Mapping[str, Score],
    settings: SelectionSettings,
    tests: Mapping[str, FitTest],
) -> bool:
    """Compare two laws of one size: frame by frame on the validation window, and by their fits to the training one."""
    if rival.library in tests and winner.library in tests and leaves_less(tests[winner.library], tests[rival.library]):
        return True
    predicts_worse = exceeds(scores[rival.library].full.mse, scores[winner.library].full.mse)
    return predicts_worse or _trains_worse(rival, winner, calibrations, settings)


def _reason(
    winner: Candidate, table: Sequence[Candidate], tolerance: float, calibrations: Mapping[str, Calibration]
) -> str:
    usable = [c for c in table if c.admissible and calibrations[c.library].fit.converged]
    bigger = [c for c in usable if c.rrmse < winner.rrmse and len(c.terms) > len(winner.terms)]
    text = f"{winner.library} predicts the validation window with an error of {winner.rrmse:.2%}"
    if bigger:
        names = ", ".join(f"{c.library} ({c.rrmse:.2%})" for c in bigger)
        return f"{text}, within {tolerance:.0%} of {names}, and is the simpler law"
    rest = [c for c in table if c.library != winner.library]
    if rest:
        second = min(rest, key=lambda c: c.rrmse)
        text += f"; next comes {second.library} with {second.rrmse:.2%}"
        if second.rrmse < winner.rrmse:
            if not calibrations[second.library].fit.converged:
                text += ", which is less, but its fit did not converge"
            elif not second.admissible:
                text += ", which is less, but it cannot be run forward or does not beat persistence"
            else:
                text += ", which is less, but not by more than its uncertainty, and it fits the training window worse"
    return text


def _freeze(
    verdict: Verdict,
    reason: str,
    chosen: str | None,
    alternatives: tuple[str, ...],
    front_best: str | None,
    table: tuple[Candidate, ...],
    tolerance: float,
    tied: tuple[str, ...] = (),
) -> Selection:
    content = {
        "verdict": verdict,
        "reason": reason,
        "chosen": chosen,
        "alternatives": alternatives,
        "candidates": [
            {
                "library": c.library,
                "estimates": {n: [e.value, e.low, e.high] for n, e in c.estimates.items()},
                "rrmse": c.rrmse,
            }
            for c in table
        ],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return Selection(verdict, reason, chosen, alternatives, front_best, table, tolerance, digest, tied)
