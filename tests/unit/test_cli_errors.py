"""Bad input on the command line: exit status 2, one line, no traceback, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from recording_files import blot, cut_short, levels, write_film

Command = Callable[..., subprocess.CompletedProcess[str]]
FRAMES = levels(blot(30), 16, 235)
NOISY = (FRAMES.astype(int) + np.random.default_rng(5).integers(-8, 9, FRAMES.shape)).clip(16, 235).astype(np.uint8)


def one_line(done: subprocess.CompletedProcess[str], status: int = 2) -> str:
    """Assert that a command failed as it should, and return what it said."""
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in done.stderr
    return lines[0]


def empty(folder: Path) -> Path:
    (folder / "film.mp4").touch()
    return folder / "film.mp4"


def words(folder: Path) -> Path:
    (folder / "film.mp4").write_text("only words\n" * 50)
    return folder / "film.mp4"


def cut_mp4(folder: Path) -> Path:
    film = write_film(folder / "film.mp4", NOISY, container_options={"movflags": "faststart"})
    return cut_short(film, 0.6)


def cut_avi(folder: Path) -> Path:
    return cut_short(write_film(folder / "film.avi", NOISY), 0.6)


def cut_gif(folder: Path) -> Path:
    pictures = [Image.fromarray(frame) for frame in NOISY]
    pictures[0].save(folder / "film.gif", save_all=True, append_images=pictures[1:], duration=50)
    return cut_short(folder / "film.gif", 0.6)


def cut_tiff(folder: Path) -> Path:
    with tifffile.TiffWriter(folder / "film.tif") as writer:
        for frame in NOISY:
            writer.write(frame, contiguous=False, photometric="minisblack")
    return cut_short(folder / "film.tif", 0.6)


def no_frames(folder: Path) -> Path:
    np.save(folder / "film.npy", np.zeros((0, 8, 8)))
    return folder / "film.npy"


def with_nan(folder: Path) -> Path:
    values = blot()
    values[3, 2, 1] = np.nan
    np.save(folder / "film.npy", values)
    return folder / "film.npy"


def constant(folder: Path) -> Path:
    return write_film(folder / "film.mp4", np.full((10, 48, 64), 100, np.uint8))


def strange_codec(folder: Path) -> Path:
    film = write_film(folder / "film.mp4", FRAMES)
    film.write_bytes(film.read_bytes().replace(b"avc1", b"zq9x"))
    return film


def missing(folder: Path) -> Path:
    return folder / "nowhere.mp4"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (missing, "no such recording"),
        (empty, "is empty"),
        (words, "cannot be read as"),
        (cut_mp4, "frames are readable"),
        (cut_avi, "frames are readable"),
        (cut_gif, "frames are readable"),
        (cut_tiff, "frames are readable"),
        (no_frames, "no frames"),
        (with_nan, "NaN"),
        (constant, "is constant"),
        (strange_codec, "codec"),
    ],
)
def test_a_bad_recording(cli: Command, tmp_path: Path, make: Callable[[Path], Path], says: str) -> None:
    film = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    line = one_line(cli("field", film, "--out", "out/deep", "--fps", 10))
    assert says in line
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("make", [cut_mp4, cut_avi, cut_gif, cut_tiff])
def test_a_truncated_recording_can_be_used_on_demand(
    quick_cli: Command, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    done = quick_cli("field", make(tmp_path), "--out", "part.npz", "--fps", 10, "--allow-truncated")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "part.npz").exists()
    assert "the readable frames were used" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--crop", "30,0,40,20"], "crop"),
        (["--crop", "-1,0,40,20"], "crop"),
        (["--crop", "1,2,3"], "recording.crop"),
        (["--crop", "left"], "recording.crop"),
        (["--grid", "2,2"], "recording.grid"),
        (["--smooth", "-1"], "recording.smooth"),
        (["--border", "wide"], "recording.border"),
        (["--observable", "drak"], "recording.observable"),
        (["--scale", "5"], "such as 0.05mm"),
        (["--every", "0"], "recording.every"),
        (["--preset", "papr"], "did you mean 'paper'"),
        (["--set", "recording.smoth=1"], "did you mean 'smooth'"),
        (["--set", "smooth"], "section.key=value"),
        (["--settings", "none.toml"], "none.toml"),
        (["--settings", "broken.toml"], "not valid TOML"),
        (["--smoth", "1"], "--smooth"),
        (["--mask", "u>7"], "mask"),
    ],
)
def test_bad_options(quick_cli: Command, tmp_path: Path, options: list[str], says: str) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    (tmp_path / "broken.toml").write_text("[recording\n")
    assert says in one_line(quick_cli("field", film, "--out", "out", *options))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.toml", "film.mp4"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["feild", "film.mp4"], "field"),
        (["field"], "FILM"),
        (["field", "film.mp4"], "--out"),
        (["synth"], "synth --list"),
        (["synth", "Z", "--out", "out"], "no case is called 'Z'"),
        (["synth", "C", "--out", "out", "--size", "97x64"], "even numbers"),
        (["synth", "C", "--out", "out", "--crf", "99"], "crf"),
        (["synth", "C", "--out", "out", "--crf", "good"], "crf"),
        (["synth", "C", "--out", "out", "--laplacian", "-1"], "ill-posed"),
        (["synth", "demo", "--out", "out", "--u", "1"], "--u cannot be given"),
        (["preview", "none.mp4"], "no such recording"),
    ],
)
def test_wrong_commands(quick_cli: Command, tmp_path: Path, arguments: list[str], says: str) -> None:
    assert says in one_line(quick_cli(*arguments))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.posix
def test_an_output_that_cannot_be_written_is_refused_before_any_work(quick_cli: Command, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    (tmp_path / "file").write_text("mine")
    assert "it is a file" in one_line(quick_cli("field", film, "--out", "file"))
    assert "file" in one_line(quick_cli("field", film, "--out", "file/out"))
    assert "/proc/none" in one_line(quick_cli("field", film, "--out", "/proc/none/out"))
    assert "/proc/none" in one_line(quick_cli("synth", "A", "--out", "/proc/none/out"))
    assert "cannot write" in one_line(quick_cli("preview", film, "--out", "/proc/none.png", "--quiet"))
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "film.mp4"]


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="the superuser may write everywhere")
def test_no_permission_to_write(cli: Command, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "ermission" in one_line(cli("field", film, "--out", "locked/out"))


def _limit_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.posix
def test_a_full_disk_leaves_what_was_there(cli: Command, tmp_path: Path) -> None:
    """A limit on file size fails a write half-way, as a full disk does."""
    film = write_film(tmp_path / "film.mp4", FRAMES)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "field.npz").write_text("what was there before")
    done = cli("field", film, "--out", "out", "--quiet", preexec_fn=_limit_files)
    assert "File too large" in one_line(done)
    assert (tmp_path / "out" / "field.npz").read_text() == "what was there before"
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["field.npz"]
    assert "cannot write" in one_line(
        cli("synth", "A", "--out", "new", "--quiet", "--noise", "0.1", "--size", "320x240", preexec_fn=_limit_files)
    )
    assert not (tmp_path / "new").exists()


def test_debugging_shows_the_traceback(cli: Command) -> None:
    done = cli("field", "none.mp4", "--out", "out", env={**os.environ, "VIDEO2PDE_DEBUG": "1"})
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.posix
def test_an_interrupt_ends_with_130_and_leaves_nothing(command_line: Callable[..., list[str]], tmp_path: Path) -> None:
    command = command_line("synth", "A", "--out", "out", "--frames", 20_000, "--size", "640x480")
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not any(tmp_path.glob(".video2pde-*/.film*")):  # the film is being written
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
