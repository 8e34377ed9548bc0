"""Colour differences that are stored at half the resolution: put back in their place, without smoothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from video2pde.recording.chroma import spread, stored_as

Array = NDArray[np.float64]


def averaged(lows: Array, width: float) -> Array:
    """Average a bump over intervals, exactly enough."""
    at = lows[:, None] + (np.arange(64) + 0.5) / 64 * width
    return np.asarray(np.exp(-((at - 21.3) ** 2) / (2 * 5.0**2)).mean(axis=1))


@pytest.mark.parametrize(("name", "middle"), [("yuv420p", 0.0), ("yuvj420p", 0.5)])
def test_pixels_are_found_from_averages_over_two(name: str, middle: float) -> None:
    """A bump of five pixels, in rows and in columns; linear interpolation is ten times as far off."""
    size = 44
    pixels = averaged(np.arange(size, dtype=float), 1.0)
    rows = averaged(np.arange(0, size, 2, dtype=float), 2.0)
    columns = averaged(np.arange(0, size, 2, dtype=float) - 0.5 + middle, 2.0)
    found = spread(np.outer(rows, columns).astype(np.float32), (size, size), name)
    error = np.abs(found - np.outer(pixels, pixels))[5:-5, 5:-5].max()
    assert error < 2e-3
    places = np.arange(0, size, 2) + middle
    linear = np.outer(
        np.interp(np.arange(size), np.arange(0, size, 2) + 0.5, rows), np.interp(np.arange(size), places, columns)
    )
    assert np.abs(linear - np.outer(pixels, pixels))[5:-5, 5:-5].max() > 10 * error
    swapped = spread(np.outer(rows, columns).astype(np.float32), (size, size), "yuvj420p" if middle == 0 else "yuv420p")
    assert np.abs(swapped - np.outer(pixels, pixels)).max() > 10 * error


def test_what_is_whole_or_even_stays() -> None:
    plane = np.random.default_rng(0).random((6, 8)).astype(np.float32)
    np.testing.assert_array_equal(spread(plane, (6, 8), "yuv444p"), plane)
    even = spread(np.full((3, 4), 7.0, np.float32), (5, 7), "yuv420p")
    assert even.shape == (5, 7)
    np.testing.assert_allclose(even, 7.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "bits", "stored"),
    [
        ("yuv420p", 8, "yuv420p"),
        ("yuvj420p", 8, "yuvj420p"),
        ("yuv420p10le", 10, "yuv420p10le"),
        ("nv12", 8, "yuv420p"),
        ("yuyv422", 8, "yuv422p"),
        ("yuv444p", 8, "yuv444p"),
        ("yuv411p", 8, "yuv444p"),
        ("yuv410p", 8, "yuv444p"),
        ("yuv440p", 8, "yuv444p"),
        ("p010le", 10, "yuv420p10le"),
    ],
)
def test_planes_are_taken_as_they_are_stored(name: str, bits: int, stored: str) -> None:
    assert stored_as(name, bits) == stored
