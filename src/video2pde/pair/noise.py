"""What noise alone leaves in the weak residual of one of two laws: what a law's own residual is held against.

A residual is a weighted sum over frames, r = Σ_k slope_k A_k − value_k B_k, of the filtered field A and of the filtered
right-hand side B = Σ c_j T_j. Fourth differences in time show the noise of A and B (``fit.noise``), with whatever an
encoder repeats from frame to frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field
from video2pde.fit.noise import carried, film_memory, fourth_difference, WEIGHTS
from video2pde.pair.weak import PairColumns

Array = NDArray[np.float64]
PLACES = 400
"""Places at most whose series are looked at."""
QUIET = 0.9
"""Share of the frames, the quietest, that measure the noise: a flash is none."""


def expected_residual(
    columns: PairColumns, centres: NDArray[np.int64], field: int, law: Mapping[str, float], rho: float
) -> float:
    """Return the mean square that noise must leave in a residual of the law at these centres.

    ``rho``: see :func:`measure_memory`. Zero where the recording is too short to tell.
    """
    places = centres[:: max(1, len(centres) // PLACES)]
    own, rate = columns.series(places, field, law)
    kernels, total = columns.kernels, 0.0
    for series, table in ((own, kernels.slope), (rate, kernels.value)):
        differences = fourth_difference(series)
        if not differences.size:
            return 0.0
        variance = _quiet(differences**2) / carried(np.array(WEIGHTS), rho)
        rows = np.unique(kernels.rows(centres[:, 0]))
        total += variance * float(np.mean([carried(table[row], rho) for row in rows]))
    return total


def measure_memory(field: Field) -> float:
    """Return the correlation ρ of a field's noise from frame to frame, which an encoder repeats; 0: white noise."""
    memory = film_memory(field.values)
    return float(np.mean(memory.at(field.values[:: max(1, len(field) // 10), ::4, ::4].astype(float).ravel())))


def _quiet(squares: Array) -> float:
    frames = np.sort(squares.mean(axis=0))
    return float(np.mean(frames[: max(1, round(QUIET * len(frames)))]))
