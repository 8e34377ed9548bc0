"""A flow among the unknowns of a calibration: found jointly with the law, and missed where it is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from video2pde.calibration import make_problem
from video2pde.calibration.blocks import distance_carried
from video2pde.calibration.carried import Carried, COURSE, FLOW
from video2pde.calibration.fit import fit_rollout
from video2pde.calibration.growth import refit_growing
from video2pde.discovery.moments import law_velocity
from video2pde.drift import estimate_drift
from video2pde.field import Field, Grid
from video2pde.flow import Flow, FlowShape
from video2pde.flow.flow import affine_values
from video2pde.flow.paths import never_entered, ways
from video2pde.flow.ramps import ramp_directions, ramp_functions
from video2pde.flow.words import describe_flow
from video2pde.recording.synth import Camera, deviate, exact_field, find_preset, noisy
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE

SETTINGS = load_settings(overrides=["calibration.replicates=0", "run.workers=1"])
LAPLACIAN = CATALOGUE["laplacian"]


@pytest.fixture(scope="module")
def film() -> Field:
    case, _ = deviate(find_preset("A"), Camera(), "rotation")
    times = np.linspace(0, 0.6 * case.duration, 50)
    return noisy(exact_field(case, Grid(44, 44, 200.0, 200.0), times), 0.002, seed=4)


def turning(film: Field, rate: float) -> Flow:
    shape = FlowShape("affine", (200.0, 200.0), (float(film.times[0]), float(film.times[-1])))
    directions = 1e-3 * np.eye(3)[:, None]
    return Flow(shape, np.array([[rate, 0.0, 0.0]]), np.full((1, 3), 1e-3), directions=directions)


def test_rotation_and_diffusion_are_fitted_jointly(film: Field) -> None:
    drift = estimate_drift(film, SETTINGS.drift)
    true = find_preset("A").law.laplacian
    flow = turning(film, 0.025)
    velocity = law_velocity(drift, {}, {}, flow, film)
    carried = Carried.of(flow, film, drift)
    problem = make_problem(film, [LAPLACIAN], {"laplacian": 1.1 * true}, velocity, {}, SETTINGS, carried)
    fit = fit_rollout(problem, [1.1 * true], SETTINGS.calibration)
    assert fit.converged, fit.reason
    found = problem.scene(fit.values, fit.start).model.flow
    assert found is not None
    assert found.coefficients[0] == pytest.approx([0.03, 0.0, 0.0], abs=6e-4)
    assert fit.coefficients[0] == pytest.approx(true, rel=0.03)
    assert len(fit.values[FLOW]) == 3
    still = make_problem(film, [LAPLACIAN], {"laplacian": true}, drift.velocity, {}, SETTINGS)
    without = fit_rollout(still, [true], SETTINGS.calibration)
    assert without.mse > 3 * fit.mse


def test_the_drift_follows_a_change_of_the_flow_so_that_the_plume_stays(film: Field) -> None:
    drift = estimate_drift(film, SETTINGS.drift)
    flow = turning(film, 0.03)
    carried = Carried.of(flow, film, drift)
    problem = make_problem(
        film, [LAPLACIAN], {"laplacian": 1.0}, law_velocity(drift, {}, {}, flow, film), {}, SETTINGS, carried
    )
    step = {FLOW: np.array([5.0, 0.0, 0.0]), "law": np.ones(1)}
    scene = problem.scene(step, film.values[0].astype(float))
    assert scene.model.flow is not None
    assert scene.model.flow.coefficients[0, 0] == pytest.approx(0.035)
    expected = law_velocity(drift, {}, {}, turning(film, 0.035), film)
    assert scene.velocity == pytest.approx(expected, abs=2e-3 * np.abs(expected).max())


def pulsing(film: Field, rate: float, ramps: tuple[tuple[float, float], ...]) -> Flow:
    """Return a rotation that is turned on and off over ramps (centre, width), on 20 splines."""
    steady = turning(film, rate)
    centres, widths = np.array(ramps).T
    free = replace(steady.shape, course=(1.0,) * 20, ramps=ramps)
    course = ramp_functions(film.times, centres, widths) @ np.array([0.0, 1.0, -1.0])
    values = np.linalg.lstsq(free.course_functions(film.times).T, course, rcond=None)[0]
    return replace(steady, shape=replace(free, course=tuple(values.tolist())))


def test_rollouts_place_the_ramps_of_a_flow_that_is_turned_on_and_off() -> None:
    case, _ = deviate(find_preset("A"), Camera(), "rotation", 0.08)
    case = replace(case, medium=replace(case.medium, flow=replace(case.medium.flow, pulse=(6.0, 14.0))))
    film = noisy(exact_field(case, Grid(44, 44, 200.0, 200.0), np.linspace(0, 0.6 * case.duration, 60)), 0.004, seed=4)
    drift, true = estimate_drift(film, SETTINGS.drift), find_preset("A").law.laplacian
    flow = pulsing(film, 0.075, ((6.3, 0.75), (13.7, 0.6)))
    velocity = law_velocity(drift, {}, {}, flow, film)
    carried = Carried.of(flow, film, drift)
    fits = {}
    for chosen in (carried, replace(carried, course=None)):
        problem = make_problem(film, [LAPLACIAN], {"laplacian": true}, velocity, {}, SETTINGS, chosen)
        fit = fit_rollout(problem, [true], SETTINGS.calibration)
        assert fit.converged, fit.reason
        found = problem.scene(fit.values, fit.start).model.flow
        assert found is not None
        truth = 0.08 * np.array([case.medium.flow.strength(float(t)) for t in film.times])
        turned = affine_values(found, film.times)["rotation"]
        if COURSE in fit.values:
            assert [centre for centre, _ in found.shape.ramps] == pytest.approx([6.0, 14.0], abs=0.15)
            assert "it changes at " in describe_flow(found, film.grid)
        fits[COURSE in fit.values] = float(np.sqrt(np.mean((turned - truth) ** 2) / np.mean(truth**2)))
    assert fits[True] < 0.04
    assert fits[True] < 0.6 * fits[False]


def test_the_directions_of_a_course_are_those_of_its_ramps(film: Field) -> None:
    ramps = ((6.0, 0.9), (14.0, 1.2))
    directions = ramp_directions(pulsing(film, 0.03, ramps).shape, film.times)
    assert directions.shape == (4, 20)
    here = pulsing(film, 0.03, ramps).shape.course
    for index, moved in enumerate((((6.01, 0.9), (14.0, 1.2)), ((6.0, 0.9), (14.01, 1.2)))):
        change = np.subtract(pulsing(film, 0.03, moved).shape.course, here) / 0.01
        assert directions[index] == pytest.approx(change, abs=0.02 * np.abs(change).max())
    # a steady flow has none, nor has a course without levels
    assert ramp_directions(replace(pulsing(film, 0.03, ramps).shape, ramps=()), film.times).shape == (0, 20)


def test_the_way_of_a_change_is_turned_by_the_flow() -> None:
    times = np.linspace(0, 4, 401)
    spin = 0.5
    gradient = np.tile([[0.0, -spin], [spin, 0.0]], (len(times), 1, 1))
    rate = np.zeros((1, len(times), 2))
    rate[..., 0] = 1.0
    way = distance_carried(rate, times, gradient)[0]
    expected = np.stack([np.sin(spin * times), 1 - np.cos(spin * times)], axis=1) / spin
    assert way == pytest.approx(expected, abs=1e-4)
    calm = distance_carried(rate, times, 0 * gradient)[0, :, 0]
    assert calm == pytest.approx(times)


def test_a_flow_without_directions_is_taken_as_it_is(film: Field) -> None:
    drift = estimate_drift(film, SETTINGS.drift)
    carried = Carried.of(replace(turning(film, 0.03), directions=None), film, drift)
    problem = make_problem(film, [LAPLACIAN], {"laplacian": 1.0}, drift.velocity, {}, SETTINGS, carried)
    assert FLOW not in problem.unknowns.parts
    assert problem.flow is carried.flow


def test_every_pixel_is_followed_along_the_flow(film: Field) -> None:
    flow, grid = turning(film, 0.03), film.grid
    *_, last = ways(flow, np.zeros((len(film), 2)), film.times, grid)
    there = last * grid.dx
    x, y = np.meshgrid(grid.x - 100.0, grid.y - 100.0)
    turned_x, turned_y = _turn(x, y, _rate(flow, grid) * film.duration)
    inside = np.hypot(x, y) < 95.0
    assert there[0][inside] == pytest.approx((turned_x - x)[inside], abs=0.02)
    assert there[1][inside] == pytest.approx((turned_y - y)[inside], abs=0.02)


def test_what_enters_from_outside_is_known(film: Field) -> None:
    flow, grid = turning(film, 0.03), film.grid
    kept = never_entered(flow, np.zeros((len(film), 2)), film.times, grid)
    x, y = np.meshgrid(grid.x - 100.0, grid.y - 100.0)
    expected = np.ones(grid.shape, bool)
    for angle in np.linspace(0, _rate(flow, grid) * film.duration, 60):
        came_x, came_y = _turn(x, y, -angle)
        expected &= (np.abs(came_x) <= 100.0) & (np.abs(came_y) <= 100.0)
    assert 0.8 < expected.mean() < 0.95
    assert np.mean(kept != expected) < 0.005
    # a drift that carries everything away leaves no place: then all are kept
    blown = np.tile([40.0, 0.0], (len(film), 1))
    assert never_entered(flow, blown, film.times, grid).all()


def _rate(flow: Flow, grid: Grid) -> float:
    """Return the angular velocity on the grid, x to y."""
    across = flow.velocity(np.zeros(1), grid)[0, 1]
    return float((across[0, -1] - across[0, 0]) / (grid.x[-1] - grid.x[0]))


def _turn(x: np.ndarray, y: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    return x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)


def test_a_law_that_grows_is_fitted_with_its_initial_frame_in_a_flow_too() -> None:
    """Noise that enters at the edge, or is in the initial frame, grows sixteenfold and passes for diffusion."""
    case, _ = deviate(find_preset("Fisher"), Camera(), "rotation")
    times = np.linspace(0, 0.6 * case.duration, 72)
    film = noisy(exact_field(case, Grid(80, 80, 200.0, 200.0), times), 0.01, seed=1)
    drift = estimate_drift(film, SETTINGS.drift)
    flow, law = turning(film, 0.03), find_preset("Fisher").law.coefficients
    terms, velocity = [CATALOGUE[name] for name in law], law_velocity(drift, {}, {}, flow, film)
    problem = make_problem(film, terms, law, velocity, {}, SETTINGS, Carried.of(flow, film, drift))
    plain = fit_rollout(problem, list(law.values()), SETTINGS.calibration)
    found = refit_growing(problem, plain, SETTINGS.calibration)
    joint = None if found is None else found.joint
    assert joint is not None
    errors = [np.abs(fit.coefficients / np.array(list(law.values())) - 1).max() for fit in (plain, joint)]
    assert errors[1] < 0.03 < 0.08 < errors[0]
