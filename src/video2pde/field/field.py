"""The field itself: values with their grid, times, mask, edges, where they came from, and what storing did to them."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError, printable
from video2pde.field.grid import Grid
from video2pde.field.timing import is_uniform
from video2pde.files import atomic_path, atomic_write, require_regular
from video2pde.zipped import read_array, write_array

FORMAT_VERSION = 1
CORE_DEPTH = 3
"""Pixels by which a mask is eroded to its core, ..."""
CORE_SHARE = 0.3
"""... unless less than this share of it would be left."""


@dataclass(frozen=True)
class Provenance:
    """Record where a field came from: enough to make it again.

    ``bits``: of a camera pixel, where pixels are whole numbers.
    """

    path: str = ""
    sha256: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bits: int | None = None

    def __post_init__(self) -> None:
        # a name that is no UTF-8 could not be written to any file of the run
        object.__setattr__(self, "path", printable(self.path))


@dataclass(frozen=True, eq=False)
class Encoding:
    """What storing a recording did to it, measured when it was read (see ``recording.encoding``).

    Parameters
    ----------
    level : one step of a pixel's whole numbers, in units of u: 1/255, or 1/219 for limited range.
    held_back : share of changes that an encoder left out until later.
    b_frames : bool, shape (t,), optional. True for frames that an encoder made from those before and after them.
    late_b_frames : whether those are seen to lie behind, or ahead, of the others.
    clipped_noise : noise of a camera pixel, in units of u, that was cut off where the picture is empty; 0: none was.
    """

    level: float
    held_back: float = 0.0
    b_frames: NDArray[np.bool_] | None = None
    late_b_frames: bool = False
    clipped_noise: float = 0.0

    def frames(self, window: slice) -> Encoding:
        """Take a run of frames."""
        return replace(self, b_frames=None if self.b_frames is None else self.b_frames[window])


@dataclass(frozen=True)
class Light:
    """How well the light of a recording is known, measured when it was read (see ``recording.illumination``).

    Parameters
    ----------
    unknown : relative change of the light, from beginning to end, that may be left in the recording.
    observable : what u is of the light: dark, 1 − I; bright, I; absorbance, −log₁₀ I.
    """

    unknown: float
    observable: str

    def share(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return how much u changes for each relative change of the light, where u has these values."""
        if self.observable == "absorbance":
            return np.full_like(values, 1 / np.log(10))
        return 1 - values if self.observable == "dark" else values


def same_rows(frames: NDArray[np.float32]) -> bool:
    """Tell whether in each of the frames (t, y, x) all rows are the same."""
    return all(bool((frame == frame[:1]).all()) for frame in frames)


@dataclass(frozen=True, eq=False)
class Field:
    """Hold a scalar field sampled in space and time.

    Parameters
    ----------
    values : float32, shape (t, y, x). Read-only once inside.
    times : float64, shape (t,), seconds, increasing; evenly spaced or not.
    grid : positions of the samples.
    mask : bool, shape (y, x), optional. True where the law is to hold; None: everywhere.
    walls : whether nothing passes the mask's edge; otherwise what is seen outside it drives what is inside.
    recorded_times : the container's frame times as they stand there (rounded, perhaps), seconds.
    encoding : what storing the recording did to it; None: nothing that is known.
    light : how well its light is known; None: as well as can be.
    """

    values: NDArray[np.float32]
    times: NDArray[np.float64]
    grid: Grid
    mask: NDArray[np.bool_] | None = None
    recorded_times: NDArray[np.float64] | None = None
    provenance: Provenance = field(default_factory=Provenance)
    encoding: Encoding | None = None
    walls: bool = False
    light: Light | None = None

    def __post_init__(self) -> None:
        # views, so that the caller's own arrays stay writeable
        values = np.ascontiguousarray(self.values, dtype=np.float32).view()
        times = np.ascontiguousarray(self.times, dtype=np.float64).view()
        if values.ndim != 3 or values.shape[1:] != self.grid.shape:
            raise InputError(f"a field needs values of shape (t, {self.grid.ny}, {self.grid.nx}), not {values.shape}")
        if times.shape != values.shape[:1]:
            raise InputError(f"{len(times)} times for {len(values)} frames")
        marks = None if self.encoding is None else self.encoding.b_frames
        if marks is not None and marks.shape != times.shape:
            raise InputError(f"{len(marks)} marks of B frames for {len(values)} frames")
        if len(times) > 1:
            steps = np.diff(times)
            if steps.min() <= 0:
                raise InputError("frame times must increase")
        if self.mask is not None:
            mask = np.ascontiguousarray(self.mask, dtype=bool).view()
            if mask.shape != self.grid.shape:
                raise InputError(f"the mask has shape {mask.shape}, the field {self.grid.shape}")
            if not mask.any():
                raise InputError("the mask is empty: no pixel is left to obey a law")
            mask.flags.writeable = False
            object.__setattr__(self, "mask", mask)
        values.flags.writeable = False
        times.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "times", times)

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def uniform(self) -> bool:
        """Whether the frames are evenly spaced in time."""
        return is_uniform(self.times)

    @property
    def dt(self) -> float:
        """Mean time between frames, in seconds."""
        if len(self.times) < 2:
            raise InputError("one frame alone has no frame interval; at least two frames are needed")
        return float((self.times[-1] - self.times[0]) / (len(self.times) - 1))

    @property
    def duration(self) -> float:
        return float(self.times[-1] - self.times[0])

    @cached_property
    def core(self) -> NDArray[np.bool_] | None:
        """The mask without its edge: the pixels whose neighbours obey the law too; None without a mask.

        A rollout follows the recording outside the core. At the very edge of a mask the picture falls off to something
        that does not obey the law (the dark around a droplet), and a law that diffuses would leak into it. With walls
        nothing leaks, and the core is the mask.
        """
        if self.mask is None or self.walls:
            return self.mask
        from scipy.ndimage import binary_erosion

        for depth in range(CORE_DEPTH, 0, -1):
            core: NDArray[np.bool_] = binary_erosion(self.mask, iterations=depth, border_value=1)
            if core.sum() >= CORE_SHARE * self.mask.sum():
                return core
        return self.mask

    @cached_property
    def counted(self) -> NDArray[np.bool_] | None:
        """The pixels in which a law is compared with the recording; None: all.

        The core, less the cells at walls: they hold something of the outside, and were given their neighbours' values.
        """
        if self.core is None or not self.walls:
            return self.core
        from scipy.ndimage import binary_erosion

        inner: NDArray[np.bool_] = binary_erosion(self.core, border_value=1)
        return inner if inner.any() else self.core

    @cached_property
    def line(self) -> bool:
        """Whether all rows are the same: a line over time, whose noise no average over rows makes smaller."""
        return same_rows(self.values)

    def frames(self, window: slice) -> Field:
        """Take a run of frames; times keep their origin, so that windows stay comparable."""
        recorded = None if self.recorded_times is None else self.recorded_times[window]
        encoding = None if self.encoding is None else self.encoding.frames(window)
        times, light = self.times[window], self.light
        if light is not None and len(times) > 1:  # a part of the recording has a part of the change
            light = replace(light, unknown=light.unknown * float(times[-1] - times[0]) / self.duration)
        return replace(
            self, values=self.values[window], times=times, recorded_times=recorded, encoding=encoding, light=light
        )

    def __repr__(self) -> str:
        seconds = f"{self.duration:.4g} s" if len(self) > 1 else "one frame"
        masked = "" if self.mask is None else f", mask {self.mask.mean():.0%}"
        return (
            f"Field({len(self)} frames of {self.grid.ny}×{self.grid.nx}, {seconds}, "
            f"{self.grid.height:.4g}×{self.grid.width:.4g} {self.grid.unit}{masked}, "
            f"u in [{self.values.min():.4g}, {self.values.max():.4g}])"
        )

    def _repr_html_(self) -> str:
        """Show the field in a notebook: its description and three frames."""
        import base64
        import io

        from PIL import Image

        low, high = float(self.values.min()), float(self.values.max())
        picks = sorted({0, len(self) // 2, len(self) - 1})
        strip = np.hstack([self.values[k] for k in picks])
        grey = ((strip - low) * (255 / max(high - low, 1e-12))).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(grey).save(file, "PNG")
        data = base64.b64encode(file.getvalue()).decode()
        times = ", ".join(f"{self.times[k]:.4g} s" for k in picks)
        return f'<p>{escape(repr(self))}</p><img alt="frames at {times}" src="data:image/png;base64,{data}">'

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the field losslessly to an ``.npz`` file, whole or not at all."""
        meta = {
            "format": FORMAT_VERSION,
            "grid": asdict(self.grid),
            "provenance": asdict(self.provenance),
            "encoding": None if self.encoding is None else asdict(replace(self.encoding, b_frames=None)),
            "walls": self.walls,
            "light": None if self.light is None else asdict(self.light),
        }
        arrays: dict[str, Any] = {"values": self.values, "times": self.times}
        if self.mask is not None:
            arrays["mask"] = self.mask
        if self.recorded_times is not None:
            arrays["recorded_times"] = self.recorded_times
        if self.encoding is not None and self.encoding.b_frames is not None:
            arrays["b_frames"] = self.encoding.b_frames
        target = Path(path)
        with atomic_write(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in {"meta": np.array(json.dumps(meta)), **arrays}.items():
                write_array(archive, f"{name}.npy", array)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Field:
        """Read a field that ``save`` wrote; a large one is mapped, and its file must stay."""
        try:
            require_regular(Path(path))
            with zipfile.ZipFile(path) as archive:
                stored = {name.removesuffix(".npy"): read_array(archive, name) for name in archive.namelist()}
                meta = json.loads(str(stored["meta"]))
                if meta["format"] > FORMAT_VERSION:
                    raise InputError(f"{path} was written by a newer video2pde (field format {meta['format']})")
                origin = meta["provenance"]
                origin["notes"] = tuple(origin["notes"])
                known = meta.get("encoding")
                return cls(
                    values=stored["values"],
                    times=stored["times"],
                    grid=Grid(**meta["grid"]),
                    mask=stored.get("mask"),
                    recorded_times=stored.get("recorded_times"),
                    provenance=Provenance(**origin),
                    encoding=None if known is None else Encoding(**{**known, "b_frames": stored.get("b_frames")}),
                    walls=bool(meta.get("walls", False)),
                    light=None if meta.get("light") is None else Light(**meta["light"]),
                )
        except InputError:
            raise
        except FileNotFoundError:
            raise InputError(f"no such field file: {path}") from None
        except Exception as error:
            raise InputError(f"{path} is not a field written by video2pde ({error})") from None

    @classmethod
    def from_array(
        cls,
        values: NDArray[Any],
        dt: float,
        dx: float,
        dy: float | None = None,
        unit: str = "image units",
        mask: NDArray[np.bool_] | None = None,
    ) -> Field:
        """Make a field of an array u(t, y, x) of evenly spaced frames.

        Parameters
        ----------
        values : shape (t, y, x), y growing downwards.
        dt : seconds between frames.
        dx, dy : size of a cell, in ``unit``; ``dy`` None: square cells.
        mask : (y, x), True where the law is to hold.

        Returns
        -------
        The field, its first frame at t = 0.

        Examples
        --------
        >>> Field.from_array(np.zeros((3, 4, 5)), dt=0.5, dx=0.1, unit="mm")
        Field(3 frames of 4×5, 1 s, 0.4×0.5 mm, u in [0, 0])
        """
        array = np.asarray(values)
        if array.ndim != 3:
            raise InputError(f"a recording is an array u(t, y, x) of three axes, not of {array.ndim}")
        if not np.issubdtype(array.dtype, np.number) or not np.isfinite(array).all():
            raise InputError("the array holds values that are no numbers (NaN or infinite); fill or crop them first")
        height = dx if dy is None else dy
        if not (dt > 0 and dx > 0 and height > 0):
            raise InputError(f"dt = {dt:g}, dx = {dx:g} and dy = {height:g} must be positive")
        frames, ny, nx = array.shape
        grid = Grid(ny, nx, ny * height, nx * dx, unit)
        return cls(array.astype(np.float32), np.arange(frames, dtype=np.float64) * dt, grid, mask)

    @classmethod
    def from_xarray(cls, array: Any) -> Field:
        """Make a field of an ``xarray.DataArray`` with coordinates.

        Parameters
        ----------
        array : with dimensions named time, y and x (or t, row, column, ...) in any order; times in seconds, or with
            ``units`` such as ms, or dates; x and y evenly spaced, with ``units``. A coordinate ``mask`` (y, x) becomes
            the mask.

        Returns
        -------
        The field; its rows and columns stand in the order in which y and x grow, so that velocities are along them.

        Examples
        --------
        >>> import xarray
        >>> field = Field.from_array(np.zeros((3, 4, 5)), dt=0.5, dx=0.1, unit="mm")
        >>> Field.from_xarray(field.to_xarray())
        Field(3 frames of 4×5, 1 s, 0.4×0.5 mm, u in [0, 0])
        """
        from video2pde.interchange import from_xarray

        return from_xarray(array)

    def to_xarray(self) -> Any:
        """Return an ``xarray.DataArray`` with coordinates and units (needs the ``netcdf`` extra)."""
        from video2pde.interchange import to_xarray

        return to_xarray(self)

    def to_netcdf(self, path: str | os.PathLike[str]) -> Path:
        """Write the field as NetCDF, whole or not at all (needs the ``netcdf`` extra)."""
        target = Path(path)
        array = self.to_xarray()
        with atomic_path(target) as temporary:
            array.to_netcdf(temporary, engine="h5netcdf")
        return target
