"""Models: what they accept, and what is refused."""

from __future__ import annotations

import math

import pytest

from video2pde.errors import InputError, SettingsError
from video2pde.rollout.model import Model
from video2pde.terms import CATALOGUE, Term


def test_a_model_is_built_from_names() -> None:
    model = Model.of({"grad_squared": 9, "laplacian": 0.5}, (0.9, 1.1))
    assert [term.name for term in model.terms] == ["grad_squared", "laplacian"]
    assert model.coefficient("laplacian") == 0.5
    assert model.coefficient("u") == 0.0
    assert model.with_measured_drift().drift_scale == (1.0, 1.0)


def test_own_terms_are_found() -> None:
    own = {"mine": Term.of("mine", ("", "u*(1 - u)"))}
    assert Model.of({"mine": 2.0}, own=own).terms == (own["mine"],)
    with pytest.raises(SettingsError, match="unknown term 'mine'"):
        Model.of({"mine": 2.0})


def test_viscosity_joins_the_laplacian() -> None:
    assert Model.of({"u": 1.0, "laplacian": 0.5}).with_viscosity(0.01).coefficients == (1.0, 0.51)
    assert Model.of({"u": 1.0}).with_viscosity(0.01).coefficient("laplacian") == 0.01
    plain = Model.of({"u": 1.0})
    assert plain.with_viscosity(0.0) is plain


def test_bad_models_are_refused() -> None:
    u = CATALOGUE["u"]
    with pytest.raises(InputError, match="as many coefficients"):
        Model((u,), ())
    with pytest.raises(InputError, match="occurs twice"):
        Model((u, u), (1.0, 2.0))
    with pytest.raises(InputError, match="drift_scale"):
        Model((CATALOGUE["drift_x"],), (1.0,))
    with pytest.raises(InputError, match="finite"):
        Model((u,), (math.nan,))
