"""Samples of camera frames, taken while the film streams by, for the checks and the pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from video2pde.recording.base import Header, Picture
from video2pde.recording.layout import cut, Layout
from video2pde.recording.resize import AreaResizer

WANTED = 24  # samples aimed at
MOST = 64  # samples at which every second one is dropped
THUMBNAIL = 320  # pixels on the longer side
PLATEAU = 0.002  # share of pixels at a deep picture's very maximum that hints at saturation


@dataclass(frozen=True, eq=False)
class StreamedFrame:
    """Hold one frame on its way through the reduction.

    ``picture``: as decoded. ``inner``: the crop without its border. ``averaged``: what went into the resize,
    the same or its logarithm. ``reduced``: the cell means.
    """

    time: float
    picture: Picture
    inner: Picture
    averaged: Picture
    reduced: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sample:
    """Keep of one camera frame what the checks need; all values are the file's own pixel values.

    ``index`` counts selected frames. ``thumbnail`` is the whole picture, area-averaged. ``crop_*`` belong to
    the crop, ``inner_*`` to the crop without its border. ``mean_before`` and ``mean_after`` are the means of
    what went into the resize (pixel values, or their logarithm for absorbance) and of what came out of it.
    ``black_share`` and ``white_share`` are the shares of saturated pixels.
    """

    index: int
    time: float
    thumbnail: NDArray[np.float32]
    crop_min: float
    crop_mean: float
    crop_max: float
    inner_min: float
    inner_max: float
    mean_before: float
    mean_after: float
    black_share: float
    white_share: float
    saturated_cells: NDArray[np.float32] | None


class Sampler:
    """Take samples at even distances; where the number of frames is unknown, thin them out on the way."""

    def __init__(self, header: Header, layout: Layout, expected: int | None) -> None:
        self._header, self._layout = header, layout
        self._stride = max(1, (expected or 1) // WANTED)
        longer = max(header.height, header.width)
        shape = (header.height, header.width)
        small = tuple(max(1, round(min(1.0, THUMBNAIL / longer) * side)) for side in shape)
        self._thumbnails = AreaResizer(shape, (small[0], small[1]))
        _, _, width, height = layout.crop
        self._whole_crop = AreaResizer((height, width), (1, 1))
        self._shares = AreaResizer((layout.inner[3], layout.inner[2]), layout.grid.shape)
        self.samples: list[Sample] = []

    def offer(self, index: int, frame: StreamedFrame) -> None:
        """Sample this frame if it is its turn."""
        if index % self._stride == 0:
            self.take(index, frame)
            if len(self.samples) > MOST:
                self._stride *= 2
                self.samples = [sample for sample in self.samples if sample.index % self._stride == 0]

    def take(self, index: int, frame: StreamedFrame) -> None:
        """Sample this frame, unless it is already the last sample."""
        if self.samples and self.samples[-1].index == index:
            return
        crop, inner = cut(frame.picture, self._layout.crop), frame.inner
        black, white = self._saturated(inner)
        clipped = black | white
        self.samples.append(
            Sample(
                index=index,
                time=frame.time,
                thumbnail=self._thumbnails(frame.picture).astype(np.float32),
                crop_min=float(crop.min()),
                crop_mean=float(self._whole_crop(crop)[0, 0]),
                crop_max=float(crop.max()),
                inner_min=float(inner.min()),
                inner_max=float(inner.max()),
                mean_before=float(frame.averaged.mean(dtype=np.float64)),
                mean_after=float(frame.reduced.mean(dtype=np.float64)),
                black_share=float(black.mean()),
                white_share=float(white.mean()),
                saturated_cells=self._shares(clipped).astype(np.float32) if clipped.any() else None,
            )
        )

    def keep(self, first: int, stop: int) -> None:
        """Keep the samples of frames ``first`` to ``stop`` − 1, counted from there; the nearest one at least."""
        inside = [sample for sample in self.samples if first <= sample.index < stop]
        inside = inside or [min(self.samples, key=lambda sample: abs(sample.index - first))]
        self.samples = [replace(sample, index=max(0, sample.index - first)) for sample in inside]

    def after(self, first: int) -> list[Sample]:
        """Return the samples of frames from ``first`` on, counted from there; the last one at least."""
        kept = [sample for sample in self.samples if sample.index >= first] or self.samples[-1:]
        return [replace(sample, index=sample.index - first) for sample in kept]

    def _saturated(self, inner: Picture) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Mark pixels at the ends of the range; a deep picture is also saturated where many share its maximum."""
        header = self._header
        none = np.zeros(inner.shape, dtype=bool)
        if header.limit is None:
            return none, none
        brightest = header.black + header.limit / header.gain
        black, white = inner <= header.black, inner >= brightest
        if header.white is None and inner.dtype.kind == "u" and inner.min() < inner.max():
            plateau = inner == inner.max()
            if plateau.mean() > PLATEAU:
                white = plateau
        return black, white
