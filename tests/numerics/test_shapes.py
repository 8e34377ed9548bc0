"""A parameter that is not linear: found in weak form, refined by rollouts, with an interval that holds the truth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from video2pde.calibration import find_derived
from video2pde.discovery.shapes import settle_shape
from video2pde.drift import Drift as MeasuredDrift
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import Case, Drift, exact_field, Law, noisy, Plume, sample_case
from video2pde.recording.synth.further import Further
from video2pde.settings import load_settings, Settings
from video2pde.stages.calibration import calibrate_contender
from video2pde.stages.drift import measure_drift
from video2pde.stages.structure import discover_structure
from video2pde.terms.families import family_of

FRAMES = 50
LAWS = {
    "porous_power": Law(further=Further(porous_power=6.0, exponent=1.4)),
    "uptake": Law(laplacian=3.0, further=Further(uptake=-0.05, half_saturation=0.3)),
}


@lru_cache(maxsize=4)
def recorded(name: str, noise: float = 0.001) -> Field:
    case = Case(name, LAWS[name], Drift(), Plume(0.7, seed=5, size=1.6, shape="spots"), 0.2, duration=20.0)
    grid = Grid(44, 44, 240.0, 240.0)
    times = np.linspace(0, case.duration, FRAMES)
    pictures = sample_case(case, grid.y - 120, grid.x - 120, (grid.dy, grid.dx), times, spacing=1.8, domain=360.0)
    return noisy(Field(np.stack(list(pictures)).astype(np.float32), times, grid), noise, 1)


def chosen(law: str, **more: object) -> Settings:
    overrides = {"regression.law": law, "run.workers": 1, "calibration.replicates": 12, "drift.flow": "none"}
    return load_settings("quick", overrides={**overrides, **more})


def still(field: Field, settings: Settings) -> MeasuredDrift:
    return measure_drift(field, settings)


@pytest.mark.parametrize(("name", "truth"), [("porous_power", 1.4), ("uptake", 0.3)])
def test_the_weak_form_finds_the_parameter(name: str, truth: float) -> None:
    field = recorded(name)
    settings = chosen(name if name == "porous_power" else "uptake,laplacian")
    known, shape = settle_shape(field, still(field, settings), settings, len(field))
    assert shape is not None
    assert shape.value == pytest.approx(truth, rel=0.1)
    assert known.regression.shapes == {name: shape.value}
    # far from it far more is left
    assert np.interp(2 * truth, shape.trials, shape.left) > 2 * shape.left.min()
    given = chosen(name, **{"regression.shapes": {name: 2.0}})
    assert settle_shape(field, still(field, given), given, len(field)) == (given, None)


@pytest.mark.recovery
def test_rollouts_refine_the_exponent() -> None:
    field = recorded("porous_power")
    settings = chosen("porous_power")
    windows = Windows.split(len(field))
    known = field.frames(slice(0, windows.validation_end))
    drift = still(known, settings)
    found = discover_structure(known, drift, windows, settings)
    train, part = known.frames(windows.train), drift.frames(windows.train)
    law = calibrate_contender(found.contenders[0], train, part, found, None, settings)
    [exponent] = find_derived(law)
    assert exponent.symbol == "m"
    assert exponent.estimate.value == pytest.approx(1.4, rel=0.03)
    assert exponent.estimate.low < 1.4 < exponent.estimate.high
    assert exponent.estimate.high - exponent.estimate.low < 0.3
    assert law.estimates["porous_power"].value == pytest.approx(6.0, rel=0.03)
    # one term is left, with the exponent in it, and everything that goes by term has its length
    assert [term.name for term in law.terms] == ["porous_power"]
    member = family_of(law.terms[0])
    assert member is not None
    assert member[1] == pytest.approx(exponent.estimate.value, abs=1e-3)
    assert law.bootstrap is not None
    assert law.bootstrap.draws.shape[1] == len(law.fit.coefficients) == len(law.budget[0].shift) == 1
    assert law.starts_agree


def test_the_solver_conserves_what_diffusion_conserves_and_no_more() -> None:
    """Finite sums over the whole square: ∇·(uᵐ∇u) and Δ²u only move things, uptake takes them away."""
    grid, times = Grid(60, 60, 360.0, 360.0), np.linspace(0, 10, 3)
    plume = Plume(0.6, seed=5, size=1.6, shape="spots")
    for law, kept in (
        (Law(further=Further(porous_power=6.0, exponent=1.4)), True),
        (Law(further=Further(biharmonic=-40.0)), True),
        (Law(laplacian=1.0, further=Further(saturation=-0.05)), False),
    ):
        case = Case("x", law, Drift(), plume, 0.2, duration=10.0)
        total = exact_field(case, grid, times).values.mean(axis=(1, 2), dtype=float)
        assert np.allclose(total, total[0], rtol=2e-6) == kept
