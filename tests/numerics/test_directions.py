"""Diffusion that differs with direction: found whatever way the camera was turned, with intervals that hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from calibration_problems import pose
from numpy.typing import NDArray

from video2pde.calibration import Bootstrap, calibrate, Calibration, Correction, find_directions
from video2pde.calibration.budget import STATISTICS
from video2pde.discovery import weak_system
from video2pde.discovery.identifiability import diagnose_libraries
from video2pde.drift import estimate_drift
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import Case, exact_field, make_case, Medium, noisy
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE, libraries
from video2pde.terms.catalogue import TENSOR

Array = NDArray[np.float64]
SETTINGS = load_settings("quick", overrides={"regression.diffusion": "tensor", "run.workers": 1})


def entries(along: float, across: float, degrees: float) -> Array:
    """Return the coefficients of u_xx, u_yy and u_xy of a tensor."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([along * c * c + across * s * s, along * s * s + across * c * c, 2 * (along - across) * c * s])


def calibrated(values: Array, covariance: Array, rest: Array | float = 0.0, draws: int = 4000) -> Calibration:
    """Return a calibrated tensor whose replicates scatter as given, with ``rest`` beside them in the half-widths."""
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal(values, covariance, draws)
    own = 1.96 * np.sqrt(np.diag(covariance))
    half = np.hypot(own, rest)
    boot: Any = Bootstrap(5, draws, drawn, np.zeros(3), values, values - own, values + own, np.zeros((1, 2)), ())
    found = {name: Estimate(v, v - h, v + h) for name, v, h in zip(TENSOR, values, half, strict=True)}
    terms = tuple(CATALOGUE[name] for name in TENSOR)
    nothing: Any = None
    line = Correction(STATISTICS, np.zeros(3), own)
    return Calibration("A", terms, found, {}, nothing, (), True, boot, (line,))


@pytest.mark.parametrize("degrees", [0.0, 30.0, 75.0, -50.0])
def test_the_tensor_is_the_same_however_the_camera_is_turned(degrees: float) -> None:
    spread = np.diag([1e-4, 2e-4, 3e-4]) + 5e-5
    found = find_directions(calibrated(entries(2.0, 1.0, degrees), spread))
    assert found is not None
    assert found.along.value == pytest.approx(2.0)
    assert found.across.value == pytest.approx(1.0)
    assert found.angle.value == pytest.approx(degrees)
    assert found.ratio.value == pytest.approx(2.0)
    assert found.anisotropic
    assert found.positive


def test_intervals_are_those_of_the_eigenvalues_of_the_replicates() -> None:
    law = calibrated(entries(2.0, 1.0, 30.0), 1e-4 * np.array([[4.0, 1.0, 1.5], [1.0, 2.0, -0.5], [1.5, -0.5, 3.0]]))
    found = find_directions(law)
    assert found is not None
    assert law.bootstrap is not None
    xx, yy, cross = law.bootstrap.draws.T
    size = np.hypot(xx - yy, cross)
    angle = np.degrees(0.5 * np.arctan2(cross, xx - yy))
    along, across = (xx + yy + size) / 2, (xx + yy - size) / 2
    for estimate, drawn in (
        (found.along, along),
        (found.across, across),
        (found.angle, angle),
        (found.ratio, along / across),
    ):
        assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * drawn.std(), rel=0.03)


def test_what_replicates_do_not_show_adds_up() -> None:
    """One per cent of every coefficient is one per cent of both diffusions at least, at any angle."""
    for degrees in (0.0, 20.0, 45.0):
        values = entries(2.0, 1.0, degrees)
        found = find_directions(calibrated(values, 1e-12 * np.eye(3), 0.01 * np.abs(values)))
        assert found is not None
        assert found.along.high - found.along.value >= 0.01 * 2.0 - 1e-9
        assert found.along.high - found.along.value <= 0.015 * 2.0
        assert found.across.high - found.across.value >= 0.01 - 1e-9


def test_isotropic_backward_and_other_laws() -> None:
    spread = 1e-4 * np.eye(3)
    round_ = find_directions(calibrated(entries(1.002, 1.0, 10.0), spread))
    assert round_ is not None
    assert not round_.anisotropic
    assert round_.positive
    # of an angle that could be any nothing is said
    assert round_.angle.high - round_.angle.low == 180.0
    assert "the same in all directions" in round_.words("mm")
    backward = find_directions(calibrated(entries(1.0, -0.2, 10.0), spread))
    assert backward is not None
    assert not backward.positive
    assert "not positive" in backward.words("mm")
    law = calibrated(entries(2.0, 1.0, 0.0), spread)
    assert find_directions(replace(law, terms=law.terms[:2])) is None


def oblique(name: str, degrees: float, n: int = 64, frames: int = 100) -> tuple[Case, Field, Array]:
    """Return a case whose diffusion is twice as fast in one direction as across it, its field, and its tensor."""
    case = replace(make_case(name), medium=Medium(anisotropy=1 / 3, turned=degrees))
    field = exact_field(case, Grid(n, n, 200.0, 200.0), np.linspace(0, case.duration, frames))
    d = case.law.laplacian
    return case, noisy(field, 0.003, 1), entries(4 / 3 * d, 2 / 3 * d, degrees)


@pytest.mark.parametrize(("name", "degrees"), [("A", 0.0), ("A", 30.0), ("C", 65.0)])
def test_a_tensor_is_found_in_weak_form_at_any_angle(name: str, degrees: float) -> None:
    case, field, truth = oblique(name, degrees)
    train = Windows.split(len(field)).train
    drift = estimate_drift(field, SETTINGS.drift).frames(train)
    weak = weak_system(field.frames(train), drift, SETTINGS, len(field))
    seen = diagnose_libraries(weak.columns, weak.system, SETTINGS)
    found = seen.libraries[name]
    # whole, though one entry is zero where the axes are those of the picture
    assert set(TENSOR) <= set(found.robust)
    assert name in seen.contenders
    fitted = np.array([found.fit.coefficients[entry] for entry in TENSOR])
    assert fitted == pytest.approx(truth, abs=0.05 * case.law.laplacian)
    if name == "C":
        assert found.fit.coefficients["grad_squared"] == pytest.approx(case.law.grad_squared, rel=0.05)


def test_libraries_give_their_laplacian_up_for_a_tensor() -> None:
    plain, turned = libraries(load_settings()), libraries(SETTINGS)
    assert list(plain) == list(turned)
    assert [term.name for term in turned["C"]] == ["grad_squared", *TENSOR]
    assert all(CATALOGUE["laplacian"] not in terms for terms in turned.values())
    named = load_settings(overrides={"regression.diffusion": "tensor", "regression.law": "u,laplacian"})
    assert [term.name for term in libraries(named)["B"]] == ["u", *TENSOR]


def test_a_calibrated_tensor_holds_the_truth() -> None:
    case, field, truth = oblique("A", 30.0, 48, 80)
    problem, start = pose(field, "A", SETTINGS)
    law = calibrate("A", problem, {"weak": start}, SETTINGS)
    assert law.fit.converged
    for name, value in zip(TENSOR, truth, strict=True):
        assert law.estimates[name].low <= value <= law.estimates[name].high
    found = find_directions(law)
    assert found is not None
    assert found.anisotropic
    assert found.positive
    for estimate, value in ((found.along, 4 / 3), (found.across, 2 / 3)):
        assert estimate.value == pytest.approx(value * case.law.laplacian, rel=0.05)
        assert estimate.low <= value * case.law.laplacian <= estimate.high
    assert found.angle.low <= 30.0 <= found.angle.high
    assert found.angle.high - found.angle.low < 10.0
