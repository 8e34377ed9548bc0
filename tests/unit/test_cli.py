"""The command line: help that answers at once, settings from flags, outputs, and where everything is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_files import blot, levels, write_film

from video2pde import __version__
from video2pde.cli.options import RecordingOptions, SettingsOptions, split_numbers
from video2pde.cli.output import staged_folder
from video2pde.errors import InputError
from video2pde.field import Field
from video2pde.settings import load_settings, RecordingSettings

Command = Callable[..., subprocess.CompletedProcess[str]]
HEAVY = ("numpy", "scipy", "pydantic", "sympy", "numba", "jax", "matplotlib", "pandas", "av", "PIL", "tifffile")
WATCH = f"""
import sys
from video2pde.cli import main
status = main(sys.argv[1:])
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return write_film(tmp_path / "film.mp4", levels(blot(), 16, 235))


@pytest.mark.parametrize(
    "arguments", [("--help",), ("field", "--help"), ("synth", "--help"), ("preview", "--help"), ()]
)
def test_help_teaches_by_examples_and_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", WATCH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "[]"
    assert "    video2pde " in done.stdout


def test_the_watch_on_imports_sees_a_heavy_one() -> None:
    command = [sys.executable, "-c", "import numpy\n" + WATCH, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "['numpy']"


def test_help_takes_less_than_half_a_second(cli: Command) -> None:
    resource = pytest.importorskip("resource")
    cli("--help")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert cli("--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # processor time: what a quiet machine would take, however busy this one is
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_version(quick_cli: Command) -> None:
    assert quick_cli("--version").stdout.strip() == __version__


def test_every_recording_flag_is_a_setting() -> None:
    assert set(RecordingOptions.__dataclass_fields__) <= set(RecordingSettings.model_fields)


@pytest.mark.parametrize(
    ("flag", "text", "expected"),
    [
        ("crop", "1,2,30,40", (1, 2, 30, 40)),
        ("border", "3", 3),
        ("border", "auto", "auto"),
        ("grid", "20,30", (20, 30)),
        ("observable", "bright", "bright"),
        ("scale", "0.05mm", "0.05mm"),
        ("fps", "12.5", 12.5),
        ("start", "4", 4),
        ("stop", "9", 9),
        ("every", "2", 2),
        ("mask", "u>0.3@0", "u>0.3@0"),
        ("mask", "true", "true"),
        ("smooth", "1", 1.0),
        ("allow_truncated", True, True),
    ],
)
def test_a_flag_means_the_same_as_its_setting(flag: str, text: Any, expected: Any) -> None:
    settings = SettingsOptions().load(RecordingOptions(**{flag: text}))
    assert getattr(settings.recording, flag) == expected
    assert settings == load_settings(overrides={f"recording.{flag}": expected})


def test_a_single_value_outdoes_a_flag_and_a_flag_the_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[recording]\nsmooth = 3.0\nevery = 3\nstart = 3\n")
    options = SettingsOptions("paper", file, ("recording.smooth=1.5",))
    chosen = options.load(RecordingOptions(smooth="2", every="2")).recording
    assert (chosen.smooth, chosen.every, chosen.start, chosen.pitch) == (1.5, 2, 3, "nodes")


def test_split_numbers() -> None:
    assert split_numbers("--size", "1920x1080", 2) == (1920, 1080)
    assert split_numbers("--drift", "-0.1,0.2", 2) == (-0.1, 0.2)
    with pytest.raises(InputError, match="--drift 1: give 2 numbers"):
        split_numbers("--drift", "1", 2)


def test_field_writes_all_of_it_and_prints_the_stage_table(cli: Command, film: Path, tmp_path: Path) -> None:
    done = cli("field", film, "--out", "out/deep", "--grid", "24,32", "--netcdf", "--smooth", 0.5)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out" / "deep"
    assert sorted(p.name for p in out.iterdir()) == ["checks.json", "field.nc", "field.npz", "figures", "settings.toml"]
    assert len(list((out / "figures").iterdir())) == 5
    assert Field.load(out / "field.npz").values.shape == (12, 24, 32)
    checks = json.loads((out / "checks.json").read_text())
    assert any("only 12 frames" in line for line in checks["warnings"])
    used = load_settings(file=out / "settings.toml")
    assert used.recording.grid == (24, 32)
    assert used.recording.smooth == 0.5
    assert "smoothed, σ = 0.5" in done.stdout
    assert "written: out/deep/field.npz" in done.stdout
    assert "warning: only 12 frames" in done.stderr
    assert "warning" not in done.stdout
    assert "reading film.mp4: 12 done" in done.stderr
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_field_into_one_file_quietly(quick_cli: Command, film: Path, tmp_path: Path) -> None:
    done = quick_cli("field", film, "--out", "one.npz", "--quiet", "--start", 2, "--every", 2)
    assert done.returncode == 0, done.stderr
    assert len(Field.load(tmp_path / "one.npz")) == 5
    assert all(line.startswith("warning: ") for line in done.stderr.splitlines())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4", "one.npz"]


def test_field_again_keeps_what_others_put_beside_it(quick_cli: Command, film: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    for grid in ("10,12", "11,13"):
        assert quick_cli("field", film, "--out", "out", "--grid", grid, "--no-figures").returncode == 0
    assert Field.load(tmp_path / "out" / "field.npz").grid.shape == (11, 13)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "out" / "figures").exists()


def test_a_field_can_be_read_again(quick_cli: Command, film: Path, tmp_path: Path) -> None:
    assert quick_cli("field", film, "--out", "one.npz").returncode == 0
    done = quick_cli("field", "one.npz", "--out", "two", "--stop", 6)
    assert done.returncode == 0, done.stderr
    assert len(Field.load(tmp_path / "two" / "field.npz")) == 6


def test_preview_prints_an_option_that_field_takes(quick_cli: Command, film: Path, tmp_path: Path) -> None:
    done = quick_cli("preview", film)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "film-preview.png").read_bytes().startswith(b"\x89PNG")
    option, crop = done.stdout.split()
    assert option == "--crop"
    assert len(crop.split(",")) == 4
    assert quick_cli("field", film, "--out", "out.npz", option, crop).returncode == 0
    given = quick_cli("preview", film, "--crop", "1,2,30,20", "--out", "look.png", "--quiet")
    assert given.stdout == "--crop 1,2,30,20\n"
    assert given.stderr == ""
    assert (tmp_path / "look.png").exists()


def test_synth_renders_what_is_asked_for(quick_cli: Command, tmp_path: Path) -> None:
    options = ["--size", "96x64", "--frames", 5, "--duration", 8, "--drift", "-0.1,0.2", "--laplacian", 0.5]
    done = quick_cli(
        "synth", "c", "--out", "known", *options, "--seed", 3, "--noise", 0.01, "--crf", 12, "--container", "mkv"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["known/film.mkv", "known/truth.json"]
    truth = json.loads((tmp_path / "known" / "truth.json").read_text())
    assert truth["law"] == {"grad_squared": 9.005, "laplacian": 0.5}
    assert truth["drift"]["mean"] == [-0.1, 0.2]
    assert (truth["size"], truth["frames"], truth["crf"]) == ([64, 96], 5, 12)
    assert (truth["seed"], truth["camera_seed"], truth["noise"]) == (3, 3, 0.01)
    times = Field.load(_reduce(quick_cli, tmp_path)).times
    assert np.allclose(times, np.linspace(0, 8, 5), atol=1e-3)


def _reduce(cli: Command, folder: Path) -> Path:
    assert cli("field", "known/film.mkv", "--out", "known.npz").returncode == 0
    return folder / "known.npz"


def test_synth_list_names_every_case(quick_cli: Command) -> None:
    cases, laboratory, pairs, deviations = quick_cli("synth", "--list").stdout.split("\n\n")
    names = [line.split()[0] for line in cases.splitlines()]
    assert names == ["A", "B", "C", "C-alt", "Fisher", "drift", "noise", "static", "demo"]
    assert "9.005 |∇u|²" in cases.splitlines()[2]
    assert "frap" in laboratory
    assert "gray-scott" in pairs
    assert "rotation    0.03" in deviations


def test_a_reader_that_goes_away_is_no_error(command_line: Callable[..., list[str]]) -> None:
    process = subprocess.Popen(command_line("synth", "--list"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_staged_folder_moves_only_when_all_went_well(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"

    def fail() -> None:
        with staged_folder(target) as folder:
            (folder / "half").write_text("half")
            raise KeyError("no")

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with staged_folder(target) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "whole").write_text("whole")
    assert (target / "inner" / "whole").read_text() == "whole"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
