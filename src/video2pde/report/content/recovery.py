"""The section on a recovery after a bleach."""

from __future__ import annotations

import numpy as np

from video2pde.estimate import Estimate
from video2pde.frap.recovery import Recovery
from video2pde.report.calibration_tables import list_populations, list_recovery
from video2pde.report.content.words import number, Story
from video2pde.report.document import Axis, Chart, Item, Marker, Note, Section, Series, Tiles


def tell_recovery(story: Story) -> Section | None:
    """Tell D, mobile fraction, half time and bleaching rate, with the curve and D in parts of the recording."""
    recovery = story.run.recovery
    if recovery is None:
        return None
    if isinstance(recovery, str):
        return Section("recovery", "Recovery after the bleach", f"No recovery was measured: {recovery}.")
    items: list[Item] = [story.table(list_recovery(recovery)), Tiles((_curve(recovery), _parts(recovery)), 2)]
    items += _populations(story, recovery)
    items += [Note(story.prose(text), "warning", "Bear in mind") for text in recovery.notes]
    alt = "The first frame with the bleached region, the recovery with its fit, and D over time."
    items += story.picture("recovery", alt)
    return Section("recovery", "Recovery after the bleach", _sentence(recovery), tuple(items))


def _sentence(recovery: Recovery) -> str:
    text = f"D = {_with_interval(recovery.diffusion)} {recovery.unit}²/s"
    if np.isfinite(recovery.mobile.value):
        text += f", a mobile fraction of {_with_interval(recovery.mobile)}"
    if np.isfinite(recovery.half_time.value):
        text += f", half recovered after {_with_interval(recovery.half_time)} s"
    else:
        text += ", not half recovered within the recording"
    return f"{text}; the light bleaches everything at {_with_interval(recovery.bleaching)} 1/s."


def _populations(story: Story, recovery: Recovery) -> list[Item]:
    """Compare the laws of one and of two populations."""
    found = recovery.populations
    if found is None:
        return []
    if isinstance(found, str):
        return [Note(f"Populations were not compared: {found}.", "warning", "Bear in mind")]
    return [
        story.table(list_populations(recovery, found)),
        Note(story.prose(f"{found.verdict}."), "info", "Populations"),
    ]


def _with_interval(estimate: Estimate) -> str:
    if not np.isfinite(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def _curve(recovery: Recovery) -> Chart:
    markers = [Marker("before the bleach", recovery.before, "y", "grey")]
    if np.isfinite(recovery.half_time.value):
        markers.append(Marker("half time", float(recovery.times[0] + recovery.half_time.value), "x", "grey"))
    return Chart(
        "Recovery",
        Axis("time", "s"),
        Axis("mean of u over the bleached region"),
        (
            Series("measured", recovery.times, recovery.measured, style="scatter", colour="ink"),
            Series("fit", recovery.times, recovery.fitted),
            Series("measured, bleaching by the light taken off", recovery.times, recovery.corrected, style="scatter"),
        ),
        f"The bleached region recovers from {number(recovery.measured[0])} to {number(recovery.measured[-1])}.",
        markers=tuple(markers),
    )


def _parts(recovery: Recovery) -> Chart:
    steadiness = recovery.steadiness
    middles = np.array([(start + end) / 2 for start, end in steadiness.spans])
    values, low, high = (
        np.array([getattr(estimate, end) for estimate in steadiness.estimates]) for end in ("value", "low", "high")
    )
    return Chart(
        "D in parts of the recording",
        Axis("time", "s"),
        Axis("D", f"{recovery.unit}²/s"),
        (Series("part by itself", middles, values, style="scatter", low=low, high=high, colour="ink"),),
        "D fitted to parts of the recording by themselves.",
        markers=(Marker("whole recording", recovery.diffusion.value, "y"),),
    )
