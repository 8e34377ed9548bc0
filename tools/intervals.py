"""Fit the constants of the error budget on one set of films, and check the intervals on another.

Usage: python tools/intervals.py fit | check

``fit`` films known laws (tools/interval_films.py names seeds and encoders), calibrates each with the package as it is,
and finds the constants of ``calibration/budget.py`` that make intervals as narrow as they can be while one in twenty
misses. ``check`` judges the constants that stand in the package on films that share no seed, plume, law strength, noise
level or encoder setting with the first. Measurements are kept under build/intervals, so that an
interrupted run continues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from interval_films import measure_all
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from video2pde.calibration import budget
from video2pde.calibration.fit import Halves

Array = NDArray[np.float64]

NAMES = ("START_LEFT", "ZERO_LEVELS", "HELD_BACK", "HALVES_LEFT", "ENCODED")
MISSES, EDGE, PRICE = 0.05, 0.05, 2000.0
"""Share of intervals that may miss; how sharply a miss is told from a hit, in half-widths, while constants are looked
for; and the price of the square of what is missed beyond that share, against the mean logarithm of the half-width."""


def lines_of(film: dict[str, Any]) -> list[dict[str, float]]:
    """Return each coefficient's error, what is known of it, and what constants multiply, relative to the truth."""
    truth, found = np.array(film["truth"]), np.array(film["found"])
    shifts = {name: np.array(shift) for name, shift in film["shifts"].items()}
    none = np.zeros_like(truth)
    grid = shifts.get(budget.GRID, none)
    parts = {
        "error": found + shifts[budget.STATISTICS] + grid - truth,
        "known": np.linalg.norm([film["half"], budget.grid(grid, found).uncertainty, film["light"]], axis=0),
        "START_LEFT": shifts.get(budget.START, none),
        "ZERO_LEVELS": film["level"] * np.array(film["offset"]),
        "HELD_BACK": film["held_back"] * found,
        "HALVES_LEFT": Halves(np.array(film["halves"]), np.array(film["noisier"]), none).beyond_noise(
            np.array(film["std"])
        ),
        "ENCODED": found,
    }
    return [{name: abs(float(part[k] / truth[k])) for name, part in parts.items()} for k in range(len(truth))]


def half_widths(lines: Sequence[dict[str, float]], constants: Array) -> Array:
    """Return the half-width of every interval, relative to the truth."""
    known = np.array([line["known"] for line in lines])
    left = np.array([[line[name] for name in NAMES] for line in lines]) * constants
    return np.asarray(np.sqrt(known**2 + (left**2).sum(axis=1)))


def fit_constants(lines: Sequence[dict[str, float]], starts: int = 12) -> Array:
    """Find the constants that make intervals narrowest while one in twenty misses, from several starts."""
    error = np.array([line["error"] for line in lines])
    guess, rng = np.log([0.5, 0.1, 0.1, 0.5, 0.003]), np.random.default_rng(0)

    def score(logarithms: Array) -> float:
        half = half_widths(lines, np.exp(logarithms))
        missed = float(np.mean(expit((error / half - 1) / EDGE)))
        return float(np.mean(np.log(half))) + PRICE * max(0.0, missed - MISSES) ** 2

    options = {"maxiter": 3000, "xatol": 1e-3, "fatol": 1e-6}
    found = [
        minimize(score, guess + 0.7 * rng.standard_normal(len(guess)), method="Nelder-Mead", options=options)
        for _ in range(starts)
    ]
    return np.exp(min(found, key=lambda result: float(result.fun)).x)


def leave_one_out(films: Sequence[dict[str, Any]]) -> tuple[Array, Array]:
    """Judge every film by constants from the films of other encoder settings: half-widths and errors, relative."""
    groups: dict[str, list[dict[str, float]]] = {}
    for film in films:
        name = f"{film['encoder']} {film['options']}" if film["strengths"] else "presets"
        groups.setdefault(name, []).extend(lines_of(film))
    halves, errors = [], []
    for name, lines in groups.items():
        others = [line for other, more in groups.items() if other != name for line in more]
        half = half_widths(lines, fit_constants(others, starts=4))
        error = np.array([line["error"] for line in lines])
        print(f"without {name}: {len(lines)} coefficients, truth inside {np.mean(error <= half):.0%}")
        halves.append(half)
        errors.append(error)
    return np.concatenate(halves), np.concatenate(errors)


def summarise(half: Array, error: Array) -> str:
    held = error <= half
    return (
        f"{len(half)} coefficients: truth inside {held.mean():.1%} ({held.sum()}), "
        f"median half-width {np.median(half):.2%}, median error {np.median(error):.2%}"
    )


def report(films: Sequence[dict[str, Any]], constants: Array) -> str:
    """Say how many intervals hold the truth, how wide they are, and how far values are off."""
    lines = [line for film in films for line in lines_of(film)]
    half, error = half_widths(lines, constants), np.array([line["error"] for line in lines])
    return f"{len(films)} films, {summarise(half, error)}"


def usable(films: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [film for film in films if budget.STATISTICS in film.get("shifts", {})]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fit the constants of the error budget, and check the intervals.")
    parser.add_argument("what", choices=("fit", "check"))
    options = parser.parse_args()
    films = measure_all(options.what)
    good = usable(films)
    standing = np.array([getattr(budget, name) for name in NAMES])
    if options.what == "fit":
        found = fit_constants([line for film in good for line in lines_of(film)])
        for name, value, old in zip(NAMES, found, standing, strict=True):
            print(f"{name} = {value:.3g} (in the package: {old:g})")
        print(report(good, found))
        print(f"each encoder setting left out in turn: {summarise(*leave_one_out(good))}")
    print(f"in the package: {report(good, standing)}; {len(films) - len(good)} films without an interval")
    return 0


if __name__ == "__main__":
    sys.exit(main())
