"""The brightness of a background over time, taken apart: jumps, flicker, and what is slow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from video2pde.recording.background import Background, noise_of

Array = NDArray[np.float64]

FAST = 0.0015  # rms of flicker, relative, below which it is left alone
JUMP = 0.006  # smallest jump of the light
JUMP_NOISE = 8.0  # the same in units of the usual change from frame to frame
LINE, NEAR = 3, 10  # frames on either side that a jump is measured with, at least and in a short film
WINDOW = 0.08  # share of the frames over which the slow part is smoothed
SMOOTHED = 2.0  # how much of flicker's standard deviation over √window its smoothed course may have


@dataclass(frozen=True, eq=False)
class Course:
    """``log`` g(t) taken apart: the frames of its ``jumps``, their sum, a ``fast`` part and a ``slow`` one, all (t,).

    ``flicker``: rms of the fast part; ``flickers``: whether that is more than noise.
    """

    jumps: tuple[int, ...]
    jumped: Array
    fast: Array
    slow: Array
    flicker: float
    flickers: bool
    log: Array

    @property
    def by_chance(self) -> bool:
        """Whether the slow part is what smoothing leaves of flicker: light, and as often brighter as darker."""
        return self.leaves_chance(np.zeros_like(self.slow))

    @property
    def quick(self) -> Array:
        """Jumps and flicker, where it flickers, (t,): what no law does."""
        return self.jumped + self.fast if self.flickers else self.jumped

    def leaves_chance(self, cause: Array) -> bool:
        """Tell whether the slow part, less what has a ``cause`` (t,), is what smoothing leaves of flicker."""
        chance = SMOOTHED * self.flicker / np.sqrt(max(5, round(WINDOW * len(self.slow))))
        return self.flickers and float(np.std(self.slow - cause)) < chance

    def taken_for(self, cause: Array) -> Course:
        """Return the course whose slow part (t,) is known: the rest of it flickers slowly, about the light's level."""
        rest = self.fast + self.slow - cause
        return replace(self, slow=cause, fast=rest - rest.mean())


def take_apart(seen: Background, level: float) -> Course:
    """Take the background's brightness apart; ``level``: one step of whole numbers, 0 where there is none."""
    # one step of an even background, where no noise blurs it, is neither a jump nor flicker
    stairs = level / seen.level
    stairs = stairs if seen.block < 0.1 * stairs else 0.0
    noise = max(seen.noise, 1.5 * stairs / JUMP_NOISE)
    course = np.log(seen.measured)
    window = max(5, round(WINDOW * len(course))) | 1
    steps = np.diff(course)
    steps -= median_filter(steps, window)  # what changes steadily, be it fast, is no jump
    usual = float(np.median(np.abs(steps))) / 0.6745
    found = np.flatnonzero(np.abs(steps) > max(JUMP, JUMP_NOISE * usual, JUMP_NOISE * noise)) + 1
    kept = tuple(int(k) for k in found if _stays(course, int(k)))
    jumped = np.zeros(len(course))
    for k in kept:
        jumped[k:] += _height(course, k, kept, max(window, NEAR))
    rest = course - jumped
    smooth = _smooth_ends(rest, window)
    fast, slow = rest - smooth, smooth - smooth[: max(1, window // 4)].mean()
    flicker = noise_of(rest)
    flickers = flicker > max(FAST, 3 * seen.noise, stairs)
    if flickers:  # a few frames do not tell the level at the beginning; a parabola through all of them does
        slow = slow - np.polynomial.polynomial.polyfit(np.linspace(0.0, 1.0, len(slow)), slow + fast, 2)[0]
    return Course(kept, jumped, fast, slow, flicker, flickers, course)


def _height(course: Array, at: int, jumps: tuple[int, ...], window: int) -> float:
    """Return how high a jump is, beside what changes steadily: that of a line that is broken there.

    Between jumps that are next to each other there is no line, and the step itself is taken.
    """
    begin = max([at - window, 0, *(k for k in jumps if k < at)])
    end = min([at + window, len(course), *(k for k in jumps if k > at)])
    if min(at - begin, end - at) < LINE:
        return float(course[at] - course[at - 1])
    frames = np.arange(begin, end)
    line = np.stack([np.ones(len(frames)), frames - at, frames >= at], axis=1)
    return float(np.linalg.lstsq(line, course[begin:end], rcond=None)[0][2])


def _stays(course: Array, at: int) -> bool:
    """Tell a step from a single frame that is out: the level afterwards is another than before."""
    before, after = np.median(course[max(0, at - 5) : at]), np.median(course[at : at + 5])
    return bool(abs(after - before) > 0.5 * abs(course[at] - course[at - 1]))


def _smooth_ends(series: Array, window: int) -> Array:
    """Smooth by a local straight line, which does not bend at the ends."""
    from scipy.signal import savgol_filter

    if len(series) <= window:
        return np.full_like(series, series.mean())
    return np.asarray(savgol_filter(savgol_filter(series, window, 1), window, 1))
