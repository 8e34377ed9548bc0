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


@jax.jit
def take_apart(values: jax.Array, steps: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Take rollouts (model, t, y, x) apart: the first, the differences of the next ones from it, the last one."""
    return values[0], (values[1 : len(steps) + 1] - values[0]) / steps[:, None, None, None], values[-1]


@jax.jit
def reached(values: jax.Array) -> jax.Array:
    """Tell which frames (t,) of rollouts (model, t, y, x) were reached by all."""
    return jnp.isfinite(values).all(axis=(0, 2, 3))


@jax.jit
def columns(pictures: list[jax.Array], rollout: jax.Array, recorded: jax.Array, begin: int) -> jax.Array:
    """Join pictures (c, t, y, x) with the error of a rollout (t, y, x), from the frame ``begin`` of a recording on."""
    observed = jax.lax.dynamic_slice_in_dim(recorded, begin, len(rollout))
    return jnp.concatenate([*pictures, (rollout - observed)[None]])


@jax.jit
def slopes(rollout: jax.Array, dx: float, dy: float) -> jax.Array:
    """Return −û_x and −û_y of frames (t, y, x), (2, t, y, x); see ``blocks.Drift.draw``."""
    across = jnp.pad((rollout[:, :, :-2] - rollout[:, :, 2:]) / (2 * dx), ((0, 0), (0, 0), (1, 1)))
    first, last = ((rollout[:, k : k + 1] - rollout[:, k + 1 : k + 2]) / dy for k in (0, rollout.shape[1] - 2))
    down = jnp.concatenate([first, (rollout[:, :-2] - rollout[:, 2:]) / (2 * dy), last], axis=1)
    return jnp.stack([across, down])


@jax.jit
def replicate_errors(
    values: jax.Array, truth: jax.Array, residuals: jax.Array, order: jax.Array, size: jax.Array
) -> jax.Array:
    """Return what rollouts (m, t, y, x) differ by from the truth (t, y, x) plus size (t,) × residuals[order (m, t)]."""
    drawn = residuals.at[order].get(mode="promise_in_bounds") * size[:, None, None]
    return values.astype(truth.dtype) - (drawn + truth)


@jax.jit
def start_noise(residuals: jax.Array, order: jax.Array, share: jax.Array) -> jax.Array:
    """Sum share (f,) × residuals[order (m, f)] over the frames, (m, y, x)."""
    drawn = residuals.at[order].get(mode="promise_in_bounds").astype(share.dtype)
    return jnp.einsum("f,mfyx->myx", share, drawn, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def leave_over(values: jax.Array, recorded: jax.Array, begin: int) -> jax.Array:
    """Return what rollouts (m, t, y, x) leave of a recording from frame ``begin`` on, in its number type."""
    observed = jax.lax.dynamic_slice_in_dim(recorded, begin, values.shape[1])
    return (observed - values).astype(recorded.dtype)


@jax.jit
def squares(frames: jax.Array) -> jax.Array:
    """Sum the squares of frames (m, t, y, x) over all but the first axis, in double precision."""
    return jnp.sum(frames.astype(jnp.float64) ** 2, axis=(1, 2, 3))


@jax.jit
def bring_back_frames(
    rollout: jax.Array, recorded: jax.Array, begin: int, wanted: jax.Array, start: jax.Array
) -> jax.Array:
    """Sum what a recording's frames from ``begin`` on, (t,) ``wanted``, were at the start of a rollout (t, y, x)."""
    observed = jax.lax.dynamic_slice_in_dim(recorded, begin, len(rollout))
    there = observed - (rollout - start)
    return jnp.sum(jnp.where(wanted[:, None, None], there, 0.0), axis=0)


@jax.jit
def coarsen(points: jax.Array) -> jax.Array:
    """Average points (t, y, x) of the finer grid over cells, and take point values from that; see ``field.cells``."""
    averages = points + _curve(points) / 24
    count, ny, nx = averages.shape
    cells = averages.reshape(count, ny // 2, 2, nx // 2, 2).mean(axis=(2, 4)).astype(jnp.float32)
    return cells - _curve(cells) / 24


def _curve(frames: jax.Array) -> jax.Array:
    padded = jnp.pad(frames, ((0, 0), (1, 1), (1, 1)), mode="symmetric")
    neighbours = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
    return neighbours - 4 * frames


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
