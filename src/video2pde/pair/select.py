"""The choice among calibrated systems, frozen before the test window is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.check import PairFit, widen
from video2pde.pair.discover import PairDiscovery
from video2pde.pair.evaluate import PairScore, PairScores
from video2pde.selection.choose import Verdict
from video2pde.settings import Settings
from video2pde.terms.pairs import FIELDS

LEAST_SKILL = 0.05
"""Share of persistence's squared error that a law must remove to be called one."""


@dataclass(frozen=True)
class PairSelection:
    """The frozen choice: verdict and reason, the chosen system, others that cannot be told from it, and a digest."""

    verdict: Verdict
    reason: str
    chosen: str | None = None
    alternatives: tuple[str, ...] = ()
    digest: str = ""

    def frozen(self, calibrations: Mapping[str, PairCalibration]) -> PairSelection:
        """Seal the choice with the SHA-256 of what was chosen and why."""
        chosen = None if self.chosen is None else calibrations[self.chosen]
        values = {} if chosen is None else {f: {n: e.to_json() for n, e in chosen.estimates[f].items()} for f in FIELDS}
        content = [self.verdict, self.reason, self.chosen, self.alternatives, values]
        return replace(self, digest=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())


def select_law(
    discovery: PairDiscovery,
    calibrations: Mapping[str, PairCalibration],
    fits: Mapping[str, tuple[PairFit, ...]],
    scores: PairScores,
    settings: Settings,
) -> PairSelection:
    """Choose the smallest system that leaves no more than noise, else the one that predicts best.

    Parameters
    ----------
    discovery : where the systems come from.
    calibrations, fits : calibrated systems and their tests of fit, by name.
    scores : of their rollouts over the validation window.
    settings : those of the selection.
    """
    calibrations = {name: widen(found, fits.get(name, ())) for name, found in calibrations.items()}
    able = {name: score for name, score in scores.laws.items() if _usable(calibrations[name], score)}
    if not able:
        return PairSelection("no_law", _why_none(calibrations, scores)).frozen(calibrations)
    passing = [name for name in able if all(test.passes for test in fits.get(name, ()))]
    order = sorted(passing or able, key=lambda name: (_size(calibrations[name]), able[name].total))
    if not passing:
        order = sorted(able, key=lambda name: able[name].total)
    chosen = order[0]
    found = PairSelection("law", "", chosen)
    rivals = tuple(
        name
        for name in passing
        if name != chosen
        and _size(calibrations[name]) == _size(calibrations[chosen])
        and able[name].total <= (1 + settings.selection.tie) * able[chosen].total
    )
    skill = f"it removes {able[chosen].skill:.1%} of persistence's squared error on the validation frames"
    if rivals:
        reason = f"{len(rivals) + 1} systems of as many terms fit and predict alike; {skill}"
        found = replace(found, verdict="ambiguous", reason=reason, alternatives=rivals)
    elif not passing:
        failing = [test for test in fits[chosen] if not test.passes]
        left = "; ".join(f"{t.field}_t: {t.unexplained:.2g} left where noise leaves {t.expected:.2g}" for t in failing)
        suspects = "; ".join(suspect.words for test in failing for suspect in test.suspects[:1])
        reason = f"the system leaves more than noise ({left}){'; ' + suspects if suspects else ''}; {skill}"
        found = replace(found, verdict="approximation", reason=reason)
    else:
        named = "the named system" if discovery.named else "of all sets of terms one system"
        found = replace(found, reason=f"{named} leaves no more than noise in both laws, and {skill}")
    return found.frozen(calibrations)


def _size(calibration: PairCalibration) -> int:
    return len(calibration.law.vector)


def _usable(calibration: PairCalibration, score: PairScore) -> bool:
    return not score.failure and score.skill > LEAST_SKILL and calibration.law_within().runs_forward


def _why_none(calibrations: Mapping[str, PairCalibration], scores: PairScores) -> str:
    if not calibrations:
        return "no system could be rolled out over the training window"
    best = max(scores.laws.values(), key=lambda score: score.skill)
    if best.failure:
        return f"the rollouts over the validation frames failed ({best.failure})"
    if not any(calibration.law_within().runs_forward for calibration in calibrations.values()):
        return "only laws with backward diffusion fit, and those cannot be run forward"
    return (
        "nothing beats persistence by more than its uncertainty (persistence "
        f"{scores.persistence.total:.2%}, best system {best.total:.2%})"
    )
