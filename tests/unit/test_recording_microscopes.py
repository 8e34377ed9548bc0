"""Files of microscopes (ND2, CZI, LIF): frames, times, channels, depth and pixel size as the file has them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from microscope_files import write_czi, write_lif, write_nd2

from video2pde.errors import InputError
from video2pde.recording import read_field
from video2pde.recording.base import DamagedError
from video2pde.recording.source import open_recording
from video2pde.settings import RecordingSettings

TIMES = [0.0, 0.5, 1.5, 2.0, 4.0]
PITCH = 0.32
NAMES = ("Green", "Red")
PACKAGES = {"nd2": "nd2", "czi": "czifile", "lif": "liffile"}
KINDS = tuple(PACKAGES)


def stack(depth: int = 2, channels: int = 2, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint16]]:
    shape = (len(TIMES), depth, channels, 6, 9)
    return np.random.default_rng(seed).integers(1, 60000, shape).astype(np.uint16)


def write(kind: str, folder: Path, values: np.ndarray[Any, Any], times: list[float] = TIMES) -> Path:
    """Write a file of this kind; skip where nothing here reads it."""
    pytest.importorskip(PACKAGES[kind])
    path = folder / f"cells.{kind}"
    names = NAMES[: values.shape[2]]
    if kind == "lif":
        write_lif(path, {"FRAP": values}, PITCH, times, names)
    else:
        writers: dict[str, Callable[..., None]] = {"czi": write_czi, "nd2": write_nd2}
        writers[kind](path, values, PITCH, times, names)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_microscope_wrote_is_read(kind: str, tmp_path: Path) -> None:
    values = stack()
    recording = open_recording(write(kind, tmp_path, values), RecordingSettings(z=2)).mixed((0.0, 1.0))
    header = recording.header
    assert (header.height, header.width, header.frames, header.timed) == (6, 9, 5, True)
    assert header.channels == NAMES
    assert header.pixel is not None
    assert header.pixel == (pytest.approx(PITCH), "µm")
    assert "plane 2 of 2 in depth (Z)" in header.notes
    frames = list(recording.frames())
    assert [frame.time for frame in frames] == pytest.approx(TIMES)
    assert np.array_equal([frame.picture for frame in frames], values[:, 1, 1])
    first, second = next(recording.pairs(1))
    assert np.array_equal([first, second], values[:2, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_has_its_times_and_lengths(kind: str, tmp_path: Path) -> None:
    values = stack(depth=1)
    path = write(kind, tmp_path, values)
    field = read_field(path, RecordingSettings(channel="Green", observable="bright"))
    assert field.times == pytest.approx(TIMES)
    assert (field.grid.unit, field.grid.dx) == ("µm", pytest.approx(PITCH))
    seen = np.stack([field.values[k].ravel() for k in range(5)])
    assert np.corrcoef(seen.ravel(), values[:, 0, 0].ravel())[0, 1] > 0.999
    with pytest.raises(InputError, match="2 planes in depth"):
        read_field(write(kind, tmp_path, stack()), RecordingSettings())


@pytest.mark.parametrize("kind", KINDS)
def test_without_rising_times_a_rate_is_asked_for(kind: str, tmp_path: Path) -> None:
    path = write(kind, tmp_path, stack(1, 1), [0.0] * 5)
    assert not open_recording(path).header.timed
    assert open_recording(path).header.channels == ()


def test_one_of_several_series(tmp_path: Path) -> None:
    pytest.importorskip("liffile")
    path = tmp_path / "project.lif"
    series = {"Overview": stack(1, 1)[:1], "Pre": stack(1, 1, 1), "Post": stack(1, 1, 2)}
    write_lif(path, series, PITCH, TIMES, NAMES)
    with pytest.raises(InputError, match=r"choose one with --series \(1: Overview, 2: Pre, 3: Post\)"):
        _ = open_recording(path).header
    for asked in ("Post", 3):
        recording = open_recording(path, RecordingSettings(series=asked))
        assert "series 'Post'" in recording.header.notes
        assert np.array_equal(next(iter(recording.frames())).picture, series["Post"][0, 0, 0])
    with pytest.raises(InputError, match="no series 'Bleach'"):
        _ = open_recording(path, RecordingSettings(series="Bleach")).header
    write_lif(path, {"Overview": series["Overview"], "Post": series["Post"]}, PITCH, TIMES, NAMES)
    assert open_recording(path).header.frames == 5  # the only one taken over time


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_reader_is_named_with_its_extra(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"cells.{kind}"
    path.write_bytes(b"0123456789")
    monkeypatch.setitem(sys.modules, PACKAGES[kind], None)
    with pytest.raises(
        InputError, match=rf"needs the package {PACKAGES[kind]}: pip install 'video2pde\[microscopes\]'"
    ):
        _ = open_recording(path).header


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    path = write(kind, tmp_path, stack(1, 1))
    whole = path.read_bytes()
    path.write_bytes(b"\0" * 200 + whole[200:])
    with pytest.raises(InputError, match="cannot be read as") as told:
        _ = open_recording(path).header
    assert "\n" not in str(told.value)
    for keep in (len(whole) // 2, len(whole) - 60, 30):
        path.write_bytes(whole[:keep])
        with pytest.raises(InputError):
            list(open_recording(path).frames())


def test_frames_that_an_nd2_has_lost_are_not_black(tmp_path: Path) -> None:
    path = write("nd2", tmp_path, np.where(np.arange(5)[:, None, None, None, None] == 3, 0, stack(1, 1)))
    with pytest.raises(DamagedError, match="3 of 5 frames are readable"):
        list(open_recording(path).frames())


def test_what_the_library_of_zeiss_writes_is_read(tmp_path: Path) -> None:
    czi = pytest.importorskip("pylibCZIrw.czi")
    pytest.importorskip("czifile")
    path, values = tmp_path / "zen.czi", stack(2, 2)
    with czi.create_czi(str(path)) as file:
        for t, z, c in np.ndindex(values.shape[:3]):
            file.write(data=values[t, z, c][..., None], plane={"T": t, "Z": z, "C": c})
        file.write_metadata(scale_x=PITCH * 1e-6, scale_y=PITCH * 1e-6, channel_names=dict(enumerate(NAMES)))
    recording = open_recording(path, RecordingSettings(z=2)).mixed((0.0, 1.0))
    assert recording.header.channels == NAMES
    assert recording.header.pixel == (pytest.approx(PITCH), "µm")
    assert np.array_equal([frame.picture for frame in recording.frames()], values[:, 1, 1])
