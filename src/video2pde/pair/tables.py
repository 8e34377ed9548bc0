"""Tables of a run of two fields."""

from __future__ import annotations

from video2pde.pair.record import PairRun
from video2pde.report.sheets import Entry, fill, RRMSE, Sheet
from video2pde.terms.pairs import FIELDS, get_pair_term
from video2pde.terms.words import coefficient_units, describe

FIELD, TERM, SYSTEM = Entry("field", "law of"), Entry("term", "term"), Entry("system", "system")


def collect_sheets(run: PairRun) -> list[Sheet]:
    """Make every table that the run has numbers for."""
    sheets = []
    if run.discovery is not None:
        sheets.append(list_search(run))
    if run.calibration:
        sheets += [list_calibrated(run), list_budget(run)]
    if run.chosen_fit:
        sheets.append(list_fit(run))
    for name, scores in (("validation", run.validation), ("test", run.test)):
        if scores is not None:
            rows = [
                {
                    "system": s.name,
                    "u": s.rrmse[0],
                    "w": s.rrmse[1],
                    "rrmse": s.total,
                    "skill": s.skill,
                    "failure": s.failure,
                }
                for s in (*scores.laws.values(), scores.persistence)
            ]
            entries = (
                SYSTEM,
                Entry("u", "rRMSE of u", percent=True, format=".3g"),
                Entry("w", "rRMSE of w", percent=True, format=".3g"),
                RRMSE,
                Entry("skill", "skill", format=".3f"),
                Entry("failure", "failure"),
            )
            sheets.append(fill(name, f"Errors of the rollouts over the {name} frames", entries, rows))
    return sheets


def list_search(run: PairRun) -> Sheet:
    """List the best set of each size for both laws."""
    assert run.discovery is not None
    rows = [
        {
            "field": search.field,
            "size": len(found.terms),
            "terms": ", ".join(describe(get_pair_term(name)).text for name in found.terms),
            "unexplained": found.unexplained,
            "criterion": found.criterion,
            "frequency": found.frequency,
            "chosen": found.terms == search.candidates[0].terms,
        }
        for search in run.discovery.searches
        for found in search.front
    ]
    entries = (
        FIELD,
        Entry("size", "terms"),
        Entry("terms", "set"),
        Entry("unexplained", "left of the weak signal", format=".2e"),
        Entry("criterion", "criterion", format=".1f"),
        Entry("frequency", "chosen at random centres", percent=True, format=".0f"),
        Entry("chosen", "chosen"),
    )
    return fill("search", "The best set of terms of each size, for both laws", entries, rows)


def list_calibrated(run: PairRun) -> Sheet:
    """List the coefficients of every calibrated system."""
    rows = [
        {
            "system": name,
            "field": field,
            "term": describe(get_pair_term(term)).text,
            "name": term,
            "coefficient": estimate,
            "unit": coefficient_units(get_pair_term(term), run.unit),
        }
        for name, found in run.laws.items()
        for field in FIELDS
        for term, estimate in found.estimates[field].items()
    ]
    entries = (SYSTEM, FIELD, TERM, Entry("name", "name"), Entry("coefficient", "coefficient"), Entry("unit", "unit"))
    return fill("coefficients", "Coefficients of both laws with 95 % intervals", entries, rows)


def list_budget(run: PairRun) -> Sheet:
    """List what each coefficient's interval is made of."""
    rows = [
        {
            "system": name,
            "field": field,
            "term": describe(get_pair_term(term)).text,
            "source": line.name,
            "shift": float(line.shift[place]),
            "uncertainty": float(line.uncertainty[place]),
        }
        for name, found in run.laws.items()
        for place, (field, term) in enumerate(found.law.keys)
        for line in found.budget
    ]
    entries = (
        SYSTEM,
        FIELD,
        TERM,
        Entry("source", "source"),
        Entry("shift", "shift", format=".2g"),
        Entry("uncertainty", "half-width", format=".2g"),
    )
    return fill("budget", "Error budget: what was corrected, and what stays uncertain", entries, rows)


def list_fit(run: PairRun) -> Sheet:
    """List the test of fit of the chosen system, with suspects."""
    rows = [
        {
            "field": test.field,
            "unexplained": test.unexplained,
            "expected": test.expected,
            "limit": test.limit,
            "passes": test.passes,
            "suspects": "; ".join(suspect.words for suspect in test.suspects) or "none",
        }
        for test in run.chosen_fit
    ]
    entries = (
        FIELD,
        Entry("unexplained", "left of the weak signal", format=".2e"),
        Entry("expected", "noise leaves", format=".2e"),
        Entry("limit", "limit", format=".2e"),
        Entry("passes", "test"),
        Entry("suspects", "suspects"),
    )
    return fill("fit", "Test of fit: what both laws leave, against what noise leaves", entries, rows)
