"""Two fields: weak columns, rollouts and fits against manufactured fields and a solver of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from video2pde.calibration.budget import Correction, LACK_OF_FIT
from video2pde.discovery.regression import solve_columns
from video2pde.estimate import Estimate
from video2pde.field import Grid
from video2pde.pair import kernels
from video2pde.pair.calibrate import calibrate_pair, PairCalibration
from video2pde.pair.check import check_laws, widen
from video2pde.pair.discover import discover
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.problem import PairProblem, tendency
from video2pde.pair.rollout import roll_out, Scene
from video2pde.pair.weak import pair_columns
from video2pde.recording.synth import make_system, sample_system
from video2pde.settings import load_settings, RolloutSettings
from video2pde.terms.pairs import FIELDS, PAIR_TERMS
from video2pde.terms.term import jet_symbol

Array = NDArray[np.float64]
X, Y, T = sympy.symbols("x y t", real=True)
# asymmetric in x, y and between the fields: a mixed-up axis or field cannot pass
MANUFACTURED = {
    "u": 0.5 + 0.3 * sympy.sin(X + 0.4 * T) * sympy.cos(2 * Y) + 0.05 * sympy.cos(3 * X),
    "w": 0.4 + 0.25 * sympy.cos(X - 0.3) * sympy.sin(Y + 0.7 * T) - 0.05 * sympy.sin(2 * X),
}


def exact_term(name: str) -> sympy.Expr:
    """Carry a term out on the manufactured fields."""
    term = PAIR_TERMS[name]
    values = {
        jet_symbol(order, field): sympy.diff(MANUFACTURED[field], X, order[0], Y, order[1])
        for field in FIELDS
        for order in ((0, 0), *term.jets_of(field))
    }
    return term.strong.xreplace(values)


def on_grid(expression: sympy.Expr, grid: Grid, time: float) -> Array:
    function = sympy.lambdify((X, Y, T), expression, "numpy")
    return np.broadcast_to(function(grid.x[None, :], grid.y[:, None], time), grid.shape) + 0.0


def periodic_grid(cells: int) -> Grid:
    return Grid(cells, cells + 4, 2 * np.pi, 2 * np.pi)


@pytest.mark.parametrize("name", PAIR_TERMS)
def test_the_compiled_pass_is_the_term(name: str) -> None:
    """Every term, in either law; the term with u and w swapped is another one."""
    grid = periodic_grid(48)
    state = np.stack([on_grid(MANUFACTURED[field], grid, 0.3) for field in FIELDS])
    scene = Scene(grid, RolloutSettings(boundary="periodic"))
    wanted = on_grid(exact_term(name), grid, 0.3)
    for law, index in ((PairLaw.of({name: 1.7}, {"u": 0.0}), 0), (PairLaw.of({"w": 0.0}, {name: 1.7}), 1)):
        rates = tendency(law, state, scene)
        np.testing.assert_allclose(rates[index], 1.7 * wanted, atol=1e-6 * max(1.0, float(np.abs(wanted).max())))
        np.testing.assert_allclose(rates[1 - index], 0.0, atol=1e-12)
    swapped = tendency(PairLaw.of({name: 1.7}, {"u": 0.0}), state[::-1].copy(), scene)[0]
    if name not in ("constant", "u_w"):
        assert np.abs(swapped - 1.7 * wanted).max() > 0.05


def residual(cells: int, law: PairLaw, forced: bool = True) -> float:
    """Return the error of a rollout of a law whose solution is manufactured by a source, at the end of a short run."""
    grid = periodic_grid(cells)
    scene = Scene(grid, RolloutSettings(boundary="periodic", safety=0.2))
    start = np.stack([on_grid(MANUFACTURED[field], grid, 0.0) for field in FIELDS])
    found = roll_out(law, start, np.array([0.0, 0.02]), scene).values[:, -1].astype(float)
    reference = spectral_step(law, grid.shape, 0.02) if forced else start
    return float(np.abs(found - reference).max())


def spectral_step(law: PairLaw, shape: tuple[int, int], duration: float) -> Array:
    """Integrate the law by Fourier differences and tiny Runge–Kutta steps of fourth order."""
    ny, nx = shape
    grid = Grid(ny, nx, 2 * np.pi, 2 * np.pi)
    state = np.stack([on_grid(MANUFACTURED[field], grid, 0.0) for field in FIELDS])
    kx, ky = np.fft.fftfreq(nx, 1 / nx), np.fft.fftfreq(ny, 1 / ny)
    square = kx[None, :] ** 2 + ky[:, None] ** 2

    def rates(fields: Array) -> Array:
        u, w = fields
        laplacians = [np.fft.ifft2(-square * np.fft.fft2(part)).real for part in fields]
        values = {
            "laplacian": laplacians[0],
            "laplacian_w": laplacians[1],
            "u": u,
            "w": w,
            "u_w_squared": u * w**2,
            "constant": np.ones_like(u),
        }
        return np.stack([sum(c * values[n] for n, c in law.law(field).items()) for field in FIELDS])

    steps = 40
    h = duration / steps
    for _ in range(steps):
        a = rates(state)
        b = rates(state + h / 2 * a)
        c = rates(state + h / 2 * b)
        d = rates(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
    return state


CROSS = PairLaw.of(
    {"laplacian": 1.0, "laplacian_w": 0.3, "u_w_squared": -1.5, "constant": 0.2},
    {"laplacian_w": 0.6, "laplacian": -0.2, "u_w_squared": 1.5, "w": -0.7},
)


def rate_error(cells: int, law: PairLaw) -> float:
    """Return the error of the rates of change, relative to them."""
    grid = periodic_grid(cells)
    state = np.stack([on_grid(MANUFACTURED[field], grid, 0.3) for field in FIELDS])
    wanted = np.stack(
        [sum(c * on_grid(exact_term(n), grid, 0.3) for n, c in law.law(field).items()) for field in FIELDS]
    )
    rates = tendency(law, state, Scene(grid, RolloutSettings(boundary="periodic")))
    return float(np.abs(rates - wanted).max() / np.abs(wanted).max())


def test_rates_converge_with_order_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cross diffusion and reaction, three refinements; differences of fourth order do with four."""
    for accuracy in (8, 4):
        monkeypatch.setattr(kernels, "ACCURACY", accuracy)
        kernels.compile_pair.cache_clear()
        errors = [rate_error(cells, CROSS) for cells in (16, 24, 36)]
        orders = np.log(np.array(errors[:-1]) / errors[1:]) / np.log(1.5)
        assert accuracy - 1.2 < orders.mean() < accuracy + 0.5, errors
    kernels.compile_pair.cache_clear()


def test_rollouts_end_where_a_spectral_solver_does() -> None:
    """Cross diffusion and reaction; without cross diffusion the error is large."""
    error = residual(32, CROSS)
    assert error < 1e-6
    lacking = PairLaw.of({n: c for n, c in CROSS.law("u").items() if n != "laplacian_w"}, CROSS.law("w"))
    grid = periodic_grid(64)
    start = np.stack([on_grid(MANUFACTURED[field], grid, 0.0) for field in FIELDS])
    scene = Scene(grid, RolloutSettings(boundary="periodic", safety=0.2))
    wrong = roll_out(lacking, start, np.array([0.0, 0.02]), scene).values[:, -1]
    assert np.abs(wrong - spectral_step(CROSS, grid.shape, 0.02)).max() > 1e-3


def test_weak_columns_agree_with_the_terms() -> None:
    """On a manufactured pair ⟨φ, u_t⟩ and every column are integrals of φ times the exact expressions."""
    grid = Grid(40, 44, 4.0, 4.4, pitch="nodes")
    times = np.linspace(0.0, 2.0, 41)
    fields = {f: np.stack([on_grid(MANUFACTURED[f], grid, t) for t in times]) for f in FIELDS}
    pair = Pair.of(np.stack([fields["u"], fields["w"]]), times, grid)
    settings = load_settings(overrides={"weak.gradient_sigma": 0.0, "weak.noise_correction": False}).weak
    columns = pair_columns(pair, list(PAIR_TERMS.values()), settings)
    systems = columns.draw(40, np.random.default_rng(0))
    forced = [sympy.diff(MANUFACTURED[field], T) for field in FIELDS]
    exact = {name: exact_term(name) for name in PAIR_TERMS}
    both = {**exact, "u_t": forced[0], "w_t": forced[1]}
    sampled = {name: np.stack([on_grid(e, grid, t) for t in times]) for name, e in both.items()}
    for name in PAIR_TERMS:
        own = Pair.of(np.stack([sampled[name], sampled["w_t"]]), times, grid)
        value = pair_columns(own, [PAIR_TERMS["u"]], settings).sample(systems[0].centres)[0].theta[:, 0]
        column = systems[0].columns((name,))[:, 0]
        np.testing.assert_allclose(column, value, atol=4e-3 * max(1.0, float(np.abs(value).max())))
    own = Pair.of(np.stack([sampled["u_t"], sampled["w_t"]]), times, grid)
    slopes = pair_columns(own, [PAIR_TERMS["u"], PAIR_TERMS["w"]], settings).sample(systems[0].centres)[0].theta
    np.testing.assert_allclose(systems[0].b, slopes[:, 0], atol=2e-3)
    np.testing.assert_allclose(systems[1].b, slopes[:, 1], atol=2e-3)
    assert np.abs(systems[0].b - slopes[:, 1]).max() > 0.02, "the laws of u and w must not be mixed up"


@pytest.fixture(scope="module")
def reagents() -> Pair:
    """A + B → C with 0.5 % noise, small."""
    system = make_system("reagents")
    times = np.linspace(0.0, system.duration, 50)
    frames = np.stack(list(sample_system(replace(system, spacing=4.0, step=0.6), (48, 52), times)), axis=1)
    noisy = frames + 0.005 * np.random.default_rng(1).standard_normal(frames.shape)
    return Pair.of(noisy, times, Grid(48, 52, 200.0, 200.0))


SMALL = {
    "weak.test_functions": 600,
    "identifiability.stability_runs": 10,
    "calibration.replicates": 8,
    "run.workers": 1,
}


def test_a_reaction_is_found_and_fitted(reagents: Pair) -> None:
    """Discovery has the right terms, the fit the right numbers, and a law that lacks a term does not pass."""
    settings, truth = load_settings(overrides=SMALL), make_system("reagents")
    train = reagents.frames(slice(0, 30))
    found = discover(train, len(reagents), settings)
    law = next(iter(found.laws.values()))
    assert (set(law.law("u")), set(law.law("w"))) == (set(truth.u), set(truth.w))
    problem = PairProblem.of(train, settings)
    calibration = calibrate_pair("system 1", problem, law, settings)
    assert calibration.converged
    for field, known in (("u", truth.u), ("w", truth.w)):
        for name, value in known.items():
            estimate = calibration.estimates[field][name]
            assert estimate.value == pytest.approx(value, rel=0.03)
            assert estimate.low < estimate.value < estimate.high
            assert estimate.high - estimate.low < 0.1 * abs(value)
    fits = check_laws(train, len(reagents), {"system 1": calibration}, settings)["system 1"]
    assert all(test.passes for test in fits)
    broken = PairLaw.of({"laplacian": 1.5, "u": -0.02}, law.law("w"))
    lacking = calibrate_pair("broken", problem, broken, settings)
    wrong = check_laws(train, len(reagents), {"broken": lacking}, settings)["broken"]
    assert not wrong[0].passes
    assert wrong[0].suspects[0].term == "u_w"


def test_a_start_is_not_brought_back_over_a_reaction() -> None:
    """Growth by half a frame: few frames estimate the start, of rollout and Jacobian alike; of slow fields more."""
    law = PairLaw.of({"laplacian": 1.0, "u": 0.5, "u_squared": -0.6}, {"laplacian_w": 1.0, "w": -0.02})
    grid, times = Grid(32, 32, 64.0, 64.0), np.arange(40.0)
    y, x = np.mgrid[0:32, 0:32]
    bump = np.exp(-((x - 14) ** 2 + (y - 17) ** 2) / 30)
    start = np.stack([0.05 + 0.2 * bump, 0.3 + 0.4 * bump])
    exact = roll_out(law, start, times, Scene(grid, RolloutSettings())).values
    noisy = exact + 0.003 * np.random.default_rng(0).standard_normal(exact.shape)
    settings = load_settings(overrides={"run.workers": 1})
    problem = PairProblem.of(Pair.of(noisy, times, replace(grid, pitch="nodes")), settings)
    assert problem.start_frames <= 2
    for found in problem.corrected_start(law, problem.first_start()):
        assert np.abs(found - start)[:, 3:-3, 3:-3].std() < 0.004
    slow = Pair.of(np.stack([noisy[1], noisy[1]]), times, replace(grid, pitch="nodes"))
    assert PairProblem.of(slow, settings).start_frames > 2


def test_intervals_hold_both_fits_where_they_disagree(reagents: Pair) -> None:
    """A calibration that is 20 % off the weak form, and sure of it, is widened to hold what that finds."""
    settings, train = load_settings(overrides=SMALL), reagents.frames(slice(0, 30))
    truth = make_system("reagents")
    law = PairLaw.of({n: 1.2 * v for n, v in truth.u.items()}, truth.w)
    sure = {f: {n: Estimate(v, v - 0.01 * abs(v), v + 0.01 * abs(v)) for n, v in law.law(f).items()} for f in FIELDS}
    lines = (Correction(LACK_OF_FIT, np.zeros(4), np.zeros(4)),)
    found = PairCalibration("x", law, sure, np.zeros((0, 4)), lines, (1.0, 1.0), reagents.values[:, 0], True, "", 1)
    tests = check_laws(train, len(reagents), {"x": found}, settings)["x"]
    assert all(test.passes for test in tests), "the law itself is right"
    wider = widen(found, tests)
    for name, value in truth.u.items():
        assert wider.estimates["u"][name].low < value < wider.estimates["u"][name].high
        assert wider.estimates["u"][name].value == sure["u"][name].value
    assert wider.budget[0].uncertainty[0] > 0.1
    assert wider.estimates["w"]["u_w"] == sure["w"]["u_w"]


def test_noise_that_both_fields_share_is_taken_off() -> None:
    """⟨φ, u w⟩ of fields with common noise is right on average; without the correction it is not."""
    rng = np.random.default_rng(3)
    grid, times = Grid(40, 40, 40.0, 40.0), np.arange(40.0)
    noise = 0.1 * rng.standard_normal((40, 40, 40))
    pair = Pair.of(np.stack([0.5 + noise, 0.4 + noise]), times, grid)
    means = {}
    for correct in (True, False):
        settings = load_settings(overrides={"weak.noise_correction": correct, "weak.gradient_sigma": 0.0}).weak
        system = pair_columns(pair, [PAIR_TERMS["u_w"]], settings).draw(300, rng)[0]
        means[correct] = float(system.theta.mean())
    assert means[True] == pytest.approx(0.2, abs=0.002)
    assert means[False] > 0.208


def test_the_known_truth_obeys_its_law() -> None:
    """Differences in time of the solver's own frames fit the law that it was given, and not another one."""
    system = replace(make_system("reagents"), spacing=4.0, step=0.1)
    times = np.array([5.0, 5.2, 5.4])
    before, now, after = sample_system(replace(system, duration=6.0), (50, 50), times - 5.0)
    grid = Grid(50, 50, 200.0, 200.0)
    law = PairLaw.of(system.u, system.w)
    rates = tendency(law, now, Scene(grid, RolloutSettings()))
    measured = (after - before) / 0.4
    assert np.abs(rates - measured).max() < 0.02 * np.abs(measured).max()
    other = tendency(law.moved(1.2 * law.vector), now, Scene(grid, RolloutSettings()))
    assert np.abs(other - measured).max() > 0.1 * np.abs(measured).max()


def test_least_squares_without_a_ridge_is_not_biased() -> None:
    """Columns that are nearly the same still give the law exactly."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(200)
    theta = np.stack([first, first + 1e-4 * rng.standard_normal(200)], axis=1)
    np.testing.assert_allclose(solve_columns(theta, theta @ [3.0, -2.0], 1e-10), [3.0, -2.0], rtol=1e-6)
