"""How well two laws predict frames that they were not fitted to, beside the prediction that nothing changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field
from video2pde.field.cells import deconvolve_cells
from video2pde.pair.fields import Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.rollout import roll_out, Scene
from video2pde.rollout.start import estimate_start
from video2pde.settings import Settings

Array = NDArray[np.float64]
Frames = NDArray[np.float32]
PERSISTENCE = "persistence"


@dataclass(frozen=True, eq=False)
class PairScore:
    """How one prediction did over a window.

    ``rrmse``: relative error of each field, (Σ(û − u)²/Σu²)^½; ``error`` (2, t): the root mean square of each frame in
    units of the field's range; ``skill``: 1 − squared error over that of persistence, both fields in units of their
    ranges; ``failure``: why the rollout failed.
    """

    name: str
    rrmse: tuple[float, float]
    error: Array
    skill: float
    failure: str = ""

    @property
    def total(self) -> float:
        """The relative error of both fields together: the root of the mean of their squares."""
        return float(np.sqrt(np.mean(np.square(self.rrmse))))


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores over a window, those of the laws by name, and what the best-known law predicts (2, t, y, x)."""

    times: Array
    persistence: PairScore
    laws: Mapping[str, PairScore]
    predicted: Mapping[str, Frames] = field(default_factory=dict)


def score_laws(
    known: Pair, window: slice, laws: Mapping[str, PairLaw], settings: Settings, keep: tuple[str, ...] = ()
) -> PairScores:
    """Roll laws out over a window, from its first frame as the frames up to it show it.

    Parameters
    ----------
    known : the recording up to the window's end.
    window : the frames that are predicted.
    laws : by name.
    settings : those of the rollout.
    keep : laws whose predicted frames are kept.
    """
    points = as_points(known)
    observed = points.frames(window)
    start = np.stack([estimate_start(part, window.start, settings.rollout.start_frames) for part in points.fields])
    scene = Scene.of(observed, settings.rollout, settings.run.workers)
    still = np.broadcast_to(start[:, None], observed.values.shape)
    persistence = _score(PERSISTENCE, observed, still, None)
    scores, predicted = {}, {}
    for name, law in laws.items():
        found = roll_out(law, start, observed.times, scene)
        scores[name] = _score(name, observed, found.values, persistence, found.failure)
        if name in keep:
            predicted[name] = found.values
    return PairScores(observed.times, persistence, scores, predicted)


def as_points(pair: Pair) -> Pair:
    """Turn averages over cells into values at their centres, which rollouts work with."""
    return replace(pair, u=_points(pair.u), w=_points(pair.w))


def _points(part: Field) -> Field:
    return replace(part, values=deconvolve_cells(part.values)) if part.grid.pitch == "cells" else part


def _score(
    name: str, observed: Pair, predicted: NDArray[np.floating], persistence: PairScore | None, failure: str = ""
) -> PairScore:
    counted = observed.u.counted
    inside = np.ones(observed.grid.shape, bool) if counted is None else counted
    true = observed.values[:, :, inside].astype(float)
    errors = np.where(np.isfinite(predicted), predicted, 1e6)[:, :, inside] - true
    ranges = np.quantile(true, 0.999, axis=(1, 2)) - np.quantile(true, 0.001, axis=(1, 2)) + 1e-300
    frames = np.sqrt(np.mean(errors**2, axis=2)) / ranges[:, None]
    sizes = np.sqrt(np.mean(errors**2, axis=(1, 2)) / np.maximum(np.mean(true**2, axis=(1, 2)), 1e-300))
    square = float(np.mean(frames**2))
    skill = 0.0 if persistence is None else 1 - square / max(float(np.mean(persistence.error**2)), 1e-300)
    return PairScore(name, (float(sizes[0]), float(sizes[1])), frames, skill, failure)
