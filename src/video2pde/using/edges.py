"""Whether the identities hold on the film itself, with its edges, its noise and its clipping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from video2pde.rollout.simulate import simulate
from video2pde.using.identities import CLOSED, Transform
from video2pde.using.modelfile import SavedModel
from video2pde.using.statements import Statement

Array = NDArray[np.float64]
TITLE = "At the film's edges"
TOLERANCE = 2e-3
"""Change of ∫θ, relative to how much θ varies, up to which it counts as conserved."""


def state_edges(model: SavedModel, first: Array, tr: Transform, duration: float) -> Statement:
    """Measure what the film's own edges, clipping and noise do to the conserved ∫θ, from a frame (y, x) of the film."""
    span = min(duration, float(np.ptp(model.times)) or duration)
    times = model.times[0] + np.linspace(0.0, span, 33)
    rollout = model.simulate(first, times)
    closed = simulate(model.law, first, times, model.grid, model.velocity_at(times), CLOSED, frames=[0, 32])
    if rollout.failed or closed.failed:
        return Statement(TITLE, "", f"The rollout failed: {rollout.reason or closed.reason}.")
    change, inner = (_change(tr, frames) for frames in (rollout.values, closed.values))
    holds = abs(change) <= TOLERANCE
    reasons = []
    if abs(change - inner) > TOLERANCE:
        reasons.append("what crosses the edges")
    if abs(inner) > TOLERANCE:
        reasons.append("pixel noise and detail that the film's grid does not resolve")
    if rollout.clipped > 0:
        reasons.append(f"clipping to [0, 1], which took {rollout.clipped:.2g} of the content")
    why = f", through {' and '.join(reasons)}" if reasons and not holds else ""
    return Statement(
        TITLE,
        r"\tfrac{d}{dt}\int\theta\,dA \neq 0" if not holds else r"\tfrac{d}{dt}\int\theta\,dA = 0",
        f"From the given frame with the film's own edges ({model.boundary}), ∫θ changes by {change:.2g} of its "
        f"variation in {span:.3g} s{why}: the identities {'hold' if holds else 'do not hold'} on the film itself"
        f" to {TOLERANCE:g}.",
        abs(change),
        None,
        holds,
    )


def _change(tr: Transform, values: Array) -> float:
    """Return the change of ∫θ from the first frame to the last, relative to how much θ varies."""
    first, last = (tr.theta(np.clip(frame, tr.low, tr.high)) for frame in (values[0], values[-1]))
    return float((last.mean() - first.mean()) / np.abs(first - first.mean()).mean())
