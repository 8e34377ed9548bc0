"""When pictures were taken: names, tables, the camera's clock; and what is left out is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from video2pde.errors import InputError
from video2pde.recording import read_field
from video2pde.recording.clock import camera_time, count_in_name, parse_time, time_in_name
from video2pde.recording.source import hash_recording, open_recording
from video2pde.recording.stacks import Stack
from video2pde.settings import RecordingSettings

SHAPE = (12, 16)
PLAIN = RecordingSettings(observable="bright", border=0, white=1000.0)


def picture(level: float) -> np.ndarray:
    return np.round(level * np.linspace(0.5, 1, SHAPE[0] * SHAPE[1]).reshape(SHAPE)).astype(np.uint16)


def folder(path: Path, levels: dict[str, float]) -> Path:
    path.mkdir()
    for name, level in levels.items():
        tifffile.imwrite(path / f"{name}.tif", picture(level))
    return path


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("10s", 10),
        ("1m30s", 90),
        ("2h", 7200),
        ("cell_250ms", 0.25),
        ("exp1 1m30s", 90),
        ("1.5min", 90),
        ("run-2h30m", 9000),
        ("prima", None),
        ("closed", None),
        ("img001", None),
        ("A1m", None),
        ("10seconds", None),
    ],
)
def test_a_time_is_read_from_a_name(name: str, seconds: float | None) -> None:
    assert time_in_name(name) == (None if seconds is None else pytest.approx(seconds))


def test_a_count_is_read_from_a_name() -> None:
    assert count_in_name("img_t0005_c1") == 5
    assert count_in_name("set05") is None


@pytest.mark.parametrize(("text", "seconds"), [("12.5", 12.5), ("1 min 30 s", 90), ("0:01:30.5", 90.5), ("soon", None)])
def test_a_time_is_read_from_a_table(text: str, seconds: float | None) -> None:
    assert parse_time(text) == seconds


def test_names_that_are_times_give_order_and_leave_the_rest_out(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"1m": 600, "10s": 500, "1m30s": 700, "20s": 550, "flat": 1000, "dark": 10})
    field = read_field(where, PLAIN)
    assert field.times == pytest.approx([10, 20, 60, 90])
    assert field.values.mean(axis=(1, 2)) == pytest.approx(np.array([0.5, 0.55, 0.6, 0.7]) * 0.75, abs=1e-3)
    notes = " ".join(field.provenance.notes)
    assert "10s.tif 10 s, 20s.tif 20 s, 1m.tif 60 s" in notes
    assert "left out" in notes
    assert "flat.tif" in notes
    assert "dark.tif" in notes


def test_reference_and_dark_inside_the_folder_divide_the_frames(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"10s": 500, "20s": 550, "40s": 600, "flat": 1000, "dark": 0})
    tifffile.imwrite(where / "dark.tif", np.full(SHAPE, 20, np.uint16))
    field = read_field(where, RecordingSettings(observable="bright", border=0, reference="flat", dark="dark.tif"))
    shape = picture(1000).astype(float) - 20
    expected = [(picture(level) - 20.0) / shape for level in (500, 550, 600)]
    assert field.values == pytest.approx(np.array(expected), abs=2e-6)
    assert not any("left out" in note for note in field.provenance.notes)
    ink = read_field(where, RecordingSettings(observable="dark", border=0, reference="flat", dark=20.0))
    assert ink.values == pytest.approx(1 - field.values, abs=1e-6)


def test_the_fingerprint_follows_the_reference(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"10s": 500, "20s": 550, "flat": 1000})
    settings = RecordingSettings(reference="flat")

    def fingerprint() -> str:
        return hash_recording(open_recording(where, settings), settings)

    first = fingerprint()
    tifffile.imwrite(where / "flat.tif", picture(999))
    assert fingerprint() != first


def test_counts_in_names_are_scaled_by_the_frame_rate(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"a_t0001": 500, "a_t0003": 520, "a_t0010": 600})
    assert read_field(where, PLAIN).times == pytest.approx([1, 3, 10])
    fast = PLAIN.model_copy(update={"fps": 2.0})
    assert read_field(where, fast).times == pytest.approx([0.5, 1.5, 5])


def test_a_table_gives_times_and_order(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"b": 500, "a": 600, "c": 700, "flat": 900})
    (tmp_path / "times.csv").write_text("file;time (min)\nb.tif;0\na.tif;1\nc;2.5\n")
    field = read_field(where, PLAIN.model_copy(update={"times": str(tmp_path / "times.csv")}))
    assert field.times == pytest.approx([0, 60, 150])
    assert field.values[0].mean() < field.values[1].mean() < field.values[2].mean()
    (tmp_path / "times.csv").write_text("file,time\nz.tif,0\na.tif,1\n")
    with pytest.raises(InputError, match=r"names z\.tif"):
        read_field(where, PLAIN.model_copy(update={"times": str(tmp_path / "times.csv")}))


def test_a_table_gives_the_times_of_a_stack(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "s.tif", np.stack([picture(level) for level in (500, 600, 700)]), photometric="minisblack"
    )
    (tmp_path / "t.csv").write_text("time\n0\n4\n10\n")
    settings = PLAIN.model_copy(update={"times": str(tmp_path / "t.csv")})
    assert read_field(tmp_path / "s.tif", settings).times == pytest.approx([0, 4, 10])
    (tmp_path / "t.csv").write_text("time\n0\n4\n")
    with pytest.raises(InputError, match="gives 2 times for the 3 frames"):
        read_field(tmp_path / "s.tif", settings)


def test_equal_times_are_refused(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"60s": 500, "1m": 550, "2m": 600})
    with pytest.raises(InputError, match="same time, 60 s"):
        read_field(where, PLAIN)


def write_photo(path: Path, level: int, when: str, fraction: str | None = None) -> None:
    photo = Image.fromarray((picture(1000) * (level / 1000) / 4).astype(np.uint8))
    exif = Image.Exif()
    details = {0x9003: when}
    if fraction is not None:
        details[0x9291] = fraction
    exif[0x8769] = details
    photo.save(path, exif=exif, quality=95)


def test_times_from_exif(tmp_path: Path) -> None:
    """Pillow writes the pictures; the names' order is not that of time."""
    where = tmp_path / "f"
    where.mkdir()
    for name, level, when in (("c", 500, "00:00"), ("a", 600, "00:07"), ("b", 700, "01:15")):
        write_photo(where / f"IMG_{name}.jpg", level, f"2024:05:01 12:{when}")
    field = read_field(where, RecordingSettings(observable="bright", border=0))
    assert field.times == pytest.approx([0, 7, 75])
    assert field.values[0].mean() < field.values[1].mean() < field.values[2].mean()
    write_photo(where / "IMG_d.jpg", 800, "2024:05:01 12:01:16", "25")
    assert camera_time(where / "IMG_d.jpg")[0] % 1 == pytest.approx(0.25)  # type: ignore[index]


def test_pictures_without_times_still_need_a_rate(tmp_path: Path) -> None:
    where = folder(tmp_path / "f", {"img1": 500, "img2": 550, "img10": 600})
    with pytest.raises(InputError, match="carries no frame times"):
        read_field(where, PLAIN)
    assert read_field(where, PLAIN.model_copy(update={"fps": 4.0})).times == pytest.approx([0, 0.25, 0.5])


def test_times_and_pixels_from_ome(tmp_path: Path) -> None:
    """tifffile's own OME writer: uneven times of planes, and the size of a pixel."""
    stack = np.stack([picture(level) for level in (500, 600, 700, 750)])
    times = [0.0, 0.5, 2.0, 7.5]
    planes = {"DeltaT": times, "DeltaTUnit": ["min"] * 4, "TheT": [0, 1, 2, 3], "TheC": [0] * 4, "TheZ": [0] * 4}
    metadata = {"axes": "TYX", "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm", "Plane": planes}
    tifffile.imwrite(tmp_path / "x.ome.tif", stack, metadata=metadata, photometric="minisblack")
    field = read_field(tmp_path / "x.ome.tif", PLAIN)
    assert field.times == pytest.approx(60 * np.array(times))
    assert (field.grid.dx, field.grid.unit) == (pytest.approx(0.25), "µm")
    scaled = read_field(tmp_path / "x.ome.tif", PLAIN.model_copy(update={"scale": "2mm"}))
    assert (scaled.grid.dx, scaled.grid.unit) == (pytest.approx(2.0), "mm")


def test_interval_and_pixels_from_imagej(tmp_path: Path) -> None:
    stack = np.stack([picture(level) for level in (500, 600, 700, 750)])
    metadata = {"axes": "TYX", "finterval": 0.2, "unit": "um"}
    tifffile.imwrite(tmp_path / "ij.tif", stack, imagej=True, resolution=(4.0, 4.0), metadata=metadata)
    field = read_field(tmp_path / "ij.tif", PLAIN)
    assert field.times == pytest.approx([0, 0.2, 0.4, 0.6])
    assert (field.grid.dx, field.grid.unit) == (pytest.approx(0.25), "µm")


def test_the_size_of_a_pixel_from_the_tags_of_tiff(tmp_path: Path) -> None:
    """tifffile's own writer: 1 px = 0.65 µm in centimetres; what screens have is no size."""
    stack = np.arange(5 * 8 * 9, dtype=np.uint16).reshape(5, 8, 9)
    per_cm = 10000 / 0.65
    tifffile.imwrite(
        tmp_path / "cm.tif", stack, resolution=(per_cm, per_cm), resolutionunit="CENTIMETER", metadata=None
    )
    tifffile.imwrite(tmp_path / "screen.tif", stack, resolution=(72, 72), resolutionunit="INCH", metadata=None)
    size, unit = Stack(tmp_path / "cm.tif").header.pixel or (0.0, "")
    assert (unit, size) == ("µm", pytest.approx(0.65, rel=1e-5))
    assert Stack(tmp_path / "screen.tif").header.pixel is None
