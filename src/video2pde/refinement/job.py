"""One seed's training: from the checkpoint, or from the start, to the end or to Ctrl-C, whatever the network."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from video2pde.device import Device
from video2pde.field import Field
from video2pde.flow import Flow
from video2pde.refinement.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from video2pde.refinement.result import History, SeedRun
from video2pde.terms.term import Term

if TYPE_CHECKING:
    from video2pde.settings import RefinementSettings

Array = NDArray[np.float64]
State = TypeVar("State")
SAVE_EVERY_S = 10.0
RANK = 1e-6
"""Relative size below which a direction of the terms counts as none."""


@dataclass(frozen=True)
class Standing:
    """Tell where a training stands, for progress displays.

    ``share`` is what is done of the whole training, at least: one that settles early ends before it reaches 1.
    """

    seed: int
    phase: Literal["pretraining", "joint"]
    step: int
    steps: int
    share: float
    data_error: float
    residual: float | None
    coefficients: dict[str, float]


@dataclass(frozen=True, eq=False)
class Task:
    """Say what one seed is trained on; the parameters are those of :func:`~video2pde.refinement.refine.refine`."""

    field: Field
    terms: tuple[Term, ...]
    velocity: Array
    flow: Flow | None
    settings: RefinementSettings
    seed: int
    start: Array | None
    device: Device
    progress: Callable[[Standing], None] | None


class Job(ABC, Generic[State]):
    """Train one seed: hold what is fixed, and the checkpoint as the only thing that changes.

    A network says how it is pretrained, how the second phase begins and goes on, and when it ends; each of these
    advances the checkpoint by some steps.
    """

    def __init__(self, task: Task) -> None:
        self.names = [term.name for term in task.terms]
        self.settings, self.seed, self.start, self.progress = task.settings, task.seed, task.start, task.progress

    @property
    @abstractmethod
    def limits(self) -> tuple[int, int]:
        """Steps of the pretraining and of the joint phase, at most."""

    @abstractmethod
    def fresh(self) -> State:
        """Return the network before its first step."""

    @abstractmethod
    def pretrain(self, state: Checkpoint[State]) -> Checkpoint[State]:
        """Train on the data alone."""

    @abstractmethod
    def is_pretrained(self, state: Checkpoint[State]) -> bool:
        """Say whether the second phase may begin."""

    @abstractmethod
    def begin_joint(self, state: Checkpoint[State]) -> Checkpoint[State]:
        """Measure the sizes of the rate of change and of the terms, and start the second phase."""

    @abstractmethod
    def join(self, state: Checkpoint[State]) -> Checkpoint[State]:
        """Train on data and law."""

    @abstractmethod
    def is_finished(self, state: Checkpoint[State]) -> bool:
        """Say whether the training is over."""

    @abstractmethod
    def judge(self, state: Checkpoint[State]) -> tuple[bool, str]:
        """Say whether it converged, and what that rests on."""

    @abstractmethod
    def check(self, state: Checkpoint[State], coefficients: Array) -> tuple[float, float]:
        """Return data error and residual on held-out points."""

    @abstractmethod
    def solve(self, state: Checkpoint[State]) -> Array:
        """Return the coefficients at the end of the training."""

    def run(self, path: Path | None, mark: str) -> SeedRun:
        """Train from the checkpoint, or from the start, to the end or to Ctrl-C."""
        fresh = Checkpoint.begin(self.fresh(), len(self.names))
        state = load_checkpoint(path, mark, fresh) if path is not None and path.exists() else fresh
        sitting, before, saved = time.perf_counter(), state.seconds, time.perf_counter()
        interrupted = False
        try:
            while not self.is_finished(state):
                state = self._advance(state).after(before + time.perf_counter() - sitting)
                if path is not None and (time.perf_counter() - saved > SAVE_EVERY_S or self.is_finished(state)):
                    save_checkpoint(path, mark, state)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            interrupted = True
            if path is not None:
                save_checkpoint(path, mark, state)
        return self._conclude(state, interrupted)

    def _advance(self, state: Checkpoint[State]) -> Checkpoint[State]:
        if state.joint:
            return self.join(state)
        return self.begin_joint(state) if self.is_pretrained(state) else self.pretrain(state)

    def tell(
        self,
        phase: Literal["pretraining", "joint"],
        step: int,
        data: float,
        residual: float | None,
        coefficients: Array | None,
    ) -> None:
        """Report progress."""
        if self.progress is None:
            return
        known = {} if coefficients is None else dict(zip(self.names, coefficients.tolist(), strict=True))
        before, total = (0, self.limits[0]) if phase == "pretraining" else self.limits
        share = (before + step) / sum(self.limits)
        self.progress(Standing(self.seed, phase, step, total, share, data, residual, known))

    def _conclude(self, state: Checkpoint[State], interrupted: bool) -> SeedRun:
        history, total = state.history(), self.limits[1]
        if not state.joint:
            state = self.begin_joint(state)
        coefficients = self._coefficients(state, history, interrupted)
        data, residual = self.check(state, coefficients)
        converged, reason = self.judge(state)
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

    def _coefficients(self, state: Checkpoint[State], history: History, interrupted: bool) -> Array:
        """Return the best so far when interrupted, else the end's."""
        if not len(history.checked):
            return state.start
        if interrupted:
            loss = history.held_out_data**2 + self.settings.residual_weight * history.held_out_residual**2
            best: Array = history.coefficients[history.steps <= history.checked[np.argmin(loss)]][-1]
            return best
        return self.solve(state)
