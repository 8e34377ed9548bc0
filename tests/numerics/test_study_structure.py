"""Weak systems of several films, stacked."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.discovery.regression import fit_library
from video2pde.discovery.testfunctions import Widths
from video2pde.discovery.weak import WeakSystem
from video2pde.settings import RegressionSettings
from video2pde.study.structure import Stack, take_out_drift

NAMES = ("u", "laplacian", "drift_x", "drift_y")


def film(seed: int, law: tuple[float, float], drift: tuple[float, float], noise: float, rows: int = 120) -> WeakSystem:
    """Make a weak system that follows a law under a drift."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(rows, 4)) * [1.0, 0.3, 5.0, 5.0]
    b = theta @ [*law, *drift] + noise * rng.normal(size=rows)
    centres = rng.integers(0, 400, size=(rows, 3))
    return WeakSystem(NAMES, theta, b, centres, Widths(3.0, 3.0, 3.0, 4.0))


def test_a_drift_of_its_own_is_taken_out_of_each_film() -> None:
    seen = [take_out_drift(film(s, (0.2, 1.5), (1.0 + s, -s), 0.0), "axes") for s in (1, 2)]
    assert seen[0].names == ("u", "laplacian")
    stacked = Stack(tuple(seen)).join(seen)
    fit = fit_library("X", ["u", "laplacian"], stacked, RegressionSettings(ridge=0.0))
    assert fit.coefficients == pytest.approx({"u": 0.2, "laplacian": 1.5}, rel=1e-6)


@pytest.mark.parametrize(("treatment", "drift"), [("scale", (1.3, 1.3)), ("fixed", (1.0, 1.0))])
def test_a_drift_that_has_less_freedom(treatment: str, drift: tuple[float, float]) -> None:
    seen = take_out_drift(film(3, (0.2, 1.5), drift, 0.0), treatment)
    found = np.linalg.lstsq(seen.theta, seen.b, rcond=None)[0]
    assert found == pytest.approx([0.2, 1.5])


def test_errors_of_films_are_independent() -> None:
    """Twice the films make errors smaller by √2, as if each film's test functions overlapped with its own alone."""
    one = take_out_drift(film(4, (0.2, 1.5), (1.0, 1.0), 0.5), "axes")
    alone = fit_library("X", one.names, one)
    both = fit_library("X", one.names, Stack((one, one)).join([one, one]))
    for name in one.names:
        assert both.errors[name] == pytest.approx(alone.errors[name] / np.sqrt(2), rel=1e-6)


def test_parts_are_drawn_from_every_film() -> None:
    films = tuple(take_out_drift(film(s, (0.2, 1.5), (1.0, 1.0), 0.1), "axes") for s in (1, 2, 3))
    drawn = Stack(films).draw(90, np.random.default_rng(0))
    assert [len(part.b) for part in drawn.films] == [30, 30, 30]
    assert [len(part.b) for part in Stack(films).draw(10_000, np.random.default_rng(0)).films] == [60, 60, 60]
