"""Pictures of a Jacobian, drawn from the frames of rollouts in one compiled pass each, frame by frame.

Rows of frames are shared out to threads: ``begin`` and ``end`` say which. No sum is taken, so that the values are those
of plain array arithmetic, to the bit.
"""

from __future__ import annotations

from typing import Any

from video2pde.compiled import njit


@njit(nogil=True)
def draw_differences(values: Any, first: int, steps: Any, begin: int, end: int, out: Any) -> None:
    """Draw (v_{first+n} − v_0)/step_n of rollouts (m, t, y, x) into ``out`` (n, t, y, x)."""
    _, _, ny, nx = values.shape
    for n in range(len(out)):
        for t in range(begin, end):
            for j in range(ny):
                for i in range(nx):
                    out[n, t, j, i] = (values[first + n, t, j, i] - values[0, t, j, i]) / steps[n]


@njit(nogil=True)
def draw_slopes(values: Any, dx: float, dy: float, begin: int, end: int, out: Any) -> None:
    """Draw −û_x and −û_y of the first rollout of (m, t, y, x) into ``out`` (2, t, y, x).

    There is no difference across the picture's left and right edge.
    """
    _, _, ny, nx = values.shape
    for t in range(begin, end):
        for j in range(ny):
            up, down = max(j - 1, 0), min(j + 1, ny - 1)
            apart = 2 * dy if down - up == 2 else dy
            out[0, t, j, 0] = out[0, t, j, nx - 1] = 0.0
            for i in range(1, nx - 1):
                out[0, t, j, i] = (values[0, t, j, i - 1] - values[0, t, j, i + 1]) / (2 * dx)
            for i in range(nx):
                out[1, t, j, i] = (values[0, t, up, i] - values[0, t, down, i]) / apart


@njit(nogil=True)
def draw_error(values: Any, which: int, observed: Any, begin: int, end: int, out: Any) -> None:
    """Draw what one of the rollouts (m, t, y, x) differs by from the recording (t, y, x) into ``out`` (t, y, x)."""
    _, _, ny, nx = values.shape
    for t in range(begin, end):
        for j in range(ny):
            for i in range(nx):
                out[t, j, i] = values[which, t, j, i] - observed[t, j, i]
