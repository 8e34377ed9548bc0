"""How cost grows: time against frames, grid, test functions, terms, contenders and replicates, and the slopes of it.

Law C with noise of 0.5 %; each point is the shortest of a few repetitions, in one process, after compiling.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.calibration import make_problem, Problem
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.fit import fit_rollout
from video2pde.discovery import discover, Weak, weak_system
from video2pde.discovery.moments import law_velocity
from video2pde.discovery.regression import fit_library
from video2pde.discovery.testfunctions import choose_widths
from video2pde.discovery.timekernels import time_kernels
from video2pde.discovery.weak import weak_columns
from video2pde.drift import Drift, estimate_drift
from video2pde.field import Field, Grid
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.report.style import BLACK, BLUE, EXTRA, GREEN, GREY, ORANGE, PURPLE, RED
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate
from video2pde.rollout.validate import validate
from video2pde.settings import load_settings, Settings
from video2pde.terms import LIBRARIES, libraries, Term

Row = dict[str, Any]
FIGURE = Path(__file__).resolve().parent.parent / "docs" / "img" / "bench-growth.png"
FRAMES = (100, 200, 400, 800)
GRIDS = (64, 100, 144, 200)
TEST_FUNCTIONS = (500, 1000, 2000, 4000)
TERMS = (3, 6, 12, 24)
REPLICATES = (25, 50, 100, 200)
CONTENDERS = (1, 2, 4, 8)
SIGMA_TIME = 0.04
SIZE, LENGTH = 100, 200
"""Grid and frames of what is kept fixed while something else grows."""
ENOUGH_SECONDS, MOST_REPEATS = 0.5, 20
LAW = Model.of({"grad_squared": 9.005, "laplacian": 0.666})

TITLE = "How cost grows"
NOTES = """\
Each slope is that of a straight line through the points on log–log axes: 1 means that twice as much takes twice as
long. The grid is counted in cells. Finer grids need shorter substeps, so a rollout grows faster than its cells.

Weights in time for uneven frames are tables of frames × width, and the width is a share of the frames: twice as many
frames make four times as many weights.

![time against frames, cells, test functions, terms, contenders and replicates](img/bench-growth.png)
"""


@dataclass(frozen=True)
class Growth:
    """Times of one piece of work while one thing grows."""

    work: str
    what: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def slope(self) -> float:
        """Fit d log(time) / d log(size)."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


def shortest(work: Callable[[], object]) -> float:
    """Return the shortest time of some calls, in seconds: at least two, and more while they are quick."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < ENOUGH_SECONDS and len(times) < MOST_REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def make_field(size: int, frames: int) -> Field:
    """Make the noisy field of law C."""
    case = find_preset("C")
    exact = exact_field(case, Grid(size, size, 200.0, 200.0), np.linspace(0, case.duration, frames))
    return noisy(exact, 0.005, 1)


def pose(train: Field, drift: Drift, weak: Weak, settings: Settings) -> tuple[Problem, list[float]]:
    """Set up the rollout calibration of C from the weak fit."""
    terms = libraries(settings)["C"]
    found = discover(weak, settings)["C"].coefficients
    start = {term.name: found[term.name] for term in terms}
    velocity = law_velocity(drift, weak.moments, start)
    return make_problem(train, terms, start, velocity, weak.moments, settings), list(start.values())


WORKS = (
    "drift",
    "weak system of all libraries",
    "rollout of C",
    "calibration fit of C",
    "bootstrap of C, ten replicates",
    "validation of C",
)


def time_stages(train: Field, settings: Settings) -> tuple[float, ...]:
    """Time the works of :data:`WORKS` on one field."""
    drift = estimate_drift(train, settings.drift)
    weak = weak_system(train, drift, settings, len(train))
    problem, guess = pose(train, drift, weak, settings)
    fit, ten = fit_rollout(problem, guess, settings.calibration), {"replicates": 10}
    return (
        shortest(lambda: estimate_drift(train, settings.drift)),
        shortest(lambda: weak_system(train, drift, settings, len(train))),
        shortest(
            lambda: simulate(LAW, train.values[0], train.times, train.grid, drift.velocity, frames=[len(train) - 1])
        ),
        shortest(lambda: fit_rollout(problem, guess, settings.calibration)),
        shortest(lambda: bootstrap_fit(problem, fit, settings.calibration.model_copy(update=ten), workers=1)),
        shortest(lambda: validate(train, {"C": LAW}, drift.velocity)),
    )


def grow_field(fields: Sequence[Field], what: str, sizes: Sequence[float], settings: Settings) -> list[Growth]:
    """Time the stages on fields that grow."""
    times = [time_stages(field, settings) for field in fields]
    return [
        Growth(work, what, tuple(sizes), series) for work, series in zip(WORKS, zip(*times, strict=True), strict=True)
    ]


def grow_test_functions(train: Field, settings: Settings) -> Growth:
    """Time drawing centres, integrating in time and fitting the full library, on columns that are there already."""
    weak = weak_system(train, estimate_drift(train, settings.drift), settings, len(train))

    def draw_and_fit(count: int) -> None:
        system = weak.columns.draw(count, np.random.default_rng(0))
        fit_library("Full", LIBRARIES["Full"], system, settings.regression)

    seconds = tuple(shortest(lambda count=count: draw_and_fit(count)) for count in TEST_FUNCTIONS)  # type: ignore[misc]
    return Growth("draw centres, fit Full, standard errors", "test functions", TEST_FUNCTIONS, seconds)


def grow_terms(train: Field, settings: Settings) -> Growth:
    """Time the filtering of more and more candidates D^α(u^p)."""
    every = [
        Term.of(f"u{power}_{order}", (order, f"u**{power}"))
        for power, order in product((1, 2, 3, 4), ("x", "y", "xx", "xy", "yy", "xxyy"))
    ]
    still = np.zeros((len(train), 2))
    seconds = tuple(
        shortest(lambda count=count: weak_columns(train, still, every[:count], settings.weak))  # type: ignore[misc]
        for count in TERMS
    )
    return Growth("weak columns", "terms", TERMS, seconds)


def grow_contenders(train: Field, settings: Settings) -> Growth:
    """Time the validation of more and more laws."""
    velocity = estimate_drift(train, settings.drift).velocity

    def score(count: int) -> None:
        validate(train, {f"{n}": LAW for n in range(count)}, velocity)

    seconds = tuple(shortest(lambda count=count: score(count)) for count in CONTENDERS)  # type: ignore[misc]
    return Growth("validation of laws", "contenders", CONTENDERS, seconds)


def grow_frame_times() -> Growth:
    """Time the weights of test functions in time where frames are unevenly spaced."""
    rng, widths = np.random.default_rng(0), choose_widths((100, 64, 64), 100, load_settings().weak, None, False)

    def weigh(frames: int) -> None:
        times = np.cumsum(rng.uniform(0.5, 1.5, frames))
        time_kernels(times, replace(widths, t=SIGMA_TIME * frames, integrated=True))

    seconds = tuple(shortest(lambda count=count: weigh(count)) for count in FRAMES)  # type: ignore[misc]
    return Growth("weights in time, uneven frames", "frames", FRAMES, seconds)


def grow_replicates(train: Field, settings: Settings) -> Growth:
    """Time the block bootstrap with more and more replicates."""
    drift = estimate_drift(train, settings.drift)
    problem, guess = pose(train, drift, weak_system(train, drift, settings, len(train)), settings)
    fit = fit_rollout(problem, guess, settings.calibration)

    def bootstrap(count: int) -> None:
        bootstrap_fit(problem, fit, settings.calibration.model_copy(update={"replicates": count}), workers=1)

    bootstrap(REPLICATES[0])
    seconds = tuple(shortest(lambda count=count: bootstrap(count)) for count in REPLICATES)  # type: ignore[misc]
    return Growth("block bootstrap of C", "replicates", REPLICATES, seconds)


def measure() -> list[Growth]:
    """Measure every growth."""
    settings = load_settings(overrides={"run.workers": 1})
    fixed = make_field(SIZE, LENGTH)
    time_stages(fixed.frames(slice(0, FRAMES[0])), settings)  # compiles
    long = make_field(SIZE, FRAMES[-1])
    return [
        *grow_field([long.frames(slice(0, count)) for count in FRAMES], "frames", FRAMES, settings),
        grow_frame_times(),
        *grow_field([make_field(n, LENGTH // 2) for n in GRIDS], "cells", [n * n for n in GRIDS], settings),
        grow_test_functions(fixed, settings),
        grow_terms(fixed, settings),
        grow_contenders(fixed, settings),
        grow_replicates(fixed, settings),
    ]


def draw(growths: Sequence[Growth], path: Path) -> None:
    """Plot time against size, one panel for each thing that grows, with a line of slope 1 in each."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(growth.what for growth in growths))
    works = list(dict.fromkeys(growth.work for growth in growths))
    colours = dict(zip(works, (BLUE, RED, GREEN, PURPLE, ORANGE, BLACK, *EXTRA), strict=False))
    figure = Figure(figsize=(14, 6), layout="constrained")
    for position, what in enumerate(panels, start=1):
        axes = figure.add_subplot(2, 4, position)
        _draw_panel(axes, [growth for growth in growths if growth.what == what], colours)
    legend = figure.add_subplot(2, 4, len(panels) + 1)
    legend.axis("off")
    for work, colour in colours.items():
        legend.plot([], [], "o-", color=colour, label=work)
    legend.plot([], [], "--", color=GREY, label="slope 1")
    legend.legend(loc="center left", frameon=False, title="number at a line: its slope")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def _draw_panel(axes: Any, growths: Sequence[Growth], colours: Mapping[str, str]) -> None:
    """Draw the lines of one panel, each with its slope at its end."""
    sizes = growths[0].sizes
    for growth in growths:
        axes.loglog(growth.sizes, growth.seconds, "o-", color=colours[growth.work])
        end = (growth.sizes[-1], growth.seconds[-1])
        axes.annotate(f"{growth.slope:.2f}", end, (6, -3), textcoords="offset points", color=colours[growth.work])
    base = min(growth.seconds[0] for growth in growths) / 2
    axes.loglog([sizes[0], sizes[-1]], [base, base * sizes[-1] / sizes[0]], "--", color=GREY)
    low, high = axes.get_ylim()
    # at least two powers of ten, so that the axis has numbers to read
    middle, half = np.sqrt(low * high), max(np.sqrt(high / low), 11.0)
    axes.set(xlabel=growths[0].what, ylabel="time (s)", ylim=(middle / half, middle * half))
    axes.set_xlim(sizes[0] / 1.15, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.2)
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()


def run() -> list[Row]:
    """Measure, draw the figure of the documentation, and return one row for each growth."""
    growths = measure()
    draw(growths, FIGURE)
    return [
        {
            "work": growth.work,
            "grows with": growth.what,
            "from": f"{growth.sizes[0]:g}",
            "to": f"{growth.sizes[-1]:g}",
            "time at first (s)": growth.seconds[0],
            "time at last (s)": growth.seconds[-1],
            "slope": growth.slope,
        }
        for growth in growths
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
