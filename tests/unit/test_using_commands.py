"""The commands simulate, export, analyse and apply, on real files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from video2pde.cli import main
from video2pde.field import Field, Grid, Windows
from video2pde.recording import read_field, RecordingResult
from video2pde.recording.synth import exact_field, make_case
from video2pde.runs.archive import save_artefact
from video2pde.settings import RecordingSettings
from video2pde.using import SavedModel

GRID = Grid(40, 48, 80.0, 96.0)
TIMES = np.linspace(0, 8, 41)
LAW = {"grad_squared": 9.005, "laplacian": 0.666}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def field() -> Field:
    return exact_field(make_case("C", duration=8.0), GRID, TIMES)


@pytest.fixture
def folder(field: Field, tmp_path: Path) -> Path:
    """Make a run folder with a model and the field it was found in."""
    run = tmp_path / "run"
    (run / "stages").mkdir(parents=True)
    save_artefact(run / "stages" / "01-recording.npz", RecordingResult(field, ()), {"key": "x"})
    velocity = np.stack(make_case("C", duration=8.0).drift.velocity(TIMES), axis=1)
    draws = np.random.default_rng(0).normal([9.005, 0.666], [0.1, 0.01], (12, 2))
    model = SavedModel.of(list(LAW), LAW, GRID, Windows.split(41), TIMES, velocity, draws=draws)
    model.save(run / "model.json")
    return run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_simulating_the_film_gives_the_film(folder: Path, field: Field, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "u.npz"
    status, printed, _ = run("simulate", folder, "--out", out)
    assert (status, printed.strip()) == (0, str(out))
    with np.load(out) as stored:
        np.testing.assert_allclose(stored["times"], TIMES, atol=1e-12)
        assert np.sqrt(np.mean((stored["values"] - field.values) ** 2)) < 2e-3
    status, _, _ = run("simulate", folder, "--drift", "none", "--out", out)
    assert status == 0
    with np.load(out) as stored:
        assert np.sqrt(np.mean((stored["values"] - field.values) ** 2)) > 1e-2


def test_simulating_forward_of_the_film(folder: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "beyond.npz"
    status, _, told = run("simulate", folder / "model.json", "--frame", -1, "--duration", 4, "--fps", 5, "--out", out)
    assert status == 0
    assert "frame 40" in told
    with np.load(out) as stored:
        np.testing.assert_allclose(stored["times"], np.linspace(8, 12, 21), atol=1e-12)


def test_an_ensemble_is_a_mean_and_a_band(folder: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "band.npz"
    assert run("simulate", folder, "--duration", 1, "--ensemble", 6, "--out", out, "--quiet")[0] == 0
    with np.load(out) as stored:
        assert set(stored) == {"times", "mean", "low", "high"}
        assert (stored["low"] <= stored["mean"] + 1e-12).all()
        assert (stored["high"][-1] - stored["low"][-1]).max() > 1e-4


def test_films_and_pictures(folder: Path, field: Field, run: Run, tmp_path: Path) -> None:
    film, gif, strip, array = (tmp_path / f"u.{kind}" for kind in ("mp4", "gif", "png", "npy"))
    for out in (film, gif, strip, array):
        assert run("simulate", folder, "--duration", 2, "--out", out, "--quiet")[0] == 0
    values = np.load(array)
    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (48 * 9, 40 * 9)
        assert float(stream.average_rate) == pytest.approx(5.0)
    # read back as a recording, the film shows the simulated field
    back = read_field(film, RecordingSettings(border=0, grid=(40, 48), extent=(80.0, 96.0)))
    assert np.abs(back.values - values).max() < 0.03
    with Image.open(gif) as picture:
        assert picture.n_frames == 11
        assert picture.info["duration"] == 200
    with Image.open(strip) as picture:
        assert picture.width > 3 * picture.height
    assert np.abs(values[0] - field.values[0]).max() < 1e-6


def test_starting_from_pictures_arrays_and_fields(folder: Path, field: Field, run: Run, tmp_path: Path) -> None:
    first = field.values[0].astype(float)
    np.save(tmp_path / "u0.npy", first)
    np.save(tmp_path / "many.npy", field.values)
    Image.fromarray(np.rint(255 * (1 - np.kron(first, np.ones((3, 3))))).astype(np.uint8)).save(tmp_path / "u0.png")
    field.save(tmp_path / "other.npz")
    found = {}
    for name, more in (("u0.npy", ()), ("many.npy", ("--frame", 3)), ("u0.png", ()), ("other.npz", ("--frame", 3))):
        out = tmp_path / "out.npy"
        options = ("--duration", 0.5, "--drift", "none", "--out", out, "--quiet")
        assert run("simulate", folder, "--from", tmp_path / name, *more, *options)[0] == 0
        found[name] = np.load(out)
    np.testing.assert_allclose(found["u0.png"], found["u0.npy"], atol=0.003)
    np.testing.assert_array_equal(found["many.npy"], found["other.npz"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "RUN", "--out", "u.avi"), ".mp4"),
        (("simulate", "RUN", "--frame", 400), "no frame 400"),
        (("simulate", "RUN", "--from", "missing.npy"), "no such file"),
        (("simulate", "RUN", "--from", "wrong.npy"), "grid is (40, 48)"),
        (("simulate", "RUN", "--from", "wrong.npy", "--frame", 1), "leave --frame out"),
        (("simulate", "RUN", "--from", "text.npy"), "cannot be read"),
        (("simulate", "RUN", "--duration", -1), "positive"),
        (("simulate", "RUN", "--duration", "1e9"), "frames are more"),
        (("simulate", "nothing"), "no such model file"),
        (("export", "RUN", "--to", "fortran"), "fortran"),
        (("apply", "RUN", "missing.mp4"), "missing.mp4"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[object, ...], message: str, folder: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "wrong.npy", np.zeros((4, 5)))
    (tmp_path / "text.npy").write_text("no array")
    status, printed, told = run(*(folder if word == "RUN" else word for word in arguments))
    assert status == 2
    assert printed == ""
    assert message in told.splitlines()[-1]
    assert told.splitlines()[-1].startswith("error: ")


def test_exports_go_to_stdout_or_to_a_file(folder: Path, run: Run, tmp_path: Path) -> None:
    status, printed, _ = run("export", folder, "--to", "latex")
    assert status == 0
    assert r"9.005\,\left|\nabla u\right|^{2}" in printed
    script = tmp_path / "law.py"
    assert run("export", folder, "--to", "python", "--out", script)[:2] == (0, f"{script}\n")
    command = [sys.executable, str(script), "--duration", "0.5", "--frames", "2", "--out", str(tmp_path / "u.npy")]
    assert subprocess.run(command, check=False).returncode == 0
    assert np.load(tmp_path / "u.npy").shape == (3, 40, 48)


def test_analysing_as_text_and_as_json(folder: Path, run: Run) -> None:
    status, printed, _ = run("analyse", folder)
    assert status == 0
    assert "kind: Cole–Hopf" in printed
    assert "Energy law: holds, residual" in printed
    assert "At the film's edges" in printed
    found = json.loads(run("analyse", folder, "--json")[1])
    assert {item["title"] for item in found["statements"]} >= {"Linear equation", "Maximum principle", "Conserved mass"}


def test_applying_a_law_to_a_saved_field(folder: Path, field: Field, run: Run, tmp_path: Path) -> None:
    other = field.save(tmp_path / "other.npz")
    status, printed, told = run("apply", folder, other, "--against", folder)
    assert status == 0
    assert "image units" in told
    assert "transferred law" in printed
    assert "the law beats this recording's best baseline" in printed
    found = json.loads(run("apply", folder, other, "--json")[1])
    assert {row["prediction"] for row in found["outcomes"]} >= {"persistence", "drift", "transferred law"}
