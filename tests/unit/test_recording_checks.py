"""The checks find what is wrong with a recording, and stay silent where nothing is."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from recording_files import levels, write_film

from video2pde.errors import InputError
from video2pde.field import Grid
from video2pde.recording import preview, read_recording, RecordingResult, suggest_crop
from video2pde.recording.base import Header
from video2pde.recording.checks import sweep_smoothing
from video2pde.recording.observable import clip_headroom, empty_levels, normalise
from video2pde.report.recording_figures import write_recording_figures
from video2pde.settings import load_settings, RecordingSettings


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
    result = read(tmp_path, frames, objects="none")
    line = next(w for w in result.warnings if w.startswith("saturated"))
    assert "3.7% are at full white" in line
    assert "x 90 to 110, y 60 to 80" in line


def test_flicker(tmp_path: Path) -> None:
    gain = 1 + 0.03 * np.random.default_rng(1).normal(size=60)
    frames = plume() * gain[:, None, None]
    left = read(tmp_path, frames, illumination="none")
    assert any("flicker" in w for w in left.warnings)
    divided = read(tmp_path, frames)
    assert not any("flicker" in w for w in divided.warnings)
    assert any("flicker" in note for note in divided.field.provenance.notes)


def test_camera_shake_is_told_from_drift(tmp_path: Path) -> None:
    drift = np.stack([0.05 * np.arange(60), 0.1 * np.arange(60)], axis=1)
    shaken = drift + np.random.default_rng(2).normal(0, 0.5, (60, 2))
    steady = read(tmp_path, plume(shift=drift))
    jittery = read(tmp_path, plume(shift=shaken), stabilise="none")
    settled = read(tmp_path, plume(shift=shaken))
    assert not any("shake" in w for w in steady.warnings)
    assert any("shake" in w for w in jittery.warnings)
    assert jittery.checks is not None
    assert jittery.checks.shake.rms == pytest.approx(0.5 * np.sqrt(2), rel=0.15)
    assert not any("shake" in w for w in settled.warnings)
    assert any("frames were put back" in note for note in settled.field.provenance.notes)


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


@pytest.mark.parametrize("background", ["fades", "flickers", "is noise alone"])
def test_an_even_background_is_no_contact(tmp_path: Path, background: str) -> None:
    rng = np.random.default_rng(4)
    u = 1 - plume() - 0.0005 * (np.arange(120) + 0.5)
    if background == "fades":
        u = (0.3 + u) * np.exp(-0.03 * np.arange(60))[:, None, None]
    elif background == "flickers":
        u = 1 - (1 - u) * (1 - 0.1 * rng.random(60))[:, None, None]
    else:
        u = np.full_like(u, 0.4) + rng.normal(0, 0.05, u.shape)
    result = read(tmp_path, 1 - u, grid=(45, 60), illumination="none")
    assert result.checks is not None
    assert result.checks.contact.since is None
    assert not any("border" in w for w in result.warnings)
    # the edge's own minimum in time is no background: it calls all of these contact
    edge = result.field.values[:, 0]
    assert (edge - edge.min(axis=0) > 0.15 * np.ptp(np.percentile(result.field.values, (25, 99.5)))).mean() > 0.1


def test_a_plume_reaches_the_border_of_a_fading_background(tmp_path: Path) -> None:
    shift = np.stack([np.zeros(60), -0.8 * np.arange(60)], axis=1)
    u = (1.1 - plume(shift=shift)) * np.exp(-0.01 * np.arange(60))[:, None, None]
    result = read(tmp_path, 1 - u)
    assert any("touches the border (left)" in w for w in result.warnings)


def test_a_signal_that_saturates_briefly_is_told(tmp_path: Path) -> None:
    frames = plume(90, 120, 160)
    frames[0] = np.where(frames[0] < 0.34, 0.0, frames[0])
    result = read(tmp_path, frames, saturated="none")
    assert result.checks is not None
    saturation = result.checks.saturation
    assert saturation.black < 0.001  # over the whole film it is next to nothing
    assert 0.05 < saturation.signal < 0.6
    assert saturation.signal_at == 0
    assert any("the signal is saturated at 0 s" in w for w in result.warnings)
    # an empty background at the end of the range hides no signal
    white = read(tmp_path, np.where(plume(90, 120, 160) > 0.7, 1.0, plume(90, 120, 160)))
    assert white.checks is not None
    assert white.checks.saturation.signal == 0
    assert white.checks.saturation.white > 0.5


def test_a_saturated_part_is_masked_unless_refused(tmp_path: Path) -> None:
    frames = plume(90, 120, 160)
    dense = frames[0] < 0.34
    frames[0] = np.where(dense, 0.0, frames[0])
    result = read(tmp_path, frames)
    mask = result.field.mask
    assert mask is not None
    assert not mask[dense].any()
    assert 0.98 < mask.mean() < 1
    assert not any("saturated" in line for line in result.warnings)
    assert any("saturated" in note and "masked" in note for note in result.field.provenance.notes)
    assert read(tmp_path, frames, saturated="none").field.mask is None
    given = read(tmp_path, frames, mask="u>-1@0")
    assert given.field.mask is not None
    assert given.field.mask.all()
    assert any("saturated" in line for line in given.warnings)
    wide = np.where(plume(90, 120, 160) < 0.68, 0.0, plume(90, 120, 160))  # too much would be lost
    assert read(tmp_path, wide, objects="none").field.mask is None
    assert load_settings("paper").recording.saturated == "none"


def deep_plume(**keys: float) -> NDArray[np.float64]:
    """Return 16-bit levels, as floats, of a plume on an even, empty scene of 50,000 with camera noise and a glint."""
    noise = np.random.default_rng(5).normal(0, 500, (60, 90, 120))
    u = keys.get("background", 0.0) * np.exp(-0.02 * np.arange(60))[:, None, None]
    empty = 50000 * (1 - u)
    frames = np.rint(empty + 50000 * (plume() - 0.8 + 0.0005 * (np.arange(120) + 0.5)) + noise)
    frames[:, 5, 7] = 60000
    return frames


def read_deep(tmp_path: Path, frames: NDArray[np.float64], **keys: object) -> RecordingResult:
    np.save(tmp_path / "deep.npy", np.clip(frames, 0, keys.pop("limit", 65535)).astype(np.uint16))
    return read_recording(tmp_path / "deep.npy", RecordingSettings(fps=10, border=0, **keys))


def test_the_empty_scene_reads_zero_whatever_the_noise(tmp_path: Path) -> None:
    frames = deep_plume()
    result = read_deep(tmp_path, frames)
    corner = result.field.values[:, -20:, -20:]
    assert abs(corner.mean()) < 1e-3
    note = next(n for n in result.field.provenance.notes if n.startswith("I_max"))
    assert float(note.split()[2].rstrip(",")) == pytest.approx(50000, rel=1e-3)
    assert "recording.white sets it" in note
    assert not any("recording.white" in w for w in result.warnings)
    # what was once done: the brightest pixel as white lifts the background, even without the glint
    frames[:, 5, 7] = 50000
    assert 1 - frames[:, -20:, -20:].mean() / frames.max() > 0.03
    assert read_deep(tmp_path, frames, white=40000).field.values[:, -20:, -20:].mean() == pytest.approx(-0.25, abs=1e-3)


def test_a_scene_that_brightens_may_not_be_empty(tmp_path: Path) -> None:
    result = read_deep(tmp_path, deep_plume(background=0.1))
    assert any("may not be empty" in w and "recording.white" in w for w in result.warnings)
    given = read_deep(tmp_path, deep_plume(background=0.1), white=50000)
    assert given.field.values[0, -20:, -20:].mean() == pytest.approx(0.1, abs=2e-3)
    assert not any("recording.white" in w for w in given.warnings)


def test_the_limit_of_a_saturated_deep_camera_is_white(tmp_path: Path) -> None:
    """Clipped noise lowers the mean of an empty scene: its level is not white, the limit is."""
    result = read_deep(tmp_path, deep_plume(), limit=50000, unclip=False)
    assert any("I_max is 50000, the brightest value, at which" in n for n in result.field.provenance.notes)
    assert result.field.values[:, -20:, -20:].mean() == pytest.approx(0.01 / np.sqrt(2 * np.pi), abs=3e-4)


def test_noise_around_a_measured_white_is_not_clipped() -> None:
    """Luma of 10 bits, 64 to 940: beyond these it is clipped, above an empty scene of 800 it is not."""
    header = Header("film", 4, 4, 2, True, black=64.0, gain=1023 / 876, limit=1023.0)
    pixels = np.array([[[790, 810], [940, 960]], [[64, 50], [800, 800]]], np.float32)
    white = (800 - header.black) * header.gain
    values = pixels.copy()
    line = normalise(values, "dark", header, white)
    note = clip_headroom(values, header, line)
    assert "25.00%" in note
    expected = 1 - (np.clip(pixels, 64, 940) - 64) / (800 - 64)
    assert values == pytest.approx(expected, abs=1e-6)
    assert values[0, 0, 1] < 0  # a clip at u = 0 would lift the mean of the empty scene


def test_white_needs_no_second_copy_of_the_field() -> None:
    values = np.random.default_rng(6).random((600, 60, 60), np.float32)
    tracemalloc.start()
    levels_found = empty_levels(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(levels_found) == 10
    assert peak < values.nbytes / 10


def test_too_few_frames(tmp_path: Path) -> None:
    assert "only 12 frames" in read(tmp_path, plume(12)).warnings[0]


def test_stage_table_follows_the_paper_s_order(tmp_path: Path) -> None:
    result = read(tmp_path, plume(), crop=(10, 5, 100, 80), border=4, grid=(36, 46), smooth=1.0, illumination="none")
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
    paths = write_recording_figures(result, tmp_path / "figures", formats=("png",))
    assert len(paths) == 5
    assert all(path.stat().st_size > 5000 for path in paths)
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(p.name for p in paths)
    result.field.save(tmp_path / "field.npz")
    with pytest.raises(InputError, match="no camera frames"):
        write_recording_figures(read_recording(tmp_path / "field.npz"), tmp_path / "none")
    assert not (tmp_path / "none").exists()
