"""Coefficients that vary, in words: how a term is written with one, between what it varies, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from video2pde.agreement import NORMAL
from video2pde.estimate import Estimate
from video2pde.field import Grid
from video2pde.maps.maps import CoefficientMap, Over
from video2pde.terms.term import Term
from video2pde.terms.words import Words

ARGUMENTS = {"space": ("x, y", "x,y"), "time": ("t", "t")}
STEPS = 41
"""Times at which a course is told."""


def write_mapped(term: Term, words: Words, over: Over) -> Words:
    """Write a term whose coefficient varies, m being the coefficient over its mean: Δu becomes ∇·(m(x, y)∇u)."""
    text, latex = (f"m({arguments})" for arguments in ARGUMENTS[over])
    diffuses = over == "space" and all(sum(part.derivative) == 2 for part in term.parts)
    if diffuses and words.text == "Δu":
        return Words(rf"\nabla\cdot\left({latex}\,\nabla u\right)", f"∇·({text}∇u)")
    if diffuses and words.text.startswith("∇·(") and r"\cdot\left(" in words.latex:
        head, rest = words.latex.split(r"\cdot\left(", 1)
        return Words(rf"{head}\cdot\left({latex}\,{rest}", f"∇·({text} {words.text.removeprefix('∇·(')}")
    if words.text == "1":
        return Words(latex, text)
    return Words(rf"{latex}\,{words.latex}", f"{text} {words.text}")


def describe_map(each: CoefficientMap, mean: float, grid: Grid) -> str:
    """Say between what a coefficient varies where the recording says something of it, and what speaks for that."""
    low, high = told_range(each, mean, grid)
    where = "from place to place" if each.over == "space" else "with time"
    between = f"the coefficient of {each.term} varies {where} between {low:.4g} and {high:.4g}, its mean is {mean:.4g}"
    if np.isnan(each.chance):
        return between
    if each.varies:
        return f"{between} (chance of such departures from a constant: {each.chance:.1g})"
    return (
        f"the coefficient of {each.term} is constant within its errors, {mean:.4g} (chance of departures as large as "
        f"those seen: {each.chance:.2g})"
    )


def told_range(each: CoefficientMap, mean: float, grid: Grid) -> tuple[float, float]:
    """Return the lowest and the highest coefficient where the recording says something of it."""
    basis = each.basis(grid, np.linspace(*each.shape.span, STEPS))
    values, told = each.values(mean, basis), each.told(mean, basis)
    shown = values[told] if told.any() else np.array([mean])
    return float(shown.min()), float(shown.max())


def summarise_map(each: CoefficientMap, mean: Estimate, unit: str, grid: Grid) -> dict[str, Any]:
    """Return the entry of ``result.json``; a course with its 95 % band, of a map over space what sums it up."""
    low, high = told_range(each, mean.value, grid)
    basis = each.basis(grid, np.linspace(*each.shape.span, STEPS))
    values, error = each.values(mean.value, basis), each.error(mean.value, basis)
    told = each.told(mean.value, basis)
    entry: dict[str, Any] = {
        "over": each.over,
        "mean": mean.to_json(),
        "unit": unit,
        "low": low,
        "high": high,
        "error": float(np.median(error[told])) if told.any() else None,
        "told": float(told.mean()),
        "varies": each.varies,
        "chance": each.chance,
        "statistic": each.statistic,
        "freedom": each.freedom,
        "gain": each.gain,
        "splines": list(each.shape.splines),
        "ridge": each.ridge,
    }
    if each.over == "time":
        entry["course"] = {
            "times": np.linspace(*each.shape.span, STEPS).tolist(),
            "value": values.tolist(),
            "low": (values - NORMAL * error).tolist(),
            "high": (values + NORMAL * error).tolist(),
        }
    return entry
