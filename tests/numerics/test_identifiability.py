"""Identifiability: conditioning, correlations, sweeps, stability and the verdict in words."""

from __future__ import annotations

import numpy as np
import pytest
from known_fields import analyse, known_analysis, known_field

from video2pde.discovery import discover
from video2pde.discovery.testfunctions import choose_widths, interior, kernel
from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.recording.synth import noisy
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import load_settings, WeakSettings


def test_condition_and_correlation_are_those_of_the_columns() -> None:
    found, weak, _ = known_analysis("C")
    for diagnosis in found.libraries.values():
        theta = weak.system.columns(diagnosis.names)
        unit = theta / np.linalg.norm(theta, axis=0)
        assert diagnosis.correlation == pytest.approx(unit.T @ unit, abs=1e-9)
        assert diagnosis.condition == pytest.approx(np.linalg.cond(unit), rel=1e-3)
    small, large = found.libraries["A"].condition, found.libraries["Full"].condition
    assert small < 5 < 20 < large


def test_sweep_goes_from_everything_to_nothing() -> None:
    sweep = known_analysis("C")[0].libraries["Full"].sweep
    assert sweep.thresholds == pytest.approx(10 ** (-5 + np.arange(21) / 4))
    assert sweep.coefficients.shape == (21, 8)
    assert (np.diff(sweep.counts) <= 0).all()
    assert sweep.counts[0] >= 6
    assert sweep.counts[-1] <= 1
    assert np.array_equal(sweep.counts, np.count_nonzero(sweep.coefficients, axis=1))
    # the true support persists over more than a decade
    assert np.count_nonzero(sweep.counts == 4) >= 4


def test_stability_frequencies_and_spread() -> None:
    found, _, _ = known_analysis("C")
    stability = found.libraries["Full"].stability
    assert stability.runs == 100
    assert stability.frequency["grad_squared"] == 1
    assert stability.frequency["u"] == 0
    assert np.isnan(stability.mean["u"])
    assert stability.mean["grad_squared"] == pytest.approx(9.005, rel=0.01)
    assert 0 < stability.std["grad_squared"] < 0.05
    again = analyse(known_field("C"))[0].libraries["Full"].stability
    assert dict(again.mean) == pytest.approx(dict(stability.mean), nan_ok=True)


def test_stability_spread_grows_with_noise() -> None:
    quiet = known_analysis("C")[0].libraries["C"].stability.std["laplacian"]
    loud = analyse(noisy(known_field("C"), 0.02, 0))[0].libraries["C"].stability.std["laplacian"]
    assert loud > 5 * quiet


def test_verdict_names_what_fails() -> None:
    found, _, _ = known_analysis("C")
    verdicts = {name: diagnosis.verdict for name, diagnosis in found.libraries.items()}
    assert verdicts["C"] == "all terms robust"
    assert verdicts["A"].startswith("out: explains")
    assert verdicts["C-both"].endswith("reduces to C")
    assert "Full" not in found.contenders
    assert "C" in found.contenders
    assert "A" not in found.contenders
    assert all(name in repr(found) for name in verdicts)


def test_terms_that_cannot_be_told_apart_are_named() -> None:
    """On a nearly uniform background, u is a constant plus a little: the two columns are one."""
    settings = load_settings(overrides={"libraries": {"pair": ("constant", "u", "laplacian")}})
    field = noisy(known_field("noise"), 0.02, 5)
    diagnosis = analyse(field, settings)[0].libraries["pair"]
    assert ("constant", "u") in diagnosis.inseparable
    assert "constant and u cannot be told apart" in diagnosis.verdict
    assert not diagnosis.contender


def test_unique_share_unmasks_terms_that_cancel() -> None:
    """u and u² with opposite signs carry a large share each, and next to nothing that the rest cannot explain."""
    found, _, _ = analyse(known_field("A"), load_settings(overrides={"regression.threshold": 1e-5}))
    diagnosis = found.libraries["Full"]
    extra = [name for name in diagnosis.fit.active_terms if name != "laplacian"]
    assert extra
    assert all(diagnosis.unique_shares[name] <= diagnosis.fit.shares[name] + 1e-12 for name in extra)
    assert diagnosis.robust == ("laplacian",)


def test_discover_agrees_with_the_diagnosis() -> None:
    found, weak, _ = known_analysis("C-alt")
    fits = discover(weak)
    assert set(fits) == set(found.libraries)
    for name, fit in fits.items():
        assert fit.coefficients == found.libraries[name].fit.coefficients


def test_paper_preset_runs_with_the_papers_threshold() -> None:
    settings = load_settings("paper")
    found, weak, drift = analyse(known_field("C"), settings)
    assert drift.method == "none"
    assert not any(moment.any() for moment in weak.moments.values())
    assert set(found.libraries["C"].fit.active_terms) == {"grad_squared", "laplacian"}


# ----------------------------------------------------------------------------- test functions and their room


@pytest.mark.parametrize("sigma", [1.5, 2.4, 7.3, 12.0])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_kernels_differentiate_polynomials_exactly(sigma: float, order: int) -> None:
    value, derivative = kernel(sigma, 4.0, 0, 0.5), kernel(sigma, 4.0, order, 0.5)
    half = len(value) // 2
    s = 0.5 * np.arange(-half, half + 1)
    assert value.sum() == pytest.approx(1)
    for power in range(order + 4):
        exact = np.polyder(np.poly1d([1.0] + [0.0] * power), order)(s)
        scale = max(np.abs(derivative) @ np.abs(s) ** power, 1e-12)
        assert derivative @ s**power == pytest.approx((-1) ** order * (value @ exact), abs=1e-9 * scale)


def test_centres_keep_away_from_border_and_mask() -> None:
    mask = np.zeros((100, 100), bool)
    mask[20:90, 10:80] = True
    widths = choose_widths((180, 100, 100), 300, WeakSettings(), mask)
    inside = interior((100, 100), widths, mask)
    _, ry, rx = widths.reach
    rows, columns = np.nonzero(inside)
    assert rows.min() >= 20 + ry
    assert rows.max() <= 89 - ry
    assert columns.min() >= 10 + rx
    assert columns.max() <= 79 - rx


def test_small_mask_shrinks_the_widths_and_says_so() -> None:
    y, x = np.mgrid[:100, :100]
    disc = (y - 50) ** 2 + (x - 50) ** 2 < 20**2
    widths = choose_widths((180, 100, 100), 300, WeakSettings(), disc)
    assert widths.x < 6
    assert "to fit the mask" in widths.notes[-1]
    assert interior((100, 100), widths, disc).sum() >= 0.2 * disc.sum()
    with pytest.raises(InputError, match="larger mask"):
        choose_widths((180, 100, 100), 300, WeakSettings(), (y - 50) ** 2 + (x - 50) ** 2 < 4**2)


def test_no_room_says_which_width_to_reduce_and_to_what() -> None:
    fixed = WeakSettings(shrink=False, sigma_space=0.2)
    with pytest.raises(InputError, match=r"reduce weak\.sigma_space from 0\.2 to 0\.1 or less"):
        choose_widths((180, 100, 100), 300, fixed)
    with pytest.raises(InputError, match=r"reduce weak\.sigma_time from 0\.2 to"):
        choose_widths((18, 100, 100), 30, WeakSettings(shrink=False, sigma_time=0.2))
    with pytest.raises(InputError, match=r"8 samples along y are too few"):
        choose_widths((80, 8, 100), 140, WeakSettings())
    with pytest.raises(InputError, match=r"2 frames to fit on are too few"):
        choose_widths((2, 100, 100), 4, WeakSettings())


@pytest.mark.parametrize("noise", [0.01, 0.02])
def test_a_law_whose_twin_term_is_dropped_goes_on(noise: float) -> None:
    """∇·(u∇u) and Δu look alike; where the fit drops Δu and nothing as small explains more, the porous medium stays."""
    plume = known_field("A")
    velocity = np.tile([0.15, 0.2], (len(plume), 1))
    porous = simulate(Model.of({"porous": 4.0}), plume.values[0], plume.times, plume.grid, velocity).values
    found, _, _ = analyse(noisy(Field(porous.astype(np.float32), plume.times, plume.grid), noise, 1))
    law = found.libraries["P"]
    assert law.inseparable == (("porous", "laplacian"),)
    assert law.robust == ("porous",)
    assert "P" in found.contenders
    assert law.fit.coefficients["porous"] == pytest.approx(4.0, rel=0.03)


def test_terms_that_only_differ_together_are_no_law() -> None:
    """Diffusion on a plume that hardly varies in u: the porous medium's terms cannot be told apart, and P is out."""
    plume = known_field("A")
    shallow = Field(0.5 + np.float32(0.05) * plume.values, plume.times, plume.grid)
    found, _, _ = analyse(noisy(shallow, 0.001, 1))
    assert "P" not in found.contenders
