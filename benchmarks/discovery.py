"""Compare the weak system's assembly with term-by-term convolution, and discovery with PySINDy's.

Run: python benchmarks/discovery.py
All on the training window (605 frames) of a 200×200×1009 recording that follows a = 9.005, β = 0.666 exactly, with
the same 2000 centres. The convolution filters whole arrays with ``scipy.ndimage``, one term after the other; PySINDy
runs where it is installed, with as many test functions as fit into a minute.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from video2pde.discovery import diagnose, Weak, weak_system
from video2pde.discovery.testfunctions import kernel, Widths
from video2pde.discovery.weak import weak_columns
from video2pde.drift import Drift, estimate_drift
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import exact_field, find_preset
from video2pde.settings import load_settings
from video2pde.terms import CATALOGUE, DRIFT, LIBRARIES

FULL = (*LIBRARIES["Full"], *DRIFT)
PYSINDY_SECONDS = 60.0
Result = TypeVar("Result")
Row = dict[str, Any]


def make_recording(n: int = 200, frames: int = 1009) -> Field:
    """Make the exact field of law C."""
    case = find_preset("C")
    return exact_field(case, Grid(n, n, 200.0, 200.0), np.linspace(0, case.duration, frames))


def clock(function: Callable[[], Result], repeats: int = 1) -> tuple[float, Result]:
    """Return the shortest time of some calls, and the last result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def peak_memory(function: Callable[[], object]) -> int:
    """Return the peak of the memory that a call allocates, in bytes."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def convolve_terms(train: Field, velocity: NDArray[np.float64], centres: NDArray[np.int64], widths: Widths) -> Any:
    """Filter each term's whole array in t, y and x, then read the values at the centres."""
    u, grid = train.values, train.grid
    at = tuple(centres.T)

    def column(values: NDArray[np.float32], t: int = 0, y: int = 0, x: int = 0) -> NDArray[np.float32]:
        for axis, (sigma, spacing, order) in enumerate(
            ((widths.t, train.dt, t), (widths.y, grid.dy, y), (widths.x, grid.dx, x))
        ):
            weights = kernel(sigma, widths.support, order, spacing)
            values = ndimage.correlate1d(values, weights, axis=axis, mode="nearest")
        return np.asarray(values[at])

    u_y, u_x = np.gradient(u, grid.dy, grid.dx, axis=(1, 2))
    square = u_x**2 + u_y**2
    v_x, v_y = (velocity[:, axis, None, None].astype(np.float32) for axis in range(2))
    theta = [
        column(np.ones_like(u)),
        column(u),
        column(u**2),
        column(square),
        column(u * square),
        column(u, x=2) + column(u, y=2),
        column(v_x * u, x=1),
        column(v_y * u, y=1),
    ]
    return np.stack(theta, axis=1), -column(u, t=1)


def run_pysindy(train: Field) -> list[Row]:
    """Fit library C's terms with PySINDy's WeakPDELibrary, with more test functions until the time is up."""
    try:
        import pysindy
    except ImportError:
        return [{"name": "PySINDy", "value": "not installed", "unit": ""}]
    import warnings

    # PySINDy wants space first and time last
    u = np.moveaxis(train.values, 0, -1)[..., None].astype(float)
    space_time = np.stack(np.meshgrid(train.grid.y, train.grid.x, train.times - train.times[0], indexing="ij"), axis=-1)
    count, rows = 25, []
    total = 0.0
    while total < PYSINDY_SECONDS:
        tracemalloc.start()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = pysindy.WeakPDELibrary(
                function_library=pysindy.PolynomialLibrary(degree=1, include_bias=False),
                derivative_order=2,
                spatiotemporal_grid=space_time,
                K=count,
                p=4,
                include_bias=False,
                H_xt=[24.0, 24.0, 3.4],
            )
            model = pysindy.SINDy(
                feature_library=library, optimizer=pysindy.STLSQ(threshold=1e-4, normalize_columns=True)
            )
            model.fit(u, t=space_time[0, 0, :, -1])
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        terms = zip(model.get_feature_names(), np.ravel(model.coefficients()), strict=True)
        law = ", ".join(f"{value:.3g} {name}" for name, value in terms if value)
        rows = [
            {"name": "PySINDy WeakPDELibrary, test functions", "value": count, "unit": ""},
            {"name": "PySINDy WeakPDELibrary, time", "value": seconds, "unit": "s"},
            {"name": "PySINDy WeakPDELibrary, peak memory / field", "value": peak / train.values.nbytes, "unit": ""},
            {"name": "PySINDy WeakPDELibrary, law (it has no |∇u|²)", "value": law, "unit": "1 = y, 2 = x"},
        ]
        total += seconds
        if total + 2.2 * seconds > PYSINDY_SECONDS:
            break
        count *= 2
    return rows


def run() -> list[Row]:
    """Measure everything and return rows of name, value and unit."""
    field, settings = make_recording(), load_settings()
    window = Windows.split(len(field)).train
    train = field.frames(window)
    drift: Drift = estimate_drift(field).frames(window)
    terms = [CATALOGUE[name] for name in FULL]

    def assemble() -> Any:
        columns = weak_columns(train, drift.velocity, terms, settings.weak, total_frames=len(field))
        return columns.draw(settings.weak.test_functions, np.random.default_rng(0))

    def discover_all() -> Weak:
        return weak_system(train, drift, settings, len(field))

    assemble()  # compiles
    ours, system = clock(assemble, 3)
    theirs, (theta, _) = clock(lambda: convolve_terms(train, drift.velocity, system.centres, system.widths))
    assembly, weak = clock(discover_all, 2)
    diagnosis, found = clock(lambda: diagnose(weak, settings), 2)
    fit = found.libraries["C"].fit
    order = [FULL.index(name) for name in system.names]
    apart = np.abs(system.theta - theta[:, order]).max(axis=0) / np.abs(system.theta).max(axis=0)
    rows: list[Row] = [
        {"name": "assembly of Full, 200×200×605, M = 2000", "value": ours, "unit": "s"},
        {"name": "the same by scipy.ndimage, term by term", "value": theirs, "unit": "s"},
        {"name": "speed-up (wanted: 15)", "value": theirs / ours, "unit": "×"},
        {"name": "largest difference of a column", "value": float(apart.max()), "unit": ""},
        {"name": "weak system of all libraries with the law's own motion", "value": assembly, "unit": "s"},
        {"name": "diagnosis of all libraries, 100 stability runs", "value": diagnosis, "unit": "s"},
        {"name": "diagnosis / assembly of Full (at most: 4)", "value": diagnosis / ours, "unit": "×"},
        {
            "name": "peak extra memory / field (below: 3)",
            "value": peak_memory(assemble) / train.values.nbytes,
            "unit": "",
        },
        {
            "name": "peak extra memory / field, all libraries (below: 3)",
            "value": peak_memory(discover_all) / train.values.nbytes,
            "unit": "",
        },
        {"name": "a found (9.005)", "value": fit.coefficients["grad_squared"], "unit": "image units²/s"},
        {"name": "β found (0.666)", "value": fit.coefficients["laplacian"], "unit": "image units²/s"},
    ]
    return rows + run_pysindy(train)


if __name__ == "__main__":
    for row in run():
        value = row["value"] if isinstance(row["value"], str) else f"{row['value']:.4g}"
        print(f"{row['name']:60} {value} {row['unit']}")
