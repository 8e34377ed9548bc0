"""Noise that a camera clips at the empty end of its range: found, taken away, and left alone where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.recording.clipping import find_clipping, remove_clipping
from video2pde.recording.read import read_recording
from video2pde.settings import load_settings

FRAMES, CELLS, PIXELS = 40, 48, 4


def film(background: float, noise: float, slope: float = 0.0) -> tuple[NDArray[np.float32], ...]:
    """Return the truth, what a camera reads in each cell, and the share of its pixels at the limit."""
    rng = np.random.default_rng(3)
    axis = np.linspace(-1, 1, CELLS)
    blob = np.exp(-12 * (axis[:, None] ** 2 + axis**2)) * np.linspace(0.5, 1, FRAMES)[:, None, None]
    truth = background + slope * (axis + 1) + 0.8 * blob
    pixels = np.repeat(np.repeat(truth, PIXELS, axis=1), PIXELS, axis=2)
    read = np.maximum(pixels + noise * rng.standard_normal(pixels.shape), 0)
    cells = read.reshape(FRAMES, CELLS, PIXELS, CELLS, PIXELS)
    limit = (cells[0] <= 0).mean(axis=(1, 3), dtype=np.float32)
    return truth.astype(np.float32), cells.mean(axis=(2, 4)).astype(np.float32), limit


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_clipped_noise_is_found_and_taken_away(noise: float) -> None:
    truth, seen, limit = film(0.0, noise)
    clipping = find_clipping(seen, limit)
    assert clipping is not None
    assert clipping.sigma == pytest.approx(noise, rel=0.05)
    assert abs(float((seen - truth).mean())) > 0.2 * noise
    remove_clipping(seen, clipping)
    error = seen - truth
    assert abs(float(error.mean())) < 0.02 * noise
    # no bias is left at the edge of the blob either, where the offset fades
    edge = (truth > 0.3 * noise) & (truth < 3 * noise)
    assert abs(float(error[edge].mean())) < 0.05 * noise


@pytest.mark.parametrize(
    ("background", "noise", "slope"),
    [(0.1, 0.02, 0.0), (0.0, 0.0, 0.0), (0.01, 0.0, 0.0), (0.0, 0.02, 0.05)],
    ids=["background above the noise", "no noise", "faint background", "uneven light"],
)
def test_pictures_without_clipped_noise_are_left_alone(background: float, noise: float, slope: float) -> None:
    _, seen, limit = film(background, noise, slope)
    assert find_clipping(seen, limit) is None


def test_few_frames_and_short_ends_are_corrected_alike() -> None:
    truth, seen, limit = film(0.0, 0.02)
    clipping = find_clipping(seen, limit)
    assert clipping is not None
    short = seen[:3].copy()
    remove_clipping(short, clipping)
    assert abs(float((short - truth[:3]).mean())) < 0.0008


@pytest.mark.parametrize(("background", "found"), [(0.0, 0.02), (0.1, 0.0)])
def test_the_field_knows_what_noise_was_cut_off(tmp_path: Path, background: float, found: float) -> None:
    rng = np.random.default_rng(4)
    axis = np.linspace(-1, 1, CELLS * PIXELS)
    blob = np.exp(-12 * (axis[:, None] ** 2 + axis**2)) * np.linspace(0.5, 0.8, FRAMES)[:, None, None]
    read = np.clip(background + blob + 0.02 * rng.standard_normal(blob.shape), 0, 1)
    np.save(tmp_path / "film.npy", np.round(255 * (1 - read)).astype(np.uint8))
    settings = load_settings(overrides={"recording.grid": (CELLS, CELLS), "recording.fps": 10})
    encoding = read_recording(tmp_path / "film.npy", settings.recording).field.encoding
    assert encoding is not None
    assert encoding.clipped_noise == pytest.approx(found, rel=0.05)
