"""The same rollout through JAX: for a GPU, and as a second implementation to compare with.

Discretisation, Runge–Kutta method, choice of substeps and failure rules are those of ``kernels.py`` and
``driver.py``; tests hold the two together. Simulations of one structure run as one vectorised call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import sympy
from numpy.typing import NDArray

from video2pde.field import Grid
from video2pde.maps import in_divergence_form
from video2pde.rollout import driver
from video2pde.rollout.kernels import IMAGINARY_LIMIT, stability_limit, Structure, symbol_peak
from video2pde.rollout.mapped import corners
from video2pde.settings import RolloutSettings
from video2pde.terms import Part, Term
from video2pde.terms.parse import U
from video2pde.terms.stencil import radius, stencil
from video2pde.terms.term import compile_expression, jet_symbol, Order

if TYPE_CHECKING:
    from video2pde.rollout.task import Task

Outcome = tuple[NDArray[Any], int, int, NDArray[np.int64], float]


class _Law(NamedTuple):
    """What stays the same in one simulation: coefficients of every interval, or of all, those that vary in space
    (n, y, x), (1/Δx, 1/Δy), limits of a result and of an intermediate stage, and what clipping may take."""

    c: jax.Array
    maps: jax.Array
    g: jax.Array
    low: jax.Array
    high: jax.Array
    stage_low: jax.Array
    stage_high: jax.Array
    allowed: jax.Array


class _Interval(NamedTuple):
    """A frame interval: its length, the velocity (2,) at its start, the velocity's slope, and the flow (2, y, x)."""

    length: jax.Array
    v: jax.Array
    slope: jax.Array
    blown: jax.Array


class _State(NamedTuple):
    """Carry a simulation from substep to substep."""

    u: jax.Array
    t: jax.Array
    left: jax.Array
    rate: jax.Array
    age: jax.Array
    used: jax.Array
    lost: jax.Array
    status: jax.Array


def advance_with_jax(
    tasks: Sequence[Task], grid: Grid, settings: RolloutSettings, accuracy: int, stored: np.dtype[Any]
) -> list[Outcome]:
    """Run simulations grouped by structure; return frames, status, failed frame, substeps and clipped amount."""
    groups: dict[Any, list[int]] = {}
    for n, task in enumerate(tasks):
        sizes = (len(task.fields), task.mapped, len(task.coefficients))
        key = (task.model.terms, task.restart, task.keep.tobytes(), task.flows, sizes)
        groups.setdefault(key, []).append(n)
    outcomes: dict[int, Outcome] = {}
    with jax.enable_x64(settings.precision == "float64"):
        for (terms, restart, _, flows, (_, mapped, _)), members in groups.items():
            structure = Structure(terms, accuracy, settings.precision, flows, mapped=mapped)
            run = _compile(structure, settings.boundary, restart, settings.safety, settings.max_substeps)
            chosen = [tasks[n] for n in members]
            frames, status, failed, substeps, lost = run(
                np.stack([task.starts for task in chosen]),
                np.stack([task.times for task in chosen]),
                np.stack([task.velocity for task in chosen]),
                np.stack([task.fields for task in chosen]),
                np.stack([task.factors for task in chosen]),
                np.stack([task.coefficients for task in chosen]),
                np.stack([task.maps for task in chosen]),
                np.array([(*task.limits, task.allowed) for task in chosen]),
                np.array([1.0 / grid.dx, 1.0 / grid.dy]),
            )
            for i, n in enumerate(members):
                kept = np.flatnonzero(tasks[n].keep >= 0)
                values = np.empty((len(kept), *grid.shape), stored)
                values[tasks[n].keep[kept]] = np.asarray(frames[i])[kept]
                counts = np.asarray(substeps[i], np.int64)
                outcomes[n] = (values, int(status[i]), int(failed[i]), counts, float(lost[i]))
    return [outcomes[n] for n in range(len(tasks))]


def _differ(padded: jax.Array, reach: int, order: Order, g: jax.Array, accuracy: int) -> jax.Array:
    """Apply the central difference of D^order to a frame with a margin of ``reach``."""
    ny, nx = padded.shape[0] - 2 * reach, padded.shape[1] - 2 * reach
    total = jnp.zeros((ny, nx), padded.dtype)
    for (j, i), weight in stencil(order, 1.0, 1.0, accuracy).items():
        total = total + weight * padded[reach + j : reach + j + ny, reach + i : reach + i + nx]
    return total * g[0] ** order[0] * g[1] ** order[1]


def _apply_part(part: Part, padded: jax.Array, reach: int, g: jax.Array, accuracy: int) -> jax.Array:
    if not part.uses_gradient:
        density = compile_expression(part.density, (U,), "jax")(padded) + 0 * padded
        return _differ(density, reach, part.derivative, g, accuracy)
    orders = Term("", (part,)).jets
    jets = [_differ(padded, reach, order, g, accuracy) for order in orders]
    value: jax.Array = compile_expression(part.strong, tuple(jet_symbol(order) for order in orders), "jax")(*jets)
    return value


def _apply_mapped(
    part: Part, padded: jax.Array, field: jax.Array, reach: int, g: jax.Array, accuracy: int
) -> jax.Array:
    """Apply a part whose coefficient varies in space, ``field`` padded like u; see ``rollout.mapped``."""
    ny, nx = padded.shape[0] - 2 * reach, padded.shape[1] - 2 * reach
    here = field[reach : reach + ny, reach : reach + nx]
    if not in_divergence_form(part):
        return here * _apply_part(part, padded, reach, g, accuracy)
    density = compile_expression(part.density, (U,), "jax")(padded) + 0 * padded
    total = jnp.zeros((ny, nx), padded.dtype)
    for (j, i), weight in stencil(part.derivative, 1.0, 1.0, accuracy).items():
        there = (slice(reach + j, reach + j + ny), slice(reach + i, reach + i + nx))
        difference = density[there] - density[reach : reach + ny, reach : reach + nx]
        total = total + 0.5 * weight * (here + field[there]) * difference
    return total * g[0] ** part.derivative[0] * g[1] ** part.derivative[1]


def _build_bound(structure: Structure, reach: int) -> Callable[..., jax.Array]:
    """Build the stability estimate of ``kernels.py`` from the same symbolic derivatives."""
    terms, accuracy = structure.terms, structure.accuracy
    orders = tuple(sorted({order for term in terms for order in term.jets}, key=lambda o: (sum(o), o)))
    names = tuple(sympy.Symbol(f"c{n}") for n in range(len(terms) + 2 * len(structure.mapped)))
    tendency = sympy.Add(*(c * term.strong for c, term in zip(names, terms, strict=False)))
    arguments = (*names, *(jet_symbol(order) for order in orders))
    slopes = [
        [compile_expression(end, arguments, "jax") for end in corners(slope, structure.mapped, len(terms))]
        for slope in (sympy.diff(tendency, jet_symbol(order)) for order in orders)
    ]

    def bound(padded: jax.Array, c: jax.Array, g: jax.Array) -> jax.Array:
        jets = [_differ(padded, reach, order, g, accuracy) for order in orders]
        total = jnp.zeros((), padded.dtype)
        for order, ends in zip(orders, slopes, strict=True):
            weight = symbol_peak(order, accuracy) / stability_limit(order) * g[0] ** order[0] * g[1] ** order[1]
            largest = jnp.abs(ends[0](*c, *jets))
            for end in ends[1:]:
                largest = jnp.maximum(largest, jnp.abs(end(*c, *jets)))
            total = total + weight * largest
        return jnp.max(total)

    return bound


@lru_cache(maxsize=64)
def _compile(
    structure: Structure, boundary: str, restart: bool, safety: float, max_substeps: int
) -> Callable[..., Any]:
    """Compile the rollout of one structure, over a batch of simulations."""
    loop = _Loop(structure, boundary, restart, safety, max_substeps)
    mapped = jax.jit(jax.vmap(loop.simulate, in_axes=(0, 0, 0, 0, 0, 0, 0, 0, None)))

    def run(*arguments: Any) -> Any:
        return mapped(*(jnp.asarray(argument, loop.real) for argument in arguments))

    return run


class _Loop:
    """The rollout of one structure, as JAX traces it."""

    def __init__(self, structure: Structure, boundary: str, restart: bool, safety: float, max_substeps: int) -> None:
        self.terms, self.accuracy, self.mapped = structure.terms, structure.accuracy, structure.mapped
        self.real = jnp.dtype(structure.precision)
        self.boundary, self.restart, self.safety, self.max_substeps = boundary, restart, safety, max_substeps
        self.reach = max([1, self.accuracy // 2, *(radius(term, self.accuracy) for term in self.terms)])
        self.bound = _build_bound(structure, self.reach)
        self.advection = symbol_peak((1, 0), self.accuracy) / IMAGINARY_LIMIT

    def pad(self, u: jax.Array) -> jax.Array:
        if self.boundary == "open":
            return jnp.pad(u, self.reach, mode="reflect", reflect_type="odd")
        return jnp.pad(u, self.reach, mode="wrap" if self.boundary == "periodic" else "symmetric")

    def tendency(self, u: jax.Array, v: jax.Array, blown: jax.Array, law: _Law) -> jax.Array:
        padded, reach, accuracy = self.pad(u), self.reach, self.accuracy
        along = v[:, None, None] + blown
        total = -along[0] * _differ(padded, reach, (1, 0), law.g, accuracy)
        total = total - along[1] * _differ(padded, reach, (0, 1), law.g, accuracy)
        for n, term in enumerate(self.terms):
            if n in self.mapped:
                field = self.continue_map(law.maps[self.mapped.index(n)])
                parts = (_apply_mapped(part, padded, field, reach, law.g, accuracy) for part in term.parts)
                total = total + sum(parts)
            else:
                parts = (_apply_part(part, padded, reach, law.g, accuracy) for part in term.parts)
                total = total + law.c[n] * sum(parts)
        return total

    def continue_map(self, field: jax.Array) -> jax.Array:
        return jnp.pad(field, self.reach, mode="wrap" if self.boundary == "periodic" else "symmetric")

    def step(self, u: jax.Array, t: jax.Array, h: jax.Array, over: _Interval, law: _Law) -> tuple[jax.Array, jax.Array]:
        """Advance u by one substep h; return it with the sum of what was clipped."""

        def clip(x: jax.Array) -> jax.Array:
            return jnp.clip(x, law.stage_low, law.stage_high)

        def rate(w: jax.Array, at: jax.Array) -> jax.Array:
            return self.tendency(w, over.v + at * over.slope, over.blown, law)

        a = clip(u + h * rate(u, t))
        b = clip(0.75 * u + 0.25 * (a + h * rate(a, t + h)))
        value = u / 3 + 2 / 3 * (b + h * rate(b, t + 0.5 * h))
        kept = jnp.clip(value, law.low, law.high)
        return kept, jnp.sum(jnp.abs(value - kept))

    def substep(self, state: _State, over: _Interval, law: _Law) -> _State:
        """Choose the next substep of an interval and take it."""
        due = state.age >= driver.RECHECK
        rate = jax.lax.cond(due, lambda: self.bound(self.pad(state.u), law.c, law.g), lambda: state.rate)
        age = jnp.where(due, 0, state.age).astype(jnp.int32)
        ends = jnp.maximum(jnp.abs(over.v), jnp.abs(over.v + over.length * over.slope))
        fastest = ends + jnp.abs(over.blown).max(axis=(1, 2))
        wanted = (over.length - state.t) * (rate + self.advection * jnp.sum(fastest * law.g)) / self.safety
        possible = wanted <= self.max_substeps - state.used
        left = jnp.where(possible, jnp.maximum(1, jnp.ceil(wanted)), 1).astype(jnp.int32)
        h = (over.length - state.t) / left
        u, removed = self.step(state.u, state.t, h, over, law)
        lost = state.lost + removed
        broken = jnp.where(jnp.isfinite(lost), driver.CLIPPED, driver.BLOWN_UP)
        ended = jnp.where(lost <= law.allowed, driver.OK, broken)
        status = jnp.where(possible, ended, driver.TOO_MANY_SUBSTEPS).astype(jnp.int32)
        return _State(
            u=u,
            t=state.t + h,
            left=left - 1,
            rate=rate,
            age=age + 1,
            used=state.used + possible,
            lost=lost,
            status=status,
        )

    def cross(self, state: _State, over: _Interval, law: _Law) -> _State:
        """Cross one frame interval."""
        ready = state._replace(t=jnp.zeros((), self.real), left=jnp.int32(1), used=jnp.int32(0))
        crossed: _State = jax.lax.while_loop(
            lambda s: (s.left > 0) & (s.status == driver.OK), lambda s: self.substep(s, over, law), ready
        )
        return crossed

    def simulate(
        self,
        starts: jax.Array,
        times: jax.Array,
        velocity: jax.Array,
        fields: jax.Array,
        factors: jax.Array,
        c: jax.Array,
        maps: jax.Array,
        limits: jax.Array,
        g: jax.Array,
    ) -> tuple[Any, ...]:
        """Roll out over all frame intervals; return frames, status, failed frame, substeps and clipped amount."""
        whole, zero = _Law(c, maps, g, *limits), jnp.zeros((), self.real)
        varies = c.shape[0] > 1

        def next_frame(carry: tuple[_State, jax.Array], k: jax.Array) -> tuple[tuple[_State, jax.Array], Any]:
            state, failed = carry
            if self.restart:
                state = state._replace(u=starts[k], age=jnp.int32(driver.RECHECK), lost=zero)
            if varies:
                # the bound belongs to the coefficients of the interval before
                state = state._replace(age=jnp.int32(driver.RECHECK))
            law = whole._replace(c=c[k] if varies else c[0])
            length, v = times[k + 1] - times[k], velocity[k]
            still = jnp.zeros((2, 1, 1), self.real)
            blown = jnp.tensordot(factors[k], fields, axes=1) if fields.shape[0] else still
            state = self.cross(state, _Interval(length, v, (velocity[k + 1] - v) / length, blown), law)
            failed = jnp.where((failed < 0) & (state.status != driver.OK), k + 1, failed).astype(jnp.int32)
            return (state, failed), (state.u, state.used, state.lost)

        status = jnp.int32(driver.OK)
        first = _State(
            u=starts[0],
            t=zero,
            left=jnp.int32(1),
            rate=zero,
            age=jnp.int32(driver.RECHECK),
            used=jnp.int32(0),
            lost=zero,
            status=status,
        )
        (last, failed), (frames, used, lost) = jax.lax.scan(
            next_frame, (first, jnp.int32(-1)), jnp.arange(times.shape[0] - 1)
        )
        frames = jnp.concatenate([starts[:1], frames])
        return frames, last.status, failed, used, jnp.max(lost, initial=0.0)
