"""Checks on a recording that has become a field: numbers first, and the warnings that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from video2pde.field import Grid
from video2pde.recording.base import Header
from video2pde.recording.layout import Layout
from video2pde.recording.observable import Normalisation, smooth
from video2pde.recording.sampling import Sample
from video2pde.recording.stability import BorderContact, Flicker, Repeats, Shake

SIGMAS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
SIGNAL_RANGE = (10, 99.5)  # percentiles of a frame between which its signal lies
LEAST_RANGE = 0.02  # of u: below it there is no signal to be hidden
TOUCHED, BESIDE = 0.05, 2  # share of a cell's pixels whose saturation shows in its mean; cells that go with such a one


@dataclass(frozen=True)
class StageRow:
    """Describe the data after one step; None where a number cannot be given."""

    name: str
    shape: tuple[int, int, int]
    minimum: float | None
    mean: float | None
    maximum: float | None


@dataclass(frozen=True)
class SmoothingRow:
    """Compare a frame filtered with σ = ``sigma`` cells with the unfiltered one."""

    sigma: float
    rms: float
    maximum: float


@dataclass(frozen=True, eq=False)
class SmoothingSweep:
    """Show what a Gaussian filter of several widths does to one frame.

    ``frames`` has shape (σ, y, x); ``line`` is its middle row, shape (σ, x), at ``positions``.
    """

    index: int
    time: float
    rows: tuple[SmoothingRow, ...]
    frames: NDArray[np.float32]
    positions: NDArray[np.float64]
    line: NDArray[np.float32]
    unit: str


@dataclass(frozen=True)
class Retention:
    """Tell how much of what is seen lies inside the crop, as shares of the whole picture.

    ``signal``: of the intensity's deviation from the background (the median of the picture).
    ``change``: of the variation in time above the picture's median variation.
    """

    signal: float
    change: float


@dataclass(frozen=True, eq=False)
class Saturation:
    """Tell how many camera pixels sit at the ends of the range, and where.

    ``cells``: share of saturated pixels in each grid cell, (y, x). ``where``: bounding box in camera pixels.
    ``signal``: share of saturated cells among those of the signal, in the frame at ``signal_at`` s where it is largest.
    ``hidden``: cells (y, x) in which the signal is saturated at some time, and their neighbours.
    """

    black: float
    white: float
    cells: NDArray[np.float32]
    where: str
    signal: float
    signal_at: float
    hidden: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))


@dataclass(frozen=True, eq=False)
class Checks:
    """Gather the checks of one recording.

    Statistics of camera pixels (the first two stages, saturation, retention) come from ``sampled`` frames of
    all; ``resize_mean_change`` is the largest |mean of u after − before the resize| among them. ``held_back``: share of
    exact repeats among the cells that change, which an encoder leaves behind.
    """

    sampled: int
    stages: tuple[StageRow, ...]
    resize_mean_change: float
    retention: Retention
    sweep: SmoothingSweep
    saturation: Saturation
    flicker: Flicker
    shake: Shake
    repeats: Repeats
    held_back: float
    contact: BorderContact

    def summary(self) -> dict[str, Any]:
        """Return the numbers alone, ready for JSON."""
        return {
            "sampled_frames": self.sampled,
            "stages": [
                {"name": s.name, "shape": list(s.shape), "min": s.minimum, "mean": s.mean, "max": s.maximum}
                for s in self.stages
            ],
            "resize_mean_change": self.resize_mean_change,
            "crop_retention": {"signal": self.retention.signal, "change": self.retention.change},
            "smoothing": [{"sigma": r.sigma, "rms": r.rms, "max": r.maximum} for r in self.sweep.rows],
            "saturation": {
                "black": self.saturation.black,
                "white": self.saturation.white,
                "where": self.saturation.where,
                "signal": self.saturation.signal,
                "signal_at_s": self.saturation.signal_at,
            },
            "flicker": {"rms": self.flicker.rms, "share_of_signal": self.flicker.share},
            "shake": {"rms_cells": self.shake.rms, "uncertainty_cells": self.shake.uncertainty},
            "repeated_frames": {"count": self.repeats.count, "longest_run": self.repeats.longest},
            "held_back": self.held_back,
            "border_contact": {
                "share": self.contact.share,
                "since_s": self.contact.since,
                "sides": list(self.contact.sides),
            },
        }


def sweep_smoothing(frame: NDArray[np.float32], index: int, time: float, grid: Grid) -> SmoothingSweep:
    """Filter one frame with σ = 0, 0.5, 1, 1.5, 2, 3 cells and compare with the unfiltered one."""
    frames = np.stack([smooth(frame, sigma) for sigma in SIGMAS]).astype(np.float32)
    differences = frames.astype(np.float64) - frame
    rows = tuple(
        SmoothingRow(sigma, float(np.sqrt((d**2).mean())), float(np.abs(d).max()))
        for sigma, d in zip(SIGMAS, differences, strict=True)
    )
    return SmoothingSweep(index, time, rows, frames, grid.x, frames[:, grid.ny // 2].copy(), grid.unit)


def measure_retention(samples: list[Sample], header: Header, layout: Layout) -> Retention:
    """Compare the background-corrected signal, and the change in time, inside the crop and in the whole picture."""
    stack = np.stack([sample.thumbnail for sample in samples]).astype(np.float64)
    rows, columns = stack.shape[1:]
    x0, y0, width, height = layout.crop
    inside = np.zeros((rows, columns), dtype=bool)
    y = (np.arange(rows) + 0.5) * header.height / rows
    x = (np.arange(columns) + 0.5) * header.width / columns
    inside[np.ix_((y >= y0) & (y < y0 + height), (x >= x0) & (x < x0 + width))] = True
    signal = np.abs(stack - np.median(stack, axis=(1, 2), keepdims=True)).mean(axis=0)
    variation = stack.std(axis=0)
    change = np.maximum(variation - np.median(variation), 0.0)
    return Retention(_share(signal, inside), _share(change, inside))


def _share(weights: NDArray[np.float64], inside: NDArray[np.bool_]) -> float:
    total = float(weights.sum())
    return float(weights[inside].sum()) / total if total > 0 else 1.0


def measure_saturation(
    samples: list[Sample], layout: Layout, values: NDArray[np.float32], times: NDArray[np.float64]
) -> Saturation:
    """Average the saturated shares over the sampled frames, find where they lie, and how much of the signal they hide.

    ``values``: u, shape (t, y, x), at ``times``, s.
    """
    cells = np.zeros(layout.grid.shape, dtype=np.float32)
    for sample in samples:
        if sample.saturated_cells is not None:
            cells += sample.saturated_cells / len(samples)
    black = float(np.mean([sample.black_share for sample in samples]))
    white = float(np.mean([sample.white_share for sample in samples]))
    shown = [values[int(np.abs(times - sample.time).argmin())] for sample in samples]
    shares, hidden = [], np.zeros(layout.grid.shape, dtype=bool)
    for sample, u in zip(samples, shown, strict=True):
        clipped, strong = 0 if sample.saturated_cells is None else sample.saturated_cells, _signal(u)
        shares.append(float(((clipped > 0.5) & strong).sum() / max(int(strong.sum()), 1)))
        hidden |= (clipped > TOUCHED) & strong
    worst = int(np.argmax(shares))
    hidden = binary_dilation(hidden, iterations=BESIDE)
    place = _describe_place(cells, layout)
    return Saturation(black, white, cells, place, shares[worst], samples[worst].time, hidden)


def _signal(u: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mark the cells of a frame above the middle of its range; none where there is no signal to speak of."""
    low, high = np.percentile(u, SIGNAL_RANGE)
    return np.asarray((u > (low + high) / 2) & (high - low > LEAST_RANGE))


def _describe_place(cells: NDArray[np.float32], layout: Layout) -> str:
    if not cells.any():
        return ""
    rows, columns = np.nonzero(cells > 0.5 * cells.max())
    x0, y0, width, height = layout.inner
    step_y, step_x = height / cells.shape[0], width / cells.shape[1]
    left, right = x0 + columns.min() * step_x, x0 + (columns.max() + 1) * step_x
    top, bottom = y0 + rows.min() * step_y, y0 + (rows.max() + 1) * step_y
    return f"mostly in camera pixels x {left:.0f} to {right:.0f}, y {top:.0f} to {bottom:.0f}"


def camera_stages(
    samples: list[Sample], count: int, layout: Layout, header: Header, scale: Normalisation
) -> tuple[StageRow, StageRow]:
    """Describe the cropped frames, and the normalised ones without border, from the sampled frames."""
    _, _, width, height = layout.crop
    _, _, inner_width, inner_height = layout.inner

    def intensity(value: float) -> float:
        return (value - header.black) * header.gain

    raw = StageRow(
        "cropped frames (intensity)",
        (count, height, width),
        intensity(min(s.crop_min for s in samples)),
        intensity(float(np.mean([s.crop_mean for s in samples]))),
        intensity(max(s.crop_max for s in samples)),
    )
    mean = scale.offset + scale.slope * float(np.mean([s.mean_before for s in samples]))
    ends: tuple[float, ...] | tuple[None, None] = (None, None)
    if not scale.by_picture:  # with a reference picture, a pixel's extremes alone say nothing about u
        extremes = (min(s.inner_min for s in samples), max(s.inner_max for s in samples))
        ends = tuple(sorted(scale.offset + scale.slope * value for value in extremes))
    shape = (count, inner_height, inner_width)
    return raw, StageRow("border removed, normalised", shape, ends[0], mean, ends[1])


def resize_mean_change(samples: list[Sample], scale: Normalisation) -> float:
    """Return the largest change of a frame's mean u by the resize, among the sampled frames."""
    return max(abs(scale.slope * (s.mean_after - s.mean_before)) for s in samples)


def field_stage(name: str, values: NDArray[np.float32]) -> StageRow:
    """Describe the reduced field, from all its values."""
    mean = float(np.mean([frame.mean(dtype=np.float64) for frame in values]))
    shape = (values.shape[0], values.shape[1], values.shape[2])
    return StageRow(name, shape, float(values.min()), mean, float(values.max()))
