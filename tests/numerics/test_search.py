"""The search over subsets: against brute force, on columns that cannot be told apart, and on fields of known laws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from known_fields import assemble, known_field
from numpy.typing import NDArray

from video2pde.discovery.identifiability import diagnose_laws, draw_runs
from video2pde.discovery.regression import Normal
from video2pde.discovery.search import candidate_laws, Search, search_laws
from video2pde.discovery.subsets import walk_subsets
from video2pde.errors import SettingsError
from video2pde.recording.synth import find_preset, noisy
from video2pde.settings import load_settings, Settings
from video2pde.terms import libraries, searched
from video2pde.terms.symbol import damps

Array = NDArray[np.float64]
NAMES = ("a", "b", "c", "d", "e", "f", "drift")


def normal_of(theta: Array, b: Array, names: tuple[str, ...] = NAMES) -> Normal:
    norms = np.linalg.norm(theta, axis=0)
    unit, signal = theta / norms, float(np.linalg.norm(b))
    return Normal(names, unit.T @ unit, unit.T @ b / signal, norms, signal)


@pytest.fixture(scope="module")
def columns() -> tuple[Array, Array]:
    """Seven columns, the fourth of which the second and third make up."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(200, 7)) * np.array([1, 5, 0.1, 1, 2, 1, 1])
    theta[:, 3] = theta[:, 1] - 7 * theta[:, 2]
    return theta, theta @ np.array([1.0, 0, 3.0, 0, 0.4, 0, 0.7]) + 0.3 * rng.normal(size=200)


def left_by(theta: Array, b: Array, chosen: tuple[int, ...]) -> float:
    some = theta[:, [*chosen, 6]]
    return float(np.sum((b - some @ np.linalg.lstsq(some, b, rcond=None)[0]) ** 2) / (b @ b))


def test_walk_finds_what_brute_force_finds(columns: tuple[Array, Array]) -> None:
    theta, b = columns
    found = walk_subsets(normal_of(theta, b), [[name] for name in NAMES[:-1]], ["drift"])
    for size in range(1, 6):
        every = [s for s in combinations(range(6), size) if not {1, 2, 3} <= set(s)]
        expected = sorted(left_by(theta, b, s) for s in every)
        assert [each.left for each in found.best[size]] == pytest.approx(expected, rel=1e-9)
        assert left_by(theta, b, found.best[size][0].units) == pytest.approx(expected[0], rel=1e-9)
    assert found.best[3][0].units == (0, 2, 4)
    # a column that others make up is in no subset with them, and is named
    assert found.collinear == ((1, 2, 3),)
    assert 6 not in found.best


def test_units_enter_together_and_sizes_are_kept(columns: tuple[Array, Array]) -> None:
    theta, b = columns
    units = [["a", "c"], ["b"], ["e"], ["f"]]
    found = walk_subsets(normal_of(theta, b), units, ["drift"], most=3)
    assert set(found.best) == {1, 2, 3}
    assert found.best[3][0].units == (0, 2)
    assert found.best[3][0].left == pytest.approx(left_by(theta, b, (0, 2, 4)), rel=1e-9)
    assert all(0 not in each.units for each in found.best[1])
    # the drift counts with every subset: without it far more is left
    alone = walk_subsets(normal_of(theta, b), units, most=3)
    assert alone.best[3][0].left > 1.2 * found.best[3][0].left


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load_settings("quick", overrides={"search.over": "subsets", "run.workers": 1})


def search_field(name: str, settings: Settings, noise: float = 0.01) -> tuple[Search, set[tuple[str, ...]]]:
    """Search a noisy field of a known law; return the search, and the terms of those that are contenders."""
    weak, _ = assemble(noisy(known_field(name, 64, 150), noise, 0), settings)
    runs = draw_runs(weak.columns, settings)
    laws, found = candidate_laws(weak.system, runs, settings)
    assert found is not None
    seen = diagnose_laws(laws, weak.system, runs, settings)
    return found, {tuple(sorted(seen.libraries[each].robust)) for each in seen.contenders}


@pytest.mark.parametrize("name", ["A", "C", "Fisher"])
def test_a_known_law_stands_on_the_front_and_goes_on(name: str, settings: Settings) -> None:
    truth = find_preset(name).law.coefficients
    found, contenders = search_field(name, settings)
    law = next(law for law in found.front if len(law.terms) == len(truth))
    assert set(law.terms) == set(truth)
    assert law.goes_on
    assert law.frequency > 0.5
    assert law.coefficients == pytest.approx(truth, rel=0.05)
    assert tuple(sorted(truth)) in contenders
    assert len(found.going_on) <= settings.search.laws
    # what is smaller leaves far more, what is larger hardly less
    smaller = [each.unexplained for each in found.front if len(each.terms) < len(truth)]
    assert all(left > 2 * law.unexplained for left in smaller)
    assert found.front[-1].unexplained > 0.1 * law.unexplained


def test_sets_that_leave_hardly_more_than_the_best_of_their_size_go_on_beside_it(settings: Settings) -> None:
    """Two columns that are nearly one: whichever noise prefers, the other one is asked as well."""
    names = ("laplacian", "porous", "porous_squared", "u", "constant", "drift_x")
    terms = ("laplacian", "porous", "porous_squared", "u", "constant")
    wide = settings.model_copy(update={"search": settings.search.model_copy(update={"terms": terms, "laws": 3})})
    rng = np.random.default_rng(4)
    theta = rng.normal(size=(300, 6))
    theta[:, 2] = theta[:, 0] + 0.02 * rng.normal(size=300)
    b = theta @ np.array([1.0, 2.0, 0, 0, 0, 0.3]) + 0.2 * rng.normal(size=300)
    normal = normal_of(theta, b, names)
    found = search_laws(normal, [normal], wide)
    best = next(law for law in found.front if len(law.terms) == 2)
    beside = [set(law.terms) for law in found.others if len(law.terms) == 2]
    assert {frozenset(best.terms), *map(frozenset, beside)} == {
        frozenset({"laplacian", "porous"}),
        frozenset({"porous", "porous_squared"}),
    }
    # before larger laws of the front, whose last term means nothing
    assert [len(law.terms) for law in found.going_on].count(2) == 2
    assert len(found.going_on) == 3
    far = next(law for law in found.front if len(law.terms) == 1)
    assert all(law.unexplained > 0.5 * far.unexplained for law in found.others if len(law.terms) == 1)


def test_terms_that_make_each_other_up_are_named_and_never_in_one_law(settings: Settings) -> None:
    wide = settings.model_copy(
        update={"search": settings.search.model_copy(update={"terms": ("laplacian", "dxx", "dyy", "grad_squared")})}
    )
    found, _ = search_field("C", wide)
    assert found.inseparable == (("laplacian", "dxx", "dyy"),)
    assert all(not {"laplacian", "dxx", "dyy"} <= set(law.terms) for law in (*found.front, *found.others))
    # Δu and u_xx say what u_xx and u_yy say: one of the three ways is taken, the others are named
    three = next(law for law in found.front if len(law.terms) == 3)
    assert len(three.same) == 2
    assert {"grad_squared"} <= set(three.terms).intersection(*map(set, three.same))


def test_no_more_laws_go_on_than_are_asked_for(settings: Settings) -> None:
    few = settings.model_copy(update={"search": settings.search.model_copy(update={"laws": 1, "within": 1e9})})
    found, _ = search_field("C", few)
    assert [len(law.terms) for law in found.going_on] == [1]


def test_backward_diffusion_and_wrong_signs_are_set_aside(settings: Settings) -> None:
    held = settings.regression.model_copy(update={"signs": {"grad_squared": "negative"}})
    weak, _ = assemble(noisy(known_field("C", 64, 150), 0.01, 0), settings)
    runs = draw_runs(weak.columns, settings)
    normal = runs[0]
    found = search_laws(normal, runs[:3], settings.model_copy(update={"regression": held}))
    assert any(each.reason == "grad_squared is not negative" for each in found.set_aside)
    assert all(law.coefficients.get("grad_squared", -1) < 0 for law in found.front)
    for law in found.front:
        terms = [term for unit in searched(settings) for term in unit if term.name in law.terms]
        assert damps(terms, [law.coefficients[term.name] for term in terms])


def test_libraries_are_the_default_and_their_columns_do_not_change(settings: Settings) -> None:
    plain = load_settings("quick", overrides={"run.workers": 1})
    field = noisy(known_field("C", 64, 150), 0.01, 0)
    weak, _ = assemble(field, plain)
    laws, found = candidate_laws(weak.system, draw_runs(weak.columns, plain), plain)
    assert found is None
    assert laws == libraries(plain)
    wide, _ = assemble(field, settings)
    assert set(weak.system.names) < set(wide.system.names)
    assert np.array_equal(wide.system.columns(weak.system.names), weak.system.theta)
    assert np.array_equal(wide.system.b, weak.system.b)
    named = settings.model_copy(update={"regression": settings.regression.model_copy(update={"law": "C"})})
    assert candidate_laws(weak.system, [], named) == (libraries(named), None)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (("laplacian", "laplacain"), "did you mean 'laplacian'"),
        (("laplacian", "dxx+laplacian"), "'laplacian' is there twice"),
        (("laplacian", "drift_x"), "leave 'drift_x' out"),
    ],
)
def test_terms_that_cannot_be_searched_are_refused(terms: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        searched(load_settings(overrides={"search.terms": terms}))


def test_the_users_own_terms_take_part() -> None:
    own = load_settings(overrides={"terms": {"cube": [{"density": "u**3 - u"}]}, "search.terms": ("u", "dxx+dyy")})
    assert [tuple(term.name for term in unit) for unit in searched(own)] == [("u",), ("dxx", "dyy"), ("cube",)]
