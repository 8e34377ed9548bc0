"""Ensembles: the law rolled out under its bootstrap draws, as a mean and a band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from video2pde.errors import InputError, StageError
from video2pde.machine import require_memory
from video2pde.rollout.simulate import simulate_chunks
from video2pde.rollout.task import Scheme
from video2pde.settings import RolloutSettings
from video2pde.using.modelfile import SavedModel, Velocity

Array = NDArray[np.float64]
BAND = (0.05, 0.95)
CHUNK = 16
NORMAL_QUANTILE = 1.6448536269514722
"""Standard deviations of a normal distribution between its mean and its 95 % quantile."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Hold the mean and the 5–95 % band of an ensemble.

    Parameters
    ----------
    times : shape (t,), seconds.
    mean, low, high : shape (t, y, x).
    members : simulations that reached the end; ``failed`` those that did not and were left out.
    noise : standard deviation of the pixel noise that the first frame was given, 0 where it was taken as exact.
    """

    times: Array
    mean: Array
    low: Array
    high: Array
    members: int
    failed: int
    noise: float

    def observed_band(self, noise: float | None = None) -> tuple[Array, Array]:
        """Widen the band to where a noisy pixel of the film would be: spreads add in squares."""
        reach = NORMAL_QUANTILE * (self.noise if noise is None else noise)
        return self.mean - np.hypot(self.mean - self.low, reach), self.mean + np.hypot(self.high - self.mean, reach)

    def coverage(self, observed: ArrayLike, noise: float | None = None) -> float:
        """Return the share of observed pixels (t, y, x) inside the band for observations."""
        low, high = self.observed_band(noise)
        seen = np.asarray(observed, float)
        return float(np.mean((seen >= low) & (seen <= high)))


def simulate_ensemble(
    model: SavedModel,
    u0: ArrayLike,
    times: ArrayLike,
    members: int = 50,
    velocity: Velocity | ArrayLike | None = None,
    *,
    noise: float | None = None,
    seed: int = 0,
    settings: RolloutSettings | None = None,
    workers: int | Literal["auto"] = 1,
) -> Ensemble:
    """Roll the law out under ``members`` bootstrap draws of its coefficients.

    Parameters
    ----------
    u0, times, velocity : as for :meth:`SavedModel.simulate`.
    noise : standard deviation of the first frame's pixel noise, drawn anew for each member, so that the band
        knows that the first frame is uncertain too. None: the model's, 0 where it has none.
    seed : of the choice of draws and of the noise.
    """
    t = np.asarray(times, float)
    _require(model, members, seed, len(t))
    rng = np.random.default_rng(seed)
    count = len(model.draws)
    chosen = rng.permutation(count)[:members] if members <= count else rng.integers(0, count, members)
    laws = [replace(model.law, coefficients=tuple(model.draws[index])) for index in chosen]
    spread = (model.noise or 0.0) if noise is None else noise
    first = np.asarray(u0, float)
    starts = first + spread * rng.standard_normal((members, *first.shape)) if spread else first
    mean, low, high = (np.empty((len(t), *first.shape)) for _ in range(3))
    alive, reason = members, ""
    scheme = Scheme(settings or model.settings, region=model.region(first, t), workers=workers)
    moved = model.velocity_at(t, velocity)
    for window, _, rollouts in simulate_chunks(laws, starts, t, model.grid, moved, scheme, CHUNK):
        whole = [rollout.values for rollout in rollouts if not rollout.failed]
        reason = next((rollout.reason for rollout in rollouts if rollout.failed), reason)
        if len(whole) < 2:
            raise StageError(f"{members - len(whole)} of {members} members of the ensemble failed: {reason}")
        frames = np.stack(whole)
        alive = len(whole)
        mean[window] = frames.mean(axis=0)
        low[window], high[window] = np.quantile(frames, BAND, axis=0)
    return Ensemble(t, mean, low, high, alive, members - alive, spread)


def _require(model: SavedModel, members: int, seed: int, frames: int) -> None:
    """Refuse an ensemble that has no band, no draws, or no room in memory."""
    if members < 2:
        raise InputError(f"an ensemble of {members} has no band; give at least 2 members")
    if not len(model.draws):
        raise InputError(
            "the model holds no bootstrap draws, so there is no ensemble; "
            "find the law with --set calibration.replicates=50"
        )
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0 on, not {seed}")
    cells = model.grid.ny * model.grid.nx
    require_memory(
        8.0 * cells * (members * (2 + 2 * CHUNK) + 3 * frames),
        f"{members} members of an ensemble, {frames} frames of {model.grid.ny}×{model.grid.nx},",
        "use a smaller --ensemble or fewer frames (--fps, --duration)",
    )
