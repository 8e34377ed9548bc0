"""What a rollout leaves, averaged over blocks: how noisy a block is of which only a part counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from video2pde.calibration.window import prepare_window
from video2pde.field import Field, Grid
from video2pde.fit.blocks import _Sums, block_scales, BlockResidual
from video2pde.fit.faults import Faults
from video2pde.fit.noise import Memory


@pytest.mark.parametrize("told", [True, False])
def test_a_merged_block_of_which_little_counts_is_as_noisy_as_that(told: bool) -> None:
    # noise alone; of twelve merged blocks, a single one of sixteen counts
    noise, grid = 0.01, Grid(80, 80, 80.0, 80.0)
    frames = 0.5 + noise * np.random.default_rng(8).standard_normal((96, 80, 80))
    field = Field(frames.astype(np.float32), np.arange(96.0), grid)
    window = prepare_window(field)
    rows, columns = np.indices(grid.shape) // 4
    few = (rows // 4 + columns // 4) % 2 == 1
    weight = np.where(few, (rows % 4 == 1) & (columns % 4 == 2), 1.0)
    sums = _Sums(replace(window, weight=weight), 3)
    for k, frame in enumerate(frames):
        sums.add(0, k, frame - 0.5)
    left, change, start = sums.means()
    inside = sums.inside if told else np.ones(grid.shape, bool)
    residual = BlockResidual(left, change, start, sums.frames, sums.cells, inside)
    memory = Memory(np.array([0.0, 1.0]), np.zeros(2))
    scale = next(each for each in block_scales(residual, field, Faults(0.0), memory, 0.0) if each.merged == (4, 1))
    sizes = np.sqrt(np.nanmean(scale.standard**2, axis=0))
    lonely = few[::16, ::16]
    alone, whole = (float(np.sqrt(np.mean(sizes[part] ** 2))) for part in (lonely, ~lonely))
    assert (alone < 1.5 * whole) == told
    assert whole == pytest.approx(1.0, abs=0.3) or not told
