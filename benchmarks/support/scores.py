"""The measures of weak-form discovery: how far the coefficients are off, and whether the terms are the right ones."""

from __future__ import annotations

from collections.abc import Mapping

NOT_ACTIVE = 1e-12
"""A coefficient up to this size counts as dropped."""


def active_terms(coefficients: Mapping[str, float]) -> set[str]:
    """Name the terms whose coefficient is not zero."""
    return {name for name, value in coefficients.items() if abs(value) > NOT_ACTIVE}


def largest_error(found: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """Return E∞ = max_j |ξ_j − ξ*_j| / |ξ*_j| over the true terms; a term that was dropped is off by 1."""
    true = active_terms(truth)
    if not true:
        raise ValueError("E∞ needs a true term: give a law with a coefficient that is not zero")
    return max(abs(found.get(name, 0.0) - truth[name]) / abs(truth[name]) for name in true)


def positivity_ratio(found: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """Return TPR = TP/(TP + FN + FP): 1 where exactly the true terms are active."""
    selected, true = active_terms(found), active_terms(truth)
    return len(selected & true) / len(selected | true) if selected | true else 1.0


def same_structure(found: Mapping[str, float], truth: Mapping[str, float]) -> bool:
    """Tell whether exactly the true terms are active."""
    return active_terms(found) == active_terms(truth)
