"""The section on flow: what was tried, what was chosen, and what one film cannot tell."""

from __future__ import annotations

from video2pde.flow.words import describe_flow
from video2pde.report.content.words import number, percent, Story
from video2pde.report.document import Column, Item, Section, Table


def tell_flow(story: Story) -> Section | None:
    """Tell which flow stands beside the law, and why."""
    discovery, film = story.run.discovery, story.run.field
    if discovery is None or discovery.flow is None or film is None:
        return None
    choice = discovery.flow
    rows = tuple(
        (c.name, c.unknowns, c.library, c.unexplained, "chosen" if c.name == choice.chosen else "")
        for c in choice.candidates
    )
    columns = (
        Column("flow"),
        Column("unknowns", align="right", format="d"),
        Column("best library"),
        Column("unexplained share of left-out frames", align="right", format=".2e"),
        Column(""),
    )
    items: list[Item] = [Table(columns, rows, "Flows that were tried on the training window, each with every library.")]
    flow = None if story.run.chosen is None else story.run.chosen.model.flow
    if flow is None:
        sentence = f"A uniform drift is enough: {choice.reason}."
        return Section("flow", "Flow", sentence, tuple(items))
    items = [
        *story.picture(
            "flow",
            "The flow over the plume, its vorticity and course in time, and the weak residual without and with it.",
            "Arrows: velocity less its mean over the plume. Grey: after the training window it is taken to stay.",
        ),
        *items,
        _overlaps(story),
    ]
    sentence = f"Beside the uniform drift: {describe_flow(flow, film.grid)}. The {choice.reason}."
    return Section("flow", "Flow", sentence, tuple(items))


def _overlaps(story: Story) -> Table:
    """List how much of each term's column the flow could stand for, and what a divergence would change."""
    assert story.run.discovery is not None
    assert story.run.discovery.flow is not None
    choice, library = story.run.discovery.flow, story.run.chosen.library if story.run.chosen is not None else ""
    divergence = choice.divergence.get(library)
    terms = [] if story.run.chosen is None else [term.name for term in story.run.chosen.terms]
    rows = []
    for name in terms:
        changed = (
            "" if divergence is None or name not in divergence.coefficients else number(divergence.coefficients[name])
        )
        rows.append((story.term_math(name), percent(choice.overlap.get(name, 0.0)), changed))
    about = (
        ""
        if divergence is None
        else f" of {number(divergence.value, digits=2)} ± {number(divergence.error, digits=1)} /s"
    )
    columns = (
        Column("term"),
        Column("share of its column that the flow could stand for"),
        Column(f"weak-form coefficient with a divergence{about}"),
    )
    return Table(columns, tuple(rows), "What flow and law have in common on this recording.")
