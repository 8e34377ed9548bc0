"""The checks find what is wrong with a recording, and stay silent where nothing is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from recording_files import levels, write_film

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.recording import preview, read_recording, RecordingResult, suggest_crop, write_figures
from video2pde.recording.checks import sweep_smoothing
from video2pde.settings import RecordingSettings


def plume(
    count: int = 60, height: int = 90, width: int = 120, shift: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return intensities of a dark plume that spreads inside a bright, slightly uneven picture."""
    y, x = np.mgrid[:height, :width] + 0.5
    frames = []
    for k in range(count):
        dy, dx = (0.0, 0.0) if shift is None else shift[k]
        blob = np.exp(-((x - 50 - dx) ** 2 + (y - 40 - dy) ** 2) / (9 + 0.08 * k) ** 2)
        frames.append(0.8 - 0.0005 * (x - dx) - 0.5 * blob)
    return np.stack(frames)


def read(tmp_path: Path, frames: NDArray[np.float64], **keys: object) -> RecordingResult:
    np.save(tmp_path / "film.npy", levels(frames))
    return read_recording(tmp_path / "film.npy", RecordingSettings(fps=10, **keys))


def test_a_good_recording_gives_no_warning(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.004, (60, 90, 120))
    assert read(tmp_path, plume() + noise, grid=(45, 60)).warnings == ()


def test_saturation_says_how_much_and_where(tmp_path: Path) -> None:
    frames = plume()
    frames[:, 60:80, 90:110] = 1.0
    result = read(tmp_path, frames)
    line = next(w for w in result.warnings if w.startswith("saturated"))
    assert "3.7% are at full white" in line
    assert "x 90 to 110, y 60 to 80" in line


def test_flicker(tmp_path: Path) -> None:
    gain = 1 + 0.03 * np.random.default_rng(1).normal(size=60)
    assert any("flicker" in w for w in read(tmp_path, plume() * gain[:, None, None]).warnings)


def test_camera_shake_is_told_from_drift(tmp_path: Path) -> None:
    drift = np.stack([0.05 * np.arange(60), 0.1 * np.arange(60)], axis=1)
    shaken = drift + np.random.default_rng(2).normal(0, 0.5, (60, 2))
    steady, jittery = read(tmp_path, plume(shift=drift)), read(tmp_path, plume(shift=shaken))
    assert not any("shake" in w for w in steady.warnings)
    assert any("shake" in w for w in jittery.warnings)
    assert jittery.checks is not None
    assert jittery.checks.shake.rms == pytest.approx(0.5 * np.sqrt(2), rel=0.3)


def test_frozen_frames(tmp_path: Path) -> None:
    frames = plume() + np.random.default_rng(3).normal(0, 0.01, (60, 90, 120))
    frames[20:26] = frames[20]
    result = read(tmp_path, frames)
    assert any("5 equal the one before, up to 5 in a row, first at frame 21" in w for w in result.warnings)


def test_plume_at_the_border(tmp_path: Path) -> None:
    shift = np.stack([np.zeros(60), -0.8 * np.arange(60)], axis=1)
    result = read(tmp_path, plume(shift=shift))
    line = next(w for w in result.warnings if "touches the border" in w)
    assert "(left)" in line
    assert result.checks is not None
    assert result.checks.contact.since is not None
    assert 2 < result.checks.contact.since < 5


def test_too_few_frames(tmp_path: Path) -> None:
    assert "only 12 frames" in read(tmp_path, plume(12)).warnings[0]


def test_stage_table_follows_the_paper_s_order(tmp_path: Path) -> None:
    result = read(tmp_path, plume(), crop=(10, 5, 100, 80), border=4, grid=(36, 46), smooth=1.0)
    assert result.checks is not None
    rows = result.checks.stages
    assert [row.shape for row in rows] == [(60, 80, 100), (60, 72, 92), (60, 36, 46), (60, 36, 46)]
    cropped = levels(plume())[:, 5:85, 10:110]
    assert (rows[0].minimum, rows[0].maximum) == (cropped.min(), cropped.max())
    inner = 1 - cropped[:, 4:-4, 4:-4] / 255
    assert rows[1].minimum == pytest.approx(inner.min())
    assert rows[1].mean == pytest.approx(inner.mean(), abs=1e-3)  # from the sampled frames
    assert rows[2].mean == pytest.approx(inner.mean(), abs=1e-6)
    assert rows[3].maximum is not None
    assert rows[2].maximum is not None
    assert rows[3].maximum < rows[2].maximum
    assert result.checks.resize_mean_change < 1e-6
    assert result.checks.summary()["stages"][2]["shape"] == [60, 36, 46]


def test_smoothing_sweep_of_a_gaussian_is_known_exactly() -> None:
    """A Gaussian of width w becomes one of width √(w² + 2σ²), with the same integral."""
    grid = Grid(90, 120, 90.0, 120.0)
    r2 = (grid.x[None, :] - 57) ** 2 + (grid.y[:, None] - 41) ** 2
    sweep = sweep_smoothing(np.exp(-r2 / 12**2).astype(np.float32), 0, 0.0, grid)
    assert tuple(row.sigma for row in sweep.rows) == (0, 0.5, 1, 1.5, 2, 3)
    assert sweep.rows[0].rms == sweep.rows[0].maximum == 0
    for row, frame in zip(sweep.rows, sweep.frames, strict=True):
        wide = 12**2 + 2 * row.sigma**2
        assert np.abs(frame - 144 / wide * np.exp(-r2 / wide)).max() < 6e-4
        assert row.maximum == pytest.approx(1 - 144 / wide, abs=8e-4)
    assert np.array_equal(sweep.line, sweep.frames[:, 45])


def test_crop_retention(tmp_path: Path) -> None:
    good, bad = read(tmp_path, plume(), crop=(10, 0, 80, 80)), read(tmp_path, plume(), crop=(50, 40, 60, 50))
    assert good.checks is not None
    assert bad.checks is not None
    assert good.checks.retention.change > 0.95
    assert bad.checks.retention.change == pytest.approx(0.25, abs=0.1)
    assert good.checks.retention.signal > bad.checks.retention.signal


def test_default_grid_extent_border_and_scale(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", levels(np.random.default_rng(0).random((4, 300, 600))))
    field = read_recording(tmp_path / "a.npy", RecordingSettings(fps=1)).field
    assert field.grid.shape == (97, 200)
    assert (field.grid.height, field.grid.width) == pytest.approx((200 * 284 / 584, 200))
    field = read_recording(tmp_path / "a.npy", RecordingSettings(fps=1, crop=(0, 0, 100, 50), scale="0.05 mm")).field
    assert field.grid.shape == (50, 100)
    assert (field.grid.height, field.grid.width, field.grid.unit) == (pytest.approx(2.5), pytest.approx(5), "mm")
    fine = read_recording(tmp_path / "a.npy", RecordingSettings(fps=1, crop=(0, 0, 10, 10), grid=(20, 20))).field
    assert any("finer" in note for note in fine.provenance.notes)


def test_masks_from_threshold_and_picture(tmp_path: Path) -> None:
    result = read(tmp_path, plume(), mask="u > 0.5 @ 3", border=0, grid=(90, 120))
    assert result.field.mask is not None
    assert np.array_equal(result.field.mask, result.field.values[3] > np.float32(0.5))
    painted = np.zeros((90, 120), np.uint8)
    painted[20:60, 30:70] = 255
    Image.fromarray(painted).save(tmp_path / "mask.png")
    masked = read(tmp_path, plume(), mask=str(tmp_path / "mask.png"), crop=(20, 10, 80, 60), grid=(30, 40)).field
    assert masked.mask is not None
    expected = np.zeros((30, 40), bool)
    expected[5:25, 5:25] = True
    assert np.array_equal(masked.mask, expected)
    masked.save(tmp_path / "field.npz")
    again = read_recording(tmp_path / "field.npz").field
    assert again.mask is not None
    assert np.array_equal(again.mask, expected)


def test_preview_suggests_where_things_change(tmp_path: Path) -> None:
    frames = 0.8 * np.ones((30, 120, 200))
    frames[:, :90, 60:180] = plume(30, 90, 120)
    path = write_film(tmp_path / "film.mp4", levels(frames, 16, 235))
    result = preview(path, None, tmp_path / "preview.png")
    x0, y0, width, height = result.crop
    assert result.suggested
    assert result.count == 30
    assert x0 < 105 < x0 + width < 160
    assert y0 < 38 < y0 + height < 90
    assert suggest_crop(path) == result.crop
    with Image.open(tmp_path / "preview.png") as picture:
        assert picture.width > 1000
    given = preview(path, RecordingSettings(crop=(50, 0, 100, 90)))
    assert given.crop == (50, 0, 100, 90)
    assert not given.suggested


def test_figures_are_written_whole(tmp_path: Path) -> None:
    result = read(tmp_path, plume(12))
    paths = write_figures(result, tmp_path / "figures", formats=("png",))
    assert len(paths) == 5
    assert all(path.stat().st_size > 5000 for path in paths)
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(p.name for p in paths)
    result.field.save(tmp_path / "field.npz")
    with pytest.raises(InputError, match="no camera frames"):
        write_figures(read_recording(tmp_path / "field.npz"), tmp_path / "none")
    assert not (tmp_path / "none").exists()
