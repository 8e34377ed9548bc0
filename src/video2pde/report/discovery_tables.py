"""Tables of structure discovery: rows of plain values, and the sheets that show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from video2pde.discovery import Identifiability
from video2pde.discovery.search import Search
from video2pde.report.sheets import Entry, fill, LIBRARY, Sheet, TERM

Row = dict[str, Any]


def tabulate_conditioning(found: Identifiability, libraries: Sequence[str] | None = None) -> list[Row]:
    """List, by library, the condition number, the active terms, what the fit explains, and the verdict."""
    return [
        {
            "library": name,
            "terms": ", ".join(found.libraries[name].terms),
            "condition": found.libraries[name].condition,
            "active": ", ".join(found.libraries[name].fit.active),
            "explained": found.libraries[name].fit.explained,
            "robust": ", ".join(found.libraries[name].robust),
            "inseparable": "; ".join(" / ".join(pair) for pair in found.libraries[name].inseparable),
            "contender": found.libraries[name].contender,
            "verdict": found.libraries[name].verdict,
        }
        for name in (found.libraries if libraries is None else libraries)
    ]


def tabulate_stability(found: Identifiability, libraries: Sequence[str] | None = None) -> list[Row]:
    """List, by library and term, selection frequency, mean and standard deviation over random centres.

    ``mean`` and ``std`` are None where a term was never (or only once) selected.
    """
    rows: list[Row] = []
    for name in found.libraries if libraries is None else libraries:
        stability = found.libraries[name].stability
        rows.extend(
            {
                "library": name,
                "term": term,
                "frequency": stability.frequency[term],
                "mean": _number(stability.mean[term]),
                "std": _number(stability.std[term]),
                "runs": stability.runs,
            }
            for term in found.libraries[name].names
        )
    return rows


def tabulate_coefficients(found: Identifiability, libraries: Sequence[str] | None = None) -> list[Row]:
    """List, by library and term, the coefficient of the sparse fit, its standard error and its shares."""
    rows: list[Row] = []
    for name in found.libraries if libraries is None else libraries:
        fit = found.libraries[name].fit
        rows.extend(
            {
                "library": name,
                "term": term,
                "coefficient": fit.coefficients[term],
                "standard_error": fit.errors[term],
                "share": fit.shares[term],
                "unique_share": found.libraries[name].unique_shares[term],
                "active": term in fit.active,
            }
            for term in fit.names
        )
    return rows


def _number(value: float) -> float | None:
    return value if value == value else None


def list_conditioning(found: Identifiability) -> Sheet:
    """List condition number, active terms and verdict of each library."""
    entries = (
        LIBRARY,
        Entry("terms", "terms"),
        Entry("condition", "condition κ", format=".3g"),
        Entry("active", "active"),
        Entry("explained", "explained", percent=True, format=".4g"),
        Entry("contender", "goes on"),
        Entry("verdict", "verdict"),
    )
    return fill("conditioning", "Conditioning and active terms of each library.", entries, tabulate_conditioning(found))


def list_coefficients(found: Identifiability) -> Sheet:
    """List the coefficients of the sparse fits."""
    entries = (
        LIBRARY,
        TERM,
        Entry("coefficient", "coefficient"),
        Entry("standard_error", "standard error", format=".2g"),
        Entry("share", "share of the signal", percent=True, format=".3g"),
        Entry("unique_share", "lost without it", percent=True, format=".3g"),
        Entry("active", "active"),
    )
    return fill("coefficients", "Sparse weak-form fits.", entries, tabulate_coefficients(found))


def list_stability(found: Identifiability) -> Sheet:
    """List how often each term is selected over random centres, and its coefficient then."""
    entries = (
        LIBRARY,
        TERM,
        Entry("frequency", "selected in", percent=True, format=".3g"),
        Entry("mean", "mean"),
        Entry("std", "standard deviation", format=".2g"),
        Entry("runs", "runs"),
    )
    return fill("stability", "Selection over random sets of centres.", entries, tabulate_stability(found))


def list_front(found: Search) -> Sheet:
    """List the best set of terms of each size, and what is often as good."""
    entries = (
        LIBRARY,
        Entry("terms", "terms"),
        Entry("size", "number"),
        Entry("unexplained", "left", percent=True, format=".3g"),
        Entry("condition", "condition κ", format=".3g"),
        Entry("frequency", "best of its size in", percent=True, format=".3g"),
        Entry("same", "cannot be told from"),
        Entry("goes_on", "goes on"),
    )
    rows = [
        {
            "library": law.name,
            "terms": ", ".join(law.terms),
            "size": len(law.terms),
            "unexplained": law.unexplained,
            "condition": law.condition,
            "frequency": law.frequency,
            "same": "; ".join(", ".join(names) for names in law.same),
            "goes_on": law.goes_on,
        }
        for law in (*found.front, *found.others)
    ]
    return fill("search", "Front of error against number of terms.", entries, rows)


def list_set_aside(found: Search) -> Sheet:
    """List the sets of terms that leave less than the law of their size, and why they are none."""
    entries = (
        Entry("terms", "terms"),
        Entry("unexplained", "left", percent=True, format=".3g"),
        Entry("reason", "why it is no law"),
    )
    rows = [
        {"terms": ", ".join(each.terms), "unexplained": each.unexplained, "reason": each.reason}
        for each in found.set_aside
    ]
    return fill("search-set-aside", "Sets of terms that leave less, and are no law.", entries, rows)
