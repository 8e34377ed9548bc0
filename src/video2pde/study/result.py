"""The result of a study: ``result.json``, and the summary in words. Nothing in it depends on who computed it."""

from __future__ import annotations

import platform
from typing import Any

from video2pde import __version__
from video2pde.files import plain_json
from video2pde.result import package_versions, VERDICTS
from video2pde.study.joint import JointLaw
from video2pde.study.order import Comparison, Study
from video2pde.study.prediction import Predictions
from video2pde.study.structure import Structure
from video2pde.study.trends import Trend
from video2pde.terms.words import coefficient_units, describe

SCHEMA = 1


def describe_study(study: Study) -> dict[str, Any]:
    """Return ``result.json`` of a study; numbers that do not exist are null."""
    choice, chosen = study.choice, study.chosen
    plain: dict[str, Any] = plain_json(
        {
            "schema": SCHEMA,
            "kind": "study",
            "title": study.title,
            "verdict": None if choice is None else choice.verdict,
            "reason": "" if choice is None else choice.reason,
            "one_law": None if study.comparison is None else not study.comparison.equality.rejected,
            "another_law": list(study.another_law),
            "films": {film.name: {"conditions": dict(film.conditions)} for film in study.films},
            "failed": dict(study.failed),
            "selected": None if chosen is None else describe_joint(chosen, study.unit),
            "alternatives": [describe_joint(law, study.unit) for law in study.laws.values() if law is not chosen],
            "structure": None if study.structure is None else _structure(study.structure),
            "choice": None
            if choice is None
            else {"digest": choice.digest, "entries": [_entry(e) for e in choice.entries]},
            "comparison": None if study.comparison is None else _comparison(study.comparison),
            "test": None if study.predictions is None else _predictions(study.predictions),
            "versions": {"video2pde": __version__, "python": platform.python_version(), **package_versions()},
        }
    )
    return plain


def describe_joint(law: JointLaw, unit: str) -> dict[str, Any]:
    """Return a shared law as ``result.json`` holds it, with what each film by itself says."""
    names = [term.name for term in law.terms]
    return {
        "library": law.library,
        "terms": {
            term.name: {**law.estimates[term.name].to_json(), "unit": coefficient_units(term, unit)}
            for term in law.terms
        },
        "equation": {"text": law.model.equation.text, "latex": law.model.equation.latex},
        "converged": law.converged,
        "rounds": law.rounds,
        "films": {
            own.asked.film: {
                name: {"value": v, "low": v - h, "high": v + h}
                for name, v, h in zip(names, own.asked.values.tolist(), own.asked.half.tolist(), strict=True)
            }
            for own in law.own
        },
        "left_out": dict(law.left_out),
    }


def _structure(structure: Structure) -> dict[str, Any]:
    return {
        "verdict": structure.identifiability.verdict,
        "libraries": {name: found.verdict for name, found in structure.identifiability.libraries.items()},
        "contenders": [
            {"library": c.library, "coefficients": dict(c.coefficients), "explained": c.explained}
            for c in structure.contenders
        ],
        "support": [
            {"film": s.film, "term": s.term, "coefficient": s.coefficient, "error": s.error, "supports": s.supports}
            for s in structure.support
        ],
    }


def _entry(entry: Any) -> dict[str, Any]:
    return {"library": entry.library, "error": entry.error, "by_film": dict(entry.by_film), "fit_passes": entry.passes}


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "equality": {"distance": found.equality.distance, "chance": found.equality.chance},
        "heterogeneity": {
            name: {
                "q": pooled.q,
                "freedom": pooled.freedom,
                "chance": pooled.chance,
                "i_squared": pooled.i_squared,
                "tau": pooled.tau.to_json(),
                "mean": pooled.mean.to_json(),
            }
            for name, pooled in found.pooled.items()
        },
        "outliers": [{"film": o.film, "distance": o.distance, "chance": o.chance} for o in found.outliers],
        "trends": [_trend(trend) for trend in found.trends],
    }


def _trend(trend: Trend) -> dict[str, Any]:
    line, power, groups = trend.line, trend.power, trend.groups
    return {
        "term": trend.term,
        "condition": trend.condition,
        "note": trend.note,
        "line": None
        if line is None
        else {"intercept": line.intercept.to_json(), "slope": line.slope.to_json(), "chance": line.chance},
        "power": None if power is None else {"factor": power.factor.to_json(), "exponent": power.exponent.to_json()},
        "groups": None
        if groups is None
        else {"means": {name: mean.to_json() for name, mean in groups.means.items()}, "chance": groups.chance},
    }


def _predictions(found: Predictions) -> dict[str, Any]:
    return {
        "leave_one_out": [
            {
                "film": entry.film,
                "law": list(entry.law),
                "rrmse_by_others": entry.by_others,
                "rrmse_by_own": entry.by_own,
                "rrmse_by_shared": entry.by_shared,
                "persistence": entry.persistence,
            }
            for entry in found.left_out
        ],
        "transfer": {"films": list(found.films), "rrmse": found.matrix.tolist()},
    }


def summarise_study(study: Study) -> str:
    """Say what a study found, for the terminal."""
    lines, law, choice = list[str](), study.chosen, study.choice
    if law is not None:
        lines += [law.model.equation.text, ""]
        for term in law.terms:
            lines.append(
                f"  {describe(term).text:<12} {law.estimates[term.name]} {coefficient_units(term, study.unit)}"
            )
        lines.append("")
    if choice is not None:
        lines.append(f"verdict: {VERDICTS[choice.verdict]}: {choice.reason}")
    if study.comparison is not None:
        lines += _compare_lines(study.comparison)
    if study.predictions is not None:
        rows = study.predictions.left_out
        worst = max(rows, key=lambda entry: entry.by_others)
        lines.append(f"left out of the fit, films are predicted to {worst.by_others:.2%} at worst ({worst.film})")
    lines += [f"warning: {film} seems to obey another law than the others" for film in study.another_law]
    lines += [f"warning: {film} is left out: {reason}" for film, reason in study.failed.items()]
    return "\n".join(lines)


def _compare_lines(found: Comparison) -> list[str]:
    equality = found.equality
    said = "no: their coefficients differ" if equality.rejected else "nothing speaks against it"
    lines = [f"one law for all? {said} (chance {equality.chance:.2g})"]
    for name, pooled in found.pooled.items():
        lines.append(
            f"  {name:<14} scatter beyond errors τ = {pooled.tau}, I² = {pooled.i_squared:.0%}; mean {pooled.mean}"
        )
    lines += [
        f"  {trend.term} against {trend.condition}: slope {trend.line.slope} (chance {trend.line.chance:.2g})"
        for trend in found.trends
        if trend.line is not None
    ]
    return lines
