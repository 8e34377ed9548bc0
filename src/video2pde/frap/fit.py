"""Fit diffusion, bleaching and an immobile part to a recovery, mode by mode.

    a_q(t) = e^{−kt} { M b_q(t) + (1 − M) b_q(0) },     db_q/dt = −Dλ_q b_q + D f_q(t).

D, k and M (the mobile fraction) are fitted; the initial state b_q(0) is eliminated exactly, so that no frame has to
stand for it and its noise biases nothing. A reference that is noisy itself, or a sample with a texture of its own,
leaves a pattern that stands still; it would pass for an immobile part in every mode. Its size is read from the
finest modes, and what stands still counts the less for it. Where D is not steady then, any pattern may stand still.

Errors are those of a jackknife over blocks of frames: what goes wrong in a frame goes wrong in all its pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import t as student

from video2pde.agreement import compare_estimates, NORMAL, STEADY
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import noise_weights
from video2pde.frap.modes import Modes

Array = NDArray[np.float64]

BLOCKS = 12
"""Blocks of frames that the jackknife leaves out one by one, at most."""
LEAST_FRAMES = 4
"""Frames that a fit needs."""
SUB_WINDOWS, LEAST_IN_WINDOW = 4, 5
"""Parts of the recording that are fitted by themselves, at most; frames that each of them needs."""
FINEST = 0.3
"""Share of the modes, the finest ones, in which nothing but noise and standing patterns is expected."""
ANY_PATTERN = 1e6
"""Variance of a standing pattern, in units of a frame's noise, that leaves it free in every mode."""
SYSTEMATIC = 0.01
"""Error of D and k, relative, that blocks of cells and measured edges leave; measured on known-truth recoveries."""
PARAMETERS = ("D", "k", "M")


@dataclass(frozen=True, eq=False)
class ModalFit:
    """Coefficients with their standard errors; ``rms``: what is left unexplained, in u."""

    values: Mapping[str, float]
    errors: Mapping[str, float]
    rms: float
    blocks: int

    def estimate(self, name: str) -> Estimate:
        """Return a coefficient with its 95 % interval."""
        value, half = self.values[name], NORMAL * self.error(name)
        return Estimate(value, value - half, value + half)

    def error(self, name: str) -> float:
        """Return the error of a normal distribution whose 95 % reach as far as Student's, few blocks being left out."""
        return float(student.ppf(0.975, max(self.blocks - 1, 1))) / NORMAL * self.errors.get(name, 0.0)


@dataclass(frozen=True, eq=False)
class Steadiness:
    """D in parts of the recording: ``spans`` (start, end) in s, estimates, and whether one value fits them all.

    ``chance``: of parts that differ as much where D is one and the same. ``spread``: how much more they differ, in D.
    """

    spans: tuple[tuple[float, float], ...] = ()
    estimates: tuple[Estimate, ...] = ()
    chance: float = float("nan")
    spread: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def steady(self) -> bool | None:
        """Whether the parts agree; None where there are not two of them."""
        return None if len(self.spans) < 2 else self.chance >= STEADY


def fit_modes(modes: Modes, free: Sequence[str], start: Mapping[str, float], pattern: float) -> ModalFit:
    """Fit the ``free`` ones of D, k and M; the others stay as ``start`` has them.

    ``pattern``: variance of what stands still, in units of the noise of a frame (see :func:`standing_pattern`).
    """
    frames = len(modes.times)
    if frames < LEAST_FRAMES:
        raise StageError(f"{frames} frames are too few for a recovery; {LEAST_FRAMES} at least are needed")
    scale = np.array([max(abs(start[name]), _smallest(modes, name)) for name in free])
    low = np.array([0.0 if name == "D" else -np.inf for name in free])

    def left(point: Array) -> Array:
        # in units of their own size, so that neither steps nor tolerances depend on metres or seconds
        return _left_over(modes, {**start, **dict(zip(free, scale * point, strict=True))}, pattern)

    first = np.maximum([start[name] for name in free], low) / scale
    found = least_squares(lambda point: left(point).ravel(), first, bounds=(low, np.inf))
    errors, blocks = jackknife(left, found.x)
    best = [float(value) for value in scale * found.x]
    values = {name: float(start[name]) for name in PARAMETERS} | dict(zip(free, best, strict=True))
    freedom = max(found.fun.size - modes.values.shape[1], 1)
    rms = float(np.sqrt(2 * found.cost / freedom))
    spread = dict.fromkeys(PARAMETERS, 0.0) | dict(zip(free, map(float, scale * errors), strict=True))
    return ModalFit(values, spread, rms, blocks)


def jackknife(left: Callable[[Array], Array], point: Array) -> tuple[Array, int]:
    """Return standard errors from leaving out blocks of frames, one Gauss–Newton step each."""
    base = left(point)
    steps = 1e-4 * np.eye(len(point))
    jacobian = np.stack([(left(point + step) - base) / 1e-4 for step in steps], axis=-1)  # (t, q, parameter)
    grams = np.einsum("tqi,tqj->tij", jacobian, jacobian)
    slopes = np.einsum("tqi,tq->ti", jacobian, base)
    groups = np.array_split(np.arange(len(base)), min(BLOCKS, len(base)))
    whole, total = grams.sum(axis=0), slopes.sum(axis=0)
    draws = np.array([-np.linalg.pinv(whole - grams[g].sum(axis=0)) @ (total - slopes[g].sum(axis=0)) for g in groups])
    count = len(groups)
    return np.sqrt((count - 1) / count * np.sum((draws - draws.mean(axis=0)) ** 2, axis=0)), count


def standing_pattern(modes: Modes, most: float) -> float:
    """Return the variance of what stands still in the finest modes, in units of the noise of one frame.

    ``most``: what the noise of the reference alone can make (1 for one picture as noisy as a frame): a texture beyond
    that may be an immobile part, and is left to M.
    """
    count = max(8, round(FINEST * modes.values.shape[1]))
    finest = modes.values[:, -count:]
    if len(modes.times) < 3:
        return most
    weights = noise_weights(modes.times)
    left = weights[:, :1] * finest[:-2] + weights[:, 1:2] * finest[1:-1] + weights[:, 2:] * finest[2:]
    noise = float(np.median(left**2)) / 0.4549  # the median of χ² with one degree of freedom
    still = float(np.median(finest.mean(axis=0) ** 2)) / 0.4549 - noise / len(modes.times)
    return min(max(still, 0.0) / max(noise, 1e-300), most)


def _smallest(modes: Modes, name: str) -> float:
    """Return the size of a coefficient that would just show in the recording's time."""
    duration = float(np.ptp(modes.times))
    slowest = float(modes.rates[modes.rates > 0].min())
    return {"D": 0.1 / (slowest * duration), "k": 0.05 / duration, "M": 0.1}[name]


def light(modes: Modes, values: Mapping[str, float]) -> Array:
    """Return e^{−kt}, (t,), t being how long light has bleached."""
    return np.asarray(np.exp(-np.clip(values["k"] * modes.lit, -50, 50)))


def response(modes: Modes, values: Mapping[str, float]) -> Array:
    """Return what a unit of each mode at the first frame has become, (t, q)."""
    t = modes.times - modes.times[0]
    mobile = values["M"] * np.exp(-np.minimum(values["D"] * np.outer(t, modes.rates), 700.0)) + (1 - values["M"])
    return np.asarray(light(modes, values)[:, None] * mobile)


def brought_in(modes: Modes, values: Mapping[str, float]) -> Array:
    """Return what measured edges have brought into each mode since the first frame, (t, q); zero without flux.

    The rim shows mobile and immobile part together, under the light: M f = rim/e^{−kt} − (1 − M) rim(0). Between
    frames it is linear in time.
    """
    if modes.forcing is None:
        return np.zeros_like(modes.values)
    dimming = light(modes, values)[:, None]
    drive = modes.forcing / dimming - (1 - values["M"]) * modes.forcing[0]
    return np.asarray(dimming * carried_in(modes.times, values["D"] * modes.rates, drive, values["D"]))


def carried_in(times: Array, rate: Array, drive: Array, speed: float) -> Array:
    """Return ∫ e^{−rate (t − τ)} speed drive(τ) dτ since the first frame, (t, q), the drive linear between frames."""
    total = np.zeros_like(drive)
    for i, step in enumerate(np.diff(times), start=1):
        z = rate * step
        small = z < 1e-3
        safe = np.where(small, 1.0, z)
        decay = np.exp(-np.minimum(z, 700.0))
        whole = np.where(small, 1 - z / 2 + z**2 / 6, (1 - decay) / safe)
        later = np.where(small, 0.5 - z / 6 + z**2 / 24, (1 - whole) / safe)
        both = drive[i - 1] * (whole - later) + drive[i] * later
        total[i] = decay * total[i - 1] + speed * step * both
    return total


def initial_state(modes: Modes, values: Mapping[str, float]) -> Array:
    """Return b_q(0) that fits all frames best, (q,)."""
    answer, seen = response(modes, values), modes.values - brought_in(modes, values)
    return np.asarray((answer * seen).sum(axis=0) / np.maximum((answer**2).sum(axis=0), 1e-300))


def _left_over(modes: Modes, values: Mapping[str, float], pattern: float) -> Array:
    """Return what is unexplained, (t, q), with the direction of a standing pattern shortened by its variance."""
    seen = modes.values - brought_in(modes, values)
    return settle(response(modes, values), seen, light(modes, values), pattern)[0]


def settle(answer: Array, seen: Array, along: Array, pattern: float) -> tuple[Array, Array]:
    """Return what the initial state that fits best leaves of ``seen`` (t, q), and that state (q,).

    ``answer`` (t, q): what a unit of each mode becomes; ``along`` (t,): how a standing pattern dims.
    """
    answer, seen = _whiten(answer, along, pattern), _whiten(seen, along, pattern)
    state = (answer * seen).sum(axis=0) / np.maximum((answer**2).sum(axis=0), 1e-300)
    return np.asarray(seen - answer * state), np.asarray(state)


def _whiten(series: Array, along: Array, pattern: float) -> Array:
    """Multiply by C^{−½}, C = 1 + ρ g gᵀ over the frames: noise of one, and a pattern of ρ that dims with the light."""
    size = float(along @ along)
    shortened = 1 - 1 / np.sqrt(1 + pattern * size)
    return np.asarray(series - shortened / size * np.outer(along, along @ series))


def mobile_part(modes: Modes, whole: ModalFit) -> Modes:
    """Take light and immobile part off, as the fit of the whole recording has them: what is left only diffuses."""
    dimming = light(modes, whole.values)[:, None]
    immobile = (1 - whole.values["M"]) * initial_state(modes, whole.values)
    forcing = None
    if modes.forcing is not None:
        forcing = modes.forcing / dimming - (1 - whole.values["M"]) * modes.forcing[0]
    return replace(modes, values=modes.values / dimming - immobile, forcing=forcing)


def fit_parts(modes: Modes, whole: ModalFit, pattern: float) -> Steadiness:
    """Fit D in parts of the recording, and test whether it is one and the same: χ² of the parts about their mean.

    Bleaching rate and immobile part are those of the whole recording: a short part cannot tell them from D.
    """
    parts = min(SUB_WINDOWS, len(modes.times) // LEAST_IN_WINDOW)
    if parts < 2:
        note = f"{len(modes.times)} frames are too few to be divided: whether D is steady cannot be told"
        return Steadiness(notes=(note,))
    mobile = mobile_part(modes, whole)
    alone = {"D": whole.values["D"], "k": 0.0, "M": 1.0}
    # neighbouring parts share a frame, so that no interval between frames is lost
    ends = np.linspace(0, len(modes.times) - 1, parts + 1).round().astype(int)
    spans, found = [], []
    for first, last in pairwise(ends):
        window = mobile.window(slice(first, last + 1))
        spans.append((float(window.times[0]), float(window.times[-1])))
        found.append(fit_modes(window, ("D",), alone, pattern))
    # few frames each: their errors reach as far as Student's, and hold what blocks of cells and edges get wrong
    errors = [float(np.hypot(part.error("D"), SYSTEMATIC * whole.values["D"])) for part in found]
    agreement = compare_estimates([part.values["D"] for part in found], errors)
    estimates = tuple(part.estimate("D") for part in found)
    return Steadiness(tuple(spans), estimates, agreement.chance, agreement.spread)
