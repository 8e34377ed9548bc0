"""Uneven and changing light: I(x, y, t) = g(t) · f(x, y) · scene, from what the background shows.

Background is where nothing but the light changes. Its brightness over time is g(t), its brightness over the picture,
continued by a smooth surface under the plume, is f(x, y). Both divide the intensity before the observable is formed, so
that 1 − I/I₀ stays right. Jumps and flicker are never a law's doing. A slow change may be: a background of dye that
decays or grows looks the same. Which of the two it is follows from the plume, which light makes fainter by the same
share and a law by another; where that does not decide, nothing is changed and the question is passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import lsq_linear, nnls

from video2pde.recording.background import Background, find_background, noise_of
from video2pde.recording.base import Header
from video2pde.recording.othercolour import alike, find_loosely, lend_surface, OtherColour
from video2pde.recording.surface import fit_surface
from video2pde.room import empty
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]
Other = Callable[[], OtherColour | None]
Surface = Callable[[Array], tuple[NDArray[np.float32] | None, float]]

FAST = 0.0015  # rms of flicker, relative, below which it is left alone
JUMP = 0.006  # smallest jump of the light
JUMP_NOISE = 8.0  # the same in units of the usual change from frame to frame
SLOW = 0.006  # slow change of the light, relative, below which it is left alone
UNEVEN = 0.012  # unevenness of the light, relative, below which it is left alone
WINDOW = 0.08  # share of the frames over which the slow part is smoothed
LARGEST = 0.5  # slow change of log g beyond which it is not light
CLEARER = 0.6  # how much better light must explain the plume's content than a law does, or the other way round
SMOOTHED = 2.0  # how much of flicker's standard deviation over √window its smoothed course may have
POWERS = (1, 2, 3)  # of u in a law that a background may follow
GOOD = 0.005  # share of the content's change that a right law of these may leave
POOR = 0.05  # share of the content's change beyond which an explanation is none
LEFT = 0.0002  # relative change of the light that is left where it was divided out
FEWEST = 40  # frames below which a plume may pass for background, because it hardly moves


@dataclass(frozen=True, eq=False)
class Illumination:
    """Hold what was found out about the light, and what was corrected.

    Parameters
    ----------
    gain : g(t), shape (t,), as divided out; ones where nothing was. measured : the background's brightness over time,
        relative to the beginning. flat : f(y, x), as divided out, 1 at the brightest place; None: none was.
    background : cells that show nothing but light, (y, x).
    flicker : rms of the fast part; jumps : frames at which the light jumps; slow : range of the slow part;
    uneven : range of f. All relative.
    slow_is : what the slow change was taken for: "light", "law", "unknown", or "none" where there is none.
    notes : what was done, in words. doubts : what could not be decided, with the setting that decides it.
    """

    gain: Array
    measured: Array
    flat: NDArray[np.float32] | None
    background: NDArray[np.bool_]
    flicker: float
    jumps: tuple[int, ...]
    slow: float
    uneven: float
    slow_is: str
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def corrected(self) -> bool:
        return bool(self.flat is not None or np.any(self.gain != 1))

    @property
    def unknown(self) -> float:
        """Relative change of the light, from beginning to end, that may be left: what was seen and not divided out."""
        return float(np.hypot(LEFT, self.slow if self.slow_is == "none" else 0.0))


@dataclass(frozen=True, eq=False)
class _Course:
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
        chance = SMOOTHED * self.flicker / np.sqrt(max(5, round(WINDOW * len(self.slow))))
        return self.flickers and float(np.std(self.slow)) < chance


def _take_apart(seen: Background, level: float) -> _Course:
    """Take the background's brightness apart; ``level``: one step of whole numbers, 0 where there is none."""
    # one step of an even background, where no noise blurs it, is neither a jump nor flicker
    stairs = level / seen.level
    stairs = stairs if seen.block < 0.1 * stairs else 0.0
    noise = max(seen.noise, 1.5 * stairs / JUMP_NOISE)
    course = np.log(seen.measured)
    steps = np.diff(course)
    usual = float(np.median(np.abs(steps))) / 0.6745
    found = np.flatnonzero(np.abs(steps) > max(JUMP, JUMP_NOISE * usual, JUMP_NOISE * noise)) + 1
    kept = tuple(int(k) for k in found if _stays(course, int(k)))
    jumped = np.zeros(len(course))
    for k in kept:
        before, after = course[max(0, k - 5) : k], course[k : k + 5]
        jumped[k:] += float(np.median(after) - np.median(before))
    rest = course - jumped
    window = max(5, round(WINDOW * len(rest))) | 1
    smooth = _smooth_ends(rest, window)
    fast, slow = rest - smooth, smooth - smooth[: max(1, window // 4)].mean()
    flicker = noise_of(rest)
    flickers = flicker > max(FAST, 3 * seen.noise, stairs)
    if flickers:  # a few frames do not tell the level at the beginning; a parabola through all of them does
        slow = slow - np.polynomial.polynomial.polyfit(np.linspace(0.0, 1.0, len(slow)), slow + fast, 2)[0]
    return _Course(kept, jumped, fast, slow, flicker, flickers, course)


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


def measure_illumination(
    intensity: NDArray[np.float32],
    mode: str,
    bright: bool,
    white: float | None,
    level: float = 0.0,
    other: Other | None = None,
) -> Illumination | None:
    """Find g(t) and f(x, y) of a film; None where no background is to be seen.

    Parameters
    ----------
    intensity : reduced frames, shape (t, y, x), 0 is black.
    mode : auto, auto gain, gain, flat or gain+flat: what may be corrected; auto corrects what is needed and certain.
    bright : whether u is the light itself, where a slow change of light and decay are one and the same.
    white : intensity of u = 0 (dark); None: unknown, and then light and decay cannot be told apart.
    level : one step of the camera's whole numbers; without noise a background climbs them like stairs. 0: none.
    other : reads the film in a colour in which what spreads hardly shows, where there is one: what changes there is
        light, and what changes only here is the dye's own.
    """
    seen, colour = find_background(intensity), other() if other is not None and mode.startswith("auto") else None
    if seen is None:
        own = None if colour is None else find_loosely(intensity)
        light = None if own is None or colour is None else colour.light_beside(intensity, own)
        if own is None or colour is None or light is None:
            return None
        there, here = _take_apart(light, colour.level), _take_apart(own, 0.0)
        slow_is = _compare(there, here)
        # where this colour blurs what its background does, that it does something else tells nothing
        slow_is = "unknown" if slow_is == "light" and not alike(here.slow, there.slow) else slow_is
        return _correct(own, there, slow_is, mode, _lent(colour, light, intensity, own), colour.name)
    course, asked, lent = _take_apart(seen, level), mode in ("gain", "gain+flat"), ""
    light = None if colour is None or course.by_chance else colour.light_beside(intensity, seen)
    if colour is None or light is None:
        slow_is = _explain_slow(course, asked, intensity, seen.cells, None if bright else white)
    else:
        there = _take_apart(light, colour.level)
        slow_is = _compare(there, course)
        if slow_is == "light" and not alike(course.slow, there.slow):
            # jumps and flicker, an encoder's included, are those of the colour that is read
            course, lent = replace(course, slow=there.slow), colour.name
    return _correct(seen, course, slow_is, mode, lambda gain: fit_surface(intensity, gain, seen.inner), lent)


def _compare(light: _Course, here: _Course) -> str:
    """Say what a slow change is, ``light`` being known from another colour: what is not light is the dye's own."""
    changes, shown = (float(np.ptp(course.slow)) > SLOW for course in (here, light))
    return "light" if shown or light.by_chance else "law" if changes else "none"


def _lent(colour: OtherColour, light: Background, intensity: NDArray[np.float32], own: Background) -> Surface:
    """Lay f(x, y) through the background of another colour."""

    def lay(gain: Array) -> tuple[NDArray[np.float32] | None, float]:
        flat = lend_surface(fit_surface(colour.intensity, gain, light.inner)[0], intensity, own)
        return flat, 0.0 if flat is None else float(np.ptp(flat))

    return lay


def _correct(
    seen: Background,
    course: _Course,
    slow_is: str,
    mode: str,
    surface: Surface,
    lent: str,
) -> Illumination:
    """Say what is divided out of a film.

    ``surface``: lays f(x, y), with its range, once g(t) is known; ``lent``: the other channel that showed the light.
    """
    asked, left_alone = mode in ("gain", "gain+flat"), mode in ("flat", "none")
    gain, notes, doubts = np.ones(len(course.slow)), list[str](), list[str]()
    if asked or (mode.startswith("auto") and (course.flickers or course.jumps)):
        gain *= np.exp(course.fast) * np.exp(course.jumped)
        notes.append(_tell_fast(course.flicker, course.jumps))
    if course.by_chance:
        gain *= 1.0 if left_alone else np.exp(course.slow - course.slow.mean())
    elif slow_is == "light" and not left_alone:
        gain *= np.exp(course.slow)
        divided = "it" if lent else "its background's brightness"
        notes.append(f"the light {_tell_slow(course.slow)}: each frame was divided by {divided}")
    elif slow_is == "unknown" and mode.startswith("auto"):
        doubts.append(
            f"the background {_tell_slow(course.slow)}; light that changes and dye that decays or grows look alike "
            "here: set recording.illumination to gain if it is the light, to none if it is not"
        )
    flat, uneven = (None, 0.0) if mode in ("gain", "auto gain", "none") else surface(gain)
    flat = flat if uneven > UNEVEN or mode in ("flat", "gain+flat") else None
    if flat is not None:
        notes.append(f"uneven light: brightness varies by {uneven:.1%} over the picture, and was divided out")
    if lent and notes:
        notes.append(f"the light was measured in the channel {lent}, in which what spreads hardly shows")
    return Illumination(
        gain=gain,
        measured=np.exp(course.log),
        flat=flat,
        background=seen.cells,
        flicker=course.flicker,
        jumps=course.jumps,
        slow=float(np.ptp(course.slow)),
        uneven=uneven,
        slow_is=slow_is,
        notes=tuple(note for note in notes if note),
        doubts=tuple(doubts),
    )


def _explain_slow(
    course: _Course, asked: bool, intensity: NDArray[np.float32], cells: NDArray[np.bool_], white: float | None
) -> str:
    """Say what a slow change is: light, where that is asked for or the plume says so, law, unknown, or none."""
    if course.by_chance:
        return "light"
    if float(np.ptp(course.slow)) <= SLOW:
        return "none"
    if asked:
        return "light"
    return "unknown" if white is None else _weigh(intensity, cells, course.slow, white)


def even_out(
    values: NDArray[np.float32],
    settings: RecordingSettings,
    header: Header,
    white: float | None,
    logarithmic: bool,
    other: Other | None = None,
) -> Illumination | None:
    """Divide reduced frames by g(t) f(x, y), in place; None where no background is to be seen or none is asked for.

    Parameters
    ----------
    values : shape (t, y, x), pixel values, or log10 of the intensity where ``logarithmic``.
    white : intensity of u = 0; None: unknown.
    other : see :func:`measure_illumination`.
    """
    if settings.illumination == "none" or len(values) < (FEWEST if settings.illumination == "auto" else 3):
        return None
    black, gain = (0.0, 1.0) if logarithmic else (header.black, header.gain)
    intensity = empty(values.shape, np.float32)
    for frame, light in zip(values, intensity, strict=True):
        light[...] = (
            np.power(10.0, frame, dtype=np.float32) if logarithmic else (frame - np.float32(black)) * np.float32(gain)
        )
    mode: str = settings.illumination
    if settings.reference is not None or logarithmic:  # f(x, y) is in the reference picture already
        mode = {"auto": "auto gain", "flat": "none", "gain+flat": "gain"}.get(mode, mode)
    level = header.gain if header.limit is not None and not logarithmic else 0.0
    found = measure_illumination(intensity, mode, settings.observable == "bright", white, level, other)
    if found is not None and found.corrected:
        _divide(values, found, black, logarithmic)
    return found


def _divide(values: NDArray[np.float32], light: Illumination, black: float, logarithmic: bool) -> None:
    """Divide the intensity of each frame by the light, in place."""
    flat = np.ones(values.shape[1:], dtype=np.float32) if light.flat is None else light.flat
    for frame, gain in zip(values, light.gain, strict=True):
        if logarithmic:
            frame -= np.log10(np.float32(gain) * flat)
        elif gain != 1 or light.flat is not None:
            frame[...] = np.float32(black) + (frame - np.float32(black)) / (np.float32(gain) * flat)


def _tell_fast(flicker: float, jumps: tuple[int, ...]) -> str:
    parts = [f"flicker of {flicker:.2%} (rms)"] if flicker > FAST else []
    if jumps:
        parts.append(f"jumps of the light at {'frame' if len(jumps) == 1 else 'frames'} {', '.join(map(str, jumps))}")
    return f"{' and '.join(parts)} divided out, as the background shows it" if parts else ""


def _tell_slow(slow: Array) -> str:
    change = float(np.expm1(slow[-1]))
    if abs(change) > 0.6 * float(np.ptp(slow)):
        return f"{'dims' if change < 0 else 'brightens'} by {abs(change):.1%} over the film"
    return f"changes by up to {float(np.ptp(slow)):.1%}"


def _weigh(intensity: NDArray[np.float32], background: NDArray[np.bool_], slow: Array, white: float) -> str:
    """Tell whether a slow change of the background is light or law, from the plume's content M(t).

    With u = 1 − I/white and the background b(t): light makes M′ = (g′/g) M + aG, decay or growth makes M′ = cM + aG
    with b′ = cb, where aG = a∫|∇u|² ≥ 0 is what spreading fronts add. Both are fitted in integrated form, and the one
    that leaves clearly less unexplained is taken. More than half of the light is not taken for light. A reaction not
    linear in u has more freedom than light, and is taken where it leaves next to nothing and clearly less.
    """
    middles = np.arange(2, len(intensity) - 2, max(1, len(intensity) // 60))
    if len(middles) < 8:
        return "unknown"
    frames = np.stack([1 - intensity[k - 2 : k + 3].mean(axis=0, dtype=np.float64) / white for k in middles])
    rim = np.ones_like(background)
    inner = [max(2, n // 8) for n in background.shape]
    rim[inner[0] : -inner[0], inner[1] : -inner[1]] = False
    # far from the plume, whose faint tails lie below the noise and still count in a sum over the picture
    b = frames[:, background & rim].mean(axis=1)
    excess = frames - b[:, None, None]
    content = excess.sum(axis=(1, 2))
    slope = _mean_square_slope(frames)
    light = slow[middles]
    grown = content - content[0]
    size = float(np.abs(content).max()) + 1e-12
    # light: content divided by the gain is free of it, and so is what spreading adds
    dimmed = content / np.exp(light)
    by_light = _unexplained(dimmed - dimmed[0], slope) / size
    rate = float(_integral(b) @ (b - b[0])) / (float(_integral(b) @ _integral(b)) + 1e-30)
    bends = float(np.abs(rate * _integral(b) - (b - b[0])).max()) / (float(np.ptp(b)) + 1e-12)
    by_law = _unexplained(grown - rate * _integral(content), slope) / size
    by_law = max(by_law, 0.5 * bends)
    by_reaction = _left_by_reaction(frames, b, slope)
    if by_reaction < CLEARER * by_light and by_reaction < GOOD:
        return "law"
    if by_light < CLEARER * by_law and by_light < POOR and np.ptp(slow) < LARGEST:
        return "light"
    certain = by_law < CLEARER * by_light and by_law < POOR
    return "law" if certain or (by_light > POOR and np.ptp(slow) > LARGEST) else "unknown"


def _left_by_reaction(frames: Array, b: Array, slope: Array) -> float:
    """Return what a reaction f(u) = c₁u + c₂u² + c₃u³ leaves of b′ = f(b), and of M′ = ∫(f(u) − f(b)) + aG."""
    sums = [(frames**power).sum(axis=(1, 2)) - frames[0].size * b**power for power in POWERS]
    content, nothing = sums[0], np.zeros_like(b)
    size, change = float(np.abs(content).max()) + 1e-12, float(np.ptp(b)) + 1e-12
    grown = np.concatenate([(b - b[0]) / change, (content - content[0]) / size])
    pairs = [(_integral(b**power), _integral(total)) for power, total in zip(POWERS, sums, strict=True)]
    pairs += [(nothing, _integral(slope)), (nothing, _integral(np.ones_like(slope)))]
    columns = np.stack([np.concatenate([of_b / change, of_m / size]) for of_b, of_m in pairs], axis=1)
    columns /= np.abs(columns).max(axis=0) + 1e-30
    lowest = [-np.inf] * len(POWERS) + [0.0, 0.0]
    left = columns @ lsq_linear(columns, grown, (lowest, np.inf)).x - grown
    bends, unexplained = left[: len(b)], left[len(b) :]
    return float(max(0.5 * np.abs(bends).max(), np.sqrt(np.mean(unexplained**2))))


def _integral(rate: Array) -> Array:
    """Integrate over the frames, from 0."""
    return np.asarray(cumulative_trapezoid(rate, initial=0.0))


def _unexplained(grown: Array, slope: Array) -> float:
    """Return the rms that is left of the content's growth after the best a∫G ≥ 0; noise adds a constant to G."""
    columns = np.stack([_integral(slope), _integral(np.ones_like(slope))], axis=1)
    _, left = nnls(columns / (np.abs(columns).max(axis=0) + 1e-30), grown)
    return float(left / np.sqrt(len(grown)))


def _mean_square_slope(frames: Array) -> Array:
    """Return Σ|∇u|² of each frame."""
    return np.array([sum(float((part**2).sum()) for part in np.gradient(frame)) for frame in frames])
