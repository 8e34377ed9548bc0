"""The radial network: its derivatives, its Gauss–Newton step, and the whole refinement by it on a short film."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.flow import Flow, FlowShape
from video2pde.refinement.gauss_newton import advance, Equations, measure, pretrain, State
from video2pde.refinement.lattice import Axis, expand, FLOOR, Lattice, MARGIN, WIDTH
from video2pde.refinement.radial import build_lattice
from video2pde.refinement.refine import refine
from video2pde.refinement.window import open_window
from video2pde.settings import RefinementSettings
from video2pde.terms import get_term

D, K, DRIFT = 1.5, 0.08, np.array([0.6, -0.4])
TIMES = np.linspace(1.0, 5.0, 25)
VELOCITY = np.tile(DRIFT, (25, 1))
TERMS = (get_term("laplacian"), get_term("u"))
SETTINGS = RefinementSettings(cell_average=False, seeds=(1,))
ORDERS = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 1), (0, 4))


@cache
def film(spin: float = 0.0, slope: float = 0.0) -> Field:
    """With ``spin`` (1/s) all turns about the picture's centre, with ``slope`` a level rises along x."""
    grid = Grid(40, 40, 40.0, 40.0)
    values = np.zeros((25, 40, 40))
    for height, x0, y0, variance in ((0.6, 17.0, 23.0, 30.0), (0.4, 26.0, 16.0, 18.0)):
        for k, t in enumerate(TIMES - TIMES[0]):
            spread = variance + 2 * D * t
            cos, sin, moved = np.cos(spin * t), np.sin(spin * t), DRIFT * t * (spin == 0)
            x = grid.x - 20 - moved[0] - (cos * (x0 - 20) - sin * (y0 - 20))
            y = grid.y - 20 - moved[1] - (sin * (x0 - 20) + cos * (y0 - 20))
            bump = np.exp(-0.5 * (x[None, :] ** 2 + y[:, None] ** 2) / spread)
            values[k] += height * variance / spread * np.exp(-K * t) * bump
    level = slope * (grid.x[None, None] - DRIFT[0] * (TIMES - TIMES[0])[:, None, None])
    values += level * np.exp(-K * (TIMES - TIMES[0]))[:, None, None]
    return Field(values, TIMES, grid)


def train(field=None, terms=TERMS, start=None, **changes):
    names = ("checkpoint", "progress", "seeds", "flow")
    options = {name: changes.pop(name) for name in names if name in changes}
    velocity = changes.pop("velocity", VELOCITY)
    settings = SETTINGS.model_copy(update=changes)
    return refine(film() if field is None else field, terms, velocity, start, settings, **options)


@pytest.fixture(scope="module")
def reference():
    return train()


def small_network():
    """Weights on a lattice whose axes differ, places that differ from frame to frame, and û at one point."""
    lattice = Lattice(Axis.over(-2.0, 3.0, 1.1), Axis.over(0.0, 4.0, 0.9), Axis.over(1.0, 2.0, 0.5))
    rng = np.random.default_rng(3)
    weights = rng.normal(size=lattice.shape).astype(np.float32)
    x, y, t = rng.uniform(-2, 3, (4, 5)), rng.uniform(0, 4, (4, 6)), np.array([1.0, 1.2, 1.7, 2.0])

    def along(axis, at):
        centres = axis.low + axis.spacing * jnp.arange(-MARGIN, len(axis) - MARGIN)
        return jnp.exp(-0.5 * ((at - centres) / (WIDTH * axis.spacing)) ** 2) @ jnp.asarray(axis.mixture)

    def value(px, py, pt):
        return jnp.einsum("kji,k,j,i", weights, along(lattice.t, pt), along(lattice.y, py), along(lattice.x, px))

    return lattice, weights, (x, y, t), value


@pytest.fixture(scope="module")
def expanded():
    """Sums by order from the lattice, and the same by automatic differentiation, in double precision."""
    with jax.enable_x64(True):
        lattice, weights, (x, y, t), value = small_network()
        jets, slope = expand(jnp.asarray(weights), lattice.features(x, y, t, ORDERS), ORDERS)
        at = np.broadcast_arrays(x[:, None, :], y[:, :, None], t[:, None, None])
        wanted = {}
        for order in (*ORDERS, None):
            function = value
            for axis, times in enumerate(order or (0, 0)):
                for _ in range(times):
                    function = jax.grad(function, argnums=axis)
            function = jax.grad(value, argnums=2) if order is None else function
            wanted[order] = np.asarray(jax.vmap(function)(*(a.reshape(-1) for a in at))).reshape(at[0].shape)
    return {**jets, None: slope}, wanted


def mismatch(found, wanted) -> float:
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("order", [*ORDERS, None])
def test_derivatives_equal_autodiff(expanded, order):
    found, wanted = expanded
    # single precision; a fourth derivative of strongly mixed neurons loses some digits more
    assert mismatch(found[order], wanted[order]) < 1e-3


def test_the_check_would_notice_axes_that_are_mixed_up(expanded):
    found, wanted = expanded
    assert mismatch(found[(0, 1)], wanted[(1, 0)]) > 0.1
    assert mismatch(found[(2, 0)], wanted[(0, 2)]) > 0.1


def test_combinations_are_orthogonal_and_bend_apart():
    axis = Axis.over(0.0, 10.0, 0.7)
    bare = replace(axis, mixture=np.eye(len(axis))).gram(0)
    floor = FLOOR * np.trace(bare) / len(axis)
    for gram in (axis.gram(0) + floor * axis.mixture.T @ axis.mixture, axis.gram(2)):
        sizes = np.sqrt(np.diagonal(gram))
        assert np.abs(gram - np.diag(np.diagonal(gram))).max() < 1e-6 * sizes.max() ** 2


def test_a_smooth_function_is_described_up_to_the_ends():
    axis, at = Axis.over(0.0, 10.0, 0.5), np.linspace(0.0, 10.0, 200)
    wanted = np.exp(0.3 * at) * np.sin(at)
    weights = np.linalg.lstsq(axis.evaluate(at, 0), wanted, rcond=1e-10)[0]
    assert np.abs(axis.evaluate(at, 0) @ weights - wanted).max() < 1e-5 * np.abs(wanted).max()
    slope = np.exp(0.3 * at) * (0.3 * np.sin(at) + np.cos(at))
    assert np.abs(axis.evaluate(at, 1) @ weights - slope).max() < 1e-3 * np.abs(slope).max()


def test_a_step_lowers_the_loss_and_never_raises_it():
    window = open_window(film(), VELOCITY, "moving", 1, 0.75)
    lattice = build_lattice(window)
    equations = Equations.of(TERMS, window, False, 0.01)
    data = equations.put_on_device(window, lattice)
    state, _ = pretrain(equations, State(jnp.zeros((), jnp.int32), jnp.zeros(lattice.shape)), data)
    losses, size = [], measure(equations, state.weights, data).rate
    for _ in range(3):
        losses.append(float(equations.loss(measure(equations, state.weights, data), state.weights, size)))
        state, _ = advance(equations, state, data, size)
    losses.append(float(equations.loss(measure(equations, state.weights, data), state.weights, size)))
    assert losses[-1] < 0.5 * losses[0]
    assert all(after <= before for before, after in pairwise(losses))


def test_the_law_is_recovered(reference):
    assert reference.coefficients["laplacian"] == pytest.approx(D, rel=0.003)
    assert reference.coefficients["u"] == pytest.approx(-K, rel=0.003)
    assert reference.converged, reference.reason
    assert reference.residual < 0.02
    history = reference.runs[0].history
    assert history.steps[-1] == reference.steps[1] < 25
    assert history.coefficients.shape == (len(history.steps), 2)
    assert history.held_out_residual[-1] < 0.02


def test_cells_that_are_averages_need_their_correction():
    """Averages over cells of twice the size: without the correction D is too small, as if the plume were wider."""
    blocks = film().values.reshape(25, 20, 2, 20, 2).mean(axis=(2, 4))
    coarse = Field(blocks, TIMES, Grid(20, 20, 40.0, 40.0))
    corrected, plain = (train(coarse, cell_average=on).coefficients["laplacian"] for on in (True, False))
    assert abs(corrected / D - 1.0) < abs(plain / D - 1.0)


def test_the_law_is_recovered_in_a_flow_that_turns():
    spin = 0.25
    shape = FlowShape("affine", (40.0, 40.0), (1.0, 5.0))
    flow = Flow(shape, np.array([[spin, 0.0, 0.0]]), np.zeros((1, 3)))
    found = train(film(spin), velocity=np.zeros((25, 2)), flow=flow)
    assert found.coefficients["laplacian"] == pytest.approx(D, rel=0.005)
    assert found.coefficients["u"] == pytest.approx(-K, rel=0.005)
    assert train(film(spin), velocity=np.zeros((25, 2))).residual > 10 * found.residual


def test_the_drift_as_a_term_ends_at_the_same_place(reference):
    fixed = train(frame="fixed")
    assert fixed.coefficients == pytest.approx(reference.coefficients, rel=0.005)
    wrong = train(frame="fixed", velocity=-VELOCITY)
    assert wrong.residual > 10 * fixed.residual


def test_what_has_not_settled_is_said():
    """A background that slopes as strongly as the plume takes about as many steps as there are.

    Where the coefficients seem to have settled all the same, held-out pixels tell.
    """
    found = train(film(0.0, 0.01))
    assert not found.converged
    assert "still moved" in found.reason or "on held-out points" in found.reason
    assert found.coefficients["laplacian"] == pytest.approx(D, rel=0.05)


def test_a_masked_film_is_given_to_the_perceptron():
    """Nothing holds neurons beyond the mask's edge, and Gauss–Newton steps were not seen to settle there."""
    mask = np.hypot(*np.meshgrid(film().grid.x - 20.0, film().grid.y - 20.0)) < 17.0
    small = {"width": 8, "depth": 2, "pretrain_steps": 10, "joint_steps": 20}
    assert train(replace(film(), mask=mask), **small).steps == (10, 20)
    assert train(replace(film(), mask=np.ones_like(mask)), **small).steps[0] == 2


def test_a_start_is_reported_and_does_not_matter(reference):
    found = train(start=[0.1 * D, 0.0])
    assert found.coefficients == reference.coefficients
    assert found.start == {"laplacian": 0.1 * D, "u": 0.0}


def test_a_wrong_library_leaves_a_larger_error(reference):
    wrong = train(terms=(get_term("u_squared"),))
    assert wrong.residual > 5 * reference.residual
    assert wrong.data_error > 2 * reference.data_error


def test_units_of_the_data_do_not_matter(reference):
    shifted = replace(film(), values=film().values * 30.0 - 5.0)
    terms = (get_term("laplacian"), get_term("u"), get_term("constant"))
    found = train(field=shifted, terms=terms)
    assert found.coefficients["laplacian"] == pytest.approx(reference.coefficients["laplacian"], rel=0.005)
    assert found.coefficients["constant"] == pytest.approx(-5.0 * K, rel=0.02)


class _StopAt:
    """Press Ctrl-C once, at a given joint step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, standing) -> None:
        if standing.phase == "joint" and standing.step >= self.step:
            raise KeyboardInterrupt


def test_an_interrupted_run_resumes_to_the_same_end(reference, tmp_path):
    file = tmp_path / "refinement.npz"
    stopped = train(checkpoint=file, progress=_StopAt(2))
    assert stopped.interrupted
    assert stopped.reason == "seed 1: interrupted at joint step 1 of 25"
    assert stopped.coefficients["laplacian"] == pytest.approx(D, rel=0.2)
    resumed = train(checkpoint=file)
    assert resumed.coefficients == reference.coefficients
    assert np.array_equal(resumed.runs[0].history.coefficients, reference.runs[0].history.coefficients)
    with pytest.raises(InputError, match="other data, terms or settings"):
        train(checkpoint=file, network="perceptron")


def test_fourth_derivatives_are_no_exception():
    found = train(terms=(*TERMS, get_term("biharmonic")))
    assert found.coefficients["laplacian"] == pytest.approx(D, rel=0.05)
    assert abs(found.coefficients["biharmonic"]) < 0.5


def test_unusable_input_is_refused():
    with pytest.raises(InputError, match="coefficient 1"):
        train(terms=(get_term("drift_x"),))
    with pytest.raises(InputError, match="constant"):
        train(field=replace(film(), values=np.full((25, 40, 40), 0.3)))
