"""Sections on the choice: the criteria, and what can be proved about the chosen law."""

from __future__ import annotations

from video2pde.report.content.words import count, listed, number, percent, Story
from video2pde.report.document import (
    Cell,
    Check,
    Code,
    Column,
    Equation,
    Item,
    Math,
    Note,
    Paragraph,
    Section,
    Strong,
    Table,
    Text,
)
from video2pde.selection import Selection


def tell_selection(story: Story) -> Section | None:
    """Tell how the contenders did against the four criteria."""
    selection = story.run.selection
    if selection is None:
        return None
    items: list[Item] = []
    if selection.candidates:
        items.append(_criteria(story, selection))
    for name in selection.tied[1:]:
        other = story.run.laws[name]
        items.append(
            Equation(
                other.model.equation.latex,
                other.model.equation.text,
                f"The alternative {name}, as good; the top of the page has its intervals.",
            )
        )
    rule: Text = (
        f"The smallest law wins whose error is within {percent(selection.tolerance)} of the best; ties between laws of "
        "one size make the verdict ambiguous. Fixed before the test window was read; the choice's fingerprint is ",
        Code(selection.digest[:16]),
        ".",
    )
    items.append(Paragraph(rule))
    return Section("selection", "Selection", _selection_sentence(story), tuple(items))


def _selection_sentence(story: Story) -> str:
    selection = story.run.selection
    assert selection is not None
    if selection.chosen is None:
        return story.prose(f"No law was chosen: {selection.reason}.")
    winner = next(c for c in selection.candidates if c.library == selection.chosen)
    failed = [k.name for k in winner.criteria if not k.passed]
    passed = f"passes all {len(winner.criteria)} criteria" if not failed else f"fails on {listed(failed)}"
    rivals = len(selection.candidates) - 1
    text = f"{winner.library} {passed}, among {count(rivals, 'rival')}"
    if selection.front_best is not None and selection.front_best != selection.chosen:
        text += f"; the front is placed best by {selection.front_best}"
    if selection.verdict == "ambiguous":
        text += f"; the choice is not unique: {story.prose(selection.reason)}"
    return f"{text}."


def _criteria(story: Story, selection: Selection) -> Table:
    """Show the candidates, best first, with each criterion's value marked as passed or failed."""
    unit = story.unit
    rows: list[tuple[Cell, ...]] = []
    for c in sorted(selection.candidates, key=lambda c: c.rrmse):
        error, front, centroid, sign = c.criteria
        name: Cell = Strong(f"{c.library}, chosen") if c.library == selection.chosen else c.library
        spreads = sign.value != 0 or not sign.passed
        diffusion = Check(sign.passed, number(sign.value, digits=3)) if spreads else Check(None, "none")
        rows.append(
            (
                name,
                len(c.terms),
                Check(error.passed, percent(error.value)),
                Check(front.passed, number(front.value, digits=3)),
                Check(centroid.passed, number(centroid.value, digits=3)),
                diffusion,
                c.skill,
                Check(c.beats_persistence, "yes" if c.beats_persistence else "no"),
            )
        )
    limits = selection.candidates[0].criteria
    columns = (
        Column("library"),
        Column("terms", align="right"),
        Column("rRMSE"),
        Column("front", unit),
        Column("centroid", unit),
        Column("least diffusion"),
        Column("skill", align="right", format=".4f"),
        Column("beats persistence"),
    )
    caption = (
        f"The four criteria on the validation window. Limits: rRMSE {percent(limits[0].limit)}, front "
        f"{number(limits[1].limit, unit, 3)}, centroid {number(limits[2].limit, unit, 3)}, diffusion never below zero."
    )
    return Table(columns, tuple(rows), caption)


def tell_analysis(story: Story) -> Section | None:
    """Tell what can be proved about the law, and whether its own rollout bears it out."""
    analysis = story.analysis
    if analysis is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for s in analysis.statements:
        verdict = Check(s.holds, {True: "verified", False: "not borne out", None: "not checked"}[s.holds])
        formula: Cell = Math(s.latex, s.latex) if s.latex else None
        rows.append((s.title, formula, s.text, s.residual, s.order, verdict))
    columns = (
        Column("statement"),
        Column("formula"),
        Column("meaning"),
        Column("residual", align="right", format=".2g"),
        Column("order", align="right", format=".2f"),
        Column("on its own rollout"),
    )
    items: list[Item] = [Equation(analysis.equation.latex, analysis.equation.text)]
    if analysis.groups:
        groups = tuple((g.name, Math(g.latex, g.latex), g.value) for g in analysis.groups)
        items.append(
            Table(
                (Column("number"), Column("formula"), Column("value", align="right")),
                groups,
                "Numbers without dimension.",
            )
        )
    items.append(Table(columns, tuple(rows), f"Checked on {analysis.check}." if analysis.check else ""))
    items += [Note(text) for text in analysis.notes]
    checked = [s for s in analysis.statements if s.holds is not None]
    held = sum(bool(s.holds) for s in checked)
    largest = max((g.value for g in analysis.groups if g.name == "gradient number"), default=None)
    strength = "" if largest is None else f" with a gradient number of {number(largest, digits=3)}"
    verified = f"{held} of {len(checked)} statements checked on its rollout hold"
    sentence = f"The law is of the kind {analysis.kind}{strength}; {verified}."
    title = "Cole–Hopf analysis" if analysis.kind == "Cole–Hopf" else "Analysis of the law"
    return Section("analysis", title, sentence, tuple(items))
