"""Two fields on one grid, at the same times."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.files import atomic_write
from video2pde.units import require_unit

IMAGE_UNITS, EXTENT = "image units", 200.0


@dataclass(frozen=True, eq=False)
class Pair:
    """Hold two fields u and w that were recorded together, and what each is called in the recording.

    The mask is that of both; a cell obeys the system where it lies in both masks.
    """

    u: Field
    w: Field
    channels: tuple[str, str] = ("u", "w")

    def __post_init__(self) -> None:
        if self.u.grid != self.w.grid or len(self.u) != len(self.w):
            raise InputError(
                f"the two fields do not fit together: {self.channels[0]} has {len(self.u)} frames of "
                f"{self.u.grid.ny}×{self.u.grid.nx}, {self.channels[1]} {len(self.w)} of {self.w.grid.ny}×"
                f"{self.w.grid.nx}; both must show the same part at the same times"
            )
        if not np.allclose(self.u.times, self.w.times, rtol=0, atol=1e-3 * self.u.dt):
            raise InputError("the two fields were taken at different times; both must show the same moments")
        masks = [part.mask for part in (self.u, self.w) if part.mask is not None]
        if masks:
            both = np.logical_and.reduce(masks)
            if not both.any():
                raise InputError("the masks of both fields have no cell in common")
            object.__setattr__(self, "u", replace(self.u, mask=both))
            object.__setattr__(self, "w", replace(self.w, mask=both))

    def __len__(self) -> int:
        return len(self.u)

    @property
    def fields(self) -> tuple[Field, Field]:
        return self.u, self.w

    @property
    def grid(self) -> Grid:
        return self.u.grid

    @property
    def times(self) -> NDArray[np.float64]:
        return self.u.times

    @property
    def values(self) -> NDArray[np.float32]:
        """Both fields, (2, t, y, x)."""
        return np.stack([self.u.values, self.w.values])

    def frames(self, window: slice) -> Pair:
        """Take a run of frames; times keep their origin."""
        return replace(self, u=self.u.frames(window), w=self.w.frames(window))

    def __repr__(self) -> str:
        return f"Pair({self.channels[0]}: {self.u!r}, {self.channels[1]}: {self.w!r})"

    @classmethod
    def from_arrays(
        cls,
        u: NDArray[np.floating],
        w: NDArray[np.floating],
        dt: float,
        dx: float,
        dy: float | None = None,
        unit: str = IMAGE_UNITS,
    ) -> Pair:
        """Make a pair of two arrays (t, y, x) of evenly spaced frames; see ``Field.from_array``."""
        return cls(Field.from_array(u, dt, dx, dy, unit), Field.from_array(w, dt, dx, dy, unit))

    @classmethod
    def of(cls, values: NDArray[np.floating], times: NDArray[np.float64], grid: Grid) -> Pair:
        """Make a pair of values (2, t, y, x)."""
        first, second = (Field(np.asarray(part, np.float32), times, grid) for part in values)
        return cls(first, second)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write both fields to an ``.npz`` file that ``run`` reads: u, w, times, and the size of a cell."""
        grid, target = self.grid, Path(path)
        with atomic_write(target) as file:
            np.savez(
                file,
                u=self.u.values,
                w=self.w.values,
                times=self.times,
                dx=grid.dx,
                dy=grid.dy,
                unit=np.array(grid.unit),
            )
        return target


def load_arrays(path: Path, names: tuple[str, str]) -> Pair:
    """Read two arrays (t, y, x) of an ``.npz`` file as they are, with times or dt, and dx and dy if they are there."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            held = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise InputError(f"{path} cannot be read as arrays: {error}") from None
    missing = [name for name in names if name not in held]
    if missing:
        raise InputError(
            f"{path} holds no array '{missing[0]}'; it has {', '.join(held)} (--channels names two of them)"
        )
    if "times" not in held and "dt" not in held:
        raise InputError(f"{path} does not say when its frames were taken; add an array 'times' (s), or 'dt'")
    u, w = (np.asarray(held[name]) for name in names)
    if u.shape != w.shape or u.ndim != 3 or len(u) < 2:
        raise InputError(f"{path}: {names[0]} has the shape {u.shape}, {names[1]} {w.shape}; both must be (t, y, x)")
    for name, values in zip(names, (u, w), strict=True):
        if not np.issubdtype(values.dtype, np.number) or not np.isfinite(values).all():
            raise InputError(f"{path}: {name} holds values that are no numbers (NaN or infinite)")
    times = np.asarray(held["times"] if "times" in held else np.arange(len(u)) * float(held["dt"]), np.float64)
    dx = float(held["dx"]) if "dx" in held else EXTENT / max(u.shape[1:])
    dy = float(held["dy"]) if "dy" in held else dx
    unit = require_unit(str(held["unit"])) if "unit" in held else IMAGE_UNITS
    if not (dx > 0 and dy > 0):
        raise InputError(f"{path}: dx = {dx:g} and dy = {dy:g} must be positive")
    grid = Grid(u.shape[1], u.shape[2], u.shape[1] * dy, u.shape[2] * dx, unit or IMAGE_UNITS)
    return Pair(Field(u.astype(np.float32), times, grid), Field(w.astype(np.float32), times, grid), names)
