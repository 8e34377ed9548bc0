"""The weak fit finds the law of exact fields: coefficients, active terms, drift; and no law where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from known_fields import analyse, known_analysis, known_field, LAWS, relative_errors

from video2pde.discovery.moments import law_velocity
from video2pde.field import Field, Grid
from video2pde.recording.synth import find_preset, noisy
from video2pde.settings import load_settings


@pytest.mark.parametrize("name", list(LAWS))
def test_exact_law_is_found(name: str) -> None:
    found, _, _ = known_analysis(name)
    case, library = find_preset(name), LAWS[name]
    fit = found.libraries[library].fit
    assert max(abs(e) for e in relative_errors(found, case, library).values()) < 0.002
    assert set(fit.active_terms) == set(case.law.coefficients)
    assert fit.coefficients["drift_x"] == pytest.approx(1, abs=0.01)
    assert fit.coefficients["drift_y"] == pytest.approx(1, abs=0.01)
    assert found.law_seen
    assert library in found.contenders


@pytest.mark.parametrize("name", list(LAWS))
def test_larger_libraries_reduce_to_the_law(name: str) -> None:
    found, _, _ = known_analysis(name)
    truth = set(find_preset(name).law.coefficients)
    for diagnosis in found.libraries.values():
        if truth <= set(diagnosis.terms):
            assert set(diagnosis.fit.active_terms) == truth
            assert diagnosis.fit.explained > 0.9999
        else:
            assert diagnosis.fit.explained < 0.9995


@pytest.mark.parametrize("name", list(LAWS))
def test_drift_of_the_law_is_the_true_drift(name: str) -> None:
    found, weak, drift = known_analysis(name)
    case = find_preset(name)
    fit = found.libraries[LAWS[name]].fit
    true = np.stack(case.drift.velocity(drift.times), axis=1)
    corrected = law_velocity(drift, weak.moments, fit.coefficients)
    assert np.abs(corrected - true).mean(axis=0) == pytest.approx([0, 0], abs=0.002)
    assert corrected.mean(axis=0) == pytest.approx(true.mean(axis=0), rel=0.005)


def test_centroid_of_a_nonlinear_law_is_not_the_drift() -> None:
    """The broken variant of the test above: without the correction, law C's drift is 27 % off along y."""
    _, _, drift = known_analysis("C")
    true = find_preset("C").drift.velocity(drift.times)[1].mean()
    assert drift.velocity[:, 1].mean() / true > 1.2
    uncorrected, _, _ = analyse(known_field("C"), load_settings(overrides={"drift.law_correction": False}))
    assert abs(uncorrected.libraries["C"].fit.coefficients["drift_y"] - 1) > 0.1


@pytest.mark.parametrize("name", list(LAWS))
def test_small_recordings_get_workable_widths(name: str) -> None:
    found, weak, _ = known_analysis(name, 40, 97)
    case = find_preset(name)
    assert min(weak.columns.widths.t, weak.columns.widths.x) >= 1.5
    assert max(abs(e) for e in relative_errors(found, case, LAWS[name]).values()) < 0.03
    assert set(found.libraries[LAWS[name]].fit.active_terms) == set(case.law.coefficients)


@pytest.mark.parametrize(("name", "level"), [("noise", 0.02), ("static", 0.002), ("static", 0.02), ("static", 0.0)])
def test_no_law_where_nothing_happens(name: str, level: float) -> None:
    field = known_field(name)
    found, _, _ = analyse(noisy(field, level, 3) if level else field)
    assert not found.law_seen
    assert found.contenders == ()
    assert found.verdict.startswith("no law")


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_no_law_in_an_even_picture(level: float) -> None:
    grid = Grid(40, 40, 200.0, 200.0)
    found, _, drift = analyse(Field(np.full((97, 40, 40), level, np.float32), np.linspace(0, 34, 97), grid))
    assert not found.law_seen
    assert not drift.velocity.any()
    assert len(drift.empty_frames) == len(drift.times)


@pytest.mark.parametrize("name", ["C", "C-alt"])
def test_noise_bias_is_removed(name: str) -> None:
    case, field = find_preset(name), noisy(known_field(name), 0.02, 1)
    corrected, _, _ = analyse(field)
    broken, _, _ = analyse(field, load_settings(overrides={"weak.noise_correction": False}))
    good, bad = (relative_errors(found, case, name) for found in (corrected, broken))
    assert max(map(abs, good.values())) < 0.02
    assert min(abs(bad[term]) - 3 * abs(good[term]) for term in good) > 0


def test_cell_averages_are_corrected() -> None:
    """Treating cell averages as point values shifts a: the pitch tells which of the two the samples are."""
    field = known_field("C", 40, 97)
    points = Field(field.values, field.times, Grid(40, 40, 200.0 * 39 / 40, 200.0 * 39 / 40, pitch="nodes"))
    assert points.grid.dx == pytest.approx(field.grid.dx)
    right, wrong = (relative_errors(analyse(f)[0], find_preset("C"), "C") for f in (field, points))
    assert abs(wrong["grad_squared"]) > 2 * abs(right["grad_squared"])


def test_terms_of_the_users_own_are_fitted() -> None:
    settings = load_settings(
        overrides={
            "terms": {
                "decay": [{"density": "-u"}],
                "spread": [{"density": "u", "derivative": "xx"}, {"density": "u", "derivative": "yy"}],
            },
            "libraries": {"mine": ["decay", "spread"]},
        }
    )
    fit = analyse(known_field("B"), settings)[0].libraries["mine"].fit
    law = find_preset("B").law
    assert fit.coefficients["decay"] == pytest.approx(-law.u, rel=1e-3)
    assert fit.coefficients["spread"] == pytest.approx(law.laplacian, rel=1e-3)


@pytest.mark.parametrize("signs", [{"laplacian": "positive"}, {"grad_squared": "positive", "laplacian": "positive"}])
def test_sign_constraints_reach_every_library(signs: dict[str, str]) -> None:
    found, _, _ = analyse(known_field("C", 40, 97), load_settings(overrides={"regression.signs": signs}))
    for diagnosis in found.libraries.values():
        for name in signs:
            assert diagnosis.fit.coefficients.get(name, 0.0) >= 0
            assert (diagnosis.sweep.coefficients[:, [n == name for n in diagnosis.names]] >= 0).all()
