"""Fit a law, and what else is unknown of a recording, to the rollout of a whole window.

Minimised is the mean squared error of the rollout over all space-time points, by Levenberg–Marquardt on the normal
equations of ``linear`` (``simplex`` holds Nelder–Mead). The initial frame is not taken as noise-free: it is corrected
by the mean error of the first frames under the current model, and along modes that look like a change of the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.blocks import LAW, START, StartModes, Values
from video2pde.calibration.linear import Linear, Look
from video2pde.calibration.mapped import without_maps
from video2pde.calibration.problem import Problem
from video2pde.calibration.start import bring_back, initial_frame, start_modes
from video2pde.calibration.window import Window
from video2pde.rollout.start import smooth_frame
from video2pde.settings import CalibrationSettings

Array = NDArray[np.float64]

FIRST_DAMPING, SURE_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-6, 1e-9, 1e8
"""Levenberg–Marquardt's damping: at the start, once the initial frame was corrected, and its limits."""
ROUGHLY = 0.02
"""Relative change of the coefficients below which a model is good enough to correct the initial frame."""
SLACK = 0.1
"""Relative rise over the lowest error that a step may cause once the Jacobian is free of noise."""
PATIENCE, HOPELESS = 10, 2.0
"""Steps after which a fit whose error is still this many times that of a picture that stands still is given up."""
STALLED, GAIN = 20, 1e-3
"""Steps without a relative gain of this size after which a fit is given up."""
PACE, SLOW, BEATEN = 10, 0.1, 2.0
"""Steps in which a fit whose error is this many times that of another law's must fall by such a share to go on. One
that converges there is not repeated from further starts."""
BASE_PASSES = 2
"""How often the frames that start the Jacobian are brought back to the initial time."""


@dataclass(frozen=True, eq=False)
class State:
    """A point of the fit, and its normal equations; ``failed`` says why there are none."""

    look: Look
    linear: Linear | None
    failed: str = ""

    @property
    def cost(self) -> float:
        return float("inf") if self.linear is None else self.linear.cost

    @property
    def final(self) -> bool:
        """Whether the Jacobian starts from a frame of its own."""
        return self.look.base is not None


def evaluate(problem: Problem, look: Look) -> State:
    """Roll out at a point of the fit. Frames that made the Jacobian's start count for nothing else."""
    counted = problem.split.counted if look.base is not None else np.ones(len(problem.window.times), bool)
    linear = look.linearise(counted)
    if isinstance(linear, str):
        return State(look, None, linear)
    return State(look, linear.with_prior(look.unknowns.prior_weight, look.vector, problem.variance))


@dataclass(frozen=True, eq=False)
class Fit:
    """Hold a calibrated law: all unknowns by block, the drift (t, 2), the initial frame, and how it was reached.

    ``start`` (y, x) begins the rollout; ``base``, smoother and from other frames, its Jacobian. ``whole``: the initial
    frame was fitted jointly, to all frames (see ``growth``); ``floor``: the level below which u did not count;
    ``beaten``: it was given up because another law is far ahead.
    """

    terms: tuple[str, ...]
    values: Mapping[str, Array]
    velocity: Array
    start: Array
    base: Array
    modes: Array
    mse: float
    converged: bool
    reason: str
    rollouts: int
    whole: bool = False
    floor: float = -np.inf
    beaten: bool = False

    @property
    def coefficients(self) -> Array:
        return self.values[LAW]


def fit_rollout(
    problem: Problem,
    guess: Sequence[float],
    settings: CalibrationSettings,
    start: Array | None = None,
    rival: float = np.inf,
) -> Fit:
    """Minimise the rollout's error from a guess of the coefficients, by Levenberg–Marquardt.

    ``rival``: mean squared error of another law's fit to the same window; one that stays far behind it is given up.
    """
    first = smooth_frame(initial_frame(problem.window, problem.start_frames)) if start is None else start
    state = evaluate(problem, problem.look({LAW: np.asarray(guess, float)}, first))
    search = _Search(problem, state, start, rival)
    if state.failed:
        return search.finish(False, f"at the start, {state.failed}")
    while search.iterations < settings.max_iterations:
        if search.step(settings.tolerance):
            return search.finish(True, "converged")
        if search.stuck:
            return search.finish(False, search.stuck)
    return search.finish(False, f"not converged after {search.iterations} iterations")


class _Search:
    """Levenberg–Marquardt's way: where it stands, how it damps its steps, and why it is stuck, if it is."""

    def __init__(self, problem: Problem, state: State, fixed_start: Array | None, rival: float = np.inf) -> None:
        self.problem, self.state, self.fixed_start = problem, state, fixed_start
        self.damping, self.lowest, self.iterations, self.stuck = FIRST_DAMPING, state.cost, 0, ""
        self.rollouts = 1 + len(problem.terms)
        self.mark, self.marked = state.cost, 0
        self.hopeless = HOPELESS * standstill_cost(problem.window)
        self.ahead, self.paced, self.beaten = BEATEN * rival * problem.window.points, state.cost, False

    def step(self, tolerance: float) -> bool:
        """Take or refuse one step; True where the fit has converged."""
        self.iterations += 1
        look, linear = self.state.look, self.state.linear
        assert linear is not None
        relative = np.ones(len(look.vector))
        relative[look.unknowns.positive] = look.vector[look.unknowns.positive]
        there = look.unknowns.move(look.vector, linear.solve(damping=self.damping, relative=relative))
        change = self.problem.relative_change(look.vector, there)
        moved = replace(look, vector=there)
        if self.state.final and self.damping <= FIRST_DAMPING and change < tolerance**0.5:
            # the next error would be the square of this step: take it, and need no further rollout
            self.state = replace(self.state, look=moved)
            return True
        if not self._try(moved):
            self.damping *= 10
            change = np.inf if self.damping < MOST_DAMPING else change
        if not self.state.final and change < ROUGHLY:
            self._correct_start()
        elif self.iterations == PATIENCE and self.state.cost > self.hopeless:
            self.stuck = f"after {PATIENCE} steps still {HOPELESS:g} times worse than a picture that stands still"
        self._watch()
        return False

    def _try(self, look: Look) -> bool:
        trial = evaluate(self.problem, look)
        modes = len(look.vector) - len(self.problem.unknowns.scale)
        self.rollouts += 1 + len(self.problem.terms) + modes + self.state.final
        # with a Jacobian free of noise the solution is not quite the least error, so a little more is no reason to stop
        if trial.cost < (self.lowest * (1 + SLACK) if self.state.final else self.state.cost):
            self.state = trial
            self.damping, self.lowest = max(self.damping / 10, LEAST_DAMPING), min(self.lowest, trial.cost)
            return True
        return False

    def _correct_start(self) -> None:
        """Start again from better initial frames: the model is good enough to say how the first frames differ."""
        problem, look = self.problem, self.state.look
        values = look.unknowns.values(look.vector)
        if self.fixed_start is None:
            start, base = correct_start(problem, values, look.given.start)
        else:
            start, base = self.fixed_start, smooth_frame(self.fixed_start)
        modes = start_modes(problem.terms, base, problem.window.grid)
        corrected = evaluate(problem, problem.look(values, start, base, modes))
        self.rollouts += 3 + 2 * len(problem.terms)
        self.damping = SURE_DAMPING
        if corrected.failed:
            self.stuck = f"from the corrected initial frame, {corrected.failed}"
        else:
            self.state, self.lowest = corrected, corrected.cost
            self.mark, self.marked = corrected.cost, self.iterations

    def _watch(self) -> None:
        """Say so where nothing gets better any more."""
        if self.state.cost < (1 - GAIN) * self.mark:
            self.mark, self.marked = self.state.cost, self.iterations
        elif self.iterations - self.marked >= STALLED:
            self.stuck = self.stuck or f"the error has not fallen for {STALLED} steps"
        if self.iterations % PACE == 0:
            if self.state.cost > self.ahead and self.state.cost > (1 - SLOW) * self.paced:
                self.beaten, self.stuck = True, "another law fits far better, and this one hardly gets nearer"
            self.paced = self.state.cost
        if self.damping > MOST_DAMPING:
            self.stuck = self.stuck or "no step lowers the error any further, yet the gradient is not zero"

    def finish(self, converged: bool, reason: str) -> Fit:
        return replace(finish(self.problem, self.state, converged, reason, self.rollouts), beaten=self.beaten)


def finish(problem: Problem, state: State, converged: bool, reason: str, rollouts: int) -> Fit:
    """Sum up a search: the initial frames with what the modes have changed, everything else by block."""
    look = state.look
    values = look.unknowns.values(look.vector)
    scene = look.unknowns.scene(look.vector, look.given)
    base = look.unknowns.scene(look.vector, look.clean).start if state.final else smooth_frame(scene.start)
    block = look.unknowns.blocks[-1]
    modes = block.modes if isinstance(block, StartModes) and block.modes is not None else np.zeros((0, *base.shape))
    return Fit(
        terms=tuple(term.name for term in problem.terms),
        values={name: part for name, part in values.items() if name != START},
        velocity=scene.velocity,
        start=scene.start,
        base=base,
        modes=modes,
        mse=state.cost / problem.window.points,
        converged=converged,
        reason=reason,
        rollouts=rollouts,
        floor=problem.window.floor,
    )


@dataclass(frozen=True, eq=False)
class Halves:
    """How far the coefficients of the first half of the frames lie from those of the second, (K,).

    ``noisier`` (K,): how much larger noise makes that difference than the error of the whole fit; ``farther`` (K,): how
    far the half that lies farther from the whole lies from it.
    """

    apart: Array
    noisier: Array
    farther: Array

    def beyond_noise(self, std: Array) -> Array:
        """Return the part of the difference, (K,), that noise does not account for; ``std`` is the whole fit's."""
        return np.asarray(np.sqrt(np.maximum(self.apart**2 - (self.noisier * std) ** 2, 0.0)))

    def reach_beyond_noise(self, std: Array) -> Array:
        """Return how far the farther half lies from the whole, (K,), less the share of it that is noise."""
        size = np.abs(self.apart)
        share = np.divide(self.beyond_noise(std), size, out=np.zeros_like(size), where=size > 0)
        return np.asarray(share * self.farther)


def compare_halves(problem: Problem, fit: Fit) -> Halves:
    """Ask both halves of the frames for the law: under one that says everything they differ by noise alone.

    Maps stay as they are: one over time would let each half have a law of its own.
    """
    look = problem.look(fit.values, fit.start, fit.base, fit.modes)
    sums, counted, law = look.sum_up(), problem.split.counted, problem.unknowns.parts[LAW]
    if isinstance(sums, str):
        nothing = np.zeros_like(fit.coefficients)
        return Halves(nothing, np.ones_like(nothing), nothing)
    first = np.cumsum(counted) <= counted.sum() / 2
    windows = (counted, counted & first, counted & ~first)
    whole, *halves = (Linear.of(sums, look.weights, frames) for frames in windows)
    if problem.maps:
        kept = without_maps(look.unknowns)
        whole, halves = whole.only(kept), [half.only(kept) for half in halves]
    first_step, second_step = (half.solve()[law] for half in halves)
    noisier = np.sqrt((halves[0].variances + halves[1].variances) / whole.variances)[law]
    farther = np.maximum(np.abs(first_step), np.abs(second_step))
    return Halves(np.asarray(first_step - second_step), np.asarray(noisier), np.asarray(farther))


def standstill_cost(window: Window) -> float:
    """Return the sum of squared errors of a picture that stays as it first was."""
    first = window.values[0]
    return float(sum(np.vdot(window.weight, (frame - first) ** 2) for frame in window.values))


def correct_start(problem: Problem, values: Values, start: Array) -> tuple[Array, Array]:
    """Estimate the initial frame twice: from the first frames for the rollout, from the next ones for the Jacobian.

    The two share no frame, so that their noise is independent: noise that residual and Jacobian have in common
    would pass for diffusion.
    """
    window, split = problem.window, problem.split
    scene = problem.scene(values, smooth_frame(start))
    better = bring_back(window, scene, split.start, problem.rollout)
    base = smooth_frame(np.asarray(window.values[split.base].mean(axis=0), float))
    for _ in range(BASE_PASSES):
        base = smooth_frame(bring_back(window, replace(scene, start=base), split.base, problem.rollout))
    return better, base
