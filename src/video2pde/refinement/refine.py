"""The stage: refine a library's coefficients on the training window by an inverse PINN."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from video2pde.device import choose_device, Device, load_jax
from video2pde.discovery.regression import solve_columns
from video2pde.errors import InputError, StageError
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.refinement.checkpoint import Checkpoint, fingerprint, load_checkpoint, save_checkpoint
from video2pde.refinement.law import Batch, Law
from video2pde.refinement.result import History, judge_convergence, Refinement, SeedRun, summarise
from video2pde.refinement.sampling import average_neighbours, draw_samples, Points, Samples
from video2pde.refinement.training import Parameters, Scales, Trainer, Training
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings

Array = NDArray[np.float64]
CHUNK = {"cpu": 250, "gpu": 1000}
"""Steps in one compiled call; between calls there is time for progress, a checkpoint, and Ctrl-C."""
RECORD_EVERY = 10
SAVE_EVERY_S = 10.0
FINAL_BATCHES = 16
RANK = 1e-6
"""Relative size below which a direction of the terms counts as none."""
MARGIN = 0.1
"""Room beyond the data's range, so that no value lies where the sigmoid is flat."""


@dataclass(frozen=True)
class Standing:
    """Tell where a training stands, for progress displays."""

    seed: int
    phase: Literal["pretraining", "joint"]
    step: int
    steps: int
    data_error: float
    residual: float | None
    coefficients: dict[str, float]


def refine(
    train_field: Field,
    terms: Sequence[Term],
    velocity: NDArray[np.float64],
    start: Sequence[float] | None,
    settings: RefinementSettings,
    *,
    device: Device = "cpu",
    seeds: Sequence[int] | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[Standing], None] | None = None,
    flow: Flow | None = None,
) -> Refinement:
    """Fit a network and the coefficients c of û_t + v·∇û = Σ c_j T_j(û) to the training window.

    Parameters
    ----------
    train_field : the training window alone; only points inside its mask are used.
    terms : intrinsic terms T_j of the library, without the drift.
    velocity : v(t), shape (t, 2), length per second at the frames' times; its coefficient is 1.
    start : coefficients to start from, one per term; None: those of the pretrained network.
    seeds : of weights and samples, instead of ``settings.seeds``.
    checkpoint : file to resume from and to save to; the seed is added to its name.
    progress : called after every chunk of steps.
    flow : velocity that varies in space, beside ``velocity``; it is taken as it is.

    Returns
    -------
    The coefficients, with the training's history. Ctrl-C ends the training, saves the checkpoint and returns the best
    so far, marked as interrupted.

    Examples
    --------
    >>> from video2pde.settings import RefinementSettings
    >>> field, terms = vp.example_field(), vp.Model.of({"laplacian": 1.0}).terms
    >>> short = RefinementSettings(width=8, depth=2, pretrain_steps=20, joint_steps=20)
    >>> sorted(refine(field, terms, np.tile([0.5, -0.25], (60, 1)), [1.0], short).coefficients)
    ['laplacian']
    """
    if start is not None and len(start) != len(terms):
        raise InputError(f"{len(start)} starting coefficients for {len(terms)} terms; give one per term")
    chosen = tuple(settings.seeds if seeds is None else seeds)
    if not chosen:
        raise InputError("refinement.seeds is empty; give at least one seed")
    velocity = np.asarray(velocity, dtype=np.float64)
    if velocity.shape != (len(train_field), 2):
        raise InputError(f"the velocity needs shape ({len(train_field)}, 2), one row per frame, not {velocity.shape}")
    mark = "" if checkpoint is None else fingerprint(train_field, terms, velocity, start, settings, flow)
    if settings.average:
        train_field, velocity = average_neighbours(train_field, velocity)
    begin = None if start is None else np.asarray(start, dtype=np.float64)
    runs: list[SeedRun] = []
    with jax.default_device(find_device(device)):
        for seed in chosen:
            path = None if checkpoint is None else checkpoint.with_stem(f"{checkpoint.stem}-{seed}")
            samples = draw_samples(train_field, velocity, settings.frame, seed, settings.concentration, flow)
            carried = settings.frame == "fixed" or flow is not None
            law = _build_law(terms, samples, settings, carried)
            job = _Job(law, settings, samples, seed, start=begin, chunk=CHUNK[device], progress=progress)
            runs.append(job.run(path, f"{mark}-{seed}-{device}"))
            if runs[-1].interrupted:
                break
    given = None if start is None else tuple(float(value) for value in start)
    names = tuple(term.name for term in terms)
    return summarise(names, tuple(runs), given, device, tuple(_caveats(settings)))


def find_device(device: Device) -> Any:
    """Return JAX's device for the setting ``run.device``."""
    choose_device(device, 0)
    return load_jax().devices(device)[0]


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


def _caveats(settings: RefinementSettings) -> list[str]:
    if settings.coefficients == "trained" and not settings.scaled_loss:
        reach = settings.joint_rate * settings.joint_steps
        return [
            f"step-limited: {settings.joint_steps} steps at a rate of {settings.joint_rate:g} move a coefficient by "
            f"{reach:.3g} at most, whatever the data say; the default settings have no such limit"
        ]
    return []


@lru_cache(maxsize=4)
def _find_trainer(law: Law, settings: RefinementSettings) -> Trainer:
    """Compile once for all seeds and resumed runs."""
    return Trainer(law, settings)


class _Job:
    """Train one seed: hold what is fixed, and the checkpoint as the only thing that changes."""

    def __init__(
        self,
        law: Law,
        settings: RefinementSettings,
        samples: Samples,
        seed: int,
        *,
        start: Array | None,
        chunk: int,
        progress: Callable[[Standing], None] | None,
    ) -> None:
        self.law, self.settings, self.samples, self.seed, self.start = law, settings, samples, seed, start
        self.trainer = _find_trainer(law, settings)
        self.chunk = chunk
        self.pool, self.held_out = _to_device(samples.pool), _to_device(samples.held_out)
        self.key = jax.random.key(seed + 1)
        self.progress = progress

    def run(self, path: Path | None, mark: str) -> SeedRun:
        """Train from the checkpoint, or from the start, to the end or to Ctrl-C."""
        fresh = Checkpoint.begin(self.trainer.start(self.seed), len(self.law.terms))
        state = load_checkpoint(path, mark, fresh) if path is not None and path.exists() else fresh
        sitting, before, saved = time.perf_counter(), state.seconds, time.perf_counter()
        interrupted = False
        try:
            while not self._finished(state):
                state = self._advance(state).after(before + time.perf_counter() - sitting)
                if path is not None and (time.perf_counter() - saved > SAVE_EVERY_S or self._finished(state)):
                    save_checkpoint(path, mark, state)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            interrupted = True
            if path is not None:
                save_checkpoint(path, mark, state)
        return self._conclude(state, interrupted)

    def _finished(self, state: Checkpoint) -> bool:
        return state.joint and int(state.training.step) >= self.settings.joint_steps

    def _advance(self, state: Checkpoint) -> Checkpoint:
        if state.joint:
            return self._join(state)
        if int(state.training.step) < self.settings.pretrain_steps:
            return self._pretrain(state)
        return self._begin_joint(state)

    def _pretrain(self, state: Checkpoint) -> Checkpoint:
        done, total = int(state.training.step), self.settings.pretrain_steps
        steps = min(self.chunk, total - done)
        scales = self._scales(1.0, np.ones(len(self.law.terms)))
        training, trace = self.trainer.pretrain(state.training, self.pool, self.key, scales, steps)
        rows = _thin(np.asarray(trace, np.float64))
        data = np.sqrt(rows[:, 0]) / self._relative[0]
        self._tell("pretraining", done + steps, total, float(data[-1]), None, None)
        return state.pretrained(training, _thin_steps(done, steps), data)

    def _begin_joint(self, state: Checkpoint) -> Checkpoint:
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

    def _join(self, state: Checkpoint) -> Checkpoint:
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
        self._tell("joint", done + steps, total, data, residual, rows[-1, 2:])
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

    def _tell(
        self,
        phase: Literal["pretraining", "joint"],
        step: int,
        steps: int,
        data: float,
        residual: float | None,
        coefficients: Array | None,
    ) -> None:
        if self.progress is None:
            return
        names = [term.name for term in self.law.terms]
        known = {} if coefficients is None else dict(zip(names, coefficients.tolist(), strict=True))
        self.progress(Standing(self.seed, phase, step, steps, data, residual, known))

    def _conclude(self, state: Checkpoint, interrupted: bool) -> SeedRun:
        history, total = state.history(), self.settings.joint_steps
        if not state.joint:
            state = self._begin_joint(state)
        coefficients = self._coefficients(state, history, interrupted)
        data, residual = self._check(state.training.parameters, coefficients, state.rate_size)
        converged, reason = judge_convergence(history, state.natural, total)
        if interrupted:
            converged, reason = False, f"interrupted at joint step {int(history.steps.max(initial=0))} of {total}"
        steps = int(history.pretrain_steps.max(initial=0)), int(history.steps.max(initial=0))
        return SeedRun(
            seed=self.seed,
            coefficients=coefficients,
            history=history,
            data_error=data,
            residual=residual,
            converged=converged,
            reason=reason,
            steps=steps,
            seconds=state.seconds,
            interrupted=interrupted,
        )

    def _coefficients(self, state: Checkpoint, history: History, interrupted: bool) -> Array:
        """Return the best so far when interrupted, else the end's: solved on many points, or as trained."""
        if not len(history.checked):
            return state.start
        if interrupted:
            loss = history.held_out_data**2 + self.settings.residual_weight * history.held_out_residual**2
            best: Array = history.coefficients[history.steps <= history.checked[np.argmin(loss)]][-1]
            return best
        if self.settings.coefficients == "trained":
            last: Array = history.coefficients[-1]
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
