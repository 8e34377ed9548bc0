"""The choice and the test window: the choice is frozen before the held-out frames are predicted, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration import Calibration
from video2pde.drift import Drift
from video2pde.field import Field, Windows
from video2pde.fit import FitTest, widen_all
from video2pde.rollout.model import Model
from video2pde.rollout.validate import Validation
from video2pde.selection import select, Selection
from video2pde.settings import Settings
from video2pde.stages.drift import measure_drift
from video2pde.stages.structure import Discovery
from video2pde.stages.validation import forecast, validate_models


def choose(
    known: Field,
    found: Discovery,
    calibrations: Mapping[str, Calibration],
    tests: Mapping[str, FitTest],
    scores: Validation,
    settings: Settings,
) -> Selection:
    """Choose among the calibrated contenders, unless the recording showed no law at all."""
    seen = found.identifiability
    why_not = "" if seen.law_seen else seen.verdict.removeprefix("no law: ")
    pixel, named = min(known.grid.dx, known.grid.dy), settings.regression.law is not None
    searched = found.search is not None
    return select(widen_all(calibrations, tests), scores, settings.selection, pixel, why_not, named, tests, searched)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The held-out frames, predicted once: scores, the drift of the whole recording, and the predicted frames.

    ``forecasts``: (first frame, values (t, y, x)) of the chosen law's rollouts over validation and test.
    """

    scores: Validation
    drift: Drift
    forecasts: tuple[tuple[int, NDArray[np.float32]], ...]

    def __repr__(self) -> str:
        return f"Evaluation({self.scores!r})"


def evaluate(
    field: Field,
    windows: Windows,
    selection: Selection,
    models: Mapping[str, Model],
    diffusion: float | None,
    settings: Settings,
) -> Evaluation:
    """Predict the test window, once, with the frozen choice and its alternatives; measure its drift first.

    Parameters
    ----------
    field : the whole recording.
    windows : its windows.
    selection : the choice.
    models : the laws that were compared, by name.
    diffusion : coefficient of the baseline drift + diffusion. None: without it.
    settings : those of drift, weak form, rollouts and the run.

    Returns
    -------
    Scores on the test window, the drift of the whole recording, and the predicted frames.

    Examples
    --------
    >>> run = vp.example_run()
    >>> models = {"A": run.chosen.model}
    >>> done = evaluate(run.field, run.windows, run.selection, models, run.discovery.diffusion, run.settings)
    >>> bool(done.scores.rows[0].measured.skill > 0.9)
    True
    """
    drift = measure_drift(field, settings)
    wanted = [name for name in (selection.chosen, *selection.alternatives) if name is not None and name in models]
    front = selection.front_best
    if front is not None and front in models and front not in wanted:
        wanted.append(front)
    scores = validate_models(field, windows.test, drift, {name: models[name] for name in wanted}, diffusion, settings)
    forecasts = []
    if selection.chosen is not None:
        for window in (windows.validation, windows.test):
            values = forecast(field, window, drift, models[selection.chosen], settings)
            forecasts.append((window.start, values))
    return Evaluation(scores, drift, tuple(forecasts))
