"""Rollouts that go forward together, a few frames at a time, in one compiled call for each thread.

Each call of a compiled loop holds the interpreter for as long as several frames take, and threads wait for each other
there. So what a law's simulations share is laid out once: the loops of ``driver.py`` find each of them by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.field import Grid
from video2pde.parallel import count_workers, map_threads
from video2pde.rollout import driver
from video2pde.rollout.kernels import compile_kernel, Kernel, Structure
from video2pde.rollout.model import Model
from video2pde.rollout.task import (
    BLOW_UP,
    CLIP_SHARE,
    EDGES,
    explain,
    own,
    prepare_region,
    prepare_task,
    Rollout,
    run_tasks,
    Scheme,
    Task,
)

Array = NDArray[Any]
Loop = Callable[..., Any]


def for_each(models: Sequence[Model], velocity: ArrayLike | None) -> list[Array | None]:
    """Return a drift (t, 2) for each model, from one for all or from (m, t, 2)."""
    drift = None if velocity is None else np.asarray(velocity, float)
    return list(drift) if drift is not None and drift.ndim == 3 else [drift] * len(models)


@dataclass(frozen=True, eq=False)
class Part:
    """Some frames: ``begin`` to ``end``, which follow ``lead`` frames (0 or 1) that the simulations stand at."""

    begin: int
    end: int

    @property
    def lead(self) -> int:
        return int(self.begin > 0)

    @property
    def window(self) -> slice:
        """The frames, and the one that the simulations stand at."""
        return slice(self.begin - self.lead, self.end)

    @property
    def keep(self) -> NDArray[np.int64]:
        """Where each frame of the window goes: the one that leads was returned before."""
        return np.arange(-self.lead, self.end - self.begin)


@dataclass(frozen=True, eq=False)
class Course:
    """Simulations on their way: where each stands, (m, y, x), how its last part ended, and its substeps, (m, t)."""

    states: Array
    ends: Array
    substeps: NDArray[np.int64]

    @classmethod
    def of(cls, states: Array, frames: int) -> Course:
        return cls(states, np.zeros((len(states), 5)), np.zeros((len(states), frames), np.int64))


@dataclass(frozen=True, eq=False)
class Stack:
    """Simulations of laws of one structure, each with coefficients and a drift of its own.

    ``members``: their numbers. ``velocities`` (m, t, 2) and ``coefficients`` (m, r, K) have rows for all simulations
    that go together, ``edges`` is what the compiled loop takes of the region, without its rim.
    """

    kernel: Kernel
    members: tuple[int, ...]
    times: Array
    velocities: Array
    coefficients: Array
    pitch: tuple[float, float]
    scheme: Scheme
    edges: tuple[Any, ...]

    @classmethod
    def of(cls, tasks: dict[int, Task], count: int, grid: Grid, scheme: Scheme) -> Stack:
        """Lay out some of ``count`` simulations; their tasks have the same structure."""
        first, region = next(iter(tasks.values())), scheme.region
        walls = region is not None and region.walls
        structure = Structure(first.model.terms, scheme.accuracy, scheme.settings.precision, walls=walls)
        velocities = np.zeros((count, *first.velocity.shape))
        coefficients = np.zeros((count, *first.coefficients.shape), scheme.settings.precision)
        for n, task in tasks.items():
            velocities[n], coefficients[n] = task.velocity, task.coefficients
        kernel = compile_kernel(structure)
        kernel.check_reach(grid)
        pitch = (1.0 / grid.dx, 1.0 / grid.dy)
        edges = prepare_region(None if region is None else region.frames(slice(0)), kernel)
        return cls(kernel, tuple(tasks), first.times, velocities, coefficients, pitch, scheme, edges)

    def carry_on(self, loop: Loop, course: Course, buffers: Array, part: Part, *more: Any) -> None:
        """Call a loop over some frames; ``more``: what it takes beyond what :func:`driver.carry_on` does."""
        settings, region, real, window = self.scheme.settings, self.scheme.region, course.states.dtype, part.window
        still = (
            np.zeros((0, 2, 1, 1), real),
            np.zeros((len(self.times), 0)),
            np.zeros((2, 1, 1), real),
            np.zeros((0, 1, 1), real),
        )
        near, outside, rim = self.edges
        if region is not None and region.rim is not None:
            rim = own(np.asarray(region.rim[window], np.float32))
        loop(
            *self.kernel.law,
            course.states,
            buffers,
            (self.times, part.keep, (window.start, window.stop), self.velocities, still),
            (self.coefficients, self.pitch, (driver.CLIPPING[settings.clip], BLOW_UP, CLIP_SHARE)),
            (EDGES[settings.boundary], near, outside, rim),
            (float(settings.safety), int(settings.max_substeps)),
            course.ends,
            course.substeps,
            *more,
        )


class SideBySide:
    """Rollouts of many models that go forward together, a few frames at a time.

    Between two calls of :meth:`advance` the last state of each is all that is held. The parameters are those of
    :func:`~video2pde.rollout.simulate.simulate_chunks`. Laws with a flow, or with a coefficient that varies in space,
    hold pictures of their own, which are made anew for each part; all others are stacked.
    """

    def __init__(
        self,
        models: Sequence[Model],
        u0: ArrayLike,
        times: ArrayLike,
        grid: Grid,
        velocity: ArrayLike | None = None,
        scheme: Scheme | None = None,
    ) -> None:
        self._models, self._times, self._grid = models, np.asarray(times, float), grid
        self._scheme = scheme or Scheme()
        self._drifts = for_each(models, velocity)
        start = np.broadcast_to(np.asarray(u0, self._scheme.settings.precision), (len(models), *grid.shape))
        self._course = Course.of(np.array(start, order="C"), len(self._times))
        self._failed: dict[int, Rollout] = {}
        self._shares: list[tuple[int, int, NDArray[np.int64]]] = []
        self._shared_for = -1  # how many had failed when they were shared out
        self._begin = 0
        self._buffers: dict[tuple[int, int], Array] = {}
        self._stacks = self._stack() if self._scheme.device != "gpu" else []
        stacked = {n for stack in self._stacks for n in stack.members}
        self._alone = [n for n in range(len(models)) if n not in stacked]

    def _stack(self) -> list[Stack]:
        """Lay out the simulations that hold no pictures of their own, by the terms of their laws."""
        kinds: dict[Any, dict[int, Task]] = {}
        for n, model in enumerate(self._models):
            if model.flow is None and not any(each.over == "space" for each in model.maps):
                task = self._prepare(n, Part(0, len(self._times)))
                kinds.setdefault((task.model.terms, task.coefficients.shape), {})[n] = task
        return [Stack.of(tasks, len(self._models), self._grid, self._scheme) for tasks in kinds.values()]

    def _prepare(self, n: int, part: Part) -> Task:
        drift, frames = self._drifts[n], range(part.lead, part.end - part.begin + part.lead)
        moved = None if drift is None else drift[part.window]
        state, times = self._course.states[n][None], self._times[part.window]
        task = prepare_task(self._models[n], state, times, self._grid, moved, self._scheme.settings, frames=frames)
        return replace(task, place=(part.window.start, len(self._times) - 1))

    @property
    def done(self) -> bool:
        return self._begin >= len(self._times)

    @property
    def stacked(self) -> bool:
        """Whether all rollouts can be carried on by a loop of the caller's own, see :meth:`carry_on`."""
        return bool(self._stacks) and not self._alone

    def advance(self, chunk: int) -> tuple[slice, Array, list[Rollout]]:
        """Roll out the next ``chunk`` frames, as far as there are: see ``simulate.simulate_chunks``."""
        part = Part(self._begin, min(self._begin + chunk, len(self._times)))
        values = np.empty((len(self._models), part.end - part.begin, *self._grid.shape), self._course.states.dtype)
        values[list(self._failed)] = np.nan
        done = self._advance_alone(part, values)
        self._run(part, driver.compile_all(self._scheme.settings.precision), values)
        for n in (n for stack in self._stacks for n in stack.members if n not in self._failed):
            done[n] = self._report(n, part, values[n])
        for n, rollout in done.items():
            if rollout.failed:
                self._failed[n] = replace(rollout, values=np.empty((0, *self._grid.shape)))
        rollouts = [done[n] if n in done else replace(self._failed[n], values=values[n]) for n in range(len(values))]
        # a copy: the state must not hold all frames of the chunk
        self._course.states[:] = values[:, -1]
        self._begin = part.end
        return slice(part.begin, part.end), values, rollouts

    def carry_on(self, chunk: int, loop: Loop, *more: Any) -> slice:
        """Give the next ``chunk`` frames to a loop of the caller's own, which leaves each state at the last of them.

        ``more``: what the loop takes beyond the numbers of the rollouts. One that fails is not carried on.
        """
        part = Part(self._begin, min(self._begin + chunk, len(self._times)))
        self._run(part, loop, *more)
        for n in np.flatnonzero(self._course.ends[:, 0] != driver.OK):
            if n not in self._failed:
                self._failed[int(n)] = self._report(int(n), part, np.empty((0, *self._grid.shape)))
        self._begin = part.end
        return slice(part.begin, part.end)

    def _run(self, part: Part, loop: Loop, *more: Any) -> None:
        """Share the stacked rollouts out to threads, and give each share to a loop."""
        if self._shared_for != len(self._failed):
            self._shares, self._shared_for = self._share(), len(self._failed)

        def run(share: tuple[int, int, NDArray[np.int64]]) -> None:
            place, number, chosen = share
            stack = self._stacks[place]
            room = self._buffers.get((place, number))
            if room is None:
                padded = (3, *(side + 2 * stack.kernel.radius for side in self._grid.shape))
                room = self._buffers[place, number] = np.zeros(padded, self._course.states.dtype)
            stack.carry_on(loop, self._course, room, part, chosen, *more)

        map_threads(run, self._shares, self._scheme.workers)

    def _share(self) -> list[tuple[int, int, NDArray[np.int64]]]:
        """Share out what has not failed: the stack's place, the share's number in it, and the rollouts."""
        shares = []
        for place, stack in enumerate(self._stacks):
            alive = np.array([n for n in stack.members if n not in self._failed], np.int64)
            parts = np.array_split(alive, count_workers(self._scheme.workers))
            shares += [(place, number, share) for number, share in enumerate(parts) if len(share)]
        return shares

    def _report(self, n: int, part: Part, values: Array) -> Rollout:
        """Say how a stacked rollout has crossed some frames, and leave out what it has not reached."""
        status, frame, lost, clips, content = self._course.ends[n]
        window, reason, failed_frame = part.window, "", None
        if status != driver.OK:
            failed_frame = int(frame) + window.start
            values[max(failed_frame - part.begin, 0) :] = np.nan
            last, time = len(self._times) - 1, self._times[failed_frame]
            reason = explain(int(status), failed_frame, last, time, bool(clips), self._scheme.settings)
        used = self._course.substeps[n, window.start : window.stop - 1]
        return Rollout(values, bool(reason), failed_frame, reason, used, lost / content if clips else 0.0)

    def _advance_alone(self, part: Part, values: Array) -> dict[int, Rollout]:
        """Roll those out that hold pictures of their own, or that run on a device."""
        scheme, alive = self._scheme, [n for n in self._alone if n not in self._failed]
        here = scheme if scheme.region is None else replace(scheme, region=scheme.region.frames(part.window))
        if scheme.device == "gpu":
            tasks = [self._prepare(n, part) for n in alive]
            done = run_tasks(tasks, self._grid, here, [values[n] for n in alive])
        else:  # what is looked at before a rollout takes as long as a frame of it
            done = map_threads(
                lambda n: run_tasks([self._prepare(n, part)], self._grid, here, [values[n]])[0], alive, scheme.workers
            )
        shift = part.window.start
        return {
            n: replace(rollout, failed_frame=rollout.failed_frame + shift)
            if rollout.failed and rollout.failed_frame is not None
            else rollout
            for n, rollout in zip(alive, done, strict=True)
        }
