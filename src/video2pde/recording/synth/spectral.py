"""Band-limited snapshots: Fourier coefficients in the moving frame, sampled or cell-averaged anywhere.

A snapshot is w(y, x) = B + Σ c_mn exp(i k_m (y + L/2)) exp(i k_n (x + L/2)) on a square of side L that
travels with the plume; outside it the field is the background B. The average over a cell of size Δ
multiplies a coefficient by sin(kΔ/2)/(kΔ/2), so cell averages are exact, not approximated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import fft

from video2pde.errors import StageError

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-10  # coefficients below it are left out
UNRESOLVED = 1e-6  # the largest coefficient allowed at the grid's cut-off
TOUCHING = 1e-6  # the largest deviation from the background allowed on the square's edge


@dataclass(frozen=True)
class Snapshot:
    """Hold one instant of a field in the moving frame.

    Parameters
    ----------
    background : B.
    coefficients : c_mn, complex, shape (2K + 1, K + 1), rows m = 0…K, −K…−1, columns n = 0…K.
    side : L, image units.
    """

    background: float
    coefficients: NDArray[np.complex128]
    side: float

    @property
    def cutoff(self) -> int:
        """Largest wavenumber index K."""
        return int(self.coefficients.shape[1]) - 1


def nodes(side: float, count: int) -> Array:
    """Return the positions −L/2 + jh of a periodic grid."""
    return (np.arange(count) / count - 0.5) * side


def wavenumbers(cutoff: int, side: float) -> Array:
    """Return k_m for m = 0…K, −K…−1."""
    index = np.arange(cutoff + 1)
    return 2 * np.pi / side * np.concatenate([index, index[:0:-1] * -1])


def take_snapshot(
    values: Array,
    side: float,
    background: float,
    carried: float = 1.0,
    *,
    touching: float = TOUCHING,
    unresolved: float = UNRESOLVED,
) -> Snapshot:
    """Transform node values of shape (N, N), and refuse a field that the square or its grid cannot hold.

    ``carried`` is the share of the grid's wavenumbers that the solver keeps (2/3 where it removes aliases);
    ``touching`` and ``unresolved`` are what is allowed at the edge and at the cut-off.
    """
    deviation = values - background
    coefficients = np.asarray(fft.rfft2(deviation, norm="forward"), dtype=np.complex128)
    edge = max(np.abs(deviation[0]).max(), np.abs(deviation[:, 0]).max())
    limits = {"touching": touching, "unresolved": unresolved}
    return cut_snapshot(coefficients, side, background, carried, edge, **limits)


def cut_snapshot(
    coefficients: NDArray[np.complex128],
    side: float,
    background: float,
    carried: float = 1.0,
    edge: float = 0.0,
    *,
    touching: float = TOUCHING,
    unresolved: float = UNRESOLVED,
) -> Snapshot:
    """Keep the coefficients that matter from a full ``rfft2`` array of shape (N, N/2 + 1)."""
    count = coefficients.shape[0]
    largest = (count - 1) // 2
    size = np.abs(coefficients)
    by_row = np.maximum(size[: largest + 1].max(axis=1), np.roll(size[::-1], 1, axis=0)[: largest + 1].max(axis=1))
    by_wavenumber = np.maximum(by_row, size[:, : largest + 1].max(axis=0))
    sharpest = by_wavenumber[int(carried * largest) - 2 :].max()
    if edge > touching or sharpest > unresolved:
        raise StageError(
            f"the plume does not fit the solver's square of {side:.0f} image units in steps of {side / count:.2g} "
            f"(edge {edge:.1g}, cut-off {sharpest:.1g}); ask for a larger domain or a finer spacing"
        )
    needed = np.flatnonzero(by_wavenumber > NEGLIGIBLE)
    cutoff = int(needed[-1]) if len(needed) else 0
    rows = np.concatenate([np.arange(cutoff + 1), np.arange(count - cutoff, count)])
    return Snapshot(background, coefficients[rows, : cutoff + 1], side)


class Sampler:
    """Evaluate snapshots at fixed positions of the picture, as points or as cell averages.

    Parameters
    ----------
    y, x : positions from the picture's centre, image units.
    dy, dx : cell sizes; 0 samples points.
    side : L of the snapshots.
    dtype : float64 for fields, float32 for camera pictures.
    """

    def __init__(self, y: Array, x: Array, dy: float, dx: float, side: float, dtype: DTypeLike = np.float64) -> None:
        self.y, self.x, self.side = y, x, side
        self._cell = (dy, dx)
        self._dtype = np.dtype(dtype)
        self._complex = np.result_type(self._dtype, np.complex64)
        self._waves: tuple[NDArray[np.complex128], NDArray[np.complex128]] | None = None
        self._cutoff = -1

    def __call__(self, snapshot: Snapshot, x: float, y: float) -> NDArray[np.floating]:
        """Return the picture, shape (len(y), len(x)), with the moving frame's origin at (``x``, ``y``)."""
        picture = np.full((len(self.y), len(self.x)), snapshot.background, dtype=self._dtype)
        rows = _within(self.y - y, self.side)
        columns = _within(self.x - x, self.side)
        k = wavenumbers(snapshot.cutoff, self.side)
        half = k[: snapshot.cutoff + 1]
        shifted = snapshot.coefficients * np.exp(-1j * k * y)[:, None] * np.exp(-1j * half * x)
        shifted[:, 1:] *= 2  # the other half of a real field's coefficients
        waves_y, waves_x = self._make_waves(snapshot.cutoff)
        index = np.concatenate([np.arange(len(half)), -np.arange(snapshot.cutoff, 0, -1)])
        partial = waves_y[rows][:, index] @ shifted.astype(self._complex)
        across = waves_x[columns, : len(half)]
        picture[rows, columns] += np.hstack([partial.real, -partial.imag]) @ np.hstack([across.real, across.imag]).T
        return picture

    def _make_waves(self, cutoff: int) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Tabulate averaged waves: columns 0…K, then −K…−1, so that negative indices find negative waves."""
        if self._waves is None or cutoff > self._cutoff:
            k = wavenumbers(cutoff, self.side)
            tables = [
                (np.exp(1j * np.outer(at + self.side / 2, k)) * np.sinc(k * cell / (2 * np.pi))).astype(self._complex)
                for at, cell in zip((self.y, self.x), self._cell, strict=True)
            ]
            self._waves, self._cutoff = (tables[0], tables[1]), cutoff
        return self._waves


def _within(position: Array, side: float) -> slice:
    """Return the run of ascending positions that lie in the square."""
    first, last = np.searchsorted(position, (-side / 2, side / 2))
    return slice(int(first), int(last))
