"""The longest run of frames that show one scene: without black frames, a hand in the picture, or what follows a cut.

What spreads changes little from one frame to the next. Where a block of the picture changes by more than an eighth of
the light at once, something else came: a hand, if the scene is the same again afterwards; another scene, if most of the
picture stays different. A change of a small part that stays (a bleach, a drop that falls in) is not judged here, nor is
a film that begins or ends in black. Steep edges that a shaking camera moves are the same scene.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from video2pde.blocks import means_between

Array = NDArray[np.float64]

SIDE = 24  # blocks along each side of the picture
BLACK = 0.15  # share of the usual light below which a frame is black
LIT = 0.5  # share above which the frames before and after black ones must be: light that goes slowly is a fade
CHANGE = 0.12  # of the light: change of a block from one frame to the next that no spreading makes
TOUCHED = 0.01  # share of the blocks that must change so
ANOTHER = 0.3  # share of the blocks whose lasting change makes another scene
ALSO_DIMMER, DIMMER = 0.1, 0.3  # ... or this share, where the light changes by more than this (log) at the same time
SAME = 0.05  # ... and below which the scene is the same again
NEAR = 12  # frames within which changes belong together
FEWEST = 12  # frames of a run that is worth keeping
FARTHEST = 2.0  # blocks by which a camera that shakes may move the picture from one frame to the next
MOVED = 0.75  # share of all change that such a motion explains


@dataclass(frozen=True)
class GoodRun:
    """Frames ``first`` to ``stop`` − 1 show one scene; ``reasons`` say what the others show, in words."""

    first: int
    stop: int
    reasons: tuple[str, ...]


def find_good_run(frames: NDArray[np.float32], black: float) -> GoodRun | None:
    """Find the longest run of frames (t, y, x) of one scene; None where all frames show it, or no run is worth it.

    ``black``: pixel value without light.
    """
    if len(frames) < 2 * FEWEST:
        return None
    starts = [np.unique(np.linspace(0, n, SIDE, endpoint=False).astype(int)) for n in frames.shape[1:]]
    blocks = means_between(frames, starts)
    light = blocks.reshape(len(frames), -1) - black
    usual = float(np.median(np.percentile(light, 75, axis=1)))
    if usual <= 0:
        return None
    light /= usual
    level = np.percentile(light, 75, axis=1)
    dark = level < BLACK
    light = light / np.maximum(level, BLACK)[:, None]  # a lamp that flickers or jumps is no other scene
    touched = (np.abs(np.diff(light, axis=0)) > CHANGE).mean(axis=1) > TOUCHED
    foreign = [k for k in np.flatnonzero(touched) if not _only_moved(*light[k : k + 2].reshape(2, *blocks.shape[1:]))]
    touched &= [any(abs(k - other) <= NEAR for other in foreign) for k in range(len(touched))]
    touched |= dark[1:] | dark[:-1]
    bad = np.zeros(len(frames), dtype=bool)
    cuts: list[int] = []
    reasons: list[str] = []
    for first, last in _group(np.flatnonzero(touched)):
        reason = _judge(light, level, first, last)
        if reason:
            bad[first + 1 : last + 1] = True
            cuts.append(last + 1)
            reasons.append(reason)
    if not reasons:
        return None
    run = max(_runs(bad, cuts), key=lambda ends: ends[1] - ends[0])
    return GoodRun(run[0], run[1], tuple(reasons)) if run[1] - run[0] >= FEWEST else None


def _only_moved(before: Array, after: Array) -> bool:
    """Tell whether the picture (y, x), moved as a whole, changes as it does: a camera that shakes."""
    change = (after - before).ravel()
    slopes = np.stack([slope.ravel() for slope in np.gradient((before + after) / 2)], axis=1)
    shift = np.linalg.lstsq(slopes, change, rcond=None)[0]
    left = change - slopes @ shift
    moved = np.hypot(*shift) <= FARTHEST and np.sum(left**2) <= (1 - MOVED) * np.sum(change**2)
    return bool(moved and (np.abs(left) > CHANGE).mean() <= TOUCHED)


def _judge(light: Array, level: Array, first: int, last: int) -> str:
    """Say what the frames between the changes after ``first`` and after ``last`` show; empty: nothing foreign."""
    dark = np.flatnonzero(level[first : last + 2] < BLACK) + first
    if len(dark):
        lit = level[first] > LIT and level[last + 1] > LIT
        return f"frames {dark[0]} to {dark[-1]} are black" if lit else ""
    different = float((np.abs(light[last + 1] - light[first]) > CHANGE).mean())
    dimmer = abs(float(np.log(level[last + 1] / level[first])))
    if different > ANOTHER or (different > ALSO_DIMMER and dimmer > DIMMER):
        return f"another scene begins at frame {last + 1}"
    if last > first and different < SAME:
        return f"something is in the picture from frame {first + 1} to {last}"
    return ""


def _group(changes: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Join changes that are near each other: (first, last) of each group."""
    if not len(changes):
        return []
    parts = np.split(changes, np.flatnonzero(np.diff(changes) > NEAR) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts]


def _runs(bad: NDArray[np.bool_], cuts: list[int]) -> list[tuple[int, int]]:
    """Return (first, stop) of every run without bad frames, divided at the cuts."""
    ends = sorted({0, len(bad), *cuts, *(int(k) + 1 for k in np.flatnonzero(np.diff(bad)))})
    return [(a, b) for a, b in pairwise(ends) if not bad[a]] or [(0, 0)]
