"""A law that grows, fitted together with its initial frame.

Growth amplifies whatever is wrong with the initial frame: noise, or the edge of a plume that 8 bits rounded to
nothing, comes back many times larger and passes for diffusion. But all frames know the initial one. An error ε(x) in it
has become s(t, x) ε(x − X(t)) later, where s is the rollout's answer to a uniform change and X the way of the drift.
Such an error is eliminated pixel by pixel from the normal equations of the fit, and then put right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.fit import (
    column_sizes,
    displacement,
    Fit,
    normal_matrix,
    Problem,
    relative_size,
    slopes_at,
    State,
    velocity_at,
)
from video2pde.calibration.linearise import predict_chunks, RELATIVE_STEP, tabulate
from video2pde.calibration.start import smooth_frame
from video2pde.compiled import njit
from video2pde.rollout.model import Model

Array = NDArray[np.float64]
Frames = NDArray[np.float32]

GROWS = 2.0
"""Factor by which an error of the initial frame must grow somewhere for the law to be fitted in this way."""
PASSES = 12
"""Most steps; each puts both the coefficients and the initial frame right."""
MOMENTUM = 0.5
"""Share of the last change of the initial frame that is made again, as long as that does not lead too far: errors that
diffusion has blurred are found again only little by little."""
SETTLED = 5e-4
"""Relative change of the coefficients below which there is nothing left to put right."""
LITTLE = 1e-3
"""Share of the largest power below which a pixel says too little about its own beginning to be changed."""
PART = 3
"""One run of frames in so many makes the Jacobian's start, the others are compared with the rollout.

Noise that residual and Jacobian have in common would pass for diffusion, so they share no frame. A run is as long as
the window that the first fit took its start from."""


@dataclass(frozen=True, eq=False)
class Shared:
    """A point of the fit with the initial frame's share taken out of the normal equations.

    ``columns`` (K, t, y, x): ∂û/∂c_j; ``base`` and ``gain`` (t, y, x): their rollout, and its answer to a uniform
    change; ``counted`` (t,): the frames that are compared with the rollout, the others make the Jacobian's start;
    ``moved`` (k, t, 2): ∂X/∂p; ``way`` (t, 2): how far the drift has carried the picture, in pixels, (x, y);
    ``products`` (n, y, x): Σ_t gain × column along that way, for coefficients and drift; ``inverse`` (y, x):
    1 / Σ_t gain², zero where a pixel says too little; ``error`` and ``base_error`` (y, x): Σ_t gain × error, the latter
    of the base in the frames that are not counted, over their Σ_t gain²; ``hessian`` (n, n) and ``slope`` (n,): what is
    left of JᵀJ and Jᵀr.
    """

    columns: Frames
    base: Frames
    gain: Frames
    counted: NDArray[np.bool_]
    moved: Array
    way: Array
    products: Array
    inverse: Array
    error: Array
    base_error: Array
    hessian: Array
    slope: Array
    cost: float

    def start_errors(self, step: Array) -> tuple[Array, Array]:
        """Give what a step of coefficients and drift leaves to be put right in both initial frames, each (y, x)."""
        explained = np.tensordot(step, self.products, axes=1) * self.inverse
        return -(self.error * self.inverse + explained), -(self.base_error + explained)

    def taken_out(self, error: Array) -> Array:
        """Give the part of Jᵀr that errors (y, x), summed as ``error`` is, have in common with the initial frame."""
        return np.tensordot(self.products, error * self.inverse, axes=2)


def counted_frames(problem: Problem) -> NDArray[np.bool_]:
    """Deal the frames out: True for those that the rollout is compared with, False for those of the Jacobian."""
    run = problem.start_window.stop
    return np.asarray(np.arange(len(problem.window.times)) // run % PART != 1)


def share_start(
    problem: Problem, coefficients: Array, drift: Array, start: Array, base: Array | None = None
) -> Shared | None:
    """Look at a point of the fit with its initial frame free; None where the rollout fails."""
    problem = unclipped(problem)
    window = problem.window
    velocity = velocity_at(problem, coefficients, drift)
    uniform = np.ones((1, *start.shape))
    table = tabulate(
        window, Model(problem.terms, tuple(coefficients)), start, velocity, slopes_at(problem, drift),
        problem.rollout, problem.scales, uniform, problem.workers, base,
    )  # fmt: skip
    if not all(np.isfinite(part[-1]).all() for part in (table.rollout, table.base, *table.columns)):
        return None
    counted = counted_frames(problem)
    cost = table.linear.cost
    table.linear.grams[~counted] = 0.0
    state = State(coefficients, drift, start, base, uniform, table.linear)
    moved = displacement(problem, state)
    terms = len(problem.terms)
    gain, columns = table.columns[terms], table.columns[:terms]
    way = _way(window.times, velocity) / (window.grid.dx, window.grid.dy)
    products = np.zeros((terms + 2 * len(moved), *start.shape))
    power, error = np.zeros((2, *start.shape)), np.zeros((2, *start.shape))
    light = window.weight.astype(np.float32)
    _pull_products(
        columns, table.rollout, table.base, window.values, gain, light, window.grid.dx, window.grid.dy, way, counted,
        moved, products, power, error,
    )  # fmt: skip
    inverse, other = (np.where(p > LITTLE * p.max(), 1 / np.maximum(p, 1e-30), 0.0) for p in power)
    hessian, slope = (_without(part, terms) for part in normal_matrix(problem, state))
    shared = Shared(
        columns, table.base, gain, counted, moved, way, products, inverse, error[0], error[1] * other, hessian, slope,
        cost,
    )  # fmt: skip
    flat = (products * np.sqrt(inverse)).reshape(len(products), -1)
    return replace(shared, hessian=hessian - flat @ flat.T, slope=slope - shared.taken_out(error[0]))


def _without(part: Array, index: int) -> Array:
    """Leave a row, and column, out."""
    for axis in range(part.ndim):
        part = np.delete(part, index, axis)
    return part


def _way(times: Array, velocity: Array) -> Array:
    """Give ∫v dt, (t, 2)."""
    way = np.zeros_like(velocity)
    way[1:] = np.cumsum(0.5 * (velocity[1:] + velocity[:-1]) * np.diff(times)[:, None], axis=0)
    return way


def solve_step(hessian: Array, slope: Array) -> Array:
    """Solve for the step that JᵀJ and Jᵀr ask for."""
    scale = column_sizes(hessian)
    return np.asarray(
        -np.linalg.solve(hessian / np.outer(scale, scale) + 1e-12 * np.eye(len(scale)), slope / scale) / scale
    )


def unclipped(problem: Problem) -> Problem:
    """Let rollouts leave [0, 1]: of two neighbours one would be clipped and the other not."""
    return replace(problem, rollout=problem.rollout.model_copy(update={"clip": "off"}))


def largest_gain(problem: Problem, fit: Fit) -> float:
    """Give the factor by which the fitted law multiplies a small change of the initial frame, where it does most."""
    problem = unclipped(problem)
    start = smooth_frame(fit.start)
    models = [Model(problem.terms, tuple(fit.coefficients))] * 2
    velocity, starts = np.stack([fit.velocity] * 2), np.stack([start, start + RELATIVE_STEP])
    inside = problem.window.weight > 0
    largest = 0.0
    for _, values in predict_chunks(problem.window, models, starts, velocity, problem.rollout, problem.workers):
        gain = (values[1] - values[0])[:, inside] / RELATIVE_STEP
        if not np.isfinite(gain).all():
            return 0.0
        largest = max(largest, float(gain.max()))
    return largest


def refit_growing(problem: Problem, fit: Fit) -> Fit | None:
    """Fit a law that grows once more, together with its initial frame; None where it does not grow or gains nothing."""
    if largest_gain(problem, fit) < GROWS:
        return None
    best = refit_with_start(problem, fit)
    return best if best is not None and best.mse <= fit.mse else None


def refit_with_start(problem: Problem, fit: Fit) -> Fit | None:
    """Fit coefficients, drift and initial frame together, from a fit on; None where no step could be made."""
    problem = unclipped(problem)
    coefficients, drift, start, base = fit.coefficients, fit.drift, smooth_frame(fit.start), fit.base
    shared = share_start(problem, coefficients, drift, start, base)
    terms, path, best = len(problem.terms), [*fit.path], None
    rollouts = fit.rollouts + terms + 5
    pace, momentum = [np.zeros_like(start), np.zeros_like(base)], MOMENTUM
    for _ in range(PASSES):
        if shared is None:
            break
        step = solve_step(shared.hessian, shared.slope)
        changes = [
            smooth_frame(change) + momentum * last for change, last in zip(shared.start_errors(step), pace, strict=True)
        ]
        there = (
            coefficients + step[:terms], drift + step[terms:].reshape(2, -1).T, start + changes[0], base + changes[1]
        )  # fmt: skip
        if any(there[0][index] * fit.coefficients[index] <= 0 for index in problem.log_terms):
            break  # what must stay positive would not
        seen = share_start(problem, *there)
        rollouts += terms + 3
        if seen is None or seen.cost > shared.cost:
            if momentum == 0.0 or not pace[0].any():
                break
            momentum = 0.0  # too far: the same step again, and all others, without it
            continue
        (coefficients, drift, start, base), shared, pace = there, seen, changes
        path.append(coefficients)
        best = replace(
            fit, coefficients=coefficients, drift=drift, velocity=velocity_at(problem, coefficients, drift),
            start=start, base=base, modes=np.zeros((0, *start.shape)), mse=shared.cost / problem.window.points,
            rollouts=rollouts, path=np.array(path), whole=True,
        )  # fmt: skip
        if relative_size(problem, step) < SETTLED:
            break
    return best


_jit: Callable[..., Any] = njit(nogil=True, fastmath=True)


@_jit
def _gather(field, across, down, j, i):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Read between the pixels, linearly, (across, down) pixels away from (j, i); nothing beyond the picture."""
    ny, nx = field.shape
    if not (-0.5 <= j + down <= ny - 0.5 and -0.5 <= i + across <= nx - 0.5):
        return 0.0  # what the drift has carried out says nothing; the edge must not be counted again and again
    y = min(max(j + down, 0.0), ny - 1.0)
    x = min(max(i + across, 0.0), nx - 1.0)
    j0, i0 = min(int(y), ny - 2), min(int(x), nx - 2)
    b, a = y - j0, x - i0
    above = (1 - a) * field[j0, i0] + a * field[j0, i0 + 1]
    below = (1 - a) * field[j0 + 1, i0] + a * field[j0 + 1, i0 + 1]
    return (1 - b) * above + b * below


@_jit
def _pull_products(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    columns, rollout, base, observed, gain, weight, dx, dy, way, counted, moved, products, power, error
):
    terms, count, ny, nx = columns.shape
    knots = len(moved)
    parts = np.empty((terms + 4, ny, nx))
    for t in range(count):
        group = 0 if counted[t] else 1
        for j in range(ny):
            above, below = max(j - 1, 0), min(j + 1, ny - 1)
            for i in range(nx):
                s = gain[t, j, i] * weight[j, i]
                seen = rollout[t, j, i] if counted[t] else base[t, j, i]
                parts[terms + 2, j, i] = s * gain[t, j, i]
                parts[terms + 3, j, i] = s * (seen - observed[t, j, i])
                for c in range(terms):
                    parts[c, j, i] = s * columns[c, t, j, i]
                along_x = (base[t, j, i - 1] - base[t, j, i + 1]) / (2 * dx) if 0 < i < nx - 1 else 0.0
                along_y = (base[t, above, i] - base[t, below, i]) / (dy * max(below - above, 1))
                parts[terms, j, i] = s * along_x
                parts[terms + 1, j, i] = s * along_y
        across, down = way[t, 0], way[t, 1]
        for j in range(ny):
            for i in range(nx):
                power[group, j, i] += _gather(parts[terms + 2], across, down, j, i)
                error[group, j, i] += _gather(parts[terms + 3], across, down, j, i)
                if group == 1:
                    continue
                for c in range(terms):
                    products[c, j, i] += _gather(parts[c], across, down, j, i)
                along_x = _gather(parts[terms], across, down, j, i)
                along_y = _gather(parts[terms + 1], across, down, j, i)
                for k in range(knots):
                    products[terms + k, j, i] += moved[k, t, 0] * along_x
                    products[terms + knots + k, j, i] += moved[k, t, 1] * along_y


def pull_errors(
    shared: Shared,
    values: Array,
    frames: slice,
    residuals: Frames,
    order: NDArray[np.int64],
    size: Array,
    weight: Array,
    out: Array,
) -> None:
    """Sum gain × error along the drift's way, as ``Shared.error`` is, for some frames of several rollouts: (m, y, x).

    The error is that of ``linearise.project``: of rollouts ``values`` against the base plus resampled residuals.
    """
    _pull_errors(
        values, frames.start, shared.base, shared.gain, residuals, order, size, weight, shared.way, shared.counted, out
    )


@_jit
def _pull_errors(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    values, first, base, gain, residuals, order, size, weight, way, counted, out
):
    rollouts, count, ny, nx = values.shape
    part = np.empty((ny, nx))
    for k in range(count):
        t = first + k
        if not counted[t]:
            continue
        for m in range(rollouts):
            drawn = order[m, t]
            for j in range(ny):
                for i in range(nx):
                    error = values[m, k, j, i] - base[t, j, i] - size[t] * residuals[drawn, j, i]
                    part[j, i] = gain[t, j, i] * weight[j, i] * error
            for j in range(ny):
                for i in range(nx):
                    out[m, j, i] += _gather(part, way[t, 0], way[t, 1], j, i)
