"""How much a suspect takes away, against chance: a score test under the residual's own covariance.

With X the suspect's columns less what law and drift explain of them, and V orthonormal in their span,

    T = (Vᵀr)ᵀ (Vᵀ cov(r) V)⁻¹ (Vᵀr)  ~  χ²_k      where the law is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from video2pde.fit.law import LawFit

Array = NDArray[np.float64]

INDEPENDENT = 1e-4
"""Share of a suspect's columns that law and drift do not explain, from which there is something to ask."""


@dataclass(frozen=True, eq=False)
class Score:
    """Hold a suspect's score: ``removes`` and ``chance`` as shares of what is left, ``log_chance`` = log₁₀ of the
    probability that noise alone would do as much; ``statistic`` T, ``columns`` k and ``unknowns``, those that were
    chosen before the columns were made included; ``after`` what is left then, as a share of the signal;
    ``coefficients`` of the law with the suspect included, ``shift_errors`` by how much noise alone would move them;
    ``amplitudes`` of its columns."""

    removes: float
    chance: float
    log_chance: float
    statistic: float
    columns: int
    unknowns: int
    after: float
    coefficients: Mapping[str, float]
    shift_errors: Mapping[str, float]
    amplitudes: Array


def score(law: LawFit, columns: Array) -> Score | None:
    """Ask one suspect; None where law and drift explain all that it could."""
    size = np.linalg.norm(columns, axis=0)
    usable = columns[:, size > 0]
    if not usable.shape[1]:
        return None
    scaled = usable / np.linalg.norm(usable, axis=0)
    left, values, right = np.linalg.svd(law.without(scaled), full_matrices=False)
    kept = values > INDEPENDENT
    if not kept.any():
        return None
    # a second pass: what projection leaves of the law by rounding would be divided by next to nothing
    basis = np.linalg.qr(law.without(left[:, kept]))[0]
    projected = basis.T @ law.residual
    spread = basis.T @ law.left_spread @ basis
    count = basis.shape[1]
    statistic = float(projected @ np.linalg.solve(spread, projected))
    # a direction in which the suspect and the law say the same is the law's: its coefficient would be any number there.
    # In the others its amplitudes come from what the law does not explain, and move the law by −Z⁺X (Frisch and Waugh)
    amplitude_of = left[:, kept].T / values[kept, None]
    told = scaled @ right[kept].T
    moved = -(law.whole @ told) @ amplitude_of
    amplitudes = np.zeros(columns.shape[1])
    amplitudes[size > 0] = right[kept].T @ (amplitude_of @ law.residual) / size[size > 0]
    shifts = moved @ law.residual
    variances = np.sum((moved @ law.spread) * moved, axis=1)
    before = float(law.residual @ law.residual)
    taken = float(projected @ projected)
    return Score(
        removes=taken / before,
        chance=float(np.trace(spread)) / before,
        log_chance=float(chi2.logsf(statistic, count)) / np.log(10),
        statistic=statistic,
        columns=count,
        unknowns=count,
        after=(before - taken) / law.signal,
        coefficients={name: law.coefficients[name] + float(d) for name, d in zip(law.names, shifts, strict=True)},
        shift_errors={name: float(np.sqrt(max(v, 0.0))) for name, v in zip(law.names, variances, strict=True)},
        amplitudes=amplitudes,
    )
