"""Adam and SOAP, written for one compiled loop: state in, state out, no host round trips.

SOAP (Vyas et al. 2024) runs Adam in the eigenbasis of Shampoo's two factors L = E[G Gᵀ] and R = E[Gᵀ G]
of each weight matrix G's gradient; the basis follows by one step of orthogonal iteration every few steps.
Neither optax nor the package index offers a maintained SOAP, and Adam beside it costs ten lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

Tree = Any  # a tree of arrays, as JAX understands it
EPSILON = 1e-8


class Optimiser(NamedTuple):
    """Pair ``init(parameters) -> state`` with ``update(gradient, state, parameters, rate) -> (parameters, state)``."""

    init: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree, jax.Array], tuple[Tree, Tree]]


class AdamLeaf(NamedTuple):
    """First and second moments of one array's gradient."""

    mean: jax.Array
    square: jax.Array


class SoapLeaf(NamedTuple):
    """Moments of one matrix's gradient (``square`` in the eigenbasis), Shampoo's factors and their bases.

    Matrices of one shape may be stacked along leading axes; everything is then batched.
    """

    mean: jax.Array
    square: jax.Array
    left: jax.Array
    right: jax.Array
    left_basis: jax.Array
    right_basis: jax.Array


class State(NamedTuple):
    """Count the steps and hold one leaf per parameter array."""

    step: jax.Array
    leaves: tuple[AdamLeaf | SoapLeaf, ...]


def create_optimiser(name: Literal["soap", "adam"], refresh: int = 10) -> Optimiser:
    """Choose the optimiser; ``refresh`` is how many steps one basis of SOAP serves."""
    b1, b2 = (0.95, 0.95) if name == "soap" else (0.9, 0.999)

    def init(parameters: Tree) -> State:
        leaves = jax.tree.leaves(parameters)
        return State(jnp.zeros((), jnp.int32), tuple(_start(leaf, name == "soap") for leaf in leaves))

    def update(gradient: Tree, state: State, parameters: Tree, rate: jax.Array) -> tuple[Tree, State]:
        step = state.step + 1
        bias = 1.0 - b1 ** step.astype(jnp.float32), 1.0 - b2 ** step.astype(jnp.float32)
        moves: list[jax.Array] = []
        leaves: list[AdamLeaf | SoapLeaf] = []
        for g, leaf in zip(jax.tree.leaves(gradient), state.leaves, strict=True):
            turn = state.step % refresh == 0
            move, new = (
                _soap(g, leaf, b1, b2, bias, turn) if isinstance(leaf, SoapLeaf) else _adam(g, leaf, b1, b2, bias)
            )
            moves.append(move)
            leaves.append(new)
        values, structure = jax.tree.flatten(parameters)
        moved = [value - rate * move for value, move in zip(values, moves, strict=True)]
        return jax.tree.unflatten(structure, moved), State(step, tuple(leaves))

    return Optimiser(init, update)


def _start(parameter: jax.Array, soap: bool) -> AdamLeaf | SoapLeaf:
    zero = jnp.zeros_like(parameter)
    if not soap or parameter.ndim < 2:
        return AdamLeaf(zero, zero)
    *stack, rows, columns = parameter.shape
    left, right = jnp.zeros((*stack, rows, rows)), jnp.zeros((*stack, columns, columns))
    return SoapLeaf(zero, zero, left, right, left + jnp.eye(rows), right + jnp.eye(columns))


def _adam(
    g: jax.Array, leaf: AdamLeaf, b1: float, b2: float, bias: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, AdamLeaf]:
    mean = b1 * leaf.mean + (1 - b1) * g
    square = b2 * leaf.square + (1 - b2) * g * g
    return (mean / bias[0]) / (jnp.sqrt(square / bias[1]) + EPSILON), AdamLeaf(mean, square)


def _soap(
    g: jax.Array, leaf: SoapLeaf, b1: float, b2: float, bias: tuple[jax.Array, jax.Array], refresh: jax.Array
) -> tuple[jax.Array, SoapLeaf]:
    left = b2 * leaf.left + (1 - b2) * g @ g.mT
    right = b2 * leaf.right + (1 - b2) * g.mT @ g
    p, q = jax.lax.cond(
        refresh,
        lambda: (_follow(left, leaf.left_basis), _follow(right, leaf.right_basis)),
        lambda: (leaf.left_basis, leaf.right_basis),
    )
    mean = b1 * leaf.mean + (1 - b1) * g
    rotated = p.mT @ g @ q
    square = b2 * leaf.square + (1 - b2) * rotated * rotated
    move = (p.mT @ mean @ q / bias[0]) / (jnp.sqrt(square / bias[1]) + EPSILON)
    return p @ move @ q.mT, SoapLeaf(mean, square, left, right, p, q)


def _follow(factor: jax.Array, basis: jax.Array) -> jax.Array:
    """Turn the basis towards the factor's eigenvectors: one step of orthogonal iteration."""
    # the small multiple of the identity keeps a factor of low rank from losing directions
    floor = 1e-12 * jnp.trace(factor, axis1=-2, axis2=-1)[..., None, None] + 1e-30
    return jnp.linalg.qr(factor @ basis + floor * basis)[0]


def decay(step: jax.Array, steps: int, start: float, end: float) -> jax.Array:
    """Return the learning rate at ``step`` of ``steps``: half a cosine from ``start`` to ``end``."""
    share = jnp.clip(step / max(steps, 1), 0.0, 1.0)
    return end + (start - end) * 0.5 * (1.0 + jnp.cos(jnp.pi * share))
