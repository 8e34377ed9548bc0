"""What is told of a recovery after a bleach: D, mobile fraction, half time, bleaching rate, and the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import gaussian_filter
from scipy.optimize import brentq

from video2pde.agreement import NORMAL
from video2pde.errors import StageError
from video2pde.estimate import Estimate
from video2pde.field import Field
from video2pde.frap.fit import (
    ANY_PATTERN,
    brought_in,
    fit_modes,
    fit_parts,
    initial_state,
    light,
    ModalFit,
    response,
    standing_pattern,
    Steadiness,
    SYSTEMATIC,
)
from video2pde.frap.modes import decompose, Edges, Modes
from video2pde.frap.populations import compare_populations, Populations

Array = NDArray[np.float64]

CLEARLY_BETTER = 0.95
"""Share of what is left unexplained that light for each picture must come below to be taken for light all the time."""
HALF = 0.5
"""Share of the spot's depth from which a cell belongs to the bleached region."""
LEAST_DEPTH = 0.03
"""Depth of the spot, in u, below which there is none."""
UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"))
FRAMES_BEFORE = 0.25
"""Variance of the mean of the frames before a bleach, of which there are a few as a rule."""
LEAST_FRAMES, FOR_MOBILE = 4, 8
"""Frames that D needs; and that an immobile part needs to be told from a slow one."""


@dataclass(frozen=True, eq=False)
class Recovery:
    """A recovery in numbers.

    Parameters
    ----------
    diffusion, all_mobile : D in unit²/s; and what it would be if nothing were immobile.
    patterned : D with any pattern that stands still, where D is steady with that alone; NaN elsewhere.
    bleaching : the rate k at which the light dims everything, 1/s.
    mobile : mobile fraction of what was bleached. half_time : s from the first frame.
    steadiness : D in parts of the recording.
    times, measured, fitted : (t,), the mean of u over the bleached region, and the fitted curve.
    corrected : (t,), the measured curve with the bleaching by the light taken off.
    spot : (y, x), the bleached region. before : level before the bleach; ``reference``: whether it was measured.
    populations : laws of one and two populations side by side; a text says why not, None where it was not asked for.
    """

    diffusion: Estimate
    all_mobile: Estimate
    bleaching: Estimate
    mobile: Estimate
    half_time: Estimate
    steadiness: Steadiness
    times: Array
    measured: Array
    fitted: Array
    corrected: Array
    spot: NDArray[np.bool_]
    before: float
    reference: bool
    edges: Edges
    unit: str
    rms: float
    notes: tuple[str, ...] = ()
    patterned: Estimate = UNKNOWN
    populations: Populations | str | None = None

    def summary(self) -> list[str]:
        """Say it in lines for the terminal."""
        lines = [
            f"  D                {_text(self.diffusion)} {self.unit}²/s",
            f"  mobile fraction  {_text(self.mobile)}",
            f"  half time        {_text(self.half_time)} s",
            f"  D, all mobile    {_text(self.all_mobile)} {self.unit}²/s",
            f"  bleaching rate   {_text(self.bleaching)} 1/s",
        ]
        for (start, end), estimate in zip(self.steadiness.spans, self.steadiness.estimates, strict=True):
            lines.append(f"  D, {start:.4g} to {end:.4g} s: {_text(estimate)} {self.unit}²/s")
        if isinstance(self.populations, Populations):
            lines += self.populations.summary(self.unit)
        return lines


def _text(estimate: Estimate) -> str:
    if not np.isfinite(estimate.value):
        return "not known"
    if not np.isfinite(estimate.low):
        return f"{estimate.value:.4g} (no interval)"
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"


def analyse_recovery(field: Field, edges: Edges = "measured", populations: bool = False) -> Recovery:
    """Measure a recovery: u being what there was before the bleach (1 with a reference), less what was bleached.

    ``edges``: the rim of the picture, or of the mask, as it is seen; or nothing passes it. ``populations``: compare
    laws of one and of two populations, too.
    """
    if len(field) < LEAST_FRAMES:
        raise StageError(f"{len(field)} frames are too few for a recovery; {LEAST_FRAMES} at least are needed")
    spot, before, reference = find_spot(field)
    modes = decompose(field, spot, edges)
    pattern = standing_pattern(modes, reference_noise(field))
    modes, fit = _choose_light(modes, {"D": _guess(field, spot), "k": 0.0, "M": 1.0}, pattern, field.uniform)
    everything, mobile = fit, UNKNOWN
    if len(field) >= FOR_MOBILE:
        whole = fit_modes(modes, ("D", "k", "M"), fit.values, pattern)
        mobile = whole.estimate("M")
        if whole.values["M"] < 1:
            fit = whole
    steadiness = fit_parts(modes, fit, pattern)
    without = steadiness if fit is everything else fit_parts(modes, everything, pattern)
    patterned = _with_any_pattern(modes, fit, steadiness)
    curve = field.values[:, spot].mean(axis=1, dtype=float)
    fitted, half_time = _curves(modes, fit, before, curve)
    return Recovery(
        diffusion=_known(fit, steadiness, patterned),
        all_mobile=_known(everything, without, patterned if without is steadiness else UNKNOWN),
        patterned=patterned,
        bleaching=widen(fit.estimate("k")),
        mobile=at_most_one(mobile),
        half_time=half_time,
        steadiness=steadiness,
        times=field.times,
        measured=curve,
        fitted=fitted,
        corrected=curve / light(modes, fit.values),
        spot=spot,
        before=before,
        reference=reference,
        edges=edges,
        unit=field.grid.unit,
        rms=fit.rms,
        populations=_compare(modes, everything, pattern) if populations else None,
        notes=(
            *_tell_light(modes, fit),
            *_remarks(field, mobile, steadiness, reference, patterned),
            *_tell_all_mobile(field, steadiness, without),
        ),
    )


def _choose_light(modes: Modes, start: Mapping[str, float], pattern: float, uniform: bool) -> tuple[Modes, ModalFit]:
    """Fit D and k with light that shines all the time, and with light for each picture alone; take what fits better.

    A shutter that opens for a picture bleaches as much for each, however long the time between them; where pictures are
    evenly spaced the two are one and the same.
    """
    steady = fit_modes(modes, ("D", "k"), start, pattern)
    if uniform:
        return modes, steady
    flashed = modes.by_picture()
    each = fit_modes(flashed, ("D", "k"), start, pattern)
    return (flashed, each) if each.rms < CLEARLY_BETTER * steady.rms else (modes, steady)


def _compare(modes: Modes, fit: ModalFit, pattern: float) -> Populations | str:
    try:
        return compare_populations(modes, fit.values["D"], fit.values["k"], pattern)
    except StageError as error:
        return str(error)


def _with_any_pattern(modes: Modes, fit: ModalFit, steadiness: Steadiness) -> Estimate:
    """Return D with any pattern that stands still (an uneven reference, texture, what does not move); NaN: no use.

    It is asked for where D is not steady, and is of use where D is steady then.
    """
    if steadiness.steady is not False:
        return UNKNOWN
    free = fit_modes(modes, ("D", "k"), {**fit.values, "M": 1.0}, ANY_PATTERN)
    return widen(free.estimate("D")) if fit_parts(modes, free, ANY_PATTERN).steady else UNKNOWN


def _known(fit: ModalFit, steadiness: Steadiness, patterned: Estimate) -> Estimate:
    """Return D with its interval: as far as its parts differ, or to D with a pattern if that is why."""
    own = widen(fit.estimate("D"))
    if np.isfinite(patterned.value):
        own = replace(own, low=min(own.low, patterned.low), high=max(own.high, patterned.high))
    else:
        own = widen(fit.estimate("D"), steadiness)
    return replace(own, low=max(own.low, 0.0))  # nothing gathers by itself


def at_most_one(mobile: Estimate) -> Estimate:
    """Keep a mobile fraction to what it can be: no more than everything is mobile.

    An estimate beyond that says nothing of how far below it the truth may be, so the interval keeps its lower half.
    """
    if not np.isfinite(mobile.value):
        return mobile
    value = min(mobile.value, 1.0)
    return Estimate(value, value - (mobile.value - mobile.low), min(mobile.high, 1.0))


def reference_noise(field: Field) -> float:
    """Return the variance of the reference's noise in units of a frame's: 1 for one picture, 0 without a reference."""
    reference = field.provenance.settings.get("reference")
    if isinstance(reference, list | tuple):
        return 1.0 / max(int(reference[1]) - int(reference[0]) + 1, 1)
    return 0.0 if reference is None else FRAMES_BEFORE if reference == "before" else 1.0


def find_spot(field: Field) -> tuple[NDArray[np.bool_], float, bool]:
    """Find the bleached region, the level before the bleach, and whether a reference gave that level."""
    inside = np.ones(field.grid.shape, bool) if field.mask is None else field.mask
    first = gaussian_filter(np.asarray(field.values[0], float), 1.0)
    reference = field.provenance.settings.get("reference") is not None
    before = 1.0 if reference else float(np.percentile(first[inside], 95))
    depth = np.where(inside, before - first, -np.inf)
    # the deepest hundredth, not a single dark cell
    deepest = float(np.percentile(depth[inside], 99))
    far = float(np.percentile(depth[inside], 25))
    if deepest - far < LEAST_DEPTH * max(abs(before), 1e-300):
        raise StageError(
            f"no bleached spot is to be seen in the first frame: its darkest part is {max(deepest, 0):.1%} below the "
            "rest; is the start right (--start)?"
        )
    return depth > far + HALF * (deepest - far), before, reference


def _guess(field: Field, spot: NDArray[np.bool_]) -> float:
    """Return a D with which the spot fills in about a third of the recording."""
    radius2 = spot.sum() * field.grid.dx * field.grid.dy / np.pi
    return float(radius2 / max(field.duration, 1e-300))


def widen(estimate: Estimate, steadiness: Steadiness | None = None) -> Estimate:
    """Let an interval cover what the modes get wrong and, where the parts are not one law's, how much they differ."""
    differ = 0.0 if steadiness is None or steadiness.steady is not False else NORMAL * steadiness.spread
    more = np.hypot(SYSTEMATIC * estimate.value, differ)
    low, high = (np.hypot(abs(end - estimate.value), more) for end in (estimate.low, estimate.high))
    return replace(estimate, low=estimate.value - float(low), high=estimate.value + float(high))


def _curves(modes: Modes, fit: ModalFit, before: float, curve: Array) -> tuple[Array, Estimate]:
    """Return the fitted curve, and when the mobile part has recovered half of what it was bleached by."""
    state = initial_state(modes, fit.values)
    missed = float(np.mean(curve - (response(modes, fit.values) * state + brought_in(modes, fit.values)) @ modes.means))
    fitted = (response(modes, fit.values) * state + brought_in(modes, fit.values)) @ modes.means + missed
    at = []
    for value in (fit.values["D"], fit.estimate("D").low, fit.estimate("D").high):
        law = {**fit.values, "D": max(value, 1e-3 * fit.values["D"]), "M": 1.0}
        mobile = (response(modes, law) * state + brought_in(modes, law)) @ modes.means / light(modes, law)
        at.append(_crossing(modes.times - modes.times[0], mobile, before))
    ends = [value for value in at if np.isfinite(value)]
    known = len(ends) == len(at)
    return fitted, Estimate(at[0], min(ends) if known else float("nan"), max(ends) if known else float("nan"))


def _crossing(times: Array, curve: Array, before: float) -> float:
    """Find when a curve is half the way from its first value to the level before the bleach; NaN if it never is."""
    share = (curve - curve[0]) / (before - curve[0])
    later = np.flatnonzero(share >= HALF)
    if not len(later) or later[0] == 0:
        return float("nan")
    k = int(later[0])
    between = PchipInterpolator(times[: k + 1], share[: k + 1])
    return float(brentq(lambda time: float(between(time)) - HALF, times[k - 1], times[k]))


def _tell_light(modes: Modes, fit: ModalFit) -> Sequence[str]:
    if modes.exposure is None:
        return ()
    each = fit.values["k"] * float(np.ptp(modes.times)) / (len(modes.times) - 1)
    return (
        f"bleaching goes with the pictures taken ({each:.2%} for each), not with the time between them: the bleaching "
        "rate is that over the whole recording",
    )


def _remarks(
    field: Field, mobile: Estimate, steadiness: Steadiness, reference: bool, patterned: Estimate
) -> Sequence[str]:
    remarks = list(steadiness.notes)
    if steadiness.steady is False:
        why = "more than one D is at work (an immobile part, several species, uneven light), and the interval says so"
        if np.isfinite(patterned.value):
            why = (
                "a pattern that stands still explains that (a reference that was bleached before, texture, dye that "
                f"does not move): with any such pattern D is {_text(patterned)} {field.grid.unit}²/s and steady, and "
                "the interval reaches to that"
            )
        remarks.append(
            f"D is not steady over the recording: {_in_parts(field, steadiness)}. It depends on the window that is "
            f"fitted: {why}"
        )
    if not reference:
        remarks.append("without a reference the level before the bleach is a guess, and with it the mobile fraction")
    if mobile.low > 1:
        remarks.append(
            f"the spot recovers more than it was bleached by (a mobile fraction of {mobile.value:.3g}): everything is "
            "taken to be mobile, and light or reference are not quite right"
        )
    return remarks


def _tell_all_mobile(field: Field, steadiness: Steadiness, without: Steadiness) -> Sequence[str]:
    """Say that a law without an immobile part has another D in every window, where that is so."""
    if without is steadiness or without.steady is not False:
        return ()
    return (
        f"if everything were mobile, D would depend on the window that is fitted: {_in_parts(field, without)}; so does "
        "that of a law without an immobile part",
    )


def _in_parts(field: Field, steadiness: Steadiness) -> str:
    values = ", ".join(
        f"{estimate.value:.3g} ({start:.3g} to {end:.3g} s)"
        for (start, end), estimate in zip(steadiness.spans, steadiness.estimates, strict=True)
    )
    return f"{values} {field.grid.unit}²/s"
