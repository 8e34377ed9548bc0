"""Rollouts through JAX: for a GPU, and as a second implementation to compare with.

Discretisation, Runge–Kutta method, choice of substeps and failure rules are those of ``kernels.py`` and ``driver.py``;
tests hold the two together. Simulations go forward together as one batch, whose states stay on the device; what is
asked for travels. Batches and runs of frames have few sizes, so that few programs are compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.device import double, load_jax
from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.parallel import map_threads
from video2pde.rollout import driver
from video2pde.rollout.batching import batch_size, frames_at_once
from video2pde.rollout.jax_loop import Bounds, CLIP, compile_loop, Course, Law, State
from video2pde.rollout.jax_stage import is_polynomial, reach
from video2pde.rollout.kernels import Structure
from video2pde.terms import Term

if TYPE_CHECKING:
    from video2pde.rollout.task import Scheme, Task

Array = NDArray[Any]
Workers = int | Literal["auto"]
Outcome = tuple[int, int, NDArray[np.int64], float]

FETCHED = 2**24
"""Bytes that are fetched at a time."""
ABSENT = -1
"""Status of a place in a batch that holds no simulation."""


def advance_with_jax(tasks: Sequence[Task], grid: Grid, scheme: Scheme, outs: Sequence[Array]) -> list[Outcome]:
    """Run simulations into ``outs``, and return status, failed frame, substeps and clipped amount of each."""
    outcomes: dict[int, Outcome] = {}
    for members in group_tasks(tasks):
        chosen, values = [tasks[n] for n in members], [outs[n] for n in members]
        batch = DeviceBatch(chosen, grid, scheme)
        substeps = []
        _store(values, chosen, 0, batch.first[None], scheme.workers)
        while not batch.done:
            begin = batch.frame + 1
            frames, used = batch.advance()
            substeps.append(used)
            _store(values, chosen, begin, frames, scheme.workers)
        counts = np.concatenate([np.zeros((0, len(chosen))), *substeps]).astype(np.int64)
        for i, (n, end) in enumerate(zip(members, batch.ended(), strict=True)):
            outcomes[n] = (end[0], end[1], np.ascontiguousarray(counts[:, i]), end[2])
    return [outcomes[n] for n in range(len(tasks))]


def _store(values: Sequence[Array], tasks: Sequence[Task], first: int, frames: jax.Array, workers: Workers) -> None:
    """Fetch the frames (t, m, y, x) that are to be kept, in the number type in which they are."""
    places = np.stack([task.keep[first : first + len(frames)] for task in tasks])
    wanted = np.flatnonzero((places >= 0).any(axis=0))
    if not len(wanted):
        return
    # a few simulations at a time: memory that was fetched into once is used again
    several = min(len(tasks), max(1, FETCHED // (values[0][0].nbytes * len(wanted))))

    def put(first: int) -> None:
        begin = min(first, len(tasks) - several)
        with double():
            fetched = np.asarray(_pick(frames, wanted, begin, several, values[0].dtype))
        for i in range(first, min(first + several, len(tasks))):
            mine = places[i, wanted] >= 0
            values[i][places[i, wanted][mine]] = fetched[mine, i - begin]

    map_threads(put, range(0, len(tasks), several), workers)


@partial(jax.jit, static_argnames=("several", "kind"))
def _pick(frames: jax.Array, wanted: Array, begin: int, several: int, kind: np.dtype[Any]) -> jax.Array:
    """Take some of the frames (t, m, y, x) of ``several`` simulations, in a number type."""
    some = jax.lax.dynamic_slice_in_dim(frames, begin, several, axis=1)
    return some.at[wanted].get(mode="promise_in_bounds").astype(kind)


def group_tasks(tasks: Sequence[Task]) -> list[list[int]]:
    """Tell which simulations can be one batch; laws of polynomial terms can, with coefficients of zero."""
    groups: dict[Any, list[int]] = {}
    for n, task in enumerate(tasks):
        together = not task.mapped and all(is_polynomial(term) for term in task.model.terms)
        law = None if together else task.model.terms
        sizes = (len(task.fields), task.mapped, len(task.coefficients))
        groups.setdefault((law, task.restart, task.times.tobytes(), task.flows, sizes), []).append(n)
    return list(groups.values())


def _all_terms(tasks: Sequence[Task], vocabulary: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the terms of a group's program: its own, and those of other laws that may run with it."""
    own = tuple(dict.fromkeys(term for task in tasks for term in task.model.terms))
    if tasks[0].mapped or not all(is_polynomial(term) for term in own):
        return own
    return tuple(dict.fromkeys([*(term for term in vocabulary if is_polynomial(term)), *own]))


class DeviceBatch:
    """Simulations of one group on their way, their states on the device.

    ``anew`` (t − 1,): frame intervals that begin as a simulation of their own would, see ``together.SideBySide``; none:
    the bounds of the tasks hold.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        grid: Grid,
        scheme: Scheme,
        anew: NDArray[np.bool_] | None = None,
    ) -> None:
        load_jax()
        settings = scheme.settings
        first, self._grid, self._count = tasks[0], grid, len(tasks)
        terms = _all_terms(tasks, scheme.vocabulary)
        self.structure = structure = Structure(
            terms, scheme.accuracy, settings.precision, first.flows, mapped=first.mapped
        )
        if reach(structure) > min(grid.shape):
            raise InputError(f"a grid of {grid.ny}×{grid.nx} is smaller than the stencil's reach of {reach(structure)}")
        self._loop = compile_loop(structure, settings.boundary, first.restart)
        self._times, self._restart = first.times, first.restart
        self._anew = np.zeros(len(first.times) - 1, bool) if anew is None else anew
        self._places = batch_size(len(tasks), grid.ny * grid.nx)
        self._frames = frames_at_once(self._places, grid.ny * grid.nx)
        self._real = np.dtype(settings.precision)
        self._starts = first.starts if first.restart else None
        self.frame = 0
        with double():
            self._velocity = self._gather([task.velocity for task in tasks]).swapaxes(0, 1)
            self._factors = self._gather([task.factors for task in tasks]).swapaxes(0, 1)
            self._rows = len(first.coefficients)
            self._law = Law(
                c=jnp.asarray(self._gather([_spread(task, terms) for task in tasks])),
                maps=self._put([task.maps for task in tasks]),
                fields=self._put([task.fields for task in tasks]),
                g=jnp.asarray(np.array([1.0 / grid.dx, 1.0 / grid.dy], self._real)),
                safety=jnp.asarray(np.array(settings.safety, self._real)),
                most=jnp.asarray(np.array(settings.max_substeps, np.int32)),
                clip=jnp.asarray(np.array(CLIP[settings.clip], np.int32)),
            )
            self._state = self._begin(tasks)

    def _gather(self, rows: Sequence[Array]) -> Array:
        """Stack what the simulations have, the first one's once more in places that hold none."""
        return np.stack([*rows, *[rows[0]] * (self._places - self._count)]).astype(self._real)

    def _put(self, pictures: Sequence[Array]) -> jax.Array:
        """Stack pictures on the device: one that all share travels once."""
        if pictures[0].size and len({picture.ctypes.data for picture in pictures}) == 1:
            shared = jnp.asarray(pictures[0].astype(self._real, copy=False))
            return jnp.broadcast_to(shared, (self._places, *pictures[0].shape))
        return jnp.asarray(self._gather(pictures))

    def _begin(self, tasks: Sequence[Task]) -> State:
        limits = self._gather([np.array([*task.limits, task.allowed]) for task in tasks]).T
        zero, none = jnp.asarray(np.zeros(self._places, self._real)), np.zeros(self._places, np.int32)
        present = np.arange(self._places) < self._count
        return State(
            u=self._put([task.starts[0] for task in tasks]),
            rate=zero,
            age=jnp.asarray(none + np.int32(driver.RECHECK)),
            lost=zero,
            worst=zero,
            bounds=Bounds(*(jnp.asarray(row) for row in limits)),
            status=jnp.asarray(np.where(present, driver.OK, ABSENT).astype(np.int32)),
            failed=jnp.asarray(none - np.int32(1)),
        )

    @property
    def done(self) -> bool:
        return self.frame >= len(self._times) - 1

    @property
    def first(self) -> jax.Array:
        """The pictures (m, y, x) where the simulations stand."""
        return self._state.u[: self._count]

    def advance(self) -> tuple[jax.Array, jax.Array]:
        """Go forward; return the frames (t, m, y, x) that were reached, NaN where one failed, and the substeps."""
        begin, end = self.frame, min(self.frame + self._frames, len(self._times) - 1)
        with double():
            self._state, frames, used = self._loop(*self.inputs())
            self.frame = end
            if frames.shape[:2] == (end - begin, self._count):
                return frames, used
            return frames[: end - begin, : self._count], used[: end - begin, : self._count]

    def inputs(self) -> tuple[State, Law, Course]:
        """Return what the next call of the program is given."""
        return self._state, self._law, self._course(self.frame, min(self.frame + self._frames, len(self._times) - 1))

    def _course(self, begin: int, end: int) -> Course:
        """Describe the next frame intervals; those beyond the last one do not exist."""
        which = np.minimum(np.arange(begin, begin + self._frames), end - 1)
        real, shape = self._real, self._grid.shape
        starts = np.zeros((1, *shape), real) if self._starts is None else self._starts[which].astype(real)
        # in memory: the program takes them along when it is called
        return Course(
            length=np.diff(self._times)[which].astype(real),
            exists=np.arange(begin, begin + self._frames) < end,
            anew=self._anew[which],
            recheck=self._anew[which] | (self._rows > 1),
            velocity=self._velocity[np.minimum(np.arange(begin, begin + self._frames + 1), end)],
            factors=self._factors[which],
            row=(which if self._rows > 1 else 0 * which).astype(np.int32),
            frame=(which + 1).astype(np.int32),
            starts=starts,
        )

    def ended(self) -> list[tuple[int, int, float]]:
        """Return status, failed frame and largest clipped amount of each simulation."""
        state = self._state
        columns = (np.asarray(values)[: self._count].tolist() for values in (state.status, state.failed, state.worst))
        return list(zip(*columns, strict=True))


def _spread(task: Task, terms: tuple[Term, ...]) -> Array:
    """Place the coefficients (rows, K) of a law among the terms of its batch, zero where it has none."""
    own = len(task.model.terms)
    spread = np.zeros((len(task.coefficients), len(terms)))
    spread[:, [terms.index(term) for term in task.model.terms]] = task.coefficients[:, :own]
    return np.hstack([spread, task.coefficients[:, own:]])
