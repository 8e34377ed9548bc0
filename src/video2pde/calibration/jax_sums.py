"""Sums over frames that lie on a device: the inner products of a fit, and what is pulled back to the initial frame.

What they give is small and travels to memory; the frames stay where they are. Each is the counterpart of a compiled
loop of ``linear`` or ``growth``, and a test holds the two together.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def device_products(left: jax.Array, right: jax.Array, weight: Array) -> Array:
    """Sum weight × left × right over the pixels of each frame: (m, t, y, x) and (c, t, y, x) to (t, m, c)."""
    return np.array(_products(left, right, weight))


@jax.jit
def _products(left: jax.Array, right: jax.Array, weight: jax.Array) -> jax.Array:
    # in double precision, whatever the frames are in: a sum over a picture loses digits
    weighted = (left * weight).astype(weight.dtype)
    return jnp.einsum("mtyx,ctyx->tmc", weighted, right.astype(weight.dtype), precision=jax.lax.Precision.HIGHEST)


def add_pulled_products(sums: Any, *chunk: Any) -> Any:
    """Add a chunk to products (n, y, x), power and error (2, y, x); see ``growth._pull_products``."""
    return _pull_products(sums, *chunk)


@jax.jit
def _pull_products(
    sums: tuple[jax.Array, jax.Array, jax.Array],
    pictures: jax.Array,
    rollout: jax.Array,
    base: jax.Array,
    observed: jax.Array,
    gain: jax.Array,
    weight: jax.Array,
    way: jax.Array,
    counted: jax.Array,
    weights: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    def add(sums: Any, t: jax.Array) -> tuple[Any, None]:
        products, power, error = sums
        light = gain[t] * weight
        error_there = light * (jnp.where(counted[t], rollout[t], base[t]) - observed[t])
        columns = jnp.concatenate([(light * gain[t])[None], error_there[None], light * pictures[:, t]])
        pulled = read_away(columns, way[t])
        group = jnp.where(counted[t], 0, 1)
        power = power.at[group].add(pulled[0])
        error = error.at[group].add(pulled[1])
        products = products + jnp.where(counted[t], jnp.tensordot(weights[:, t], pulled[2:], axes=1), 0.0)
        return (products, power, error), None

    sums, _ = jax.lax.scan(add, sums, jnp.arange(len(rollout)))
    return sums


@jax.jit
def pull_errors(
    out: jax.Array, errors: jax.Array, gain: jax.Array, weight: jax.Array, way: jax.Array, counted: jax.Array
) -> jax.Array:
    """Add gain × error of replicates (m, t, y, x) along the pixels' way to (m, y, x); see ``growth._pull``."""

    def add(out: jax.Array, t: jax.Array) -> tuple[jax.Array, None]:
        pulled = read_away(gain[t] * weight * errors[:, t], way[t])
        return out + jnp.where(counted[t], pulled, 0.0), None

    out, _ = jax.lax.scan(add, out, jnp.arange(errors.shape[1]))
    return out


def read_away(fields: jax.Array, way: jax.Array) -> jax.Array:
    """Read pictures (n, y, x) as far away as ``way`` (2, y, x) or (2, 1, 1) says; see ``growth._add_pulled``."""
    ny, nx = fields.shape[1:]
    down = jnp.arange(ny, dtype=way.dtype)[:, None] + way[1]
    across = jnp.arange(nx, dtype=way.dtype)[None, :] + way[0]
    inside = (down >= -0.5) & (down <= ny - 0.5) & (across >= -0.5) & (across <= nx - 0.5)
    y, x = jnp.clip(down, 0.0, ny - 1.0), jnp.clip(across, 0.0, nx - 1.0)
    j, i = jnp.minimum(y.astype(jnp.int32), ny - 2), jnp.minimum(x.astype(jnp.int32), nx - 2)
    b, a = y - j, x - i
    above = (1 - a) * fields[:, j, i] + a * fields[:, j, i + 1]
    below = (1 - a) * fields[:, j + 1, i] + a * fields[:, j + 1, i + 1]
    return jnp.where(inside, (1 - b) * above + b * below, 0.0)
