"""Validation: rollouts of every model beside a ladder of baselines, on the same frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.device import Device
from video2pde.field import Field
from video2pde.parallel import map_threads
from video2pde.rollout.batching import SMALL_BATCH
from video2pde.rollout.metrics import Comparison, Metrics, Reference
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import predict_one_step, simulate_batch
from video2pde.rollout.task import Rollout, Scheme
from video2pde.rollout.window import scheme_for
from video2pde.settings import RolloutSettings

Mode = Literal["learned", "measured", "baseline"]
PERSISTENCE, DRIFT, DIFFUSION = "persistence", "drift", "drift + diffusion"
SNAPSHOTS = 4


@dataclass(frozen=True, eq=False)
class Score:
    """Hold how one model did under one treatment of the drift.

    Parameters
    ----------
    name : library or baseline.
    mode : ``learned`` (the drift scaled as the fit learned it), ``measured`` (the drift as measured) or ``baseline``.
    model : what was integrated; None for persistence.
    full : metrics of the rollout from the window's first frame.
    one_step : metrics of the predictions of each frame from the observed one before it.
    skill : 1 − MSE/MSE of persistence over the full rollout; −inf where the rollout failed.
    one_step_skill : the same for one-step predictions.
    failure : why the full rollout failed, or an empty text.
    clipped : what clipping took away in the full rollout, as a share of the first frame.
    snapshots : float32, shape (s, y, x), the predicted frames at ``Validation.snapshot_frames``.
    coarse_skill : the skill of the full rollout in averages over blocks of the picture.
    """

    name: str
    mode: Mode
    model: Model | None
    full: Metrics
    one_step: Metrics
    skill: float
    one_step_skill: float
    failure: str
    clipped: float
    snapshots: NDArray[np.float32]
    coarse_skill: float = 0.0

    @property
    def beats_persistence(self) -> bool:
        """Tell whether the rollout predicts more than that nothing changes."""
        return self.skill > 0.0

    @property
    def verdict(self) -> str:
        """Say in words how the model compares with persistence."""
        if self.model is None:
            return "the reference"
        if self.failure:
            return f"failed: {self.failure}"
        if self.beats_persistence:
            return f"beats persistence (skill {self.skill:.3f})"
        return f"does not beat persistence (skill {self.skill:.3f})"


@dataclass(frozen=True, eq=False)
class Row:
    """Hold one line of the table of validation diagnostics: a library under both drift modes."""

    library: str
    learned: Score
    measured: Score

    @property
    def preferred(self) -> Literal["learned", "measured"]:
        """The drift with the smaller rollout error; the measured one, simpler, where they agree to rounding."""
        return "learned" if self.learned.full.rrmse < self.measured.full.rrmse * (1 - 1e-9) else "measured"

    @property
    def best(self) -> Score:
        return self.learned if self.preferred == "learned" else self.measured


@dataclass(frozen=True, eq=False)
class Validation:
    """Hold the scores of all models and baselines on one window, and what the figures need.

    ``rows`` are ordered by the error under the measured drift. ``observed_snapshots`` (s, y, x) are the observed frames
    at the indices ``snapshot_frames`` of ``times``; ``extent`` is (height, width) in ``unit``.
    """

    times: NDArray[np.float64]
    levels: tuple[float, ...]
    baselines: tuple[Score, ...]
    rows: tuple[Row, ...]
    snapshot_frames: tuple[int, ...]
    observed_snapshots: NDArray[np.float32]
    extent: tuple[float, float]
    unit: str

    def __repr__(self) -> str:
        ordered = sorted((*(row.measured for row in self.rows), *self.baselines), key=lambda score: score.full.rrmse)
        errors = ", ".join(f"{score.name} {score.full.rrmse:.2%}" for score in ordered)
        return f"Validation({self.times[0]:.4g} to {self.times[-1]:.4g} s: {errors})"

    @property
    def persistence(self) -> Score:
        return self.baselines[0]

    @property
    def scores(self) -> tuple[Score, ...]:
        """Every score: the baselines, then each library under learned and measured drift."""
        return (*self.baselines, *(score for row in self.rows for score in (row.learned, row.measured)))

    @property
    def best(self) -> Row | None:
        """The library with the smallest rollout error, or None without libraries."""
        return min(self.rows, key=lambda row: row.best.full.rrmse, default=None)


def validate(
    window: Field,
    models: Mapping[str, Model],
    velocity: ArrayLike | Mapping[str, ArrayLike],
    settings: RolloutSettings | None = None,
    *,
    background: ArrayLike | None = None,
    diffusion: float | None = None,
    start: ArrayLike | None = None,
    workers: int | Literal["auto"] = 1,
    device: Device = "cpu",
) -> Validation:
    """Roll every model out over a window, under learned and measured drift, beside the baselines.

    Parameters
    ----------
    window : the observed frames of the window.
    models : by library name; their ``drift_scale`` is the learned one; under the measured drift it is 1.
    velocity : shape (t, 2), measured (v_x, v_y) at the window's times, length per second; or one for each model
        by name, the baselines' under ``"drift"``.
    settings : the simulator's.
    background : shape (t,) or a number, below centroids and fronts. None: 0, the raw field.
    diffusion : β of the baseline drift + diffusion. None: that baseline is left out.
    start : shape (y, x), where the full rollouts and persistence begin. None: the window's first frame as recorded.
    workers, device : how many threads, and where; they change no result.

    Returns
    -------
    The scores of all models and baselines.

    Examples
    --------
    >>> laws = {"slow": vp.Model.of({"laplacian": 0.1}), "right": vp.Model.of({"laplacian": 1.0})}
    >>> validate(vp.example_field(), laws, np.tile([0.5, -0.25], (60, 1))).best.library
    'right'
    """
    chosen = settings or RolloutSettings()
    base = None if background is None else np.asarray(background, float)
    first = np.asarray(window.values[0] if start is None else start, float)
    judge = _Judge(window, chosen, Reference.of(window.values, window.grid, chosen.levels, window.core, base), first)
    entries: list[tuple[str, Mode, Model]] = [(DRIFT, "baseline", Model())]
    if diffusion is not None:
        entries.append((DIFFUSION, "baseline", Model.of({"laplacian": diffusion})))
    for name, model in models.items():
        entries += [(name, "learned", model), (name, "measured", model.with_measured_drift())]
    persistence = judge.score_persistence()
    given = velocity if isinstance(velocity, Mapping) else {name: velocity for name, _, _ in entries}
    velocities = [np.asarray(given[DRIFT if mode == "baseline" else name], float) for name, mode, _ in entries]
    scores = judge.score_models(entries, velocities, persistence, workers, device)
    baselines = len(entries) - 2 * len(models)
    rows = [Row(name, *scores[baselines + 2 * n : baselines + 2 * n + 2]) for n, name in enumerate(models)]
    return Validation(
        times=window.times,
        levels=chosen.levels,
        baselines=(persistence, *scores[:baselines]),
        rows=tuple(sorted(rows, key=lambda row: row.measured.full.rrmse)),
        snapshot_frames=judge.shown,
        observed_snapshots=window.values[list(judge.shown)].copy(),
        extent=(window.grid.height, window.grid.width),
        unit=window.grid.unit,
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """Compare predictions with one window."""

    window: Field
    settings: RolloutSettings
    reference: Reference
    start: NDArray[np.float64]

    @property
    def shown(self) -> tuple[int, ...]:
        last = len(self.window) - 1
        return tuple(dict.fromkeys(round(last * k / (SNAPSHOTS - 1)) for k in range(SNAPSHOTS)))

    def score_persistence(self) -> Score:
        """Score the prediction that nothing changes."""
        values, one_step = self.window.values, Comparison(self.reference)
        one_step.add(0, values[:1])
        one_step.add(1, values[:-1])
        still = np.broadcast_to(self.start.astype(np.float32), values.shape)
        snapshots = still[list(self.shown)].copy()
        return Score(
            name=PERSISTENCE,
            mode="baseline",
            model=None,
            full=self.reference.measure(still),
            one_step=one_step.metrics,
            skill=0.0,
            one_step_skill=0.0,
            failure="",
            clipped=0.0,
            snapshots=snapshots,
        )

    def score_models(
        self,
        entries: Sequence[tuple[str, Mode, Model]],
        velocities: Sequence[NDArray[np.float64]],
        persistence: Score,
        workers: int | Literal["auto"],
        device: Device,
    ) -> list[Score]:
        """Roll out and score the entries, a few at a time so that memory does not grow with their number."""
        w = self.window
        scores: list[Score] = []
        terms = tuple(dict.fromkeys(term for _, _, model in entries for term in model.terms))
        scheme = replace(scheme_for(w, self.settings, workers, device), vocabulary=terms)
        batch = SMALL_BATCH if device == "gpu" else 4
        for begin in range(0, len(entries), batch):
            part = entries[begin : begin + batch]
            models = [model for _, _, model in part]
            velocity = np.stack(velocities[begin : begin + batch])
            rollouts = simulate_batch(models, self.start, w.times, w.grid, velocity, scheme)
            full = map_threads(self._measure, rollouts, workers)
            # their frames are let go before the next ones are predicted
            rollouts = [replace(rollout, values=rollout.values[list(self.shown)]) for rollout in rollouts]
            one_step = self._measure_steps(models, velocity, scheme, workers)
            for n, (name, mode, model) in enumerate(part):
                scores.append(self._score(name, mode, model, rollouts[n], full[n], one_step[n], persistence))
        return scores

    def _measure(self, rollout: Rollout) -> Metrics:
        return self.reference.measure(rollout.values)

    def _measure_steps(
        self,
        models: Sequence[Model],
        velocity: NDArray[np.float64],
        scheme: Scheme,
        workers: int | Literal["auto"],
    ) -> list[Metrics]:
        """Compare predictions of each frame from the one before it, as they are made."""
        w, comparisons = self.window, [Comparison(self.reference) for _ in models]
        for frames, values in predict_one_step(models, w.values, w.times, w.grid, velocity, scheme):
            pairs = zip(comparisons, values, strict=True)
            map_threads(lambda pair, first=frames.start: pair[0].add(first, pair[1]), pairs, workers)  # type: ignore[misc]
        return [comparison.metrics for comparison in comparisons]

    def _score(
        self, name: str, mode: Mode, model: Model, rollout: Rollout, full: Metrics, one_step: Metrics, reference: Score
    ) -> Score:
        """Sum up; ``rollout`` holds the frames that are shown alone."""
        return Score(
            name=name,
            mode=mode,
            model=model,
            full=full,
            one_step=one_step,
            skill=skill_of(full, reference.full),
            one_step_skill=skill_of(one_step, reference.one_step),
            failure=rollout.reason,
            clipped=rollout.clipped,
            snapshots=rollout.values.astype(np.float32),
            coarse_skill=coarse_skill_of(full, reference.full),
        )


def skill_of(metrics: Metrics, reference: Metrics) -> float:
    """Return 1 − MSE/MSE of the reference; 0 where both are perfect."""
    if reference.rrmse == 0.0:
        return 0.0 if metrics.rrmse == 0.0 else -np.inf
    return float(1.0 - (metrics.rrmse / reference.rrmse) ** 2)


def coarse_skill_of(metrics: Metrics, reference: Metrics) -> float:
    """Return the same for averages over blocks; the first frame, from which both start, counts nowhere."""
    own, other = (float(m.coarse[1:].sum()) for m in (metrics, reference))
    return 1.0 - own / other if other > 0 else 0.0
