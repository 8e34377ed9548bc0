"""The identities of a law with a Cole–Hopf transform: verified to the scheme's order, and refused where broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from using_laws import LAWS, make_model, WIDE

from video2pde.field import Grid
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.using import analyse_model
from video2pde.using.identities import (
    Evolution,
    evolve,
    measure_identities,
    measure_moving_frame,
    periodic_plume,
    spread_linearly,
    Transform,
)

LOW, HIGH = 0.1, 0.7
DURATION = 40.0


def grid_of(n: int) -> Grid:
    return Grid(n, n + n // 4, 160.0, 200.0)


def drift_at(times: np.ndarray) -> np.ndarray:
    return np.stack([0.4 + 0.2 * np.sin(times / 9), -0.3 + 0.01 * times], axis=1)


def run(law: Model, n: int) -> Evolution:
    grid, times = grid_of(n), np.linspace(0, DURATION, n + 1)
    return evolve(law, periodic_plume(grid, LOW, HIGH), times, drift_at(times), grid)


def transform_of(law: Model) -> Transform:
    names = ("grad_squared", "u_grad_squared", "laplacian")
    return Transform(*(law.coefficient(name) for name in names), LOW, HIGH)


@pytest.mark.parametrize("name", ["C", "C-alt"])
def test_every_identity_is_verified_to_the_order_of_the_scheme(name: str) -> None:
    law = Model.of(LAWS[name])
    sizes = (48, 72, 108)
    residuals = [measure_identities(run(law, n), transform_of(law)) for n in sizes]
    for key in ("linear", "energy", "mass", "mean"):
        series = np.array([found[key] for found in residuals])
        order = -np.polyfit(np.log(sizes), np.log(series), 1)[0]
        assert 3.2 < order < 5.2, (key, series)
        assert series[-1] < 1e-4, (key, series)
    assert max(found["maximum"] for found in residuals) < 1e-12


def test_the_moving_frame_removes_the_drift_to_the_order_of_the_scheme() -> None:
    law = Model.of(LAWS["C"])
    errors = []
    for n in (48, 96):
        moving = run(law, n)
        still = evolve(law, moving.values[0], moving.times[[0, -1]], np.zeros((2, 2)), moving.grid)
        errors.append(measure_moving_frame(moving, still))
        wrong = replace(moving, shift=1.02 * moving.shift)
        assert measure_moving_frame(wrong, still) > 20 * errors[-1]
    assert 3.2 < np.log2(errors[0] / errors[1]) < 5.2


def test_plain_diffusion_conserves_the_content_to_rounding() -> None:
    law = Model.of({"laplacian": 1.5})
    found = measure_identities(run(law, 48), transform_of(law))
    assert found["mass"] < 1e-12
    assert found["linear"] < 1e-4


@pytest.mark.parametrize("changed", [{"a": 9.005 * 1.03}, {"beta": 0.666 * 1.03}, {"a2": 0.5}])
def test_the_identities_of_a_slightly_different_law_are_refused(changed: dict[str, float]) -> None:
    law = Model.of(LAWS["C"])
    seen = run(law, 72)
    right = measure_identities(seen, transform_of(law))
    wrong = measure_identities(seen, replace(transform_of(law), **changed))
    assert wrong["linear"] > 1e-3 > 30 * right["linear"]
    assert wrong["energy"] > 1e-3 > 10 * right["energy"]


def test_mirrored_edges_with_drift_and_clipping_break_the_conserved_mass() -> None:
    law = Model.of(LAWS["C"])
    closed = run(law, 48)
    transform = transform_of(law)
    exact = measure_identities(closed, transform)["mass"]
    over_edge = np.roll(closed.values[0], closed.grid.nx // 2, axis=1)
    edges = simulate(law, over_edge, closed.times, closed.grid, drift_at(closed.times), RolloutSettings(clip="off"))
    broken = Evolution(closed.times, edges.values, closed.shift, closed.grid)
    assert measure_identities(broken, transform)["mass"] > 1e-2 > 50 * exact
    clipped = replace(closed, values=np.clip(closed.values, 0, 0.55))
    assert measure_identities(clipped, transform)["linear"] > 1e-2


def test_the_exact_linear_solution_moves_and_spreads() -> None:
    grid = Grid(48, 56, 48.0, 56.0)
    theta = np.exp(-0.5 * ((grid.x - 20) ** 2)[None, :] / 9 - 0.5 * ((grid.y - 26) ** 2)[:, None] / 9)
    later = spread_linearly(theta, 0.5, 4.0, np.array([3.0, -2.0]), grid)
    expected = 9 / 13 * np.exp(-0.5 * ((grid.x - 23) ** 2)[None, :] / 13 - 0.5 * ((grid.y - 24) ** 2)[:, None] / 13)
    np.testing.assert_allclose(later, expected, atol=2e-7)


def test_the_transform_inverts_and_differentiates() -> None:
    u = np.linspace(LOW, HIGH, 41)
    for a, a2 in ((9.0, 0.0), (-4.0, 0.0), (0.0, 0.0), (0.0, 12.0), (5.0, -3.0)):
        transform = Transform(a, a2, 0.7, LOW, HIGH)
        step = 1e-5
        slope = (transform.theta(u + step) - transform.theta(u - step)) / (2 * step)
        np.testing.assert_allclose(transform.slope(u), slope, rtol=1e-6, atol=1e-9)
        assert transform.inverse(float(transform.theta(np.array(0.43)))) == pytest.approx(0.43, abs=1e-6)


def test_the_analysis_states_them_with_the_models_numbers() -> None:
    found = analyse_model(make_model(LAWS["C"], WIDE))
    by_title = {item.title: item for item in found.statements}
    assert found.kind == "Cole–Hopf"
    assert r"e^{13.52\,u}" in by_title["Linear equation"].latex
    assert "-121.8" in by_title["Energy law"].latex
    assert all(item.holds for item in found.statements)
    assert {group.name: round(group.value, 2) for group in found.groups}["gradient number"] == 10.82
    for title in ("Linear equation", "Energy law", "Conserved mass", "Growth of the content", "Moving frame"):
        order = by_title[title].order
        assert order is not None
        assert 3.2 < order < 5.2
    assert any("mirrored" in note for note in found.notes)


def test_the_analysis_says_that_the_films_edges_break_the_identities() -> None:
    model = make_model(LAWS["C"], WIDE)
    touching = periodic_plume(WIDE, 0.1, 0.8)
    found = analyse_model(model, np.roll(touching, WIDE.nx // 2, axis=1))
    edges = next(item for item in found.statements if item.title == "At the film's edges")
    assert edges.holds is False
    assert "crosses the edges" in edges.text
    assert "pixel noise" not in edges.text
