"""The test of fit as ``result.json`` holds it."""

from __future__ import annotations

from typing import Any

from video2pde.fit.consistency import Part
from video2pde.fit.result import FitTest, Scale, Suspicion

MOST_SUSPECTS = 8
"""Suspects that are listed, the best explanations first."""


def describe_fit(test: FitTest) -> dict[str, Any]:
    """Return the test of the chosen law; numbers as they are, JSON's own limits are the caller's."""
    return {
        "passes": test.passes,
        "reason": test.reason,
        "unexplained": test.unexplained,
        "expected": test.expected,
        "misfit": test.misfit,
        "scales": [_scale(scale) for scale in test.scales],
        "cause": None if test.cause is None else _suspect(test.cause),
        "rival": test.rival,
        "suspects": [_suspect(suspect) for suspect in test.suspects[:MOST_SUSPECTS]],
        "consistency": {
            "agrees": all(part.agrees for part in test.consistency),
            "parts": [_part(part) for part in test.consistency],
            "lack_of_fit": dict(test.lack),
        },
    }


def _scale(scale: Scale) -> dict[str, Any]:
    return _pick(scale, "form space time count unexplained expected ratio limit worst worst_limit passes")


def _suspect(suspect: Suspicion) -> dict[str, Any]:
    first = _pick(suspect, "name law removes chance") | {
        "log10_probability": suspect.log_chance,
        "likely": suspect.probability,
    }
    found = {"coefficients": dict(suspect.coefficients)}
    return first | found | _pick(suspect, "moves material words")


def _part(part: Part) -> dict[str, Any]:
    found = {"coefficients": dict(part.coefficients), "errors": dict(part.errors)}
    return _pick(part, "group name") | found | _pick(part, "apart agrees")


def _pick(entry: object, names: str) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in names.split()}
