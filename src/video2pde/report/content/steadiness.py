"""The section on a named law's coefficients in parts of the training window."""

from __future__ import annotations

import numpy as np

from video2pde.calibration.parts import InParts
from video2pde.report.calibration_tables import list_steadiness
from video2pde.report.content.words import Story
from video2pde.report.document import Axis, Chart, Item, Marker, Section, Series, Tiles
from video2pde.terms.words import coefficient_units, describe

TITLE = "In parts of the recording"


def tell_steadiness(story: Story) -> Section | None:
    """Tell a named law's coefficients part by part, and whether they are steady."""
    found = story.run.steadiness
    if found is None:
        return None
    if isinstance(found, str):
        return Section("steadiness", TITLE, f"{found[0].upper()}{found[1:]}.")
    charts: tuple[Item, ...] = tuple(_chart(story, found, index) for index in range(len(found.terms)))
    items = (story.table(list_steadiness(found, story.run.unit)), Tiles(charts, 2))
    return Section("steadiness", TITLE, _sentence(found), items)


def _sentence(found: InParts) -> str:
    steady = "Every coefficient is steady over the training window, as far as its parts can tell."
    if not found.unsteady:
        return steady
    names = ", ".join(describe(term).text for term in found.terms if term.name in found.unsteady)
    return (
        f"Not steady over the training window: {names}. What is found depends on the window that is fitted, so that "
        "something is missing from the law."
    )


def _chart(story: Story, found: InParts, index: int) -> Chart:
    term, law = found.terms[index], story.run.laws[found.library]
    middles = np.array([(start + end) / 2 for start, end in found.spans])
    values, low, high = np.array([(each.value, each.low, each.high) for each in found.estimates[term.name]]).T
    name = describe(term).text
    return Chart(
        f"{name} in parts of the training window",
        Axis("time", "s"),
        Axis(f"coefficient of {name}", coefficient_units(term, story.run.unit)),
        (Series("part by itself", middles, values, style="scatter", low=low, high=high, colour="ink"),),
        f"The coefficient of {name}, fitted to parts of the training window by themselves.",
        markers=(Marker("whole window", law.estimates[term.name].value, "y"),),
    )
