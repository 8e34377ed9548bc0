"""What the refinement found: coefficients, their spread over seeds, histories, and whether it converged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.estimate import Estimate

Array = NDArray[np.float64]

PLATEAU = 0.01
"""Relative change of a coefficient, late in the joint phase, up to which it counts as settled."""
SETTLED = 0.0005
"""Relative change of a coefficient in one Gauss–Newton step up to which it counts as settled."""
OVERFIT = 1.25
"""Ratio of held-out to trained error from which the network has learnt points instead of the field."""
NEGLIGIBLE = 0.001
"""Data error, over the field's spread, up to which it matters to no coefficient whose points it is smaller on."""
UNEXPLAINED = 0.5
"""Share of the rate of change that may stay unexplained on held-out points."""


@dataclass(frozen=True, eq=False)
class History:
    """Follow one training; errors are root mean squares, the data's over the field's spread, the residual's over
    the rate of change.

    Parameters
    ----------
    pretrain_steps, pretrain_data : (m,), steps of the pretraining and the data error there.
    steps, data, residual : (n,), steps of the joint phase and the errors on the trained points.
    coefficients : (n, terms), in the recording's units.
    checked : (k,), joint steps at which the held-out points were looked at.
    held_out_data, held_out_residual : (k,), the errors there.
    """

    pretrain_steps: Array
    pretrain_data: Array
    steps: Array
    data: Array
    residual: Array
    coefficients: Array
    checked: Array
    held_out_data: Array
    held_out_residual: Array


@dataclass(frozen=True, eq=False)
class SeedRun:
    """Hold one seed's training.

    Parameters
    ----------
    coefficients : (terms,), in the recording's units.
    data_error, residual : errors on held-out points, as in :class:`History`.
    converged, reason : the verdict and what it rests on.
    steps : (pretraining, joint) steps done.
    seconds : time taken, over all sittings of a resumed run.
    interrupted : whether the user stopped it; the coefficients are then the best so far.
    """

    seed: int
    coefficients: Array
    history: History
    data_error: float
    residual: float
    converged: bool
    reason: str
    steps: tuple[int, int]
    seconds: float
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Refinement:
    """Hold the refined coefficients of one library.

    Parameters
    ----------
    terms : names of the intrinsic terms; the drift has coefficient 1.
    coefficients : mean over the seeds, by term.
    spread : standard deviation over the seeds, by term; None for one seed.
    start : the coefficients that the refinement was given, by term; None where it had none.
    data_error, residual : held-out errors, mean over the seeds; see :class:`SeedRun`.
    warnings : what to bear in mind when reading the numbers.
    """

    terms: tuple[str, ...]
    coefficients: dict[str, float]
    spread: dict[str, float] | None
    start: dict[str, float] | None
    data_error: float
    residual: float
    converged: bool
    reason: str
    interrupted: bool
    steps: tuple[int, int]
    seconds: float
    device: str
    runs: tuple[SeedRun, ...]
    warnings: tuple[str, ...] = ()


def summarise(
    terms: tuple[str, ...],
    runs: tuple[SeedRun, ...],
    start: tuple[float, ...] | None,
    device: str,
    warnings: tuple[str, ...],
) -> Refinement:
    """Bring the seeds together: mean, spread, and converged only if every seed is."""
    values = np.stack([run.coefficients for run in runs])
    failed = [run for run in runs if not run.converged]
    reason = "; ".join(f"seed {run.seed}: {run.reason}" for run in failed) if failed else runs[-1].reason
    return Refinement(
        terms=terms,
        coefficients=dict(zip(terms, values.mean(axis=0).tolist(), strict=True)),
        spread=dict(zip(terms, values.std(axis=0, ddof=1).tolist(), strict=True)) if len(runs) > 1 else None,
        start=None if start is None else dict(zip(terms, start, strict=True)),
        data_error=float(np.mean([run.data_error for run in runs])),
        residual=float(np.mean([run.residual for run in runs])),
        converged=not failed,
        reason=reason,
        interrupted=any(run.interrupted for run in runs),
        steps=runs[0].steps,
        seconds=sum(run.seconds for run in runs),
        device=device,
        runs=runs,
        warnings=warnings,
    )


def judge_convergence(history: History, scales: Array, joint_steps: int) -> tuple[bool, str]:
    """Say whether the coefficients have settled and the held-out points bear them out.

    The data error alone says nothing: it is smallest where the diffusion is wrong. A coefficient must stay
    within PLATEAU between seven to eight tenths and the last tenth of the joint phase (relative to itself, or
    to a tenth of ``scales``, the size at which it would carry the whole rate of change, if that is more).
    """
    share = history.steps / joint_steps
    early, late = (share > 0.7) & (share <= 0.8), share > 0.9
    if not early.any() or not late.any():
        return False, f"stopped after {int(history.steps.max(initial=0))} of {joint_steps} joint steps"
    before, after = history.coefficients[early].mean(axis=0), history.coefficients[late].mean(axis=0)
    moved = np.abs(after - before) / np.maximum(np.abs(after), 0.1 * scales)
    if not np.isfinite(moved).all():
        return False, "the training diverged; lower refinement.joint_rate"
    if moved.max() > PLATEAU:
        return False, (
            f"a coefficient still moved by {moved.max():.1%} over the last fifth (limit {PLATEAU:.0%}); "
            "raise refinement.joint_steps"
        )
    last = history.steps > history.steps[-1] - 0.1 * joint_steps
    trained = float(np.sqrt(np.mean(history.data[last] ** 2)))
    settled = f"coefficients moved by {moved.max():.2%} over the last fifth"
    return _judge_held_out(history, trained, settled, "lower refinement.width")


def judge_steps(history: History, scales: Array, most_steps: int) -> tuple[bool, str]:
    """Say the same of Gauss–Newton steps, whose coefficients settle to SETTLED or did not converge."""
    if not has_settled(history, scales):
        moved = movement(history, scales)
        return False, (
            f"a coefficient still moved by {moved:.2%} in step {len(history.steps)} of {most_steps} "
            f"(limit {SETTLED:.2%}); the law does not fit this film, or cannot be told from it"
        )
    settled = f"coefficients moved by {movement(history, scales):.2%} in the last step"
    return _judge_held_out(history, float(history.data[-1]), settled, "give more frames", NEGLIGIBLE)


def has_settled(history: History, scales: Array) -> bool:
    """Say whether the last step moved no coefficient by more than SETTLED."""
    return movement(history, scales) <= SETTLED


def movement(history: History, scales: Array) -> float:
    """Return by how much the last step moved a coefficient at most, measured as in :func:`judge_convergence`."""
    if len(history.steps) < 2:
        return float("inf")
    before, after = history.coefficients[-2:]
    return float((np.abs(after - before) / np.maximum(np.abs(after), 0.1 * scales)).max())


def _judge_held_out(
    history: History, trained: float, settled: str, cure: str, negligible: float = 0.0
) -> tuple[bool, str]:
    """Ask held-out points, after the coefficients have settled; an error below ``negligible`` is no overfitting."""
    ratio = history.held_out_data[-1] / trained
    if ratio > OVERFIT and history.held_out_data[-1] > negligible:
        return False, f"the data error is {ratio:.2f} times larger on held-out points; {cure}"
    if history.held_out_residual[-1] > UNEXPLAINED:
        return (
            False,
            f"{history.held_out_residual[-1]:.0%} of the rate of change is left unexplained on held-out points",
        )
    return True, (
        f"{settled}; held-out residual {history.held_out_residual[-1]:.2%}, data error {history.held_out_data[-1]:.2%}"
    )


@dataclass(frozen=True)
class Agreement:
    """Compare one refined coefficient with a calibrated interval; ``distance`` is in half-widths from its middle."""

    term: str
    value: float
    calibrated: Estimate
    inside: bool
    distance: float


def check_agreement(refinement: Refinement, calibrated: Mapping[str, Estimate]) -> tuple[Agreement, ...]:
    """Compare the refined coefficients with the intervals of a calibration, term by term; those without are left out.

    A coefficient is inside if the interval, widened by twice the spread over seeds, holds it.
    """
    rows = []
    for term, value in refinement.coefficients.items():
        if term not in calibrated or not calibrated[term].has_interval:
            continue
        low, high = calibrated[term].low, calibrated[term].high
        slack = 0.0 if refinement.spread is None else 2.0 * refinement.spread[term]
        half = max(0.5 * (high - low), 1e-300)
        distance = abs(value - 0.5 * (low + high)) / half
        rows.append(Agreement(term, value, calibrated[term], low - slack <= value <= high + slack, distance))
    return tuple(rows)
