"""Constraints: which terms they leave, what they make of laws, and what they refuse before anything is fitted."""

from __future__ import annotations

import pytest

from video2pde.cli.options import LawOptions, SettingsOptions
from video2pde.errors import InputError, SettingsError
from video2pde.settings import load_settings, Settings
from video2pde.study.plan import _check_shared, Plan
from video2pde.terms import CATALOGUE, libraries, searched, Term
from video2pde.terms.catalogue import constraints
from video2pde.terms.constraints import is_conserved, is_symmetric
from video2pde.terms.words import describe


def constrained(**given: object) -> Settings:
    return load_settings(overrides={key.replace("__", "."): value for key, value in given.items()})


def names(settings: Settings) -> dict[str, list[str]]:
    return {name: [term.name for term in terms] for name, terms in libraries(settings).items()}


def test_what_conserves_is_told_by_mathematics_not_by_how_it_is_written() -> None:
    moving = {"laplacian", "porous", "porous_squared", "porous_power", "biharmonic", "dx", "dy", "dxx", "dyy", "dxy"}
    moving |= {"drift_x", "drift_y"}
    assert {name for name, term in CATALOGUE.items() if is_conserved(term)} == moving
    # u u_xx + u_x² is a derivative though none is written outside, u u_xx alone is not
    assert is_conserved(Term.of("mine", ("xx", "u**2/2"), ("", "0*u")))
    assert is_conserved(Term.of("mine", ("", "u*u_x")))
    assert not is_conserved(CATALOGUE["u_laplacian"])


def test_what_is_the_same_in_a_mirror_or_turned() -> None:
    assert not is_symmetric(CATALOGUE["dx"], "mirror_x")
    assert is_symmetric(CATALOGUE["dx"], "mirror_y")
    assert not is_symmetric(CATALOGUE["dxy"], "mirror_y")
    assert is_symmetric(CATALOGUE["laplacian"], "rotation")
    assert not is_symmetric(CATALOGUE["dxx"], "rotation")
    assert is_symmetric(CATALOGUE["u_grad_squared"], "rotation")


def test_conservation_leaves_terms_in_divergence_form() -> None:
    # B, C, R and Full become A, which is there already
    assert names(constrained(constraints__conserve=True)) == {"A": ["laplacian"], "P": ["porous", "laplacian"]}
    units = searched(constrained(constraints__conserve=True))
    assert all(is_conserved(term) for unit in units for term in unit)
    assert len(units) == 5


def test_equal_coefficients_are_one_term() -> None:
    settings = constrained(constraints__equal=[["dxx", "dyy"]], regression__law="dxx,dyy,u")
    [terms] = libraries(settings).values()
    assert [term.name for term in terms] == ["dxx_and_dyy", "u"]
    assert describe(terms[0]).text == "Δu"
    # with one of them come all: the tensor of the search is dxx + dyy, and dxy
    units = searched(constrained(constraints__equal=[["dxx", "dyy"]]))
    assert ["dxx_and_dyy", "dxy"] in [[term.name for term in unit] for unit in units]


def test_what_is_known_is_in_every_law_and_no_candidate() -> None:
    settings = constrained(constraints__fixed={"laplacian": 0.5})
    laws = names(settings)
    assert "A" not in laws  # nothing of it would be left to fit
    assert all(terms[-1] == "laplacian" for terms in laws.values())
    assert ("laplacian",) not in [tuple(t.name for t in unit) for unit in searched(settings)]
    assert constraints(Settings()) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"constraints__fixed": {"laplacian": -0.5}, "constraints__positive": ["diffusion"]},
            "-0.5, and to be",
        ),
        ({"constraints__positive": ["u"], "constraints__negative": ["u"]}, "positive and negative"),
        ({"constraints__fixed": {"u": 1.0}, "constraints__conserve": True}, "does not conserve"),
        ({"constraints__conserve": True, "regression__law": "u,laplacian"}, "term 'u' cannot be in it"),
        ({"constraints__symmetry": "rotation", "regression__law": "dxx"}, "symmetry = 'rotation'"),
        ({"constraints__fixed": {"laplacian": 1.0}, "regression__law": "laplacian"}, "no law is left"),
        ({"constraints__equal": [["u"]]}, "two terms or more"),
        ({"constraints__equal": [["u", "u_squared"], ["u", "constant"]]}, "there twice"),
        ({"constraints__equal": [["dxx", "dyy"]], "constraints__fixed": {"dxx": 1.0}}, "fix each of them"),
        ({"constraints__fixed": {"laplacien": 1.0}}, "did you mean 'laplacian'"),
    ],
)
def test_contradictions_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        libraries(constrained(**given))


def test_options_are_settings() -> None:
    options = LawOptions(
        conserve=True, fix=("laplacian=0.5", "dx = -1e-3"), positive="porous, tensor", equal=("dxx,dyy",)
    )
    found = options.joined(SettingsOptions()).load().constraints
    assert found.conserve
    assert found.fixed == {"laplacian": 0.5, "dx": -0.001}
    assert found.positive == ("porous", "tensor")
    assert found.equal == (("dxx", "dyy"),)
    with pytest.raises(InputError, match="--fix laplacian: give a term"):
        LawOptions(fix=("laplacian",)).overrides()


def test_a_study_refuses_what_its_joint_fit_cannot_hold() -> None:
    settings = constrained(constraints__fixed={"u": 0.1})
    assert any("constraints.fixed" in line for line in _check_shared(Plan("", (), settings)))
    assert not list(_check_shared(Plan("", (), constrained(constraints__conserve=True))))
