"""Adam against its definition, SOAP against what it is for: badly scaled matrix problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from video2pde.refinement.optimisers import create_optimiser, decay

KEY = jax.random.key(0)
ROTATION = jnp.linalg.qr(jax.random.normal(KEY, (6, 6)))[0]
TARGET = jax.random.normal(jax.random.key(1), (6, 4))


def valley(weights: jax.Array) -> jax.Array:
    """A quadratic whose curvature spans four decades along rotated directions."""
    stretched = jnp.logspace(0, 2, 6)[:, None] * (ROTATION @ (weights - TARGET))
    return jnp.mean(stretched**2) / 2


def minimise(name: str, steps: int = 600, rate: float = 0.02, refresh: int = 5) -> float:
    optimiser = create_optimiser(name, refresh)
    weights = jnp.zeros((6, 4))
    state = optimiser.init(weights)

    def step(carry, index):
        moved, new = optimiser.update(jax.grad(valley)(carry[0]), carry[1], carry[0], decay(index, steps, rate, 0.0))
        return (moved, new), None

    (weights, state), _ = jax.lax.scan(step, (weights, state), jnp.arange(steps))
    return float(jnp.abs(weights - TARGET).max())


def test_adam_is_adam():
    optimiser = create_optimiser("adam")
    gradients = np.random.default_rng(0).normal(size=(5, 3))
    weights, state = jnp.zeros(3), optimiser.init(jnp.zeros(3))
    expected, mean, square = np.zeros(3), np.zeros(3), np.zeros(3)
    for n, g in enumerate(gradients, start=1):
        weights, state = optimiser.update(jnp.asarray(g, jnp.float32), state, weights, jnp.float32(0.1))
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        expected -= 0.1 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8)
    assert np.allclose(weights, expected, rtol=1e-5)


def test_soap_solves_a_rotated_valley_where_adam_does_not():
    assert minimise("soap") < 1e-3
    assert minimise("adam") > 0.1


def test_soap_treats_vectors_as_adam_does():
    soap, adam = create_optimiser("soap"), create_optimiser("adam")
    vector = jnp.ones(4)
    moved, _ = soap.update(2 * vector, soap.init(vector), vector, jnp.float32(0.1))
    other, _ = adam.update(2 * vector, adam.init(vector), vector, jnp.float32(0.1))
    assert np.allclose(moved, other)


def test_stacked_matrices_move_as_each_alone():
    optimiser = create_optimiser("soap")
    pair, gradient = jnp.stack([TARGET, -TARGET]), jax.random.normal(KEY, (2, 6, 4))
    together, _ = optimiser.update(gradient, optimiser.init(pair), pair, jnp.float32(0.1))
    for index in range(2):
        alone, _ = optimiser.update(gradient[index], optimiser.init(pair[index]), pair[index], jnp.float32(0.1))
        assert np.allclose(together[index], alone, atol=1e-5)


@pytest.mark.parametrize(("step", "rate"), [(0, 2e-3), (50, 1.01e-3), (100, 2e-5), (150, 2e-5)])
def test_the_rate_follows_half_a_cosine(step, rate):
    assert float(decay(jnp.asarray(step), 100, 2e-3, 2e-5)) == pytest.approx(rate, rel=1e-4)
