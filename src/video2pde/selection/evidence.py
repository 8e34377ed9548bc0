"""Whether one contender is better than another beyond chance: on validation frames, in training, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from video2pde.calibration import Calibration
from video2pde.fit import FitTest
from video2pde.rollout.validate import Score
from video2pde.selection.criteria import Candidate, exceeds

CERTAIN_BLOCKS, BLOCK_RATIO = 3.0, 1.5
"""Standard errors, and the factor, by which a law's blocks must leave more than another's to count."""


FAR = 4.0
"""How many times what chance may leave a law leaves that fails by far: a film's own faults were seen to reach three."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the contenders, by library: fits, rollouts over the validation window, tests of fit.

    ``tie``: relative difference of training errors below which two laws fit equally well; ``searched``: the laws come
    from a search over sets of terms, where several of very many say nearly the same.
    """

    calibrations: Mapping[str, Calibration]
    scores: Mapping[str, Score]
    tests: Mapping[str, FitTest]
    tie: float
    searched: bool = False

    def usable(self, candidate: Candidate) -> bool:
        """Tell whether anyone could use a law: its fit converged, and its coefficients have intervals."""
        return not self.why_unusable(candidate)

    def why_unusable(self, candidate: Candidate) -> str:
        """Say why a law cannot be chosen; an empty text: it can. Without any bootstrap no law has intervals."""
        calibration = self.calibrations[candidate.library]
        if not calibration.fit.converged:
            return f"its fit did not converge ({calibration.fit.reason})"
        known = all(estimate.has_interval for estimate in calibration.estimates.values())
        if calibration.bootstrap is not None and not known:
            return "too few replicates of its bootstrap converged for an interval"
        return ""

    def passes(self, candidate: Candidate) -> bool:
        """Tell whether a law was tested and leaves no more than noise."""
        return candidate.library in self.tests and self.tests[candidate.library].passes

    def fits(self, candidate: Candidate) -> bool:
        """Tell whether a law leaves no more than noise at any scale, though an effect beside it may be suspected."""
        test = self.tests.get(candidate.library)
        return test is not None and (test.passes or (bool(test.scales) and all(scale.passes for scale in test.scales)))

    def one_of_each(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Leave one of a law and the law with the term that its rollouts asked for, where both are candidates."""
        known = {c.library: c for c in candidates}
        out = set[str]()
        for larger in candidates:
            small = known.get(self.calibrations[larger.library].enlarges)
            if small is not None:
                out.add(small.library if self.takes_over(larger, small) else larger.library)
        return [c for c in candidates if c.library not in out]

    def takes_over(self, larger: Candidate, small: Candidate) -> bool:
        """Tell whether a law with one more term takes the place of the one whose rollouts asked for it.

        It must leave no more than noise, know the term's sign, and predict the validation window better. The smaller
        one must fit as well: what a film has beside its law (light, flow, a source) asks for terms, too. Or it fails by
        far, and the new term stands in the place of one of its own, so that the law has grown by nothing.
        """
        more = set(larger.terms) - set(small.terms)
        sure = all(larger.estimates[name].low * larger.estimates[name].high > 0 for name in more)
        instead = len(larger.terms) <= len(small.terms) and self._fails_by_far(small)
        fits = instead or self.fits(small)
        return sure and fits and self.passes(larger) and self.predicts_worse(small, larger)

    def asked_in_vain(self, larger: Candidate, candidates: Sequence[Candidate]) -> str:
        """Name the law that fails and whose rollouts asked for a law's further term without its taking that place."""
        usable = {c.library: c for c in candidates if c.admissible and self.usable(c)}
        small = usable.get(self.calibrations[larger.library].enlarges)
        if small is None or small.library not in self.tests or self.fits(small) or self.takes_over(larger, small):
            return ""
        return small.library

    def _fails_by_far(self, candidate: Candidate) -> bool:
        """Tell whether a law leaves many times what noise may leave at some scale."""
        test = self.tests.get(candidate.library)
        return test is not None and test.worst is not None and test.worst.excess > FAR

    def in_place_of_idle(self, passing: Sequence[Candidate], usable: Sequence[Candidate]) -> list[Candidate]:
        """Put smaller laws in the place of those that pass, where the further terms of all of these say nothing.

        Such a law says no more than the smaller one, which leaves a hair more than noise may: that is to be said of it.
        """
        smaller = [[s for s in usable if self._adds_nothing(c, s)] for c in passing]
        if self.searched or not all(smaller):
            return list(passing)
        return list(dict.fromkeys(s for found in smaller for s in found))

    def _adds_nothing(self, larger: Candidate, small: Candidate) -> bool:
        """Tell whether a law is a smaller one with further terms that may be zero, or that nothing speaks for.

        What speaks for them is that the law predicts the validation window better, or leaves less of the training one.
        """
        more = set(larger.terms) - set(small.terms)
        if not more or set(small.terms) - set(larger.terms):
            return False
        if all(larger.estimates[name].low <= 0 <= larger.estimates[name].high for name in more):
            return True
        tests = [self.tests.get(c.library) for c in (larger, small)]
        less = tests[0] is not None and tests[1] is not None and leaves_less(tests[0], tests[1], clearly=False)
        return not (less or self.predicts_worse(small, larger))

    def leaves_more(self, candidate: Candidate, others: Sequence[Candidate]) -> bool:
        """Tell whether another law leaves clearly less of the training window, block by block.

        Rollouts follow what an encoder adds to a film, too, with terms that mean nothing. A law that predicts the
        validation window clearly worse, and fails further at some other scale of its test of fit, is none to be passed
        over for; nor is one of more terms that predicts that window no better.
        """
        own = self.tests.get(candidate.library)
        if own is None or own.passes:
            return False
        tested = [c for c in others if c is not candidate and c.library in self.tests]
        rivals = [c for c in tested if not (self._worse_beyond(c, candidate) or self._unearned(c, candidate))]
        return any(leaves_less(self.tests[c.library], own) for c in rivals)

    def _unearned(self, larger: Candidate, candidate: Candidate) -> bool:
        """Tell whether a law has more terms than another, fails its test as well, and predicts no better with them."""
        more = len(larger.terms) > len(candidate.terms)
        return more and not self.passes(larger) and not self.predicts_worse(candidate, larger)

    def _worse_beyond(self, first: Candidate, second: Candidate) -> bool:
        """Tell whether a law is worse than another outside the blocks: on held-out frames, and where it fails most."""
        worst = [self.tests[c.library].worst for c in (first, second)]
        if worst[0] is None or worst[1] is None or worst[0].excess <= max(worst[1].excess, 1.0):
            return False
        return first.rrmse > second.rrmse * (1 + self.tie) and self.predicts_worse(first, second)

    def predicts_worse(self, first: Candidate, second: Candidate) -> bool:
        """Tell whether a law's validation error is larger than another's, frame by frame."""
        return exceeds(self.scores[first.library].full.mse, self.scores[second.library].full.mse)

    def trains_worse(self, first: Candidate, second: Candidate) -> bool:
        """Tell whether a law fits the training window worse than another one, by more than the tie."""
        mse = {c: self.calibrations[c.library].fit.mse for c in (first, second)}
        return mse[first] > mse[second] * (1 + self.tie)

    def clearly_worse(self, candidate: Candidate, leader: Candidate) -> bool:
        """Tell whether a law within the tie loses all the same: frame by frame on validation, and in training too.

        Much of a rollout's error may be noise that all laws have in common, under which a tie in per cent hides much.
        """
        return self.predicts_worse(candidate, leader) and self.trains_worse(candidate, leader)

    def best_of_one_size(self, rivals: Sequence[Candidate]) -> Candidate:
        """Take the law with the smallest validation error, unless training decides what validation cannot."""
        best = rivals[0]
        for rival in rivals[1:]:
            if rival.library in self.tests and best.library in self.tests:
                if leaves_less(self.tests[rival.library], self.tests[best.library], clearly=not self.searched):
                    best = rival
            elif not self.predicts_worse(rival, best) and self.trains_worse(best, rival):
                best = rival
        return best

    def told_apart(self, rival: Candidate, winner: Candidate) -> bool:
        """Compare two laws of one size: by blocks, by frames of the validation window, by fits to the training one.

        Of laws that a search has found nearly alike, no window may speak for the rival.
        """
        tests = [self.tests.get(c.library) for c in (winner, rival)]
        if self.searched and self.predicts_worse(winner, rival):
            return False
        if tests[0] is not None and tests[1] is not None and leaves_less(tests[0], tests[1], clearly=not self.searched):
            return True
        return self.predicts_worse(rival, winner) or self.trains_worse(rival, winner)


def leaves_less(first: FitTest, second: FitTest, clearly: bool = True) -> bool:
    """Tell whether a law leaves less than another one, in blocks of space and time and beyond chance.

    Compared are squared block means in units of noise, block by block (Vuong's test of two laws): pixel errors are
    nearly all noise, and blocks are not. ``clearly``: the other one must leave more than noise, and half as much again.
    """
    if len(first.blocks) != len(second.blocks) or len(first.blocks) < 2:
        return False
    difference = second.blocks - first.blocks
    certain = difference.mean() > CERTAIN_BLOCKS * float(difference.std(ddof=1)) / len(difference) ** 0.5
    return bool(certain and (not clearly or second.blocks.mean() > BLOCK_RATIO * max(first.blocks.mean(), 1.0)))
