"""The inverse PINN as a second opinion: result and page do not wait for it, and Ctrl-C loses neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video2pde.field import Grid
from video2pde.pipeline import run_pipeline
from video2pde.record import Run
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.report.content.fitting import PENDING
from video2pde.runs.events import QuietEvents
from video2pde.settings import load_settings, Settings

NETWORK = {"enabled": True, "contenders": 1, "network": "perceptron"}
NETWORK |= {"width": 8, "depth": 2, "pretrain_steps": 20, "joint_steps": 40}


def small(**network: Any) -> Settings:
    """The quick preset with one law and a network that learns next to nothing, which takes a second."""
    given = {f"refinement.{name}": value for name, value in {**NETWORK, **network}.items()}
    chosen = {"run.workers": 1, "calibration.replicates": 4, "identifiability.stability_runs": 5, "front.enabled": True}
    return load_settings("quick", overrides={**chosen, **given, "regression.law": "C", "steadiness.parts": 0})


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    field = exact_field(find_preset("C"), Grid(40, 40, 200.0, 200.0), np.linspace(0, 34, 60))
    return noisy(field, 0.002, 7).save(tmp_path_factory.mktemp("film") / "field.npz")


class Order(QuietEvents):
    """Take down the order of the stages; press Ctrl-C while the network is trained, if that is asked for."""

    def __init__(self, interrupt: bool = False) -> None:
        super().__init__()
        self.stages: list[str] = []
        self.notes: list[str] = []
        self.interrupt = interrupt

    def stage(self, name: str, title: str) -> None:
        super().stage(name, title)
        self.stages.append(name)

    def note(self, text: str) -> None:
        super().note(text)
        self.notes.append(text)

    def progress(self, done: int, total: int | None, note: str = "") -> None:
        super().progress(done, total, note)
        if self.interrupt and self.stages[-1] == "refinement":
            raise KeyboardInterrupt


def starts(run: Run) -> tuple[list[str], list[str]]:
    """Name the starts of the calibration and of the front-aware fit."""
    (law,), (fronts,) = run.calibration.values(), run.front.values()
    return [attempt.source for attempt in law.attempts], [fit.source for fit in fronts]


def test_the_result_is_there_before_the_network_and_survives_ctrl_c(film: Path, tmp_path: Path) -> None:
    out, events = tmp_path / "run", Order(interrupt=True)
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(film, out, small(), events=events, figures=False)
    assert events.stages[-3:] == ["test", "report", "refinement"]
    assert events.notes[-1].startswith("law found: u_t")
    early = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert early["selected"]["library"] == "C"
    assert PENDING[:30] in (out / "report.html").read_text(encoding="utf-8")
    assert (out / "stages" / "refinement-C-2026.npz").is_file()  # the training goes on from here

    again = Order()
    done = run_pipeline(film, out, small(), events=again, figures=False)
    assert again.stages[-3:] == ["refinement", "comparison", "report"]
    assert starts(done) == (["weak", "poor"], ["calibrated", "calibrated"])
    assert done.refinement["C"].steps == (20, 40)
    assert PENDING[:30] not in (out / "report.html").read_text(encoding="utf-8")
    assert (out / "tables" / "pinn.csv").is_file()
    complete = json.loads((out / "result.json").read_text(encoding="utf-8"))
    for changed in ("timings_s", "warnings"):  # a network this small does not converge, and that is said now
        assert early.pop(changed) != complete.pop(changed)
    assert complete == early

    third = Order()
    run_pipeline(film, out, small(), events=third, figures=False)
    assert third.stages.count("report") == 1  # nothing is left to wait for


def test_in_the_papers_order_the_fits_start_from_the_network(film: Path, tmp_path: Path) -> None:
    events = Order()
    done = run_pipeline(film, tmp_path / "run", small(first=True), events=events, until="front")
    assert load_settings("paper").refinement.first
    assert events.stages[4:] == ["refinement", "comparison", "calibration", "fit", "front"]
    assert starts(done) == (["weak", "pinn", "poor"], ["calibrated", "pinn", "calibrated"])
