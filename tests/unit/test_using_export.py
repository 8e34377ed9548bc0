"""Exports as text: they say what the law says, and nothing in a file can break out of a script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

from video2pde.errors import InputError
from video2pde.field import Grid, Windows
from video2pde.rollout.equation import write_equation
from video2pde.terms import Term
from video2pde.terms.term import jet_symbol
from video2pde.using import export_model, SavedModel

GRID = Grid(20, 24, 40.0, 48.0, "µm")
TIMES = np.linspace(0.0, 3.0, 31)
VELOCITY = np.stack([0.5 + 0 * TIMES, -0.3 + 0 * TIMES], axis=1)
OWN = Term.of("mine", ("x", "u**2*u_y"), ("yy", "tanh(u)"), ("", "sqrt(u)*u_x"))
LAWS: dict[str, dict[str, float]] = {
    "A": {"laplacian": 1.5},
    "B": {"u": -0.02, "laplacian": 1.2},
    "C": {"grad_squared": 9.005, "laplacian": 0.666},
    "C-alt": {"u_grad_squared": 12.0, "laplacian": 0.8},
    "Fisher": {"u": 0.14, "u_squared": -0.16, "laplacian": 0.8},
    "porous": {"porous": 2.0, "laplacian": 0.3},
    "all": {"constant": 0.01, "u_cubed": -0.1, "porous_squared": 0.2, "u_laplacian": 1.0, "biharmonic": -0.1},
}


def make(law: dict[str, float], own: Term | None = None, path: str = "") -> SavedModel:
    terms: list[Term | str] = [*law]
    values = dict(law)
    if own is not None:
        terms.append(own)
        values[own.name] = 0.7
    return SavedModel.of(terms, values, GRID, Windows.split(31), TIMES, VELOCITY, path=path)


def right_side_of(script: str) -> sympy.Expr:
    """Run an exported SymPy script; give u_t with derivatives carried out as jets u, u_x, … and v_x = v_y = 0."""
    space: dict[str, Any] = {"__name__": "law"}
    exec(compile(script, "law.py", "exec"), space)
    u, x, y = space["u"], space["x"], space["y"]
    found = space["equation"].rhs.subs(space["numbers"]).doit()
    found = found.subs({space["v_x"]: 0, space["v_y"]: 0})
    jets = {(i, j): jet_symbol((i, j)) for i in range(5) for j in range(5 - i)}
    for (i, j), symbol in sorted(jets.items(), key=lambda item: -sum(item[0])):
        found = found.subs(u.diff(x, i, y, j) if i + j else u, symbol)
    return found


@pytest.mark.parametrize("name", LAWS)
def test_the_sympy_export_is_the_law(name: str) -> None:
    model = make(LAWS[name], OWN)
    expected = sum(c * t.strong for t, c in zip(model.law.terms, model.law.coefficients, strict=True))
    numbers = {jet_symbol((i, j)): 0.3 + 0.17 * i - 0.23 * j for i in range(5) for j in range(5 - i)}
    found = right_side_of(export_model(model, "sympy"))
    assert float(found.subs(numbers)) == pytest.approx(float(expected.subs(numbers)), rel=1e-12)
    assert float(right_side_of(export_model(make(LAWS[name]), "sympy")).subs(numbers)) != pytest.approx(
        float(expected.subs(numbers)), rel=1e-3
    )


@pytest.mark.parametrize("name", LAWS)
def test_every_script_compiles(name: str) -> None:
    for form in ("python", "pypde", "sympy"):
        compile(export_model(make(LAWS[name], OWN), form), form, "exec")
        compile(export_model(make({}), form), form, "exec")


def test_latex_has_numbers_intervals_and_units() -> None:
    text = export_model(make(LAWS["C"]), "latex")
    assert r"u_t + \mathbf{v}(t)\cdot\nabla u = 9.005\,\left|\nabla u\right|^{2} + 0.666\,\Delta u" in text
    assert r"\textmu{}m$^2$/s" in text
    assert text.count("{") == text.count("}")
    assert r"10^{-7}" in export_model(make({"laplacian": -2.5e-7}), "latex")


def test_an_equation_starts_with_its_sign() -> None:
    model = make({"constant": -0.5, "u": 2.0})
    words = model.law.equation
    assert words.text == "u_t + v(t)·∇u = −0.5 + 2 u"
    assert write_equation((), ()).text == "u_t + v(t)·∇u = 0"


def test_json_is_the_model_file() -> None:
    model = make(LAWS["C"], OWN)
    assert SavedModel.parse(export_model(model, "json")) == model


STUB = "import sys; from unittest.mock import MagicMock; sys.modules[__name__] = MagicMock()\n"
CODE = "import os;os.mkdir(str(7331))"
HOSTILE = (
    f"<<SIZE>>;{CODE}#",
    f"<<DRIFT>>\n{CODE}\n",
    f"<<COEFFICIENTS>>\n{CODE}",
    f'"""\n{CODE}\n"""',
    f"'\n{CODE}\n'",
    f"\\\n{CODE}",
    f"<<<<UNIT>>SIZE>>;{CODE}#",
    f"{{{CODE}}}",
    f"x\u2028{CODE}",
    f"#\r{CODE}",
    f"%s);{CODE}#",
)


def hostile_models() -> list[SavedModel]:
    """Models as a file may hold them, with code in each text in turn; those that a file may not hold are left out."""
    plain = make(LAWS["C"], OWN).model_dump(by_alias=True)
    models = []
    for text in HOSTILE:
        places = [{"grid": {"unit": text}}, {"provenance": {"path": text}}]
        places += [
            {"terms": {"units": unit}, "provenance": {"path": text}} for unit in (text, "<<SOURCE>>", "<<SIZE>>")
        ]
        for place in places:
            changed = json.loads(json.dumps(plain))
            for key, entries in place.items():
                for target in changed[key] if isinstance(changed[key], list) else [changed[key]]:
                    target.update(entries)
            try:
                models.append(SavedModel.parse(json.dumps(changed)))
            except InputError:
                continue
    return models


@pytest.mark.parametrize("form", ["python", "pypde", "sympy"])
def test_no_text_of_a_model_file_becomes_code(form: str, tmp_path: Path) -> None:
    """Every script is run: the folder that the texts would make is not there afterwards."""
    (tmp_path / "pde.py").write_text(STUB)
    scripts = []
    for number, model in enumerate(hostile_models()):
        scripts.append(tmp_path / f"law{number}.py")
        scripts[-1].write_text(export_model(model, form), encoding="utf-8", newline="\n")  # type: ignore[arg-type]
    assert len(scripts) > 2 * len(HOSTILE)
    driver = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path)"
    subprocess.run([sys.executable, "-c", driver, *map(str, scripts)], check=True, cwd=tmp_path)
    assert not (tmp_path / "7331").exists()


def test_texts_of_a_model_are_kept_as_they_are() -> None:
    path = 'films/it\'s "one" <<SIZE>>.mp4'
    space: dict[str, Any] = {"__name__": "law"}
    exec(compile(export_model(make(LAWS["C"], path=path), "python"), "law.py", "exec"), space)
    assert space["SOURCE"] == path
    assert space["UNIT"] == "µm"
    assert space["UNITS"] == {"c_grad_squared": "µm²/s", "c_laplacian": "µm²/s"}
    assert space["EQUATION"].startswith("u_t")


def test_an_unknown_form_is_named() -> None:
    with pytest.raises(InputError, match="'fortran'"):
        export_model(make(LAWS["C"]), "fortran")  # type: ignore[arg-type]
