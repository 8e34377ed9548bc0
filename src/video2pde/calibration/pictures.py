"""Pictures of a Jacobian, drawn from the frames of rollouts in one compiled pass each, frame by frame.

Frames are shared out to threads: ``begin`` and ``end`` say which. Rows are sliced before the loop along them: with four
indices in it no processor takes several pixels at a time. No sum is taken, so that the values are those
of plain array arithmetic, to the bit; differences, which are multiplied by one over their step, may be off by the last.
"""

from __future__ import annotations

from typing import Any

from video2pde.compiled import njit


@njit(nogil=True)
def draw_differences(values: Any, first: int, steps: Any, begin: int, end: int, out: Any) -> None:
    """Draw (v_{first+n} − v_0)/step_n of rollouts (m, t, y, x) into ``out`` (n, t, y, x)."""
    _, _, ny, nx = values.shape
    for n in range(len(out)):
        per_step = 1.0 / steps[n]  # a division takes as long as all the rest
        for t in range(begin, end):
            for j in range(ny):
                beside, here, row = values[first + n, t, j], values[0, t, j], out[n, t, j]
                for i in range(nx):
                    row[i] = (beside[i] - here[i]) * per_step


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
            here, above, below = values[0, t, j], values[0, t, up], values[0, t, down]
            across, along = out[0, t, j], out[1, t, j]
            across[0] = across[nx - 1] = 0.0
            for i in range(1, nx - 1):
                across[i] = (here[i - 1] - here[i + 1]) / (2 * dx)
            for i in range(nx):
                along[i] = (above[i] - below[i]) / apart


@njit(nogil=True)
def draw_error(values: Any, which: int, observed: Any, begin: int, end: int, out: Any) -> None:
    """Draw what one of the rollouts (m, t, y, x) differs by from the recording (t, y, x) into ``out`` (t, y, x)."""
    _, _, ny, nx = values.shape
    for t in range(begin, end):
        for j in range(ny):
            found, seen, row = values[which, t, j], observed[t, j], out[t, j]
            for i in range(nx):
                row[i] = found[i] - seen[i]
