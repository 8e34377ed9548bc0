"""The area-averaging resize keeps the mean, is exact on linear pictures, and puts cells where they belong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from video2pde.recording import read_recording
from video2pde.recording.resize import AreaResizer
from video2pde.settings import RecordingSettings

sizes = st.tuples(st.integers(4, 90), st.integers(4, 90))


def dense_resize(picture: NDArray[np.float64], cells: tuple[int, int]) -> NDArray[np.float64]:
    """Average by overlap of intervals, written out plainly."""

    def weights(pixels: int, count: int) -> NDArray[np.float64]:
        edges, size = np.arange(count + 1) * pixels / count, pixels / count
        low = np.maximum(edges[:-1, None], np.arange(pixels))
        high = np.minimum(edges[1:, None], np.arange(pixels) + 1)
        return np.maximum(high - low, 0) / size

    return weights(picture.shape[0], cells[0]) @ picture @ weights(picture.shape[1], cells[1]).T


@settings(max_examples=60, deadline=None)
@given(sizes, sizes, st.integers(0, 1000))
def test_agrees_with_plain_overlaps_and_keeps_the_mean(
    pixels: tuple[int, int], cells: tuple[int, int], seed: int
) -> None:
    picture = np.random.default_rng(seed).random(pixels)
    reduced = AreaResizer(pixels, cells)(picture)
    assert np.abs(reduced - dense_resize(picture, cells)).max() < 1e-12
    assert abs(reduced.mean() - picture.mean()) < 1e-12


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.float16, np.float32, np.float64, ">u2", bool])
def test_every_number_type_and_cropped_views(kind: object) -> None:
    whole = (np.random.default_rng(2).random((120, 150)) * 200).astype(kind)
    for view in (whole[5:101, 7:140], whole[5:101, 7:140][:, ::-1], whole.T[3:99, 4:100]):
        reduced = AreaResizer(view.shape, (31, 40))(view)
        assert np.abs(reduced - dense_resize(view.astype(float), (31, 40))).max() < 1e-6 * 200


@pytest.mark.parametrize("sloped", [False, True])
def test_sloped_pixels_do_not_blur(sloped: bool) -> None:
    """Means over cells of a wave known by its means over pixels: flat pixels damp it where cells cut them."""
    pixels, cells, k = 464, 84, 2 * np.pi / 9  # nine cells to a wave
    edges = np.arange(pixels + 1) * cells / pixels
    seen = np.diff(np.sin(k * edges)) / np.diff(edges) / k
    true = np.diff(np.sin(k * np.arange(cells + 1))) / k
    reduced = AreaResizer((pixels, pixels), (cells, cells), sloped)(np.tile(seen, (pixels, 1)))[40]
    inside = slice(2, -2)
    damped = 1 - reduced[inside] @ true[inside] / (true[inside] @ true[inside])
    # e^(−k²σ²/2) with σ² of a sixth of a pixel squared
    blur = k**2 * (cells / pixels) ** 2 / 12
    assert damped == pytest.approx(0 if sloped else blur, abs=0.05 * blur)
    assert AreaResizer((pixels, pixels), (cells, cells), sloped)(np.tile(seen, (pixels, 1))).mean() == pytest.approx(
        seen.mean(), abs=1e-12
    )


def test_sloped_pixels_are_flat_where_no_cell_cuts_them() -> None:
    picture = np.random.default_rng(5).random((96, 120))
    plain, sloped = (AreaResizer(picture.shape, (24, 40), each)(picture) for each in (False, True))
    assert np.abs(plain - sloped).max() < 1e-12


def point_sample(picture: NDArray[np.float64], cells: tuple[int, int]) -> NDArray[np.float64]:
    """Take one pixel per cell: the broken variant."""
    rows = (np.arange(cells[0]) * picture.shape[0]) // cells[0]
    columns = (np.arange(cells[1]) * picture.shape[1]) // cells[1]
    return picture[np.ix_(rows, columns)]


def test_point_sampling_would_be_noticed() -> None:
    y, x = np.mgrid[:107, :133]
    picture = np.exp(-((x - 50) ** 2 + (y - 40) ** 2) / 30.0**2) + 0.1 * np.random.default_rng(3).random((107, 133))
    cells = (20, 31)
    assert abs(AreaResizer(picture.shape, cells)(picture).mean() - picture.mean()) < 1e-12
    assert abs(point_sample(picture, cells).mean() - picture.mean()) > 1e-3


@pytest.mark.parametrize(
    ("grid", "tolerance"), [((45, 40), 1e-6), ((18, 60), 1e-6), ((27, 50), 1e-6), ((33, 21), 1e-6)]
)
def test_cells_lie_at_half_steps(tmp_path: Path, grid: tuple[int, int], tolerance: float) -> None:
    """A ramp averaged over a cell has the value of the cell's centre, x = (i + ½) L/n; L/(n − 1) does not.

    So it is where cells cut pixels, which are no steps: their light is a mean that slopes as its neighbours tell.
    """
    x = (np.arange(120) + 0.5) / 120
    y = (np.arange(90) + 0.5) / 90
    ramp = np.broadcast_to(0.2 + 0.5 * x[None, :] + 0.2 * y[:, None], (5, 90, 120)).copy()
    np.save(tmp_path / "ramp.npy", ramp)
    keys = {"grid": grid, "extent": (3.0, 4.0), "fps": 1, "observable": "bright", "white": 1.0}
    result = read_recording(tmp_path / "ramp.npy", RecordingSettings(**keys))
    field = result.field
    expected = 0.2 + 0.5 * field.grid.x[None, :] / 4 + 0.2 * field.grid.y[:, None] / 3
    assert np.abs(field.values[0] - expected).max() < tolerance
    assert result.checks is not None
    assert result.checks.resize_mean_change < 1e-6
    nodes = read_recording(tmp_path / "ramp.npy", RecordingSettings(**keys, pitch="nodes")).field
    wrong = 0.2 + 0.5 * nodes.grid.x[None, :] / 4 + 0.2 * nodes.grid.y[:, None] / 3
    assert np.abs(nodes.values[0] - wrong).max() > 3e-3


def test_averaging_a_smooth_picture_is_second_order() -> None:
    """Cell means differ from values at the centres by O(Δx²): fitted order over three refinements."""
    y, x = (np.mgrid[:960, :960] + 0.5) / 960
    picture = np.sin(5 * x + 1) * np.cos(3 * y)
    errors = []
    for cells in (30, 60, 120):
        y, x = (np.mgrid[:cells, :cells] + 0.5) / cells
        errors.append(
            np.abs(AreaResizer((960, 960), (cells, cells))(picture) - np.sin(5 * x + 1) * np.cos(3 * y)).max()
        )
    order = np.polyfit(np.log([30, 60, 120]), -np.log(errors), 1)[0]
    assert 1.9 < order < 2.1
