"""Films for the page's player: frames thinned, quantised to a byte, delta-coded in time, deflated."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from video2pde.field import Field, Windows
from video2pde.report.document import Film, Player, Text, Window

MOST_FRAMES = 400
MOST_PIXELS_A_SIDE = 256
BUDGET_BYTES = 9_000_000
_BASE64 = 4 / 3
Prediction = tuple[int, NDArray[Any]]


def make_player(
    field: Field,
    predictions: Sequence[Prediction] = (),
    windows: Windows | None = None,
    *,
    title: str = "Observed and predicted",
    alt: str = "Film of the observed field, the prediction and their difference, side by side.",
    caption: Text = "",
    budget: int = BUDGET_BYTES,
) -> Player:
    """Build a player of at most ``budget`` bytes in the page, dropping frames where there are too many.

    Parameters
    ----------
    field : the observed field u(t, y, x).
    predictions : (first frame, values of shape (n, y, x)) for each predicted stretch; where stretches
        overlap the later one counts. A frame with a value that is not finite has no prediction.
    windows : train, validation and test, marked on the time line.
    """
    count = min(len(field), MOST_FRAMES)
    while True:
        kept = np.unique(np.round(np.linspace(0, len(field) - 1, count)).astype(int))
        observed, predicted, difference = _films(field, predictions, kept)
        payloads = [film.payload for film in (observed, predicted, difference) if film is not None]
        size = _BASE64 * sum(map(len, payloads))
        if size <= budget or count <= 2:
            break
        count = max(2, int(min(0.95, budget / size) * count))
    pool = _pooling(field)
    return Player(
        title=title,
        times=field.times[kept],
        width=observed.nx * pool * field.grid.dx,
        height=observed.ny * pool * field.grid.dy,
        unit=field.grid.unit,
        observed=observed,
        predicted=predicted,
        difference=difference,
        windows=() if windows is None else _mark_windows(windows, kept),
        alt=alt,
        mask=None if field.mask is None else _pool(field.mask[None].astype(float), pool)[0] == 1.0,
        caption=caption,
    )


def encode(levels: NDArray[np.uint8]) -> bytes:
    """Delta-code levels (t, y, x) in time, modulo 256, and deflate them."""
    delta = levels.copy()
    delta[1:] -= levels[:-1]
    # Runs and Huffman codes alone: what is left is noise, where a search for longer matches costs twelve
    # times the time and, measured, up to a tenth more bytes.
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_RLE)
    return packer.compress(delta.tobytes()) + packer.flush()


def quantise(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Round values to 256 levels of [low, high], cutting off what lies beyond."""
    levels = np.empty(values.shape, np.uint8)
    # frame by frame: on the way a number takes more than ten times the room of its level
    for frame, place in zip(values, levels, strict=True):
        place[...] = np.clip(np.rint((frame - low) * (255.0 / (high - low))), 0, 255)
    return levels


def _films(
    field: Field, predictions: Sequence[Prediction], kept: NDArray[np.int_]
) -> tuple[Film, Film | None, Film | None]:
    pool = _pooling(field)
    seen = _pool(field.values[kept], pool)
    low, high = float(seen.min()), float(seen.max())
    high = max(high, low + 1e-9 * max(1.0, abs(low)))
    observed = _film(seen, range(len(kept)), low, high)
    places, forecast = _gather(predictions, kept, pool)
    if not places:
        return observed, None, None
    # A rollout that blew up must not stretch the scale until nothing else can be told apart.
    reach = high - low
    bottom, top = max(float(forecast.min()), low - reach), min(float(forecast.max()), high + reach)
    bottom, top = min(bottom, low), max(top, high)
    error = forecast - seen[places]
    # Zero sits exactly on level 128, so that perfect agreement has the neutral colour.
    step = max(min(float(np.abs(error).max()), reach) / 127.0, 1e-9 * reach)
    return observed, _film(forecast, places, bottom, top), _film(error, places, -128.0 * step, 127.0 * step)


def _film(values: NDArray[Any], frames: Sequence[int], low: float, high: float) -> Film:
    slack = (high - low) / 255.0
    clipped = bool(values.min() < low - slack or values.max() > high + slack)
    _, ny, nx = values.shape
    return Film(encode(quantise(values, low, high)), tuple(frames), ny, nx, low, high, clipped)


def _gather(
    predictions: Sequence[Prediction], kept: NDArray[np.int_], pool: int
) -> tuple[list[int], NDArray[np.float32]]:
    """Collect the predicted frames among those kept: their places in the player and their values."""
    found: dict[int, NDArray[Any]] = {}
    for first, values in predictions:
        inside = np.flatnonzero((kept >= first) & (kept < first + len(values)))
        for place in inside:
            frame = values[kept[place] - first]
            if np.isfinite(frame).all():
                found[int(place)] = frame
    places = sorted(found)
    if not places:
        return [], np.empty((0, 0, 0), np.float32)
    return places, _pool(np.stack([found[place] for place in places]), pool)


def _pooling(field: Field) -> int:
    return -(-max(field.grid.shape) // MOST_PIXELS_A_SIDE)


def _pool(values: NDArray[Any], pool: int) -> NDArray[np.float32]:
    """Average blocks of ``pool`` × ``pool`` pixels; an incomplete block at the right or bottom is left out."""
    if pool == 1:
        return np.asarray(values, np.float32)
    frames, ny, nx = values.shape
    whole = values[:, : ny // pool * pool, : nx // pool * pool]
    blocks = whole.reshape(frames, ny // pool, pool, nx // pool, pool)
    return np.asarray(blocks.mean(axis=(2, 4)), np.float32)


def _mark_windows(windows: Windows, kept: NDArray[np.int_]) -> tuple[Window, ...]:
    named = (
        ("train", windows.train, "blue"),
        ("validation", windows.validation, "orange"),
        ("test", windows.test, "green"),
    )
    marks = []
    for label, window, colour in named:
        start, end = np.searchsorted(kept, (window.start, window.stop))
        marks.append(Window(label, int(start), int(end), colour))  # type: ignore[arg-type]
    return tuple(marks)
