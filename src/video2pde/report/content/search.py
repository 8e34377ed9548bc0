"""Section on the search over subsets: the front of error against number of terms."""

from __future__ import annotations

from video2pde.discovery.search import Search
from video2pde.report.content.words import count, listed, Story
from video2pde.report.discovery_tables import list_front, list_set_aside
from video2pde.report.document import Axis, Chart, Details, Heatmap, Item, Section, Series


def tell_search(story: Story) -> Section | None:
    """Tell which sets of terms leave least, size by size, and which of them went on."""
    found = None if story.run.discovery is None else story.run.discovery.search
    if found is None:
        return None
    items: list[Item] = [_front(story, found), story.table(list_front(found)), _inclusion(story, found)]
    if found.set_aside:
        items.append(Details("Better, and no law", (story.table(list_set_aside(found)),)))
    return Section("search", "Search over sets of terms", _sentence(story, found), tuple(items))


def _sentence(story: Story, found: Search) -> str:
    names = listed(law.name for law in found.going_on) or "none"
    text = (
        f"Of {found.subsets} sets of {count(len(found.terms), 'term')}, the best of each size stand on the front; "
        f"to rollouts went: {names}."
    )
    if found.inseparable:
        sets = "; ".join(listed(map(story.term, names)) for names in found.inseparable)
        text += f" Of these terms one is made up by the others, so that no law has all of them: {sets}."
    return text


def _front(story: Story, found: Search) -> Chart:
    groups = (
        ("went on", [law for law in found.front if law.goes_on], "blue"),
        ("did not", [law for law in found.front if not law.goes_on], "grey"),
        ("as good in some sets of centres", list(found.others), "orange"),
    )
    sizes = tuple(str(size + 1) for size in range(len(found.inclusion)))
    line = Series(
        "front", [len(law.terms) - 1 for law in found.front], [law.unexplained for law in found.front], colour="grey"
    )
    points = tuple(
        Series(
            name,
            [len(law.terms) - 1 for law in laws],
            [law.unexplained for law in laws],
            style="scatter",
            colour=colour,  # type: ignore[arg-type]
            labels=tuple(f"{law.name}: {', '.join(map(story.term, law.terms))}" for law in laws),
        )
        for name, laws, colour in groups
        if laws
    )
    return Chart(
        "Front of error against number of terms",
        Axis("terms, without the drift", categories=sizes),
        Axis("share of the weak signal that is left", log=True),
        (line, *points),
        "What the best set of terms of each size leaves of the weak signal.",
        "A law that says everything stands where the line stops falling.",
    )


def _inclusion(story: Story, found: Search) -> Heatmap:
    return Heatmap(
        title=f"Terms of the best set, over {found.runs} random sets of centres",
        values=found.inclusion,
        rows=tuple(count(size + 1, "term") for size in range(len(found.inclusion))),
        columns=tuple(map(story.term, found.terms)),
        alt="How often each term belongs to the best set of each size, over random sets of centres.",
        label="share of the runs",
        colour_map="viridis",
        limits=(0.0, 1.0),
        format=".0%",
        row_title="size",
        column_title="term",
    )
