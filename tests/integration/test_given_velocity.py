"""A velocity that was measured otherwise carries the law through the whole pipeline, the test of fit included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from video2pde.field import Grid
from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import Camera, Case, deviate, exact_field, find_preset, make_case, noisy
from video2pde.settings import load_settings

GRID = Grid(64, 64, 200.0, 200.0)


def write_velocity(case: Case, path: Path) -> Path:
    """Write the true velocity, drift and vortex, as PIV would: on a coarse grid, at few times."""
    at = (np.arange(40) + 0.5) * 5.0
    x, y = np.meshgrid(at - 100, at - 100)
    times = np.linspace(0, case.duration, 40)
    fields = []
    for time in times:
        drift = np.ravel(case.drift.velocity(np.array([time])))
        fields.append(np.stack(case.medium.flow.velocity(x, y, float(time))) + np.reshape(drift, (2, 1, 1)))
    u, v = np.stack(fields, axis=1)
    np.savez(path, u=u, v=v, x=at, y=at, t=times)
    return path


def test_a_given_velocity_finds_the_law_that_a_uniform_drift_does_not(tmp_path: Path) -> None:
    case, _ = deviate(find_preset("C"), Camera(), "vortex")
    field = noisy(exact_field(case, GRID, np.linspace(0, case.duration, 100)), 0.005, 3)
    film = field.save(tmp_path / "field.npz")
    chosen = {"run.workers": 1, "calibration.replicates": 4, "front.enabled": False, "refinement.enabled": False}
    alone = run_pipeline(film, tmp_path / "alone", load_settings("quick", overrides=chosen), until="selection")
    given = {**chosen, "drift.velocity": str(write_velocity(case, tmp_path / "piv.npz"))}
    run = run_pipeline(film, tmp_path / "given", load_settings("quick", overrides=given), until="selection")
    assert alone.selection is not None
    assert alone.selection.verdict != "law"
    assert run.selection is not None
    assert run.selection.verdict == "law"
    assert run.chosen is not None
    for name, truth in case.law.coefficients.items():
        assert run.chosen.estimates[name].value == pytest.approx(truth, rel=0.03)
    flow = run.chosen.model.flow
    assert flow is not None
    assert flow.kind == "given"
    np.testing.assert_allclose(flow.coefficients, 1.0, atol=0.05)


def write_potential(case: Case, mobility: float, path: Path) -> Path:
    """Write g with χ∇g = −v for the case's flow, a strain (s x, −s y): g = s (y² − x²)/2χ, on other cells."""
    at = (np.arange(50) + 0.5) * 4.0
    x, y = np.meshgrid(at - 100, at - 100)
    strain = float(case.medium.flow.velocity(np.array([[1.0]]), np.array([[0.0]]), 0.0)[0][0, 0])
    assert strain != 0
    np.savez(path, g=strain * (y**2 - x**2) / (2 * mobility), x=at, y=at)
    return path


def test_a_potential_carries_the_law_and_its_factor_is_found(tmp_path: Path) -> None:
    """χ ∇g·∇u + DΔu: χ, the same along both axes, and D within their intervals."""
    case, _ = deviate(make_case("A", drift=(0.0, 0.0)), Camera(), "strain")
    field = noisy(exact_field(case, Grid(40, 40, 200.0, 200.0), np.linspace(0, case.duration, 60)), 0.003, 4)
    film = field.save(tmp_path / "field.npz")
    chosen = {
        "regression.law": "A",
        "run.workers": 1,
        "calibration.replicates": 8,
        "front.enabled": False,
        "refinement.enabled": False,
        "drift.potential": str(write_potential(case, 250.0, tmp_path / "g.npz")),
    }
    run = run_pipeline(film, tmp_path / "given", load_settings("quick", overrides=chosen), until="test")
    assert run.selection is not None
    assert run.selection.verdict == "law"
    law = run.chosen
    assert law is not None
    assert law.model.flow is not None
    found = run.to_json()["selected"]
    mobility = found["flow"]["mobility"]
    assert mobility["low"] < 250.0 < mobility["high"]
    assert mobility["value"] == pytest.approx(250.0, rel=0.02)
    assert mobility["high"] - mobility["low"] < 25.0
    assert found["terms"]["laplacian"]["low"] < 1.5 < found["terms"]["laplacian"]["high"]
    assert law.model.equation.text.startswith("u_t − χ ∇g·∇u = ")
    assert "χ = " in run.summary()
