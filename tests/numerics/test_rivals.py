"""What says as much as a law that passes: a simpler one seen through a response curve, or under light that changes."""

from __future__ import annotations

import pytest

from video2pde.fit.explain import _light_like, _response_like
from video2pde.fit.suspects import answered_by, OF_LIGHT, STEADY_LIGHT, SUSPECTS
from video2pde.rollout.model import Model
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE


@pytest.mark.parametrize(
    ("coefficients", "said"),
    [
        ({"grad_squared": 1.0, "laplacian": 1.0}, "diffusion alone"),
        ({"grad_squared": 9.0, "laplacian": 0.7}, ""),
        ({"u_grad_squared": 14.0, "laplacian": 1.0}, ""),
        ({"grad_squared": 21.9, "u_grad_squared": -26.8, "laplacian": 1.08}, "|∇u|² alone"),
        ({"grad_squared": 21.9, "u_grad_squared": -26.8, "u": 0.1, "laplacian": 1.08}, ""),
        ({"u": -0.026, "u_squared": -0.013, "laplacian": 1.2}, "decay alone"),
        ({"u": 0.1, "u_squared": -0.09, "laplacian": 1.1}, ""),  # growth: no curve makes it of anything simpler
        ({"u": -0.026, "u_squared": -0.05, "laplacian": 1.2}, ""),
        ({"u": -0.03, "laplacian": 1.2}, ""),
    ],
)
def test_a_law_that_a_response_curve_makes_of_a_simpler_one(coefficients: dict[str, float], said: str) -> None:
    terms = tuple(CATALOGUE[name] for name in coefficients)
    words = _response_like(Model(terms, tuple(coefficients.values())))
    assert words.startswith(said)
    assert bool(words) == bool(said)


@pytest.mark.parametrize(
    ("coefficients", "said"),
    [
        ({"constant": 0.002, "u": -0.02, "laplacian": 1.5}, True),
        ({"constant": -0.002, "u": 0.02, "laplacian": 1.5}, False),
        ({"u": -0.02, "laplacian": 1.5}, False),
        ({"constant": 0.004, "u": -0.04, "grad_squared": 9.0, "laplacian": 0.7}, False),
    ],
)
def test_a_background_that_stays_while_dye_fades_may_be_light_that_makes_up_for_it(
    coefficients: dict[str, float], said: bool
) -> None:
    terms = tuple(CATALOGUE[name] for name in coefficients)
    assert bool(_light_like(Model(terms, tuple(coefficients.values())))) == said


def test_light_that_is_known_to_be_steady_makes_up_for_nothing() -> None:
    """``none`` leaves the light as it is, as the paper does, and claims nothing."""
    for said, known in (("steady", True), ("none", False), ("auto", False)):
        settings = load_settings(overrides={"recording.illumination": said}).recording
        assert (STEADY_LIGHT in answered_by(settings)) == known
    assert set(OF_LIGHT) <= {suspect.name for suspect in SUSPECTS}
