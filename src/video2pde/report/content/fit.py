"""The section on fit: is what the law leaves within what noise leaves, and if not, where, when and why."""

from __future__ import annotations

from video2pde.fit import FitTest
from video2pde.fit.doubt import OUTSIDE
from video2pde.report import fit_tables
from video2pde.report.content.words import listed, number, percent, Story
from video2pde.report.document import Details, Item, Note, Section

MOST_SUSPECTS = 6
"""Suspects that are shown; the others are in suspects.csv."""


def tell_fit(story: Story) -> Section | None:
    """Tell whether the chosen law passes the absolute test, or the one that was nearest to it."""
    run = story.run
    if not run.has("fit") or not run.fit:
        return None
    test = run.chosen_fit or min(run.fit.values(), key=lambda test: test.unexplained)
    items: list[Item] = []
    if test.cause is not None:
        items.append(Note(story.prose(f"{test.cause.words}."), "warning", "Likely cause"))
    if test.rival:
        items.append(Note(story.prose(f"{test.rival}."), "warning", "Another law says as much"))
    items += story.picture(
        "fit-maps",
        "Maps of what the law leaves at four times, in standard deviations of noise, and of noise alone.",
        "Where and when the law fails: red and blue patches that noise alone (the rows below) does not make.",
    )
    items.append(story.table(fit_tables.list_scales(test, story.unit)))
    items += story.picture(
        "fit-consistency",
        "Each coefficient from parts of the window, over the interval of the whole.",
        "The law fitted to parts of the window in weak form, with 95 % intervals. Line and band: the calibrated "
        "coefficient and its interval. Orange: further from the whole than noise allows.",
    )
    if test.suspects:
        sheet = fit_tables.list_suspects(test, MOST_SUSPECTS)
        shown = sheet.only("suspect", "removes", "chance", "log_chance", "moves", "likely", "words")
        items.append(Details("Suspects, the best explanation first", (story.table(shown),)))
    return Section("fit", "Does the law fit?", _sentence(story, test), tuple(items))


def _sentence(story: Story, test: FitTest) -> str:
    reason = story.prose(test.reason)
    share = (
        f"of the rate of change it leaves {percent(test.unexplained, 2)}, where noise and the recording's known "
        f"faults leave {percent(test.expected, 2)}"
    )
    split = [part.name for part in test.consistency if not part.agrees]
    parts = ""
    if test.consistency:
        agree = (
            f"{len(test.consistency) - len(split)} of {len(test.consistency)} parts of the window agree with the whole"
        )
        parts = f"; {agree}" + (f" (not: {listed(split)})" if split else "")
    verdict = "Yes" if test.passes else "No"
    return f"{verdict}: {reason}; {share}{parts}{_wider(story, test)}."


def _wider(story: Story, test: FitTest) -> str:
    """Say by how much intervals are wider for what the law leaves out, or may leave out; nothing where it is little."""
    likeliest = max(test.suspects, key=lambda suspect: suspect.probability, default=None)
    doubted = likeliest is not None and likeliest.probability > OUTSIDE
    split = any(not part.agrees for part in test.consistency)
    widened = {name: more for name, more in test.lack.items() if more > 0}
    if not widened or (test.passes and not (doubted or split or test.apart)):
        return ""
    each = listed(f"{number(more, digits=2)} ({story.term(name)})" for name, more in widened.items())
    why = ""
    if test.passes and doubted and likeliest is not None:
        why = (
            f" for effects too weak to be sure of, first of all {likeliest.name} ({percent(likeliest.probability, 2)})"
        )
    if test.apart:
        why += f", and to where the weak form has {listed(story.term(name) for name in test.apart)}"
    return f"; intervals reach further by {each}{why}"
