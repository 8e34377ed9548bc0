"""Tables of the test of fit: every scale, every suspect, and the law in parts of the window."""

from __future__ import annotations

from video2pde.fit import FitTest
from video2pde.report.document import Check
from video2pde.report.sheets import Entry, fill, Sheet

NAMES = ("fit", "suspects", "consistency")


def list_scales(test: FitTest, unit: str) -> Sheet:
    """List what the law leaves at every scale, against what chance allows."""
    rows = [
        {
            "form": "rate of change" if scale.form == "weak" else "rollout",
            "space": scale.space,
            "time": scale.time,
            "count": scale.count,
            "ratio": scale.ratio,
            "limit": scale.limit,
            "worst": scale.worst,
            "worst_limit": scale.worst_limit,
            "passes": Check(scale.passes, "within" if scale.passes else "beyond"),
        }
        for scale in test.scales
    ]
    entries = (
        Entry("form", "looked at"),
        Entry("space", "averaged over", unit, ".3g"),
        Entry("time", "and over", "s", ".3g"),
        Entry("count", "places"),
        Entry("ratio", "left, in units of noise", format=".3g"),
        Entry("limit", "chance: up to", format=".3g"),
        Entry("worst", "worst place, in σ", format=".3g"),
        Entry("worst_limit", "chance: up to", format=".3g"),
        Entry("passes", "noise alone?"),
    )
    return fill("fit", "What the law leaves, squared, in units of what noise leaves.", entries, rows)


def list_suspects(test: FitTest, most: int | None = None) -> Sheet:
    """List the suspects, the best explanation first: what each would take away, and what becomes of the law."""
    rows = [
        {
            "suspect": suspect.name,
            "removes": suspect.removes,
            "chance": suspect.chance,
            "log_chance": suspect.log_chance,
            "moves": suspect.moves,
            "likely": suspect.probability,
            "coefficients": ", ".join(f"{term} {value:.4g}" for term, value in suspect.coefficients.items()),
            "words": suspect.words,
        }
        for suspect in test.suspects[:most]
    ]
    entries = (
        Entry("suspect", "suspect"),
        Entry("removes", "takes away", percent=True, format=".3g"),
        Entry("chance", "by chance", percent=True, format=".3g"),
        Entry("log_chance", "log₁₀ probability", format=".3g"),
        Entry("moves", "moves a coefficient, in half-widths", format=".2g"),
        Entry("likely", "likely to be there", percent=True, format=".2g"),
        Entry("coefficients", "the law with it"),
        Entry("words", "in words"),
    )
    return fill("suspects", "What each effect would take away of what the law leaves.", entries, rows)


def list_parts(test: FitTest) -> Sheet:
    """List the law's coefficients in every part of the window."""
    rows = [
        {
            "part": part.name,
            "term": term,
            "value": value,
            "error": part.errors[term],
            "apart": part.apart,
            "agrees": Check(part.agrees, "yes" if part.agrees else "no"),
        }
        for part in test.consistency
        for term, value in part.coefficients.items()
    ]
    entries = (
        Entry("part", "part"),
        Entry("term", "term"),
        Entry("value", "coefficient"),
        Entry("error", "standard error", format=".2g"),
        Entry("apart", "from the whole, in standard errors", format=".2g"),
        Entry("agrees", "agrees"),
    )
    return fill("consistency", "The law fitted to parts of the window, in weak form.", entries, rows)
