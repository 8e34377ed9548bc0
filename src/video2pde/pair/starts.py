"""Where a simulation of two fields starts: a frame of their recording, or two arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from video2pde.errors import InputError
from video2pde.pair.evaluate import as_points
from video2pde.pair.model import PairModel
from video2pde.pair.record import holds_pair, load_pair_run
from video2pde.rollout.start import estimate_start

Array = NDArray[np.float64]
START_FRAMES = 9
"""Frames, up to the one asked for, that estimate it."""


def find_pair_start(model: PairModel, path: Path, given: Path | None, frame: int | None) -> tuple[Array, float]:
    """Return both fields (2, y, x), and the time, that a simulation starts from.

    Parameters
    ----------
    model, path : the model, and where it was read.
    given : an ``.npz`` file with the arrays u and w, (y, x) or (t, y, x); None: the recording of the model's run.
    frame : which frame, -1 being the last; None: the first.
    """
    if given is None:
        folder = path if path.is_dir() else path.parent
        if not holds_pair(folder):
            raise InputError(f"{path} does not lie in the folder of its run; give the first frame, --from FILE.npz")
        pair = load_pair_run(folder).pair
        if pair is None:
            raise InputError(f"the run in {folder} has not read its recording yet")
        index = _index(len(pair), frame)
        points = as_points(pair)
        return np.stack([estimate_start(part, index, START_FRAMES) for part in points.fields]), float(pair.times[index])
    try:
        with np.load(given, allow_pickle=False) as stored:
            fields = [np.asarray(stored[name], float) for name in ("u", "w")]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"{given} holds no arrays u and w: {error}") from None
    fields = [part[_index(len(part), frame)] if part.ndim == 3 else part for part in fields]
    if any(part.shape != model.grid.shape for part in fields):
        raise InputError(f"{given}: u has the shape {fields[0].shape}, the laws' grid {model.grid.shape}")
    if not np.isfinite(fields).all():
        raise InputError(f"{given} holds values that are no numbers")
    return np.stack(fields), 0.0


def _index(count: int, frame: int | None) -> int:
    index = 0 if frame is None else frame
    if not -count <= index < count:
        raise InputError(f"--frame {index}: there are {count} frames, 0 to {count - 1}, or -1 for the last")
    return index % count
