"""Fields as xarray's labelled arrays, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Provenance

Array = NDArray[np.float64]

AXES = {"time": ("time", "t", "frame"), "y": ("y", "row", "latitude", "lat"), "x": ("x", "column", "longitude", "lon")}
"""Names by which the three dimensions are known, in the order of a field."""
SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "min": 60.0, "minutes": 60.0, "h": 3600.0}
UNEVEN = 1e-3
"""Relative difference of the steps of a coordinate up to which it counts as even."""


def to_xarray(field: Field) -> Any:
    """Return an ``xarray.DataArray`` with coordinates and units."""
    xarray = _require_xarray()
    unit = field.grid.unit
    array = xarray.DataArray(
        field.values,
        dims=("time", "y", "x"),
        coords={
            "time": ("time", field.times, {"units": "s"}),
            "y": ("y", field.grid.y, {"units": unit, "positive": "down"}),
            "x": ("x", field.grid.x, {"units": unit}),
        },
        name="u",
        attrs={
            "long_name": "normalised observable",
            "units": "1",
            "source": field.provenance.path,
            "source_sha256": field.provenance.sha256,
            "settings": json.dumps(field.provenance.settings),
            "notes": "\n".join(field.provenance.notes),
        },
    )
    if field.mask is not None:
        array = array.assign_coords(mask=(("y", "x"), field.mask.astype(np.int8)))
    return array


def from_xarray(array: Any) -> Field:
    """Make a field of an ``xarray.DataArray``; see :meth:`video2pde.field.Field.from_xarray`."""
    names = [_find_axis(array, axis) for axis in AXES]
    ordered = array.transpose(*names)
    time, y, x = (_coordinate(ordered, name) for name in names)
    times = _seconds(ordered[names[0]], time)
    # the rows and columns are put in the order in which their coordinates grow
    rows, columns = np.argsort(y), np.argsort(x)
    values = np.asarray(ordered.values)[:, rows][:, :, columns]
    if not np.issubdtype(values.dtype, np.number) or not np.isfinite(values).all():
        raise InputError("the array holds values that are no numbers (NaN or infinite); fill or crop them first")
    dy, dx = _step(y[rows], names[1]), _step(x[columns], names[2])
    units = {str(ordered[name].attrs.get("units", "image units")) for name in names[1:]}
    if len(units) > 1:
        raise InputError(f"x and y have different units ({' and '.join(sorted(units))}); convert one of them")
    grid = Grid(len(y), len(x), len(y) * dy, len(x) * dx, units.pop())
    mask = np.asarray(ordered["mask"].values, bool)[rows][:, columns] if "mask" in ordered.coords else None
    notes = tuple(str(array.attrs["notes"]).split("\n")) if array.attrs.get("notes") else ()
    origin = Provenance(str(array.attrs.get("source", "")), str(array.attrs.get("source_sha256", "")), notes=notes)
    return Field(values.astype(np.float32), times, grid, mask, provenance=origin)


def _require_xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise InputError("xarray is not installed; pip install 'video2pde[netcdf]' adds it") from None
    return xarray


def _find_axis(array: Any, axis: str) -> str:
    for name in array.dims:
        if str(name).lower() in AXES[axis]:
            return str(name)
    known = ", ".join(map(str, array.dims))
    raise InputError(
        f"the array has no dimension {' or '.join(AXES[axis])} (it has {known}); rename one: array.rename(OLD='{axis}')"
    )


def _coordinate(array: Any, name: str) -> Array:
    if name not in array.coords:
        raise InputError(f"the dimension '{name}' has no coordinate; add one: array.assign_coords({name}=...)")
    values = np.asarray(array[name].values)
    if values.dtype.kind in "mM":
        return np.asarray((values - values[0]) / np.timedelta64(1, "ns") * 1e-9, float)
    return values.astype(float)


def _seconds(coordinate: Any, values: Array) -> Array:
    if np.asarray(coordinate.values).dtype.kind in "mM":
        return values
    unit = str(coordinate.attrs.get("units", "s"))
    if unit not in SECONDS:
        raise InputError(f"times in '{unit}' are not known; give them in {', '.join(SECONDS)}, or as dates")
    return values * SECONDS[unit]


def _step(values: Array, name: str) -> float:
    if len(values) < 2:
        raise InputError(f"the coordinate '{name}' has {len(values)} values; a field needs at least two")
    steps = np.diff(values)
    if np.ptp(steps) > UNEVEN * steps.mean():
        raise InputError(
            f"the coordinate '{name}' is not evenly spaced (steps from {steps.min():.4g} to {steps.max():.4g}); "
            f"interpolate first: array.interp({name}=numpy.linspace(...))"
        )
    return float(steps.mean())
