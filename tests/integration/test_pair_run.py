"""A run of two fields that was interrupted goes on from its last stage, and ends as one that was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from video2pde.field import Grid
from video2pde.pair.fields import Pair
from video2pde.pair.pipeline import run_pair
from video2pde.pair.record import load_pair_run
from video2pde.recording.synth import make_system, sample_system
from video2pde.runs.events import QuietEvents
from video2pde.settings import load_settings

CHOSEN = {
    "recording.channels": ["u", "w"],
    "regression.law": "laplacian,u_w; laplacian_w,u_w",
    "weak.test_functions": 600,
    "calibration.replicates": 4,
    "run.workers": 1,
}


class Told(QuietEvents):
    """Keep which stages were computed and which were read."""

    def __init__(self) -> None:
        self.read: dict[str, bool] = {}

    def done(self, name: str, seconds: float, cached: bool) -> None:  # noqa: ARG002
        self.read[name] = cached


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    system = replace(make_system("reagents"), spacing=5.0, step=0.6)
    times = np.linspace(0, system.duration, 44)
    frames = np.stack(list(sample_system(system, (36, 40), times)), axis=1)
    frames = frames + 0.004 * np.random.default_rng(2).standard_normal(frames.shape)
    film = Pair.of(frames, times, Grid(36, 40, 200.0, 200.0)).save(tmp_path / "two.npz")
    settings = load_settings(overrides=CHOSEN)
    begun = run_pair(film, tmp_path / "resumed", settings, until="calibration")
    assert begun.selection is None
    told = Told()
    resumed = run_pair(film, tmp_path / "resumed", settings, until="test", events=told)
    assert {name for name, cached in told.read.items() if cached} == {"recording", "discovery", "calibration"}
    whole = run_pair(film, tmp_path / "whole", settings, until="test")
    assert resumed.selection == whole.selection
    assert whole.selection is not None
    assert whole.selection.verdict == "law"
    assert load_pair_run(tmp_path / "resumed").selection == whole.selection
    # other settings of a late stage leave the early ones as they are
    again = Told()
    changed = load_settings(overrides={**CHOSEN, "calibration.replicates": 5})
    run_pair(film, tmp_path / "resumed", changed, until="calibration", events=again)
    assert again.read == {"recording": True, "discovery": True, "calibration": False}
