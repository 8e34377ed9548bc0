"""Constraints inside the fits: in weak form, in the search, and in the calibration, with intervals that make sense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_fields import known_field

from video2pde.calibration.constrained import BOUND, calibrate_within, FIXED
from video2pde.discovery.constrained import take_off
from video2pde.discovery.regression import fit_library, normal_equations, solve_sparse
from video2pde.discovery.testfunctions import Widths
from video2pde.discovery.weak import WeakSystem
from video2pde.field import Field, Windows
from video2pde.recording.synth import noisy
from video2pde.settings import load_settings, RegressionSettings, Settings
from video2pde.stages.calibration import calibrate_contender, pose_problem
from video2pde.stages.drift import measure_drift
from video2pde.stages.structure import discover_structure, Discovery
from video2pde.terms.catalogue import constraints, TENSOR


def small_system(columns: dict[str, np.ndarray], b: np.ndarray) -> WeakSystem:
    centres = 100 * np.arange(3 * len(b)).reshape(-1, 3)
    return WeakSystem(tuple(columns), np.stack(list(columns.values()), axis=1), b, centres, Widths(1.0, 1.0, 1.0, 4.0))


def test_what_is_known_is_taken_off_the_left_side() -> None:
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 300))
    system = small_system({"u": x, "u_squared": x + 0.3 * y, "constant": z}, 2 * x + 3 * (x + 0.3 * y) - z)
    left = take_off(system, {"u": 2.0})
    assert left.names == ("u_squared", "constant")
    fit = fit_library("L", left.names, left)
    assert fit.coefficients["u_squared"] == pytest.approx(3.0, rel=1e-4)
    assert fit.explained == pytest.approx(1.0, abs=1e-6)
    # held at a wrong value, what is left is not explained
    assert fit_library("L", left.names, take_off(system, {"u": 1.0})).explained < 0.999
    assert take_off(system, {}) is system


def test_a_tensor_stays_positive_in_every_direction() -> None:
    """The best of all tensors that are not negative, against a search over all of them."""
    rng = np.random.default_rng(1)
    columns = dict(zip(TENSOR, rng.standard_normal((3, 400)) * np.array([[1.0], [3.0], [0.2]]), strict=True))
    other = rng.standard_normal(400)
    columns["u"] = other + 0.5 * columns["dxx"]
    b = 1.0 * columns["dxx"] + 0.2 * columns["dyy"] + 1.6 * columns["dxy"] + 0.3 * columns["u"]
    system = small_system(columns, b + 0.1 * rng.standard_normal(400))
    free = RegressionSettings(threshold=0.0, ridge=0.0)
    bound = free.model_copy(update={"signs": {"tensor": "positive", "dxx": "positive", "dyy": "positive"}})
    normal = normal_equations(system)
    without, within = solve_sparse(normal, free), solve_sparse(normal, bound)
    xx, yy, cross, _ = without.coefficients
    assert xx + yy < np.hypot(xx - yy, cross)
    xx, yy, cross, u = within.coefficients
    assert xx + yy - np.hypot(xx - yy, cross) == pytest.approx(0.0, abs=1e-9)
    best = np.inf
    for angle in np.linspace(0, np.pi, 2001):
        c, s = np.cos(angle), np.sin(angle)
        design = np.stack([system.theta[:, :3] @ np.array([c * c, s * s, 2 * c * s]), columns["u"]], axis=1)
        found, left, *_ = np.linalg.lstsq(design, system.b, rcond=None)
        best = min(best, float(left[0])) if found[0] >= 0 else best
    left = float(np.sum((system.b - system.theta @ np.array([xx, yy, cross, u])) ** 2))
    assert 0.999 * best < left <= best
    # where it is positive anyway nothing changes
    tame = small_system(columns, b - 1.4 * columns["dxy"])
    assert solve_sparse(normal_equations(tame), bound).coefficients == pytest.approx(
        solve_sparse(normal_equations(tame), free).coefficients, rel=1e-6
    )


def posed(settings: Settings) -> tuple[Discovery, Field, object]:
    field = noisy(known_field("B", 48, 60), 0.002, 1)
    windows = Windows.split(len(field))
    known = field.frames(slice(0, windows.validation_end))
    drift = measure_drift(known, settings)
    found = discover_structure(known, drift, windows, settings)
    return found, known.frames(windows.train), drift.frames(windows.train)


def of_case_b(**given: object) -> Settings:
    """Settings for the known field of u_t = −0.02 u + 1.2 Δu."""
    quick = {"run.workers": 1, "calibration.replicates": 12}
    return load_settings("quick", overrides={**quick, **{key.replace("__", "."): v for key, v in given.items()}})


def test_a_known_coefficient_is_held_in_every_fit() -> None:
    settings = of_case_b(constraints__fixed={"laplacian": 1.2}, regression__law="u,laplacian")
    found, train, drift = posed(settings)
    contender = found.contenders[0]
    assert contender.weak["laplacian"] == 1.2
    law = calibrate_contender(contender, train, drift, found, None, settings)
    held, free = law.estimates["laplacian"], law.estimates["u"]
    assert (held.value, held.low, held.high) == (1.2, 1.2, 1.2)
    assert law.held == {"laplacian": FIXED}
    assert free.low < -0.02 < free.high
    assert free.value == pytest.approx(-0.02, rel=0.03)
    assert law.bootstrap is not None
    place = [term.name for term in law.terms].index("laplacian")
    assert np.ptp(law.bootstrap.draws[:, place]) == 0
    assert law.model.coefficient("laplacian") == 1.2
    # the film is asked, too: it agrees with 1.2, and would not with 2
    [check] = found.held
    assert check.free == pytest.approx(1.2, rel=0.05)
    assert not check.contradicted
    assert replace(check, value=2.0).contradicted


def test_a_bound_that_is_active_is_said() -> None:
    """Growth is ruled in where the film shows decay: the coefficient is held at 0, and diffusion fitted beside it."""
    settings = of_case_b(constraints__positive=["u", "diffusion"], regression__law="u,laplacian")
    found, train, drift = posed(settings)
    contender = found.contenders[0]
    assert contender.weak["u"] >= 0
    problem = pose_problem(contender, train, drift, found, settings)
    known = constraints(settings)
    assert known is not None
    law = calibrate_within(known, "B", problem, {"weak": [-0.02, 1.2]}, settings)
    at_bound = law.estimates["u"]
    assert law.held == {"u": BOUND}
    assert (at_bound.value, at_bound.low) == (0.0, 0.0)
    assert at_bound.high == 0.0  # the free fit's interval is all below zero
    assert law.estimates["laplacian"].value > 0
    # the sign that the film shows changes nothing but the end of the interval
    right = of_case_b(constraints__negative=["u"], regression__law="u,laplacian")
    allowed = constraints(right)
    assert allowed is not None
    law = calibrate_within(allowed, "B", problem, {"weak": [-0.02, 1.2]}, right)
    assert law.held == {}
    assert law.estimates["u"].value == pytest.approx(-0.02, rel=0.03)
