"""A law found in one recording predicts another one of the same kind, and not one of another kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from using_laws import LAWS

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.rollout.validate import DIFFUSION, DRIFT, PERSISTENCE
from video2pde.settings import Settings
from video2pde.stages import measure_drift, validate_models
from video2pde.using import apply_model, SavedModel
from video2pde.using.transfer import OWN, TRANSFERRED

GRID = Grid(64, 64, 150.0, 150.0)
TIMES = np.linspace(0, 24, 97)


def film(name: str, seed: int) -> Field:
    """Return a noisy known-truth field with a plume of its own."""
    return noisy(exact_field(make_case(name, seed=seed, duration=24.0), GRID, TIMES), 0.003, seed)


def saved(law: dict[str, float], grid: Grid = GRID) -> SavedModel:
    return SavedModel.of(list(law), law, grid, Windows.split(len(TIMES)), TIMES, np.zeros((len(TIMES), 2)))


def test_a_law_predicts_another_film_of_the_same_kind() -> None:
    other = film("C", 71)
    found = apply_model(saved(LAWS["C"]), other, own=saved({"grad_squared": 8.0, "laplacian": 0.6}))
    names = [outcome.name for outcome in found.outcomes if outcome.window == "test"]
    assert names == [PERSISTENCE, DRIFT, DIFFUSION, TRANSFERRED, OWN]
    assert {outcome.window for outcome in found.outcomes} == {"validation", "test"}
    for window in ("validation", "test"):
        law, baselines = found.outcome(TRANSFERRED, window), (PERSISTENCE, DRIFT, DIFFUSION)
        assert all(law.metrics.rrmse < 0.6 * found.outcome(name, window).metrics.rrmse for name in baselines)
        assert law.metrics.rrmse < found.outcome(OWN, window).metrics.rrmse
        assert law.skill > 0.8
    assert "beats" in found.verdict
    assert "does not" not in found.verdict
    assert any("image units" in note for note in found.notes)


def test_a_law_of_another_kind_does_not() -> None:
    found = apply_model(saved({"grad_squared": -9.0, "laplacian": 0.666}), film("C", 71))
    assert "does not beat" in found.verdict
    unstable = apply_model(saved({"laplacian": -2.0}), film("C", 71))
    assert "fails" in unstable.verdict
    assert unstable.outcome(TRANSFERRED).row["rrmse_percent"] is None


def test_a_masked_film_is_scored_as_in_a_run() -> None:
    """Outside the mask something grows that obeys no law: to run there, or to score there, would differ."""
    mask = np.zeros((64, 64), bool)
    mask[8:56, 6:50] = True
    plain = film("C", 71)
    growth = np.linspace(0, 0.4, len(TIMES))[:, None, None]
    masked = replace(plain, values=np.where(mask, plain.values, plain.values + growth), mask=mask)
    settings = Settings()
    windows, law = Windows.split(len(TIMES)), saved(LAWS["C"])
    found = apply_model(law, masked, settings)
    drift = measure_drift(masked, settings)
    scores = validate_models(masked, windows.test, drift, {"law": law.law}, found.diffusion, settings)
    ours, theirs = found.outcome(TRANSFERRED), scores.rows[0].measured
    assert ours.metrics.rrmse == pytest.approx(theirs.full.rrmse, rel=1e-6)
    assert ours.metrics.front_rmse == pytest.approx(theirs.full.front_rmse, rel=1e-6)
    assert ours.skill == pytest.approx(theirs.skill, rel=1e-6)
    for name, score in zip((PERSISTENCE, DRIFT, DIFFUSION), scores.baselines, strict=True):
        assert found.outcome(name).metrics.rrmse == pytest.approx(score.full.rrmse, rel=1e-6)
    without = apply_model(law, replace(masked, mask=None), settings)
    assert without.outcome(TRANSFERRED).metrics.rrmse > 2 * ours.metrics.rrmse


def test_units_must_agree() -> None:
    in_mm = Grid(64, 64, 15.0, 15.0, "mm")
    with pytest.raises(InputError, match="in mm, the film's in image units"):
        apply_model(saved(LAWS["C"], in_mm), film("C", 71))
