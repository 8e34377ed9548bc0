"""The time loop of a batch of rollouts, as JAX traces it: that of ``driver.py``, for all simulations at once.

Every simulation chooses its own substeps. A pass goes over all pictures, and those that have crossed their frame
interval, or have failed, stay as they are. The stability bound is a branch of its own, taken when one of them is due.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TYPE_CHECKING

import jax
import jax.numpy as jnp

from video2pde.rollout import driver
from video2pde.rollout.jax_stage import is_polynomial, Stage, wide, written_out
from video2pde.rollout.kernels import IMAGINARY_LIMIT, Structure, symbol_peak
from video2pde.rollout.task import BLOW_UP, CLIP_SHARE

if TYPE_CHECKING:
    from video2pde.rollout.jax_tiles import Tiles

CLIP = {"off": 0, "on": 1, "auto": 2}
"""The setting ``rollout.clip`` as programs are given it: one serves all."""
FASTEST = {"gpu": "tiled", "cpu": "padded"}
"""How neighbours are read fastest, by JAX's platform (``python -m benchmarks gpu``)."""


class Bounds(NamedTuple):
    """How far values of each simulation may go, (m,) each: a result, an intermediate stage, and what may be clipped."""

    low: jax.Array
    high: jax.Array
    stage_low: jax.Array
    stage_high: jax.Array
    allowed: jax.Array


class State(NamedTuple):
    """Simulations between two frames: pictures (m, y, x), and of each (m,) the stability bound and its age in substeps,
    what was clipped since its start and at most, its bounds, how it stands, and the frame that it could not reach."""

    u: jax.Array
    rate: jax.Array
    age: jax.Array
    lost: jax.Array
    worst: jax.Array
    bounds: Bounds
    status: jax.Array
    failed: jax.Array


class Law(NamedTuple):
    """What stays the same: coefficients (m, rows, K), maps (m, n, y, x), a flow's fields (m, l, 2, y, x), (1/Δx, 1/Δy),
    the simulator's safety and most substeps, and whether values are clipped to [0, 1]: 0 no, 1 yes, 2 where they lie
    there."""

    c: jax.Array
    maps: jax.Array
    fields: jax.Array
    g: jax.Array
    safety: jax.Array
    most: jax.Array
    clip: jax.Array


class Course(NamedTuple):
    """Frame intervals (t,): their lengths, which exist, which begin anew (bounds are taken from the state), which ask
    for the stability bound, velocities (t + 1, m, 2), factors (t, m, l) of the flow, the row of the coefficients, the
    number of the frame that is reached, and with restarts the frames (t, y, x) that begin them. They lie in memory."""

    length: Any
    exists: Any
    anew: Any
    recheck: Any
    velocity: Any
    factors: Any
    row: Any
    frame: Any
    starts: Any


class _Crossing(NamedTuple):
    """Simulations on their way through a frame interval, (m,) each but the pictures."""

    u: jax.Array
    t: jax.Array
    left: jax.Array
    rate: jax.Array
    age: jax.Array
    used: jax.Array
    lost: jax.Array
    status: jax.Array


class _Interval(NamedTuple):
    """A frame interval: its length, velocities (m, 2) at its start and their slopes, the flow (m, 2, y, x) or None, the
    rate of advection (m,), coefficients (m, K)."""

    length: jax.Array
    v: jax.Array
    slope: jax.Array
    flow: jax.Array | None
    carried: jax.Array
    c: jax.Array


@lru_cache(maxsize=64)
def compile_loop(structure: Structure, boundary: str, restart: bool, reader: str | None = None) -> Any:
    """Compile the rollout of a structure: (State, Law, Course) → State, frames (t, m, y, x), substeps (t, m).

    ``reader``: how neighbours are read; None: as is fastest on JAX's device.
    """
    chosen = reader or FASTEST.get(jax.default_backend(), "padded")
    stage, tiles = Stage(structure, boundary, "gathered" if chosen == "tiled" else chosen), None
    # flows, maps, edges that no place of a picture is, and all but powers of u and its slopes are left to XLA
    plain = not (structure.flow or structure.mapped) and all(is_polynomial(term) for term in structure.terms)
    if chosen == "tiled" and plain and boundary != "open":
        # Pallas comes with what it needs for a GPU, which not every machine has
        from video2pde.rollout.jax_tiles import Tiles

        tiles = Tiles(stage, boundary)
    return jax.jit(_Loop(stage, structure, restart, tiles).advance)


class _Loop:
    """The rollout of one structure, as JAX traces it."""

    def __init__(self, stage: Stage, structure: Structure, restart: bool, tiles: Tiles | None) -> None:
        self.stage, self.tiles = stage, tiles
        self.flows, self.restart = structure.flow, restart
        self.advection = symbol_peak((1, 0), structure.accuracy) / IMAGINARY_LIMIT
        # a program of its own: it stands in two places, and is traced and translated once
        self.take = jax.jit(self._substep)

    def advance(self, state: State, law: Law, course: Course) -> tuple[State, jax.Array, jax.Array]:
        def one(state: State, k: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
            state, used = self._cross(self._begin(state, law, course, k), law, course, k)
            return state, (jnp.where(wide(state.status == driver.OK), state.u, jnp.nan), used)

        state, (frames, used) = jax.lax.scan(one, state, jnp.arange(len(course.length)))
        return state, frames, used

    def _begin(self, state: State, law: Law, course: Course, k: jax.Array) -> State:
        """Take the frame that a restart begins with, or the bounds of the state where it begins anew."""
        again = jnp.full_like(state.age, driver.RECHECK)
        if self.restart:
            u = jnp.broadcast_to(course.starts[k], state.u.shape)
            return state._replace(u=u, age=again, lost=jnp.zeros_like(state.lost))
        bounds = jax.lax.cond(course.anew[k], lambda: _take_bounds(state.u, law.clip), lambda: state.bounds)
        lost = jnp.where(course.anew[k], 0.0, state.lost)
        return state._replace(bounds=bounds, lost=lost, age=jnp.where(course.recheck[k], again, state.age))

    def _cross(self, state: State, law: Law, course: Course, k: jax.Array) -> tuple[State, jax.Array]:
        """Cross one frame interval."""
        over = self._interval(law, course, k)
        zero, none = jnp.zeros_like(state.lost), jnp.zeros_like(state.age)
        left = jnp.where(course.exists[k], jnp.ones_like(none), none)
        ready = _Crossing(state.u, zero, left, state.rate, state.age, none, state.lost, state.status)

        def take(s: _Crossing) -> _Crossing:
            taken: _Crossing = self.take(s, over, state.bounds, law)
            return taken

        # the first one is taken without asking: an answer costs a device as much as a pass over small pictures
        end = jax.lax.while_loop(lambda s: jnp.any(self._active(s)), take, take(ready))
        broken = (state.status == driver.OK) & (end.status != driver.OK)
        crossed = State(
            u=end.u,
            rate=end.rate,
            age=end.age,
            lost=end.lost,
            worst=jnp.maximum(state.worst, end.lost),
            bounds=state.bounds,
            status=end.status,
            failed=jnp.where(broken, course.frame[k], state.failed),
        )
        return crossed, end.used

    def _interval(self, law: Law, course: Course, k: jax.Array) -> _Interval:
        length, v, ahead = course.length[k], course.velocity[k], course.velocity[k + 1]
        fastest, flow = jnp.maximum(jnp.abs(v), jnp.abs(ahead)), None
        if self.flows:
            flow = jnp.einsum("ml,mlayx->mayx", course.factors[k], law.fields)
            fastest = fastest + jnp.max(jnp.abs(flow), axis=(2, 3))
        carried = self.advection * (fastest @ law.g)
        return _Interval(length, v, (ahead - v) / length, flow, carried, law.c[:, course.row[k]])

    @staticmethod
    def _active(s: _Crossing) -> jax.Array:
        return (s.left > 0) & (s.status == driver.OK)

    def _substep(self, s: _Crossing, over: _Interval, bounds: Bounds, law: Law) -> _Crossing:
        """Choose the next substep of every simulation that is on its way, and take it."""
        active = self._active(s)
        due = active & (s.age >= driver.RECHECK)
        rate = self._rate(s, due, over, law)
        age = jnp.where(due, 0, s.age)
        wanted = (over.length - s.t) * (rate + over.carried) / law.safety
        # written so that a NaN counts as too much
        possible = wanted <= law.most - s.used
        left = jnp.where(possible, jnp.maximum(1, jnp.ceil(wanted)), 1).astype(s.left.dtype)
        h = (over.length - s.t) / left
        moves = active & possible
        if self.tiles is None:
            u, removed = self._step(s, h, moves, over, bounds, law)
        else:
            v = over.v + jnp.stack([s.t, s.t + h, s.t + 0.5 * h])[..., None] * over.slope
            u, removed = self.tiles.step(s.u, h, moves, v, over.c, bounds, law.g)
        lost = s.lost + jnp.where(moves, removed, 0.0)
        broken = jnp.where(jnp.isfinite(lost), driver.CLIPPED, driver.BLOWN_UP)
        ended = jnp.where(lost <= bounds.allowed, driver.OK, broken)
        status = jnp.where(possible, ended, driver.TOO_MANY_SUBSTEPS).astype(s.status.dtype)
        one = moves.astype(s.age.dtype)
        return _Crossing(
            u=u,
            t=jnp.where(moves, s.t + h, s.t),
            left=jnp.where(active, left - 1, s.left),
            rate=rate,
            age=age + one,
            used=s.used + one,
            lost=lost,
            status=jnp.where(active, status, s.status),
        )

    def _rate(self, s: _Crossing, due: jax.Array, over: _Interval, law: Law) -> jax.Array:
        """Take the stability bound of those that are due."""
        if self.tiles is not None:
            return jnp.where(due, self.tiles.bound(s.u, due, over.c, law.g), s.rate)
        rate: jax.Array = jax.lax.cond(
            jnp.any(due), lambda: jnp.where(due, self.stage.bound(s.u, over.c, law.g), s.rate), lambda: s.rate
        )
        return rate

    def _step(
        self, s: _Crossing, h: jax.Array, moves: jax.Array, over: _Interval, bounds: Bounds, law: Law
    ) -> tuple[jax.Array, jax.Array]:
        """Advance the pictures that move by their substeps h (m,); return them with the sums of what was clipped."""
        u, wide_h = s.u, wide(h)
        low, high = wide(bounds.stage_low), wide(bounds.stage_high)

        def rate(w: jax.Array, at: jax.Array) -> jax.Array:
            # a stage is one pass, and not computed again for every neighbour that the next one reads
            return self.stage.tendency(
                written_out(w), over.v + at[:, None] * over.slope, over.flow, over.c, law.maps, law.g
            )

        a = jnp.clip(u + wide_h * rate(u, s.t), low, high)
        b = jnp.clip(0.75 * u + 0.25 * (a + wide_h * rate(a, s.t + h)), low, high)
        value = u / 3 + 2 / 3 * (b + wide_h * rate(b, s.t + 0.5 * h))
        kept = jnp.clip(value, wide(bounds.low), wide(bounds.high))
        removed = jnp.sum(jnp.abs(value - kept), axis=(1, 2))
        return jnp.where(wide(moves), kept, u), removed


def _take_bounds(u: jax.Array, clip: jax.Array) -> Bounds:
    """Take the bounds of simulations that begin from a state, as ``task.bounds_of`` does."""
    largest = jnp.max(jnp.abs(u), axis=(1, 2))
    reach = BLOW_UP * jnp.maximum(largest, 1.0)
    content = jnp.maximum(jnp.sum(jnp.abs(u), axis=(1, 2)), 1e-12)
    inside = (jnp.min(u, axis=(1, 2)) >= 0) & (largest <= 1)
    clipping = jnp.where(clip == CLIP["auto"], inside, clip == CLIP["on"])
    low, high = jnp.where(clipping, 0.0, -reach), jnp.where(clipping, 1.0, reach)
    return Bounds(low, high, -reach, reach, jnp.where(clipping, CLIP_SHARE * content, 0.0))
