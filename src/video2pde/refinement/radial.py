"""Train the radial network on one seed's pixels, one Gauss–Newton step at a time."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import solve_columns
from video2pde.errors import StageError
from video2pde.refinement.checkpoint import Checkpoint
from video2pde.refinement.gauss_newton import advance, Equations, evaluate, measure, pretrain, State
from video2pde.refinement.job import Job, RANK, Task
from video2pde.refinement.lattice import Axis, Lattice
from video2pde.refinement.law import check_terms
from video2pde.refinement.result import has_settled, judge_steps
from video2pde.refinement.window import open_window, Window

Array = NDArray[np.float64]
PRETRAIN_ROUNDS = 2
MOST_STEPS = 25
SPACING_CELLS = 1.4
"""Cells between two neurons at least: closer ones would follow single pixels."""
MOST_INTERVALS = 70
"""Spacings along the longer side at most."""
SPACING_FRAMES = 6.0
MOST_TIME_INTERVALS = 6
"""The same along t: frames between two neurons at least, and spacings at most."""


class RadialJob(Job[State]):
    """Train the radial network; the seed chooses the held-out pixels alone."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        check_terms(task.terms)
        settings = task.settings
        window = open_window(task.field, task.velocity, settings.frame, task.seed, settings.concentration, task.flow)
        self.lattice = build_lattice(window)
        self.equations = Equations.of(task.terms, window, settings.cell_average, settings.residual_weight)
        self.data = self.equations.put_on_device(window, self.lattice)
        self.least_rate = 1e-6 * window.spread / float(np.ptp(window.times))

    @property
    def limits(self) -> tuple[int, int]:
        return PRETRAIN_ROUNDS, MOST_STEPS

    def fresh(self) -> State:
        return State(jnp.zeros((), jnp.int32), jnp.zeros(self.lattice.shape, jnp.float32))

    def is_pretrained(self, state: Checkpoint[State]) -> bool:
        return int(state.training.step) >= PRETRAIN_ROUNDS

    def is_finished(self, state: Checkpoint[State]) -> bool:
        done = int(state.training.step)
        return state.joint and (done >= MOST_STEPS or has_settled(state.history(), state.natural))

    def pretrain(self, state: Checkpoint[State]) -> Checkpoint[State]:
        training, error = pretrain(self.equations, state.training, self.data)
        step, data = int(training.step), float(error)
        self.tell("pretraining", step, data, None, None)
        return state.pretrained(training, np.array([float(step)]), np.array([data]))

    def begin_joint(self, state: Checkpoint[State]) -> Checkpoint[State]:
        found = measure(self.equations, state.training.weights, self.data)
        size = max(float(found.rate), self.least_rate)
        lengths = np.asarray(found.term_sizes, np.float64)
        natural = size / np.where(lengths > 0, lengths, 1.0)
        start = np.asarray(found.coefficients, np.float64) if self.start is None else self.start
        return state.joined(State(jnp.zeros((), jnp.int32), state.training.weights), size, natural, start)

    def join(self, state: Checkpoint[State]) -> Checkpoint[State]:
        training, found = advance(self.equations, state.training, self.data, jnp.float32(state.rate_size))
        step, coefficients = int(training.step), np.asarray(found.coefficients, np.float64)
        row = np.array([float(found.data), float(found.residual) / state.rate_size, *coefficients])
        if not np.isfinite(row).all():
            raise StageError(f"the refinement diverged at step {step}: the law has values that are not finite here")
        held = float(found.held_out_data), float(found.held_out_residual) / state.rate_size
        self.tell("joint", step, *held, coefficients)
        # what pretraining made of noise is gone after a step: the law's weight is that of the rate that is left
        size = max(min(float(found.rate), state.rate_size), self.least_rate)
        after = state.trained(training, np.array([float(step)]), row[None], (step, *held))
        return replace(after, rate_size=size)

    def judge(self, state: Checkpoint[State]) -> tuple[bool, str]:
        return judge_steps(state.history(), state.natural, MOST_STEPS)

    def check(self, state: Checkpoint[State], coefficients: Array) -> tuple[float, float]:
        rate, terms, error = evaluate(self.equations, state.training.weights, self.data)
        weight = np.asarray(self.data.held_out, np.float64) ** 2
        left = np.asarray(rate, np.float64) - np.tensordot(coefficients, np.asarray(terms, np.float64), axes=1)
        data, residual = (float(np.sqrt(np.sum(weight * e**2))) for e in (np.asarray(error, np.float64), left))
        return data, residual / state.rate_size

    def solve(self, state: Checkpoint[State]) -> Array:
        """Solve the last projection once more, in double precision."""
        rate, terms, _ = evaluate(self.equations, state.training.weights, self.data)
        weight = np.asarray(self.data.trained, np.float64).reshape(-1)
        columns = np.asarray(terms, np.float64).reshape(len(self.names), -1) * weight
        return solve_columns(columns.T, np.asarray(rate, np.float64).reshape(-1) * weight, RANK)


def build_lattice(window: Window) -> Lattice:
    """Space the neurons by cells and frames, not more of them than a film of 100 × 100 cells needs."""
    used: NDArray[np.bool_] = np.any(window.trained > 0, axis=0)
    # no neurons where the mask hides everything: nothing would hold them
    spans = [_span(window.x[:, np.any(used, axis=0)]), _span(window.y[:, np.any(used, axis=1)])]
    longest = max(high - low for low, high in spans)
    spacing = max(SPACING_CELLS * max(window.cell), longest / MOST_INTERVALS)
    first, last = float(window.times[0]), float(window.times[-1])
    pace = (last - first) * max(SPACING_FRAMES / (len(window.times) - 1), 1.0 / MOST_TIME_INTERVALS)
    x, y = (Axis.over(*span, spacing) for span in spans)
    return Lattice(x, y, Axis.over(first, last, pace))


def _span(places: Array) -> tuple[float, float]:
    return float(places.min()), float(places.max())
