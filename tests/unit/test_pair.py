"""Two fields: what is read, refused, written and said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError, SettingsError
from video2pde.estimate import Estimate
from video2pde.field import Grid
from video2pde.pair.calibrate import PairCalibration
from video2pde.pair.discover import criterion, parse_law
from video2pde.pair.evaluate import score_laws
from video2pde.pair.fields import load_arrays, Pair
from video2pde.pair.law import PairLaw
from video2pde.pair.model import export_pair, is_pair_model, PairModel
from video2pde.pair.read import is_pair, read_pair
from video2pde.pair.rollout import roll_out, Scene
from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import Camera, make_system, write_system
from video2pde.recording.synth.systems import POWERS, scaled, System
from video2pde.settings import load_settings, RecordingSettings, RolloutSettings
from video2pde.terms.pairs import PAIR_TERMS
from video2pde.terms.words import coefficient_units, describe

LAW = PairLaw.of({"laplacian": 1.5, "u_w": -0.08}, {"laplacian_w": 0.8, "u_w": -0.08})


def small_pair(frames: int = 12) -> Pair:
    y, x = np.mgrid[0:20, 0:24]
    bump = np.exp(-((x - 11) ** 2 + (y - 8) ** 2) / 30)
    start = np.stack([0.1 + 0.6 * bump, 0.5 - 0.3 * bump])
    times = np.linspace(0.0, 5.0, frames)
    grid = Grid(20, 24, 20.0, 24.0)
    return Pair.of(roll_out(LAW, start, times, Scene(grid, RolloutSettings())).values, times, grid)


def test_terms_say_what_they_are() -> None:
    words = {name: describe(term).text for name, term in PAIR_TERMS.items()}
    assert words["laplacian_w"] == "Δw"
    assert words["u_w_squared"] == "u w²"
    assert coefficient_units(PAIR_TERMS["laplacian_w"], "mm") == "mm²/s"
    assert coefficient_units(PAIR_TERMS["u_w"]) == "1/s"


def test_laws_are_written_and_moved() -> None:
    assert LAW.equation("w").text == "w_t = 0.8 Δw − 0.08 u w"
    assert LAW.moved(2 * LAW.vector).law("u")["laplacian"] == 3.0
    assert LAW.keys[2] == ("w", "laplacian_w")
    assert LAW.runs_forward
    assert not PairLaw.of({"laplacian": 1.0, "laplacian_w": 2.0}, {"laplacian": 2.0, "laplacian_w": 1.0}).runs_forward
    with pytest.raises(SettingsError, match="did you mean 'laplacian'"):
        PairLaw.of({"laplacia": 1.0}, {})


def test_a_named_law_has_two_lists() -> None:
    assert parse_law("laplacian, u_w; laplacian_w") == (("laplacian", "u_w"), ("laplacian_w",))
    for wrong in ("laplacian,u_w", "laplacian;", "laplacian,laplacian;w", "laplacian;vorticity"):
        with pytest.raises(SettingsError):
            parse_law(wrong)


def test_the_criterion_prefers_less_where_nothing_is_gained() -> None:
    assert criterion(1e-3, 3, 40) < criterion(0.99e-3, 4, 40)
    assert criterion(1e-3, 3, 40) > criterion(1e-4, 4, 40)


def test_arrays_are_read_as_they_are(tmp_path: Path) -> None:
    pair = small_pair()
    file = pair.save(tmp_path / "two.npz")
    read = load_arrays(file, ("u", "w"))
    np.testing.assert_array_equal(read.values, pair.values)
    assert read.grid == pair.grid
    settings = load_settings(overrides={"recording.channels": ["u", "w"], "recording.stop": 6})
    assert is_pair(settings)
    assert not is_pair(load_settings())
    assert len(read_pair(file, settings).pair) == 6
    with pytest.raises(InputError, match="holds no array 'v'"):
        load_arrays(file, ("u", "v"))


def test_one_field_is_not_taken_for_two(tmp_path: Path) -> None:
    """What runs one field alone says so, instead of leaving the second one out."""
    file = small_pair().save(tmp_path / "two.npz")
    settings = load_settings(overrides={"recording.channels": ["u", "w"], "refinement.enabled": False})
    with pytest.raises(InputError, match="name two fields"):
        run_pipeline(file, tmp_path / "out", settings)


def test_fields_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    pair = small_pair()
    with pytest.raises(InputError, match="do not fit together"):
        Pair(pair.u, pair.w.frames(slice(0, 5)))
    np.savez(tmp_path / "shapes.npz", u=np.zeros((3, 4, 4)), w=np.zeros((3, 4, 5)), dt=1.0)
    with pytest.raises(InputError, match="both must be"):
        load_arrays(tmp_path / "shapes.npz", ("u", "w"))
    both = load_settings(overrides={"recording.channels": ["r", "g"], "recording.second": "other.mp4"})
    with pytest.raises(InputError, match="give one"):
        read_pair(tmp_path / "film.mp4", both)


@pytest.mark.parametrize("form", ["4:2:0", "4:4:4", "tif"])
def test_recordings_of_two_fields_are_read_back(form: str, tmp_path: Path) -> None:
    """Red is u and green is w, in their places: the mean of each block, to a hundredth."""
    system = System("tiny", "", {"laplacian": 1.0}, {"laplacian_w": 1.0}, _tilted, 2.0, spacing=5.0, step=0.5)
    path = write_system(system, tmp_path, Camera(size=(64, 64), frames=5, noise=0.0, crf=10), form)
    truth = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert truth["fields"]["w"] == {"laplacian_w": 1.0}
    channels = [1, 2] if form == "tif" else ["r", "g"]
    more = {"recording.white": 60000} if form == "tif" else {}
    settings = load_settings(
        overrides={"recording.channels": channels, "recording.observable": "bright", "recording.grid": [16, 16], **more}
    )
    pair = read_pair(path, settings).pair
    y, x = (np.arange(16) + 0.5) / 16 * 200 - 100, (np.arange(16) + 0.5) / 16 * 200 - 100
    u, w = _tilted(y[:, None], x[None, :], np.random.default_rng(0))
    inner = (slice(3, -3), slice(3, -3))
    assert np.abs(pair.u.values[0] - u)[inner].max() < 0.015
    assert np.abs(pair.w.values[0] - w)[inner].max() < 0.015
    assert np.abs(pair.u.values[0] - w)[inner].max() > 0.1


def _tilted(y: np.ndarray, x: np.ndarray, _: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return 0.5 + 0.2 * np.sin(np.pi * x / 200) + 0.0 * y, 0.4 + 0.0 * x - 0.15 * np.sin(np.pi * y / 200)


def test_a_scaled_law_says_the_same() -> None:
    """A reaction in u and w, and the same in 0.3 + 0.6 u and 0.1 + 3 w, at one place."""
    law = {"u": -0.1, "u_squared": 1.3, "u_cubed": -1.2, "w": -0.7, "u_squared_w": 0.4, "constant": 0.05}
    u, w = 0.37, 0.12
    rate = sum(c * u ** POWERS[n][0] * w ** POWERS[n][1] for n, c in law.items())
    shown = scaled(law, "u", (0.3, 0.6), (0.1, 3.0))
    a, b = 0.3 + 0.6 * u, 0.1 + 3.0 * w
    assert sum(c * a ** POWERS[n][0] * b ** POWERS[n][1] for n, c in shown.items()) == pytest.approx(0.6 * rate)


def test_scores_tell_a_law_from_persistence() -> None:
    pair = small_pair()
    laws = {"right": LAW, "wrong": LAW.moved(-0.2 * LAW.vector)}
    scores = score_laws(pair, slice(8, 12), {"right": laws["right"]}, load_settings(overrides={"run.workers": 1}))
    assert scores.laws["right"].skill > 0.9
    assert scores.persistence.skill == 0.0


def make_model(pair: Pair) -> PairModel:
    estimates = {f: {n: Estimate(v, v - 0.01, v + 0.01) for n, v in LAW.law(f).items()} for f in ("u", "w")}
    found = PairCalibration(
        "system 1", LAW, estimates, np.zeros((0, 4)), (), (1.0, 1.0), pair.values[:, 0], True, "", 1
    )
    return PairModel.of(found, pair, RolloutSettings(), "law", RecordingSettings())


def test_the_model_file_is_read_back_and_checked(tmp_path: Path) -> None:
    pair = small_pair()
    model = make_model(pair)
    file = model.save(tmp_path / "model.json")
    assert is_pair_model(file)
    assert PairModel.load(file).law == LAW
    found = model.simulate(pair.values[:, 0].astype(float), pair.times)
    assert np.abs(found.values - pair.values).max() < 1e-5
    broken = file.read_text(encoding="utf-8").replace('"u_w"', '"u_v"')
    (tmp_path / "broken.json").write_text(broken, encoding="utf-8")
    with pytest.raises(SettingsError, match="no term 'u_v'"):
        PairModel.load(tmp_path / "broken.json")


def test_the_exported_script_computes_the_same(tmp_path: Path) -> None:
    pair = small_pair()
    script = tmp_path / "law.py"
    script.write_text(export_pair(make_model(pair), "python"), encoding="utf-8")
    np.savez(tmp_path / "start.npz", u=pair.u.values[0], w=pair.w.values[0])
    command = [sys.executable, str(script), str(tmp_path / "start.npz"), "--duration", "5", "--frames", "12"]
    subprocess.run([*command, "--out", str(tmp_path / "out.npz")], check=True, capture_output=True)
    with np.load(tmp_path / "out.npz") as found:
        assert np.abs(found["u"] - pair.u.values).max() < 1e-4
        assert np.abs(found["w"] - pair.w.values).max() < 1e-4
        assert np.abs(found["u"][-1] - pair.u.values[0]).max() > 0.02
    assert r"\begin{array}" in export_pair(make_model(pair), "latex")
    with pytest.raises(InputError, match="latex, python, json"):
        export_pair(make_model(pair), "pypde")


def test_systems_are_checked() -> None:
    with pytest.raises(InputError, match="no system of two fields"):
        make_system("brusselator")
    with pytest.raises(InputError, match="must not be negative"):
        System("x", "", {"laplacian": -1.0}, {}, _tilted, 1.0)
