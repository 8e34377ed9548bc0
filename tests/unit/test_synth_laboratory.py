"""Laboratory recordings of known truth: the files are there, and the fields in them obey the law they state."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import tifffile

from video2pde.cli import main
from video2pde.cli.options import RecordingOptions, SettingsOptions
from video2pde.errors import InputError
from video2pde.recording import read_field
from video2pde.recording.synth import LABORATORY, write_laboratory
from video2pde.recording.synth.laboratory import _bleached_half, name_time
from video2pde.settings import RecordingSettings


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, tuple[Path, dict]]:
    found = {}
    for name in LABORATORY:
        folder = tmp_path_factory.mktemp(name)
        path = write_laboratory(name, folder)
        found[name] = (path, json.loads((folder / "truth.json").read_text(encoding="utf-8")))
    return found


def test_every_recording_is_written_with_its_truth(written) -> None:
    for name, (path, truth) in written.items():
        assert path.exists(), name
        assert truth["case"] == name
        assert truth["law"]["laplacian"] > 0


def test_times_are_named_as_people_name_them() -> None:
    named = {0: "0s", 10: "10s", 60: "1m", 90: "1m30s", 7200: "2h", 3661: "1h1m1s"}
    assert {time: name_time(time) for time in named} == named


def test_sheet_recovers_by_diffusion_after_reference_and_dark(written) -> None:
    path, truth = written["frap"]
    names = {file.stem for file in path.iterdir()}
    assert {"prima", "closed", "10s", "1m30s", "6m"} <= names
    prima, dark = (tifffile.imread(path / f"{name}.tif").astype(float) for name in ("prima", "closed"))
    assert prima.dtype == np.float64
    pixel, peak = 0.3185, []
    for time in (3, 10, 20):
        sheet = (tifffile.imread(path / f"{name_time(time)}.tif") - dark) / (prima - dark)
        hole = 1 - sheet / np.exp(-truth["bleaching_rate"] * time)
        still = 0.1 * 0.7 * 9.0**2 / 4 * 2 * np.pi  # what does not move
        mass = hole.sum() * pixel**2
        assert mass == pytest.approx(still + 0.9 * 0.7 * 9.0**2 / 4 * 2 * np.pi, rel=0.08)
        peak.append(hole.max())
    assert peak[0] > peak[1] > peak[2]


def test_front_enters_as_the_error_function(written) -> None:
    path, truth = written["front"]
    field = read_field(path, RecordingSettings(grid=(16, 240)))
    u = field.values.mean(axis=1) - truth["background"]
    x = field.grid.x
    # ∫ u dx = c · 2√(D(t + t₀)/π): the amount that entered grows with the root of time
    entered = u.sum(axis=1) * (x[1] - x[0])
    times = field.times + 3.0
    expected = 0.75 * 2 * np.sqrt(4.0 * times / np.pi)
    assert entered == pytest.approx(expected, rel=0.02)
    assert np.ptp(field.values.mean(axis=(0, 2))) < 0.003


def test_droplet_starts_half_bleached_and_keeps_its_dye() -> None:
    r, angle = np.meshgrid(np.linspace(0, 80, 81), np.linspace(0, 2 * np.pi, 49))
    modes = _bleached_half(80.0, r, angle)
    start = sum(mode for _, mode in modes)
    expected = 0.3 * (1 - np.tanh((r * np.cos(angle) + 10.0) / 12.0))
    assert np.abs(start - expected)[:, 5:76].max() < 0.015
    weight = r / r.sum()
    mass = [sum((mode * np.exp(-12.0 * k2 * t)) for k2, mode in modes) for t in (0.0, 20.0)]
    assert (mass[0][:-1] * weight[:-1]).sum() == pytest.approx((mass[1][:-1] * weight[:-1]).sum(), rel=2e-3)
    later = mass[1]
    assert np.abs(later[:, -1] - later[:, -2]).max() < 1e-3  # flat at the edge: nothing passes


def test_line_keeps_its_dye_and_spreads(written) -> None:
    path, truth = written["profile"]
    lines = tifffile.imread(path) / truth["white"] - 0.1
    x = (np.arange(lines.shape[1]) + 0.5) * 0.5
    total = lines.sum(axis=1) * 0.5
    assert total == pytest.approx(np.full(len(lines), 17.0), rel=0.03)
    mean = (lines * x).sum(axis=1) / lines.sum(axis=1)
    variance = (lines * (x - mean[:, None]) ** 2).sum(axis=1) / lines.sum(axis=1)
    slope = np.polyfit(np.linspace(0, 60, len(lines)), variance, 1)[0]
    assert slope == pytest.approx(2 * truth["law"]["laplacian"], rel=0.1)


def test_few_pictures_come_with_a_table_of_times(written) -> None:
    path, truth = written["few"]
    rows = (path.parent / "times.csv").read_text(encoding="utf-8").split()
    assert rows[0] == "file,time"
    assert [float(row.split(",")[1]) for row in rows[1:]] == truth["times"]
    assert sorted(file.name for file in path.iterdir()) == [row.split(",")[0] for row in rows[1:]]


def test_every_recording_is_read_with_the_arguments_of_its_truth(written, monkeypatch) -> None:
    for name, (path, truth) in written.items():
        monkeypatch.chdir(path.parent)
        given = RecordingOptions(**_flags(truth["arguments"]))
        field = read_field(path, SettingsOptions(set=_sets(truth["arguments"])).load(given).recording)
        assert len(field) > 10, name
        assert (field.mask is not None) == (name in ("front", "droplet")), name


def _flags(arguments: str) -> dict[str, str]:
    """The options of the recording among a command line's arguments."""
    words = shlex.split(arguments)
    pairs = {flag[2:]: value for flag, value in itertools.pairwise(words) if flag.startswith("--")}
    return {name: value for name, value in pairs.items() if name not in ("set", "preset", "drift")}


def _sets(arguments: str) -> tuple[str, ...]:
    return tuple(value for flag, value in itertools.pairwise(shlex.split(arguments)) if flag == "--set")


def test_diffusion_can_be_chosen(tmp_path: Path) -> None:
    assert main(["synth", "profile", "--out", str(tmp_path / "slow"), "--laplacian", "1.5", "--seed", "3"]) == 0
    truth = json.loads((tmp_path / "slow" / "truth.json").read_text(encoding="utf-8"))
    assert truth["law"] == {"laplacian": 1.5}
    with pytest.raises(InputError, match="3 times less or more"):
        write_laboratory("profile", tmp_path, diffusion=30.0)


def test_command_writes_one_and_refuses_options(tmp_path: Path, capsys) -> None:
    assert main(["synth", "profile", "--out", str(tmp_path / "line")]) == 0
    assert str(tmp_path / "line" / "kymograph.tif") in capsys.readouterr().out
    assert main(["synth", "profile", "--out", str(tmp_path / "b"), "--noise", "0.1"]) == 2
    assert "--noise cannot be given" in capsys.readouterr().err
    with pytest.raises(InputError, match="no laboratory recording"):
        write_laboratory("plume", tmp_path)
