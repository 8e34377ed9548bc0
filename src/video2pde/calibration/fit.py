"""Fit coefficients, and the drift along with them, to the rollout of a whole window.

Minimised is the mean squared error of the rollout over all space-time points, by Levenberg–Marquardt on the
sums of ``linearise`` (``simplex`` holds Nelder–Mead). The drift is refined as v(t) + Σ p_k B_k(t): its
Jacobian is −∇û · ∫B_k dt, so a spline costs no further rollout. The initial frame is not taken as noise-free:
it is corrected by the mean error of the first frames under the current model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.ndimage import gaussian_filter

from video2pde.calibration.linearise import Linearisation, linearise, predict_chunks, Window
from video2pde.calibration.start import line_at, smooth_frame
from video2pde.rollout.model import Model
from video2pde.settings import CalibrationSettings, RolloutSettings
from video2pde.terms import Term
from video2pde.terms.stencil import apply_term

Array = NDArray[np.float64]
DriftMode = Literal["fixed", "scale", "spline"]

MAX_DAMPING = 1e8
ROUGHLY = 0.02
"""Relative change of the coefficients below which a model is good enough to correct the initial frame."""
SLACK = 0.1
"""Relative rise over the lowest error that a step may cause once the Jacobian is free of noise."""
PATIENCE, HOPELESS = 10, 2.0
"""Steps after which a fit whose error is still this many times that of a picture that stands still is given up."""
STALLED, GAIN = 20, 1e-3
"""Steps without a relative gain of this size after which a fit is given up."""
BASE_PASSES = 2
"""How often the frames that start the Jacobian are brought back to the initial time."""
LEAST_SCALE = 1e-6
"""Smallest scale of a coefficient, in units of the size at which its term alone would explain all change."""
MODE_SMOOTHING = 2.0
"""Pixels: σ of the filter under the modes of the initial frame, which need not be exact but free of noise."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Name what is fitted: terms, the window, the drift that is given and how it may change.

    ``velocity`` (t, 2) is the drift for coefficients ``reference``; ``velocity_slopes`` (K, t, 2) says how it
    follows the coefficients (minus the terms' moments), zero where the drift is refined by a spline.
    """

    terms: tuple[Term, ...]
    window: Window
    velocity: Array
    velocity_slopes: Array
    reference: Array
    drift: DriftMode
    drift_knots: int
    rollout: RolloutSettings
    start_frames: int
    scales: tuple[float, ...]
    log_terms: tuple[int, ...] = ()
    workers: int = 1

    @property
    def start_window(self) -> slice:
        """The frames that estimate the rollout's initial frame."""
        return slice(0, max(1, min(self.start_frames, len(self.window.times) // 2)))

    @property
    def base_window(self) -> slice:
        """The frames that estimate the Jacobian's initial frame, and count for nothing else."""
        return slice(self.start_window.stop, 2 * self.start_window.stop)

    @property
    def basis(self) -> Array:
        """B_k(t), (k, t): the ways in which each axis' velocity may change."""
        return drift_basis(self.window.times, self.drift, self.drift_knots)

    @property
    def size(self) -> int:
        return len(self.terms) + (2 * len(self.basis) if self.drift != "scale" else 2)


def drift_basis(times: Array, drift: DriftMode, knots: int) -> Array:
    """Give the spline basis of the drift's correction (cubic B-splines); one function for ``scale``."""
    if drift == "fixed":
        return np.zeros((0, len(times)))
    if drift == "scale":
        return np.ones((1, len(times)))
    degree = min(3, knots - 1)
    inner = np.linspace(times[0], times[-1], knots - degree + 1)
    padded = np.concatenate([[inner[0]] * degree, inner, [inner[-1]] * degree])
    return np.asarray(BSpline.design_matrix(times, padded, degree).toarray().T)


@dataclass(frozen=True, eq=False)
class State:
    """A point of the fit: coefficients, drift parameters (k, 2), initial frames of rollout and Jacobian, the errors."""

    coefficients: Array
    drift: Array
    start: Array
    base: Array | None
    modes: Array
    linear: Linearisation

    @property
    def cost(self) -> float:
        return self.linear.cost


def velocity_at(problem: Problem, coefficients: Array, drift: Array) -> Array:
    """Give v(t), (t, 2), for coefficients and drift parameters."""
    given = problem.velocity + np.tensordot(coefficients - problem.reference, problem.velocity_slopes, axes=(0, 0))
    if problem.drift == "scale":
        return np.asarray(given * (1 + drift[0]))
    return np.asarray(given + problem.basis.T @ drift) if len(drift) else np.asarray(given)


def slopes_at(problem: Problem, drift: Array) -> Array:
    """Give ∂v/∂c_j, (K, t, 2), for drift parameters."""
    return problem.velocity_slopes * (1 + drift[0] if problem.drift == "scale" else 1.0)


def evaluate(
    problem: Problem,
    coefficients: Array,
    drift: Array,
    start: Array,
    modes: Array | None = None,
    base: Array | None = None,
) -> State:
    """Roll out at a point of the fit; with ``modes`` (q, y, x) the initial frame may change along them.

    ``base`` (y, x): the initial frame of the Jacobian, where it is not ``start``.
    """
    model = Model(problem.terms, tuple(coefficients))
    linear = linearise(
        problem.window, model, start, velocity_at(problem, coefficients, drift), slopes_at(problem, drift),
        problem.rollout, problem.scales, modes, problem.workers, base,
    )  # fmt: skip
    if base is not None:
        # these frames made the Jacobian's start: their noise is in both, and would pass for a change of the law
        linear.grams[problem.base_window, :-1] = 0.0
        linear.grams[problem.base_window, :, :-1] = 0.0
    return State(coefficients, drift, start, base, np.zeros((0, *start.shape)) if modes is None else modes, linear)


def normal_matrix(problem: Problem, state: State) -> tuple[Array, Array]:
    """Assemble JᵀJ and Jᵀr over (coefficients, start modes, drift) from the sums per frame."""
    weights = displacement(problem, state)
    count, extra = len(problem.terms) + len(state.modes), weights.shape[0]
    grams = state.linear.grams
    size = count + 2 * extra
    hessian, slope = np.zeros((size, size)), np.zeros(size)
    hessian[:count, :count] = grams[:, :count, :count].sum(axis=0)
    slope[:count] = grams[:, :count, -1].sum(axis=0)
    for axis in range(2):
        rows = slice(count + axis * extra, count + (axis + 1) * extra)
        cross = np.einsum("kt,tj->kj", weights[:, :, axis], grams[:, count + axis, :count])
        hessian[rows, :count], hessian[:count, rows] = cross, cross.T
        slope[rows] = weights[:, :, axis] @ grams[:, count + axis, -1]
        for other in range(2):
            columns = slice(count + other * extra, count + (other + 1) * extra)
            hessian[rows, columns] = np.einsum(
                "kt,lt,t->kl", weights[:, :, axis], weights[:, :, other], grams[:, count + axis, count + other]
            )
    return hessian, slope


def displacement(problem: Problem, state: State) -> Array:
    """Give ∂X/∂p, (k, t, 2): how far each drift parameter has moved the picture by each time."""
    basis = problem.basis
    if problem.drift == "scale":
        rate = velocity_at(problem, state.coefficients, np.zeros_like(state.drift))[None]
    else:
        rate = np.repeat(basis[:, :, None], 2, axis=2)
    steps = np.diff(problem.window.times)
    moved = np.zeros((len(basis), len(problem.window.times), 2))
    moved[:, 1:] = np.cumsum(0.5 * (rate[:, 1:] + rate[:, :-1]) * steps[None, :, None], axis=1)
    return moved


@dataclass(frozen=True, eq=False)
class Fit:
    """Hold a calibrated law: coefficients, the refined drift (t, 2), the initial frame, and how it was reached.

    ``start`` (y, x) begins the rollout; ``base``, smoother and from other frames, its Jacobian. ``whole``: the initial
    frame was fitted along, to all frames (see ``growth``).
    """

    terms: tuple[str, ...]
    coefficients: Array
    drift: Array
    velocity: Array
    start: Array
    base: Array
    modes: Array
    mse: float
    converged: bool
    reason: str
    iterations: int
    rollouts: int
    path: Array
    whole: bool = False


def fit_rollout(
    problem: Problem,
    guess: Sequence[float],
    settings: CalibrationSettings,
    start: Array | None = None,
    progress: Callable[[int, Sequence[float], float], None] | None = None,
) -> Fit:
    """Minimise the rollout's error from a guess of the coefficients, by Levenberg–Marquardt."""
    first = smooth_frame(initial_frame(problem.window, problem.start_frames)) if start is None else start
    extra = 1 if problem.drift == "scale" else len(problem.basis)
    state = evaluate(problem, np.asarray(guess, float), np.zeros((extra, 2)), first)
    rollouts = len(problem.terms) + 1
    damping, iterations, reason, lowest = 1e-3, 0, "", state.cost
    path = [state.coefficients]
    if state.linear.failed:
        return finish(problem, state, False, f"at the start, {state.linear.failed}", 0, rollouts, path)
    hopeless = HOPELESS * standstill_cost(problem.window)
    mark, marked = state.cost, 0
    for iterations in range(1, settings.max_iterations + 1):
        step = damped_step(problem, state, damping)
        change = relative_size(problem, step)
        final = len(state.modes) > 0
        if final and damping <= 1e-3 and change < settings.tolerance**0.5:
            # the next error would be the square of this step: take it, and need no further rollout
            state = move(problem, state, step)
            path.append(state.coefficients)
            return finish(problem, state, True, "converged", iterations, rollouts, path)
        trial = move(problem, state, step, roll_out=True)
        rollouts += 1 + len(problem.terms) + len(state.modes) + final
        # with a Jacobian free of noise the solution is not quite the least error, so a little more is no reason to stop
        if trial.cost < (lowest * (1 + SLACK) if final else state.cost):
            state, damping, lowest = trial, max(damping / 10, 1e-9), min(lowest, trial.cost)
            path.append(state.coefficients)
        else:
            damping *= 10
            change = np.inf if damping < MAX_DAMPING else change
        if progress is not None:
            progress(iterations, state.coefficients.tolist(), state.cost / problem.window.points)
        if not final and change < ROUGHLY:
            # the model is good enough to say how the first frames differ from the initial one
            better, base = correct_start(problem, state) if start is None else (start, smooth_frame(start))
            modes = start_modes(problem, base)
            corrected = evaluate(problem, state.coefficients, state.drift, better, modes, base)
            rollouts += 3 + 2 * len(problem.terms)
            damping = 1e-6
            if corrected.linear.failed:
                reason = f"from the corrected initial frame, {corrected.linear.failed}"
            else:
                state, lowest = corrected, corrected.cost
                mark, marked = state.cost, iterations
        elif iterations == PATIENCE and state.cost > hopeless:
            reason = f"after {iterations} steps still {HOPELESS:g} times worse than a picture that stands still"
        if state.cost < (1 - GAIN) * mark:
            mark, marked = state.cost, iterations
        elif iterations - marked >= STALLED:
            reason = f"the error has not fallen for {STALLED} steps"
        if reason:
            break
        if damping > MAX_DAMPING:
            reason = "no step lowers the error any further, yet the gradient is not zero"
            break
    reason = reason or f"not converged after {iterations} iterations"
    return finish(problem, state, False, reason, iterations, rollouts, path)


def standstill_cost(window: Window) -> float:
    """Sum of squared errors of a picture that stays as it first was."""
    first = window.values[0]
    return float(sum(np.vdot(window.weight, (frame - first) ** 2) for frame in window.values))


def initial_frame(window: Window, frames: int) -> Array:
    """Estimate the first frame by a straight line in time through the first few frames."""
    count = min(max(frames, 1), len(window.times))
    if count < 3:
        return np.array(window.values[0])
    return line_at(window.values[:count], window.times[:count], float(window.times[0]))


def correct_start(problem: Problem, state: State) -> tuple[Array, Array]:
    """Estimate the initial frame twice: from the first frames for the rollout, from the next ones for the Jacobian.

    The two share no frame, so that their noise is independent: noise that residual and Jacobian have in common
    would pass for diffusion.
    """
    velocity = velocity_at(problem, state.coefficients, state.drift)
    start = bring_back(problem, state.coefficients, velocity, problem.start_window, smooth_frame(state.start))
    later = problem.base_window
    base = smooth_frame(np.asarray(problem.window.values[later].mean(axis=0), float))
    for _ in range(BASE_PASSES):
        base = smooth_frame(bring_back(problem, state.coefficients, velocity, later, base))
    return start, base


def bring_back(problem: Problem, coefficients: Array, velocity: Array, frames: slice, guess: Array) -> Array:
    """Estimate the initial frame from later ones, each less what the model has changed since.

    u₀ = mean_k [u_k − (û_k − û_0)]: the change comes from a smooth ``guess``, so that it carries little noise and
    the error left in u₀ is about the mean of the frames' noise.
    """
    window = problem.window
    first = replace(window, values=window.values[: frames.stop], times=window.times[: frames.stop])
    model = Model(problem.terms, tuple(coefficients))
    total = np.zeros_like(guess)
    for chunk, values in predict_chunks(first, [model], guess, velocity[None, : frames.stop], problem.rollout):
        wanted = np.arange(chunk.start, chunk.stop) >= frames.start
        total += np.sum(first.values[chunk][wanted] - (values[0][wanted] - guess), axis=0)
    return total / (frames.stop - frames.start) if np.isfinite(total).all() else guess


def start_modes(problem: Problem, start: Array) -> Array:
    """Give the changes of the initial frame that look most like a change of the law: the terms T_j(u₀) themselves.

    An error of u₀ along them passes for an error of the coefficients; fitting their amplitudes along keeps
    the two apart and more than halves the spread of a diffusion coefficient under noise.
    """
    smooth = gaussian_filter(start, MODE_SMOOTHING)
    grid = problem.window.grid
    modes = np.stack([apply_term(term, smooth, grid.dx, grid.dy) for term in problem.terms])
    modes -= np.median(modes, axis=(1, 2), keepdims=True)
    size = np.abs(modes).max(axis=(1, 2), keepdims=True)
    return np.asarray(modes / np.where(size > 0, size, 1.0))


def damped_step(problem: Problem, state: State, damping: float = 0.0) -> Array:
    """Solve (JᵀJ + damping·diag) step = −Jᵀr over (coefficients, start modes, drift)."""
    hessian, slope = normal_matrix(problem, state)
    for index in problem.log_terms:
        hessian[index] *= state.coefficients[index]
        hessian[:, index] *= state.coefficients[index]
        slope[index] *= state.coefficients[index]
    scale = column_sizes(hessian)
    matrix = hessian / np.outer(scale, scale) + (damping + 1e-12) * np.eye(len(slope))
    step = np.asarray(-np.linalg.solve(matrix, slope / scale) / scale)
    for index in problem.log_terms:
        step[index] = state.coefficients[index] * np.expm1(np.clip(step[index], -2.0, 2.0))
    return step


def column_sizes(hessian: Array) -> Array:
    """Give each column's length, 1 where there is none: no length in the recording's units is small in itself."""
    diagonal = np.diag(hessian)
    return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))


def coefficient_scales(window: Window, terms: Sequence[Term], values: Array) -> tuple[float, ...]:
    """Give the size of each coefficient: its own, or where it is (nearly) zero a small part of the size at which its
    term alone would change the picture as much as the window does."""
    first, last = (gaussian_filter(np.asarray(window.values[k], float), MODE_SMOOTHING) for k in (0, -1))
    change = float(np.abs(last - first).max()) / float(window.times[-1] - window.times[0])
    sizes = []
    for term, value in zip(terms, values, strict=True):
        rate = float(np.abs(apply_term(term, first, window.grid.dx, window.grid.dy)).max())
        natural = change / rate if rate > 0 and change > 0 else 1.0
        sizes.append(float(max(abs(value), LEAST_SCALE * natural)))
    return tuple(sizes)


def relative_size(problem: Problem, step: Array) -> float:
    """Give the largest change of a coefficient relative to its scale."""
    return float(np.max(np.abs(step[: len(problem.terms)]) / np.asarray(problem.scales)))


def move(problem: Problem, state: State, step: Array, roll_out: bool = False) -> State:
    """Take a step; with ``roll_out`` evaluate the new point, otherwise keep the sums of the old one."""
    count, modes = len(problem.terms), len(state.modes)
    coefficients = state.coefficients + step[:count]
    change = np.tensordot(step[count : count + modes], state.modes, axes=1)
    start = state.start + change
    base = None if state.base is None else state.base + change
    drift = state.drift + step[count + modes :].reshape(2, -1).T
    if roll_out:
        return evaluate(problem, coefficients, drift, start, state.modes if modes else None, base)
    return State(coefficients, drift, start, base, state.modes, state.linear)


def finish(
    problem: Problem, state: State, converged: bool, reason: str, iterations: int, rollouts: int, path: list[Array]
) -> Fit:
    return Fit(
        tuple(term.name for term in problem.terms), state.coefficients, state.drift,
        velocity_at(problem, state.coefficients, state.drift), state.start,
        smooth_frame(state.start) if state.base is None else state.base, state.modes,
        state.cost / problem.window.points, converged, reason, iterations, rollouts, np.array(path),
    )  # fmt: skip
