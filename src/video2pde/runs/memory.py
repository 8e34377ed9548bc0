"""How much memory a run will need, before it begins.

Large arrays take as much memory as ``run.memory`` allows, and files beyond that; what is needed in any case is the
program itself and what a few frames take while they pass.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from video2pde.calibration.bootstrap import BATCH
from video2pde.calibration.replicates import FEW_FRAMES
from video2pde.calibration.window import CHUNK
from video2pde.discovery.filtered import KEPT
from video2pde.machine import require_memory
from video2pde.parallel import count_workers
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.layout import CAMERA_COPIES, plan_layout
from video2pde.recording.reading import FIELD_COPIES
from video2pde.recording.source import open_recording
from video2pde.room import default_limit
from video2pde.settings import Settings

PROGRAM, NETWORK = 600e6, 450e6
"""Bytes of the program itself, with compiled code and the figures, by the end of a run; and what XLA adds for the
inverse PINN. These and the factors below were measured on films of 500 and 1009 frames."""
ROLLOUTS = 20
"""Pictures in double precision that a chunk of frames takes in a fit: models, differences, columns and errors."""
PLAYED, PLAYED_COPIES = 400, 5
"""Frames of the page's film, and how often they are held while it is made."""


def estimate_memory(
    frames: int,
    grid: tuple[int, int],
    settings: Settings,
    picture: tuple[int, int] = (0, 0),
    available: int | None = None,
) -> int:
    """Estimate the largest number of bytes that a run holds at a time, somewhat above what it is.

    Parameters
    ----------
    frames : frames of the field. grid : its rows and columns. picture : rows and columns of a camera frame.
    available : bytes that the machine has left; None: it is asked. Large arrays take a share of it, or what
        ``run.memory`` says; what goes beyond lies in files.
    """
    cells = float(grid[0] * grid[1])
    field, (train, validation) = 4.0 * frames * cells, (settings.split.train, settings.split.validation)
    large = {
        "recording": FIELD_COPIES * field,
        "discovery": field * (1 + train * KEPT),
        # four rollouts at a time
        "validation": field * (1 + 4 * validation),
        # point values, residuals, and once more where the recording has a mask
        "calibration": field * (1 + 3 * train),
    }
    # what a few frames take while they pass: rollouts with their neighbours, replicates of each worker, a finer grid
    passing = 8.0 * cells * (CHUNK * ROLLOUTS + 3 * BATCH * FEW_FRAMES * count_workers(settings.run.workers) + 4 * 32)
    played = 4.0 * cells * min(frames, PLAYED) * PLAYED_COPIES
    held = min(max(large.values()), float(settings.run.memory_bytes or default_limit(available)))
    working = max(held + passing, played) + CAMERA_COPIES * picture[0] * picture[1]
    return round(PROGRAM + NETWORK * settings.refinement.enabled + working)


def check_memory(
    frames: int,
    grid: tuple[int, int],
    settings: Settings,
    picture: tuple[int, int] = (0, 0),
    available: int | None = None,
) -> None:
    """Refuse a recording that would need more than 80 % of the available memory, before any work is done."""
    require_memory(
        estimate_memory(frames, grid, settings, picture, available),
        f"{frames} frames on a grid of {grid[0]}×{grid[1]}",
        "use a smaller grid (--grid), or let large arrays take less (--set run.memory=1GB): the rest goes to files",
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
