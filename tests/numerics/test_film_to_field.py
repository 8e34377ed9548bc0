"""From a rendered 1080p film to its field by the two commands: what comes out is what was filmed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.cli import main
from video2pde.field import Field, Grid
from video2pde.recording.synth import Camera, exact_field, make_case

CAMERA = Camera(frames=4)
CASE = make_case("C")
LARGEST_ERROR = 0.0015  # half of what is promised: half a cell off is already 0.0026
LARGEST_CHANGE = 0.001


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("film to field")
    film = ["synth", "C", "--out", str(place), "--frames", "4", "--crf", "18", "--noise", "0", "--quiet"]
    assert main(film) == 0
    crop = ["--crop", "450,0,1080,1080", "--border", "8", "--grid", "200,200", "--no-figures", "--quiet"]
    assert main(["field", str(place / "film.mp4"), "--out", str(place), *crop]) == 0
    return place


@pytest.fixture(scope="module")
def truth() -> Field:
    return exact_field(CASE, CAMERA.grid(), CAMERA.times(CASE))


def rms(difference: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(difference, dtype=np.float64))))


def test_the_field_is_the_true_one(folder: Path, truth: Field) -> None:
    field = Field.load(folder / "field.npz")
    assert field.grid == truth.grid == Grid(200, 200, 200.0, 200.0)
    assert np.allclose(field.times, truth.times, atol=1e-4)
    assert rms(field.values - truth.values) < LARGEST_ERROR


def test_the_mean_is_kept(folder: Path, truth: Field) -> None:
    checks = json.loads((folder / "checks.json").read_text())
    assert checks["resize_mean_change"] < LARGEST_CHANGE
    means = Field.load(folder / "field.npz").values.mean(axis=(1, 2), dtype=np.float64)
    assert np.abs(means - truth.values.mean(axis=(1, 2), dtype=np.float64)).max() < LARGEST_CHANGE


def test_wrong_readings_would_be_noticed(folder: Path, truth: Field) -> None:
    """The limit rejects luma taken as full range, and a field that lies half a cell off."""
    values = Field.load(folder / "field.npz").values
    limited_as_full = 1 - (16 + 219 * (1 - values)) / 255
    assert rms(limited_as_full - truth.values) > LARGEST_ERROR
    half_a_cell_off = (values[:, :, 1:] + values[:, :, :-1]) / 2
    assert rms(half_a_cell_off - truth.values[:, :, 1:]) > LARGEST_ERROR
