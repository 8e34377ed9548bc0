"""Figures of a flow: over the plume, its vorticity and course in time, and what is left without and with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from video2pde.discovery.flow_choice import FlowChoice
from video2pde.drift import Drift
from video2pde.field import Field, Grid
from video2pde.flow import Flow
from video2pde.flow.words import NAMES, vorticity
from video2pde.report import style

Array = NDArray[np.float64]

ARROWS = 18
"""Arrows along the longer side."""
DYED = 0.05
"""Share of the range of u from which there is something to see a flow by."""
ROOM = 0.3
"""Room around the dye, as a share of its size."""
TIMES = 60
CELLS = 16
"""Cells along each side of the maps of what is left."""


def draw_flow(flow: Flow, choice: FlowChoice, field: Field, drift: Drift) -> Figure:
    """Draw a flow in one figure: arrows over the plume, vorticity, course in time, residuals without and with it."""
    figure = Figure(figsize=(10.5, 6.6), layout="constrained")
    axes = figure.subplots(2, 3)
    middle = len(drift.times) // 2
    relative = _beside_the_plume(flow, field, drift, middle)
    _arrows(figure, axes[0, 0], relative, field, middle)
    _vorticity(figure, axes[0, 1], relative, field, middle)
    _course(axes[0, 2], flow, field)
    largest = float(np.sqrt(np.max(_map_residuals(choice, choice.left_uniform, field.grid))))
    for axis, left, title in (
        (axes[1, 0], choice.left_uniform, "left with uniform flow"),
        (axes[1, 1], choice.left_chosen, f"left with {choice.chosen} flow"),
    ):
        values = np.sqrt(_map_residuals(choice, left, field.grid))
        image = axis.imshow(values, cmap="magma", vmin=0, vmax=largest, extent=_extent(field.grid))
        axis.set_title(f"{title}\n({np.sqrt(np.mean(left**2)):.2g} of the signal)")
        figure.colorbar(image, ax=axis, fraction=0.046, label="weak residual, rms")
        _label(axis, field.grid)
    _candidates(axes[1, 2], choice)
    return figure


def _extent(grid: Grid) -> tuple[float, float, float, float]:
    return 0.0, grid.width, grid.height, 0.0


def _label(axis: Any, grid: Grid) -> None:
    axis.set_xlabel(f"x ({grid.unit})")
    axis.set_ylabel(f"y ({grid.unit})")


def _beside_the_plume(flow: Flow, field: Field, drift: Drift, frame: int) -> Array:
    """Return the flow at a frame, less its mean over the plume: what the uniform drift does not hold. (2, y, x)."""
    velocity = flow.velocity(field.times[frame : frame + 1], field.grid)[0]
    weights = np.maximum(field.values[frame] - drift.background[frame], 0.0) * drift.region
    total = float(weights.sum()) or 1.0
    mean = (velocity * weights).sum(axis=(1, 2)) / total
    return np.asarray(velocity - mean[:, None, None])


def _arrows(figure: Figure, axis: Any, velocity: Array, field: Field, frame: int) -> None:
    grid = field.grid
    image = axis.imshow(field.values[frame], cmap="Greys", extent=_extent(grid))
    dyed = _dyed(field.values[frame])
    box = _around(dyed)
    step = max(1, max(part.stop - part.start for part in box) // ARROWS)
    rows, columns = (np.arange(part.start + step // 2, part.stop, step) for part in box)
    v_x, v_y = velocity[:, rows][:, :, columns]
    seen = dyed[np.ix_(rows, columns)].ravel()
    colours = np.where(seen, style.RED, style.GREY)
    axis.quiver(grid.x[columns], grid.y[rows], v_x, v_y, color=colours, angles="xy", width=0.004)
    fastest = float(np.hypot(*velocity)[dyed].max(initial=0.0))
    axis.set_title(f"flow beside the drift at {field.times[frame]:.3g} s\n(orange: in dye, up to {fastest:.2g}/s)")
    _zoom(axis, box, grid)
    figure.colorbar(image, ax=axis, fraction=0.046, label="u")
    _label(axis, grid)


def _dyed(picture: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Mark where there is something to see a flow by: where u is off its median by a share of its range."""
    off = np.abs(picture - np.median(picture))
    return np.asarray(off > DYED * off.max())


def _around(dyed: NDArray[np.bool_]) -> tuple[slice, slice]:
    """Return the part of the picture that holds the dye, with some room around it."""
    parts = []
    for axis, size in enumerate(dyed.shape):
        places = np.flatnonzero(dyed.any(axis=1 - axis))
        first, last = (places[0], places[-1]) if len(places) else (0, size - 1)
        room = int(ROOM * (last - first + 1))
        parts.append(slice(max(0, first - room), min(size, last + room + 1)))
    return parts[0], parts[1]


def _zoom(axis: Any, box: tuple[slice, slice], grid: Grid) -> None:
    rows, columns = box
    axis.set(xlim=(columns.start * grid.dx, columns.stop * grid.dx), ylim=(rows.stop * grid.dy, rows.start * grid.dy))


def _vorticity(figure: Figure, axis: Any, velocity: Array, field: Field, frame: int) -> None:
    grid = field.grid
    box = _around(_dyed(field.values[frame]))
    spin = vorticity(velocity[0], velocity[1], grid)
    largest = float(np.abs(spin[box]).max()) or 1.0
    image = axis.imshow(spin, cmap=style.DIVERGING, vmin=-largest, vmax=largest, extent=_extent(grid))
    axis.streamplot(grid.x, grid.y, *velocity, color=style.BLACK, density=0.8, linewidth=0.6, arrowsize=0.7)
    axis.set_title("vorticity and streamlines")
    _zoom(axis, box, grid)
    figure.colorbar(image, ax=axis, fraction=0.046, label="vorticity (1/s)")
    _label(axis, grid)


def _course(axis: Any, flow: Flow, field: Field) -> None:
    times = np.linspace(field.times[0], field.times[-1], TIMES)
    if flow.kind == "affine":
        weights = flow.weights(times)
        for k, name in enumerate(flow.shape.names):
            value = weights @ flow.coefficients[:, k]
            error = 2 * np.sqrt(weights**2 @ flow.error[:, k] ** 2)
            colour = (style.RED, style.BLUE, style.GREEN, style.ORANGE)[k]
            axis.plot(times, value, color=colour, label=NAMES[name])
            axis.fill_between(times, value - error, value + error, color=colour, alpha=0.2, linewidth=0)
        axis.set_ylabel("rate (1/s)")
        axis.legend(fontsize=7)
    else:
        fields = flow.fields(field.grid)
        speeds = [np.sqrt(np.mean(np.sum(np.tensordot(w, fields, axes=1) ** 2, axis=0))) for w in flow.weights(times)]
        axis.plot(times, speeds, color=style.RED)
        axis.set_ylabel(f"rms speed ({field.grid.unit}/s)")
        axis.set_ylim(bottom=0)
    axis.axvspan(flow.shape.span[1], times[-1], color=style.LIGHT, alpha=0.5, linewidth=0)
    axis.set(xlabel="t (s)", title="course in time\n(grey: taken to stay)")


def _map_residuals(choice: FlowChoice, left: Array, grid: Grid) -> Array:
    """Average the squared residuals over cells of the picture; NaN where there is no centre."""
    rows = (choice.centres[:, 1] * CELLS) // grid.ny
    columns = (choice.centres[:, 2] * CELLS) // grid.nx
    total, count = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    np.add.at(total, (rows, columns), left**2)
    np.add.at(count, (rows, columns), 1)
    return np.where(count > 0, total / np.maximum(count, 1), 0.0)


def _candidates(axis: Any, choice: FlowChoice) -> None:
    names = [candidate.name for candidate in choice.candidates]
    values = [candidate.unexplained for candidate in choice.candidates]
    colours = [style.RED if name == choice.chosen else style.GREY for name in names]
    axis.barh(range(len(names)), values, color=colours)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set(xscale="log", xlabel="unexplained share of\nleft-out frames", title="flows that were tried")
