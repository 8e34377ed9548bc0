"""The scripts that an export fills in. ``<<NAME>>`` marks what comes from the model.

Numbers and texts of a model stand in a script as Python literals alone; markers are replaced in one pass, so that a
text that looks like a marker stays a text.
"""

SYMPY = '''"""A law found by video2pde; EQUATION says which, SOURCE where. Lengths are in UNIT, times in seconds.

`equation` is the law with symbols, `numbers` the coefficients: equation.subs(numbers).
"""

from sympy import Derivative, Eq, Function, cos, exp, log, sin, sqrt, symbols, tanh

<<ORIGIN>>

t, x, y = symbols("t x y", real=True)
u = Function("u", real=True)(t, x, y)
v_x, v_y = Function("v_x", real=True)(<<ARGUMENTS>>), Function("v_y", real=True)(<<ARGUMENTS>>)  # the drift
<<SYMBOLS>>
right = (
    -v_x * Derivative(u, x)
    - v_y * Derivative(u, y)
<<TERMS>>
)
equation = Eq(Derivative(u, t), right)
numbers = {
<<VALUES>>
}

if __name__ == "__main__":
    print(equation.subs(numbers))
'''

NUMPY = '''"""A law found by video2pde; EQUATION says which, SOURCE where. Lengths are in UNIT, times in seconds.

It needs NumPy alone.

    python SCRIPT --start u0.npy --duration 10 --out u.npy

u0.npy has shape (NY, NX), rows downwards; without it a plume in the middle is used. Derivatives are central
differences of fourth order, time steps are Runge-Kutta of third order, as small as stability asks for.
"""

import argparse
import functools
import math

import numpy as np

# --- the law ---------------------------------------------------------------------------------------------------

<<ORIGIN>>
<<COEFFICIENTS>>

<<SIZE>>
BOUNDARY = <<BOUNDARY>>  # how np.pad continues the picture: symmetric is no flux, wrap periodic, reflect odd open
<<REGION>>
CLIP = <<CLIP>>  # keep u in [0, 1]: on, off, or auto where u0 lies there
SAFETY = 0.5  # share of the stability limit that a step takes

<<DRIFT>>
<<FLOW>>
<<MAPS>>


def drift(t):
    """Return the uniform (v_x, v_y) at time t."""
    if t > DRIFT[-1, 0]:
        return AFTER_FILM
    return np.interp(t, DRIFT[:, 0], DRIFT[:, 1]), np.interp(t, DRIFT[:, 0], DRIFT[:, 2])


def rate(u, t):
    """Return u_t."""
    v_x, v_y = drift(t)
<<BLOW>>
    change = -v_x * D(u, 1, 0) - v_y * D(u, 0, 1)
<<TERMS>>
<<ENCLOSED>>
    return change


# --- differences -----------------------------------------------------------------------------------------------

WEIGHTS = {  # of the n-th derivative on unit spacing
<<WEIGHTS>>
}


def D(f, n_x, n_y):
    """Differentiate f, n_x times along x (columns) and n_y times along y (rows)."""
    for axis, n, step in ((1, n_x, DX), (0, n_y, DY)):
        if n:
            f = difference(f, axis, WEIGHTS[n]) / step**n
    return f


<<DIFFERENCE>>


# --- time steps ------------------------------------------------------------------------------------------------


def norm(n_x, n_y):
    """Bound the stencil of a derivative: the sum of its absolute weights."""
    return sum(map(abs, WEIGHTS[n_x])) * sum(map(abs, WEIGHTS[n_y])) / (DX**n_x * DY**n_y)


def stiffness(u, t):
    """Bound how fast the fastest mode changes, 1/s: the law's slope in each derivative times that stencil."""
    v_x, v_y = drift(t)
<<BLOW>>
    bound = np.max(np.abs(v_x)) * norm(1, 0) + np.max(np.abs(v_y)) * norm(0, 1)
<<STIFFNESS>>
    return bound


def simulate(u0, times):
    """Integrate from u0 at times[0]; return u at all times, shape (len(times), NY, NX)."""
    u = np.array(u0, dtype=float)
    if u.shape != (NY, NX):
        raise SystemExit(f"the first frame has shape {u.shape}, the law's grid is {(NY, NX)}")
    clipped = CLIP == "on" or (CLIP == "auto" and u.min() >= 0 and u.max() <= 1)
    frames = [u]
    for begin, end in zip(times[:-1], times[1:]):
        t = begin
        while t < end - 1e-12 * abs(end):
            steps = max(1, math.ceil((end - t) * stiffness(u, t) / (1.7 * SAFETY)))
            h = (end - t) / steps
            a = u + h * rate(u, t)
            b = 0.75 * u + 0.25 * (a + h * rate(a, t + h))
            u = (u + 2 * (b + h * rate(b, t + h / 2))) / 3
            if clipped:
                u = np.clip(u, 0, 1)
            if not np.isfinite(u).all():
                raise SystemExit(f"the field blew up at t = {t:g} s")
            t += h
        frames.append(u)
    return np.array(frames)


def plume():
    """Return a first frame: a round plume in the middle of the picture."""
    x, y = (np.arange(NX) + 0.5) / NX - 0.5, (np.arange(NY) + 0.5) / NY - 0.5
    return 0.1 + 0.7 * np.exp(-0.5 * (x[None, :] ** 2 + y[:, None] ** 2) / 0.1**2)


def main():
    parser = argparse.ArgumentParser(description="Simulate the law.")
    parser.add_argument("--start", help="first frame, .npy of shape (NY, NX)")
    parser.add_argument("--time", type=float, default=<<START>>, help="time of the first frame, s")
    parser.add_argument("--duration", type=float, default=<<DURATION>>, help="s")
    parser.add_argument("--frames", type=int, default=50, help="frames after the first")
    parser.add_argument("--out", default="simulated.npy")
    given = parser.parse_args()
    u0 = plume() if given.start is None else np.load(given.start)
    times = given.time + np.linspace(0, given.duration, given.frames + 1)
    values = simulate(u0, times)
    np.save(given.out, values)
    print(f"{given.out}: {values.shape}, u from {values.min():.4g} to {values.max():.4g}")


if __name__ == "__main__":
    main()
'''

PADDED = '''def difference(f, axis, weights):
    """Apply a central stencil along one axis."""
    reach = len(weights) // 2
    margins = [(0, 0), (0, 0)]
    margins[axis] = (reach, reach)
    padded = np.moveaxis(np.pad(f, margins, **BOUNDARY), axis, 0)
    size = f.shape[axis]
    return np.moveaxis(sum(w * padded[k : k + size] for k, w in enumerate(weights)), 0, axis)'''

WALLED = '''def difference(f, axis, weights):
    """Apply a central stencil along one axis; what lies behind a wall is mirrored at it."""
    reach = len(weights) // 2
    return sum(w * np.take_along_axis(f, mirror(axis, k - reach), axis) for k, w in enumerate(weights))


@functools.cache
def mirror(axis, step):
    """Go `step` cells along an axis, turning back at the ends of each run of cells inside; return where that is."""
    inside = INSIDE if axis == 1 else INSIDE.T
    position = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
    beside = np.pad(inside, ((0, 0), (1, 1)))
    first = np.maximum.accumulate(np.where(inside & ~beside[:, :-2], position, 0), axis=1)
    ends = np.where(inside & ~beside[:, 2:], position, inside.shape[1] - 1)
    length = np.maximum(np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1] - first + 1, 1)
    there = (position + step - first) % (2 * length)
    found = np.where(inside, first + np.where(there < length, there, 2 * length - 1 - there), position)
    return found if axis == 1 else found.T'''

PYPDE = '''"""A law found by video2pde; EQUATION says which, SOURCE where. Lengths are in UNIT, times in seconds.

It needs NumPy and py-pde.

    python SCRIPT --start u0.npy --duration 10 --out u.npy

u0.npy has shape (NY, NX), rows downwards; without it a plume in the middle is used. py-pde's operators are of second
order, so that results differ from video2pde's by that discretisation error.
"""

import argparse

import numpy as np
from pde import PDE, CartesianGrid, MemoryStorage, ScalarField

<<ORIGIN>>
<<COEFFICIENTS>>

<<SIZE>>
<<DRIFT>>
<<FLOW>>
<<MAPS>>


def v_x(t):
    """Return the drift along x at time t."""
    return AFTER_FILM[0] if t > DRIFT[-1, 0] else np.interp(t, DRIFT[:, 0], DRIFT[:, 1])


def v_y(t):
    """Return the drift along y at time t."""
    return AFTER_FILM[1] if t > DRIFT[-1, 0] else np.interp(t, DRIFT[:, 0], DRIFT[:, 2])


RIGHT = (
    "- v_x(t) * d_dx(u) - v_y(t) * d_dy(u) "
<<CARRIED>>
<<TERMS>>
)
CONSTANTS = {
<<CONSTANTS>>
}
GRID = CartesianGrid([[0, NX * DX], [0, NY * DY]], [NX, NY], periodic=<<PERIODIC>>)
<<FIELDS>>


def simulate(u0, start, duration, frames, tolerance=1e-6, backend="auto"):
    """Integrate from u0 (NY, NX) at time `start`; return times and u, shape (frames + 1, NY, NX)."""
    equation = PDE({"u": RIGHT}, bc=<<CONDITION>>, consts=CONSTANTS, user_funcs=FUNCTIONS)
    first = ScalarField(GRID, np.asarray(u0, dtype=float).T)  # py-pde's first axis is x
    kept = MemoryStorage()
    equation.solve(
        first, t_range=(start, start + duration), dt=1e-3 * duration, adaptive=True, tolerance=tolerance,
        solver="runge-kutta", tracker=kept.tracker(duration / frames), backend=backend,
    )
    return np.array(kept.times), np.array([np.asarray(data).T for data in kept.data])


def plume():
    """Return a first frame: a round plume in the middle of the picture."""
    x, y = (np.arange(NX) + 0.5) / NX - 0.5, (np.arange(NY) + 0.5) / NY - 0.5
    return 0.1 + 0.7 * np.exp(-0.5 * (x[None, :] ** 2 + y[:, None] ** 2) / 0.1**2)


def main():
    parser = argparse.ArgumentParser(description="Simulate the law with py-pde.")
    parser.add_argument("--start", help="first frame, .npy of shape (NY, NX)")
    parser.add_argument("--time", type=float, default=<<START>>, help="time of the first frame, s")
    parser.add_argument("--duration", type=float, default=<<DURATION>>, help="s")
    parser.add_argument("--frames", type=int, default=50, help="frames after the first")
    parser.add_argument("--backend", default="auto", help="py-pde backend: auto, numba, numpy, scipy")
    parser.add_argument("--out", default="simulated.npy")
    given = parser.parse_args()
    u0 = plume() if given.start is None else np.load(given.start)
    times, values = simulate(u0, given.time, given.duration, given.frames, backend=given.backend)
    np.save(given.out, values)
    print(f"{given.out}: {values.shape}, t from {times[0]:g} to {times[-1]:g} s")


if __name__ == "__main__":
    main()
'''
