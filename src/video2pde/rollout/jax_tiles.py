"""A substep of a batch of pictures on a GPU, tile by tile, through Pallas.

On large pictures it takes little more than half as long as what XLA makes of the same (``python -m benchmarks gpu``). A
stage is one kernel: it reads neighbours where they lie, with the picture's edges in the index, and the next stage reads
what it has written. Simulations that are not due, or have crossed their interval, are left at once. What a law is comes
from ``jax_stage.Stage``; JAX's own processor interprets the kernels, for tests.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from video2pde.rollout.jax_stage import Offset, Stage

if TYPE_CHECKING:
    from video2pde.rollout.jax_loop import Bounds

TILE, WARPS = (8, 128), 4
"""Rows and columns of a tile, and warps that work on it."""
SHARES = (0.0, 0.75, 1.0 / 3.0)
"""Share that the picture a substep begins with has in each of its stages."""


class _Tile:
    """Neighbours of a tile's cells in picture ``m`` of an array (m, y, x), read where they lie."""

    def __init__(self, pictures: Any, m: jax.Array, cells: tuple[jax.Array, jax.Array], boundary: str) -> None:
        self._pictures, self._m, self._cells, self._boundary = pictures, m, cells, boundary
        self._there: dict[Offset, jax.Array] = {}

    def __call__(self, offset: Offset) -> jax.Array:
        if offset not in self._there:
            places = [self._fold(n, offset[n]) for n in (0, 1)]
            self._there[offset] = triton.load(self._pictures.at[self._m, places[0], places[1]])
        return self._there[offset]

    def _fold(self, axis: int, step: int) -> jax.Array:
        """Return rows or columns a few cells away, those beyond an edge folded back into the picture."""
        place, size = self._cells[axis] + step, self._pictures.shape[axis + 1]
        if step < 0:
            return jnp.where(place < 0, place + size if self._boundary == "periodic" else -1 - place, place)
        if step > 0:
            beyond = place - size if self._boundary == "periodic" else 2 * size - 1 - place
            return jnp.where(place >= size, beyond, place)
        return place


class Tiles:
    """The stages of a structure's substep, and its stability bound, as kernels over tiles."""

    def __init__(self, stage: Stage, boundary: str) -> None:
        self._stage, self._boundary = stage, boundary

    def step(
        self,
        u: jax.Array,
        h: jax.Array,
        moves: jax.Array,
        v: jax.Array,
        c: jax.Array,
        bounds: Bounds,
        g: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
        """Advance the pictures that move by their substeps h (m,), with velocities v (3, m, 2) in the stages; return
        them with the sums of what was clipped."""
        w, lost = u, h
        for n, share in enumerate(SHARES):
            low, high = (bounds.low, bounds.high) if n == 2 else (bounds.stage_low, bounds.stage_high)
            numbers = jnp.concatenate([jnp.stack([h, low, high, v[n, :, 0], v[n, :, 1]], axis=1), c], axis=1)
            kernel = partial(self._advance, share)
            # in the end in the place of u: pictures that do not move stay there
            lost, w = _run(kernel, moves, numbers, g, [u, w], [u], {3: 1} if n == 2 else {})
        return w, jnp.sum(lost, axis=(1, 2))

    def bound(self, u: jax.Array, due: jax.Array, c: jax.Array, g: jax.Array) -> jax.Array:
        """Return the largest growth rate over each picture that is due, (m,), and of the others 0."""
        [largest] = _run(self._grow, due, c, g, [u], [], {})
        return jnp.max(largest, axis=(1, 2))

    def _advance(self, share: float, moves: Any, numbers: Any, g: Any, u: Any, w: Any, lost: Any, out: Any) -> None:
        """Take a stage of one tile: ``share`` of u, and the rest of w a substep later."""
        place, own = _find()
        cells, inside = _within(own, u.shape), (own[0] < u.shape[1]) & (own[1] < u.shape[2])
        m = place[0]

        @pl.when(moves[m] > 0)
        def _() -> None:
            h, low, high, *along = (numbers[m, n] for n in range(5))
            read = _Tile(w, m, cells, self._boundary)
            c = {n: numbers[m, 5 + n] for n in range(len(self._stage.terms))}
            value = read((0, 0)) + h * self._stage.change(read, along, c, (g[0], g[1]))
            if share:
                value = share * triton.load(u.at[m, cells[0], cells[1]]) + (1 - share) * value
            kept = jnp.clip(value, low, high)
            triton.store(out.at[m, own[0], own[1]], kept, mask=inside)
            lost[place] = jnp.sum(jnp.where(inside, jnp.abs(value - kept), 0.0))

        @pl.when(moves[m] == 0)
        def _() -> None:
            lost[place] = jnp.zeros((), lost.dtype)

    def _grow(self, due: Any, c: Any, g: Any, u: Any, largest: Any) -> None:
        """Take the largest growth rate of one tile."""
        place, own = _find()
        m, cells = place[0], _within(own, u.shape)

        @pl.when(due[m] > 0)
        def _() -> None:
            read = _Tile(u, m, cells, self._boundary)
            rate = self._stage.growth(read, [c[m, n] for n in range(c.shape[1])], (g[0], g[1]))
            # as large as can be where it is not a number, which a maximum may pass over
            largest[place] = jnp.max(jnp.where(jnp.isnan(rate), jnp.inf, rate))

        @pl.when(due[m] == 0)
        def _() -> None:
            largest[place] = jnp.zeros((), largest.dtype)


def _run(
    kernel: Any,
    wanted: jax.Array,
    numbers: jax.Array,
    g: jax.Array,
    pictures: list[jax.Array],
    like: list[jax.Array],
    places: dict[int, int],
) -> list[jax.Array]:
    """Run a kernel over all tiles; return a number (m, rows, columns) of each, and pictures ``like`` others.

    ``places``: which results take the place of which inputs, by their numbers.
    """
    m, ny, nx = pictures[0].shape
    grid, on_gpu = (m, pl.cdiv(ny, TILE[0]), pl.cdiv(nx, TILE[1])), jax.default_backend() == "gpu"
    described: Any = jax.ShapeDtypeStruct
    results: list[jax.Array] = pl.pallas_call(
        kernel,
        out_shape=[described(shape, numbers.dtype) for shape in (grid, *(each.shape for each in like))],
        grid=grid,
        input_output_aliases=places,
        interpret=not on_gpu,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1) if on_gpu else None,
    )(wanted.astype(jnp.int32), numbers, g, *pictures)
    return results


def _find() -> tuple[tuple[Any, Any, Any], tuple[jax.Array, jax.Array]]:
    """Return the place of a tile, and rows and columns of its cells, which may lie beyond the picture."""
    place = pl.program_id(0), pl.program_id(1), pl.program_id(2)
    rows, columns = (place[n + 1] * TILE[n] + jax.lax.broadcasted_iota(jnp.int32, TILE, n) for n in (0, 1))
    return place, (rows, columns)


def _within(cells: tuple[jax.Array, jax.Array], shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Return cells of a picture: the last ones in place of those that lie beyond it."""
    return jnp.minimum(cells[0], shape[1] - 1), jnp.minimum(cells[1], shape[2] - 1)
