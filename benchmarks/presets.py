"""What each difference between the presets ``paper`` and ``default`` does to the law, one at a time.

The recording is an exact field of law C on a background, as a camera's cells average it. Every row changes the
settings named from ``default`` to their value in ``paper`` and fits again, in weak form and by rollouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from video2pde import discovery
from video2pde.calibration import calibrate, make_problem
from video2pde.discovery.moments import law_velocity
from video2pde.drift import estimate_drift
from video2pde.errors import Video2pdeError
from video2pde.field import Field, Grid, Windows
from video2pde.recording.observable import smooth_frames
from video2pde.recording.synth import exact_field, make_case, noisy
from video2pde.settings import load_settings, PRESETS
from video2pde.terms import CATALOGUE

LAW = ("grad_squared", "laplacian")
DIFFERENCES: dict[str, dict[str, Any]] = {
    "default": {},
    "smoothing σ = 1": {"recording.smooth": 1.0},
    "pitch L/(n − 1)": {"recording.pitch": "nodes"},
    "raw centroid": {"drift.background": "none", "drift.law_correction": False},
    "centroid without the law's own motion": {"drift.law_correction": False},
    "no noise correction": {"weak.noise_correction": False, "weak.gradient_sigma": 0.0},
    "threshold λ = 10⁻³ on coefficients": {"regression.threshold_on": "coefficient", "regression.threshold": 1e-3},
    "viscosity ε = 0.01": {"rollout.viscosity": 0.01},
    "drift fixed in calibration": {"calibration.drift": "fixed"},
    "Nelder–Mead": {"calibration.optimizer": "nelder-mead", "calibration.drift": "fixed"},
    "paper": {f"{section}.{key}": value for section, keys in PRESETS["paper"].items() for key, value in keys.items()},
}


def make_recording(noise: float = 0.004, background: float = 0.25) -> Field:
    """Return the recording: law C, 200 × 200 cells, 305 frames."""
    field = exact_field(
        make_case("C", background=background, peak=0.6), Grid(200, 200, 200.0, 200.0), np.linspace(0, 34, 305)
    )
    return noisy(field, noise, 1)


def measure(recording: Field, overrides: Mapping[str, Any]) -> dict[str, float]:
    """Fit law C under some settings: weak coefficients and calibrated ones; NaN where a fit fails."""
    settings = load_settings(overrides={**overrides, "calibration.replicates": 0, "refinement.enabled": False})
    values = np.array(recording.values)
    if settings.recording.smooth:
        smooth_frames(values, settings.recording.smooth)
    grid = recording.grid
    field = Field(
        values, recording.times, Grid(grid.ny, grid.nx, grid.height, grid.width, grid.unit, settings.recording.pitch)
    )
    windows = Windows.split(len(field), settings.split.train, settings.split.validation)
    train = field.frames(windows.train)
    drift = estimate_drift(field, settings.drift).frames(windows.train)
    weak = discovery.weak_system(train, drift, settings, len(field))
    fit = discovery.discover(weak, settings)["C"]
    found = {name: fit.coefficients[name] for name in LAW}
    result = {f"weak {name}": value for name, value in found.items()}
    try:
        velocity = law_velocity(drift, weak.moments, found)
        problem = make_problem(train, [CATALOGUE[n] for n in LAW], found, velocity, weak.moments, settings)
        calibrated = calibrate("C", problem, {"weak": list(found.values())}, settings)
        result |= {f"calibrated {n}": calibrated.estimates[n].value for n in LAW}
    except Video2pdeError:
        result |= {f"calibrated {n}": float("nan") for n in LAW}
    return result


def run() -> list[dict[str, Any]]:
    """Return the errors in per cent of every row, as benchmark rows."""
    recording = make_recording()
    truth = make_case("C").law.coefficients
    rows = []
    for name, overrides in DIFFERENCES.items():
        for quantity, value in measure(recording, overrides).items():
            term = quantity.split(" ", 1)[1]
            rows.append({"name": f"{name}: {quantity}", "value": 100 * (value / truth[term] - 1), "unit": "%"})
    return rows


def main() -> None:
    """Print the table that stands in ``docs/presets.md``."""
    table: dict[str, dict[str, float]] = {}
    for row in run():
        name, quantity = str(row["name"]).split(": ")
        table.setdefault(name, {})[quantity] = float(row["value"])
    print("| changed | weak a | weak β | calibrated a | calibrated β |\n| --- | --- | --- | --- | --- |")
    for name, values in table.items():
        cells = (f"{v:+.2f} %" if np.isfinite(v) else "failed" for v in values.values())
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
