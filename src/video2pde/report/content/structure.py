"""Sections on structure: conditioning and correlations, threshold sweep, stability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from video2pde.discovery.identifiability import Identifiability, LibraryDiagnosis
from video2pde.report.colours import library_colour, term_colour
from video2pde.report.content.words import count, listed, number, percent, Story
from video2pde.report.discovery_tables import list_coefficients, list_conditioning, list_stability
from video2pde.report.document import Axis, Chart, Details, Heatmap, Item, Marker, Section, Series, Tiles
from video2pde.terms.words import coefficient_units

if TYPE_CHECKING:
    from video2pde.report.plots import Colour

_THRESHOLDS = {"share": "threshold on a term's share of the signal", "coefficient": "threshold on |coefficient|"}


def tell_conditioning(story: Story) -> Section | None:
    """Tell which libraries this recording can resolve."""
    if story.run.discovery is None:
        return None
    found = story.run.discovery.identifiability
    goes_on = [d for d in found.libraries.values() if d.contender]
    maps = [_correlations(story, d) for d in found.libraries.values() if d.contender]
    rest = [_correlations(story, d) for d in found.libraries.values() if not d.contender]
    names = tuple(found.libraries)
    condition = Chart(
        "Condition number",
        Axis("library", categories=names),
        Axis("κ", log=True),
        (Series("κ", range(len(names)), [d.condition for d in found.libraries.values()], style="bars", colour="blue"),),
        "Condition number of each library's normalised columns.",
        markers=(Marker("limit", story.run.settings.identifiability.condition_limit, "y", "red"),),
    )
    worst = max(found.libraries.values(), key=lambda d: d.condition)
    if found.law_seen and goes_on:
        who = listed(f"{d.library} ({percent(d.fit.explained)})" for d in goes_on)
        sentence = (
            f"{count(len(goes_on), 'library', 'libraries').capitalize()} of {len(names)} went on, with the share of "
            f"the weak-form signal each explains: {who}; the worst conditioned is {worst.library} with κ = "
            f"{number(worst.condition, digits=3)}."
        )
    else:
        sentence = story.prose(f"No library went on: {found.verdict}.")
    items: list[Item] = [story.table(list_conditioning(found))]
    items += [Tiles(tuple(maps), min(3, len(maps)))] if maps else []
    items += [Details("Libraries that are out", (Tiles(tuple(rest), 3),))] if rest else []
    items += [condition, Details("Coefficients of the sparse fits", (story.table(list_coefficients(found)),))]
    return Section("conditioning", "Conditioning and correlations", sentence, tuple(items))


def _correlations(story: Story, diagnosis: LibraryDiagnosis) -> Heatmap:
    labels = tuple(story.term(name) for name in diagnosis.names)
    values = np.abs(diagnosis.correlation - np.eye(len(labels)))
    i, j = np.unravel_index(int(values.argmax()), values.shape)
    return Heatmap(
        title=f"{diagnosis.library}, κ = {diagnosis.condition:.3g}",
        values=diagnosis.correlation,
        rows=labels,
        columns=labels,
        alt=f"Correlations of the columns of library {diagnosis.library}; the strongest, "
        f"{diagnosis.correlation[i, j]:.2f}, is between {labels[i]} and {labels[j]}.",
        label="correlation",
        colour_map="diverging",
        limits=(-1.0, 1.0),
    )


def tell_sweep(story: Story) -> Section | None:
    """Tell how the support shrinks as the threshold rises."""
    if story.run.discovery is None:
        return None
    found, settings = story.run.discovery.identifiability, story.run.settings.regression
    used = Marker("used", settings.threshold)
    axis = Axis(_THRESHOLDS[settings.threshold_on], log=True)
    counts = Chart(
        "Active terms, drift included",
        axis,
        Axis("terms"),
        tuple(
            Series(name, d.sweep.thresholds, d.sweep.counts, style="steps", colour=library_colour(name))
            for name, d in found.libraries.items()
        ),
        "How many terms stay active as the threshold rises, by library.",
        markers=(used,),
    )
    first = [_paths(story, d, axis, used) for d in found.libraries.values() if d.contender]
    rest = [_paths(story, d, axis, used) for d in found.libraries.values() if not d.contender]
    items: list[Item] = [counts]
    items += [Tiles(tuple(first), min(3, len(first)))] if first else []
    items += [Details("Libraries that are out", (Tiles(tuple(rest), 3),))] if rest else []
    return Section("sweep", "Threshold sweep", _sweep_sentence(story, found, settings.threshold), tuple(items))


def _paths(story: Story, diagnosis: LibraryDiagnosis, axis: Axis, used: Marker) -> Chart:
    sweep = diagnosis.sweep
    series = tuple(
        Series(
            f"{story.term(name)} ({number(float(path[0]), digits=3)})",
            sweep.thresholds,
            path / (abs(path[0]) or 1.0),
            colour=term_colour(name),
            markers=True,
        )
        for name, path in zip(diagnosis.names, sweep.coefficients.T, strict=True)
    )
    return Chart(
        f"Coefficients of {diagnosis.library}",
        axis,
        Axis("relative to the first value"),
        series,
        f"Coefficients of library {diagnosis.library} over the threshold, each relative to its first value.",
        "In brackets: the coefficient at the smallest threshold.",
        markers=(used,),
    )


def _sweep_sentence(story: Story, found: Identifiability, threshold: float) -> str:
    chosen = story.run.chosen
    leading = found.contenders[0] if found.contenders else next(iter(found.libraries))
    name = leading if chosen is None else chosen.diagnosed
    sweep = found.libraries[name].sweep
    at = int(np.argmin(np.abs(np.log(sweep.thresholds / max(threshold, 1e-300)))))
    same = sweep.counts == sweep.counts[at]
    first, last = at, at
    while first > 0 and same[first - 1]:
        first -= 1
    while last < len(same) - 1 and same[last + 1]:
        last += 1
    return (
        f"Library {name} keeps the same {count(int(sweep.counts[at]), 'term')} (drift included) for thresholds from "
        f"{number(float(sweep.thresholds[first]), digits=2)} to {number(float(sweep.thresholds[last]), digits=2)}; "
        f"{number(threshold, digits=2)} was used."
    )


def tell_stability(story: Story) -> Section | None:
    """Tell how often each term is selected over random centres."""
    if story.run.discovery is None:
        return None
    found = story.run.discovery.identifiability
    diagnoses = list(found.libraries.values())
    terms = list(dict.fromkeys(name for d in diagnoses for name in d.names))
    values = np.array([[d.stability.frequency.get(name, np.nan) for name in terms] for d in diagnoses])
    runs = diagnoses[0].stability.runs
    frequency = Heatmap(
        title=f"Selected in … of {runs} runs",
        values=values,
        rows=tuple(found.libraries),
        columns=tuple(story.term(t) for t in terms),
        alt="How often each term of each library is selected over random sets of centres.",
        label="share of the runs",
        colour_map="viridis",
        limits=(0.0, 1.0),
        caption="Blank: the library does not have the term.",
        format=".0%",
        row_title="library",
        column_title="term",
    )
    wanted = [name for name in terms if any(name in d.names for d in diagnoses if d.contender)] or terms
    charts = tuple(_spread(story, name, [d for d in diagnoses if name in d.names]) for name in wanted)
    robust = {d.library: d.robust for d in diagnoses if d.contender}
    sentence = (
        f"Over {runs} random sets of centres, "
        + listed(f"{name} keeps {listed(map(story.term, terms)) or 'nothing'}" for name, terms in robust.items())
        + f" in at least {percent(story.run.settings.identifiability.robust_frequency)} of the runs."
        if robust
        else f"Over {runs} random sets of centres no library keeps all the terms it needs."
    )
    items = (frequency, Tiles(charts, 3), Details("Table", (story.table(list_stability(found)),)))
    return Section("stability", "Stability over random centres", sentence, items)


def _spread(story: Story, name: str, diagnoses: list[LibraryDiagnosis]) -> Chart:
    known = story.terms()
    unit = "" if name not in known or name.startswith("drift") else coefficient_units(known[name], story.unit)
    labels = tuple(d.library for d in diagnoses)
    mean = np.array([d.stability.mean[name] for d in diagnoses], float)
    std = np.array([d.stability.std[name] for d in diagnoses], float)
    std = np.where(np.isfinite(std), std, 0.0)
    truth = (Marker("as measured", 1.0, "y", "grey"),) if name.startswith("drift") else ()
    colour: Colour | None = term_colour(name)
    return Chart(
        story.term(name),
        Axis("library", categories=labels),
        Axis("coefficient", unit),
        (
            Series(
                story.term(name),
                range(len(labels)),
                mean,
                style="scatter",
                low=mean - std,
                high=mean + std,
                colour=colour,
            ),
        ),
        f"Mean and standard deviation of the coefficient of {story.term(name)} where it is selected, by library.",
        markers=truth,
    )
