"""Pictures in the eigenmodes of the Laplacian, in which diffusion is a decay of each mode by itself.

    u(t, y, x) = Σ_q a_q(t) φ_q(y, x),      Δφ_q = −λ_q φ_q,      da_q/dt = −Dλ_q a_q + D f_q(t).

With no flux through the edges f is zero: cosines on a whole picture, the modes of the five-point Laplacian on a region.
With measured edges the modes vanish at the region's rim, and what is seen there drives them through f. Modes are
orthonormal over the cells, so that white noise stays white.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import fft, linalg, ndimage, sparse

from video2pde.errors import StageError
from video2pde.field import Field

Array = NDArray[np.float64]
Edges = Literal["no_flux", "measured"]

MOST_CELLS = 1600
"""Cells of a region up to which its modes are computed; larger regions are averaged over blocks first."""
MOST_MODES = 500
"""Slowest modes that are used: what is finer is noise after the first frame."""


@dataclass(frozen=True, eq=False)
class Modes:
    """A recording in eigenmodes.

    ``values`` (t, q): a_q. ``rates`` (q,): λ_q, per square of the grid's unit. ``forcing`` (t, q): f_q; None: no flux.
    ``means`` (q,): mean of φ_q over the spot. ``exposure`` (t,): how long light had bleached by each frame, in s; None:
    it shines all the time.
    """

    times: Array
    values: Array
    rates: Array
    forcing: Array | None
    means: Array
    exposure: Array | None = None

    @property
    def lit(self) -> Array:
        """How long light has bleached since the first frame, (t,)."""
        clock = self.times if self.exposure is None else self.exposure
        return np.asarray(clock - clock[0])

    def by_picture(self) -> Modes:
        """Let light shine while a picture is taken alone, as long for each; in all as long as the recording lasts."""
        return replace(self, exposure=np.linspace(self.times[0], self.times[-1], len(self.times)))

    def window(self, part: slice) -> Modes:
        """Take a run of frames."""
        forcing = None if self.forcing is None else self.forcing[part]
        exposure = None if self.exposure is None else self.exposure[part]
        return Modes(self.times[part], self.values[part], self.rates, forcing, self.means, exposure)


def decompose(field: Field, spot: NDArray[np.bool_], edges: Edges) -> Modes:
    """Write a recording in the modes of its picture, or of its mask; ``spot`` (y, x): where means are wanted."""
    if field.mask is None and edges == "no_flux":
        return _cosines(field, spot)
    region = np.ones(field.grid.shape, bool) if field.mask is None else field.mask
    return _region_modes(field, region, spot, edges)


def _cosines(field: Field, spot: NDArray[np.bool_]) -> Modes:
    grid = field.grid
    ky, kx = (np.pi * np.arange(n) / size for n, size in ((grid.ny, grid.height), (grid.nx, grid.width)))
    rates = (ky[:, None] ** 2 + kx[None] ** 2).ravel()
    slowest = np.argsort(rates, kind="stable")[:MOST_MODES]
    values = np.stack([fft.dctn(np.asarray(frame, float), norm="ortho").ravel()[slowest] for frame in field.values])
    # the mean over the spot of each mode is the transform of the spot itself
    means = fft.dctn(spot / spot.sum(), norm="ortho").ravel()[slowest]
    return Modes(field.times, values, rates[slowest], None, means)


def _region_modes(field: Field, region: NDArray[np.bool_], spot: NDArray[np.bool_], edges: Edges) -> Modes:
    factor = 1
    while region.sum() / factor**2 > MOST_CELLS:
        factor += 1
    frames, inside, (dy, dx) = _coarsen(field, region, factor)
    marked = _average(spot.astype(float), factor) >= 0.5
    inner = ndimage.binary_erosion(inside, border_value=0) if edges == "measured" else inside
    count = int(inner.sum())
    if count < 9:
        raise StageError(f"the region has {count} cells inside its rim; too few for a recovery to be followed")
    number = np.full(inside.shape, -1)
    number[inner] = np.arange(count)
    matrix, rim = _laplacian(number, inside, (dy, dx), edges)
    rates, modes = linalg.eigh(matrix.toarray(), subset_by_index=(0, min(count, MOST_MODES) - 1))
    values = frames[:, inner] @ modes
    forcing = None if rim is None else (rim @ frames.reshape(len(frames), -1).T).T @ modes
    weight = (marked & inner)[inner].astype(float)
    means = weight @ modes / max(weight.sum(), 1.0)
    # five points see a wave of number k as k² − (k_x⁴ + k_y⁴)Δ²/12, which is k² − k⁴Δ²/16 on average over directions;
    # what comes in through the edges is slowed as much, so that a uniform picture stays one
    faster = 1 + np.maximum(rates, 0.0) * dx * dy / 16
    forcing = None if forcing is None else forcing * faster
    return Modes(field.times, values, np.maximum(rates, 0.0) * faster, forcing, means)


def _coarsen(
    field: Field, region: NDArray[np.bool_], factor: int
) -> tuple[Array, NDArray[np.bool_], tuple[float, float]]:
    """Average frames over blocks of cells; a block belongs to the region as a whole or not at all."""
    frames = np.stack([_average(np.asarray(frame, float), factor) for frame in field.values])
    inside = _average(region.astype(float), factor) >= 1 - 1e-9
    return frames, inside, (factor * field.grid.dy, factor * field.grid.dx)


def _average(picture: Array, factor: int) -> Array:
    ny, nx = (n // factor for n in picture.shape)
    blocks = picture[: ny * factor, : nx * factor].reshape(ny, factor, nx, factor)
    return np.asarray(blocks.mean(axis=(1, 3)))


def _laplacian(
    number: NDArray[np.int64], inside: NDArray[np.bool_], pitch: tuple[float, float], edges: Edges
) -> tuple[sparse.csr_matrix, sparse.csr_matrix | None]:
    """Return −Δ (five points) on the numbered cells, and what the cells around them add to it (measured edges)."""
    entries: list[tuple[int, int, float]] = []
    rim: list[tuple[int, int, float]] = []
    ny, nx = number.shape
    for (j, i), own in np.ndenumerate(number):
        if own < 0:
            continue
        for dj, di, step in ((-1, 0, pitch[0]), (1, 0, pitch[0]), (0, -1, pitch[1]), (0, 1, pitch[1])):
            y, x = j + dj, i + di
            outside = not (0 <= y < ny and 0 <= x < nx) or not inside[y, x]
            if outside:
                continue  # nothing passes here
            weight = 1 / step**2
            near = [(int(own), int(own), weight)]
            if number[y, x] >= 0:
                near.append((int(own), int(number[y, x]), -weight))
            else:
                rim.append((int(own), int(y * nx + x), weight))
            entries += near
    count = int(number.max()) + 1
    matrix = _sparse(entries, (count, count))
    return matrix, None if edges == "no_flux" else _sparse(rim, (count, ny * nx))


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> sparse.csr_matrix:
    rows, columns, values = zip(*entries, strict=True)
    return sparse.csr_matrix((values, (rows, columns)), shape=shape)
