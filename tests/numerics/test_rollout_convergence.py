"""The scheme against exact solutions: orders of convergence, invariants, fronts, drift, added diffusion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.rollout.colehopf import evolve_cole_hopf
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.settings import RolloutSettings
from video2pde.terms import CATALOGUE
from video2pde.terms.stencil import apply_term

A, BETA = 9.005, 0.666
LAW = Model.of({"grad_squared": A, "laplacian": BETA})
PAPER_DT = 34 / 1008


def square(n: int, length: float = 60.0) -> Grid:
    return Grid(n, n, length, length)


def exact(
    grid: Grid, t: float, a: float = A, beta: float = BETA, v: tuple[float, float] = (0.0, 0.0), scale: float = 1.0
) -> np.ndarray:
    """Return u = (β/a) log(1 + Σ Gaussians that diffuse and drift), an asymmetric exact solution."""
    y, x = np.meshgrid(grid.y, grid.x, indexing="ij")
    theta = np.zeros(grid.shape)
    for height, cx, cy, s in ((0.5, 0.44, 0.46, 0.065), (0.35, 0.57, 0.5, 0.055), (0.3, 0.5, 0.58, 0.06)):
        variance = (s * grid.width) ** 2 + 2 * beta * t
        shrink = (s * grid.width) ** 2 / variance
        distance = (x - cx * grid.width - v[0] * t) ** 2 + (y - cy * grid.height - v[1] * t) ** 2
        theta += np.expm1(scale * height * a / beta) * shrink * np.exp(-distance / (2 * variance))
    return beta / a * np.log1p(theta)


def fitted_order(sizes: list[float], errors: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize(("accuracy", "low", "high"), [(4, 3.6, 4.4), (2, 1.8, 2.2)])
def test_order_in_space(accuracy: int, low: float, high: float) -> None:
    a = 2.0
    model, v = Model.of({"grad_squared": a, "laplacian": BETA}), (0.8, -0.5)
    errors, sizes = [], []
    for n in (60, 90, 135):
        grid = square(n)
        times = np.linspace(0, 2.0, 5)
        rollout = simulate(model, exact(grid, 0, a), times, grid, np.tile(v, (5, 1)), accuracy=accuracy)
        errors.append(rms(rollout.values[-1] - exact(grid, 2.0, a, v=v)))
        sizes.append(grid.dx)
    assert low < fitted_order(sizes, errors) < high


def time_errors(advance: Callable[[np.ndarray, Grid, int], np.ndarray]) -> tuple[list[float], list[float]]:
    """Measure the error against a run with far smaller steps on the same grid."""
    grid = square(40)
    u0 = exact(grid, 0, 2.0)
    finest = march(u0, grid, 640)
    counts = [16, 24, 36]
    return [1 / n for n in counts], [rms(advance(u0, grid, n) - finest) for n in counts]


def march(u0: np.ndarray, grid: Grid, n: int) -> np.ndarray:
    times = np.linspace(0, 4.0, n + 1)
    velocity = np.stack([1.5 - 0.6 * times, 0.4 * times], 1)
    settings = RolloutSettings(safety=0.95)
    rollout = simulate(Model.of({"grad_squared": 2.0, "laplacian": BETA}), u0, times, grid, velocity, settings)
    assert rollout.substeps.max() == 1
    return rollout.values[-1]


def march_euler(u0: np.ndarray, grid: Grid, n: int) -> np.ndarray:
    times = np.linspace(0, 4.0, n + 1)
    u, h = u0, 4.0 / n
    for t in times[:-1]:
        drift = [apply_term(CATALOGUE[f"drift_{k}"], u, grid.dx, grid.dy, (1.5 - 0.6 * t, 0.4 * t)) for k in "xy"]
        terms = [
            c * apply_term(CATALOGUE[k], u, grid.dx, grid.dy) for k, c in (("grad_squared", 2.0), ("laplacian", BETA))
        ]
        u = u + h * sum(drift + terms)
    return u


def test_order_in_time() -> None:
    assert 2.7 < fitted_order(*time_errors(march)) < 3.3
    # Euler's method is what the bounds must reject
    assert fitted_order(*time_errors(march_euler)) < 1.5


def test_cole_hopf_is_exact_where_the_exponent_is_large() -> None:
    grid, ratio = square(100, 100.0), 64.0
    times, v = np.linspace(0, 6.0, 7), (0.3, -0.2)
    model = Model.of({"grad_squared": ratio * 0.5, "laplacian": 0.5})
    u0 = exact(grid, 0, ratio * 0.5, 0.5, scale=0.3)
    assert u0.min() < 1e-12
    evolved = evolve_cole_hopf(model, u0, times, grid, np.tile(v, (7, 1)), RolloutSettings(boundary="periodic"))
    for k, t in enumerate(times[1:], 1):
        # narrow kernels interpolate u, which bends sharply where the plume begins; the edges feel the next period
        tolerance = 1e-6 if t < 2 else 1e-12
        error = np.abs(evolved.values[k] - exact(grid, t, ratio * 0.5, 0.5, v, scale=0.3))
        assert error[20:80, 20:80].max() < tolerance


def test_narrow_and_wide_kernels_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = square(60)
    times = [0.0, 2.0]
    wide = evolve_cole_hopf(LAW, exact(grid, 0), times, grid).values[1]
    monkeypatch.setattr("video2pde.rollout.colehopf.WIDE", 9.0)
    narrow = evolve_cole_hopf(LAW, exact(grid, 0), times, grid).values[1]
    assert 0 < np.abs(narrow - wide).max() < 1e-5


def test_cole_hopf_without_nonlinearity_is_the_heat_equation() -> None:
    grid = square(80, 80.0)
    y, x = np.meshgrid(grid.y, grid.x, indexing="ij")

    def gauss(t: float) -> np.ndarray:
        return 25 / (25 + 2 * t) * np.exp(-((x - 38) ** 2 + (y - 41) ** 2) / (2 * (25 + 2 * t)))

    for t in (0.3, 3.0):
        heat = evolve_cole_hopf(Model.of({"laplacian": 1.0}), gauss(0), [0.0, t], grid).values[1]
        np.testing.assert_allclose(heat, gauss(t), rtol=0, atol=1e-6)


def test_cole_hopf_refuses_what_it_cannot_evolve() -> None:
    u = np.zeros((60, 60))
    with pytest.raises(InputError, match="positive diffusion"):
        evolve_cole_hopf(Model.of({"grad_squared": 1.0, "laplacian": -1.0}), u, [0, 1], square(60))
    with pytest.raises(InputError, match=r"alone, not .*u \|∇u\|²"):
        evolve_cole_hopf(Model.of({"u_grad_squared": 1.0, "laplacian": 1.0}), u, [0, 1], square(60))


def test_simulator_follows_cole_hopf_with_changing_drift() -> None:
    grid = square(60)
    times = np.arange(61) * PAPER_DT * 2
    velocity = np.stack([0.08 + 0.2 * np.sin(times), 0.28 - 0.05 * times], 1)
    rollout = simulate(LAW, exact(grid, 0), times, grid, velocity)
    oracle = evolve_cole_hopf(LAW, exact(grid, 0), times, grid, velocity)
    assert rms(rollout.values - oracle.values) < 3e-4 * rms(oracle.values)


def test_maximum_principle_and_exponential_mass() -> None:
    grid = square(64)
    times = np.linspace(0, 6, 31)
    u0 = exact(grid, 0) + 0.05
    rollout = simulate(
        LAW, u0, times, grid, np.tile([0.3, -0.2], (31, 1)), RolloutSettings(boundary="periodic", clip="off")
    )
    assert rollout.values.max() <= u0.max() + 1e-9
    assert rollout.values.min() >= u0.min() - 1e-9

    def drift_of_mass(ratio: float) -> float:
        mass = np.exp(ratio * rollout.values).sum(axis=(1, 2))
        return float(np.abs(mass / mass[0] - 1).max())

    assert drift_of_mass(A / BETA) < 1e-4
    # another exponent is no invariant, and neither is the mean of u
    assert drift_of_mass(0.9 * A / BETA) > 1e-2
    assert rollout.values[-1].mean() > 1.02 * u0.mean()


def test_heat_kernel() -> None:
    grid = Grid(60, 80, 60.0, 80.0)
    y, x = np.meshgrid(grid.y, grid.x, indexing="ij")

    def gauss(t: float) -> np.ndarray:
        return 36 / (36 + 2 * BETA * t) * np.exp(-((x - 37) ** 2 + (y - 31) ** 2) / (2 * (36 + 2 * BETA * t)))

    rollout = simulate(Model.of({"laplacian": BETA}), gauss(0), np.linspace(0, 8, 17), grid)
    assert np.abs(rollout.values[-1] - gauss(8.0)).max() < 2e-4


def test_fisher_front_speed() -> None:
    diffusion, growth = 1.5, 0.8
    grid = Grid(6, 500, 60.0, 250.0)
    u0 = np.tile(np.where(grid.x < 10, 1.0, 0.0), (6, 1))
    times = np.arange(0, 61, 5.0)
    rollout = simulate(Model.of({"u": growth, "u_squared": -growth, "laplacian": diffusion}), u0, times, grid)
    assert not rollout.failed
    position = np.array([np.interp(-0.5, -frame[3], grid.x) for frame in rollout.values])
    measured = (position[-1] - position[6]) / (times[-1] - times[6])
    # Bramson: the front lags behind 2√(rD)t by (3/2)√(D/r) log t
    lag = 1.5 * np.sqrt(diffusion / growth) * np.log(times[-1] / times[6]) / (times[-1] - times[6])
    assert measured == pytest.approx(2 * np.sqrt(growth * diffusion) - lag, rel=0.01)


def test_drift_by_one_picture_width_brings_the_picture_back() -> None:
    grid = Grid(20, 100, 20.0, 100.0)
    y, x = np.meshgrid(grid.y, grid.x, indexing="ij")
    u0 = 0.1 + 0.8 * np.exp(-((x - 40) ** 2) / (2 * 6.0**2)) * (1 + 0.2 * np.cos(2 * np.pi * y / 20))
    times = np.linspace(0, 50, 26)
    rollout = simulate(Model(), u0, times, grid, np.tile([2.0, 0.4], (26, 1)), RolloutSettings(boundary="periodic"))
    assert rms(rollout.values[-1] - u0) < 5e-3 * rms(u0)


def added_diffusion(advance: Callable[[np.ndarray], np.ndarray], u0: np.ndarray, duration: float) -> float:
    """Return the diffusion that damps the waves of u0 as much as the scheme does, the largest over long waves."""
    before, after = (np.abs(np.fft.rfft2(u))[:13, :13] for u in (u0, advance(u0)))
    ky, kx = np.meshgrid(*(2 * np.pi * np.arange(13) / n for n in u0.shape), indexing="ij")
    k2 = ky**2 + kx**2
    used = k2 > 0
    return float(np.abs(np.log(before[used] / after[used]) / (k2[used] * duration)).max())


def test_the_scheme_adds_less_than_one_per_cent_of_diffusion() -> None:
    n, frames, v = 100, 200, (0.08, 0.28)
    grid = square(n, float(n))
    u0 = np.random.default_rng(0).random((n, n))
    times = np.arange(frames + 1) * PAPER_DT

    def ours(u: np.ndarray) -> np.ndarray:
        settings = RolloutSettings(boundary="periodic", clip="off")
        return simulate(Model(), u, times, grid, np.tile(v, (frames + 1, 1)), settings).values[-1]

    def upwind(u: np.ndarray) -> np.ndarray:
        for _ in range(frames):
            u = u - PAPER_DT * (v[0] * (u - np.roll(u, 1, 1)) + v[1] * (u - np.roll(u, 1, 0)))
        return u

    assert added_diffusion(ours, u0, times[-1]) < 0.01 * BETA
    # first-order upwind adds about |v|Δx/2 and must fail this
    assert added_diffusion(upwind, u0, times[-1]) > 0.1 * BETA
