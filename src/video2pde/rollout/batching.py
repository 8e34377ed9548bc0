"""Sizes of what is sent to a device at a time: few different ones, since each is compiled by itself."""

from __future__ import annotations

SMALL_BATCH, SMALL_CELLS = 8, 2**19
"""Simulations that a batch has room for at least, and the cells above which it is no larger than it must be."""
LEAST_FRAMES, MOST_FRAMES, MOST_CELLS = 4, 64, 2**27
"""Frames that a batch goes forward in one call at least and at most, and cells of all of them."""


def batch_size(count: int, cells: int) -> int:
    """Return the places of a batch: a power of two, and where pictures are small enough a few at least."""
    least = 1
    while least < SMALL_BATCH and 2 * least * cells <= SMALL_CELLS:
        least *= 2
    return max(least, 1 << (count - 1).bit_length())


def frames_at_once(count: int, cells: int) -> int:
    """Return how many frames so many simulations go forward in one call."""
    places, frames = batch_size(count, cells), LEAST_FRAMES
    while frames < MOST_FRAMES and 2 * frames * places * cells <= MOST_CELLS:
        frames *= 2
    return frames
