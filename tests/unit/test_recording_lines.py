"""Recordings of one dimension: kymographs and narrow channels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from video2pde.errors import InputError
from video2pde.recording import read_field
from video2pde.recording.read import read_recording
from video2pde.recording.synth import write_laboratory
from video2pde.settings import RecordingSettings

LINES = np.linspace(100, 60000, 40 * 50).reshape(40, 50).astype(np.uint16)


def settings(**more: object) -> RecordingSettings:
    given = {"observable": "bright", "white": 65535.0, "fps": 2.0, "scale": "0.5um", "unclip": False}
    return RecordingSettings(**(given | {"illumination": "none"} | more))  # type: ignore[arg-type]


def test_rows_or_columns_are_times(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "rows.tif", LINES)
    Image.fromarray(np.ascontiguousarray((LINES.T >> 8).astype(np.uint8))).save(tmp_path / "columns.png")
    rows = read_field(tmp_path / "rows.tif", settings(kymograph="rows"))
    assert rows.values.shape == (40, 24, 50)
    np.testing.assert_allclose(rows.values[:, 5], LINES / 65535, rtol=1e-4)
    assert np.ptp(rows.values, axis=1).max() == 0
    assert (rows.grid.dx, rows.grid.unit, rows.times[-1]) == (0.5, "µm", 19.5)
    columns = read_field(tmp_path / "columns.png", settings(kymograph="columns", white=255.0))
    np.testing.assert_allclose(columns.values, rows.values, atol=0.005)


def test_times_of_lines_from_a_table(tmp_path: Path) -> None:
    np.save(tmp_path / "lines.npy", LINES)
    (tmp_path / "times.csv").write_text("row,time\n" + "".join(f"{k},{k**1.2}\n" for k in range(40)))
    found = read_field(tmp_path / "lines.npy", settings(kymograph="rows", fps=None, times=str(tmp_path / "times.csv")))
    assert found.times[-1] == pytest.approx(39**1.2)


def test_a_narrow_channel_is_averaged_across(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = np.repeat(LINES[:, None, :], 6, axis=1) + rng.integers(-50, 50, (40, 6, 50))
    tifffile.imwrite(tmp_path / "channel.tif", np.clip(frames, 0, 65535).astype(np.uint16), photometric="minisblack")
    result = read_recording(tmp_path / "channel.tif", settings(kymograph="across"))
    np.testing.assert_allclose(result.field.values[:, 0], LINES / 65535, atol=1e-3)
    assert any("averaged across its 6 pixels" in note for note in result.field.provenance.notes)
    assert not any(re.search(r"\b(top|bottom)\b", text) for text in result.warnings)


def test_what_is_no_line(tmp_path: Path) -> None:
    np.save(tmp_path / "cube.npy", np.zeros((4, 5, 6)))
    with pytest.raises(InputError, match="shape"):
        read_field(tmp_path / "cube.npy", settings(kymograph="rows"))
    tifffile.imwrite(tmp_path / "short.tif", LINES[:, :8])
    with pytest.raises(InputError, match="rows or the columns"):
        read_field(tmp_path / "short.tif", settings(kymograph="rows"))


def test_a_noisy_line_is_one_scene_of_a_still_camera(tmp_path: Path) -> None:
    """Its rows are all the same, and so is their noise: that is neither a shake nor another scene."""
    path = write_laboratory("profile", tmp_path, seed=5)
    given = settings(kymograph="rows", fps=None, times=str(tmp_path / "times.csv"), white=60000.0)
    result = read_recording(path, given)
    assert result.field.line
    assert len(result.field) == 160
    assert not any("scene" in text or "shake" in text for text in result.warnings)
