"""The choice of the shared law: by its rollouts over every film's validation window, frozen before any test window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from video2pde.selection.choose import Verdict
from video2pde.settings import SelectionSettings
from video2pde.study.joint import JointLaw
from video2pde.study.prediction import Predicted
from video2pde.terms.symbol import EMPTY_TO_FULL, is_diffusion

MOSTLY = 0.5
"""Share of the films that must fail the test of fit for the law to be called an approximation."""


@dataclass(frozen=True)
class Entry:
    """A law that could be chosen.

    ``error``: root mean square over films of its error on the validation window, in averages over blocks of the picture
    and in units of that of a picture that stands still; ``by_film``: its relative error on each, pixel by pixel;
    ``passes``: films whose test of fit it passes, of ``tested``; ``forward``: its diffusion can be run forward.
    """

    library: str
    terms: tuple[str, ...]
    error: float
    by_film: Mapping[str, float]
    passes: int
    tested: int
    forward: bool
    converged: bool

    @property
    def fits(self) -> bool:
        """Whether it passes the test of fit in most of the films that were tested."""
        return self.tested > 0 and self.passes >= MOSTLY * self.tested


@dataclass(frozen=True)
class Choice:
    """The frozen choice; ``digest`` is the SHA-256 of what was chosen and why."""

    verdict: Verdict
    reason: str
    chosen: str | None = None
    tied: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    digest: str = ""

    def frozen(self) -> Choice:
        """Seal the choice."""
        content = [self.verdict, self.reason, self.chosen, [[e.library, e.terms, e.error] for e in self.entries]]
        return replace(self, digest=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest())


def choose_shared(
    laws: Mapping[str, JointLaw], scores: Sequence[Predicted], settings: SelectionSettings, why_not: str
) -> Choice:
    """Choose the smallest of the laws that predict the films about as well as the best."""
    if not laws:
        return Choice("no_law", why_not or "no law could be fitted to the films together").frozen()
    entries = tuple(sorted((_enter(law, scores) for law in laws.values()), key=lambda entry: entry.error))
    usable = [entry for entry in entries if entry.forward and entry.converged and entry.error < 1]
    # a law that leaves no more than noise in most films is not passed over for one that does
    usable = [entry for entry in usable if entry.fits] or usable
    if not usable:
        reason = f"no shared law that can be run forward predicts better than that nothing changes ({_list(entries)})"
        return Choice("no_law", reason, entries=entries).frozen()
    near = [entry for entry in usable if entry.error <= usable[0].error * (1 + settings.tie)]
    least = min(len(entry.terms) for entry in near)
    tied = [entry for entry in near if len(entry.terms) == least]
    chosen = tied[0]
    verdict, reason = _judge(chosen, tied, usable)
    return Choice(verdict, reason, chosen.library, tuple(e.library for e in tied), entries).frozen()


def _enter(law: JointLaw, scores: Sequence[Predicted]) -> Entry:
    errors = {found.film: found.of(law.library).rrmse for found in scores}
    relative = np.array([found.of(law.library).in_blocks for found in scores])
    diffusion = [value for term, value in zip(law.terms, law.values, strict=True) if is_diffusion(term, EMPTY_TO_FULL)]
    tests = [own.passes for own in law.own if own.passes is not None]
    return Entry(
        library=law.library,
        terms=tuple(term.name for term in law.terms),
        error=float(np.sqrt(np.mean(relative**2))),
        by_film=errors,
        passes=sum(tests),
        tested=len(tests),
        forward=all(value > 0 for value in diffusion),
        converged=law.converged,
    )


def _judge(chosen: Entry, tied: Sequence[Entry], usable: Sequence[Entry]) -> tuple[Verdict, str]:
    said = (
        f"{chosen.library} leaves {chosen.error:.1%} of the error of a picture that stands still, over the films' "
        "validation windows"
    )
    if len(tied) > 1:
        return (
            "ambiguous",
            f"{said}; {', '.join(entry.library for entry in tied[1:])} predict as well with as few terms",
        )
    if chosen is not usable[0]:
        said += f"; {usable[0].library} leaves {usable[0].error:.1%}, which its further terms are not worth"
    if chosen.tested and not chosen.fits:
        return (
            "approximation",
            f"{said}; {chosen.tested - chosen.passes} of {chosen.tested} films show more than noise beside it",
        )
    return "law", said


def _list(entries: Sequence[Entry]) -> str:
    return ", ".join(f"{entry.library} {entry.error:.1%}" for entry in entries)
