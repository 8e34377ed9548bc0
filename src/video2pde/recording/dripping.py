"""The end of a source: dye that drips into the picture until some frame, after which it only spreads.

While dye comes in, no law of what spreads holds. What there is in all, M(t), then rises by what comes, and its rate
falls at once when nothing comes any more; a law changes it smoothly. With P₃ and P₅ polynomials of degree three and
five,

    M(t) ≈ P₃(t) + c (t − τ)₊,      c < 0,

must leave less than P₅, which has as many unknowns, does, by far more than the scatter of frames explains. What comes
in all the time has no end to be found by: the test of fit names it (``fit``). M is 1 − I/I₀(t), averaged over the part
of the picture in which anything changes, with the light I₀ of the other part, so that light that changes is no dye.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST = 60  # frames from which a bend in time can be told
EARLIEST, LATEST = 0.08, 0.7  # share of the frames before the end of the source
PARTS = 8  # of the film, whose means show where something changes
ACTIVE = 4.0  # change of such a mean, in units of the picture's median, from which a cell is active
SEEN = 6.0  # standard errors by which a bend must say more than a polynomial of degree five
FOREIGN = 10.0  # times the usual frame's scatter that no frame may be off by
MATTERS = 0.02  # share of all dye that must have come in
AFTER = 0.02  # of the frames that are left out after the end: the last drop takes a while
SMOOTH, FREE = 3, 5  # degrees of the polynomials beside a bend, and without one


@dataclass(frozen=True)
class Drip:
    """Dye comes in until shortly before frame ``first``; ``share``: of all that there is then."""

    first: int
    share: float


def find_end_of_source(frames: NDArray[np.float32], times: Array, black: float) -> Drip | None:
    """Find the frame from which nothing comes in any more; None where no end of a source is seen.

    Parameters
    ----------
    frames : grey values (t, y, x) of something dark in passing light.
    times : of the frames, s.
    black : pixel value without light.
    """
    if len(frames) < FEWEST or times[-1] <= times[0]:
        return None
    amount = _amount(frames, black)
    if amount is None:
        return None
    t = 2 * (times - times[0]) / (times[-1] - times[0]) - 1
    count = len(t)
    places = np.arange(int(EARLIEST * count), int(LATEST * count))
    smooth, _ = np.linalg.qr(np.polynomial.legendre.legvander(t, SMOOTH))
    free, _ = np.linalg.qr(np.polynomial.legendre.legvander(t, FREE))
    bends = np.maximum(t[:, None] - t[None, places], 0.0)
    bends -= smooth @ (smooth.T @ bends)
    left = amount - smooth @ (smooth.T @ amount)
    sizes = bends.T @ left / np.sum(bends**2, axis=0)
    gains = sizes * (bends.T @ left)
    best = int(np.argmax(gains))
    without = amount - free @ (free.T @ amount)
    bent = left - sizes[best] * bends[:, best]
    scatter = max(float(bent @ bent) / (count - FREE - 1), 1e-300)
    if float(without @ without) - float(bent @ bent) < SEEN**2 * scatter or sizes[best] >= 0:
        return None
    if np.abs(bent).max() > FOREIGN * float(np.median(np.abs(bent))):
        return None  # single frames that show something else are no dye
    place = int(places[best])
    came = -float(sizes[best]) * float(t[place] - t[0])
    share = came / max(float((amount - bent)[place]), 1e-300)
    return Drip(place + 1 + int(np.ceil(AFTER * count)), share) if share > MATTERS else None


def _amount(frames: NDArray[np.float32], black: float) -> Array | None:
    """Return 1 − I/I₀(t) of every frame, averaged over the cells that change; None where there are none or no light.

    The others, the quieter half of the picture, show the light.
    """
    ends = np.linspace(0, len(frames), PARTS + 1).astype(int)
    parts = np.stack([frames[a:b].mean(axis=0, dtype=np.float64) for a, b in pairwise(ends)]) - black
    usual_light = np.median(parts, axis=(1, 2), keepdims=True)
    if usual_light.min() <= 0:
        return None
    parts /= usual_light
    change = np.ptp(parts, axis=0)
    usual = float(np.median(change))
    quiet, active = change <= usual, change > ACTIVE * usual
    light = _means(frames, quiet) - black
    if not active.any() or light.min() <= 0:
        return None
    return np.asarray(1 - (_means(frames, active) - black) / light)


def _means(frames: NDArray[np.float32], where: NDArray[np.bool_]) -> Array:
    """Average some cells of every frame, one frame at a time: all at once would copy them all."""
    return np.array([frame[where].mean(dtype=np.float64) for frame in frames])
