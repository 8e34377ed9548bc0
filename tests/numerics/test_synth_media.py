"""Known-truth fields in media that are not plain: exact solutions, orders, balances, and two solvers that agree."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import erfcx

from video2pde.errors import InputError
from video2pde.recording.synth import Case, Flow, make_case, Medium, Plume, sample_case, sample_volumes, Source
from video2pde.recording.synth.media import integrate_medium, mittag_leffler
from video2pde.recording.synth.spectral import Sampler

POINTS = np.linspace(-70.0, 70.0, 57)
STILL = make_case("A", drift=(0.0, 0.0))
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])


def in_medium(case: Case = STILL, **parts) -> Case:
    return replace(case, medium=Medium(**parts))


def sample(case: Case, times, **options) -> np.ndarray:
    return np.array(list(sample_case(case, POINTS, POINTS, (0.0, 0.0), times, **options)))


def spread_in_flow(case: Case, gradient: np.ndarray, time: float) -> np.ndarray:
    """Return the exact field: Gaussians stay Gaussians, Σ' = GΣ + ΣGᵀ + 2D, in a flow v = Gx."""
    grown = expm(gradient * time)
    points, weights = np.polynomial.legendre.leggauss(16)
    added = np.zeros((2, 2))
    for s, w in zip((points + 1) / 2 * time, weights * time / 2, strict=True):
        flow = expm(gradient * s)
        added += w * 2 * case.law.laplacian * flow @ flow.T
    total = np.full((len(POINTS), len(POINTS)), case.background)
    blobs = case.plume.blobs()
    for amplitude, centre, covariance in zip(blobs.amplitude, blobs.centre, blobs.covariance, strict=True):
        mean = grown @ centre[::-1]
        sigma = grown @ (SWAP @ covariance @ SWAP) @ grown.T + added
        height = amplitude * math.sqrt(np.linalg.det(covariance) / np.linalg.det(sigma))
        height *= math.exp(np.trace(gradient) * time)
        inverse = np.linalg.inv(sigma)
        dx, dy = POINTS[None, :] - mean[0], POINTS[:, None] - mean[1]
        total += height * np.exp(-0.5 * (inverse[0, 0] * dx**2 + 2 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy**2))
    return total


@pytest.mark.parametrize(
    "flow",
    [Flow(rotation=0.05), Flow(shear=0.04), Flow(strain=0.02), Flow(divergence=0.02), Flow(0.03, 0.02, 0.01, 0.005)],
    ids=lambda flow: "+".join(name for name in ("rotation", "shear", "strain", "divergence") if getattr(flow, name)),
)
def test_gaussians_in_an_affine_flow_are_exact(flow: Flow) -> None:
    time = 9.0
    found = sample(in_medium(flow=flow), [0.0, time], spacing=1.0)[1]
    exact = spread_in_flow(STILL, flow.gradient, time)
    assert np.abs(found - exact).max() < 1e-6
    assert np.abs(found - spread_in_flow(STILL, 1.02 * flow.gradient, time)).max() > 1e-4


def test_flow_about_another_point_is_the_same_with_a_drift() -> None:
    # ω × (x − c) = ω × x − ω × c: a rotation about c is one about 0 and a uniform velocity
    away = sample(in_medium(flow=Flow(rotation=0.05, centre=(6.0, -4.0))), [0.0, 6.0], spacing=1.0)[1]
    middle = np.array([6.0, -4.0])
    turned = expm(np.array([[0.0, -0.05], [0.05, 0.0]]) * 6.0)
    back = turned.T @ (np.stack(np.meshgrid(POINTS, POINTS)).reshape(2, -1) - middle[:, None]) + middle[:, None]
    plain = STILL.plume.blobs().spread(2 * 1.5 * 6.0)
    expected = STILL.background + np.array([plain(np.array([y]), np.array([x]))[0, 0] for x, y in back.T])
    assert np.abs(away.ravel() - expected).max() < 1e-6


def test_a_flow_in_space_and_time_converges_with_order_four() -> None:
    law = make_case("C", drift=(0.3, -0.2), coefficients={"grad_squared": 4.0, "laplacian": 1.2})
    case = in_medium(replace(law, plume=Plume(0.7, 24, size=0.8)), flow=Flow(vortex=3.0, pulse=(1.0, 3.0)))
    sampler = Sampler(POINTS, POINTS, 0.0, 0.0, 160.0)
    steps = [0.25, 0.125, 0.0625]

    def solve(step: float) -> np.ndarray:
        return np.asarray(sampler(next(integrate_medium(case, np.array([4.0]), 160.0, 1.0, step)), 0.0, 0.0))

    best = solve(0.015625)
    errors = [np.abs(solve(step) - best).max() for step in steps]
    assert 3.4 < np.polyfit(np.log(steps), np.log(errors), 1)[0] < 5.0, errors


# ------------------------------------------------------------------ balances and moments


def moments(case: Case, times) -> tuple[np.ndarray, np.ndarray]:
    """Return mass above the background and variances (x, y) at ``times``."""
    axis = np.linspace(-127.5, 127.5, 256)
    u = np.array(list(sample_case(case, axis, axis, (0.0, 0.0), times, spacing=1.0)))
    mass = u - u[:, :1, :1]
    total = mass.sum(axis=(1, 2))
    second = []
    for weights in (mass.sum(axis=1), mass.sum(axis=2)):
        mean = (weights * axis).sum(axis=1) / total
        second.append((weights * (axis - mean[:, None]) ** 2).sum(axis=1) / total)
    return total, np.array(second).T


def test_mass_is_kept_by_maps_and_fluxes_and_grows_where_it_should() -> None:
    times = [0.0, 8.0]
    for kept in (
        in_medium(halves=0.5),
        in_medium(slowing=0.5),
        in_medium(anisotropy=0.4),
        in_medium(fourth=10.0),
        in_medium(flow=Flow(vortex=1.5)),
        in_medium(flow=Flow(divergence=0.02), conserved=True),
    ):
        empty = replace(kept, background=0.0)
        before, after = moments(empty, times)[0]
        assert after == pytest.approx(before, rel=1e-6)
    before, after = moments(in_medium(flow=Flow(divergence=0.02)), times)[0]
    assert after == pytest.approx(before * math.exp(0.02 * 8), rel=1e-6)


def test_a_source_adds_what_it_says_and_then_stops() -> None:
    source = Source(0.05, until=5.0, width=6.0)
    at, until, later = moments(in_medium(source=source), [0.0, 4.0, 12.0])[0]
    per_second = 0.05 * 2 * math.pi * 6.0**2
    assert until - at == pytest.approx(4.0 * per_second, rel=1e-3)
    assert later - at == pytest.approx(5.0 * per_second, rel=1e-3)


def test_variances_grow_as_the_tensor_and_the_time_say() -> None:
    times, plain = [0.0, 8.0], 2 * 1.5 * 8.0
    grown = np.diff(moments(in_medium(anisotropy=0.4), times)[1], axis=0)[0]
    assert grown == pytest.approx([1.4 * plain, 0.6 * plain], rel=1e-4)
    # turned by a right angle the axes change places; by half of one both grow alike
    grown = np.diff(moments(in_medium(anisotropy=0.4, turned=90.0), times)[1], axis=0)[0]
    assert grown == pytest.approx([0.6 * plain, 1.4 * plain], rel=1e-4)
    grown = np.diff(moments(in_medium(anisotropy=0.4, turned=45.0), times)[1], axis=0)[0]
    assert grown == pytest.approx([plain, plain], rel=1e-4)
    grown = np.diff(moments(in_medium(slowing=0.5), times)[1], axis=0)[0]
    assert grown == pytest.approx([plain * (1 - 0.25 * 8 / 34)] * 2, rel=1e-4)
    grown = np.diff(moments(in_medium(slowing=-0.6), times)[1], axis=0)[0]
    assert grown == pytest.approx([plain * (1 + 0.3 * 8 / 34)] * 2, rel=1e-4)


def test_the_left_half_spreads_faster() -> None:
    late = sample(replace(in_medium(halves=0.6), plume=Plume(0.8, 3, 12, shape="spots")), [0.0, 10.0])
    flat = sample(replace(STILL, plume=Plume(0.8, 3, 12, shape="spots")), [0.0, 10.0])
    left, right = POINTS < -5, POINTS > 5
    peak = [field[1][:, side].max() for field in (late, flat) for side in (left, right)]
    assert peak[0] < peak[2] - 0.01
    assert peak[1] > peak[3] + 0.01


# ------------------------------------------------------------------ operators outside the libraries


def test_mittag_leffler_has_its_closed_forms() -> None:
    z = np.geomspace(1e-4, 1e3, 60)
    assert mittag_leffler(z, 0.5) == pytest.approx(erfcx(z), rel=1e-7)
    at, order = np.array([0.1, 0.7, 2.0]), 0.95
    series = sum((-at) ** k / math.gamma(order * k + 1) for k in range(60))
    assert mittag_leffler(at, order) == pytest.approx(series, rel=1e-6)
    assert mittag_leffler(np.zeros(2), 0.7) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("medium", "decay"),
    [
        ({"fractional": 1.5}, lambda k, t: np.exp(-1.5 * k**1.5 * t)),
        ({"fourth": 12.0}, lambda k, t: np.exp(-(1.5 * k**2 + 12.0 * k**4) * t)),
        ({"memory": 0.5}, lambda k, t: erfcx(1.5 * k**2 * math.sqrt(t))),
    ],
)
def test_modes_decay_as_the_operator_says(medium, decay) -> None:
    times, side = np.array([0.0, 5.0]), 512.0
    first, last = integrate_medium(in_medium(**medium), times, side, 1.0, 0.2)
    k = 2 * np.pi / side * np.arange(1, 12)
    ratio = last.coefficients[0, 1:12] / first.coefficients[0, 1:12]
    assert ratio.real == pytest.approx(decay(k, 5.0), rel=1e-6)
    assert np.abs(ratio.imag).max() < 1e-9


def test_an_immobile_part_stays_in_the_picture_while_the_rest_drifts() -> None:
    case = make_case("A")
    times = [0.0, 12.0]
    found = sample(in_medium(case, immobile=0.3), times)
    plain = sample(case, times)
    start = plain[0] - case.background
    assert found[1] == pytest.approx(0.7 * plain[1] + 0.3 * (start + case.background), abs=2e-6)


def test_memory_of_a_nonlinear_law_is_refused() -> None:
    with pytest.raises(InputError, match="pure diffusion alone"):
        sample(in_medium(make_case("C"), memory=0.8), [0.0, 1.0])
    with pytest.raises(InputError, match="take the spectral solver"):
        next(sample_volumes(in_medium(fourth=1.0), (24, 24), 2.0, np.array([0.0])))
    with pytest.raises(InputError, match="halves = 1"):
        Medium(halves=1.0)


# ------------------------------------------------------------------ two solvers


def on_pixels(case: Case, times, count: int = 96) -> tuple[np.ndarray, float, tuple[int, int]]:
    pixel = 160.0 / count
    axis = (np.arange(count) + 0.5 - count / 2) * pixel
    return np.array(list(sample_case(case, axis, axis, (pixel, pixel), times))), pixel, (count, count)


@pytest.mark.parametrize(
    "case",
    [
        make_case("A"),
        in_medium(make_case("C"), flow=Flow(vortex=1.0, pulse=(1.0, 4.0))),
        in_medium(make_case("A"), flow=Flow(divergence=0.02), conserved=True),
        in_medium(make_case("C"), halves=0.4, varies="grad_squared"),
        in_medium(make_case("A"), halves=0.4),
        in_medium(make_case("A"), anisotropy=0.4, source=Source(0.03, until=3.0)),
        make_case("C-alt"),
        make_case("Fisher"),
    ],
    ids=["A", "vortex", "diverging", "a by halves", "D by halves", "tensor and source", "C-alt", "Fisher"],
)
def test_finite_volumes_and_spectral_solvers_agree(case: Case) -> None:
    times = np.array([0.0, 4.0])
    expected, pixel, shape = on_pixels(case, times)
    found = np.array(list(sample_volumes(case, shape, pixel, times, refine=3, margin=10)))
    assert np.abs(found - expected).max() < 1e-4
    term, value = max(case.law.coefficients.items(), key=lambda item: abs(item[1]))
    other = replace(case, law=replace(case.law, **{term: 1.02 * value}))
    wrong = np.array(list(sample_volumes(other, shape, pixel, times, refine=2, margin=10)))
    assert np.abs(wrong - expected).max() > 3e-4


def test_finite_volumes_converge() -> None:
    case = in_medium(make_case("A"), flow=Flow(vortex=1.0))
    times = np.array([0.0, 3.0])
    expected, pixel, shape = on_pixels(case, times, 80)
    refinements = [1, 2, 4]
    errors = []
    for refine in refinements:
        found = np.array(list(sample_volumes(case, shape, pixel, times, refine=refine, margin=12)))
        errors.append(np.abs(found[1] - expected[1]).max())
    order = -np.polyfit(np.log(refinements), np.log(errors), 1)[0]
    assert 2.5 < order < 5.0, errors


def test_a_coefficient_sets_or_rises() -> None:
    """Both ends are the same whatever the course; one that sets has fallen further halfway."""
    here = np.zeros(1)

    def course(medium: Medium) -> list[float]:
        return [float(medium.factor(here, here, time, 8.0)[0]) for time in (0.0, 4.0, 8.0)]

    np.testing.assert_allclose(course(Medium(slowing=-0.6)), [1.0, 1.3, 1.6])
    np.testing.assert_allclose(course(Medium(slowing=0.5)), [1.0, 0.75, 0.5])
    setting = course(Medium(slowing=0.5, setting=4.0))
    np.testing.assert_allclose(setting, [1.0, 1 - 0.5 / (1 + np.exp(-2.0)), 0.5])
    assert Medium(slowing=-0.6).largest_factor >= 1.6
    with pytest.raises(InputError, match="slowing"):
        Medium(slowing=-4.0)
