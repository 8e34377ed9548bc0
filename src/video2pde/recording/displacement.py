"""The displacement of frames against the scene that they show: one least-squares fit a frame, and frames put back.

For each frame F and its scene S, over the compared cells,

    F − S = −(dy S_y + dx S_x + angle (x S_y − y S_x) + zoom (y S_y + x S_x)) + g S + c.

The sums of the normal equations are made in one compiled pass over the picture; frames are shared out to threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from video2pde.compiled import njit
from video2pde.parallel import count_workers, map_threads

Array = NDArray[np.float64]

EVERY = 5  # of the frames: one of so many tells the errors
LAGS = 5  # cells over which neighbours share their noise
PAD = 12  # cells by which a picture is continued before its splines are made


def in_threads(work: Callable[[slice], Any], count: int) -> None:
    """Do ``work`` on slices of ``count`` frames, one for each core."""
    ends = np.linspace(0, count, count_workers("auto") + 1).astype(int)
    map_threads(work, [slice(a, b) for a, b in pairwise(ends) if b > a], "auto")


def fit_displacement(frames: Array, basis: Array, where: NDArray[np.bool_], affine: bool) -> tuple[Array, Array, float]:
    """Fit each frame's (dy, dx, angle, zoom); return them, their standard errors, and the explained share.

    Neighbouring cells share their noise after the filter: the errors count the autocorrelation of what is left.

    Parameters
    ----------
    frames : (t, y, x). basis : (t, k), orthonormal; what it follows of each cell is the scene. where : cells that
        are compared, (y, x), none of them at the edge. affine : whether angle and zoom are fitted, too.
    """
    flat = frames.reshape(len(frames), -1)
    scene = (basis @ (basis.T @ flat)).reshape(frames.shape)
    used = 4 if affine else 2
    sums = np.zeros((len(frames), 7, 7))
    in_threads(lambda part: _sum_up(frames[part], scene[part], where, sums[part]), len(frames))
    solution, inverse, usable = _solve(sums, used)
    moved, errors = np.zeros((len(frames), 4)), np.zeros(4)
    if not usable:
        return moved, np.full(4, np.inf), 0.0
    moved[:, :used] = -solution[:, :used]
    told = np.arange(0, len(frames), EVERY)
    left, level = np.zeros((len(told), *where.shape)), int(where.sum())
    _leave(frames[told], scene[told], where, solution[told], used, left)
    power = (left**2).sum(axis=(1, 2)) / level
    shared = np.array([_shared(picture) for picture in left])
    errors[:used] = np.sqrt(np.mean(inverse[told] * (power * shared)[:, None], axis=0))
    before, after = _unexplained(sums, used)
    return moved, errors, 1 - after / (before + 1e-300)


def _solve(sums: Array, used: int) -> tuple[Array, Array, bool]:
    """Solve the normal equations of all frames, what the light does taken off first.

    ``sums`` (t, 7, 7) are those of the products of the four motions, the scene, 1 and the change. Returns the
    coefficients (t, used + 2), the diagonal of the inverse (t, used), and whether the motions can be told apart.
    """
    reduced = _without_light(sums)
    normal, right = reduced[:, :used, :used], reduced[:, :used, 6]
    size = np.sqrt(np.maximum(np.einsum("tii->ti", normal), 0.0))
    scale = np.sqrt(sums[:, 4, 4] / sums[:, 5, 5])
    if (size.min(axis=1) <= 1e-9 * scale).any():
        return sums, sums, False
    if np.linalg.eigvalsh(normal / (size[:, :, None] * size[:, None, :]))[:, 0].min() < 1e-8:
        return sums, sums, False
    motion = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
    light = sums[:, 4:6, 6] - np.einsum("tjk,tk->tj", sums[:, 4:6, :used], motion)
    light = np.linalg.solve(_of_light(sums), light[:, :, None])[:, :, 0]
    return np.concatenate([motion, light], axis=1), np.einsum("tii->ti", np.linalg.inv(normal)), True


def _of_light(sums: Array) -> Array:
    light = sums[:, 4:6, 4:6]
    trace = np.trace(light, axis1=1, axis2=2)[:, None, None]
    return np.asarray(light + 1e-12 * trace * np.eye(2))  # an even picture is like the constant


def _without_light(sums: Array) -> Array:
    across = sums[:, 4:6]
    return np.asarray(sums - np.swapaxes(across, 1, 2) @ np.linalg.solve(_of_light(sums), across))


def _unexplained(sums: Array, used: int) -> tuple[float, float]:
    """Return the squares that the light leaves of all changes, and those that the motion leaves of these."""
    reduced = _without_light(sums)
    right = reduced[:, :used, 6]
    gained = right * np.linalg.solve(reduced[:, :used, :used], right[:, :, None])[:, :, 0]
    before = float(reduced[:, 6, 6].sum())
    return before, before - float(gained.sum())


def _shared(left: Array) -> float:
    """Return how many cells share one piece of noise: (1 + 2Σρ) along y times the same along x, over five cells."""
    power = float((left**2).mean()) + 1e-300
    along = [
        1 + 2 * sum(max(0.0, float((left[m:] * left[:-m]).mean()) / power) for m in range(1, LAGS + 1)),
        1 + 2 * sum(max(0.0, float((left[:, m:] * left[:, :-m]).mean()) / power) for m in range(1, LAGS + 1)),
    ]
    return along[0] * along[1]


def _middle_level(scene: Any, where: Any) -> float:
    total, cells = 0.0, 0
    for i in range(scene.shape[0]):
        for j in range(scene.shape[1]):
            if where[i, j]:
                total += scene[i, j]
                cells += 1
    return total / max(cells, 1)


def _columns(scene: Any, middle: float, i: int, j: int, row: Any) -> None:
    """Write the motions, the scene and 1 at one cell into ``row``."""
    y, x = i - (scene.shape[0] - 1) / 2, j - (scene.shape[1] - 1) / 2
    slope_y = (scene[i + 1, j] - scene[i - 1, j]) / 2
    slope_x = (scene[i, j + 1] - scene[i, j - 1]) / 2
    row[0], row[1] = slope_y, slope_x
    row[2], row[3] = slope_y * x - slope_x * y, slope_y * y + slope_x * x
    row[4], row[5] = scene[i, j] - middle, 1.0


def _sum_products(frames: Any, scenes: Any, where: Any, sums: Any) -> None:
    """Add the products of the columns and of the change, (t, 7, 7); the scene counts from its middle."""
    row = np.empty(7)
    for t in range(frames.shape[0]):
        scene, middle = scenes[t], _middle(scenes[t], where)
        for i in range(1, scene.shape[0] - 1):
            for j in range(1, scene.shape[1] - 1):
                if where[i, j]:
                    _column(scene, middle, i, j, row)
                    row[6] = frames[t, i, j] - scene[i, j]
                    for a in range(7):
                        for b in range(a, 7):
                            sums[t, a, b] += row[a] * row[b]
        for a in range(7):
            for b in range(a):
                sums[t, a, b] = sums[t, b, a]


def _leave_over(frames: Any, scenes: Any, where: Any, solution: Any, used: int, left: Any) -> None:
    """Write what the fit leaves of each frame's change, 0 where nothing is compared."""
    row = np.empty(7)
    for t in range(frames.shape[0]):
        scene, middle = scenes[t], _middle(scenes[t], where)
        for i in range(1, scene.shape[0] - 1):
            for j in range(1, scene.shape[1] - 1):
                if where[i, j]:
                    _column(scene, middle, i, j, row)
                    rest = frames[t, i, j] - scene[i, j]
                    for a in range(used):
                        rest -= solution[t, a] * row[a]
                    left[t, i, j] = rest - solution[t, used] * row[4] - solution[t, used + 1]


_middle = cast(Any, njit(nogil=True)(_middle_level))
_column = cast(Any, njit(nogil=True)(_columns))
_sum_up = cast(Any, njit(nogil=True)(_sum_products))
_leave = cast(Any, njit(nogil=True)(_leave_over))


# ----------------------------------------------------------------------------- frames put back


class Splines:
    """Frames (t, y, x) as cubic splines in space, made once, to be shown from elsewhere again and again."""

    def __init__(self, frames: Array) -> None:
        from scipy.ndimage import spline_filter

        self.shape = frames.shape
        self._made = np.pad(frames, ((0, 0), (PAD, PAD), (PAD, PAD)), mode="edge")

        def make(part: slice) -> None:
            for frame in self._made[part]:
                spline_filter(frame, 3, output=frame, mode="nearest")

        in_threads(make, len(frames))

    def put_back(self, moved: Array) -> Array:
        """Show each frame as a camera at rest would have: S(x) = F(x + δ); ``moved`` (t, 4): dy, dx, angle, zoom."""
        from scipy.ndimage import affine_transform

        centre = (np.array(self.shape[1:]) - 1) / 2
        out = np.empty(self.shape)

        def show(part: slice) -> None:
            for frame, (dy, dx, angle, zoom), into in zip(self._made[part], moved[part], out[part], strict=True):
                matrix = turn(angle, zoom)
                offset = PAD + centre - matrix @ centre + (dy, dx)
                affine_transform(frame, matrix, offset, output=into, order=3, mode="nearest", prefilter=False)

        in_threads(show, len(out))
        return out


def turn(angle: float, zoom: float) -> Array:
    """Return the matrix that takes a place, from the picture's middle, to where a turned and zoomed camera shows it."""
    return np.array([[1 + zoom, angle], [-angle, 1 + zoom]])
