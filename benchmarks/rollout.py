"""Benchmark the simulator: beside numpy, py-pde and the exact evolution, in one run on one machine.

Every ratio compares two measurements taken in turns, the fastest of several repetitions of each, so that
a busy machine disturbs both alike.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from video2pde.field import Grid
from video2pde.rollout.colehopf import evolve_cole_hopf
from video2pde.rollout.kernels import compile_kernel, Kernel, Structure
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate, simulate_batch
from video2pde.rollout.task import Scheme

A, BETA, DT = 9.005, 0.666, 34 / 1008
DRIFT = (0.08, 0.28)
CALM, NO_MAPS = np.zeros((2, 1, 1)), np.zeros((0, 1, 1))
NO_WALLS = np.zeros((0, 0, 0), np.int64)
GRID = Grid(200, 200, 200.0, 200.0)
LAW = Model.of({"grad_squared": A, "laplacian": BETA})
Row = dict[str, Any]


def first_frame() -> np.ndarray:
    """Return an asymmetric plume on a background."""
    y, x = np.meshgrid(GRID.y, GRID.x, indexing="ij")
    plume = 0.5 * np.exp(-((x - 95) ** 2 / 400 + (y - 80) ** 2 / 250)) + 0.3 * np.exp(
        -((x - 115) ** 2 + (y - 105) ** 2) / 300
    )
    return 0.1 + plume


def fastest(*functions: Callable[[], Any], repeats: int = 20, inner: int = 1) -> list[float]:
    """Return the shortest time of each function in seconds, the functions taking turns."""
    best = [np.inf] * len(functions)
    for function in functions:
        function()
    for _ in range(repeats):
        for n, function in enumerate(functions):
            begin = time.perf_counter()
            for _ in range(inner):
                function()
            best[n] = min(best[n], (time.perf_counter() - begin) / inner)
    return best


class NumpyStage:
    """Compute the same stage with numpy slices and preallocated arrays."""

    def __init__(self, padded: np.ndarray, accuracy: int) -> None:
        self.w = padded
        self.r = accuracy // 2
        self.first = {2: ((1, 0.5),), 4: ((1, 2 / 3), (2, -1 / 12))}[accuracy]
        self.second = {2: ((1, 1.0),), 4: ((1, 4 / 3), (2, -1 / 12))}[accuracy]
        self.centre = {2: -4.0, 4: -5.0}[accuracy]
        n = padded.shape[0] - 2 * self.r
        self.work = [np.empty((n, n)) for _ in range(5)]
        self.out = np.zeros_like(padded)

    def shift(self, j: int, i: int) -> np.ndarray:
        r, n = self.r, self.work[0].shape[0]
        return self.w[r + j : r + j + n, r + i : r + i + n]

    def __call__(self, h: float = DT) -> np.ndarray:
        ux, uy, lap, tmp, total = self.work
        ux.fill(0.0)
        uy.fill(0.0)
        np.multiply(self.shift(0, 0), self.centre, out=lap)
        for (m, w1), (_, w2) in zip(self.first, self.second, strict=True):
            for derivative, low, high in ((ux, (0, -m), (0, m)), (uy, (-m, 0), (m, 0))):
                np.subtract(self.shift(*high), self.shift(*low), out=tmp)
                tmp *= w1
                derivative += tmp
                np.add(self.shift(*high), self.shift(*low), out=tmp)
                tmp *= w2
                lap += tmp
        np.multiply(lap, BETA, out=total)
        for derivative, v in ((ux, DRIFT[0]), (uy, DRIFT[1])):
            np.multiply(derivative, v, out=tmp)
            total -= tmp
            np.multiply(derivative, derivative, out=tmp)
            tmp *= A
            total += tmp
        total *= h
        total += self.shift(0, 0)
        r = self.r
        np.clip(total, 0.0, 1.0, out=self.out[r:-r, r:-r])
        return self.out


def bench_stage(accuracy: int, precision: str = "float64") -> list[Row]:
    """Time one stage, alone and in a batch of 16 over the cores, beside numpy."""
    kernel = compile_kernel(Structure(LAW.terms, accuracy, precision))
    r = kernel.radius
    padded = np.pad(first_frame(), r, mode="symmetric").astype(precision)
    out = np.zeros_like(padded)
    c = np.array(LAW.coefficients, precision)
    still = CALM.astype(precision), NO_MAPS.astype(precision)
    beside = NumpyStage(padded.astype(float), accuracy)

    def ours() -> None:
        kernel.stage(padded, padded, out, NO_WALLS, c, *DRIFT, *still, 1.0, 1.0, DT, 0.0, 0.0, 1.0)

    ours()
    difference = float(np.abs(out[r:-r, r:-r] - beside()[r:-r, r:-r]).max())
    if difference > (1e-12 if precision == "float64" else 1e-6):
        raise AssertionError(f"the two stages differ by {difference:.2g}")
    single, numpy_time = fastest(ours, beside, repeats=60, inner=5)
    name = f"order {accuracy}, {precision}"
    return [
        {"name": f"stage, {name}", "value": 1e6 * single, "unit": "µs"},
        {"name": f"stage, numpy float64 preallocated, order {accuracy}", "value": 1e6 * numpy_time, "unit": "µs"},
        {"name": f"numpy / ours, {name}", "value": numpy_time / single, "unit": "×"},
    ]


def bench_batch(workers: int = 2) -> list[Row]:
    """Time a batch of 16 simulations per stage and simulation, in one thread and over two."""
    models = [Model.of({"grad_squared": A * (1 + 0.01 * n), "laplacian": BETA}) for n in range(16)]
    times = np.arange(21) * DT
    velocity = np.tile(DRIFT, (21, 1))
    u0 = first_frame()

    def run(count: int) -> Callable[[], Any]:
        return lambda: simulate_batch(models, u0, times, GRID, velocity, Scheme(workers=count), [20])

    stages = 16 * 3 * int(simulate(LAW, u0, times, GRID, velocity, frames=[20]).substeps.sum())
    one, many = fastest(run(1), run(workers), repeats=5)
    return [
        {"name": "batch of 16, 1 thread, per stage", "value": 1e6 * one / stages, "unit": "µs"},
        {"name": f"batch of 16, {workers} threads, per stage", "value": 1e6 * many / stages, "unit": "µs"},
        {"name": f"batch of 16, gain of {workers} threads", "value": one / many, "unit": "×"},
    ]


def bench_rollout() -> list[Row]:
    """Time the rollout of the paper's training window."""
    times = np.arange(605) * DT
    velocity = np.tile(DRIFT, (605, 1))
    u0 = first_frame()
    store, last = fastest(
        lambda: simulate(LAW, u0, times, GRID, velocity, output="float32"),
        lambda: simulate(LAW, u0, times, GRID, velocity, frames=[604]),
        repeats=3,
    )
    return [
        {"name": "605-frame rollout, float64, frames kept as float32", "value": store, "unit": "s"},
        {"name": "605-frame rollout, float64, last frame kept", "value": last, "unit": "s"},
        {"name": "605-frame rollout, per frame", "value": 1e6 * last / 604, "unit": "µs"},
    ]


def bench_cole_hopf() -> list[Row]:
    """Time the exact evolution of one late frame beside the explicit scheme at its accuracy, order 4 and 2."""
    times = np.arange(101) * DT
    velocity = np.tile(DRIFT, (101, 1))
    u0 = first_frame()
    ends = times[[0, -1]]
    exact = evolve_cole_hopf(LAW, u0, ends, GRID, velocity[[0, -1]]).values[1]
    rows: list[Row] = []
    for accuracy in (4, 2):
        explicit = simulate(LAW, u0, times, GRID, velocity, accuracy=accuracy, frames=[100])
        error = float(np.sqrt(np.mean((explicit.values[-1] - exact) ** 2) / np.mean(exact**2)))
        rows.append(
            {"name": f"explicit scheme, order {accuracy}, error after 100 frames", "value": 100 * error, "unit": "%"}
        )
    jump, stepwise = fastest(
        lambda: evolve_cole_hopf(LAW, u0, ends, GRID, velocity[[0, -1]]),
        lambda: simulate(LAW, u0, times, GRID, velocity, frames=[100]),
        repeats=5,
    )
    return [
        *rows,
        {"name": "Cole–Hopf, one frame (exact, from the first)", "value": 1e3 * jump, "unit": "ms"},
        {"name": "explicit scheme, order 4, per frame", "value": 1e3 * stepwise / 100, "unit": "ms"},
        {"name": "Cole–Hopf jump over 100 frames / explicit 100 frames", "value": jump / stepwise, "unit": "×"},
    ]


def bench_py_pde() -> list[Row]:
    """Time py-pde's compiled right-hand side (order 2) beside our stage of order 2."""
    if importlib.util.find_spec("pde") is None:
        print("py-pde is not installed: pip install py-pde adds the comparison", file=sys.stderr)
        return []
    import pde

    grid = pde.CartesianGrid([[0, 200], [0, 200]], 200)
    field = pde.ScalarField(grid, first_frame().T)
    equation = pde.PDE(
        {"u": f"{A}*gradient_squared(u) + {BETA}*laplace(u) - {DRIFT[0]}*d_dx(u) - {DRIFT[1]}*d_dy(u)"},
        bc={"derivative": 0},
    )
    theirs = equation.make_pde_rhs(field, backend="numba")
    kernel: Kernel = compile_kernel(Structure(LAW.terms, 2))
    padded = np.pad(first_frame(), 1, mode="symmetric")
    out = np.zeros_like(padded)
    c = np.array(LAW.coefficients)
    data = field.data
    ours, other = fastest(
        lambda: kernel.stage(padded, padded, out, NO_WALLS, c, *DRIFT, CALM, NO_MAPS, 1.0, 1.0, DT, 0.0, 0.0, 1.0),
        lambda: theirs(data, 0.0),
        repeats=40,
        inner=5,
    )
    return [
        {"name": "right-hand side, py-pde with numba, order 2", "value": 1e6 * other, "unit": "µs"},
        {"name": "py-pde / ours, order 2", "value": other / ours, "unit": "×"},
    ]


def run() -> list[Row]:
    """Run every benchmark; give rows of name, value and unit."""
    rows = [*bench_stage(2), *bench_stage(4), *bench_stage(4, "float32")]
    return [*rows, *bench_batch(), *bench_rollout(), *bench_cole_hopf(), *bench_py_pde()]


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']:<60} {row['value']:>12.4g} {row['unit']}")
