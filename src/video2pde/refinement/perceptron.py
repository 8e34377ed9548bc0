"""Train the perceptron on one seed's points, in compiled chunks of steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.discovery.regression import solve_columns
from video2pde.errors import InputError, StageError
from video2pde.refinement.checkpoint import Checkpoint
from video2pde.refinement.job import Job, RANK, Task
from video2pde.refinement.law import Batch, Law
from video2pde.refinement.result import judge_convergence
from video2pde.refinement.sampling import draw_samples, Points, Samples
from video2pde.refinement.training import Parameters, Scales, Trainer, Training
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings

Array = NDArray[np.float64]
CHUNK = {"cpu": 250, "gpu": 1000}
"""Steps in one compiled call; between calls there is time for progress, a checkpoint, and Ctrl-C."""
RECORD_EVERY = 10
FINAL_BATCHES = 16
MARGIN = 0.1
"""Room beyond the data's range, so that no value lies where the sigmoid is flat."""


def _build_law(terms: Sequence[Term], samples: Samples, settings: RefinementSettings, carried: bool) -> Law:
    span = (0.0, 1.0)
    if settings.output == "data":
        room = MARGIN * (samples.high - samples.low)
        span = (samples.low - room, samples.high + room)
    elif not 0.0 <= samples.low <= samples.high <= 1.0:
        raise InputError(
            f"refinement.output = 'unit' needs a field within [0, 1], this one spans "
            f"[{samples.low:.4g}, {samples.high:.4g}]; set it to 'data'"
        )
    cell = samples.cell if settings.cell_average else None
    return Law.of(terms, samples.length, samples.duration, span, cell, carried)


@lru_cache(maxsize=4)
def _find_trainer(law: Law, settings: RefinementSettings) -> Trainer:
    """Compile once for all seeds and resumed runs."""
    return Trainer(law, settings)


class PerceptronJob(Job[Training]):
    """Train the perceptron for one seed."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        settings, flow = task.settings, task.flow
        self.samples = draw_samples(task.field, task.velocity, settings.frame, task.seed, settings.concentration, flow)
        self.law = _build_law(task.terms, self.samples, settings, settings.frame == "fixed" or flow is not None)
        self.trainer = _find_trainer(self.law, settings)
        self.chunk = CHUNK[task.device]
        self.pool, self.held_out = _to_device(self.samples.pool), _to_device(self.samples.held_out)
        self.key = jax.random.key(task.seed + 1)

    def fresh(self) -> Training:
        return self.trainer.start(self.seed)

    def is_pretrained(self, state: Checkpoint[Training]) -> bool:
        return int(state.training.step) >= self.settings.pretrain_steps

    def is_finished(self, state: Checkpoint[Training]) -> bool:
        return state.joint and int(state.training.step) >= self.settings.joint_steps

    def judge(self, state: Checkpoint[Training]) -> tuple[bool, str]:
        return judge_convergence(state.history(), state.natural, self.settings.joint_steps)

    @property
    def limits(self) -> tuple[int, int]:
        return self.settings.pretrain_steps, self.settings.joint_steps

    def pretrain(self, state: Checkpoint[Training]) -> Checkpoint[Training]:
        done, total = int(state.training.step), self.settings.pretrain_steps
        steps = min(self.chunk, total - done)
        scales = self._scales(1.0, np.ones(len(self.law.terms)))
        training, trace = self.trainer.pretrain(state.training, self.pool, self.key, scales, steps)
        rows = _thin(np.asarray(trace, np.float64))
        data = np.sqrt(rows[:, 0]) / self._relative[0]
        self.tell("pretraining", done + steps, float(data[-1]), None, None)
        return state.pretrained(training, _thin_steps(done, steps), data)

    def begin_joint(self, state: Checkpoint[Training]) -> Checkpoint[Training]:
        """Measure the sizes of the rate of change and of the terms, and start the second phase."""
        seen = self.trainer.inspect(state.training.parameters.network, self.held_out)
        rate, terms = np.asarray(seen.rate, np.float64), np.asarray(seen.terms, np.float64)
        size = float(np.sqrt(np.mean(rate**2)))
        size = max(size, 1e-6 * self.samples.spread / self.samples.duration)
        lengths = np.sqrt(np.mean(terms**2, axis=0))
        natural = size / np.where(lengths > 0, lengths, 1.0)
        unit = natural if self.settings.scaled_loss else np.ones_like(natural)
        start = self.start if self.start is not None else solve_columns(terms, rate, RANK)
        training = self.trainer.begin_joint(state.training, start / unit)
        return state.joined(training, size, natural, start)

    def join(self, state: Checkpoint[Training]) -> Checkpoint[Training]:
        done, total = int(state.training.step), self.settings.joint_steps
        steps = min(self.chunk, total - done)
        scales = self._scales(state.rate_size, state.natural)
        training, trace = self.trainer.join(state.training, self.pool, self.key, scales, steps)
        rows = _thin(np.asarray(trace, np.float64))
        if not np.isfinite(rows).all():
            raise StageError(f"the refinement diverged at joint step {done + steps}; lower refinement.joint_rate")
        relative = self._relative[0], self._relative[1] or state.rate_size
        rows[:, 0], rows[:, 1] = np.sqrt(rows[:, 0]) / relative[0], np.sqrt(rows[:, 1]) / relative[1]
        data, residual = self._check(training.parameters, rows[-1, 2:], state.rate_size)
        self.tell("joint", done + steps, data, residual, rows[-1, 2:])
        return state.trained(training, _thin_steps(done, steps), rows, (done + steps, data, residual))

    @property
    def _relative(self) -> tuple[float, float | None]:
        """Return what turns the square root of the losses into relative errors; None: the rate's size."""
        return (1.0, 1.0) if self.settings.scaled_loss else (self.samples.spread, None)

    def _scales(self, rate_size: float, natural: Array) -> Scales:
        if not self.settings.scaled_loss:
            return Scales(jnp.float32(1), jnp.float32(1), jnp.ones(len(natural), jnp.float32))
        return Scales(jnp.float32(self.samples.spread), jnp.float32(rate_size), jnp.asarray(natural, jnp.float32))

    def _check(self, parameters: Parameters, coefficients: Array, rate_size: float) -> tuple[float, float]:
        seen = self.trainer.inspect(parameters.network, self.held_out)
        error = np.asarray(seen.data, np.float64) - np.asarray(self.held_out.values, np.float64)
        residual = np.asarray(seen.rate, np.float64) - np.asarray(seen.terms, np.float64) @ coefficients
        data = float(np.sqrt(np.mean(error**2))) / self.samples.spread
        return data, float(np.sqrt(np.mean(residual**2))) / rate_size

    def check(self, state: Checkpoint[Training], coefficients: Array) -> tuple[float, float]:
        return self._check(state.training.parameters, coefficients, state.rate_size)

    def solve(self, state: Checkpoint[Training]) -> Array:
        """Solve on many points, or take what was trained."""
        if self.settings.coefficients == "trained":
            last: Array = state.history().coefficients[-1]
            return last
        return self._solve_finely(state.training)

    def _solve_finely(self, training: Training) -> Array:
        """Solve for the coefficients on FINAL_BATCHES batches of the held-out points' size: one compiled shape."""
        rng, count = np.random.default_rng(self.seed), len(self.held_out.values)
        rates, terms = [], []
        for _ in range(FINAL_BATCHES):
            chosen = rng.integers(0, len(self.pool.values), count)
            seen = self.trainer.inspect(training.parameters.network, Batch(*(part[chosen] for part in self.pool)))
            rates.append(np.asarray(seen.rate, np.float64))
            terms.append(np.asarray(seen.terms, np.float64))
        return solve_columns(np.concatenate(terms), np.concatenate(rates), RANK)


def _to_device(points: Points) -> Batch:
    return Batch(jnp.asarray(points.inputs), jnp.asarray(points.values), jnp.asarray(points.velocity))


def _thin(rows: Array) -> Array:
    """Average the trace over runs of RECORD_EVERY steps."""
    edges = np.arange(0, len(rows), RECORD_EVERY)
    counts = np.diff(np.append(edges, len(rows)))
    means: Array = np.add.reduceat(rows, edges, axis=0) / counts[:, None]
    return means


def _thin_steps(done: int, steps: int) -> Array:
    return done + np.minimum(np.arange(RECORD_EVERY, steps + RECORD_EVERY, RECORD_EVERY), steps).astype(np.float64)
