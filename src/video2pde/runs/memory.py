"""How much memory a run will need, before it begins."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from video2pde.calibration.bootstrap import BATCH, FEW_FRAMES
from video2pde.machine import require_memory
from video2pde.parallel import count_workers
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.layout import CAMERA_COPIES, FIELD_COPIES, plan_layout
from video2pde.recording.source import open_recording
from video2pde.settings import Settings

PROGRAM, NETWORK = 800e6, 700e6
"""Bytes of the program itself, with compiled code, by the end of a run; and what XLA adds for the inverse PINN."""
KEPT = 3.0
"""Fields that are still held when the late stages begin: the recording, and what earlier stages found and gave back
only to the allocator. This and the factors below were measured on films of 405 and 1009 frames."""
WEAK_COLUMNS = 12
"""Filtered densities that the weak system keeps for the libraries of the catalogue; a user's terms come on top."""
TERMS = 3
"""Terms of the largest law that is calibrated as a rule; each has a column, and a mode of the initial frame another."""


def estimate_memory(frames: int, grid: tuple[int, int], settings: Settings, picture: tuple[int, int] = (0, 0)) -> int:
    """Estimate the largest number of bytes that a run holds at a time, somewhat above what it is.

    Parameters
    ----------
    frames : frames of the field. grid : its rows and columns. picture : rows and columns of a camera frame.
    """
    field = 4.0 * frames * grid[0] * grid[1]
    train, validation = settings.split.train, settings.split.validation
    reach = 2 * settings.weak.support * settings.weak.sigma_space
    kept = max(1 - reach, 0.25) ** 2  # share of the picture that can hold a centre
    cells = float(grid[0] * grid[1])
    # replicates that a worker rolls out side by side, a few frames at a time, with temporary copies
    replicates = 3 * 8.0 * BATCH * FEW_FRAMES * cells * count_workers(settings.run.workers)
    stages = {
        # the field, and one more while it is written and smoothed
        "recording": FIELD_COPIES * field + CAMERA_COPIES * picture[0] * picture[1],
        "discovery": field * (1 + train * kept * (WEAK_COLUMNS + len(settings.terms))),
        # four rollouts and four sets of one-step predictions at a time, in double precision, and their scores
        "validation": field * (KEPT + 1 + 16 * validation),
        # point values, the fitted rollout, two sets of residuals, pictures of the terms, modes and the drift
        "calibration": field * (KEPT + train * (6 + 2 * TERMS)) + replicates,
        # frames of several rollouts at the times of the front, with residuals and their Jacobian
        "front": field * KEPT + 8.0 * settings.front.times * cells * (8 + 6 * TERMS),
        # the report's film of the recording beside the prediction of the whole
        "report": field * (KEPT + 4),
    }
    return round(PROGRAM + NETWORK * settings.refinement.enabled + max(stages.values()))


def check_memory(
    frames: int,
    grid: tuple[int, int],
    settings: Settings,
    picture: tuple[int, int] = (0, 0),
    available: int | None = None,
) -> None:
    """Refuse a recording that would need more than 80 % of the available memory, before any work is done."""
    require_memory(
        estimate_memory(frames, grid, settings, picture),
        f"{frames} frames on a grid of {grid[0]}×{grid[1]}",
        "use a smaller grid (--grid) or fewer frames (--every, --stop)",
        available,
    )


def check_recording(film: Path, settings: Settings) -> None:
    """Check the memory that a recording will need by what its header declares; no frame is read for it."""
    chosen = settings.recording
    if film.is_file() and is_saved_field(film):
        with zipfile.ZipFile(film) as archive, archive.open("values.npy") as member:
            np.lib.format.read_magic(member)
            declared, *grid = np.lib.format.read_array_header_1_0(member)[0]
        shape, picture = (grid[0], grid[1]), (0, 0)
    else:
        header = open_recording(film, chosen).header
        declared, picture = header.frames or 0, (header.height, header.width)
        shape = plan_layout(header, chosen).grid.shape
    stop = declared if chosen.stop is None else min(chosen.stop, declared)
    check_memory(len(range(chosen.first, stop, chosen.every)), shape, settings, picture)
