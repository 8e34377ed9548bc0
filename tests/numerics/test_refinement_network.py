"""The network's hand-written derivatives against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from video2pde.refinement.law import Batch, Law
from video2pde.refinement.network import create_network, nested_jets, predict, propagate, spatial_jets, Streams
from video2pde.terms import CATALOGUE, Term

LOW, HIGH, LENGTH = -0.2, 1.3, 7.0
NETWORK = create_network(jax.random.key(4), 16, 3)
POINTS = jax.random.uniform(jax.random.key(5), (40, 3), minval=-1.0, maxval=1.0)
EVERY_SECOND = Streams((((0, 0),), ((0, 1),), ((1, 1),)))


def value_at(point):
    return predict(NETWORK, point[None], LOW, HIGH)[0]


GRADIENT = np.asarray(jax.vmap(jax.grad(value_at))(POINTS))
HESSIAN = np.asarray(jax.vmap(jax.hessian(value_at))(POINTS))


def mismatch(network_jet) -> float:
    """Return the largest relative error of value, slopes and second derivatives."""
    wanted = [predict(NETWORK, POINTS, LOW, HIGH), *GRADIENT.T, HESSIAN[:, 0, 0], HESSIAN[:, 0, 1], HESSIAN[:, 1, 1]]
    found = [network_jet.value, *network_jet.slopes, *network_jet.seconds]
    return max(
        float(np.abs(np.asarray(f) - np.asarray(w)).max() / np.abs(np.asarray(w)).max())
        for f, w in zip(found, wanted, strict=True)
    )


def test_propagated_derivatives_equal_autodiff():
    assert mismatch(propagate(NETWORK, POINTS, EVERY_SECOND, LOW, HIGH)) < 2e-5


def test_the_check_would_notice_a_missing_product_term():
    right = propagate(NETWORK, POINTS, EVERY_SECOND, LOW, HIGH)
    wrong = right._replace(seconds=(right.seconds[0] - 0.01 * right.slopes[0] ** 2, *right.seconds[1:]))
    assert mismatch(wrong) > 1e-3


def test_one_stream_carries_the_laplacian():
    streams = Streams.needed_by([CATALOGUE["grad_squared"], CATALOGUE["laplacian"], CATALOGUE["porous"]])
    assert streams.laplacian_only
    jets = spatial_jets(propagate(NETWORK, POINTS, streams, LOW, HIGH), streams, LENGTH)
    laplacian = (HESSIAN[:, 0, 0] + HESSIAN[:, 1, 1]) / LENGTH**2
    found = np.asarray(CATALOGUE["laplacian"].evaluate(jets, backend="jax"))
    assert np.abs(found - laplacian).max() < 2e-5 * np.abs(laplacian).max()


@pytest.mark.parametrize("names", [("dxx",), ("dyy", "laplacian"), ("mixed",)])
def test_laws_that_see_a_direction_get_their_own_streams(names):
    own = {"mixed": Term.of("mixed", ("xy", "u"))}
    streams = Streams.needed_by([{**CATALOGUE, **own}[name] for name in names])
    assert not streams.laplacian_only


def test_gradients_with_respect_to_the_weights_equal_autodiff():
    def by_hand(network):
        jet = propagate(network, POINTS, EVERY_SECOND, LOW, HIGH)
        return jnp.mean((jet.slopes[2] - jet.seconds[0] - jet.seconds[2] + jet.slopes[0] ** 2) ** 2)

    def by_autodiff(network):
        def value(point):
            return predict(network, point[None], LOW, HIGH)[0]

        slopes, bends = jax.vmap(jax.grad(value))(POINTS), jax.vmap(jax.hessian(value))(POINTS)
        return jnp.mean((slopes[:, 2] - bends[:, 0, 0] - bends[:, 1, 1] + slopes[:, 0] ** 2) ** 2)

    small = create_network(jax.random.key(8), 6, 2)
    for hand, auto in zip(
        jax.tree.leaves(jax.jit(jax.grad(by_hand))(small)),
        jax.tree.leaves(jax.jit(jax.grad(by_autodiff))(small)),
        strict=True,
    ):
        assert np.abs(hand - auto).max() < 1e-4 * np.abs(auto).max()


def test_higher_orders_by_nesting():
    small = create_network(jax.random.key(8), 5, 2)
    points = POINTS[:6]

    def along_x(offset, point):
        return predict(small, (point + offset * jnp.array([1.0, 0.0, 0.0]))[None], LOW, HIGH)[0]

    jets = nested_jets(small, points, [(2, 1), (4, 0)], LENGTH, LOW, HIGH)
    fourth = jax.jacfwd(jax.jacfwd(jax.jacfwd(jax.jacfwd(along_x))))
    wanted = np.asarray([fourth(0.0, point) for point in points]) / LENGTH**4
    assert np.abs(np.asarray(jets[(4, 0)]) - wanted).max() < 1e-4 * np.abs(wanted).max()
    third = jax.jacfwd(jax.jacfwd(along_x))
    wanted = np.asarray([jax.grad(third, argnums=1)(0.0, point)[1] for point in points]) / LENGTH**3
    assert np.abs(np.asarray(jets[(2, 1)]) - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_any_term_of_the_catalogue_can_be_evaluated():
    terms = [term for term in CATALOGUE.values() if not term.is_drift]
    batch = Batch(POINTS, jnp.zeros(40), jnp.zeros((40, 2)))
    seen = Law.of(terms, LENGTH, 3.0, (LOW, HIGH), (0.5, 0.25), carried=False).evaluate(NETWORK, batch)
    gradient, laplacian = GRADIENT[:, :2] / LENGTH, (HESSIAN[:, 0, 0] + HESSIAN[:, 1, 1]) / LENGTH**2
    by_name = {term.name: np.asarray(seen.terms[:, j]) for j, term in enumerate(terms)}
    assert np.allclose(by_name["laplacian"], laplacian, rtol=1e-4, atol=1e-6)
    assert np.allclose(by_name["grad_squared"], (gradient**2).sum(1), rtol=1e-4, atol=1e-7)
    assert np.isfinite(by_name["biharmonic"]).all()


def test_the_drift_enters_with_coefficient_one():
    velocity = jax.random.normal(jax.random.key(6), (40, 2))
    batch = Batch(POINTS, jnp.zeros(40), velocity)
    seen = Law.of([CATALOGUE["laplacian"]], LENGTH, 3.0, (LOW, HIGH), None, carried=True).evaluate(NETWORK, batch)
    wanted = GRADIENT[:, 2] / 3.0 + (np.asarray(velocity) * GRADIENT[:, :2] / LENGTH).sum(1)
    assert np.allclose(seen.rate, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cell", [(0.5, 0.5), (0.6, 0.3)])
def test_data_are_averages_over_cells(cell):
    batch = Batch(POINTS, jnp.zeros(40), jnp.zeros((40, 2)))
    seen = Law.of([CATALOGUE["laplacian"]], LENGTH, 3.0, (LOW, HIGH), cell, carried=False).evaluate(NETWORK, batch)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    average = np.zeros(40)
    for x, wx in zip(nodes, weights, strict=True):
        for y, wy in zip(nodes, weights, strict=True):
            moved = POINTS + jnp.array([0.5 * cell[0] * x, 0.5 * cell[1] * y, 0.0]) / LENGTH
            average += 0.25 * wx * wy * np.asarray(predict(NETWORK, moved, LOW, HIGH))
    plain = np.abs(average - np.asarray(predict(NETWORK, POINTS, LOW, HIGH))).max()
    assert np.abs(np.asarray(seen.data) - average).max() < 0.02 * plain
