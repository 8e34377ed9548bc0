"""A flow as lines of a script: NumPy alone, the same velocity as ``Flow.velocity`` gives."""

from __future__ import annotations

from video2pde.errors import InputError
from video2pde.flow import Flow
from video2pde.using.modelfile import SavedModel

SPLINES = '''
def splines(s, count, low, high, order=0, degree=3):
    """Evaluate B-splines between low and high, or their derivative: (count, len(s))."""
    degree = min(degree, count - 1)
    knots = np.concatenate([[low] * degree, np.linspace(low, high, count - degree + 1), [high] * degree])

    def basis(i, k, n):
        if k == 0:
            last = knots[i + 1] == high
            return ((knots[i] <= s) & ((s < knots[i + 1]) | (last & (s <= high)))).astype(float)
        left, right = knots[i + k] - knots[i], knots[i + k + 1] - knots[i + 1]
        if n:
            first = k * basis(i, k - 1, n - 1) / left if left else 0.0
            return first - (k * basis(i + 1, k - 1, n - 1) / right if right else 0.0)
        first = (s - knots[i]) / left * basis(i, k - 1, 0) if left else 0.0
        return first + ((knots[i + k + 1] - s) / right * basis(i + 1, k - 1, 0) if right else 0.0)

    return np.array([basis(i, degree, order) + 0 * s for i in range(count)])
'''


def flow_lines(model: SavedModel) -> list[str]:
    """Write the flow beside the drift: its modes on the grid, and flow(t) = (v_x, v_y)."""
    flow = model.flow
    if flow is None:
        return []
    if flow.kind == "given":
        raise InputError(
            "a script cannot hold a velocity or a potential that was given as a file; export to json and use simulate"
        )
    shape, grid = flow.shape, model.grid
    offset = 0.5 if grid.pitch == "cells" else 0.0
    rows = [f"    [{', '.join(f'{value:.10g}' for value in row)}]," for row in flow.coefficients]
    in_time = "splines(np.array([np.clip(t, *FLOW_SPAN)]), {count}, *FLOW_SPAN)[:, 0]"
    if shape.course:
        in_time = f"np.array([COURSE @ {in_time.format(count='len(COURSE)')}])"
    else:
        in_time = "np.ones(1)" if shape.steady else in_time.format(count="len(Q)")
    course = [f"COURSE = np.array([{', '.join(f'{value:.10g}' for value in shape.course)}])"] if shape.course else []
    return [
        "",
        "# Flow beside the drift, lengths in UNIT per second: v = sum over l, k of theta_l(t) Q[l, k] MODES[k].",
        "Q = np.array([",
        *rows,
        "])",
        *course,
        f"FLOW_SPAN = ({shape.span[0]!r}, {shape.span[1]!r})  # s; before and after, the flow stays as at its ends",
        SPLINES.strip("\n"),
        "",
        "",
        f"POSITION_X, POSITION_Y = (np.arange(NX) + {offset}) * DX, (np.arange(NY) + {offset}) * DY",
        f"X, Y = np.meshgrid(POSITION_X - {shape.extent[1] / 2!r}, POSITION_Y - {shape.extent[0] / 2!r})",
        *_mode_lines(flow),
        "",
        "",
        "def theta(t):",
        '    """Return the flow\'s functions of time, (l,)."""',
        f"    return {in_time}",
        "",
        "",
        "def flow(t):",
        '    """Return v_x and v_y of the flow on the grid at time t."""',
        "    return np.tensordot(theta(t) @ Q, MODES, axes=1)",
    ]


def _mode_lines(flow: Flow) -> list[str]:
    """Write MODES, (k, 2, NY, NX)."""
    shape = flow.shape
    apart = ["(0.5 * X, 0.5 * Y)"] if shape.divergence else []
    if shape.kind == "affine":
        return [f"MODES = np.array([{', '.join(['(-Y, X)', '(X, -Y)', '(Y, X)', *apart])}])  # rotation, strains"]
    rows, columns = shape.splines
    height, width = shape.extent
    lines = [
        f"ALONG_Y = [splines(POSITION_Y, {rows}, 0.0, {height!r}, n, {shape.degree}) for n in (0, 1)]",
        f"ALONG_X = [splines(POSITION_X, {columns}, 0.0, {width!r}, n, {shape.degree}) for n in (0, 1)]",
        "MODES = np.array([  # (d psi/dy, -d psi/dx), psi a product of splines",
        "    (np.outer(ALONG_Y[1][i], ALONG_X[0][j]), -np.outer(ALONG_Y[0][i], ALONG_X[1][j]))",
        f"    for i in range({rows}) for j in range({columns})",
        "])",
    ]
    return [*lines, "MODES = np.concatenate([MODES, [(0.5 * X, 0.5 * Y)]])"] if apart else lines
