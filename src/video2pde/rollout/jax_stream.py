"""Rollouts that go forward together through JAX, a few frames at a time: ``together.SideBySide`` on a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from video2pde.device import double
from video2pde.field import Grid
from video2pde.rollout.jax_backend import DeviceBatch, group_tasks
from video2pde.rollout.model import Model
from video2pde.rollout.task import prepare_task, Scheme
from video2pde.rollout.together import for_each


class DeviceSideBySide:
    """Rollouts of many models whose frames stay on the device.

    ``rhythm``: frames after which they begin anew, as ``SideBySide`` does with every chunk, so that both choose the
    same substeps. The other parameters are those of ``simulate.simulate_chunks``.
    """

    @double()
    def __init__(
        self,
        models: Sequence[Model],
        u0: ArrayLike,
        times: ArrayLike,
        grid: Grid,
        velocity: ArrayLike | None,
        scheme: Scheme,
        rhythm: int,
    ) -> None:
        t, settings = np.asarray(times, float), scheme.settings
        first = np.broadcast_to(np.asarray(u0, settings.precision), (len(models), *grid.shape))
        tasks = [
            prepare_task(model, start[None], t, grid, drift, settings)
            for model, start, drift in zip(models, first, for_each(models, velocity), strict=True)
        ]
        anew = np.zeros(len(t) - 1, bool)
        anew[rhythm - 1 :: rhythm] = True
        groups = group_tasks(tasks)
        self._batches = [DeviceBatch([tasks[n] for n in members], grid, scheme, anew) for members in groups]
        self._places = np.argsort([n for members in groups for n in members])
        self._frames, self._begin = len(t), 0
        self._held = self._join([batch.first[None] for batch in self._batches])

    def _join(self, parts: Sequence[jax.Array]) -> jax.Array:
        """Put what the batches give, (t, m, y, x) each, in the order of the models."""
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=1)[:, self._places]

    @property
    def done(self) -> bool:
        return self._begin >= self._frames

    @double()
    def advance(self, chunk: int) -> tuple[slice, jax.Array]:
        """Roll out the next ``chunk`` frames, as far as there are: their slice and values (model, frame, y, x).

        Frames of a model that failed are NaN.
        """
        end = min(self._begin + chunk, self._frames)
        parts, count = [self._held], end - self._begin
        while sum(len(part) for part in parts) < count:
            parts.append(self._join([batch.advance()[0] for batch in self._batches]))
        given, self._held = _divide(parts, count)
        frames, self._begin = slice(self._begin, end), end
        return frames, given


@partial(jax.jit, static_argnames="count")
def _divide(parts: list[jax.Array], count: int) -> tuple[jax.Array, jax.Array]:
    """Divide frames (t, m, y, x) into the first ``count``, one simulation after the other, and what is held back."""
    frames = jnp.concatenate(parts)
    return jnp.swapaxes(frames[:count], 0, 1), frames[count:]
