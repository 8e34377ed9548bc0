"""Uneven and changing light: I(x, y, t) = g(t) · f(x, y) · scene, from what the background shows.

Background is where nothing but the light changes. Its brightness over time is g(t), its brightness over the picture,
continued by a smooth surface under the plume, is f(x, y). Both divide the intensity before the observable is formed, so
that 1 − I/I₀ stays right. Jumps and flicker are never a law's doing. A slow change may be: a background of dye that
decays or grows looks the same. Which of the two it is follows from the plume, which light makes fainter by the same
share and a law by another; where that does not decide, nothing is changed and the question is passed on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from video2pde.recording.base import Header
from video2pde.settings import RecordingSettings

Array = NDArray[np.float64]

BLOCKS = 24  # along the longer side: blocks of cells whose means are followed
LEAST_BACKGROUND = 0.08  # share of the blocks that must show nothing but light
LEAST_LIGHT = 0.25  # brightness of the background, share of the brightest block, below which it shows no light
STILL = 0.004  # relative change of a block beside the common one that is no signal
STILL_NOISE = 5.0  # the same in units of its noise
FAST = 0.0015  # rms of flicker, relative, below which it is left alone
JUMP = 0.006  # smallest jump of the light
JUMP_NOISE = 8.0  # the same in units of the usual change from frame to frame
SLOW = 0.006  # slow change of the light, relative, below which it is left alone
UNEVEN = 0.012  # unevenness of the light, relative, below which it is left alone
WINDOW = 0.08  # share of the frames over which the slow part is smoothed
LARGEST = 0.5  # slow change of log g beyond which it is not light
CLEARER = 0.6  # how much better light must explain the plume's content than a law does, or the other way round
SMOOTHED = 2.0  # how much of flicker's standard deviation over √window its smoothed course may have
POOR = 0.05  # share of the content's change beyond which an explanation is none
LEFT = 0.0002  # relative change of the light that is left where it was divided out
FEWEST = 40  # frames below which a plume may pass for background, because it hardly moves
SMOOTH = 0.04  # share of the surface's range that the background may lie off it (rms)
DEGREES = (2, 4)  # of the surface through the background


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


def measure_illumination(
    intensity: NDArray[np.float32], mode: str, bright: bool, white: float | None, level: float = 0.0
) -> Illumination | None:
    """Find g(t) and f(x, y) of a film; None where no background is to be seen.

    Parameters
    ----------
    intensity : reduced frames, shape (t, y, x), 0 is black.
    mode : auto, auto gain, gain, flat or gain+flat: what may be corrected; auto corrects what is needed and certain.
    bright : whether u is the light itself, where a slow change of light and decay are one and the same.
    white : intensity of u = 0 (dark); None: unknown, and then light and decay cannot be told apart.
    level : one step of the camera's whole numbers; without noise a background climbs them like stairs. 0: none.
    """
    blocks, edges = _average_blocks(intensity)
    seen = _find_background(blocks)
    if seen is None:
        return None
    still, levels = seen
    measured = blocks[:, still].sum(axis=1) / levels[still].sum()
    noise = _spread_of(blocks[:, still] / levels[still] / measured[:, None]) / np.sqrt(still.sum())
    # one step of an even background, where no noise blurs it, is neither a jump nor flicker
    stairs = level / float(np.median(levels[still]))
    stairs = stairs if noise * np.sqrt(still.sum()) < 0.1 * stairs else 0.0
    jumps, fast, slow = _take_apart(measured, max(noise, 1.5 * stairs / JUMP_NOISE))
    gain, notes, doubts, slow_is = np.ones(len(measured)), [], [], "none"
    flicker, extent = _spread_of(np.log(measured) - jumps[1]), float(np.ptp(slow))
    wanted = mode in ("gain", "gain+flat")
    flickers = flicker > max(FAST, 3 * noise, stairs)
    if flickers:  # a few frames do not tell the level at the beginning; a parabola through all of them does
        along = np.linspace(0.0, 1.0, len(slow))
        slow = slow - np.polynomial.polynomial.polyfit(along, slow + fast, 2)[0]
    if wanted or (mode.startswith("auto") and (flickers or len(jumps[0]))):
        gain *= np.exp(fast) * np.exp(jumps[1])
        notes.append(_tell_fast(flicker, jumps[0]))
    chance = SMOOTHED * flicker / np.sqrt(max(5, round(WINDOW * len(slow))))
    if flickers and float(np.std(slow)) < chance:
        # what is left of flicker after smoothing: light, and as often brighter as darker
        slow_is = "light"
        gain *= np.exp(slow - slow.mean()) if mode not in ("flat", "none") else 1.0
    elif extent > SLOW:
        slow_is = (
            "light"
            if wanted
            else "unknown"
            if bright or white is None
            else _weigh(intensity, still, edges, slow, white)
        )
        if slow_is == "light" and mode not in ("flat", "none"):
            gain *= np.exp(slow)
            notes.append(f"the light {_tell_slow(slow)}: each frame was divided by its background's brightness")
        elif slow_is == "unknown" and mode.startswith("auto"):
            doubts.append(
                f"the background {_tell_slow(slow)}; light that changes and dye that decays or grows look alike here: "
                "set recording.illumination to gain if it is the light, to none if it is not"
            )
    background = _spread_blocks(still, edges, intensity.shape[1:])
    flat, uneven = (None, 0.0) if mode in ("gain", "auto gain", "none") else _fit_surface(intensity, gain, background)
    if flat is not None and (uneven > UNEVEN or mode in ("flat", "gain+flat")):
        notes.append(f"uneven light: brightness varies by {uneven:.1%} over the picture, and was divided out")
    else:
        flat = None
    return Illumination(
        gain,
        measured,
        flat,
        background,
        flicker,
        jumps[0],
        extent,
        uneven,
        slow_is,
        tuple(note for note in notes if note),
        tuple(doubts),
    )


def even_out(
    values: NDArray[np.float32], settings: RecordingSettings, header: Header, white: float | None, logarithmic: bool
) -> Illumination | None:
    """Divide reduced frames by g(t) f(x, y), in place; None where no background is to be seen or none is asked for.

    Parameters
    ----------
    values : shape (t, y, x), pixel values, or log10 of the intensity where ``logarithmic``.
    white : intensity of u = 0; None: unknown.
    """
    if settings.illumination == "none" or len(values) < (FEWEST if settings.illumination == "auto" else 3):
        return None
    black, gain = (0.0, 1.0) if logarithmic else (header.black, header.gain)
    intensity = (
        np.power(10.0, values, dtype=np.float32) if logarithmic else (values - np.float32(black)) * np.float32(gain)
    )
    mode: str = settings.illumination
    if settings.reference is not None or logarithmic:  # f(x, y) is in the reference picture already
        mode = {"auto": "auto gain", "flat": "none", "gain+flat": "gain"}.get(mode, mode)
    level = header.gain if header.limit is not None and not logarithmic else 0.0
    found = measure_illumination(intensity, mode, settings.observable == "bright", white, level)
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


# ----------------------------------------------------------------------------- background


def _average_blocks(intensity: NDArray[np.float32]) -> tuple[Array, tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Average the cells of each block: shape (t, rows, columns), and where blocks begin along y and x."""
    rows, columns = intensity.shape[1:]
    size = max(1, round(max(rows, columns) / BLOCKS))
    starts = tuple(np.arange(0, max(1, n - size // 2), size) for n in (rows, columns))
    counts = np.diff(np.append(starts[0], rows))[:, None] * np.diff(np.append(starts[1], columns))
    sums = np.stack([np.add.reduceat(np.add.reduceat(f, starts[0], 0, np.float64), starts[1], 1) for f in intensity])
    return sums / counts, (starts[0], starts[1])


def _find_background(blocks: Array) -> tuple[NDArray[np.bool_], Array] | None:
    """Mark the blocks whose brightness follows the common one, and give each block's own level.

    The common course is the median over the blocks at the picture's edge. A block belongs to the background if,
    divided by it, it stays within noise; at least three sides of the picture must have some.
    """
    edge = np.ones(blocks.shape[1:], dtype=bool)
    edge[1:-1, 1:-1] = False
    window = max(3, len(blocks) // 20) | 1
    common = np.median(blocks[:, edge] / np.median(blocks[:, edge], axis=0), axis=1)
    still = edge
    for _ in range(3):
        if np.any(common <= 0):
            return None
        course = blocks / common[:, None, None]
        level = np.median(course, axis=0)
        if np.any(level <= 0):
            level = np.where(level > 0, level, np.inf)
        relative = course / level
        noise = _spread_of(relative[:, still]) / np.sqrt(window)
        wander = np.abs(_smooth(relative, window) - 1).max(axis=0)
        still = wander < max(STILL, STILL_NOISE * noise)
        if not still.any():
            return None
        common = np.median(blocks[:, still] / level[still], axis=1)
    sides = sum(bool(line.any()) for line in (still[0], still[-1], still[:, 0], still[:, -1]))
    lit = np.median(level[still]) > LEAST_LIGHT * np.percentile(blocks, 99)
    if still.mean() < LEAST_BACKGROUND or sides < 3 or not lit:
        return None
    return still, np.where(np.isfinite(level), level, 0.0)


def _smooth(series: Array, window: int) -> Array:
    """Average over ``window`` frames; the ends are shorter."""
    total = np.cumsum(np.concatenate([np.zeros((1, *series.shape[1:])), series]), axis=0)
    low = np.maximum(np.arange(len(series)) - window // 2, 0)
    high = np.minimum(np.arange(len(series)) + window // 2 + 1, len(series))
    return np.asarray((total[high] - total[low]) / (high - low).reshape(-1, *[1] * (series.ndim - 1)))


def _spread_of(series: Array) -> float:
    """Standard deviation of white noise in time, from the median of second differences."""
    if len(series) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(series, 2, axis=0))) / (0.6745 * np.sqrt(6)))


def _spread_blocks(
    still: NDArray[np.bool_], edges: tuple[NDArray[np.intp], NDArray[np.intp]], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Mark the cells of the marked blocks."""
    rows, columns = (np.diff(np.append(start, n)) for start, n in zip(edges, shape, strict=True))
    return np.repeat(np.repeat(still, rows, axis=0), columns, axis=1)


# ----------------------------------------------------------------------------- the parts of g(t)


def _take_apart(measured: Array, noise: float) -> tuple[tuple[tuple[int, ...], Array], Array, Array]:
    """Split log g into jumps (frames and their sum), a fast part and a slow part that is 0 at the beginning."""
    course = np.log(measured)
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
    slow = _smooth_ends(rest, window)
    return (kept, jumped), rest - slow, slow - slow[: max(1, window // 4)].mean()


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


# ----------------------------------------------------------------------------- light or law


def _weigh(
    intensity: NDArray[np.float32],
    still: NDArray[np.bool_],
    edges: tuple[NDArray[np.intp], NDArray[np.intp]],
    slow: Array,
    white: float,
) -> str:
    """Tell whether a slow change of the background is light or law, from the plume's content M(t).

    With u = 1 − I/white and the background b(t): light makes M′ = (g′/g) M + aG, decay or growth makes M′ = cM + aG
    with b′ = cb, where aG = a∫|∇u|² ≥ 0 is what spreading fronts add. Both are fitted in integrated form, and the one
    that leaves clearly less unexplained is taken. More than half of the light is not taken for light.
    """
    background = _spread_blocks(still, edges, intensity.shape[1:])
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
    rate = float(_add_up(b) @ (b - b[0])) / (float(_add_up(b) @ _add_up(b)) + 1e-30)
    bends = float(np.abs(rate * _add_up(b) - (b - b[0])).max()) / (float(np.ptp(b)) + 1e-12)
    by_law = _unexplained(grown - rate * _add_up(content), slope) / size
    by_law = max(by_law, 0.5 * bends)
    if by_light < CLEARER * by_law and by_light < POOR:
        return "light"
    certain = by_law < CLEARER * by_light and by_law < POOR
    return "law" if certain or (by_light > POOR and np.ptp(slow) > LARGEST) else "unknown"


def _add_up(rate: Array) -> Array:
    """Integrate over the frames by the trapezium rule, from 0."""
    return np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)])


def _unexplained(grown: Array, slope: Array) -> float:
    """Return the rms that is left of the content's growth after the best a∫G ≥ 0; noise adds a constant to G."""
    from scipy.optimize import nnls

    columns = np.stack([_add_up(slope), _add_up(np.ones_like(slope))], axis=1)
    _, left = nnls(columns / (np.abs(columns).max(axis=0) + 1e-30), grown)
    return float(left / np.sqrt(len(grown)))


def _mean_square_slope(frames: Array) -> Array:
    """Return Σ|∇u|² of each frame."""
    return np.array([sum(float((part**2).sum()) for part in np.gradient(frame)) for frame in frames])


# ----------------------------------------------------------------------------- f(x, y)


def _fit_surface(
    intensity: NDArray[np.float32], gain: Array, background: NDArray[np.bool_]
) -> tuple[NDArray[np.float32] | None, float]:
    """Lay a smooth surface through the background's brightness; return it (1 at its brightest) and its range.

    A polynomial of degree 4 is taken where it predicts left-out parts of the background better than one of degree 2,
    which is the form that lenses and lamps have to first order.
    """
    mean = np.zeros(background.shape)
    for frame, g in zip(intensity, gain, strict=True):
        mean += frame / g
    mean /= len(intensity)
    rows, columns = background.shape
    y, x = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    seen = mean[background]
    parts = (np.floor(3 * (y + 1)) + np.floor(3 * (x + 1))).astype(int)[background] % 3
    errors = []
    for degree in DEGREES:
        terms = _powers(y, x, degree)[:, background]
        if background.sum() < 20 * len(terms):
            errors.append(np.inf)
            continue
        left = [np.sqrt(np.mean((_lay(terms, seen, parts != k) - seen)[parts == k] ** 2)) for k in range(3)]
        errors.append(float(np.mean(left)))
    if not np.isfinite(min(errors)):
        return None, 0.0
    degree = DEGREES[1] if errors[1] < 0.7 * errors[0] else DEGREES[0]
    terms = _powers(y, x, degree)
    weights = np.linalg.lstsq(terms[:, background].T, seen, rcond=None)[0]
    surface = np.tensordot(weights, terms, axes=1)
    rough = float(np.sqrt(np.mean((surface[background] - seen) ** 2)))
    # light is smooth; a still plume among the background is not, and neither is one that fills the picture
    if surface.min() <= 0.05 * surface.max() or rough > SMOOTH * float(np.ptp(surface)):
        return None, 0.0
    surface /= surface.max()
    return surface.astype(np.float32), float(np.ptp(surface))


def _powers(y: Array, x: Array, degree: int) -> Array:
    return np.stack([y**i * x**j for i in range(degree + 1) for j in range(degree + 1 - i)])


def _lay(terms: Array, seen: Array, used: NDArray[np.bool_]) -> Array:
    weights = np.linalg.lstsq(terms[:, used].T, seen[used], rcond=None)[0]
    return np.asarray(weights @ terms)
