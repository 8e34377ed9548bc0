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
    return {
        "form": scale.form,
        "space": scale.space,
        "time": scale.time,
        "count": scale.count,
        "unexplained": scale.unexplained,
        "expected": scale.expected,
        "ratio": scale.ratio,
        "limit": scale.limit,
        "worst": scale.worst,
        "worst_limit": scale.worst_limit,
        "passes": scale.passes,
    }


def _suspect(suspect: Suspicion) -> dict[str, Any]:
    return {
        "name": suspect.name,
        "law": suspect.law,
        "removes": suspect.removes,
        "chance": suspect.chance,
        "log10_probability": suspect.log_chance,
        "coefficients": dict(suspect.coefficients),
        "moves": suspect.moves,
        "material": suspect.material,
        "words": suspect.words,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "group": part.group,
        "name": part.name,
        "coefficients": dict(part.coefficients),
        "errors": dict(part.errors),
        "apart": part.apart,
        "agrees": part.agrees,
    }
