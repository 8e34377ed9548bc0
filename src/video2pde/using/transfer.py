"""Transfer: a law found in one recording predicts another, beside that recording's baselines and its own law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.rollout.baseline import fit_diffusion
from video2pde.rollout.metrics import Metrics, Reference
from video2pde.rollout.model import Model
from video2pde.rollout.start import estimate_start
from video2pde.rollout.validate import DIFFUSION, DRIFT, PERSISTENCE, skill_of
from video2pde.rollout.window import roll_out
from video2pde.settings import Settings
from video2pde.stages import choose_windows, measure_drift, window_velocities
from video2pde.using.modelfile import SavedModel

WindowName = Literal["validation", "test"]
TRANSFERRED, OWN = "transferred law", "own law"


@dataclass(frozen=True, eq=False)
class Outcome:
    """How one prediction did on one window.

    Parameters
    ----------
    metrics : errors of the rollout from the window's first frame.
    skill : 1 − MSE/MSE of persistence; −inf where the rollout failed.
    failure : why the rollout failed, or an empty text.
    """

    name: str
    window: WindowName
    metrics: Metrics
    skill: float
    failure: str

    @property
    def row(self) -> dict[str, str | float | None]:
        """Return the line of a table: errors in per cent and in the grid's unit; None where a rollout failed."""
        numbers = {
            "rrmse_percent": 100 * self.metrics.rrmse,
            "front_rmse": self.metrics.front_rmse,
            "centroid_rmse": self.metrics.centroid_rmse,
            "skill": self.skill,
        }
        return {
            "window": self.window,
            "prediction": self.name,
            **{key: value if np.isfinite(value) else None for key, value in numbers.items()},
            "failure": self.failure,
        }


@dataclass(frozen=True, eq=False)
class Transfer:
    """Hold how a law from elsewhere predicts a recording.

    ``outcomes``: persistence, drift, drift + diffusion, the transferred law and, if given, the recording's own law, on
    the validation and on the test window. ``diffusion``: β of the baseline, fitted to the training window.
    ``notes``: what makes the comparison doubtful.
    """

    equation: str
    drift_mean: tuple[float, float]
    diffusion: float
    windows: Windows
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]

    def outcome(self, name: str, window: WindowName = "test") -> Outcome:
        """Find one outcome by its name and window."""
        return next(found for found in self.outcomes if (found.name, found.window) == (name, window))

    @property
    def verdict(self) -> str:
        """Say in a sentence whether the law predicts the recording's test window better than the baselines."""
        law = self.outcome(TRANSFERRED)
        if law.failure:
            return f"the law fails on this recording: {law.failure}"
        rivals = [o for o in self.outcomes if o.window == "test" and o.name not in (TRANSFERRED, OWN)]
        best = min(rivals, key=lambda o: o.metrics.rrmse)
        ratio = law.metrics.rrmse / max(best.metrics.rrmse, 1e-300)
        side = "beats" if ratio < 1 else "does not beat"
        return f"the law {side} this recording's best baseline, {best.name}: {ratio:.3g} times its error"


def apply_model(
    model: SavedModel, field: Field, settings: Settings | None = None, own: SavedModel | None = None
) -> Transfer:
    """Let a law found elsewhere predict the validation and test windows of a recording, scored as in a run.

    Only the drift is measured on the recording: its centroid's velocity, less what each law itself does to the
    centroid. The baseline's diffusion is fitted to the training window.

    Parameters
    ----------
    field : the recording.
    settings : split, drift, weak system and simulator; None: the defaults.
    own : the law that was found in this recording, for comparison.
    """
    chosen = settings or Settings()
    notes = _compare_units(model, field, own)
    windows = choose_windows(field, chosen)
    drift = measure_drift(field, chosen)
    diffusion = fit_diffusion(field.frames(windows.train), drift.velocity[windows.train], chosen.rollout)
    # a flow belongs to its film: what flows here is known from this film alone
    flow = model.flow if _same_film(model, field) else None if own is None else own.flow
    if model.flow is not None and flow is not model.flow:
        notes = (*notes, "the law was found beside a flow, which belongs to its own film and is left out here")
    if model.law.maps and not _same_film(model, field):
        notes = (*notes, "the law's coefficients vary as they did in its own film; here each is taken as its mean")
    law = model.law if _same_film(model, field) else model.law.constant()
    transferred = replace(law, flow=flow)
    laws = {TRANSFERRED: transferred} | ({} if own is None else {OWN: own.law})
    outcomes = (
        *_predict("validation", field, windows.validation, laws, diffusion, drift, chosen),
        *_predict("test", field, windows.test, laws, diffusion, drift, chosen),
    )
    return Transfer(transferred.equation.text, drift.mean, diffusion, windows, outcomes, (*notes, *drift.notes))


def _same_film(model: SavedModel, field: Field) -> bool:
    return bool(model.provenance.sha256) and model.provenance.sha256 == field.provenance.sha256


def _compare_units(model: SavedModel, field: Field, own: SavedModel | None) -> tuple[str, ...]:
    here, there = field.grid.unit, model.grid.unit
    if here != there:
        raise InputError(
            f"the law's lengths are in {there}, the film's in {here}; read the film in the same unit "
            "(--scale, such as 0.05mm)"
        )
    if own is not None and own.grid.unit != here:
        raise InputError(f"the film's own law has lengths in {own.grid.unit}, the film itself in {here}")
    notes = []
    if here == "image units":
        notes.append(
            "lengths are image units: the law applies only if both films show the same size of scene; "
            "give --scale for both to be sure"
        )
    seen = field.provenance.settings.get("observable")
    meant = model.provenance.recording_settings().observable
    if seen is not None and seen != meant:
        notes.append(f"the law's u is '{meant}', the film's '{seen}': they need not obey the same law")
    return tuple(notes)


def _predict(
    name: WindowName,
    field: Field,
    place: slice,
    laws: Mapping[str, Model],
    diffusion: float,
    drift: Drift,
    settings: Settings,
) -> list[Outcome]:
    """Roll baselines and laws out over one window, and score them, as validation in a run does."""
    window, part = field.frames(place), drift.frames(place)
    start = estimate_start(field, place.start, settings.rollout.start_frames)
    reference = Reference.of(window.values, window.grid, settings.rollout.levels, window.core, part.background)
    still = reference.measure(np.broadcast_to(start.astype(np.float32), window.values.shape))
    velocities = window_velocities(window, part, laws, settings)
    models = {DRIFT: Model(), DIFFUSION: Model.of({"laplacian": diffusion}), **laws}
    outcomes = [Outcome(PERSISTENCE, name, still, 0.0, "")]
    for label, law in models.items():
        velocity = velocities.get(label, velocities[DRIFT])
        (rollout,) = roll_out([law], window, velocity[None], settings.rollout, start=start)
        metrics = reference.measure(rollout.values)
        outcomes.append(Outcome(label, name, metrics, skill_of(metrics, still), rollout.reason))
    return outcomes
