"""What the test of fit costs beside the stages that find the law: a whole run of each film, compiled kernels kept."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import Camera, find_preset, render_film
from video2pde.settings import load_settings

TITLE = "The test of fit"
NOTES = (
    "Films of 540 × 540 pixels, 205 frames, 1 % noise, quality 23, a grid of 100 × 100, default settings without "
    "inverse PINN and front, one worker, the second run of each. Right laws: every suspect and every part is asked."
)
LAWS = ("A", "C", "Fisher")
MOST_SHARE = 0.3


def run() -> list[dict[str, Any]]:
    """Compare the seconds of the stage with those of the weak stage and the calibration."""
    rows = []
    for law in LAWS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            film = render_film(find_preset(law), folder, Camera(size=(540, 540), frames=205, noise=0.01, crf=23))
            measure(film, folder / "warm")
            seconds = measure(film, folder / "run")
        found = seconds["discovery"] + seconds["calibration"]
        rows += [
            {"name": f"{law}: weak stage and calibration", "value": found, "unit": "s"},
            {"name": f"{law}: test of fit", "value": seconds["fit"], "unit": "s"},
            {"name": f"{law}: test of fit, share of both", "value": seconds["fit"] / found, "limit": MOST_SHARE},
        ]
    return rows


def measure(film: Path, out: Path) -> dict[str, float]:
    """Run a film up to the choice of the law; return the seconds of each stage."""
    chosen = {"recording.grid": (100, 100), "run.workers": 1, "refinement.enabled": False, "front.enabled": False}
    return dict(run_pipeline(film, out, load_settings(overrides=chosen), until="fit").timings)
