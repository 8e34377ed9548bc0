"""Every table of a study, as sheets made from what it found."""

from __future__ import annotations

from typing import Any

from video2pde.estimate import Estimate
from video2pde.report.sheets import Entry, fill, Sheet, TERM
from video2pde.study.joint import JointLaw
from video2pde.study.order import Comparison, Study
from video2pde.study.prediction import Predictions
from video2pde.study.structure import Structure

FILM = Entry("film", "film")
NAMES = (
    "films",
    "coefficients",
    "support",
    "contenders",
    "heterogeneity",
    "outliers",
    "conditions",
    "leave-one-out",
    "transfer",
)


def collect_tables(study: Study) -> list[Sheet]:
    """Make every table that the study has numbers for."""
    sheets = [list_films(study)]
    if study.structure is not None:
        sheets.append(list_support(study.structure))
    if study.choice is not None and study.choice.entries:
        sheets.append(list_entries(study))
    if study.chosen is not None:
        sheets.append(list_coefficients(study.chosen))
    if study.comparison is not None:
        sheets += [list_heterogeneity(study.comparison), list_outliers(study.comparison)]
        if study.comparison.trends:
            sheets.append(list_trends(study.comparison))
    if study.predictions is not None:
        sheets += [list_left_out(study.predictions), list_transfer(study.predictions)]
    return sheets


def list_films(study: Study) -> Sheet:
    conditions = list(dict.fromkeys(name for film in study.films for name in film.conditions))
    entries = [FILM, *(Entry(name, name) for name in conditions), Entry("state", "state")]
    rows: list[dict[str, Any]] = [{"film": f.name, **f.conditions, "state": "done"} for f in study.films]
    rows += [{"film": name, "state": reason} for name, reason in study.failed.items()]
    return fill("films", "The films, their conditions, and what became of them.", entries, rows)


def list_support(structure: Structure) -> Sheet:
    entries = (
        FILM,
        TERM,
        Entry("coefficient", "weak coefficient"),
        Entry("error", "standard error"),
        Entry("significance", "standard errors from zero", format=".3g"),
        Entry("supports", "supports it"),
    )
    rows = [
        {"film": s.film, "term": s.term, "coefficient": s.coefficient, "error": s.error}
        | {"significance": s.significance, "supports": s.supports}
        for s in structure.support
    ]
    return fill("support", "Who supports which term, in the weak form of each film by itself.", entries, rows)


def list_entries(study: Study) -> Sheet:
    assert study.choice is not None
    entries = (
        Entry("library", "library"),
        Entry("terms", "terms"),
        Entry("error", "error over that of standing still", percent=True, format=".3g"),
        Entry("passes", "films that pass the test of fit"),
        Entry("chosen", "chosen"),
    )
    rows = [
        {"library": e.library, "terms": ", ".join(e.terms), "error": e.error}
        | {"passes": f"{e.passes} of {e.tested}", "chosen": e.library == study.choice.chosen}
        for e in study.choice.entries
    ]
    return fill("contenders", "Shared laws, by their rollouts over the validation windows of all films.", entries, rows)


def list_coefficients(law: JointLaw) -> Sheet:
    rows = []
    for k, term in enumerate(law.terms):
        for own in law.own:
            value, half = float(own.asked.values[k]), float(own.asked.half[k])
            rows.append(
                {"term": term.name, "film": own.asked.film, "estimate": Estimate(value, value - half, value + half)}
            )
        rows.append({"term": term.name, "film": "all together", "estimate": law.estimates[term.name]})
    entries = (TERM, FILM, Entry("estimate", "coefficient, 95 % interval"))
    return fill("coefficients", "Each film's own coefficients, and those of the shared law.", entries, rows)


def list_heterogeneity(found: Comparison) -> Sheet:
    entries = (
        TERM,
        Entry("mean", "random-effects mean"),
        Entry("tau", "τ, between films"),
        Entry("i_squared", "I²", percent=True, format=".3g"),
        Entry("q", "Q"),
        Entry("freedom", "degrees of freedom"),
        Entry("chance", "chance", format=".2g"),
    )
    rows = [
        {
            "term": name,
            "mean": p.mean,
            "tau": p.tau,
            "i_squared": p.i_squared,
            "q": p.q,
            "freedom": p.freedom,
            "chance": p.chance,
        }
        for name, p in found.pooled.items()
    ]
    return fill("heterogeneity", "How the films' coefficients scatter beyond their errors.", entries, rows)


def list_outliers(found: Comparison) -> Sheet:
    entries = (
        FILM,
        Entry("distance", "distance in errors", format=".3g"),
        Entry("chance", "chance", format=".2g"),
        Entry("agrees", "agrees with the others"),
    )
    rows = [
        {"film": o.film, "distance": o.distance, "chance": o.chance, "agrees": not o.stands_out} for o in found.outliers
    ]
    return fill("outliers", "Each film's coefficients against those of all others.", entries, rows)


def list_trends(found: Comparison) -> Sheet:
    entries = (
        TERM,
        Entry("condition", "condition"),
        Entry("kind", "form"),
        Entry("parameter", "number"),
        Entry("estimate", "value, 95 % interval"),
        Entry("chance", "chance of none", format=".2g"),
    )
    rows: list[dict[str, Any]] = []
    for trend in found.trends:
        common = {"term": trend.term, "condition": trend.condition}
        if trend.line is not None:
            rows.append(
                {
                    **common,
                    "kind": "line",
                    "parameter": "slope",
                    "estimate": trend.line.slope,
                    "chance": trend.line.chance,
                }
            )
            rows.append({**common, "kind": "line", "parameter": "at zero", "estimate": trend.line.intercept})
        if trend.power is not None:
            rows.append({**common, "kind": "power law", "parameter": "exponent", "estimate": trend.power.exponent})
            rows.append({**common, "kind": "power law", "parameter": "factor", "estimate": trend.power.factor})
        if trend.groups is not None:
            means = [{**common, "kind": "groups", "parameter": n, "estimate": m} for n, m in trend.groups.means.items()]
            rows += [{**means[0], "chance": trend.groups.chance}, *means[1:]]
        if trend.note:
            rows.append({**common, "kind": trend.note})
    return fill("conditions", "Coefficients against the films' conditions.", entries, rows)


def list_left_out(found: Predictions) -> Sheet:
    error = {"percent": True, "format": ".3g"}
    entries = (
        FILM,
        Entry("by_others", "error under the law of the others", **error),  # type: ignore[arg-type]
        Entry("by_own", "under its own law", **error),  # type: ignore[arg-type]
        Entry("by_shared", "under the shared law", **error),  # type: ignore[arg-type]
        Entry("persistence", "nothing changes", **error),  # type: ignore[arg-type]
    )
    rows = [
        {
            "film": e.film,
            "by_others": e.by_others,
            "by_own": e.by_own,
            "by_shared": e.by_shared,
            "persistence": e.persistence,
        }
        for e in found.left_out
    ]
    return fill("leave-one-out", "Relative error on each film's test window.", entries, rows)


def list_transfer(found: Predictions) -> Sheet:
    entries = (Entry("law_of", "law of"), Entry("on", "on"), Entry("rrmse", "rRMSE", percent=True, format=".3g"))
    rows = [
        {"law_of": law, "on": film, "rrmse": float(found.matrix[i, j])}
        for i, law in enumerate(found.films)
        for j, film in enumerate(found.films)
    ]
    return fill("transfer", "Each film's own law on the test window of every film.", entries, rows)
