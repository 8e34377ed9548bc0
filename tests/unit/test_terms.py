"""Terms in words, units, the user's own terms, and what the parser refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given, strategies

from video2pde.errors import SettingsError
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE, get_term, LIBRARIES, libraries, own_terms, Term
from video2pde.terms.parse import parse_density, U, U_X, U_Y
from video2pde.terms.stencil import central_weights
from video2pde.terms.words import coefficient_units, describe, intensity_degree, length_power, rescaling

WORDS = {
    "constant": ("1", "1/s"),
    "u": ("u", "1/s"),
    "u_squared": ("u²", "1/s"),
    "u_cubed": ("u³", "1/s"),
    "grad_squared": ("|∇u|²", "mm²/s"),
    "u_grad_squared": ("u |∇u|²", "mm²/s"),
    "laplacian": ("Δu", "mm²/s"),
    "porous": ("∇·(u∇u)", "mm²/s"),
    "porous_squared": ("∇·(u²∇u)", "mm²/s"),
    "u_laplacian": ("u Δu", "mm²/s"),
    "biharmonic": ("Δ²u", "mm⁴/s"),
    "saturation": ("u/(u + 1)", "1/s"),
    "porous_power": ("∇·(u^0.5 ∇u)", "mm²/s"),
    "uptake": ("u/(0.5 + u)", "1/s"),
    "dx": ("u_x", "mm/s"),
    "dy": ("u_y", "mm/s"),
    "dxx": ("u_xx", "mm²/s"),
    "dyy": ("u_yy", "mm²/s"),
    "dxy": ("u_xy", "mm²/s"),
    "drift_x": ("(−v_x(t) u_x)", "1"),
    "drift_y": ("(−v_y(t) u_y)", "1"),
}


def test_papers_names_are_in_the_catalogue() -> None:
    paper = {"constant", "u", "u_squared", "grad_squared", "u_grad_squared", "laplacian", "drift_x", "drift_y"}
    assert paper <= set(CATALOGUE)
    assert list(LIBRARIES) == ["A", "B", "C", "C-alt", "C-both", "Full", "R", "P"]


@pytest.mark.parametrize("name", list(WORDS))
def test_words_and_units(name: str) -> None:
    text, units = WORDS[name]
    assert describe(CATALOGUE[name]).text == text
    assert coefficient_units(CATALOGUE[name], "mm") == units


def test_a_leading_minus_is_bracketed() -> None:
    """Behind a coefficient it would read as a subtraction."""
    words = describe(Term.of("bistable", ("", "u*(1-u)*(u-0.2)")))
    assert words.text[0] + words.text[-1] == "()"
    assert words.latex.startswith(r"\left(")


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_latex_is_balanced(name: str) -> None:
    latex = describe(CATALOGUE[name]).latex
    assert latex
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")


@pytest.mark.parametrize(
    ("name", "power", "degree"), [("u", 0, 1), ("grad_squared", 2, 2), ("u_grad_squared", 2, 3), ("biharmonic", 4, 1)]
)
def test_scaling_powers(name: str, power: int, degree: int) -> None:
    term = CATALOGUE[name]
    assert (length_power(term), intensity_degree(term)) == (power, degree)
    assert rescaling(term, 7, 3, 2) == pytest.approx(7**power / 3 * 2.0 ** (1 - degree))


def test_terms_without_one_scale_say_so() -> None:
    mixed = Term.of("mixed", ("", "u + u**2"))
    assert intensity_degree(mixed) is None
    assert rescaling(mixed, gain=2) is None
    assert coefficient_units(Term.of("uneven", ("x", "u"), ("xx", "u"))) == "mixed"


def test_divergence_forms_differentiate_no_data() -> None:
    for name in ("laplacian", "porous", "porous_squared", "biharmonic", "dxx", "dyy", "dx", "dy", "drift_x"):
        assert not any(part.uses_gradient for part in CATALOGUE[name].parts)


# ----------------------------------------------------------------------------- the user's own terms

SETTINGS_FILE = """
[terms]
logistic = [{ density = "u*(1 - u)" }]
cross = [{ density = "u", derivative = "xy" }]

[libraries]
mine = ["logistic", "cross", "laplacian"]
"""


def test_terms_from_a_settings_file(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(SETTINGS_FILE)
    settings = load_settings(file=tmp_path / "settings.toml")
    terms = own_terms(settings)
    assert set(terms) == {"logistic", "cross"}
    assert sympy.expand(terms["logistic"].strong - (U - U**2)) == 0
    assert terms["cross"].jets == ((1, 1),)
    assert [term.name for term in libraries(settings)["mine"]] == ["logistic", "cross", "laplacian"]
    assert set(libraries(settings)) == {*LIBRARIES, "mine"}
    (tmp_path / "again.toml").write_text(settings.to_toml())
    assert load_settings(file=tmp_path / "again.toml") == settings


def test_terms_from_python() -> None:
    term = Term.of("burgers", ("x", "-u**2/2"))
    u, u_x = np.array([0.5, 0.2]), np.array([2.0, -1.0])
    assert term.evaluate({(0, 0): u, (1, 0): u_x}) == pytest.approx(-u * u_x)


def test_own_terms_need_their_own_names_and_known_parts() -> None:
    with pytest.raises(SettingsError, match="taken by the catalogue"):
        own_terms(load_settings(overrides={"terms": {"laplacian": [{"density": "u"}]}}))
    with pytest.raises(SettingsError, match="did you mean 'laplacian'"):
        get_term("laplacean")
    with pytest.raises(SettingsError, match="did you mean 'grad_squared'"):
        libraries(load_settings(overrides={"libraries": {"mine": ["grad_square"]}}))
    for wrong in ([], ["u", "u"], ["drift_x", "u"]):
        with pytest.raises(SettingsError, match="library 'mine'"):
            libraries(load_settings(overrides={"libraries": {"mine": wrong}}))
    for derivative in ("z", "xxxxx"):
        with pytest.raises(SettingsError, match="derivative"):
            Term.of("bad", (derivative, "u"))
    with pytest.raises(SettingsError, match="cannot name a term"):
        Term.of("not a name", ("", "u"))
    with pytest.raises(SettingsError, match="no parts"):
        Term.of("empty")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('echo hostile')",
        "u.__class__",
        "(lambda: u)()",
        "[u for u in (1,)]",
        "open('secret')",
        "eval('u')",
        "exec('import os')",
        "u if u else 1",
        "u; import os",
        "getattr(u, 'name')",
        "exp.__globals__",
        "exp(u, u)",
        "exp(*u)",
        "f'{u}'",
        "u and u_x",
        "u == 1",
        "u[0]",
        "u := 1",
        "w + 1",
        "v_x * u",
        "True",
        "'u'",
        "1j",
        "u // 2",
        "u % 2",
        "u @ u",
        "9**9**9",
        "u**(8**8)",
        "((u**8)**8)**8",
        "u**u",
        "u**0.5",
        "u**-9",
        "1e400",
        "10000000",
        "1/0",
        "log(0)",
        "sqrt(-1)",
        "",
        "u +",
        "(" * 150 + "u" + ")" * 40,
        "u" * 201,
        "u\x00",
    ],
)
def test_hostile_and_senseless_expressions_are_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_density(text)


@given(strategies.text(alphabet="u_xy+-*/()0123456789. expsin[]{}'\",:;=lambdaimport", max_size=60))
def test_any_text_gives_a_density_or_a_settings_error(text: str) -> None:
    try:
        expression = parse_density(text)
    except SettingsError:
        return
    assert expression.free_symbols <= {U, U_X, U_Y}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u*(1 - u)", U - U**2),
        ("-u_x**2 + +u_y", U_Y - U_X**2),
        ("0.3*u", sympy.Rational(3, 10) * U),
        ("sqrt(1 + u_x**2 + u_y**2)", sympy.sqrt(1 + U_X**2 + U_Y**2)),
        ("exp(-u)/u", sympy.exp(-U) / U),
        ("u**-2", U**-2),
    ],
)
def test_ordinary_expressions_are_read(text: str, expected: sympy.Expr) -> None:
    assert sympy.simplify(parse_density(text) - expected) == 0


def test_central_weights_are_the_textbooks() -> None:
    assert central_weights(1, 2) == pytest.approx((-0.5, 0, 0.5))
    assert central_weights(2, 2) == pytest.approx((1, -2, 1))
    assert central_weights(2, 4) == pytest.approx((-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12))
    assert central_weights(4, 2) == pytest.approx((1, -4, 6, -4, 1))
