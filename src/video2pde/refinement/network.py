"""The network û(x, y, t): a tanh perceptron with a sigmoid at its end, and its derivatives in one pass.

Value, first derivatives and the second derivatives that a law needs travel forward together as streams
of one array, so that a layer costs one matrix product:

    z = W a + b,   h = tanh z,   ∂h = h′ ∂z,   ∂²h = h′ (∂²z − 2h ∂z ∂z),   h′ = 1 − h².

A law that needs a third or fourth derivative takes the slower :func:`nested_jets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import sympy

from video2pde.terms.term import jet_symbol, Order, Term

INPUTS = 3  # x, y, t, each of order one
# a GPU would otherwise multiply float32 with ten-bit mantissas, which second derivatives do not survive
PRECISION = jax.lax.Precision.HIGHEST
Jets = Mapping[Order, jax.Array]


class Network(NamedTuple):
    """Hold the weights; the last row of each matrix is the bias. ``hidden`` is stacked: (layers, width + 1, width)."""

    first: jax.Array
    hidden: jax.Array
    last: jax.Array


@dataclass(frozen=True)
class Streams:
    """Say which second derivatives travel: each is a sum of ∂_a∂_b over pairs of axes (0: x, 1: y).

    ``laplacian_only`` is set where xx and yy occur only as their sum; one stream then serves both.
    """

    seconds: tuple[tuple[tuple[int, int], ...], ...]
    laplacian_only: bool = False

    @classmethod
    def needed_by(cls, terms: Sequence[Term], extra: Sequence[Order] = (), isotropic: bool = True) -> Streams:
        """Collect what the terms need; ``extra`` orders are wanted besides, as their sum where ``isotropic``."""
        orders = {order for term in terms for order in term.jets if sum(order) == 2} | set(extra)
        if isotropic and (1, 1) not in orders and orders and all(_sees_laplacian_only(term) for term in terms):
            return cls((((0, 0), (1, 1)),), laplacian_only=True)
        pairs = {(2, 0): (0, 0), (1, 1): (0, 1), (0, 2): (1, 1)}
        return cls(tuple((pairs[order],) for order in sorted(orders, reverse=True)))


def _sees_laplacian_only(term: Term) -> bool:
    u_xx, u_yy = jet_symbol((2, 0)), jet_symbol((0, 2))
    return bool(sympy.expand(sympy.diff(term.strong, u_xx) - sympy.diff(term.strong, u_yy)) == 0)


class Jet(NamedTuple):
    """Hold û and its derivatives at the points, in the network's own (normalised) coordinates; shapes (N,)."""

    value: jax.Array
    slopes: tuple[jax.Array, jax.Array, jax.Array]
    seconds: tuple[jax.Array, ...]


def create_network(key: jax.Array, width: int, depth: int) -> Network:
    """Draw Glorot weights for ``depth`` hidden layers of ``width`` neurons."""
    first, hidden, last = jax.random.split(key, 3)
    return Network(
        _glorot(first, (INPUTS, width)), _glorot(hidden, (depth - 1, width, width)), _glorot(last, (width, 1))
    )


def _glorot(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    weights = jax.random.normal(key, shape, jnp.float32) * (2.0 / (shape[-2] + shape[-1])) ** 0.5
    return jnp.concatenate([weights, jnp.zeros((*shape[:-2], 1, shape[-1]), jnp.float32)], axis=-2)


def predict(network: Network, points: jax.Array, low: float = 0.0, high: float = 1.0) -> jax.Array:
    """Evaluate û = low + (high − low) σ(z) at ``points`` (N, 3); shape (N,)."""
    a = jnp.tanh(_affine(points, network.first))
    for layer in network.hidden:
        a = jnp.tanh(_affine(a, layer))
    return low + (high - low) * jax.nn.sigmoid(_affine(a, network.last)[:, 0])


def _affine(a: jax.Array, layer: jax.Array) -> jax.Array:
    return _times(a, layer) + layer[-1]


def _times(a: jax.Array, layer: jax.Array) -> jax.Array:
    return jnp.matmul(a, layer[:-1], precision=PRECISION)


def propagate(network: Network, points: jax.Array, streams: Streams, low: float = 0.0, high: float = 1.0) -> Jet:
    """Evaluate û, û_x, û_y, û_t and the second derivatives in ``streams`` at ``points`` (N, 3) in one pass."""
    count = len(points)
    z = _affine(points, network.first)
    slopes: tuple[jax.Array, ...] = tuple(jnp.broadcast_to(row, z.shape) for row in network.first[:INPUTS])
    seconds: tuple[jax.Array, ...] = tuple(jnp.zeros_like(z) for _ in streams.seconds)
    for layer in (*network.hidden, network.last):
        h = jnp.tanh(z)
        slope = 1.0 - h * h
        stacked = jnp.concatenate(
            [h]
            + [slope * s for s in slopes]
            + [
                slope * (q - 2.0 * h * _product(slopes, pairs))
                for q, pairs in zip(seconds, streams.seconds, strict=True)
            ]
        )
        # one product for all streams; the bias belongs to the value alone
        moved = _times(stacked, layer).reshape(1 + INPUTS + len(seconds), count, -1)
        z, slopes, seconds = moved[0] + layer[-1], tuple(moved[1 : 1 + INPUTS]), tuple(moved[1 + INPUTS :])
    s = jax.nn.sigmoid(z)
    first, span = s * (1.0 - s), high - low
    second = first * (1.0 - 2.0 * s)
    bent = [first * q + second * _product(slopes, p) for q, p in zip(seconds, streams.seconds, strict=True)]
    x, y, t = ((span * first * slope)[:, 0] for slope in slopes)
    return Jet((low + span * s)[:, 0], (x, y, t), tuple((span * b)[:, 0] for b in bent))


def _product(slopes: Sequence[jax.Array], pairs: tuple[tuple[int, int], ...]) -> jax.Array:
    return sum((slopes[i] * slopes[j] for i, j in pairs[1:]), start=slopes[pairs[0][0]] * slopes[pairs[0][1]])


def spatial_jets(jet: Jet, streams: Streams, scale: float) -> dict[Order, jax.Array]:
    """Return the derivatives by order in x and y, per length: ``scale`` is the length of one normalised unit.

    With ``laplacian_only`` the sum û_xx + û_yy stands under (2, 0) and zero under (0, 2); that is the same
    for every law that passed the check in :meth:`Streams.needed_by`.
    """
    jets: dict[Order, jax.Array] = {
        (0, 0): jet.value,
        (1, 0): jet.slopes[0] / scale,
        (0, 1): jet.slopes[1] / scale,
    }
    if streams.laplacian_only:
        return {**jets, (2, 0): jet.seconds[0] / scale**2, (0, 2): jnp.zeros_like(jet.value)}
    for second, ((i, j),) in zip(jet.seconds, streams.seconds, strict=True):
        jets[(2 - i - j, i + j)] = second / scale**2
    return jets


def nested_jets(
    network: Network, points: jax.Array, orders: Sequence[Order], scale: float, low: float = 0.0, high: float = 1.0
) -> dict[Order, jax.Array]:
    """Evaluate any spatial derivatives by nested forward differentiation: each order doubles the cost."""

    def value(p: jax.Array) -> jax.Array:
        return predict(network, p, low, high)

    return {order: _differentiate(value, points, order) / scale ** sum(order) for order in orders}


def _differentiate(function: object, points: jax.Array, order: Order) -> jax.Array:
    for axis, times in enumerate(order):
        for _ in range(times):
            function = _along(function, axis)
    result: jax.Array = function(points)  # type: ignore[operator]
    return result


def _along(function: object, axis: int) -> object:
    def derivative(p: jax.Array) -> jax.Array:
        direction = jnp.zeros_like(p).at[:, axis].set(1.0)
        return jax.jvp(function, (p,), (direction,))[1]  # type: ignore[no-any-return, arg-type]

    return derivative
