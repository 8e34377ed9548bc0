"""Transfer: a law found in one recording predicts another, beside that recording's baselines and its own law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from video2pde.calibration.start import estimate_start
from video2pde.discovery.moments import law_velocity, term_moments
from video2pde.drift import Drift, estimate_drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.rollout.baseline import fit_diffusion
from video2pde.rollout.metrics import Metrics, Reference
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.rollout.validate import DIFFUSION, DRIFT, PERSISTENCE
from video2pde.settings import Settings
from video2pde.stages import choose_windows
from video2pde.terms import Term
from video2pde.using.modelfile import SavedModel

Array = NDArray[np.float64]
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
        """Give the line of a table: errors in per cent and in the grid's unit; None where a rollout failed."""
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
    """Let a law found elsewhere predict the validation and test windows of a recording.

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
    drift = estimate_drift(field, chosen.drift)
    diffusion = fit_diffusion(field.frames(windows.train), drift.velocity[windows.train], chosen.rollout)
    entries: dict[str, tuple[Model, Array]] = {
        DRIFT: (Model(), drift.velocity),
        DIFFUSION: (Model.of({"laplacian": diffusion}), drift.velocity),
    }
    entries[TRANSFERRED] = _with_drift(model.law, field, drift, chosen)
    if own is not None:
        entries[OWN] = _with_drift(own.law, field, drift, chosen)
    outcomes = [
        outcome
        for name, window in (("validation", windows.validation), ("test", windows.test))
        for outcome in _predict(name, field, window, entries, drift, chosen)  # type: ignore[arg-type]
    ]
    equation = model.law.equation.text
    return Transfer(equation, drift.mean, diffusion, windows, tuple(outcomes), notes)


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


def _with_drift(law: Model, field: Field, drift: Drift, settings: Settings) -> tuple[Model, Array]:
    """Pair a law with the drift under it: what the law itself does to the centroid is no drift."""
    terms: tuple[Term, ...] = law.terms
    if not settings.drift.law_correction or not terms:
        return law, drift.velocity
    moments = term_moments(field, drift, terms, settings.weak)
    by_name = {term.name: moment for term, moment in zip(terms, moments, strict=True)}
    return law, law_velocity(drift, by_name, {term.name: law.coefficient(term.name) for term in terms})


def _predict(
    name: WindowName,
    field: Field,
    place: slice,
    entries: Mapping[str, tuple[Model, Array]],
    drift: Drift,
    settings: Settings,
) -> list[Outcome]:
    window = field.frames(place)
    start = estimate_start(field, place.start, settings.rollout.start_frames)
    reference = Reference.of(window.values, window.grid, settings.rollout.levels, window.mask, drift.background[place])
    still = reference.measure(np.broadcast_to(start.astype(np.float32), window.values.shape))
    outcomes = [Outcome(PERSISTENCE, name, still, 0.0, "")]
    for label, (law, velocity) in entries.items():
        rollout = simulate(law, start, window.times, window.grid, velocity[place], settings.rollout, output="float32")
        metrics = reference.measure(rollout.values)
        skill = 1.0 - (metrics.rrmse / max(still.rrmse, 1e-300)) ** 2
        outcomes.append(Outcome(label, name, metrics, skill, rollout.reason))
    return outcomes
