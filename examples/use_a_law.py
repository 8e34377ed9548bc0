"""From a model file to a forecast, its band, a py-pde run and checked identities, with pictures.

    python examples/use_a_law.py FOLDER

A known-truth field stands for the recording: law C with noise, fitted on its first 60 %. FOLDER receives
model.json, field.npz, the exported py-pde script and three pictures.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from video2pde.calibration import calibrate, make_problem
from video2pde.field import Field, Grid, Windows
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.report import style
from video2pde.rollout.model import Model
from video2pde.settings import load_settings
from video2pde.terms import get_term
from video2pde.using import export_model, SavedModel, simulate_ensemble
from video2pde.using.films import write_simulation
from video2pde.using.identities import evolve, measure_identities, periodic_plume, Transform

LAW = {"grad_squared": 9.005, "laplacian": 0.666}
NOISE = 0.01


def find_law(folder: Path) -> tuple[SavedModel, Field, Field]:
    """Fit law C to a noisy known-truth field and save both; give model, noisy field and truth."""
    case = make_case("C", duration=20.0)
    grid, times = Grid(80, 100, 144.0, 180.0), np.linspace(0, 20, 101)
    truth = exact_field(case, grid, times)
    field = noisy(truth, NOISE, seed=4)
    field.save(folder / "field.npz")
    windows = Windows.split(len(field))
    velocity = np.stack(case.drift.velocity(times), axis=1)
    terms = [get_term(name) for name in LAW]
    settings = load_settings(overrides={"calibration.replicates": 24})
    still = {name: np.zeros((windows.train_end, 2)) for name in LAW}
    problem = make_problem(field.frames(windows.train), terms, LAW, velocity[windows.train], still, settings)
    fit = calibrate("C", problem, {"truth": list(LAW.values())}, settings)
    draws = None if fit.bootstrap is None else fit.bootstrap.draws - fit.bootstrap.bias
    model = SavedModel.of(terms, fit.estimates, grid, windows, times, velocity, draws=draws, noise=NOISE)
    model.save(folder / "model.json")
    print(fit)
    return model, field, truth


def forecast(model: SavedModel, field: Field, truth: Field, folder: Path) -> None:
    """Predict the test window and ten seconds more, with a band."""
    first = model.windows.validation_end
    times = np.arange(field.times[first], 30.01, 0.2)
    band = simulate_ensemble(model, field.values[first], times, 40, seed=1)
    write_simulation(folder / "using-forecast.png", times, band.mean, ensemble=band)
    seen = len(field) - first
    inside = (truth.values[first:] >= band.low[:seen]) & (truth.values[first:] <= band.high[:seen])
    low, high = band.observed_band()
    held = (field.values[first:] >= low[:seen]) & (field.values[first:] <= high[:seen])
    print(f"inside the 5–95 % band: {held.mean():.1%} of the noisy pixels, {inside[2:].mean():.1%} of the true ones")


def run_pypde(model: SavedModel, truth: Field, folder: Path) -> None:
    """Export to py-pde, run the script, and draw it beside our rollout."""
    script = folder / "law_pypde.py"
    script.write_text(export_model(model, "pypde"), encoding="utf-8")
    np.save(folder / "u0.npy", truth.values[0])
    command = [
        sys.executable,
        script.name,
        "--start",
        "u0.npy",
        "--duration",
        "20",
        "--frames",
        "10",
        "--out",
        "pypde.npy",
    ]
    subprocess.run(command, cwd=folder, check=True)
    theirs = np.load(folder / "pypde.npy")[-1]
    ours = model.simulate(truth.values[0], truth.times).values[-1]
    with style.apply():
        figure = Figure(figsize=(9.2, 2.5))
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 3)
        extent = (0, model.grid.width, model.grid.height, 0)
        for axis, frame, title in zip(axes, (ours, theirs), ("video2pde, t = 20 s", "py-pde, t = 20 s"), strict=False):
            picture = axis.imshow(frame, cmap=style.SEQUENTIAL, vmin=0, vmax=float(ours.max()), extent=extent)
            axis.set(title=title, xlabel="x (image units)")
            figure.colorbar(picture, ax=axis, label="u", shrink=0.8)
        apart = theirs - ours
        reach = float(np.abs(apart).max())
        picture = axes[2].imshow(apart, cmap=style.DIVERGING, vmin=-reach, vmax=reach, extent=extent)
        axes[2].set(title="py-pde − video2pde", xlabel="x (image units)")
        axes[0].set_ylabel("y (image units)")
        figure.colorbar(picture, ax=axes[2], label="difference", shrink=0.8)
        figure.savefig(folder / "using-pypde.png")
    print(f"py-pde differs from video2pde by {reach:.2g} at most, {np.sqrt(np.mean(apart**2)):.2g} in the mean square")


def draw_identities(folder: Path) -> None:
    """Draw how the residuals of the identities fall as the grid is refined."""
    law = Model.of(LAW)
    sizes = np.array([40, 56, 80, 112, 160])
    found = []
    for n in sizes:
        grid, times = Grid(n, n, 200.0, 200.0), np.linspace(0, 40, n + 1)
        velocity = np.stack([0.3 + 0.1 * np.sin(times / 9), -0.2 + 0 * times], axis=1)
        seen = evolve(law, periodic_plume(grid, 0.1, 0.7), times, velocity, grid)
        found.append(measure_identities(seen, Transform(LAW["grad_squared"], 0.0, LAW["laplacian"], 0.1, 0.7)))
    names = {"linear": "linear equation of θ", "energy": "energy law", "mass": "conserved ∫θ", "mean": "growth of ∫u"}
    colours = (style.BLUE, style.RED, style.GREEN, style.ORANGE)
    with style.apply():
        figure = Figure(figsize=(4.6, 3.2))
        FigureCanvasAgg(figure)
        axis = figure.subplots()
        for (key, label), colour, marker in zip(names.items(), colours, "osv^", strict=True):
            axis.loglog(sizes, [item[key] for item in found], marker=marker, color=colour, label=label)
        guide = found[0]["linear"] * 3 * (sizes / sizes[0]) ** -4.0
        axis.loglog(sizes, guide, "--", color=style.GREY, label="fourth order")
        axis.set(
            xlabel="cells on a side", ylabel="relative residual", xticks=sizes, xticklabels=[str(n) for n in sizes]
        )
        axis.minorticks_off()
        axis.legend()
        figure.savefig(folder / "using-identities.png")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    model, field, truth = find_law(folder)
    forecast(model, field, truth, folder)
    draw_identities(folder)
    run_pypde(model, truth, folder)


if __name__ == "__main__":
    main()
