"""Input that was made to break the program: refused in one line, at once, before memory or time is spent on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile
from recording_files import blot, levels, write_film
from test_cli_errors import one_line

from video2pde import machine
from video2pde.errors import InputError, printable, SettingsError
from video2pde.field import Field, Grid, Provenance, Windows
from video2pde.flow.given import read_velocity
from video2pde.record import load_run
from video2pde.recording import read_field
from video2pde.recording.synth import exact_field, find_preset
from video2pde.settings import load_settings
from video2pde.terms import Term
from video2pde.using import export_model, SavedModel

Command = Callable[..., "subprocess.CompletedProcess[str]"]
FRAMES = levels(blot(30), 16, 235)
SECONDS = 120  # a hang, not a busy machine


class Hangs(BaseException):
    """Nothing catches it: a TimeoutError is an OSError, which counts as a file that cannot be read."""


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """End a test that hangs; on Windows the whole suite's limit has to do."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: object) -> None:
        raise Hangs("the command hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 200 MB left."""
    monkeypatch.setattr(machine, "available_memory", lambda: 200_000_000)


def model_file(path: Path, **changes: object) -> Path:
    grid, times = Grid(12, 12, 24.0, 24.0, "mm"), np.linspace(0, 1, 11)
    law = SavedModel.of(
        ["laplacian"],
        {"laplacian": 0.5},
        grid,
        Windows.split(11),
        times,
        np.zeros((11, 2)),
        draws=np.full((4, 1), 0.5),
    )
    path.write_text(json.dumps({**json.loads(law.to_json()), **changes}), encoding="utf-8")
    return path


# --- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["field", "run", "preview", "apply"])
def test_a_grid_that_does_not_fit_is_refused_by_every_command(quick_cli: Command, tmp_path: Path, command: str) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    first = [model_file(tmp_path / "model.json")] if command == "apply" else []
    out = [] if command == "apply" else ["--out", "out.png" if command == "preview" else "out"]
    said = one_line(quick_cli(command, *first, film, *out, "--grid", "40000,40000", "--quiet"))
    assert "GB of memory" in said
    assert "--grid" in said
    assert not list(tmp_path.glob("out*"))


def test_an_ome_stack_that_declares_a_billion_planes(quick_cli: Command, tmp_path: Path) -> None:
    pixels = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" '
        'DimensionOrder="XYCZT" Type="uint8" SizeX="64" SizeY="48" SizeC="1" SizeZ="1" SizeT="1000000000">'
        '<TiffData IFD="0" PlaneCount="1000000000"/></Pixels></Image></OME>'
    )
    tifffile.imwrite(tmp_path / "film.ome.tif", FRAMES[:3], photometric="minisblack", description=pixels, metadata=None)
    said = one_line(quick_cli("field", tmp_path / "film.ome.tif", "--out", "out", "--fps", "5"))
    assert "declares 1000000000 planes" in said


def test_an_imagej_stack_that_declares_a_billion_frames(quick_cli: Command, tmp_path: Path) -> None:
    text = "ImageJ=1.11a\nimages=1000000000\nframes=1000000000\nfinterval=0.1\n"
    tifffile.imwrite(tmp_path / "film.tif", FRAMES[0], description=text, metadata=None)
    assert "cut short" in one_line(quick_cli("field", tmp_path / "film.tif", "--out", "out"))


@pytest.mark.usefixtures("little_memory")
def test_archives_that_unpack_to_more_than_there_is(quick_cli: Command, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "film.npz", frames=np.zeros((2500, 200, 400), np.uint8))
    np.savez_compressed(tmp_path / "field.npz", values=np.zeros((600, 200, 400), np.float32), meta="", times=[0.0])
    for name in ("film.npz", "field.npz"):
        assert (tmp_path / name).stat().st_size < 1_000_000
        assert "unpacked would need" in one_line(quick_cli("field", tmp_path / name, "--out", "out", "--fps", "5"))


@pytest.mark.usefixtures("little_memory")
def test_a_small_tiff_of_large_pages(quick_cli: Command, tmp_path: Path) -> None:
    page = np.zeros((5000, 5000), np.uint8)
    tifffile.imwrite(tmp_path / "film.tif", np.stack([page, page]), compression="zlib", photometric="minisblack")
    assert (tmp_path / "film.tif").stat().st_size < 1_000_000
    assert "of memory" in one_line(quick_cli("field", tmp_path / "film.tif", "--out", "out", "--fps", "5"))


def test_an_ensemble_and_a_simulation_that_do_not_fit(quick_cli: Command, tmp_path: Path) -> None:
    model, start = model_file(tmp_path / "model.json"), tmp_path / "u0.npy"
    np.save(start, np.zeros((12, 12)))
    said = one_line(quick_cli("simulate", model, "--from", start, "--ensemble", "100000000", "--quiet"))
    assert "--ensemble" in said
    for wrong in (("--duration", "inf"), ("--duration", "1e300"), ("--fps", "inf"), ("--fps", "nan")):
        one_line(quick_cli("simulate", model, "--from", start, *wrong, "--quiet"))
    one_line(quick_cli("simulate", model, "--from", start, "--ensemble", "3", "--seed", "-1", "--quiet"))


# --- what never ends ---------------------------------------------------------------------------------------------

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")


@needs_pipes
def test_a_named_pipe_is_no_file(quick_cli: Command, tmp_path: Path) -> None:
    names = ("film.mp4", "film.npy", "film.npz", "film.tif", "film.gif", "model.json", "settings.toml", "mask.png")
    for name in names:
        os.mkfifo(tmp_path / name)
    film = write_film(tmp_path / "good.mp4", FRAMES)
    for name in names[:5]:
        for command in (("field", name, "--out", "out"), ("preview", name), ("run", name, "--out", "out")):
            assert "pipe or a device" in one_line(quick_cli(*command, "--quiet"))
    assert "pipe" in one_line(quick_cli("export", "model.json", "--to", "latex"))
    assert "pipe" in one_line(quick_cli("field", film, "--out", "out", "--settings", "settings.toml"))
    one_line(quick_cli("field", film, "--out", "out", "--mask", "mask.png", "--quiet"))
    assert "pipe" in one_line(quick_cli("field", film, "--out", "out", "--times", "film.npy", "--quiet"))
    (tmp_path / "run" / "stages").mkdir(parents=True)
    os.mkfifo(tmp_path / "run" / "result.json")
    assert "pipe" in one_line(quick_cli("runs", "run"))
    (tmp_path / "run" / "settings.toml").touch()
    os.mkfifo(tmp_path / "run" / "stages" / "01-recording.npz")
    assert "pipe" in one_line(quick_cli("report", "run"))
    good = model_file(tmp_path / "good.json", provenance={"path": "film.mp4"})
    assert "pipe" in one_line(quick_cli("simulate", good, "--quiet"))
    assert "pipe" in one_line(quick_cli("simulate", good, "--from", "film.npy", "--quiet"))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_device_is_no_file(quick_cli: Command, tmp_path: Path) -> None:
    for name in ("film.mp4", "model.json", "settings.toml"):
        (tmp_path / name).symlink_to("/dev/zero")
    assert "device" in one_line(quick_cli("field", "film.mp4", "--out", "out"))
    assert "device" in one_line(quick_cli("export", "model.json", "--to", "latex"))


@pytest.mark.parametrize(
    ("density", "derivative"),
    [
        ("(u+u_x+u_y+1)**4*(u-u_x*u_y)**2", "xxyy"),
        ("1/(u+u_x+u_y+1)**8/(1+u*u_x)**8", "xxyy"),
        ("exp((u+u_x+u_y+1)**8)", "xxyy"),
        ("(u+u_x+u_y+1)**8*(u-u_x*u_y)**8", ""),
    ],
)
def test_a_density_that_explodes_is_refused(density: str, derivative: str) -> None:
    with pytest.raises(SettingsError, match="summands when it is multiplied out"):
        _ = Term.of("mine", (derivative, density)).strong


def test_densities_of_a_sensible_size_are_not_refused() -> None:
    for density in ("u**8", "u_x**4*u_y**4", "sqrt(1+u_x**2+u_y**2)", "exp(u)*(u_x**2+u_y**2)", "(1-u)*u*(u-0.3)"):
        assert Term.of("mine", ("xxyy", density)).strong != 0


# --- names and units ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ['"', "'", "°", "px~2", "a^b", "%", "Å", "x" * 40])
def test_units_that_are_accepted_reach_the_end(unit: str) -> None:
    law = SavedModel.of(
        ["laplacian", "biharmonic"],
        {"laplacian": 1.0, "biharmonic": -1.0},
        Grid(8, 8, 8.0, 8.0, unit),
        Windows.split(10),
        np.arange(10.0),
        np.zeros((10, 2)),
    )
    assert SavedModel.parse(law.to_json()).grid.unit == unit
    for form in ("latex", "python", "sympy"):
        assert export_model(law, form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scale", ["0.01\\m", "0.01{m}", "0.01$m$", "0.01" + "m" * 41, "1e-30m", "1e30m", "0.01m\x1b[31m"]
)
def test_units_that_the_end_would_refuse_are_refused_at_the_beginning(
    quick_cli: Command, tmp_path: Path, scale: str
) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    said = one_line(quick_cli("field", film, "--out", "out", "--scale", scale, "--quiet"))
    assert "unit" in said
    assert "\x1b" not in said


def test_a_name_that_is_no_utf8_can_be_written_everywhere(tmp_path: Path) -> None:
    strange = os.fsdecode(b"film-\xff\x9b.npy")
    origin = Provenance(path=strange)
    assert origin.path == "film-\\udcff\\udc9b.npy"
    field = Field(np.ones((4, 5, 6)), np.arange(4.0), Grid(5, 6, 1.0, 1.0), provenance=origin)
    assert Field.load(field.save(tmp_path / "field.npz")).provenance.path == origin.path


@pytest.mark.skipif(sys.platform == "win32", reason="names on Windows are Unicode")
def test_a_film_whose_name_is_no_utf8(quick_cli: Command, tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"film-\xff.npy")
    with open(folder, "wb") as file:
        np.save(file, blot(8))
    done = quick_cli("field", os.fsdecode(folder), "--out", "out", "--fps", "5", "--no-figures")
    assert done.returncode == 0, done.stderr
    assert Field.load(tmp_path / "out" / "field.npz").provenance.path.endswith("film-\\udcff.npy")


def test_escape_codes_do_not_reach_the_terminal(quick_cli: Command) -> None:
    said = one_line(quick_cli("field", "film\x1b[2J\x9b31m\u202e.mp4", "--out", "out"))
    assert "\\u001b[2J\\u009b31m\\u202e.mp4" in said
    assert said.isprintable()
    assert json.loads(f'"{printable(chr(27) + chr(0x9B) + chr(0xE0001))}"') == "\x1b\x9b\U000e0001"


@pytest.mark.parametrize("name", ["a/b", "..", "", "a\\b", "a\nb", "x" * 41])
def test_a_library_is_not_called_like_a_path(name: str) -> None:
    with pytest.raises(SettingsError, match="librar"):
        load_settings(overrides={"libraries": {name: ["laplacian"]}})


# --- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", ["--fps=1e300", "--fps=0", "--smooth=1e300", "--set=run.seed=-1", "--set=calibration.seed=-1"]
)
def test_numbers_beyond_sense_are_refused(quick_cli: Command, tmp_path: Path, given: str) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    assert "cannot be" in one_line(quick_cli("field", film, "--out", "out", given))


@pytest.mark.parametrize(
    "given",
    [
        "--seed=-1",
        "--camera-seed=-1",
        "--fps=1e300",
        "--fps=1e6",
        "--fps=1e-9",
        "--duration=inf",
        "--duration=nan",
        "--duration=1e-9",
        "--frames=100000000000",
        "--size=1000000x1000000",
        "--drift=nan,0",
        "--swing=inf",
        "--peak=nan",
        "--noise=nan",
        "--laplacian=1e300",
        "--laplacian=1e6",
        "--deviation=rotation=nan",
        "--deviation=rotation=1e300",
    ],
)
def test_films_that_nobody_can_render_are_refused(quick_cli: Command, tmp_path: Path, given: str) -> None:
    one_line(quick_cli("synth", "C", "--out", "out", "--quiet", given))
    assert not list(tmp_path.iterdir())


def test_a_laboratory_recording_has_a_seed_from_zero_on(quick_cli: Command, tmp_path: Path) -> None:
    assert "seed = -1" in one_line(quick_cli("synth", "frap", "--out", "out", "--seed=-1"))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("little_memory")
def test_a_velocity_that_unpacks_to_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "flow.npz"
    np.savez_compressed(path, u=np.zeros((40, 600, 600)), v=np.zeros((40, 600, 600)))
    with pytest.raises(InputError, match="unpacked would need"):
        read_velocity(path, Grid(8, 8, 1.0, 1.0), (0.0, 1.0))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="cannot be read as arrays"):
        read_velocity(path, Grid(8, 8, 1.0, 1.0), (0.0, 1.0))


def test_values_beyond_single_precision_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "film.npy", 1e300 * blot(8))
    with pytest.raises(InputError, match=r"frame 0 .* beyond ±1e\+18"):
        read_field(tmp_path / "film.npy", load_settings(overrides=["recording.fps=5"]))


def test_an_empty_value_is_not_this_folder(quick_cli: Command, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    assert "'--out' is empty" in one_line(quick_cli("field", film, "--out", ""))
    assert "'--out' is empty" in one_line(quick_cli("field", film, "--out="))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.mp4"]


# --- damaged files -----------------------------------------------------------------------------------------------


def broken_files(folder: Path) -> list[Path]:
    """Files whose beginning is right and whose rest is not."""
    np.savez_compressed(folder / "good.npz", frames=blot(8))
    data = bytearray((folder / "good.npz").read_bytes())
    for number, place in enumerate((30, 60, len(data) // 2, len(data) - 30, len(data) - 12)):
        changed = bytearray(data)
        changed[place : place + 8] = b"\xff" * 8
        (folder / f"damaged{number}.npz").write_bytes(changed)
    with zipfile.ZipFile(folder / "odd.npz", "w") as archive:
        archive.writestr(
            "frames.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 4, 4), }"
        )
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 8, 8), }".ljust(117) + "\n"
    (folder / "negative.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + bytes(512))
    (folder / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    for name, text in {
        "imagej": "ImageJ=1.11a\nimages=abc\nfinterval=x\n",
        "ome": '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image',
        "ome-numbers": '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">'
        '<Pixels ID="P:0" DimensionOrder="XYCZT" Type="uint8" SizeX="64" SizeY="48" SizeC="one" SizeZ="1" SizeT="3" '
        'TimeIncrement="soon"><TiffData/></Pixels></Image></OME>',
    }.items():
        tifffile.imwrite(folder / f"{name}.tif", FRAMES[:3], photometric="minisblack", description=text, metadata=None)
    (folder / "good.npz").unlink()
    return sorted(folder.iterdir())


def test_damaged_files_are_bad_input_and_not_unexpected(quick_cli: Command, tmp_path: Path) -> None:
    for file in broken_files(tmp_path):
        done = quick_cli("field", file, "--out", tmp_path / "out", "--fps", "5", "--quiet", "--no-figures")
        assert done.returncode in (0, 2), (file.name, done.stderr)
        assert "unexpected" not in done.stderr, (file.name, done.stderr)
        assert "Traceback" not in done.stderr, (file.name, done.stderr)


def test_ten_frames_are_given_advice_that_works(quick_cli: Command, tmp_path: Path) -> None:
    case = find_preset("C")
    field = exact_field(case, Grid(24, 24, 200.0, 200.0), np.linspace(0, case.duration, 61)[:10])
    np.save(tmp_path / "film.npy", 1 - field.values)
    few = ("--set=identifiability.stability_runs=3", "--set=weak.test_functions=100")
    done = quick_cli("discover", "film.npy", "--out", "out", "--preset", "quick", "--fps", "2", *few)
    assert done.returncode == 0, done.stderr
    assert any("tell little about how a law changes in time" in text for text in load_run(tmp_path / "out").warnings)


# --- the terminal and the folders ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8"])
def test_a_console_of_few_signs_shows_the_equation(cli: Command, encoding: str) -> None:
    done = cli(
        "synth", "--list", env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}, encoding=encoding
    )
    assert done.returncode == 0, done.stderr
    assert ("∇u" if encoding == "utf-8" else "grad u") in done.stdout


def test_a_preview_of_this_folder_is_not_written_among_its_frames(quick_cli: Command, tmp_path: Path) -> None:
    from PIL import Image

    for number, frame in enumerate(FRAMES[:4]):
        Image.fromarray(frame).save(tmp_path / f"{number}.png")
    done = quick_cli("preview", ".", "--fps", "5", "--quiet")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "1.png", "2.png", "3.png"]
    (tmp_path.parent / f"{tmp_path.name}-preview.png").unlink()


def test_what_a_killed_command_left_is_removed(quick_cli: Command, tmp_path: Path) -> None:
    film = write_film(tmp_path / "film.mp4", FRAMES)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mine = tmp_path / f".video2pde-{os.getpid()}-abc"
    for folder in (tmp_path / f".video2pde-{gone.pid}-abc", mine):
        folder.mkdir()
        (folder / "field.npz").touch()
    assert quick_cli("field", film, "--out", "out.npz", "--quiet").returncode == 0
    assert [path.name for path in tmp_path.glob(".video2pde-*")] == [mine.name]


def test_python_m_is_the_command(cli: Command) -> None:
    done = subprocess.run([sys.executable, "-m", "video2pde", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == cli("--version").stdout
