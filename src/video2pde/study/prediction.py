"""Laws that predict films: the shared law, that of the other films, and every film's own on every other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field
from video2pde.record import load_run, Run
from video2pde.rollout.metrics import Reference
from video2pde.rollout.model import Model
from video2pde.rollout.start import estimate_start
from video2pde.rollout.validate import coarse_skill_of, skill_of
from video2pde.rollout.window import roll_out
from video2pde.runs.archive import load_artefact
from video2pde.stages import window_velocities
from video2pde.study.structure import find_terms

Array = NDArray[np.float64]
Frames = NDArray[np.float32]
Window = Literal["validation", "test"]

NEEDED: Mapping[Window, tuple[str, ...]] = {
    "validation": ("recording", "drift"),
    "test": ("recording", "drift", "test"),
}
"""Stages of a film's run that a prediction reads: before the choice, nothing that has seen the test window."""
SHARED, OTHERS, PERSISTENCE = "shared law", "law of the other films", "nothing changes"
MOST_FRAMES, MOST_SIDE = 100, 96
"""Of a film as it is shown beside the others."""


def law_of(film: str) -> str:
    """Name a film's own law."""
    return f"law of {film}"


@dataclass(frozen=True)
class Outcome:
    """How a law did on a film's window: relative error, and skill (1 is perfect, 0 no better than nothing changes).

    ``in_blocks``: its error in averages over blocks of the picture, where noise hardly counts, over that of a picture
    that stands still.
    """

    law: str
    rrmse: float
    skill: float
    in_blocks: float
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Shown:
    """A film in small: times (t,), observed (t, y, x) and forecast (t, y, x), NaN where nothing was predicted."""

    times: Array
    observed: Frames
    forecast: Frames


@dataclass(frozen=True, eq=False)
class Predicted:
    """What laws made of one film; ``shown`` where it was asked for."""

    film: str
    window: Window
    outcomes: tuple[Outcome, ...]
    shown: Shown | None = None

    def of(self, law: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.law == law)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a worker needs: the film's run, its own fit (for its flow), the laws by name, and the window to predict.

    ``laws``: terms and coefficients. ``show``: the law whose forecast is shown beside the film.
    """

    film: str
    folder: str
    kept: str
    laws: Mapping[str, tuple[tuple[str, ...], tuple[float, ...]]]
    window: Window
    show: str = ""


def predict(task: Forecast) -> Predicted:
    """Roll laws out over a film's window under its own measured drift, and score them."""
    run = load_run(task.folder, NEEDED[task.window])
    field, windows, drift = run.field, run.windows, run.longest_drift
    assert field is not None
    assert windows is not None
    assert drift is not None
    place: slice = getattr(windows, task.window)
    own = Path(task.kept)
    # a flow belongs to its film: what flows here is known from this film alone
    flow = load_artefact(own).flow if own.is_file() else None
    models = {
        name: Model(find_terms(terms, run.settings), values, flow=flow) for name, (terms, values) in task.laws.items()
    }
    outcomes, rollouts = _score(run, field, place, models)
    shown = None
    if task.show:
        first = windows.validation
        both = {first.start: _score(run, field, first, {task.show: models[task.show]})[1][task.show]}
        shown = _show(field, both | {place.start: rollouts[task.show]})
    return Predicted(task.film, task.window, outcomes, shown)


def _score(
    run: Run, field: Field, place: slice, models: Mapping[str, Model]
) -> tuple[tuple[Outcome, ...], dict[str, Frames]]:
    settings, drift = run.settings, run.longest_drift
    assert drift is not None
    window, part = field.frames(place), drift.frames(place)
    start = estimate_start(field, place.start, settings.rollout.start_frames)
    reference = Reference.of(window.values, window.grid, settings.rollout.levels, window.core, part.background)
    still = reference.measure(np.broadcast_to(start.astype(np.float32), window.values.shape))
    velocities = window_velocities(window, part, models, settings)
    outcomes, rollouts = [Outcome(PERSISTENCE, float(still.rrmse), 0.0, 1.0)], {}
    for name, model in models.items():
        (rollout,) = roll_out([model], window, velocities[name][None], settings.rollout, start=start)
        metrics = reference.measure(rollout.values)
        in_blocks = float(np.sqrt(max(1 - coarse_skill_of(metrics, still), 0.0)))
        outcomes.append(Outcome(name, float(metrics.rrmse), skill_of(metrics, still), in_blocks, rollout.reason))
        rollouts[name] = np.asarray(rollout.values, np.float32)
    return tuple(outcomes), rollouts


def _show(field: Field, forecasts: Mapping[int, Frames]) -> Shown:
    """Thin a film and its forecasts out to what a small picture needs."""
    whole = np.full(field.values.shape, np.nan, np.float32)
    for first, values in forecasts.items():
        whole[first : first + len(values)] = values
    kept = np.unique(np.linspace(0, len(field) - 1, min(MOST_FRAMES, len(field))).round().astype(int))
    step = -(-max(field.grid.shape) // MOST_SIDE)
    # what lies outside a mask may be anything, and would take the colours for itself
    inside = np.float32(1) if field.mask is None else field.mask.astype(np.float32)
    return Shown(field.times[kept], _pool(field.values[kept] * inside, step), _pool(whole[kept] * inside, step))


def _pool(values: Frames, step: int) -> Frames:
    count, ny, nx = values.shape
    rows, columns = ny // step, nx // step
    blocks = values[:, : rows * step, : columns * step].reshape(count, rows, step, columns, step)
    return np.asarray(blocks.mean(axis=(2, 4)), np.float32)


# --- what the outcomes say together --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeftOut:
    """One film predicted by the law of all others, beside its own law and the shared one; relative errors.

    ``in_blocks``: error of the others' law in averages over blocks, over that of a picture that stands still.
    """

    film: str
    law: tuple[float, ...]
    by_others: float
    by_own: float
    by_shared: float
    persistence: float
    in_blocks: float

    @property
    def excess(self) -> float:
        """How much more squared error the others' law leaves than the film's own; 0 where it leaves less."""
        return max(0.0, (self.by_others / max(self.by_own, 1e-300)) ** 2 - 1)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Every film's test window: left out of the fit, and under the law of every other film.

    ``matrix`` (n, n): relative error of the law of film i (row) on film j (column); NaN where a rollout failed.
    """

    films: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    matrix: Array
    shown: tuple[Shown, ...]

    @property
    def misfits(self) -> tuple[str, ...]:
        """Films that the law of the others predicts far worse than their own does, and worse than it does with most."""
        limit = max(LEAST_EXCESS, _far([entry.excess for entry in self.left_out]))
        return tuple(entry.film for entry in self.left_out if entry.excess > limit)

    @property
    def badly_predicted(self) -> tuple[str, ...]:
        """Films that the law of the others predicts far worse than it predicts most, in averages over blocks."""
        errors = [entry.in_blocks for entry in self.left_out]
        limit = max(TWICE * float(np.median(errors)), _far(errors))
        return tuple(entry.film for entry in self.left_out if not entry.in_blocks <= limit)


def _far(values: Sequence[float]) -> float:
    """Return what lies far beyond the usual scatter of values, by their median and its median deviation."""
    centre = float(np.median(values))
    return centre + FAR * 1.4826 * float(np.median(np.abs(np.array(values) - centre)))


LEAST_EXCESS, TWICE, FAR = 0.5, 2.0, 5.0
"""Squared error that the law of the others must leave beyond the film's own, relative to it, before the film is called
another law's; error over that of most films; and how many times the usual scatter both must lie beyond."""


def gather(films: Sequence[str], laws: Mapping[str, Array], found: Sequence[Predicted]) -> Predictions:
    """Sum up the predictions of all films' test windows; ``laws``: of the other films, by film."""
    left_out = tuple(
        LeftOut(
            each.film,
            tuple(laws[each.film].tolist()),
            each.of(OTHERS).rrmse,
            each.of(law_of(each.film)).rrmse,
            each.of(SHARED).rrmse,
            each.of(PERSISTENCE).rrmse,
            each.of(OTHERS).in_blocks,
        )
        for each in found
    )
    matrix = np.array([[each.of(law_of(name)).rrmse for each in found] for name in films])
    matrix[~np.isfinite(matrix)] = np.nan
    return Predictions(tuple(films), left_out, matrix, tuple(each.shown for each in found if each.shown is not None))
