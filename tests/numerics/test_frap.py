"""Recoveries after a bleach whose numbers are known: D, mobile fraction, half time, bleaching rate."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Field, Grid, Provenance
from video2pde.frap import analyse_recovery
from video2pde.frap.fit import fit_modes
from video2pde.frap.modes import decompose
from video2pde.frap.recovery import at_most_one
from video2pde.recording import read_field
from video2pde.recording.synth import write_laboratory
from video2pde.settings import load_settings

Array = NDArray[np.float64]
DIFFUSION, RADIUS2, DEPTH = 0.8, 20.0, 0.6
GRID = Grid(48, 56, 48.0, 56.0, "µm")


def recovering(times: Array, mobile: float = 1.0, rate: float = 0.0, noise: float = 0.005, seed: int = 0) -> Field:
    """A Gaussian spot that spreads in an unbounded sheet: the variance grows by 2Dt."""
    squared = (GRID.x[None, :] - 30) ** 2 + (GRID.y[:, None] - 22) ** 2
    rng = np.random.default_rng(seed)
    frames = []
    for time in times - times[0]:
        wide = RADIUS2 + 2 * DIFFUSION * time
        hole = mobile * RADIUS2 / wide * np.exp(-squared / (2 * wide)) + (1 - mobile) * np.exp(-squared / (2 * RADIUS2))
        frames.append(math.exp(-rate * time) * (1 - DEPTH * hole) + rng.normal(0, noise, GRID.shape))
    return Field(np.array(frames), times, GRID, provenance=Provenance(settings={"reference": "before.tif"}))


UNEVEN = np.array([0, 2, 4, 6, 9, 12, 16, 20, 25, 30, 38, 46, 55, 70, 90, 120.0])


def holds(estimate: object, truth: float) -> bool:
    return bool(estimate.low <= truth <= estimate.high)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("mobile", "rate"), [(1.0, 0.0), (0.8, 0.001), (0.9, 0.0)])
def test_numbers_of_a_spot_in_an_open_sheet(mobile: float, rate: float, seed: int) -> None:
    found = analyse_recovery(recovering(UNEVEN, mobile, rate, seed=seed))
    assert found.diffusion.value == pytest.approx(DIFFUSION, rel=0.05)
    assert found.mobile.value == pytest.approx(mobile, abs=0.02)
    assert found.bleaching.value == pytest.approx(rate, abs=1e-4)
    assert found.steadiness.steady is True


def test_intervals_hold_over_seeds() -> None:
    found = [analyse_recovery(recovering(UNEVEN, 0.85, 0.0008, seed=seed)) for seed in range(12)]
    assert sum(holds(each.diffusion, DIFFUSION) for each in found) >= 10
    assert sum(holds(each.mobile, 0.85) for each in found) >= 9
    assert sum(holds(each.bleaching, 0.0008) for each in found) >= 9


def test_the_half_time_is_that_of_the_bleached_region() -> None:
    field = recovering(np.linspace(0, 120, 61), noise=0.001)
    found = analyse_recovery(field)

    def recovered(time: float) -> float:
        wide = RADIUS2 + 2 * DIFFUSION * time
        squared = (GRID.x[None, :] - 30) ** 2 + (GRID.y[:, None] - 22) ** 2
        hole, first = (s * np.exp(-squared * s / (2 * RADIUS2)) for s in (RADIUS2 / wide, 1.0))
        return 1 - float(hole[found.spot].mean() / first[found.spot].mean())

    truth = brentq(lambda time: recovered(time) - 0.5, 1, 119)
    assert found.half_time.value == pytest.approx(truth, rel=0.05)


def test_an_immobile_part_that_is_left_out_makes_d_drift() -> None:
    """The broken variant: without M, the D of the whole is wrong and says so by its spread over the windows."""
    field = recovering(UNEVEN, 0.75, noise=0.002)
    found = analyse_recovery(field)
    assert found.diffusion.value == pytest.approx(DIFFUSION, rel=0.05)
    assert found.all_mobile.value < 0.85 * DIFFUSION
    assert found.steadiness.steady is True
    assert any("if everything were mobile, D would depend on the window" in note for note in found.notes)
    # as wide as its windows differ
    assert found.all_mobile.high - found.all_mobile.low > 0.2 * found.all_mobile.value


def test_where_everything_is_mobile_there_is_one_d() -> None:
    found = analyse_recovery(recovering(UNEVEN, 1.0, noise=0.002, seed=3))
    assert not any("if everything were mobile" in note for note in found.notes)
    assert holds(found.all_mobile, DIFFUSION)


def test_two_species_are_not_steady() -> None:
    fast, slow = recovering(UNEVEN, noise=0.001), recovering(UNEVEN / 12 + 0.0, noise=0.001)
    mixed = Field(0.5 * fast.values + 0.5 * slow.values, UNEVEN, GRID, provenance=fast.provenance)
    found = analyse_recovery(mixed)
    assert found.steadiness.steady is False
    assert any("not steady" in note for note in found.notes)
    assert found.diffusion.high - found.diffusion.low > 0.2 * found.diffusion.value


@pytest.mark.parametrize("seed", [0, 1])
def test_a_reference_that_was_bleached_before_is_a_pattern_that_stands_still(seed: int) -> None:
    """An earlier bleach is still in the reference: D is not steady, and is with a pattern; the interval holds both."""
    clean = recovering(UNEVEN, noise=0.002, seed=seed)
    squared = (GRID.x[None, :] - 26) ** 2 + (GRID.y[:, None] - 24) ** 2
    values = clean.values / (1 - 0.05 * np.exp(-squared / 80))
    found = analyse_recovery(Field(values, UNEVEN, GRID, provenance=clean.provenance))
    assert found.steadiness.steady is False
    assert found.patterned.value == pytest.approx(DIFFUSION, rel=0.03)
    assert abs(found.diffusion.value / DIFFUSION - 1) > 0.03
    assert holds(found.diffusion, DIFFUSION)
    assert found.diffusion.high - found.diffusion.low < 0.35 * DIFFUSION
    assert any("a pattern that stands still explains that" in note for note in found.notes)
    assert math.isnan(analyse_recovery(clean).patterned.value)


@pytest.mark.parametrize("frames", [4, 6])
def test_few_frames_give_d(frames: int) -> None:
    found = analyse_recovery(recovering(UNEVEN[:: 16 // frames][:frames], noise=0.002))
    assert found.diffusion.value == pytest.approx(DIFFUSION, rel=0.1)
    assert math.isnan(found.mobile.value)
    with pytest.raises(StageError, match="too few"):
        analyse_recovery(recovering(UNEVEN[:3]))


def test_a_region_with_measured_edges_and_one_without_flux() -> None:
    """Inside a disc whose surroundings recover too, only measured edges are right."""
    field = recovering(UNEVEN, noise=0.001)
    disc = (GRID.x[None, :] - 29) ** 2 + (GRID.y[:, None] - 23) ** 2 < 13**2
    masked = Field(field.values, field.times, GRID, disc, provenance=field.provenance)
    start = {"D": 0.5, "k": 0.0, "M": 1.0}
    spot = np.zeros_like(disc)
    found = {
        edges: fit_modes(decompose(masked, spot | disc, edges), ("D",), start, 0.0).values["D"]  # type: ignore[arg-type]
        for edges in ("measured", "no_flux")
    }
    assert found["measured"] == pytest.approx(DIFFUSION, rel=0.02)
    assert abs(found["no_flux"] / DIFFUSION - 1) > 0.05


def test_the_unit_of_length_changes_d_alone() -> None:
    field = recovering(UNEVEN, 0.9, 0.0005)
    grid = Grid(48, 56, 48e-6, 56e-6, "m")
    small = Field(field.values, field.times, grid, provenance=field.provenance)
    one, other = analyse_recovery(field), analyse_recovery(small)
    assert other.diffusion.value == pytest.approx(one.diffusion.value * 1e-12, rel=1e-3, abs=0)
    assert other.mobile.value == pytest.approx(one.mobile.value, rel=1e-3)


def test_no_spot_no_recovery() -> None:
    flat = 1 + np.random.default_rng(0).normal(0, 0.005, (8, 30, 30))
    with pytest.raises(StageError, match="no bleached spot"):
        analyse_recovery(Field(flat, np.arange(8.0), Grid(30, 30, 30.0, 30.0)))


@pytest.mark.parametrize("seed", [0, 3])
def test_the_rendered_recovery_gives_its_numbers_back(tmp_path: Path, seed: int) -> None:
    """16-bit pictures at uneven times, uneven light, a dark level, bleaching and an immobile part."""
    pictures = write_laboratory("frap", tmp_path, seed)
    settings = load_settings(
        "frap",
        None,
        {"recording.reference": "prima.tif", "recording.dark": "closed.tif", "recording.scale": "0.3185um"},
    )
    found = analyse_recovery(read_field(pictures, settings))
    assert found.unit == "µm"
    for estimate, truth in ((found.diffusion, 2.0), (found.mobile, 0.9), (found.bleaching, 4e-4)):
        assert estimate.value == pytest.approx(truth, rel=0.05)
        assert holds(estimate, truth)


BILAYER = Path(__file__).parents[3] / "shared" / "recordings" / "frap_bilayer"


@pytest.mark.skipif(not BILAYER.is_dir(), reason="the shared recordings are not here")
def test_the_lipid_bilayer() -> None:
    settings = load_settings(
        "frap",
        None,
        {"recording.reference": "prima.tif", "recording.dark": "closed.tif", "recording.scale": "0.3185um"},
    )
    found = analyse_recovery(read_field(BILAYER, settings))
    assert found.diffusion.value == pytest.approx(2.0, rel=0.1)
    assert holds(found.diffusion, 2.0)
    assert found.diffusion.high - found.diffusion.low < 0.3 * 2.0
    assert found.mobile.value > 0.9


def test_a_mobile_fraction_beyond_everything_keeps_its_uncertainty() -> None:
    assert at_most_one(Estimate(1.1, 1.05, 1.15)) == Estimate(1.0, pytest.approx(0.95), 1.0)
    assert at_most_one(Estimate(0.8, 0.7, 0.9)) == Estimate(0.8, pytest.approx(0.7), 0.9)


def test_light_that_shines_for_each_picture_alone() -> None:
    """A shutter: as much is bleached by every picture, however long the time between two of them."""
    steady = recovering(UNEVEN, noise=0.001)
    loss = 0.008
    values = steady.values * np.exp(-loss * np.arange(len(UNEVEN)))[:, None, None]
    found = analyse_recovery(Field(values, UNEVEN, GRID, provenance=steady.provenance))
    assert found.diffusion.value == pytest.approx(DIFFUSION, rel=0.03)
    assert found.bleaching.value == pytest.approx(loss * (len(UNEVEN) - 1) / np.ptp(UNEVEN), rel=0.03)
    assert found.steadiness.steady
    assert any("pictures taken" in note for note in found.notes)
    assert not any("pictures taken" in note for note in analyse_recovery(recovering(UNEVEN, rate=0.001)).notes)
