"""One look at a rollout from nearby: residuals and Jacobian of a window, reduced to small sums per frame.

With r = û − u the error of a rollout, J_j = ∂û/∂c_j (differences of rollouts) and ∂û/∂X = −∇û (a uniform
drift only moves the picture), every fit needs no more than the inner products of these columns in each
frame. They are summed in one fused pass while the rollouts stream by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.between import straighten
from video2pde.compiled import njit
from video2pde.field import Field, Grid, held_back
from video2pde.parallel import count_workers
from video2pde.rollout.forced import forced_frames
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate_chunks
from video2pde.settings import RolloutSettings

Array = NDArray[np.float64]

CHUNK = 16
RELATIVE_STEP = 1e-4
"""Step of the differences that give the Jacobian, relative to a coefficient's scale."""


@dataclass(frozen=True, eq=False)
class Window:
    """Hold what a fit compares with: point values of the field, and which pixels count.

    ``values`` (t, y, x) float32, ``weight`` (y, x) 1 where a pixel counts and 0 elsewhere; ``outside``
    marks the pixels that do not obey the law: there a rollout follows the recording.
    """

    values: NDArray[np.float32]
    times: Array
    grid: Grid
    weight: Array
    outside: NDArray[np.bool_] | None = None

    @property
    def points(self) -> float:
        """How many space-time points count."""
        return float(self.weight.sum()) * len(self.times)


def prepare_window(field: Field, max_points: int | None = None, seed: int = 0, undo_coding: bool = True) -> Window:
    """Take point values from cell averages, u − (Δx² u_xx + Δy² u_yy)/24, and choose the pixels that count.

    ``undo_coding``: put frames right that an encoder made from others (see ``between``).
    """
    values = deconvolve_cells(field.values) if field.grid.pitch == "cells" else field.values
    if undo_coding and field.between is not None:
        values = values if values.flags.writeable else values.copy()
        straighten(values, field.between, held_back(field.values))
    weight = np.ones(field.grid.shape) if field.core is None else field.core.astype(float)
    if max_points is not None and max_points < weight.sum() * len(field):
        rng = np.random.default_rng([seed, 3])
        chosen = np.flatnonzero(weight.ravel())
        keep = rng.choice(chosen, max(16, max_points // len(field)), replace=False)
        weight = np.zeros(field.grid.shape)
        weight.flat[keep] = 1.0
    return Window(values, field.times, field.grid, weight, None if field.core is None else ~field.core)


def deconvolve_cells(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn averages over cells into values at their centres, to fourth order."""
    points = np.empty_like(values)
    for frame, out in zip(values, points, strict=True):
        padded = np.pad(frame, 1, mode="symmetric")
        neighbours = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        out[:] = frame - (neighbours - 4 * frame) / 24
    return points


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Inner products per frame of the columns (J_1 … J_K, S_1 … S_q, −û_x, −û_y, r): (t, K + q + 3, K + q + 3).

    S_m is the rollout's answer to a change of the initial frame along the mode ψ_m.

    ``failed`` says why a rollout could not be completed; then there is nothing else.
    """

    grams: Array
    failed: str = ""

    @property
    def cost(self) -> float:
        """Sum of squared errors."""
        return float(self.grams[:, -1, -1].sum()) if not self.failed else float("inf")


def linearise(
    window: Window,
    model: Model,
    start: Array,
    velocity: Array,
    velocity_slopes: Array,
    settings: RolloutSettings,
    scales: Sequence[float],
    modes: Array | None = None,
    workers: int = 1,
    base: Array | None = None,
) -> Linearisation:
    """Roll the model out over the window, with one neighbour per coefficient and per mode of the initial frame.

    Parameters
    ----------
    start : (y, x), initial frame. velocity : (t, 2). velocity_slopes : (K, t, 2), ∂v/∂c_j.
    base : (y, x), initial frame of the Jacobian; none: ``start``. Noise that residual and Jacobian share would pass
        for diffusion, so a start that holds noise needs a base without.
    scales : size of each coefficient, for the steps of the differences.
    modes : (q, y, x), changes of the initial frame to be told apart from changes of the law; none: no such columns.
    """
    columns = len(scales) + (0 if modes is None else len(modes)) + 3
    grams = np.zeros((len(window.times), columns, columns))
    for frames, parts in neighbour_chunks(
        window, model, start, velocity, velocity_slopes, settings, scales, modes, workers, base
    ):
        finite = np.isfinite(parts.values).all(axis=(0, 2, 3)) & np.isfinite(parts.rollout).all(axis=(1, 2))
        if not finite.all():
            return Linearisation(grams, f"the rollout failed before frame {frames.start + int(np.argmin(finite))}")
        _accumulate(parts, window.values[frames], window, grams[frames], workers)
    return Linearisation(grams)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """A chunk of rollouts side by side.

    ``rollout`` (t, y, x) from the initial frame itself; ``values`` (1 + K + q, t, y, x) from the Jacobian's: the
    model first, then one for each of the ``steps``.
    """

    rollout: Array
    values: Array
    steps: Array


def neighbour_chunks(
    window: Window,
    model: Model,
    start: Array,
    velocity: Array,
    velocity_slopes: Array,
    settings: RolloutSettings,
    scales: Sequence[float],
    modes: Array | None,
    workers: int = 1,
    base: Array | None = None,
) -> Iterator[tuple[slice, Neighbours]]:
    """Roll out the model, a neighbour for each coefficient and one for each mode; see :func:`linearise`."""
    steps = np.array([RELATIVE_STEP * scale for scale in scales])
    clean = start if base is None else base
    models, velocities, starts = [model], [velocity], [clean]
    for index, step in enumerate(steps):
        coefficients = list(model.coefficients)
        coefficients[index] += step
        models.append(Model(model.terms, tuple(coefficients), model.drift_scale))
        velocities.append(velocity + step * velocity_slopes[index])
        starts.append(clean)
    for mode in () if modes is None else modes:
        models.append(model)
        velocities.append(velocity)
        starts.append(clean + RELATIVE_STEP * mode)
    steps = np.append(steps, [RELATIVE_STEP] * (len(models) - len(steps) - 1))
    count = len(models)
    if base is not None:
        models, velocities, starts = [*models, model], [*velocities, velocity], [*starts, start]
    for frames, values in predict_chunks(window, models, np.stack(starts), np.stack(velocities), settings, workers):
        yield frames, Neighbours(values[count] if base is not None else values[0], values[:count], steps)


def predict_chunks(
    window: Window,
    models: Sequence[Model],
    start: Array,
    velocity: Array,
    settings: RolloutSettings,
    workers: int = 1,
    chunk: int = CHUNK,
) -> Iterator[tuple[slice, Array]]:
    """Roll models out side by side and give (frames, values (model, frame, y, x)) a chunk at a time.

    Where a mask marks the region of the law, the rest of the picture follows the recording, frame by frame.
    """
    outside = window.outside
    if outside is None:
        for frames, values, _ in simulate_chunks(
            models, start, window.times, window.grid, velocity, settings, chunk=chunk, workers=workers
        ):
            yield frames, values
        return
    for k, _, states in forced_frames(
        models, start, window.values, outside, window.times, window.grid, velocity, settings
    ):
        yield slice(k, k + 1), states[:, None]


@dataclass(frozen=True, eq=False)
class Table:
    """A linearisation with what it was made of.

    ``rollout`` (t, y, x) from the initial frame itself; ``base`` (t, y, x) and ``columns`` (K + q, t, y, x), ∂û/∂c_j
    and S_m, from that of the Jacobian.
    """

    linear: Linearisation
    rollout: NDArray[np.float32]
    base: NDArray[np.float32]
    columns: NDArray[np.float32]


def tabulate(
    window: Window,
    model: Model,
    start: Array,
    velocity: Array,
    velocity_slopes: Array,
    settings: RolloutSettings,
    scales: Sequence[float],
    modes: Array | None = None,
    workers: int = 1,
    base: Array | None = None,
) -> Table:
    """Linearise, and keep the rollouts and columns as well; the parameters are those of :func:`linearise`."""
    values = window.values
    count = len(scales) + (0 if modes is None else len(modes))
    grams = np.zeros((len(values), count + 3, count + 3))
    clean, columns = np.empty_like(values), np.empty((count, *values.shape), np.float32)
    rollout = clean if base is None else np.empty_like(values)
    for frames, parts in neighbour_chunks(
        window, model, start, velocity, velocity_slopes, settings, scales, modes, workers, base
    ):

        def keep(piece: slice, frames: slice = frames, parts: Neighbours = parts) -> None:
            inside = slice(frames.start + piece.start, frames.start + piece.stop)
            clean[inside] = parts.values[0, piece]
            if base is not None:
                rollout[inside] = parts.rollout[piece]
            for column, neighbour, step in zip(columns, parts.values[1:], parts.steps, strict=True):
                column[inside] = (neighbour[piece] - parts.values[0, piece]) / step

        _accumulate(parts, values[frames], window, grams[frames], workers)
        _over_cores(keep, len(parts.rollout), workers)
    return Table(Linearisation(grams), rollout, clean, columns)


def _over_cores(work: Callable[[slice], None], count: int, workers: int) -> None:
    """Call ``work`` with slices that together cover ``count`` frames, one for each core."""
    bounds = np.linspace(0, count, min(count_workers(workers), count) + 1).astype(int)
    pieces = [slice(a, b) for a, b in pairwise(bounds)]
    if len(pieces) == 1:
        work(pieces[0])
    else:
        with ThreadPoolExecutor(len(pieces)) as pool:
            list(pool.map(work, pieces))


def _accumulate(parts: Neighbours, observed: NDArray[np.float32], window: Window, out: Array, workers: int) -> None:
    """Sum the inner products of a chunk's frames, split over the cores."""

    def work(piece: slice) -> None:
        _frame_grams(
            parts.rollout[piece], parts.values[:, piece], parts.steps, observed[piece], window.weight,
            window.grid.dx, window.grid.dy, out[piece],
        )  # fmt: skip

    _over_cores(work, len(parts.rollout), workers)


_jit: Callable[..., Any] = njit(nogil=True, fastmath=True)


@_jit
def _frame_grams(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    rollout, values, steps, observed, weight, dx, dy, out
):
    models, count, ny, nx = values.shape
    columns = models + 2
    row = np.empty((columns, nx))
    for k in range(count):
        for j in range(ny):
            above, below = max(j - 1, 0), min(j + 1, ny - 1)
            across = 1.0 / (dy * max(below - above, 1))
            for m in range(1, models):
                inverse = 1.0 / steps[m - 1]
                for i in range(nx):
                    row[m - 1, i] = (values[m, k, j, i] - values[0, k, j, i]) * inverse
            for i in range(1, nx - 1):
                row[models - 1, i] = (values[0, k, j, i - 1] - values[0, k, j, i + 1]) / (2 * dx)
            row[models - 1, 0] = 0.0
            row[models - 1, nx - 1] = 0.0
            for i in range(nx):
                row[models, i] = (values[0, k, above, i] - values[0, k, below, i]) * across
                row[models + 1, i] = rollout[k, j, i] - observed[k, j, i]
            for c in range(columns):
                for i in range(nx):
                    row[c, i] *= weight[j, i]
            for c in range(columns):
                for d in range(c + 1):
                    total = 0.0
                    for i in range(nx):
                        total += row[c, i] * row[d, i]
                    out[k, c, d] += total
                    if c != d:
                        out[k, d, c] += total


def project(
    columns: NDArray[np.float32],
    truth: NDArray[np.float32],
    values: Array,
    frames: slice,
    residuals: NDArray[np.float32],
    order: NDArray[np.int64],
    size: Array,
    weight: Array,
    grid: Grid,
    out: Array,
) -> None:
    """Sum error × column for some frames of several rollouts, and error × (−u_x, −u_y): out (m, t, columns + 2).

    The error of rollout m in frame t is values[m, t] − truth[t] − size[t] · residuals[order[m, t]]; ``values`` holds
    these frames alone, everything else the whole window (contiguous, so that the loops vectorise). Columns and truth,
    which the rollouts share, are read once for all of them: the sums are bound by memory, not by arithmetic.
    """
    light, sizes = weight.astype(np.float32), size.astype(np.float32)
    _project(columns, truth, values, frames.start, residuals, order, sizes, light, grid.dx, grid.dy, out)


@_jit
def _project(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    columns, truth, values, first, residuals, order, size, weight, dx, dy, out
):
    rollouts, count, ny, nx = values.shape
    number = len(columns)
    error = np.empty(nx, np.float32)
    slope_x, slope_y = np.zeros(nx, np.float32), np.zeros(nx, np.float32)
    for k in range(count):
        frame = first + k
        for j in range(ny):
            above, below = max(j - 1, 0), min(j + 1, ny - 1)
            for i in range(1, nx - 1):
                slope_x[i] = truth[frame, j, i - 1] - truth[frame, j, i + 1]
                slope_y[i] = truth[frame, above, i] - truth[frame, below, i]
            for m in range(rollouts):
                drawn = order[m, frame]
                for i in range(nx):
                    observed = truth[frame, j, i] + size[frame] * residuals[drawn, j, i]
                    error[i] = (np.float32(values[m, k, j, i]) - observed) * weight[j, i]
                for c in range(number):
                    total = np.float32(0.0)
                    for i in range(nx):
                        total += columns[c, frame, j, i] * error[i]
                    out[m, frame, c] += total
                along_x, along_y = np.float32(0.0), np.float32(0.0)
                for i in range(nx):
                    along_x += slope_x[i] * error[i]
                    along_y += slope_y[i] * error[i]
                out[m, frame, number] += along_x / (2 * dx)
                out[m, frame, number + 1] += along_y / (2 * dy)
