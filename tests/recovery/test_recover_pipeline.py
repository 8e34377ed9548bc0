"""Known-truth films through the whole pipeline: the right library, the right coefficients, or no law at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import Camera, Case, find_preset, make_case, render_film
from video2pde.runs.archive import load_artefact
from video2pde.settings import load_settings

pytestmark = pytest.mark.recovery

LAWS = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
SEEDS = 10


def film_case(name: str) -> Case:
    """Take a preset; logistic growth on a background, since a camera that clips its noise at white makes u grow."""
    return make_case(name, background=0.1) if name == "Fisher" else find_preset(name)


def analyse(name: str, folder: Path, camera: Camera, **overrides: Any) -> tuple[Any, dict[str, Any]]:
    """Film a case and run the pipeline up to the choice; give the selection and the calibrations."""
    film = render_film(film_case(name), folder, camera)
    settings = load_settings(overrides={"refinement.enabled": False, "front.enabled": False, **overrides})
    run_pipeline(film, folder / "run", settings, until="selection")
    stages = {path.stem.split("-", 1)[1]: path for path in (folder / "run" / "stages").glob("*.npz")}
    return load_artefact(stages["selection"])[0], load_artefact(stages["calibration"])


@pytest.mark.parametrize(("noise", "crf", "tolerance"), [(0.0, 4, 0.01), (0.02, 23, 0.03)], ids=["clean", "noisy"])
@pytest.mark.parametrize("name", list(LAWS))
def test_known_laws_from_films(name: str, noise: float, crf: int, tolerance: float, tmp_path: Path) -> None:
    camera = Camera(size=(1080, 1080), frames=405, noise=noise, crf=crf)
    selection, calibrations = analyse(name, tmp_path, camera, **{"recording.border": 8})
    assert (selection.verdict, selection.chosen) == ("law", LAWS[name])
    estimates = calibrations[LAWS[name]].estimates
    truth = find_preset(name).law.coefficients
    assert set(estimates) == set(truth)
    for term, value in truth.items():
        assert estimates[term].value == pytest.approx(value, rel=tolerance)


@pytest.mark.parametrize("name", list(LAWS))
def test_intervals_from_films_hold_the_truth(name: str, tmp_path: Path) -> None:
    """In at least nine of ten seeds of camera noise, for every coefficient; small cameras, so that there is noise."""
    truth = find_preset(name).law.coefficients
    held = dict.fromkeys(truth, 0)
    for seed in range(SEEDS):
        camera = Camera(size=(400, 400), border=0, frames=241, noise=0.02, crf=18, seed=seed)
        overrides = {"recording.grid": (100, 100), "recording.border": 0}
        selection, calibrations = analyse(name, tmp_path / str(seed), camera, **overrides)
        assert selection.chosen == LAWS[name]
        for term, value in truth.items():
            estimate = calibrations[LAWS[name]].estimates[term]
            held[term] += estimate.low <= value <= estimate.high
    assert min(held.values()) >= 9, held


@pytest.mark.parametrize("name", ["static", "noise", "drift"])
def test_films_without_a_law(name: str, tmp_path: Path) -> None:
    selection, _ = analyse(name, tmp_path, Camera(size=(540, 540), frames=205))
    assert (selection.verdict, selection.chosen) == ("no_law", None)


@pytest.mark.parametrize("seed", range(3))
def test_ties_go_to_the_simpler_law(seed: int, tmp_path: Path) -> None:
    """On a film of A, C fits as well and loses; on a film of C, C-both does."""
    camera = Camera(size=(400, 400), border=0, frames=205, noise=0.01, crf=18, seed=seed)
    overrides = {"recording.grid": (100, 100), "recording.border": 0}
    for name in ("A", "C"):
        selection, _ = analyse(name, tmp_path / name, camera, **overrides)
        assert selection.chosen == name
