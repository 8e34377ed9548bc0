"""A flow in words: the left side of the equation, and one line that says what moves and how fast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.agreement import NORMAL
from video2pde.field import Grid
from video2pde.flow.flow import Flow
from video2pde.terms.words import Words

Array = NDArray[np.float64]

NAMES = {
    "rotation": "rotation",
    "strain_axes": "strain along x and y",
    "strain_cross": "strain along the diagonals",
    "divergence": "divergence",
}
RAMP = 2.5
"""Widths of a ramp, standard deviations, in which it rises from a tenth to nine tenths."""


def left_side(flow: Flow | None) -> Words:
    """Write what stands left of the law: u_t and how u is carried."""
    if flow is None:
        return Words(r"u_t + \mathbf{v}(t)\cdot\nabla u", "u_t + v(t)·∇u")
    if flow.shape.potential:
        return Words(r"u_t - \chi\,\nabla g\cdot\nabla u", "u_t − χ ∇g·∇u")
    return Words(r"u_t + \mathbf{v}(x, y, t)\cdot\nabla u", "u_t + v(x, y, t)·∇u")


def mode_summary(flow: Flow) -> dict[str, dict[str, float]]:
    """Return mean, standard error of the mean, and range of every mode of an affine flow, 1/s."""
    times = np.linspace(*flow.shape.span, 101)
    weights = flow.weights(times)
    values = weights @ flow.coefficients
    share = weights.mean(axis=0)
    error = np.sqrt(share**2 @ flow.error**2)
    return {
        name: {
            "value": float(values[:, k].mean()),
            "error": float(error[k]),
            "low": float(values[:, k].min()),
            "high": float(values[:, k].max()),
        }
        for k, name in enumerate(flow.shape.names)
    }


def summarise_flow(flow: Flow, grid: Grid) -> dict[str, Any]:
    """Return a flow as ``result.json`` holds it: kind, words, modes with 95 % intervals, largest speed, vorticity."""
    speed, spin = speed_and_vorticity(flow, grid)
    summary: dict[str, Any] = {
        "kind": flow.kind,
        "steady": flow.steady,
        "words": describe_flow(flow, grid),
        "largest_speed": speed,
        "vorticity": list(spin),
    }
    if flow.shape.potential:
        value, reach = float(flow.coefficients[0, 0]), NORMAL * float(flow.error[0, 0])
        summary["mobility"] = {"value": value, "low": value - reach, "high": value + reach}
    if flow.kind == "affine":
        summary["modes"] = {
            name: {
                "value": mode["value"],
                "low": mode["value"] - NORMAL * mode["error"],
                "high": mode["value"] + NORMAL * mode["error"],
            }
            for name, mode in mode_summary(flow).items()
        }
    return summary


def describe_flow(flow: Flow, grid: Grid) -> str:
    """Say in one line what flows beside the uniform drift."""
    changing = "steady" if flow.steady else "of changing strength" if flow.shape.course else "changing in time"
    if flow.kind == "affine":
        parts = []
        for name, mode in mode_summary(flow).items():
            text = f"{NAMES[name]} {mode['value']:+.3g} ± {mode['error']:.1g} /s"
            if not flow.steady:
                text += f" (from {mode['low']:+.3g} to {mode['high']:+.3g})"
            parts.append(text)
        return f"{changing}: {', '.join(parts)}{_when(flow)}"
    speed, spin = speed_and_vorticity(flow, grid)
    unit = grid.unit
    if flow.kind == "given":
        c_x, c_y = flow.coefficients[0]
        if flow.shape.potential:
            reach = NORMAL * flow.error[0, 0]
            return f"along the gradient of the given field, χ = {c_x:.4g} ± {reach:.2g}; up to {speed:.3g} {unit}/s"
        return (
            f"velocity as given, {changing}, times {c_x:.4g} along x and {c_y:.4g} along y; up to {speed:.3g} {unit}/s"
        )
    rows, columns = flow.shape.splines
    return (
        f"stream function on {rows}×{columns} splines, {changing}: up to {speed:.3g} {unit}/s, "
        f"vorticity from {spin[0]:+.3g} to {spin[1]:+.3g} /s{_when(flow)}"
    )


def _when(flow: Flow) -> str:
    """Say when the strength of a flow changes, where it has few levels."""
    listed = [f"{centre:.3g} s (over {RAMP * width:.2g} s)" for centre, width in sorted(flow.shape.ramps)]
    return f"; it changes at {' and at '.join(listed)}" if listed else ""


def speed_and_vorticity(flow: Flow, grid: Grid) -> tuple[float, tuple[float, float]]:
    """Return the largest speed, and the range of the vorticity, over the flow's time."""
    times = np.linspace(*flow.shape.span, 1 if flow.steady else 9)
    speed, low, high = 0.0, np.inf, -np.inf
    for v_x, v_y in flow.velocity(times, grid):
        curl = vorticity(v_x, v_y, grid)
        speed = max(speed, float(np.hypot(v_x, v_y).max()))
        low, high = min(low, float(curl.min())), max(high, float(curl.max()))
    return speed, (low, high)


def vorticity(v_x: Array, v_y: Array, grid: Grid) -> Array:
    """Return ∂v_y/∂x − ∂v_x/∂y on the grid, 1/s."""
    return np.asarray(np.gradient(v_y, grid.dx, axis=1) - np.gradient(v_x, grid.dy, axis=0))
