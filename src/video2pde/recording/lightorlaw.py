"""Whether a background that slowly changes is light or law, which the plume tells.

Light makes it fainter by the same share as the background, a law by a share of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import brentq, lsq_linear, minimize_scalar, nnls

from video2pde.recording.course import Course

Array = NDArray[np.float64]

SLOW = 0.006  # slow change of the light, relative, below which it is left alone
LARGEST = 0.5  # slow change of log g beyond which it is not light
CLEARER = 0.6  # how much better light must explain the plume's content than a law does, or the other way round
FEWEST = 8  # frames that are compared, below which nothing is told
POWERS = (1, 2, 3)  # of u in a law that a background may follow
GOOD = 0.005  # share of the content's change that a right law of these may leave
FASTEST = 3.0  # largest rate of decay or growth beside flicker, in units of one over the film
POOR = 0.05  # share of the content's change beyond which an explanation is none


def weigh(intensity: NDArray[np.float32], background: NDArray[np.bool_], course: Course, white: float) -> str:
    """Tell whether a slow change of the background is light or law, from the plume's content M(t).

    Jumps and flicker are divided out beforehand. With u = 1 − I/white and the background b(t): light makes
    M′ = (g′/g) M + aG, decay or growth makes M′ = cM + aG with b′ = cb, where aG = a∫|∇u|² ≥ 0 is what spreading fronts
    add. Both are fitted in integrated form, and the one that leaves clearly less unexplained is taken. More than half
    of the light is not taken for light. A reaction not linear in u has more freedom than light, and is taken where it
    leaves next to nothing and clearly less.
    """
    middles = _middles(intensity)
    if len(middles) < FEWEST:
        return "unknown"
    slow = course.slow
    frames = 1 - _few(intensity, np.exp(course.quick) * white, middles)
    b = frames[:, _far_from_plume(background)].mean(axis=1)
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


def _middles(intensity: NDArray[np.float32]) -> NDArray[np.int64]:
    """Choose about sixty frames, two away from either end."""
    return np.arange(2, len(intensity) - 2, max(1, len(intensity) // 60))


def _few(intensity: NDArray[np.float32], light: Array, middles: NDArray[np.int64]) -> Array:
    """Return frames (n, y, x) divided by the ``light`` (t,) of each, averages of five around the ``middles``."""
    near = [slice(k - 2, k + 3) for k in middles]
    return np.stack([np.tensordot(1 / light[n], intensity[n], axes=1) / (n.stop - n.start) for n in near])


def _far_from_plume(background: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the background at the picture's rim: faint tails of a plume lie below the noise and still count in a sum."""
    rim = np.ones_like(background)
    inner = [max(2, n // 8) for n in background.shape]
    rim[inner[0] : -inner[0], inner[1] : -inner[1]] = False
    return background & rim


def fade_beside_flicker(
    intensity: NDArray[np.float32], background: NDArray[np.bool_], course: Course, white: float
) -> Array | None:
    """Return the slow course log (1 − b(t)) of light that flickers about a level, while dye decays or grows.

    What flickers, flickers slowly, too, and that hides how a background fades. The plume does not mind: divided by the
    brightness of its own background a frame is free of light, w = 1 − I/B = (u − b)/(1 − b), and its content
    M = (1 − b)Σw obeys M′ = cM + aG, with b′ = cb and G as in :func:`weigh`. None: that does not explain the plume, or
    leaves more than flicker of the background.
    """
    middles = _middles(intensity)
    if not course.flickers or len(middles) < FEWEST:
        return None
    brightness = float(intensity[:, _far_from_plume(background)].mean(dtype=np.float64)) / white
    level = brightness * np.exp(course.log) / float(np.exp(course.log).mean())
    excess = 1 - _few(intensity, level * white, middles)
    sums, slope = excess.sum(axis=(1, 2)), _mean_square_slope(excess)
    known = np.log(level) - course.jumped
    step, frames = float(np.diff(middles)[0]), np.arange(len(level))
    begin = (frames - middles[0]) / step  # time, counted as the integrals count it

    def ground(rate: float) -> Array:
        # b(t) whose mean brightness, in logarithms, is the one that is seen
        faded, target = np.exp(rate * begin), known.mean()
        most = (1 - 1e-6) / faded.max()
        if np.log1p(-most * faded).mean() > target or target > 0:
            return np.zeros_like(faded)
        first = brentq(lambda b: np.log1p(-b * faded).mean() - target, 0.0, most)
        return np.asarray(first * faded)

    def unexplained(rate: float) -> float:
        clear = 1 - ground(rate)[middles]
        content = clear * sums
        left = _unexplained(content - content[0] - rate * _integral(content), clear**2 * slope)
        return left / (float(np.abs(content).max()) + 1e-12)

    rates = np.linspace(-FASTEST, FASTEST, 61) / len(middles)
    best, near = min(rates, key=unexplained), float(rates[1] - rates[0])
    found = minimize_scalar(unexplained, bounds=(best - near, best + near), method="bounded").x
    cause = np.log1p(-ground(found))
    cause -= cause[0]
    certain = unexplained(found) < GOOD and float(np.ptp(cause)) > SLOW and course.leaves_chance(cause)
    return cause if certain else None


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
