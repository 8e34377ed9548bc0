"""Two fields whose fronts are narrower than a cell, and whose reactions multiply what a fit changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.field import Grid
from video2pde.field.cells import deconvolve_cells
from video2pde.pair import calibrate, kernels, problem
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.problem import evaluate, PairProblem
from video2pde.pair.rollout import roll_out, Scene
from video2pde.recording.synth import sample_system
from video2pde.recording.synth.systems import gray_scott
from video2pde.settings import load_settings, RolloutSettings

Array = NDArray[np.float64]
SIDE, CELLS, FRAMES = 80.0, 32, 36
SETTINGS = load_settings(overrides={"run.workers": 1})


def two_spots(y: Array, x: Array, _: np.random.Generator) -> tuple[Array, Array]:
    """Begin Gray–Scott in two unequal spots, as a camera shows it."""
    spots = np.exp(-((y - 6) ** 2 + (x + 12) ** 2) / 130) + 0.8 * np.exp(-((y + 14) ** 2 + (x - 10) ** 2) / 90)
    return 0.85 * (1 - 0.5 * spots), 2 * 0.3 * spots


SYSTEM = replace(gray_scott(), start=two_spots, side=SIDE, duration=6.0 * (FRAMES - 1), step=1.0)
LAW = PairLaw.of(SYSTEM.u, SYSTEM.w)


@pytest.fixture(scope="module")
def exact() -> Pair:
    times = np.linspace(0, SYSTEM.duration, FRAMES)
    fields = np.stack(list(sample_system(SYSTEM, (CELLS, CELLS), times)), axis=1)
    return Pair.of(fields, times, Grid(CELLS, CELLS, SIDE, SIDE))


@pytest.fixture
def coarse_differences(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Differences of fourth order."""
    monkeypatch.setattr(kernels, "ACCURACY", 4)
    kernels.compile_pair.cache_clear()
    yield
    kernels.compile_pair.cache_clear()


def departure(exact: Pair) -> float:
    """Return how far the true law ends from the truth, rolled out from the exact start, both fields together."""
    points = np.stack([deconvolve_cells(part.values) for part in exact.fields])
    found = roll_out(LAW, points[:, 0].astype(float), exact.times, Scene(exact.grid, RolloutSettings())).values
    return float(np.sqrt(np.mean((found[:, -1] - points[:, -1]) ** 2)))


def test_narrow_fronts_keep_their_place(exact: Pair) -> None:
    """Fronts of 2.2 units in cells of 2.5 stay where they are within less than a film's noise of 0.002 in a cell."""
    assert departure(exact) < 0.0015


@pytest.mark.usefixtures("coarse_differences")
def test_differences_of_fourth_order_do_not_keep_it(exact: Pair) -> None:
    assert departure(exact) > 0.004


def slopes(exact: Pair) -> tuple[float, float]:
    """Return how the error changes with the law's speed: by the Jacobian, and by differences of the error itself.

    The recording is noisy, so that there is an error where the law is true.
    """
    noisy = exact.values + 0.002 * np.random.default_rng(2).standard_normal(exact.values.shape)
    posed = PairProblem.of(Pair.of(noisy, exact.times, exact.grid), SETTINGS)
    start = np.stack([deconvolve_cells(part.values[:1])[0] for part in exact.fields]).astype(float)
    modes = posed.modes(LAW, start)[:0]

    def point(speed: float) -> problem.Point:
        return evaluate(posed, LAW.moved(speed * LAW.vector), start, start, modes, np.zeros(0))

    here, step = point(1.003), 1e-5
    own = 2 * float((here.grams[:, :-1, -1] @ here.law.vector).sum())
    return own, 1.003 * (point(1.003 + step).cost - point(1.003 - step).cost) / (2 * step)


def test_the_jacobian_is_that_of_the_error(exact: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Feed and decay change what a reaction multiplies, and cancel in the speed: steps of 1e-3 are not small."""
    own, differences = slopes(exact)
    assert own == pytest.approx(differences, rel=0.01)
    monkeypatch.setattr(problem, "LAW_STEP", 1e-3)
    assert slopes(exact)[0] != pytest.approx(differences, rel=0.05)


def ends(exact: Pair) -> tuple[Array, Array]:
    """Fit noisy fields from the true law, and from one that is 4 % too slow."""
    noisy = exact.values + 0.002 * np.random.default_rng(4).standard_normal(exact.values.shape)
    posed = PairProblem.of(Pair.of(noisy, exact.times, exact.grid), SETTINGS)
    first, second = (
        calibrate._minimise(posed, LAW.moved(share * LAW.vector), SETTINGS.calibration) for share in (1.0, 0.96)
    )
    assert first[1]
    assert second[1]
    return first[0].law.vector / LAW.vector, second[0].law.vector / LAW.vector


def test_fits_end_at_the_same_place(exact: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the truth and from 4 % too slow; a fit that takes a damped step for the whole way ends before."""
    one, other = ends(exact)
    np.testing.assert_allclose(one, other, atol=1e-3)
    np.testing.assert_allclose(one, 1.0, atol=0.02)
    monkeypatch.setattr(calibrate, "LEAST_DAMPING", calibrate.FIRST_DAMPING)
    one, other = ends(exact)
    assert np.abs(one - other).max() > 2e-3
