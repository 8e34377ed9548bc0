"""Read a velocity from elsewhere (PIV, CFD), or a field along whose gradient u is carried, onto the film's grid."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RectBivariateSpline, RegularGridInterpolator

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.files import require_unpacked
from video2pde.flow.flow import Flow, FlowShape

Array = NDArray[np.float64]

COMPONENTS = (("u", "v"), ("vx", "vy"), ("v_x", "v_y"))
"""Names of the components along x and y, in the order in which they are looked for."""
SPLINE = 3
"""Degree of the spline whose gradient a potential has."""
TIME_NAMES = ("t", "time", "times")
MOST_TIMES = 200
"""Times that are kept; more are thinned evenly, the velocity being linear in between."""


def read_velocity(path: Path, grid: Grid, span: tuple[float, float]) -> Flow:
    """Read u, v (t, y, x) or (y, x) from an .npz or NetCDF file and interpolate them onto the grid.

    Positions ``x``, ``y`` are in the recording's length unit from the picture's upper left corner, y downwards; without
    them the values lie on cells that cover the picture. Times ``t`` are the recording's seconds. Beyond its positions
    and times the velocity stays as at their edge. ``span``: first and last time of the recording.
    """
    arrays = _read(path)
    names = next((pair for pair in COMPONENTS if all(name in arrays for name in pair)), None)
    if names is None:
        known = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(f"{path} holds no velocity: name its arrays u and v (it holds {known})")
    v_x, v_y = (np.asarray(arrays[name], float) for name in names)
    if v_x.shape != v_y.shape or v_x.ndim not in (2, 3):
        raise InputError(f"{path}: u and v need one shape, (t, y, x) or (y, x), not {v_x.shape} and {v_y.shape}")
    values = np.stack([v_x, v_y], axis=-3) if v_x.ndim == 3 else np.stack([v_x, v_y])[None]
    missing = float(np.mean(~np.isfinite(values)))
    if missing:
        raise InputError(f"{path}: {missing:.1%} of the velocity is missing (NaN); fill it in first")
    times = _times(path, arrays, len(values), span)
    kept = np.unique(np.linspace(0, len(times) - 1, MOST_TIMES).round().astype(int))
    y = _positions(path, arrays, "y", values.shape[2], grid.height)
    x = _positions(path, arrays, "x", values.shape[3], grid.width)
    fields = _interpolate(values[kept], y, x, grid)
    shape = FlowShape("given", (grid.height, grid.width), span)
    return Flow(shape, np.ones((1, 2)), np.zeros((1, 2)), fields, times[kept])


def read_potential(path: Path, grid: Grid, span: tuple[float, float]) -> Flow:
    """Read g (y, x) from an .npz or TIFF file, and return the velocity −∇g on the grid.

    Positions are those of :func:`read_velocity`; between them g is a cubic spline. An .npz file holds it as ``g``, or
    as its only array of two axes.
    """
    arrays = _read_picture(path) if path.suffix.lower() in (".tif", ".tiff") else _read(path)
    flat = [name for name, values in arrays.items() if np.ndim(values) == 2 and name not in ("x", "y")]
    name = "g" if "g" in arrays else flat[0] if len(flat) == 1 else None
    if name is None or np.ndim(arrays[name]) != 2 or min(np.shape(arrays[name])) <= SPLINE:
        known = ", ".join(f"{key} {np.shape(values)}" for key, values in sorted(arrays.items())) or "nothing"
        raise InputError(f"{path} needs a field g (y, x) of more than {SPLINE} rows and columns; it holds {known}")
    values = np.asarray(arrays[name], float)
    if not np.isfinite(values).all():
        raise InputError(f"{path}: {np.mean(~np.isfinite(values)):.1%} of g is missing (NaN); fill it in first")
    y, x = (
        _positions(path, arrays, axis, count, length)
        for axis, count, length in zip("yx", values.shape, (grid.height, grid.width), strict=True)
    )
    at = np.clip(grid.y, y[0], y[-1]), np.clip(grid.x, x[0], x[-1])
    spline = RectBivariateSpline(y, x, values, kx=SPLINE, ky=SPLINE)
    velocity = -np.stack([spline(*at, dy=1), spline(*at, dx=1)])
    if not velocity.any():
        raise InputError(f"{path}: g is the same everywhere, so that nothing is carried along its gradient")
    shape = FlowShape("given", (grid.height, grid.width), span, potential=True)
    fields = np.ascontiguousarray(velocity[None], np.float32)
    return Flow(shape, np.ones((1, 2)), np.zeros((1, 2)), fields, np.array([span[0]]))


def _read_picture(path: Path) -> dict[str, Array]:
    import tifffile

    if not path.is_file():
        raise InputError(f"no such file: {path}")
    try:
        return {"g": np.squeeze(tifffile.imread(path))}
    except (OSError, ValueError, tifffile.TiffFileError) as error:
        raise InputError(f"{path} cannot be read as a picture: {error}") from None


def _read(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    try:
        if path.suffix.lower() == ".npz":
            require_unpacked(path)
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        if path.suffix.lower() in (".nc", ".nc4", ".h5"):
            import xarray

            with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
                return {str(name): np.asarray(variable.values) for name, variable in data.variables.items()}
    except ImportError:
        raise InputError(f"{path}: NetCDF needs pip install 'video2pde[netcdf]'") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} cannot be read as arrays: {error}") from None
    raise InputError(f"{path}: give a velocity as .npz or NetCDF (.nc), a potential as .npz or TIFF")


def _times(path: Path, arrays: Mapping[str, Array], count: int, span: tuple[float, float]) -> Array:
    found = next((np.asarray(arrays[name], float).ravel() for name in TIME_NAMES if name in arrays), None)
    if count == 1:
        return np.array([span[0]]) if found is None else found[:1]
    if found is None or len(found) != count or np.diff(found).min() <= 0:
        raise InputError(f"{path}: {count} velocity fields need as many increasing times t (s)")
    return found


def _positions(path: Path, arrays: Mapping[str, Array], name: str, count: int, length: float) -> Array:
    if name not in arrays:
        return (np.arange(count) + 0.5) * length / count
    found = np.asarray(arrays[name], float)
    if found.ndim == 2:
        # as meshgrid writes them
        found = found[0] if name == "x" else found[:, 0]
    if found.shape != (count,) or count < 2 or np.diff(found).min() <= 0:
        raise InputError(f"{path}: {name} needs {count} increasing positions, at least two")
    return found


def _interpolate(values: Array, y: Array, x: Array, grid: Grid) -> NDArray[np.float32]:
    at = np.stack(np.meshgrid(np.clip(grid.y, y[0], y[-1]), np.clip(grid.x, x[0], x[-1]), indexing="ij"), axis=-1)
    found = RegularGridInterpolator((y, x), np.moveaxis(values, (0, 1), (2, 3)))(at)
    return np.ascontiguousarray(np.moveaxis(found, (2, 3), (0, 1)), np.float32)
