"""Units, mirrors, rotations and shifts change the weak system as they must, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from known_fields import analyse, assemble, known_analysis, known_field, LAWS, rescaled

from video2pde.discovery.weak import weak_columns
from video2pde.field import Field
from video2pde.settings import load_settings, WeakSettings
from video2pde.terms import CATALOGUE, get_term
from video2pde.terms.words import rescaling

LENGTH, TIME, GAIN = 7.0, 3.0, 2.0
ALL = list(CATALOGUE)


@pytest.mark.parametrize(
    ("name", "length", "time", "gain"),
    [(name, LENGTH, TIME, GAIN) for name in LAWS] + [("C", LENGTH, 1, 1), ("C", 1, TIME, 1), ("C", 1, 1, GAIN)],
)
def test_units_change_coefficients_as_they_say(name: str, length: float, time: float, gain: float) -> None:
    before, _, _ = known_analysis(name)
    after, _, _ = analyse(rescaled(known_field(name), length, time, gain))
    for library, diagnosis in before.libraries.items():
        moved = after.libraries[library].fit
        assert moved.active == diagnosis.fit.active
        for term in diagnosis.fit.active:
            factor = rescaling(get_term(term), length, time, gain)
            assert factor is not None
            tolerance = max(1e-3 * diagnosis.fit.errors[term], 2e-3 * abs(diagnosis.fit.coefficients[term]))
            assert moved.coefficients[term] / factor == pytest.approx(diagnosis.fit.coefficients[term], abs=tolerance)
    assert after.contenders == before.contenders


@pytest.mark.parametrize(("name", "library"), [("A", "A"), ("C", "C")])
def test_offset_changes_nothing_where_the_law_allows_it(name: str, library: str) -> None:
    before, _, _ = known_analysis(name)
    after, _, _ = analyse(rescaled(known_field(name), offset=0.2))
    fit, moved = before.libraries[library].fit, after.libraries[library].fit
    assert moved.active == fit.active
    for term in fit.active:
        assert moved.coefficients[term] == pytest.approx(fit.coefficients[term], rel=2e-3)


def test_threshold_on_coefficients_depends_on_units() -> None:
    """The broken variant: a fixed λ on coefficients picks other terms when the length unit changes."""
    settings = load_settings(overrides={"regression.threshold_on": "coefficient", "regression.threshold": 0.5})
    field = known_field("C")
    here, _, _ = analyse(field, settings)
    there, _, _ = analyse(rescaled(field, length=1 / LENGTH), settings)
    assert here.libraries["C"].fit.active_terms == ("grad_squared", "laplacian")
    assert there.libraries["C"].fit.active_terms != here.libraries["C"].fit.active_terms


def test_derivatives_per_frame_would_hide_the_time_step() -> None:
    """The broken variant of the units of time: with Δt taken as 1, coefficients shrink by Δt."""
    field = known_field("C")
    per_frame = Field(field.values, np.arange(len(field), dtype=float), field.grid)
    wrong = analyse(per_frame)[0].libraries["C"].fit.coefficients["grad_squared"]
    assert wrong == pytest.approx(9.005 * field.dt, rel=0.01)
    assert abs(wrong / 9.005 - 1) > 0.5


def test_the_number_of_cores_changes_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are filtered in pieces that are smaller on more cores; each frame is summed by itself."""
    field = known_field("C").frames(slice(0, 50))
    found = []
    for cores in (1, 2, 3, 6):
        monkeypatch.setattr("video2pde.discovery.filtered.count_workers", lambda _, cores=cores: cores)
        columns = weak_columns(field, np.zeros((50, 2)), [CATALOGUE[n] for n in ALL], WeakSettings())
        found.append(columns.filtered.values)
    assert all(np.array_equal(found[0], other) for other in found[1:])


# ----------------------------------------------------------------------------- mirror, rotation, shift


def columns_at(field: Field, velocity: np.ndarray, centres: np.ndarray) -> dict[str, np.ndarray]:
    columns = weak_columns(field, velocity, [CATALOGUE[n] for n in ALL], WeakSettings())
    system = columns.sample(centres)
    return {**{name: system.theta[:, i] for i, name in enumerate(ALL)}, "b": system.b}


@pytest.fixture(scope="module")
def base() -> tuple[Field, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    field = known_field("C").frames(slice(0, 60))
    velocity = np.stack([0.3 + 0 * field.times, -0.2 + 0.01 * field.times], axis=1)
    columns = weak_columns(field, velocity, [CATALOGUE["u"]], WeakSettings())
    # inside on both sides of every shift and mirror below
    centres = columns.draw(300, np.random.default_rng(5)).centres
    centres = centres[(np.abs(centres[:, 1:] - 49.5) < 18).all(axis=1)]
    return field, velocity, centres, columns_at(field, velocity, centres)


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected).max() <= 2e-4 * np.abs(expected).max() + 1e-9


@pytest.mark.parametrize("axis", [1, 2])
def test_mirror(base, axis: int) -> None:
    field, velocity, centres, expected = base
    turned, moved = velocity.copy(), centres.copy()
    turned[:, 2 - axis] *= -1
    moved[:, axis] = field.values.shape[axis] - 1 - centres[:, axis]
    found = columns_at(replace(field, values=np.flip(field.values, axis)), turned, moved)
    odd = {1: ("dy", "dxy"), 2: ("dx", "dxy")}[axis]
    for name, column in expected.items():
        assert_same(found[name], -column if name in odd else column)


def test_transposition(base) -> None:
    field, velocity, centres, expected = base
    found = columns_at(
        replace(field, values=field.values.transpose(0, 2, 1)), velocity[:, ::-1].copy(), centres[:, [0, 2, 1]]
    )
    swaps = {"dx": "dy", "dxx": "dyy", "drift_x": "drift_y"}
    swaps |= {b: a for a, b in swaps.items()}
    for name, column in expected.items():
        assert_same(found[swaps.get(name, name)], column)


def test_shift_in_space_and_time(base) -> None:
    field, velocity, centres, expected = base
    shifted = replace(field, values=np.roll(field.values, (5, -4), axis=(1, 2)), times=field.times + 100)
    found = columns_at(shifted, velocity, centres + np.array([0, 5, -4]))
    for name, column in expected.items():
        assert_same(found[name], column)


def test_wrong_mirror_is_rejected(base) -> None:
    field, velocity, centres, expected = base
    moved = centres.copy()
    moved[:, 2] = field.values.shape[2] - 1 - centres[:, 2]
    found = columns_at(replace(field, values=np.flip(field.values, 2)), velocity, moved)
    with pytest.raises(AssertionError):
        assert_same(found["drift_x"], expected["drift_x"])


def test_same_seed_same_system() -> None:
    first, second = (assemble(known_field("A"))[0].system for _ in range(2))
    assert np.array_equal(first.theta, second.theta)
    assert np.array_equal(first.centres, second.centres)
    other = assemble(known_field("A"), load_settings(overrides={"run.seed": 1}))[0].system
    assert not np.array_equal(first.centres, other.centres)
