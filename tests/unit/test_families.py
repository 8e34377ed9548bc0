"""Terms with a parameter: read back from text, named, refused where they make no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from video2pde.calibration import Bootstrap, Calibration, Correction, find_derived
from video2pde.calibration.budget import STATISTICS
from video2pde.discovery.shapes import check_together, unknown_family
from video2pde.errors import InputError, SettingsError
from video2pde.estimate import Estimate
from video2pde.settings import load_settings, Settings
from video2pde.terms import CATALOGUE, libraries, searched, Term
from video2pde.terms.catalogue import LAWS
from video2pde.terms.families import FAMILIES, family_of
from video2pde.terms.parse import parse_density
from video2pde.terms.text import term_parts
from video2pde.terms.words import describe
from video2pde.using.schema import SavedTerm


@pytest.mark.parametrize("name", list(FAMILIES))
def test_members_are_read_back_from_text_with_their_parameter(name: str) -> None:
    family = FAMILIES[name]
    for value in (*family.trial, 0.3333, 1.7345):
        term = family.member(value)
        assert Term.of(term.name, *term_parts(term)) == term
        assert family_of(term) == (family, value)
        slope = family.slope(value)
        assert Term.of(slope.name, *term_parts(slope)) == slope


@pytest.mark.parametrize("name", list(FAMILIES))
def test_model_files_hold_any_member_and_nothing_else_of_that_name(name: str) -> None:
    def saved(term: Term) -> Term:
        parts = [{"derivative": d, "density": f} for d, f in term_parts(term)]
        return SavedTerm.model_validate({"name": name, "parts": parts, "value": 1.0}).term

    member = FAMILIES[name].member(1.7345)
    assert saved(member) == member
    with pytest.raises(InputError, match="not the catalogue's term"):
        saved(Term.of(name, ("", "u**2")))


def test_what_is_no_member_has_no_parameter() -> None:
    assert family_of(CATALOGUE["porous"]) is None
    assert family_of(Term.of("porous_power", ("xx", "u"))) is None


def test_words_have_the_parameter() -> None:
    assert describe(FAMILIES["porous_power"].member(1.7345)).text == "∇·(u^1.734 ∇u)"
    assert describe(FAMILIES["uptake"].member(0.25)).latex == r"\frac{u}{0.25 + u}"


def test_powers_that_are_not_whole_need_a_positive_base() -> None:
    assert parse_density("(u**2 + 0.01)**0.75").subs({"u": 0}).is_finite
    with pytest.raises(SettingsError, match="positive whatever u is"):
        parse_density("u**1.5")
    with pytest.raises(SettingsError, match="not allowed"):
        parse_density("((u**2 + 1)**4.5)**2.5")


@pytest.mark.parametrize("law", list(LAWS))
def test_named_laws_are_libraries_of_one(law: str) -> None:
    found = libraries(load_settings(overrides={"regression.law": law}))
    names = tuple(term.name for terms in found.values() for term in terms)
    assert names == LAWS[law]
    # a library that has the same terms keeps its name where its terms are listed
    listed = libraries(load_settings(overrides={"regression.law": ",".join(LAWS[law])}))
    assert len(listed) == 1


def test_a_parameter_that_is_given_is_not_estimated() -> None:
    law = {"regression.law": "porous_power,laplacian"}
    family = unknown_family(load_settings(overrides=law))
    assert family is not None
    assert family.symbol == "m"
    given = load_settings(overrides={**law, "regression.shapes": {"porous_power": 2.25}})
    assert unknown_family(given) is None
    assert family_of(next(iter(libraries(given).values()))[0]) == (FAMILIES["porous_power"], 2.25)
    assert unknown_family(Settings()) is None


def test_parameters_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"m = 9 .* give 0.1 to 4"):
        libraries(load_settings(overrides={"regression.law": "porous_power", "regression.shapes": {"porous_power": 9}}))
    with pytest.raises(SettingsError, match="one parameter is estimated at a time"):
        unknown_family(load_settings(overrides={"regression.law": "porous_power,uptake"}))
    law = {"regression.law": "porous_power,laplacian"}
    with pytest.raises(SettingsError, match="a parameter that is given"):
        check_together(load_settings(overrides={**law, "constraints.fixed": {"laplacian": 1.0}}))
    with pytest.raises(SettingsError, match="goes without known coefficients"):
        check_together(load_settings(overrides={**law, "maps.vary": {"laplacian": "space"}}))


def test_a_search_takes_a_family_where_it_is_listed() -> None:
    settings = load_settings(overrides={"search.over": "subsets", "search.terms": ("laplacian", "porous_power")})
    assert [unit[0].name for unit in searched(settings)] == ["laplacian", "porous_power"]
    family = unknown_family(settings)
    assert family is not None
    assert not any(term.name in FAMILIES for unit in searched(Settings()) for term in unit)


def calibrated(values: dict[str, float], errors: float, **more: Any) -> Calibration:
    """Return a calibrated law whose replicates scatter independently by a share of each coefficient."""
    rng = np.random.default_rng(0)
    truth = np.array(list(values.values()))
    draws = truth * (1 + errors * rng.standard_normal((4000, len(truth))))
    own = 1.96 * errors * np.abs(truth)
    boot: Any = Bootstrap(5, 4000, draws, 0 * own, truth, truth - own, truth + own, np.zeros((1, 2)), ())
    estimates = {name: Estimate(v, v - h, v + h) for name, v, h in zip(values, truth, own, strict=True)}
    line = Correction(STATISTICS, 0 * own, own)
    nothing: Any = None
    terms = tuple(CATALOGUE[name] for name in values)
    return Calibration("x", terms, estimates, {}, nothing, (), True, boot, (line,), **more)


def test_threshold_and_level_of_a_bistable_reaction() -> None:
    """k u (1 − u)(u − α) with k = 0.2 and α = 0.3, and the spread of the replicates' own roots."""
    law = calibrated({"u": -0.06, "u_squared": 0.26, "u_cubed": -0.2, "laplacian": 0.8}, 0.005)
    threshold, level = find_derived(law)
    assert (threshold.symbol, level.symbol) == ("α", "β")
    assert threshold.estimate.value == pytest.approx(0.3)
    assert level.estimate.value == pytest.approx(1.0)
    assert law.bootstrap is not None
    c1, c2, c3, _ = law.bootstrap.draws.T
    roots = (-c2 + np.sqrt(c2**2 - 4 * c1 * c3)) / (2 * c3)
    assert threshold.estimate.high - threshold.estimate.low == pytest.approx(2 * 1.96 * roots.std(), rel=0.05)


def test_the_level_of_growth_and_what_has_none() -> None:
    [level] = find_derived(calibrated({"u": 0.14, "u_squared": -0.16, "laplacian": 0.8}, 0.01))
    assert level.symbol == "K"
    assert level.estimate.value == pytest.approx(0.875)
    assert "grows towards" in level.words()
    assert find_derived(calibrated({"u": -0.14, "u_squared": -0.16}, 0.01)) == ()
    assert find_derived(calibrated({"u": -0.14, "u_squared": 0.16}, 0.01)) == ()
    assert find_derived(calibrated({"u": -0.1, "u_squared": 0.1, "u_cubed": -0.2}, 0.01)) == ()
    fitted = calibrated({"porous_power": 3.0}, 0.01, parameters={"m": Estimate(1.7, 1.6, 1.8)})
    assert find_derived(fitted)[0].to_json()["symbol"] == "m"
