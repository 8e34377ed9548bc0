"""The same work on the CPU and on a GPU, side by side in one run, and how far their numbers are apart.

Usage: python -m benchmarks.gpu [--part NAME ...] [--out FILE] [--hlo FOLDER] [--small]       (all parts by default)

Without a GPU nothing is measured by ``python -m benchmarks``; called directly, JAX's own processor stands for it, which
shows that the benchmark works. "first" is the first call in a process, with what is compiled or read from the disk.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pipeline import CROP, time_run
from video2pde.calibration import make_problem, Problem
from video2pde.calibration.bootstrap import bootstrap_fit
from video2pde.calibration.finer import discretisation_bias
from video2pde.calibration.fit import Fit, fit_rollout
from video2pde.calibration.growth import refit_with_start
from video2pde.device import double, find_gpu, load_jax
from video2pde.discovery import discover, weak_system
from video2pde.discovery.moments import law_velocity
from video2pde.drift import estimate_drift
from video2pde.field import Field, Grid, Windows
from video2pde.front import fit_front
from video2pde.parallel import count_workers
from video2pde.recording.synth import Camera, make_case, render_film
from video2pde.rollout.jax_backend import DeviceBatch
from video2pde.rollout.jax_loop import compile_loop
from video2pde.rollout.jax_stage import READERS
from video2pde.rollout.model import Model
from video2pde.rollout.simulate import simulate, simulate_batch
from video2pde.rollout.task import prepare_task, Scheme
from video2pde.rollout.validate import validate
from video2pde.settings import load_settings
from video2pde.terms import libraries

TITLE = "GPU"
NOTES = "Rollouts, fits and the whole command on the CPU (numba, two threads) and on a GPU (JAX), float64."
Row = dict[str, Any]
DT, DRIFT = 34 / 1008, (0.08, 0.28)
LAWS = {
    "C": {"grad_squared": 9.005, "laplacian": 0.666},
    "R": {"u": 0.14, "u_squared": -0.16, "laplacian": 0.8},
}
THREADS, REPLICATES, NOISE = 2, 64, 0.005
COMPILED_IN = 4.0
"""Seconds that the CPU's side may spend on compilation: what takes less is timed once more."""
SMALL = False
"""Set by ``--small``: sizes that show in a minute that everything runs."""
HLO: Path | None = None
"""Set by ``--hlo``: folder for the programs as XLA compiled them."""


def say(name: str, value: float, unit: str) -> Row:
    """Print a figure as soon as it is known, and return its row."""
    print(f"{name:<84} {value:>12.5g} {unit}", flush=True)
    return {"name": name, "value": float(value), "unit": unit}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def plume(grid: Grid) -> np.ndarray:
    """Return an asymmetric plume on a background, of the same size in cells on every grid."""
    y, x = np.meshgrid(grid.y - grid.height / 2, grid.x - grid.width / 2, indexing="ij")
    wide = 0.5 * np.exp(-((x + 5) ** 2 / 400 + (y + 20) ** 2 / 250))
    return 0.1 + wide + 0.3 * np.exp(-((x - 15) ** 2 + (y - 5) ** 2) / 300)


def compare(name: str, run: Callable[[str], Any], numbers: Callable[[Any], np.ndarray]) -> Iterator[Row]:
    """Time the same work on both devices, the GPU's twice, and say how far the numbers are apart."""
    cpu, ours = timed(lambda: run("cpu"))
    if cpu < COMPILED_IN:
        cpu, ours = timed(lambda: run("cpu"))
    first, _ = timed(lambda: run("gpu"))
    gpu, theirs = timed(lambda: run("gpu"))
    apart = np.abs(numbers(theirs) - numbers(ours)).max() / np.abs(numbers(ours)).max()
    yield say(f"{name}, CPU", cpu, "s")
    yield say(f"{name}, GPU, first", first, "s")
    yield say(f"{name}, GPU", gpu, "s")
    yield say(f"{name}, CPU / GPU", cpu / gpu, "×")
    yield say(f"{name}, relative difference of the numbers", apart, "")


def bench_rollouts() -> Iterator[Row]:
    """Batches of rollouts of C on three grids; the last frame alone is fetched."""
    sizes = ((200, 605, (1, 16, 64)), (512, 241, (64,)), (1024, 121, (64,)))
    for size, frames, counts in sizes if not SMALL else ((48, 21, (1, 16)), (64, 11, (1, 16))):
        grid = Grid(size, size, float(size), float(size))
        times, velocity = np.arange(frames) * DT, np.tile(DRIFT, (frames, 1))
        for count in counts:
            models = [Model.of({"grad_squared": 9.005 * (1 + 1e-3 * n), "laplacian": 0.666}) for n in range(count)]

            def run(device: str, grid: Grid = grid, models: list[Model] = models) -> list[np.ndarray]:
                scheme = Scheme(workers=THREADS, device=device)  # type: ignore[arg-type]
                done = simulate_batch(models, plume(grid), times, grid, velocity, scheme, [len(times) - 1])  # noqa: B023
                return [rollout.values for rollout in done]

            yield from compare(f"rollouts, {count} of {frames} frames, {size}×{size}", run, np.asarray)


@lru_cache(maxsize=4)
def film(library: str, frames: int) -> Field:
    """Roll a law out and add noise: a recording as the fits see it."""
    size = 48 if SMALL else 200
    grid = Grid(size, size, float(size), float(size))
    times, velocity = np.arange(frames) * DT, np.tile(DRIFT, (frames, 1))
    start = plume(grid) - (0.1 if library == "R" else 0.0)
    values = simulate(Model.of(LAWS[library]), start, times, grid, velocity).values
    noise = np.random.default_rng(3).normal(0, NOISE, values.shape)
    return Field((values + noise).astype(np.float32), times, grid)


@lru_cache(maxsize=4)
def pose(library: str, frames: int) -> tuple[Problem, list[float], Field]:
    """Go from a field to its calibration."""
    field, settings = film(library, frames), load_settings(overrides={"run.workers": THREADS})
    windows = Windows.split(len(field))
    train = field.frames(windows.train)
    drift = estimate_drift(field.frames(slice(0, windows.validation_end)), settings.drift).frames(windows.train)
    weak = weak_system(train, drift, settings, len(field))
    found = discover(weak, settings)[library].coefficients
    start = {term.name: found[term.name] or 1e-3 for term in libraries(settings)[library]}
    velocity = law_velocity(drift, weak.moments, start)
    terms = libraries(settings)[library]
    return make_problem(train, terms, start, velocity, weak.moments, settings), list(start.values()), train


def on(problem: Problem, device: str) -> Problem:
    return replace(problem, window=replace(problem.window, device=device))  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def fitted(library: str, frames: int) -> Fit:
    problem, guess, _ = pose(library, frames)
    return fit_rollout(problem, guess, load_settings().calibration)


def paper() -> int:
    return 60 if SMALL else 1009


def bench_fit() -> Iterator[Row]:
    """The fit of C to the paper's training window, and the bias of its grid."""
    problem, guess, _ = pose("C", paper())
    options = load_settings().calibration
    name = f"C, {len(problem.window.times)} frames"
    yield from compare(f"fit of {name}", lambda d: fit_rollout(on(problem, d), guess, options), coefficients)
    fit = fitted("C", paper())

    def bias(device: str) -> np.ndarray:
        return fit.coefficients + discretisation_bias(on(problem, device), fit)

    yield from compare(f"coefficients with the bias of the grid, {name}", bias, np.asarray)


def coefficients(fit: Fit) -> np.ndarray:
    return fit.coefficients


def bench_replicates() -> Iterator[Row]:
    """The bootstrap of the same fit."""
    problem, _, _ = pose("C", paper())
    fit = fitted("C", paper())
    options = load_settings().calibration.model_copy(update={"replicates": 8 if SMALL else REPLICATES})
    name = f"bootstrap of C, {options.replicates} replicates, {len(problem.window.times)} frames"
    yield from compare(name, lambda d: bootstrap_fit(on(problem, d), fit, options, THREADS), lambda b: b.draws)


def bench_front() -> Iterator[Row]:
    """The front-aware fits from one start."""
    problem, _, _ = pose("C", paper())
    fit, settings = fitted("C", paper()), load_settings()
    starts, background = {"calibrated": fit.coefficients.tolist()}, np.full(len(problem.window.times), 0.1)

    def run(device: str) -> np.ndarray:
        fits = fit_front(on(problem, device), fit, starts, settings.front, settings.rollout, background)
        return np.array([list(each.coefficients.values()) for each in fits])

    yield from compare("front-aware fits of C", run, np.asarray)


def bench_growth() -> Iterator[Row]:
    """A law that grows, fitted jointly with its initial frame."""
    frames = 60 if SMALL else 405
    problem, _, _ = pose("R", frames)
    fit = fitted("R", frames)

    def run(device: str) -> np.ndarray:
        found = refit_with_start(on(problem, device), fit)
        return (found or fit).coefficients

    yield from compare(f"growing law with its initial frame, {len(problem.window.times)} frames", run, np.asarray)


def bench_validation() -> Iterator[Row]:
    """All libraries over the validation window, in full and one step at a time, with their scores."""
    field, settings = film("C", paper()), load_settings()
    window = field.frames(Windows.split(len(field)).validation)
    models = {
        name: Model(terms, tuple(0.666 if term.name == "laplacian" else 1e-2 for term in terms))
        for name, terms in libraries(settings).items()
    }
    velocity = np.tile(DRIFT, (len(window), 1))

    def run(device: str) -> np.ndarray:
        done = validate(window, models, velocity, diffusion=0.7, workers=THREADS, device=device)  # type: ignore[arg-type]
        return np.array([score.full.rrmse for score in done.scores])

    yield from compare(f"validation of {len(models)} libraries, {len(window)} frames", run, np.asarray)


def bench_weak() -> Iterator[Row]:
    """The weak system of all libraries."""
    _, _, train = pose("C", paper())
    settings = load_settings()
    drift = estimate_drift(train, settings.drift)

    def run() -> Any:
        return weak_system(train, drift, settings, paper())

    run()
    yield say("weak system of all libraries, CPU", timed(run)[0], "s")


def bench_profile() -> Iterator[Row]:
    """What a substep costs, by how neighbours are read, and what XLA makes of it."""
    jax = load_jax()
    for size, count, frames in ((200, 8, 65), (200, 64, 33), (1024, 4, 33)) if not SMALL else ((48, 8, 17),):
        grid = Grid(size, size, float(size), float(size))
        times, velocity = np.arange(frames) * DT, np.tile(DRIFT, (frames, 1))
        models = [Model.of({"grad_squared": 9.005 * (1 + 1e-3 * n), "laplacian": 0.666}) for n in range(count)]
        scheme = Scheme(device="gpu")
        tasks = [prepare_task(model, plume(grid)[None], times, grid, velocity, scheme.settings) for model in models]
        for reader in (*READERS, "tiled"):
            batch = DeviceBatch(tasks, grid, scheme)
            with double():
                loop = compile_loop(batch.structure, "replicate", False, reader)
                inputs = batch.inputs()
                seconds, program = timed(lambda loop=loop, inputs=inputs: loop.lower(*inputs).compile())
                text, name = program.as_text(), f"{count} of {size}×{size}, {reader}"
                substeps = int(np.asarray(program(*inputs)[2]).max(axis=1).sum())
                best = min(timed(lambda: jax.block_until_ready(program(*inputs)))[0] for _ in range(3))  # noqa: B023
            stages = 3 * substeps
            moved = 3 * 8 * count * size * size
            yield say(f"program for {name}, compiled in", seconds, "s")
            yield say(f"program for {name}, fusions", text.count(" fusion("), "")
            yield say(f"program for {name}, other kernels (copy, reduce, concatenate)", _others(text), "")
            yield say(f"program for {name}, a substep of three stages", 1e6 * best / substeps, "µs")
            yield say(f"program for {name}, memory moved at least", moved * stages / best / 1e12, "TB/s")
            if HLO is not None:
                (HLO / f"{name.replace(' ', '-')}.txt").write_text(text, encoding="utf-8")
            _trace(program, inputs, name)


def _others(text: str) -> int:
    return sum(
        text.count(f" {kind}(") for kind in ("copy", "reduce", "concatenate", "dynamic-update-slice", "custom-call")
    )


def _trace(program: Any, inputs: Any, name: str) -> None:
    """Print where a GPU spends its time in a program, kernel by kernel, as JAX's profiler sees it."""
    jax = load_jax()
    if find_gpu() is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(program(*inputs))
        try:
            print(f"kernels of {name}:", flush=True)
            for row in _kernels(Path(folder)):
                print(f"    {row[0]:<70} {row[1]:>8} calls {row[2]:>10.1f} µs in all", flush=True)
        except Exception as error:  # the profiler's files are no promise of JAX's
            print(f"    no profile: {type(error).__name__}: {error}", flush=True)


def _kernels(folder: Path) -> list[tuple[str, int, float]]:
    """Sum up the events of a trace that happened on a GPU, the longest first."""
    import gzip

    [file] = folder.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    places = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    sums: dict[str, tuple[int, float]] = {}
    for event in events:
        if event.get("ph") == "X" and event["pid"] in places:
            calls, spent = sums.get(event["name"], (0, 0.0))
            sums[event["name"]] = (calls + 1, spent + event["dur"])
    return sorted(((name, *both) for name, both in sums.items()), key=lambda row: -row[2])[:14]


def bench_command() -> Iterator[Row]:
    """``video2pde run`` on a film of the paper's size, stage by stage: on a GPU with empty caches, again with what that
    run has left in them, as ``auto`` has it, and on the CPU."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        camera = Camera(frames=paper()) if not SMALL else Camera(size=(108, 192), frames=paper())
        path = render_film(make_case("C"), folder / "film", camera)
        options = CROP if not SMALL else ("--crop", "42,0,108,108", "--border", "1", "--grid", "48,48")
        gpu = "gpu" if find_gpu() else "cpu"
        runs = {f"{gpu}, empty caches": gpu, f"{gpu}, full caches": gpu, "auto": "auto", "cpu": "cpu"}
        for kind, device in runs.items():
            out = folder / kind.replace(", ", "-").replace(" ", "-")
            timed = time_run(path, out, *options, "--set", f"run.device={device}", caches=folder / "caches")
            yield say(f"paper-size film, {kind}: until report.html", timed.answered, "s")
            for row in timed.rows(f"paper-size film, {kind}"):
                yield say(row["name"], row["value"], row["unit"])
            for term, found in (timed.result["selected"] or {"terms": {}})["terms"].items():
                yield say(f"paper-size film, {kind}: coefficient of {term}", found["value"], "")


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "profile": bench_profile,
    "rollouts": bench_rollouts,
    "fit": bench_fit,
    "replicates": bench_replicates,
    "front": bench_front,
    "growth": bench_growth,
    "validation": bench_validation,
    "weak": bench_weak,
    "command": bench_command,
}


def run() -> list[Row]:
    """Measure everything; nothing where there is no GPU."""
    return [] if find_gpu() is None else [row for part in PARTS.values() for row in part()]


def main() -> None:
    global SMALL, HLO
    parser = argparse.ArgumentParser(description="Measure the CPU and a GPU side by side.")
    parser.add_argument("--part", action="append", choices=PARTS, help="parts to run, all by default")
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--hlo", type=Path, help="folder for the compiled programs of the part profile")
    options = parser.parse_args()
    SMALL, HLO = options.small, options.hlo
    print(f"GPU: {find_gpu()}; {count_workers('auto')} cores, of which the CPU's side uses {THREADS}", flush=True)
    rows: list[Row] = []
    for name in options.part or PARTS:
        began = time.perf_counter()
        try:
            rows += PARTS[name]()
        except Exception as error:  # the other parts are worth having
            print(f"part {name} failed: {type(error).__name__}: {error}", flush=True)
        print(f"-- {name}: {time.perf_counter() - began:.1f} s", flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
