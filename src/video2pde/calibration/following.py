"""Replicates' rollouts and what is summed from them, in one compiled pass.

A replicate's frames are compared while they are in the processor's cache: writing those of all replicates down, and
reading them again, takes longer than the rollouts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from video2pde.compiled import njit
from video2pde.rollout import driver


@njit(nogil=True, fastmath=True)
def sum_products(
    values: Any, truth: Any, residuals: Any, order: Any, size: Any, pictures: Any, weight: Any, first: int, out: Any
) -> None:  # pragma: no cover - compiled
    """Sum weight × error × picture over the pixels of each frame into ``out`` (t, c), from frame ``first`` on.

    The error of values[t] (y, x) is its difference from truth[t] + size[first + t] × residuals[order[first + t]].
    """
    frames, ny, nx = values.shape
    error = np.empty(nx, truth.dtype)
    for t in range(frames):
        scale, drawn = size[first + t], residuals[order[first + t]]
        out[first + t, :] = 0.0
        for j in range(ny):
            found, true, left, light = values[t, j], truth[t, j], drawn[j], weight[j]
            for i in range(nx):
                error[i] = (np.float32(found[i]) - (left[i] * scale + true[i])) * light[i]
            for c in range(out.shape[1]):
                picture = pictures[c, t, j]
                total = error[0] * 0
                for i in range(nx):
                    total += error[i] * picture[i]
                out[first + t, c] += total


def _follow_all(
    stage: Any,
    bound: Any,
    stencil: Any,
    states: Any,
    buffers: Any,
    course: Any,
    law: Any,
    region: Any,
    control: Any,
    ends: Any,
    substeps: Any,
    chosen: Any,
    room: Any,
    truth: Any,
    residuals: Any,
    order: Any,
    size: Any,
    pictures: Any,
    weight: Any,
    first: int,
    sums: Any,
) -> None:
    """Carry replicates on, and sum up what each leaves, sums (m, t, c); room (t, y, x): for the frames of one.

    See :func:`driver.carry_on` and :func:`sum_products`.
    """
    for n in chosen:
        status = driver.carry_on(
            stage, bound, stencil, states, buffers, course, law, region, control, ends, substeps, n, room
        )
        if status == driver.OK:
            sum_products(room, truth, residuals, order[n], size, pictures, weight, first, sums[n])
            states[n] = room[room.shape[0] - 1]
        else:
            sums[n, first:] = np.nan


@lru_cache(maxsize=4)
def compile_following(precision: str) -> Callable[..., Any]:
    """Compile the loop for rollouts of a number type, or take it from the cache."""
    single, whole = types.float32, types.int64
    frames = single[:, :, ::1]
    compared = (frames, frames, whole[:, ::1], single[::1], single[:, :, :, ::1], single[:, ::1], whole)
    room, sums = getattr(types, precision)[:, :, ::1], types.float64[:, :, ::1]
    return driver.compile_once(_follow_all, (*driver.together_types(precision), room, *compared, sums))
