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
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

import numpy as np

from video2pde.calibration import Calibration
from video2pde.fit import FitTest
from video2pde.html import table
from video2pde.rollout.validate import Score, Validation
from video2pde.selection.criteria import block_error, Candidate, exceeds, LEAST_SKILL, tabulate
from video2pde.selection.evidence import Evidence
from video2pde.settings import SelectionSettings
from video2pde.terms.catalogue import NAMED

Verdict = Literal["law", "approximation", "ambiguous", "no_law"]


@dataclass(frozen=True, eq=False)
class Selection:
    """The frozen choice. ``digest`` is the SHA-256 of what was chosen and why; ``tolerance`` the relative tie.

    ``tied``: the laws that cannot be told apart, the chosen one first, where the verdict is ``ambiguous``.
    """

    verdict: Verdict
    reason: str
    chosen: str | None = None
    alternatives: tuple[str, ...] = ()
    front_best: str | None = None
    candidates: tuple[Candidate, ...] = ()
    tolerance: float = 0.0
    digest: str = ""
    tied: tuple[str, ...] = ()

    def frozen(self) -> Selection:
        """Seal the choice with its digest."""
        content = {
            "verdict": self.verdict,
            "reason": self.reason,
            "chosen": self.chosen,
            "alternatives": self.alternatives,
            "candidates": [
                {
                    "library": c.library,
                    "estimates": {n: [e.value, e.low, e.high] for n, e in c.estimates.items()},
                    "rrmse": c.rrmse,
                }
                for c in self.candidates
            ],
        }
        return replace(self, digest=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())

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


def select(
    calibrations: Mapping[str, Calibration],
    validation: Validation,
    settings: SelectionSettings | None = None,
    pixel: float = 1.0,
    why_not: str = "",
    named: bool = False,
    tests: Mapping[str, FitTest] | None = None,
    searched: bool = False,
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
    searched : the laws come from a search over subsets: of those that leave no more than noise the smallest wins.

    Returns
    -------
    The choice with its reason, and the table of criteria.

    Examples
    --------
    >>> run = vp.example_run()
    >>> select(run.calibration, run.calibrated_validation).chosen
    'A'
    """
    settings = settings or SelectionSettings()
    if why_not or not calibrations:
        return Selection("no_law", why_not or "no library was left to calibrate").frozen()
    scores = {row.library: row.measured for row in validation.rows}
    evidence = Evidence(calibrations, scores, tests or {}, settings.tie, searched)
    best = min((scores[name] for name in calibrations), key=lambda score: score.full.rrmse)
    tolerance = max(settings.tie, 0.5 * block_error(best.full.mse) / max(float(best.full.mse.mean()), 1e-300))
    candidates = tabulate(calibrations, scores, validation, tolerance, pixel)
    if named and len(candidates) == 1:
        found = _judge_named(candidates[0], evidence, validation.persistence, tolerance)
    elif reason := _speaks_against_all(candidates, evidence, validation.persistence):
        found = Selection("no_law", reason, candidates=candidates, tolerance=tolerance).frozen()
    else:
        found = _choose(candidates, evidence, tolerance)
    return _weigh_fit(found, evidence.tests)


def _speaks_against_all(candidates: Sequence[Candidate], evidence: Evidence, persistence: Score) -> str:
    """Say why none of the contenders is a law; nothing where one may be."""
    forward = [c for c in candidates if c.admissible]
    if not any(c.beats_persistence for c in candidates):
        best = min(c.rrmse for c in candidates)
        return (
            "nothing beats persistence by more than its uncertainty "
            f"(persistence {persistence.full.rrmse:.2%}, best law {best:.2%}){_nearest(candidates)}"
        )
    if not forward:
        return f"only laws with backward diffusion fit, and those cannot be run forward{_nearest(candidates)}"
    if not any(evidence.usable(c) for c in forward):
        reasons = "; ".join(f"{c.library}: {evidence.why_unusable(c)}" for c in forward)
        return f"no fit of a law that predicts can be used ({reasons}){_nearest(forward)}"
    return ""


def _choose(candidates: tuple[Candidate, ...], evidence: Evidence, tolerance: float) -> Selection:
    """Take the smallest of the laws that predict about as well as the best."""
    usable = evidence.one_of_each([c for c in candidates if c.admissible and evidence.usable(c)])
    # a law that leaves no more than noise is not passed over for one that does
    passing = [c for c in usable if evidence.passes(c)]
    admissible = evidence.in_place_of_idle(passing, usable) or usable
    if evidence.searched and passing:
        # the larger ones are the luckiest of very many sets of terms: that they predict a little better says nothing
        # and of as many terms those that fit compete, though an effect be suspected beside: who fits worse hides more
        few = min(len(c.terms) for c in passing)
        admissible = [c for c in usable if evidence.fits(c) and len(c.terms) == few]
    admissible = [c for c in admissible if not evidence.leaves_more(c, admissible)]
    leader = min(admissible, key=lambda c: c.rrmse)
    near = [c for c in admissible if c.rrmse <= leader.rrmse * (1 + tolerance)]
    close = [c for c in near if not evidence.clearly_worse(c, leader)]
    smallest = min(len(c.terms) for c in close)
    rivals = sorted((c for c in close if len(c.terms) == smallest), key=lambda c: c.rrmse)
    winner = evidence.best_of_one_size(rivals)
    equal = [c.library for c in rivals if c is not winner and not evidence.told_apart(c, winner)]
    tied = (winner.library, *equal) if equal else ()
    reason = _reason(winner, candidates, tolerance, evidence)
    if small := evidence.calibrations[winner.library].enlarges:
        reason += f"; rollouts of {small} over the training window ask for the further term"
    if tied:
        reason = (
            f"{' and '.join(tied)} have {smallest} terms each and predict this recording equally well; a recording "
            "with a wider range of u and of gradients, or a longer one, would decide"
        )
    fronts = {name: score.full.front_rmse for name, score in evidence.scores.items() if not score.failure}
    return Selection(
        verdict="ambiguous" if tied else "law",
        reason=reason,
        chosen=winner.library,
        alternatives=tuple(c.library for c in sorted(candidates, key=lambda c: c.rrmse) if c is not winner),
        front_best=min(fronts, key=lambda name: fronts[name]),
        candidates=candidates,
        tolerance=tolerance,
        tied=tied,
    ).frozen()


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
    tied = found.tied or ((found.chosen,) if verdict == "ambiguous" and found.chosen else ())
    return replace(found, verdict=verdict, reason=reason, tied=tied).frozen()


def _nearest(table: Sequence[Candidate]) -> str:
    """Name the candidate with the smallest error, with its coefficients: what came nearest is worth knowing."""
    finite = [c for c in table if np.isfinite(c.rrmse)]
    if not finite:
        return ""
    best = min(finite, key=lambda c: c.rrmse)
    listed = ", ".join(f"{name} {estimate.value:.4g}" for name, estimate in best.estimates.items())
    return f"; nearest comes {best.library} ({listed}) with an error of {best.rrmse:.2%}"


def _judge_named(only: Candidate, evidence: Evidence, persistence: Score, tolerance: float) -> Selection:
    """Take the law that was named, and say what speaks against it; its coefficients are shown in any case.

    Late in a recovery little changes, and pixel by pixel noise hides that: averages over blocks decide then.
    """
    against = []
    named = "the named law" if only.library == NAMED else f"the named law, {only.library},"
    unusable, score = evidence.why_unusable(only), evidence.scores[only.library]
    if unusable:
        against.append(unusable)
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
        reason = f"{named} was fitted, but {'; '.join(against)}"
        verdict: Verdict = "law" if not unusable and only.criteria[-1].passed else "no_law"
        return Selection(verdict, reason, only.library, (), front, (only,), tolerance).frozen()
    reason = f"{named} predicts the validation window with an error of {only.rrmse:.2%}"
    if not only.beats_persistence:
        reason += (
            f", nearly all of it noise and fine detail; in averages over blocks it removes {score.coarse_skill:.0%} of "
            "the squared error of a picture that stands still"
        )
    return Selection("law", reason, only.library, (), front, (only,), tolerance).frozen()


def _reason(winner: Candidate, table: Sequence[Candidate], tolerance: float, evidence: Evidence) -> str:
    """Say how well the chosen law predicts, what comes next, and why each law that predicts better is not chosen."""
    text = f"{winner.library} predicts the validation window with an error of {winner.rrmse:.2%}"
    better = sorted((c for c in table if c.rrmse < winner.rrmse), key=lambda c: c.rrmse)
    reasons = {c: _why_passed_over(c, winner, table, evidence) for c in better}
    larger = [c for c in better if not reasons[c]]
    if larger:
        names = ", ".join(f"{c.library} ({c.rrmse:.2%})" for c in larger)
        text += f", within {tolerance:.0%} of {names}, and is the simpler law"
    told = [f"{c.library} with {c.rrmse:.2%}, which is less, but {reasons[c]}" for c in better if reasons[c]]
    rest = [c for c in table if c.library != winner.library and c not in better]
    if not told and not larger and rest:
        second = min(rest, key=lambda c: c.rrmse)
        told.append(f"{second.library} with {second.rrmse:.2%}")
    return f"{text}; next comes {'; '.join(told)}" if told else text


def _why_passed_over(better: Candidate, winner: Candidate, table: Sequence[Candidate], evidence: Evidence) -> str:
    """Say why a law with a smaller error was not chosen; an empty text: it is larger, and better within the tie."""
    if not evidence.usable(better):
        return evidence.why_unusable(better)
    if not better.admissible:
        return "it cannot be run forward or does not beat persistence"
    if evidence.passes(winner) and not evidence.passes(better):
        return f"it leaves more than noise unexplained, and {winner.library} does not"
    if small := evidence.asked_in_vain(better, table):
        return f"rollouts of {small} ask for its further term, and {small} fails without it: so may something else"
    if evidence.leaves_more(better, [c for c in table if c.admissible and evidence.usable(c)]):
        return "it leaves clearly more of the training window unexplained"
    if len(better.terms) > len(winner.terms):
        return ""
    return "not by more than its uncertainty, and it fits the training window worse"
