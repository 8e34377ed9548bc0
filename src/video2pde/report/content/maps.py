"""The section on coefficients that vary: between what, how sure that is, and what the recording does not tell."""

from __future__ import annotations

from video2pde.maps import CoefficientMap
from video2pde.maps.words import describe_map, told_range
from video2pde.report.content.words import number, percent, Story
from video2pde.report.document import Column, Item, Section, Table
from video2pde.terms.words import coefficient_units


def tell_maps(story: Story) -> Section | None:
    """Tell how coefficients of the chosen law vary; None where all are constant."""
    chosen, film = story.run.chosen, story.run.field
    if chosen is None or film is None or not chosen.maps:
        return None
    units = {term.name: coefficient_units(term, story.unit) for term in chosen.terms}
    rows = []
    for each in chosen.maps:
        mean = chosen.estimates[each.term]
        low, high = told_range(each, mean.value, film.grid)
        between = f"{number(low)} to {number(high, units[each.term])}"
        answer = "varies" if each.varies else "constant within its errors"
        told = (str(mean), between, answer, each.chance, percent(each.gain))
        rows.append((story.term_math(each.term), each.over, *told))
    columns = (
        Column("term"),
        Column("over"),
        Column("mean and 95 % interval"),
        Column("between"),
        Column("constant or not"),
        Column("chance under a constant", align="right", format=".2g"),
        Column("removed of what a constant leaves of left-out parts", align="right"),
    )
    items: list[Item] = [
        *story.picture(
            "maps",
            "Coefficients that vary, with their standard errors.",
            "Grey: the recording says nothing there, because nothing changes or the error is as large as the range.",
        ),
        Table(columns, tuple(rows), "Coefficients that were let vary. The equation holds their means, m is 1 there."),
    ]
    sentence = "; ".join(_sentence(story, each, chosen.estimates[each.term].value) for each in chosen.maps)
    return Section("maps", "Coefficients that vary", f"{sentence[:1].upper()}{sentence[1:]}.", tuple(items))


def _sentence(story: Story, each: CoefficientMap, mean: float) -> str:
    assert story.run.field is not None
    return story.prose(describe_map(each, mean, story.run.field.grid))
