"""The catalogue of known-truth cases: presets, overrides and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.recording.synth import Case, find_preset, Law, make_case, Plume, PRESETS


def test_presets_state_the_laws_of_the_libraries() -> None:
    terms = {name: set(case.law.coefficients) for name, case in PRESETS.items()}
    assert terms == {
        "A": {"laplacian"},
        "B": {"u", "laplacian"},
        "C": {"grad_squared", "laplacian"},
        "C-alt": {"u_grad_squared", "laplacian"},
        "Fisher": {"u", "u_squared", "laplacian"},
        "drift": set(),
        "noise": set(),
        "static": set(),
    }
    assert PRESETS["C"].law == Law(grad_squared=9.005, laplacian=0.666)
    assert PRESETS["drift"].drift.mean != (0.0, 0.0)
    assert PRESETS["static"].drift.mean == PRESETS["noise"].drift.mean == (0.0, 0.0)


def test_overrides_change_only_what_is_named() -> None:
    case = make_case("c", coefficients={"laplacian": 0.9}, background=0.2, peak=0.5, seed=9, duration=10.0, swing=0.0)
    assert case.law == Law(grad_squared=9.005, laplacian=0.9)
    assert (case.background, case.plume.peak, case.plume.seed, case.duration) == (0.2, 0.5, 9, 10.0)
    assert (case.drift.swing, case.drift.period, case.drift.mean) == (0.0, 10.0, PRESETS["C"].drift.mean)
    assert make_case("C") == PRESETS["C"]


def test_plume_is_asymmetric_seeded_and_as_high_as_stated() -> None:
    axis = np.linspace(-60, 60, 241)
    first, other = (Plume(0.8, seed=seed).blobs()(axis, axis) for seed in (1, 2))
    assert first.max() == pytest.approx(0.8, abs=2e-3)
    assert np.array_equal(first, Plume(0.8, seed=1).blobs()(axis, axis))
    for mirrored in (first[::-1], first[:, ::-1], first.T, other):
        assert np.abs(first - mirrored).max() > 0.1


def test_path_is_centred_in_the_picture() -> None:
    case = PRESETS["C"]
    (x0, y0), (x1, y1) = case.position(0.0), case.position(case.duration)
    assert (x0 + x1, y0 + y1) == pytest.approx((0.0, 0.0))
    assert (x1 - x0, y1 - y0) == pytest.approx((0.2 * 34, -0.12 * 34))


def test_refusals_name_the_value_and_the_cure() -> None:
    with pytest.raises(InputError, match=r"no case is called 'D'; cases: A, B, C"):
        find_preset("D")
    with pytest.raises(InputError, match=r"no term is called 'u_cubed'; terms: constant"):
        make_case("A", coefficients={"u_cubed": 1.0})
    with pytest.raises(InputError, match="ill-posed"):
        make_case("A", coefficients={"laplacian": -1.0})
    with pytest.raises(InputError, match="kinks"):
        Law(grad_squared=1.0)
    with pytest.raises(InputError, match="finite"):
        Law(u=float("nan"))
    with pytest.raises(InputError, match="range 0 to 1"):
        make_case("C", background=0.5, peak=0.6)
    with pytest.raises(InputError, match="background"):
        make_case("C", background=-0.1)
    with pytest.raises(InputError, match="positive time"):
        Case("x", duration=0.0)
