"""The solvers behind known-truth recordings: exact, convergent, and obeying the law they state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from video2pde.errors import InputError, StageError
from video2pde.field import Grid
from video2pde.recording.synth import Case, Drift, exact_field, Law, make_case, noisy, Plume, PRESETS, sample_case
from video2pde.recording.synth.solvers import evolve_cole_hopf, integrate_spectrally
from video2pde.recording.synth.spectral import Sampler

LAWS = ["A", "B", "C", "C-alt", "Fisher", "drift", "static"]


def sample_points(case, y, x, times, **options):
    return np.array(list(sample_case(case, y, x, (0.0, 0.0), times, **options)))


def sample_snapshots(snapshots, points, side):
    sampler = Sampler(points, points, 0.0, 0.0, side)
    return np.array([sampler(snapshot, 0.0, 0.0) for snapshot in snapshots])


# ------------------------------------------------------------------ the law, by finite differences


def find_residual(case: Case, law: Law, velocity_scale: float = 1.0) -> float:
    """Return max|u_t + v·∇u − Σ cT(u)| / max|u_t|, by central differences of order 6 (space) and 4 (time)."""
    h, dt, now = 0.25, 0.04, 4.0
    axis = np.arange(-45, 45 + h / 2, h)
    u = sample_points(case, axis, axis, now + dt * np.arange(-2, 3))
    rate = ((u[0] - u[4]) + 8 * (u[3] - u[1])) / (12 * dt)
    first = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    second = {1: 3 / 2, 2: -3 / 20, 3: 1 / 90}
    mid = u[2]

    def shift(values, offset, axis):
        return np.roll(values, -offset, axis)[3:-3, 3:-3]

    gradient = [sum(w * (shift(mid, j, a) - shift(mid, -j, a)) for j, w in first.items()) / h for a in (0, 1)]
    bend = [sum(w * (shift(mid, j, a) + shift(mid, -j, a)) for j, w in second.items()) for a in (0, 1)]
    core = mid[3:-3, 3:-3]
    laplacian = (bend[0] + bend[1] - 2 * 49 / 18 * core) / h**2
    squared = gradient[0] ** 2 + gradient[1] ** 2
    vx, vy = (velocity_scale * float(v) for v in case.drift.velocity(now))
    rhs = law.constant + law.u * core + law.u_squared * core**2 + law.grad_squared * squared
    rhs += law.u_grad_squared * core * squared + law.laplacian * laplacian - vx * gradient[1] - vy * gradient[0]
    left = rate[3:-3, 3:-3]
    return float(np.abs(left - rhs).max() / max(np.abs(left).max(), 1e-3))


@pytest.mark.parametrize("name", LAWS)
def test_field_obeys_its_law(name: str) -> None:
    case = PRESETS[name]
    assert find_residual(case, case.law) < 1e-4


@pytest.mark.parametrize("name", ["A", "B", "C", "C-alt", "Fisher"])
def test_residual_rejects_a_wrong_coefficient(name: str) -> None:
    case = PRESETS[name]
    for term, value in case.law.coefficients.items():
        assert find_residual(case, replace(case.law, **{term: 1.02 * value})) > 1e-3, term


def test_residual_rejects_a_wrong_drift() -> None:
    case = PRESETS["C"]
    assert find_residual(case, case.law, velocity_scale=1.02) > 5e-4


def test_every_term_at_once_obeys_its_law() -> None:
    law = Law(0.002, -0.03, 0.02, 2.0, 3.0, 0.9)
    case = Case("all", law, Drift((0.2, -0.1), swing=0.2), Plume(0.6, seed=3), 0.15)
    assert find_residual(case, law) < 1e-4


# ------------------------------------------------------------------ exact solutions


@pytest.mark.parametrize("name", ["A", "B", "drift"])
def test_linear_laws_match_gaussians_in_closed_form(name: str) -> None:
    case = PRESETS[name]
    y, x = np.linspace(-80, 80, 61), np.linspace(-95, 95, 71)
    times = np.array([0.0, 0.1, 5.0, 34.0])
    for time, found in zip(times, sample_points(case, y, x, times), strict=True):
        px, py = (float(value) for value in case.position(time))
        grown = math.exp(case.law.u * time)
        blobs = case.plume.blobs().spread(2 * case.law.laplacian * time)
        expected = grown * (case.background + blobs(y - py, x - px))
        assert np.abs(found - expected).max() < 1e-7


def test_cole_hopf_matches_a_direct_integral_where_u_is_small_and_the_ratio_is_64() -> None:
    case = make_case("C", coefficients={"grad_squared": 32.0, "laplacian": 0.5}, drift=(0.0, 0.0), peak=0.85)
    blobs, ratio, time = case.plume.blobs(), 64.0, 6.0
    y, x = np.array([-60.0, -31.0, -3.0, 2.5, 40.0]), np.array([-58.0, -24.0, 1.0, 33.0])
    found = sample_points(case, y, x, [time])[0] - case.background
    h, width = 0.125, math.sqrt(2 * 0.5 * time)
    axis = np.arange(-70, 70, h)
    theta = np.expm1(ratio * blobs(axis, axis))
    for i, yi in enumerate(y):
        for j, xj in enumerate(x):
            distance = (axis[:, None] - yi) ** 2 + (axis[None, :] - xj) ** 2
            mean = float((theta * np.exp(-distance / (2 * width**2))).sum()) * h**2 / (2 * np.pi * width**2)
            assert found[i, j] == pytest.approx(math.log1p(mean) / ratio, abs=1e-7)
    assert found.min() < 1e-6 < 0.5 < found.max()


def test_cole_hopf_agrees_with_the_pseudo_spectral_solver() -> None:
    case = PRESETS["C"]
    times, points = np.array([0.0, 0.3, 2.0, 8.0]), np.linspace(-60, 60, 121)
    exact = sample_snapshots(evolve_cole_hopf(case, times, 256.0, 0.5), points, 256.0)
    other = sample_snapshots(integrate_spectrally(case, times, 256.0, 0.75), points, 256.0)
    assert np.abs(exact - other).max() < 1e-6
    wrong = replace(case, law=Law(grad_squared=9.005 * 1.001, laplacian=0.666))
    broken = sample_snapshots(evolve_cole_hopf(wrong, times, 256.0, 0.5), points, 256.0)
    assert np.abs(broken - other).max() > 1e-5


def test_negative_gradient_coefficient_is_solved_too() -> None:
    case = make_case("C", coefficients={"grad_squared": -2.0, "laplacian": 0.9})
    assert find_residual(case, case.law) < 1e-4


def test_pseudo_spectral_solver_reproduces_the_heat_equation() -> None:
    case = PRESETS["B"]
    times, points = np.array([0.0, 10.0]), np.linspace(-50, 50, 41)
    found = sample_snapshots(integrate_spectrally(case, times, 256.0, 1.0), points, 256.0)[1]
    blobs = case.plume.blobs().spread(2 * case.law.laplacian * 10)
    expected = math.exp(case.law.u * 10) * (case.background + blobs(points, points))
    assert np.abs(found - expected).max() < 1e-8


# ------------------------------------------------------------------ convergence


def test_etdrk4_converges_with_order_four() -> None:
    case = replace(PRESETS["C-alt"], plume=Plume(0.8, seed=25, size=0.8))
    times, points = np.array([4.0]), np.linspace(-40, 40, 81)
    steps = [1.0, 0.5, 0.25]
    runs = [
        sample_snapshots(integrate_spectrally(case, times, 160.0, 0.8, step), points, 160.0)
        for step in (*steps, 0.03125)
    ]
    errors = [np.abs(run - runs[-1]).max() for run in runs[:-1]]
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 3.5 < order < 4.6, errors


def test_space_converges_faster_than_any_power() -> None:
    case = PRESETS["C-alt"]
    times, points = np.array([2.0]), np.linspace(-50, 50, 81)
    runs = [
        sample_snapshots(integrate_spectrally(case, times, 240.0, spacing, 0.1), points, 240.0)
        for spacing in (1.2, 1.0, 0.8, 0.5)
    ]
    errors = [np.abs(run - runs[-1]).max() for run in runs[:-1]]
    orders = [
        math.log(errors[0] / errors[1]) / math.log(1.2),
        math.log(errors[1] / errors[2]) / math.log(1.25),
    ]
    assert min(orders) > 8, errors
    assert errors[2] < 1e-7


def test_domain_does_not_matter() -> None:
    points, times = np.linspace(-95, 95, 40), np.array([0.0, 34.0])
    for name in ("A", "C"):
        small, large = (sample_points(PRESETS[name], points, points, times, domain=side) for side in (256.0, 320.0))
        assert np.abs(small - large).max() < 1e-7, name


def test_a_domain_or_grid_that_cannot_hold_the_field_is_refused() -> None:
    points = np.linspace(-10, 10, 5)
    for options in ({"domain": 90.0}, {"spacing": 3.0}):
        for name in ("C", "C-alt"):
            with pytest.raises(StageError, match="larger domain or a finer spacing"):
                sample_points(PRESETS[name], points, points, [0.0, 2.0, 20.0], **options)


# ------------------------------------------------------------------ background, cells, pictures


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Law(laplacian=1.0), lambda _: 0.2),
        (Law(u=-0.03, laplacian=1.0), lambda t: 0.2 * math.exp(-0.03 * t)),
        (Law(constant=0.006, u=-0.02, laplacian=1.0), lambda t: 0.3 - 0.1 * math.exp(-0.02 * t)),
        (Law(constant=0.003, laplacian=1.0), lambda t: 0.2 + 0.003 * t),
        (Law(grad_squared=9.0, laplacian=0.7), lambda _: 0.2),
        (Law(u_grad_squared=9.0, laplacian=0.7), lambda _: 0.2),
        (Law(u=0.1, u_squared=-0.2, laplacian=0.5), lambda t: 0.5 / (1 + (0.5 / 0.2 - 1) * math.exp(-0.1 * t))),
    ],
)
def test_background_follows_the_law(law: Law, expected) -> None:
    case = Case("background", law, Drift((0.1, 0.1)), Plume(0.4, seed=2), 0.2)
    corner = np.array([-115.0, -110.0])
    found = sample_points(case, corner, corner, [0.0, 7.0, 20.0])
    for time, values in zip((0.0, 7.0, 20.0), found, strict=True):
        assert values == pytest.approx(np.full((2, 2), expected(time)), abs=1e-7)


def test_cell_averages_are_means_over_cells() -> None:
    case, times = PRESETS["C"], np.array([0.0, 3.0])
    coarse = exact_field(case, Grid(50, 40, 200.0, 160.0), times)
    fine = exact_field(case, Grid(1000, 800, 200.0, 160.0), times, cell_average=False)
    means = fine.values.reshape(2, 50, 20, 40, 20).mean(axis=(2, 4), dtype=np.float64)
    points = exact_field(case, Grid(50, 40, 200.0, 160.0), times, cell_average=False)
    assert np.abs(coarse.values - means).max() < 5e-5
    assert np.abs(points.values - means).max() > 1e-2


@pytest.mark.parametrize("name", list(PRESETS))
def test_plume_stays_in_the_picture_and_in_range(name: str) -> None:
    field = exact_field(PRESETS[name], Grid(75, 100, 150.0, 200.0), np.linspace(0, 34, 12))
    u = field.values
    edge = np.concatenate([u[:, [0, -1]].reshape(12, -1), u[:, :, [0, -1]].reshape(12, -1)], axis=1)
    assert np.ptp(edge, axis=1).max() < 0.01
    assert u.min() > -1e-6
    assert u.max() <= 0.98


def test_drift_moves_the_plume_as_stated() -> None:
    case = PRESETS["drift"]
    grid = Grid(100, 100, 200.0, 200.0)
    field = exact_field(case, grid, np.linspace(0, 34, 18))
    mass = field.values.astype(float) - case.background
    centroid_x = (mass * grid.x).sum((1, 2)) / mass.sum((1, 2))
    centroid_y = (mass * grid.y[:, None]).sum((1, 2)) / mass.sum((1, 2))
    x, y = case.drift.displacement(field.times)
    assert centroid_x - centroid_x[0] == pytest.approx(x, abs=1e-4)
    assert centroid_y - centroid_y[0] == pytest.approx(y, abs=1e-4)
    speed = np.gradient(case.drift.displacement(np.linspace(0, 34, 3401))[1], 0.01)
    assert speed[1:-1] == pytest.approx(case.drift.velocity(np.linspace(0, 34, 3401))[1][1:-1], abs=1e-5)


def test_noise_has_the_stated_level_and_seed() -> None:
    field = exact_field(PRESETS["A"], Grid(40, 40, 200.0, 200.0), np.linspace(0, 34, 20))
    first, again, other = noisy(field, 0.02, 1), noisy(field, 0.02, 1), noisy(field, 0.02, 2)
    assert (first.values - field.values).std() == pytest.approx(0.02, rel=0.02)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)
    assert "0.02" in first.provenance.notes[-1]


def test_times_that_cannot_be_solved_are_refused() -> None:
    grid = Grid(20, 20, 200.0, 200.0)
    for times in ([], [-1.0, 0.0], [0.0, 2.0, 1.0]):
        with pytest.raises(InputError, match="ascend"):
            exact_field(PRESETS["A"], grid, times)
    with pytest.raises(InputError, match="fewer frames"):
        exact_field(PRESETS["C"], grid, [0.0, 1e-7])
    with pytest.raises(InputError, match="Cole–Hopf"):
        exact_field(make_case("C", coefficients={"laplacian": 0.01}), grid, [0.0, 1.0])
