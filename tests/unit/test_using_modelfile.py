"""The model file: it comes back as it was, and broken or hostile ones are refused with one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.field import Grid, Windows
from video2pde.settings import RecordingSettings, RolloutSettings
from video2pde.terms import Term
from video2pde.using import SavedModel

GRID = Grid(20, 24, 10.0, 12.0, "mm")
TIMES = np.linspace(2.0, 12.0, 41)
VELOCITY = np.stack([0.1 * TIMES, -0.2 + 0 * TIMES], axis=1)
OWN = Term.of("mine", ("x", "u*sqrt(u)"), ("", "exp(1)*u_x*0.123456789"), ("xy", "u*u_y/3"))


def make(**more: Any) -> SavedModel:
    estimates = {"grad_squared": Estimate(9.0, 8.8, 9.3), "laplacian": Estimate(0.67), "mine": 0.25}
    terms = ["grad_squared", "laplacian", OWN]
    draws = np.array([[9.1, 0.66, 0.2], [8.9, 0.68, 0.3]])
    given: dict[str, Any] = {"draws": draws, "drift_scale": (0.9, 1.1), **more}
    return SavedModel.of(terms, estimates, GRID, Windows.split(41), TIMES, VELOCITY, **given)


def test_a_model_comes_back_as_it_was(tmp_path: Path) -> None:
    recording = RecordingSettings(observable="bright", grid=(20, 24))
    model = make(noise=0.01, path="film.mp4", sha256="a" * 64, recording=recording, verdict="ambiguous")
    back = SavedModel.load(model.save(tmp_path / "model.json"))
    assert back == model
    assert back == SavedModel.load(tmp_path)  # the folder will do
    assert back.law == model.law
    assert back.law.terms[2] == OWN
    assert back.grid == GRID
    assert back.windows == Windows.split(41)
    assert (back.terms[0].low, back.terms[0].high, back.terms[0].units) == (8.8, 9.3, "mm²/s")
    assert back.terms[1].low is None
    assert back.provenance.recording_settings() == recording
    np.testing.assert_array_equal(back.draws, [[9.1, 0.66, 0.2], [8.9, 0.68, 0.3]])
    assert json.loads(model.to_json())["schema"] == "video2pde-model"


def test_the_drift_continues_after_the_film_with_the_mean_of_its_last_tenth() -> None:
    model = make()
    scaled = VELOCITY * (0.9, 1.1)
    np.testing.assert_allclose(model.velocity_at(TIMES), scaled)
    np.testing.assert_allclose(model.velocity_at([50.0])[0], scaled[-4:].mean(axis=0))
    np.testing.assert_allclose(model.velocity_at([0.0])[0], scaled[0])
    np.testing.assert_allclose(model.velocity_at([3.0, 99.0], "mean"), np.tile(scaled.mean(axis=0), (2, 1)))
    assert not model.velocity_at([3.0], "none").any()
    given = np.array([[1.0, 2.0]])
    np.testing.assert_array_equal(model.velocity_at([3.0], given), given)
    with pytest.raises(InputError, match="'sideways' is not known"):
        model.velocity_at([3.0], "sideways")  # type: ignore[arg-type]


def test_a_model_simulates_past_the_end_of_its_film() -> None:
    law = {"laplacian": 0.05}
    model = SavedModel.of(["laplacian"], law, GRID, Windows.split(41), TIMES, 0.02 * VELOCITY)
    u0 = 0.1 + 0.5 * np.exp(-((GRID.x - 5) ** 2)[None, :] - ((GRID.y - 5) ** 2)[:, None])
    rollout = model.simulate(u0, np.linspace(10.0, 16.0, 13))
    assert not rollout.failed
    assert rollout.values.shape == (13, 20, 24)
    still = model.simulate(u0, np.linspace(10.0, 16.0, 13), "none")
    assert np.abs(rollout.values - still.values).max() > 1e-3


def test_numerical_diffusion_becomes_part_of_the_law() -> None:
    model = make(rollout=RolloutSettings(viscosity=0.01, boundary="periodic", clip="off"))
    assert model.value("laplacian") == pytest.approx(0.68)
    np.testing.assert_allclose(model.draws[:, 1], [0.67, 0.69])
    assert (model.boundary, model.clip) == ("periodic", "off")
    bare = SavedModel.of(
        ["u"], {"u": 0.1}, GRID, Windows.split(41), TIMES, VELOCITY, rollout=RolloutSettings(viscosity=0.01)
    )
    assert bare.value("laplacian") == 0.01


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = make().save(tmp_path / "model.json")
    before = target.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="cannot write"):
        make().save(tmp_path / "missing" / "model.json")
    assert target.read_text(encoding="utf-8") == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def change(path: str, value: Any) -> str:
    """Change one entry of a good file."""
    content = json.loads(make().to_json())
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = content
    for part in way:
        place = place[part]
    place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "schema"),
        ('{"schema": "other"}', "schema"),
        (change("schema", "video2pde-result"), "schema"),
        (change("version", 2), "version 2"),
        (change("terms.0.value", float("nan")), "NaN"),
        (change("terms.0.value", float("inf")), "Infinity"),
        (change("terms.0.value", 10**400), "not a valid model"),
        (change("terms.0.value", "9.0"), "terms.0.value"),
        (change("terms.0.low", 100.0), "interval"),
        (change("terms.0.units", "mm\nimport os"), "letters, digits and simple signs"),
        (change("grid.unit", "}\\input{secret}"), "letters, digits and simple signs"),
        (change("terms.0.name", "drift x"), "cannot name a term"),
        (change("terms.2.name", "laplacian"), "not the catalogue's"),
        (change("terms.2.parts.0.density", "__import__('os').system('id')"), "not allowed"),
        (change("terms.2.parts.0.density", "u.__class__"), "not allowed"),
        (change("terms.2.parts.0.density", "v_x*u"), "drift"),
        (change("terms.2.parts.0.density", "u**9"), "8"),
        (change("terms.2.parts.0.density", "(u + u_x + u_y)**8*(u - u_x*u_y)**8"), "degree"),
        (change("terms.2.parts.0.density", "u" * 300), "density"),
        (change("terms.2.parts.0.derivative", "xxxxxx"), "derivative"),
        (change("terms.2.parts", []), "parts"),
        (change("terms.2.surprise", 1), "surprise"),
        (change("drift.times.3", 0.0), "increase"),
        (change("drift.velocity", [[0.0, 0.0]]), "41 times for 1"),
        (change("drift.scale", [1.0]), "drift.scale"),
        (change("grid.ny", 10**9), "grid.ny"),
        (change("grid.width", -1.0), "grid.width"),
        (change("grid.pitch", "corners"), "pitch"),
        (change("boundary", "sticky"), "boundary"),
        (change("draws.0", [1.0]), "1 coefficients for 3 terms"),
        (change("windows.train_end", 400), "windows"),
        (change("provenance.sha256", "zz"), "sha256"),
        (change("noise", -1.0), "noise"),
    ],
)
def test_broken_and_hostile_files_are_refused_with_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        SavedModel.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_what_is_not_a_file_of_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model file"):
        SavedModel.load(tmp_path / "nothing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00model")
    with pytest.raises(InputError, match="cannot read"):
        SavedModel.load(tmp_path / "binary.json")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(70_000_000)
    with pytest.raises(InputError, match="64 MB"):
        SavedModel.load(tmp_path / "large.json")


def test_the_recording_settings_of_a_file_are_checked_before_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(change("provenance.recording", {"observable": "loud"}), encoding="utf-8")
    with pytest.raises(InputError, match="recording settings"):
        SavedModel.load(path).provenance.recording_settings()
