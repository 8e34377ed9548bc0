"""Rollouts in a velocity field: exact Gaussians in linear flows, order, JAX, and the flow's views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from manufactured import fitted_order
from numpy.typing import NDArray
from scipy.linalg import expm

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.flow import Flow, FlowShape
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate

Array = NDArray[np.float64]
SIZE, DIFFUSION, DURATION = 40.0, 0.3, 3.0
MATRICES = {
    "rotation": (0.5, 0.0, 0.0),
    "strain": (0.0, 0.12, 0.0),
    "shear": (-0.15, 0.0, 0.15),
    "all": (0.3, 0.08, -0.1),
}


def affine(rates: tuple[float, ...], divergence: bool = False) -> Flow:
    shape = FlowShape("affine", (SIZE, SIZE), (0.0, DURATION), divergence=divergence)
    values = np.array([rates])
    return Flow(shape, values, np.zeros_like(values))


def velocity_matrix(rates: tuple[float, ...]) -> Array:
    """∇v, with v = L (x, y) about the picture's centre."""
    rotation, axes, cross, *rest = rates
    spread = rest[0] / 2 if rest else 0.0
    return np.array([[axes + spread, cross - rotation], [cross + rotation, -axes + spread]])


def gaussian(grid: Grid, rates: tuple[float, ...], time: float) -> Array:
    """The exact u_t = −v·∇u + D Δu from a Gaussian: its centre and covariance follow linear equations."""
    matrix, centre, covariance = velocity_matrix(rates), np.array([4.0, -2.0]), np.diag([3.0, 1.6]) ** 2
    steps = 4000
    flow = expm(matrix * time)
    centre = flow @ centre
    covariance = flow @ covariance @ flow.T
    for s in (np.arange(steps) + 0.5) * time / steps:
        part = expm(matrix * s)
        covariance = covariance + 2 * DIFFUSION * time / steps * part @ part.T
    x, y = np.meshgrid(grid.x - SIZE / 2, grid.y - SIZE / 2)
    apart = np.stack([x - centre[0], y - centre[1]], axis=-1)
    inverse = np.linalg.inv(covariance)
    # a flow that diverges carries u outwards and does not thin it
    height = 0.8 * 3.0 * 1.6 / np.sqrt(np.linalg.det(covariance)) * np.exp(np.trace(matrix) * time)
    return np.asarray(height * np.exp(-0.5 * np.einsum("yxi,ij,yxj->yx", apart, inverse, apart)))


def roll_out(n: int, rates: tuple[float, ...], device: str = "cpu", precision: str = "float64") -> tuple[Array, Array]:
    from video2pde.settings import RolloutSettings

    grid = Grid(n, n, SIZE, SIZE, pitch="cells")
    model = replace(Model.of({"laplacian": DIFFUSION}), flow=affine(rates, len(rates) == 4))
    settings = RolloutSettings(clip="off", precision=precision)  # type: ignore[arg-type]
    times = np.linspace(0, DURATION, 7)
    found = simulate(model, gaussian(grid, rates, 0.0), times, grid, None, settings, device=device)  # type: ignore[arg-type]
    assert not found.failed
    return np.asarray(found.values[-1], float), gaussian(grid, rates, DURATION)


@pytest.mark.parametrize("name", MATRICES)
def test_a_gaussian_in_a_linear_flow_stays_the_exact_one(name: str) -> None:
    found, exact = roll_out(80, MATRICES[name])
    assert np.abs(found - exact).max() < 1.2e-3


def test_a_diverging_flow_carries_the_dye_outwards_and_does_not_thin_it() -> None:
    found, exact = roll_out(80, (0.2, 0.0, 0.05, 0.12))
    assert np.abs(found - exact).max() < 1.2e-3
    calm = gaussian(Grid(80, 80, SIZE, SIZE), (0.2, 0.0, 0.05), DURATION)
    assert exact.max() > calm.max()
    assert exact.sum() == pytest.approx(np.exp(0.12 * DURATION) * calm.sum(), rel=1e-3)


def test_the_order_is_four() -> None:
    sizes = np.array([40.0, 56.0, 80.0])
    errors = [np.sqrt(np.mean((np.subtract(*roll_out(int(n), MATRICES["all"]))) ** 2)) for n in sizes]
    assert 3.5 < fitted_order(sizes, np.array(errors)) < 4.7


def test_jax_gives_the_same() -> None:
    rates = (0.3, 0.08, -0.1, 0.04)
    found, _ = roll_out(40, rates, "gpu")
    assert found == pytest.approx(roll_out(40, rates)[0], abs=1e-11)


def test_single_precision_goes_along() -> None:
    assert roll_out(40, MATRICES["all"], precision="float32")[0] == pytest.approx(
        roll_out(40, MATRICES["all"])[0], abs=2e-5
    )


def test_a_flow_that_turns_is_followed_in_time() -> None:
    """A rotation whose speed changes turns the plume by the integral of its speed."""
    n = 60
    grid, times = Grid(n, n, SIZE, SIZE), np.linspace(0, DURATION, 31)
    shape = FlowShape("affine", (SIZE, SIZE), (0.0, DURATION), in_time=5)
    speed = np.array([0.0, 0.9, 0.1, 0.6, 0.2])
    coefficients = np.zeros((5, 3))
    coefficients[:, 0] = speed
    flow = Flow(shape, coefficients, np.zeros_like(coefficients))
    fine = np.linspace(0, DURATION, 3001)
    total = np.trapezoid(flow.weights(fine) @ speed, fine)
    changing = replace(Model.of({"laplacian": DIFFUSION}), flow=flow)
    steady = replace(Model.of({"laplacian": DIFFUSION}), flow=affine((float(total / DURATION), 0.0, 0.0)))
    first = gaussian(grid, (0.0, 0.0, 0.0), 0.0)
    ends = [simulate(model, first, times, grid).values[-1] for model in (changing, steady)]
    assert ends[0] == pytest.approx(ends[1], abs=2e-4)
    assert np.abs(ends[0] - simulate(Model.of({"laplacian": DIFFUSION}), first, times, grid).values[-1]).max() > 0.1


def test_a_stream_function_is_free_of_divergence_and_holds_the_affine_flows() -> None:
    grid = Grid(30, 40, 30.0, 40.0)
    shape = FlowShape("stream", (30.0, 40.0), (0.0, 1.0), (6, 7))
    modes = shape.modes(grid)
    assert modes.shape == (42, 2, 30, 40)
    x, y = np.meshgrid(grid.x - 20, grid.y - 15)
    for v_x, v_y in ((-y, x), (x, -y), (y, x)):
        target = np.stack([v_x, v_y]).ravel()
        q, *_ = np.linalg.lstsq(modes.reshape(42, -1).T, target, rcond=None)
        assert modes.reshape(42, -1).T @ q == pytest.approx(target, abs=1e-8)
        # and they are what the penalty on roughness does not see
        assert q @ shape.roughness(grid) @ q < 1e-9 * np.trace(shape.roughness(grid)) * (q @ q)
    wave = np.random.default_rng(0).standard_normal(42)
    flow = Flow(shape, wave[None], np.zeros((1, 42)))
    fine = Grid(300, 400, 30.0, 40.0)
    v = flow.fields(fine)[0]
    inner = np.gradient(v[0], fine.dx, axis=1) + np.gradient(v[1], fine.dy, axis=0)
    assert np.abs(inner[2:-2, 2:-2]).max() < 2e-3 * np.abs(np.gradient(v[0], fine.dx, axis=1)).max()
    points = flow.at(np.zeros(3), fine.y[[20, 150, 280]], fine.x[[33, 200, 390]], fine)
    assert points == pytest.approx(np.stack([v[:, 20, 33], v[:, 150, 200], v[:, 280, 390]]), abs=1e-9)


def test_after_its_span_a_flow_stays_as_it_last_was() -> None:
    shape = FlowShape("affine", (1.0, 1.0), (0.0, 2.0), in_time=4)
    flow = Flow(shape, np.arange(12.0).reshape(4, 3), np.zeros((4, 3)))
    assert flow.weights(np.array([2.0, 5.0, 99.0])) == pytest.approx(np.array([[0, 0, 0, 1.0]] * 3))


def test_coefficients_that_do_not_fit_the_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"needs \(1, 3\) finite coefficients"):
        Flow(FlowShape("affine", (1.0, 1.0), (0.0, 1.0)), np.zeros((1, 4)), np.zeros((1, 4)))
