"""What can be said about laws without a Cole–Hopf transform."""

from __future__ import annotations

import math

import numpy as np
import pytest
from using_laws import LAWS, make_model, TIMES, VELOCITY, WIDE

from video2pde.field import Windows
from video2pde.rollout.model import Model
from video2pde.terms import Term
from video2pde.using import analyse_model, Analysis, SavedModel, Statement
from video2pde.using.linear import find_equilibria, growth_rate, is_divergence, linearise, measure_front_speed


def statements(law: dict[str, float]) -> dict[str, Statement]:
    return {item.title: item for item in analyse_model(make_model(law, WIDE)).statements}


def test_a_fisher_front_runs_at_its_speed() -> None:
    found = statements(LAWS["Fisher"])
    front = found["Front speed"]
    assert f"{2 * math.sqrt(0.14 * 0.8):.4g}" in front.latex
    assert front.holds
    assert "u = 0 (unstable" in found["Equilibria"].text
    assert "u = 0.875 (stable" in found["Equilibria"].text


def test_the_front_check_would_notice_a_wrong_speed() -> None:
    measured, predicted = measure_front_speed(0.14, 0.16, 0.8)
    assert abs(measured / predicted - 1) < 0.01
    other, _ = measure_front_speed(0.14, 0.16, 0.8 * 1.2)
    assert abs(other / predicted - 1) > 0.05


def test_linear_growth_and_divergences() -> None:
    decay = statements(LAWS["B"])["Growth of the content"]
    assert decay.holds
    assert "decays e-fold in 50 s" in decay.text
    porous = statements(LAWS["porous"])["Conserved content"]
    assert porous.residual is not None
    assert porous.residual < 1e-12
    assert "Conserved content" not in statements({"porous": 2.0, "u_cubed": -0.1, "laplacian": 0.3})
    assert is_divergence(Term.of("mine", ("x", "u*u_y"), ("yy", "u**3")))
    assert not is_divergence(Term.of("mine", ("x", "u"), ("", "u**3")))


def test_a_diffusion_of_ones_own_is_known_by_what_it_does() -> None:
    half = Term.of("half", ("xx", "u/2"), ("yy", "u/2"))
    steep = Term.of("steep", ("", "u_x**2 + u_y**2"))

    def analyse(diffusion: float) -> Analysis:
        drift = (WIDE, Windows.split(len(TIMES)), TIMES, VELOCITY)
        return analyse_model(SavedModel.of([steep, half], {"steep": 2.0, "half": diffusion}, *drift))

    named, own = analyse_model(make_model({"grad_squared": 2.0, "laplacian": 0.4}, WIDE)), analyse(0.8)
    assert own.kind == named.kind == "Cole–Hopf"
    assert [group.value for group in own.groups] == pytest.approx([group.value for group in named.groups])
    assert [item.title for item in own.statements] == [item.title for item in named.statements]
    assert all(item.holds for item in own.statements if item.residual is not None)
    backward = analyse(-0.8)
    assert backward.kind == "ill-posed"
    assert "The diffusion Δ(u/2) is negative, -0.8" in backward.statements[0].text


def test_a_negative_laplacian_is_called_ill_posed() -> None:
    found = analyse_model(make_model({"grad_squared": 2.0, "laplacian": -0.3}, WIDE))
    assert found.kind == "ill-posed"
    growth = found.statements[0]
    assert growth.holds
    rate = 0.3 * (math.pi / WIDE.dx) ** 2
    assert f"{rate:.4g}" in growth.latex
    assert growth.residual is not None
    assert growth.residual < 0.01
    assert not any(item.title == "Linear equation" for item in found.statements)


@pytest.mark.parametrize("law", [{"biharmonic": 0.2, "laplacian": 1.0}, {"porous": -1.0, "laplacian": 0.1}])
def test_other_wrong_signs_are_ill_posed_too(law: dict[str, float]) -> None:
    assert analyse_model(make_model(law, WIDE)).kind == "ill-posed"


def test_well_posed_laws_are_not() -> None:
    for law in ({"biharmonic": -0.2, "laplacian": -0.1, "u": 0.1}, {"u": 0.5, "laplacian": 0.2}):
        assert analyse_model(make_model(law, WIDE)).kind != "ill-posed"


def test_without_diffusion_kinks_are_announced() -> None:
    assert "No diffusion" in statements({"grad_squared": 3.0})


def test_growth_rates_and_equilibria_of_a_cubic_law() -> None:
    law = Model.of({"u": -0.2, "u_squared": 1.2, "u_cubed": -1.0, "laplacian": 0.5})
    found = find_equilibria(law, -1.0, 2.0)
    np.testing.assert_allclose([point.level for point in found], np.sort(np.roots([-1.0, 1.2, -0.2, 0])), atol=1e-10)
    assert [point.rate < 0 for point in found] == [True, False, True]
    slopes = linearise(law, 0.0)
    assert growth_rate(slopes, 0.3, 0.4) == pytest.approx(-0.2 - 0.5 * 0.25)


@pytest.mark.parametrize(
    "law", [{"grad_squared": 300.0, "laplacian": 0.1}, {"laplacian": 1e-6}, {"u": 1e-9, "laplacian": 2.0}]
)
def test_extreme_coefficients_are_analysed_without_blowing_up(law: dict[str, float]) -> None:
    found = analyse_model(make_model(law, WIDE))
    assert found.statements
    for item in found.statements:
        assert item.residual is None or math.isfinite(item.residual)
        assert item.holds is not False
