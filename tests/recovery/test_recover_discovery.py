"""Known laws recovered by the weak fit alone: long exact fields, noisy films, and recordings made by others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from video2pde.discovery import diagnose, Identifiability, Weak, weak_system
from video2pde.discovery.moments import law_velocity
from video2pde.drift import Drift, estimate_drift
from video2pde.field import Field, Grid, Windows
from video2pde.recording import read_field
from video2pde.recording.synth import Camera, Case, exact_field, find_preset, make_case, render_film
from video2pde.settings import load_settings, Settings

pytestmark = pytest.mark.recovery

LAWS = {"A": "A", "B": "B", "C": "C", "C-alt": "C-alt", "Fisher": "R"}
SHARED = Path(__file__).parents[2].parent / "shared" / "recordings"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not beside the project")


def analyse(field: Field, settings: Settings | None = None) -> tuple[Identifiability, Weak, Drift]:
    settings = settings or load_settings()
    train = Windows.split(len(field)).train
    drift = estimate_drift(field, settings.drift)
    weak = weak_system(field.frames(train), drift.frames(train), settings, len(field))
    return diagnose(weak, settings), weak, drift


def film_case(name: str, background: float) -> Case:
    """Put a preset on a background, low enough to stay a picture."""
    return make_case(name, background=background, peak=min(find_preset(name).plume.peak, 0.98 - background))


def assert_law(
    found: Identifiability, case: Case, library: str, tolerance: float, drift_tolerance: float = 0.1
) -> None:
    fit = found.libraries[library].fit
    assert set(fit.active_terms) == set(case.law.coefficients)
    assert fit.coefficients == pytest.approx(
        {**case.law.coefficients, "drift_x": fit.coefficients["drift_x"], "drift_y": fit.coefficients["drift_y"]},
        rel=tolerance,
    )
    assert fit.coefficients["drift_x"] == pytest.approx(1, abs=drift_tolerance)
    assert fit.coefficients["drift_y"] == pytest.approx(1, abs=drift_tolerance)
    assert library in found.contenders


@pytest.mark.parametrize("name", list(LAWS))
def test_exact_fields_at_full_size(name: str) -> None:
    case = find_preset(name)
    field = exact_field(case, Grid(200, 200, 200.0, 200.0), np.linspace(0, case.duration, 1009))
    found, weak, drift = analyse(field)
    assert_law(found, case, LAWS[name], 0.002, 0.01)
    velocity = law_velocity(drift.frames(slice(0, 605)), weak.moments, found.libraries[LAWS[name]].fit.coefficients)
    true = np.stack(case.drift.velocity(field.times[:605]), axis=1)
    assert velocity.mean(axis=0) == pytest.approx(true.mean(axis=0), rel=0.01)


@pytest.mark.parametrize("name", ["A", "B", "C", "C-alt"])
def test_noisy_films(name: str, tmp_path: Path) -> None:
    """1080p films with 2 % camera noise at H.264 quality 23, on a background of 0.25."""
    case = film_case(name, 0.25)
    film = render_film(case, tmp_path, Camera(noise=0.02, crf=23))
    settings = load_settings(overrides={"recording.crop": (450, 0, 1080, 1080), "recording.border": 8})
    found, weak, drift = analyse(read_field(film, settings))
    assert_law(found, case, LAWS[name], 0.04)
    fit = found.libraries[LAWS[name]].fit
    train = slice(0, len(next(iter(weak.moments.values()))))
    velocity = law_velocity(drift.frames(train), weak.moments, fit.coefficients).mean(axis=0)
    true = np.stack(case.drift.velocity(drift.times[train]), axis=1).mean(axis=0)
    assert velocity == pytest.approx(true, rel=0.05)


def test_reaction_on_a_film(tmp_path: Path) -> None:
    """Logistic growth starts from nothing, where the camera clips its noise: little noise, and a small Laplacian."""
    case = find_preset("Fisher")
    film = render_film(case, tmp_path, Camera(size=(480, 480), frames=241, noise=0.003, crf=18))
    fit = analyse(read_field(film, load_settings(overrides={"recording.grid": (100, 100)})))[0].libraries["R"].fit
    assert set(fit.active_terms) == set(case.law.coefficients)
    assert fit.coefficients["u"] == pytest.approx(case.law.u, rel=0.03)
    assert fit.coefficients["u_squared"] == pytest.approx(case.law.u_squared, rel=0.03)
    assert fit.coefficients["laplacian"] == pytest.approx(case.law.laplacian, rel=0.1)


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize("background", [0.0, 0.2, 0.4])
def test_mean_drift_on_films(name: str, background: float, tmp_path: Path) -> None:
    case = film_case(name, background)
    film = render_film(case, tmp_path, Camera(size=(480, 480), frames=201, noise=0.01, crf=20))
    drift = estimate_drift(read_field(film, load_settings()))
    assert drift.mean == pytest.approx(case.drift.mean, rel=0.05)
    assert drift.background[0] == pytest.approx(background, abs=0.01)
    raw = estimate_drift(read_field(film, load_settings()), load_settings("paper").drift)
    if background >= 0.2:
        assert abs(raw.mean[0]) < 0.5 * abs(case.drift.mean[0])


def test_noise_correction_matters_on_a_film(tmp_path: Path) -> None:
    """A small camera averages few pixels: without the correction the gradient's noise passes for signal."""
    case = film_case("C", 0.25)
    film = render_film(case, tmp_path, Camera(size=(480, 480), frames=241, noise=0.02, crf=15))
    field = read_field(film, load_settings())
    good, bad = (
        analyse(field, load_settings(overrides={"weak.noise_correction": on}))[0].libraries["C"].fit.coefficients
        for on in (True, False)
    )
    truth = case.law.coefficients
    errors = {key: [abs(fit[key] / truth[key] - 1) for fit in (good, bad)] for key in truth}
    assert max(with_correction for with_correction, _ in errors.values()) < 0.06
    assert errors["laplacian"][1] > 2 * errors["laplacian"][0]


@needs_shared
@pytest.mark.parametrize("name", ["dev-A", "dev-C"])
def test_films_of_another_solver(name: str) -> None:
    folder = SHARED / "known_truth" / name
    truth = json.loads((folder / "truth.json").read_text())
    settings = load_settings(overrides={"recording.crop": (450, 0, 1080, 1080), "recording.border": 8})
    found, _, drift = analyse(read_field(folder / "film.mp4", settings))
    library = name[-1]
    fit = found.libraries[library].fit
    law = {"laplacian": truth["b"], **({"grad_squared": truth["a"]} if truth["a"] else {})}
    assert set(fit.active_terms) == set(law)
    assert library in found.contenders
    for term, value in law.items():
        assert fit.coefficients[term] == pytest.approx(value, rel=0.02)
    assert fit.coefficients["drift_x"] == pytest.approx(1, abs=0.02)
    assert fit.coefficients["drift_y"] == pytest.approx(1, abs=0.02)
    if name == "dev-A":
        assert found.contenders == ("A",)
        assert drift.mean == pytest.approx(truth["v"], rel=0.02)


@needs_shared
@pytest.mark.parametrize(
    ("number", "diffusion", "bleaching"), [(1, 0.20, 0.0047), (2, 0.25, 0.0041), (3, 0.20, 0.0046), (4, 0.30, 0.0039)]
)
def test_droplets(number: int, diffusion: float, bleaching: float) -> None:
    """Fluorescence recovery inside a droplet: bright, masked, from the first frame after bleaching, no drift.

    The rough estimates come from another regression; part of the pattern inside a droplet does not relax, which
    pulls D down in both, by an amount that depends on the weighting.
    """
    settings = load_settings(
        overrides={"recording.observable": "bright", "recording.scale": "1px", "recording.fps": 1.0}
    )
    whole = read_field(SHARED / "frap_coacervates" / f"droplet_{number:02d}.tif", settings)
    field = replace(whole.frames(slice(4, None)), mask=find_droplet(whole.values[:3].mean(axis=0)))
    train = field.frames(Windows.split(len(field)).train)
    still = replace(estimate_drift(train), velocity=np.zeros((len(train), 2)), velocity_error=np.zeros((len(train), 2)))
    settings = load_settings(overrides={"drift.law_correction": False})
    weak = weak_system(train, still, settings, len(field))
    fit = diagnose(weak, settings).libraries["B"].fit
    assert set(fit.active) == {"u", "laplacian"}
    assert fit.coefficients["laplacian"] == pytest.approx(diffusion, rel=0.25)
    assert fit.significance("laplacian") > 4
    assert fit.coefficients["u"] == pytest.approx(-bleaching, rel=0.45)


def find_droplet(picture: np.ndarray) -> np.ndarray:
    """The largest bright piece, without holes and without its rim."""
    bright = picture > 0.5 * np.percentile(picture, 95)
    labels, count = ndimage.label(bright)
    largest = labels == 1 + np.argmax(ndimage.sum(bright, labels, range(1, count + 1)))
    return np.asarray(ndimage.binary_erosion(ndimage.binary_fill_holes(largest)))
