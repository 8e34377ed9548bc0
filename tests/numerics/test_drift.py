"""The drift: right on linear laws whatever the background, honest about noise, empty frames and its own error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_fields import known_field

from video2pde.drift import estimate_background, estimate_drift
from video2pde.errors import StageError
from video2pde.field import Field, Grid
from video2pde.recording.synth import find_preset, noisy
from video2pde.settings import DriftSettings, Settings
from video2pde.stages.drift import measure_drift

RAW = DriftSettings(background="none")


def with_background(field: Field, level: float) -> Field:
    """Put the plume on another background; the linear laws A and B allow it (B's background decays with it)."""
    case = find_preset(field.provenance.settings["case"])
    decay = np.exp(case.law.u * field.times)[:, None, None]
    return replace(field, values=field.values + np.float32(level - case.background) * decay.astype(np.float32))


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize("background", [0.0, 0.1, 0.25, 0.4])
def test_mean_drift_of_linear_laws(name: str, background: float) -> None:
    drift = estimate_drift(noisy(with_background(known_field(name), background), 0.004, 7))
    assert drift.mean == pytest.approx(find_preset(name).drift.mean, rel=0.05)
    assert drift.background[0] == pytest.approx(background, abs=0.002)
    assert drift.method == "border"


def test_raw_centroid_is_slowed_down_by_the_background() -> None:
    """The paper's raw centroid, and the broken variant of the test above."""
    field = with_background(known_field("A"), 0.25)
    raw, true = estimate_drift(field, RAW), find_preset("A").drift.mean
    assert raw.method == "none"
    assert not raw.background.any()
    assert raw.region.all()
    assert abs(raw.mean[1]) < abs(true[1]) / 4


@pytest.mark.parametrize("name", ["A", "B"])
def test_velocity_follows_the_swing(name: str) -> None:
    field, case = known_field(name), find_preset(name)
    drift = estimate_drift(field)
    true = np.stack(case.drift.velocity(field.times), axis=1)
    assert np.abs(drift.velocity - true).max() < 0.02 * np.abs(true).max()
    assert drift.velocity.std(axis=0) == pytest.approx(true.std(axis=0), rel=0.03)


def test_mass_of_diffusion_is_constant_and_of_decay_decays() -> None:
    diffusing, decaying = (estimate_drift(known_field(name)) for name in ("A", "B"))
    assert np.ptp(diffusing.mass) < 0.003 * diffusing.mass.mean()
    rate = np.polyfit(decaying.times, np.log(decaying.mass), 1)[0]
    assert rate == pytest.approx(find_preset("B").law.u, rel=0.01)


def test_stated_errors_match_the_spread_over_noise() -> None:
    field = known_field("A")
    drifts = [estimate_drift(noisy(field, 0.02, seed)) for seed in range(12)]
    middle = slice(40, -40)
    spread = np.std([d.velocity[middle] for d in drifts], axis=0, ddof=1).mean(axis=0)
    stated = np.mean([d.velocity_error[middle] for d in drifts], axis=(0, 1))
    assert stated == pytest.approx(spread, rel=0.4)
    mean_spread = np.std([d.mean for d in drifts], axis=0, ddof=1)
    ratio = np.mean([d.mean_error for d in drifts], axis=0) / mean_spread
    assert ratio.min() > 0.5
    assert ratio.max() < 2.5


def test_heavy_noise_is_not_taken_for_a_plume_at_the_border() -> None:
    field = noisy(known_field("A"), 0.03, 2)
    drift = estimate_drift(field)
    assert drift.method == "border"
    assert drift.background.mean() == pytest.approx(0.08, abs=0.003)
    assert drift.region.mean() < 0.5


def test_plume_at_the_border_uses_the_percentile() -> None:
    field = known_field("A")
    cut = Field(field.values[:, 45:, 25:75], field.times, Grid(55, 50, 110.0, 100.0))
    level, method = estimate_background(cut, DriftSettings())
    assert method == "percentile"
    assert level.mean() == pytest.approx(0.08, abs=0.01)
    assert estimate_background(cut, DriftSettings(background="border"))[1] == "border"


def test_empty_frames_are_bridged_and_reported() -> None:
    field = known_field("A")
    values = field.values.copy()
    values[100:104] = 0.08
    drift, whole = estimate_drift(replace(field, values=values)), estimate_drift(field)
    assert drift.empty_frames == (100, 101, 102, 103)
    assert drift.mean == pytest.approx(whole.mean, rel=0.01)
    assert drift.frames(slice(90, 110)).empty_frames == (10, 11, 12, 13)
    values[3:] = 0.08
    with pytest.raises(StageError, match="fewer than four frames"):
        estimate_drift(replace(field, values=values))


def test_mask_limits_the_region() -> None:
    field = known_field("A")
    mask = np.zeros(field.grid.shape, bool)
    mask[20:80, 20:80] = True
    drift = estimate_drift(replace(field, mask=mask))
    assert not (drift.region & ~mask).any()
    assert drift.region.any()


def test_window_and_order_are_settings() -> None:
    field = noisy(known_field("A"), 0.02, 4)
    rough, smooth = (estimate_drift(field, DriftSettings(window=w)) for w in (0.03, 0.3))
    assert np.diff(rough.velocity, axis=0).std() > 5 * np.diff(smooth.velocity, axis=0).std()
    assert rough.velocity_error.mean() > 5 * smooth.velocity_error.mean()


def test_units() -> None:
    field = known_field("A")
    scaled = Field(field.values, 3 * field.times, Grid(100, 100, 1400.0, 1400.0, "mm"))
    assert estimate_drift(scaled).mean == pytest.approx(tuple(7 / 3 * v for v in estimate_drift(field).mean), rel=1e-5)
    assert "mm/s" in repr(estimate_drift(scaled))


@pytest.mark.parametrize(("speed", "moving"), [(0.0, False), (0.5, True)])
def test_a_picture_that_stands_still_has_no_drift(speed: float, moving: bool) -> None:
    """With flow = auto the noise of a centroid is no drift; a real one is kept."""
    grid = Grid(40, 40, 40.0, 40.0)
    times = np.arange(40.0)
    rng = np.random.default_rng(0)
    frames = [np.exp(-((grid.x - 14 - 0.4 * speed * t) ** 2 + (grid.y[:, None] - 20) ** 2) / 30) for t in times]
    field = Field(np.array(frames) + rng.normal(0, 0.01, (40, 40, 40)), times, grid)
    found = measure_drift(field, Settings(drift=DriftSettings(flow="auto")))
    assert found.moving is moving
    assert bool(found.velocity.any()) is moving
    assert not measure_drift(field, Settings(drift=DriftSettings(flow="none"))).moving
