"""What a film's sensitivity leaves behind: result.json, tables, and a page with specification curves and tornados."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from video2pde import __version__
from video2pde.files import json_text, plain_json, write_text
from video2pde.report.colours import term_colour
from video2pde.report.document import (
    Axis,
    Chart,
    Code,
    Head,
    Headline,
    Heatmap,
    Item,
    Marker,
    Note,
    Page,
    Section,
    Series,
)
from video2pde.report.page import write_page
from video2pde.report.sheets import Entry, fill, Sheet, TERM, to_csv, to_table
from video2pde.runs.folder import PAGE, RESULT
from video2pde.study.formulas import show_table
from video2pde.study.sensitivity import Effect, Found, Sensitivity
from video2pde.terms import Term
from video2pde.terms.words import coefficient_units, describe

STEADY = 0.9
"""Share of the specifications that must choose the same terms, and of coefficients that must stay inside their
intervals, for the law to be called steady."""


def publish_sensitivity(folder: Path, found: Sensitivity) -> None:
    """Write the files of a film's sensitivity, each whole or not at all."""
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for sheet in (list_found(found), list_effects(found)):
        write_text(folder / "tables" / f"{sheet.name}.csv", to_csv(sheet))
    write_page(compose_sensitivity(found), folder / PAGE)
    write_text(folder / RESULT, json_text(describe_sensitivity(found)))


def describe_sensitivity(found: Sensitivity) -> dict[str, Any]:
    """Return ``result.json`` of a film's sensitivity."""
    plain: dict[str, Any] = plain_json(
        {
            "schema": 1,
            "kind": "sensitivity",
            "film": found.film,
            "law": list(found.base.terms),
            "same_law": found.same_law,
            "specifications": [
                {
                    "name": each.specification.name,
                    "levels": _labels(found, each),
                    "verdict": each.verdict,
                    "terms": list(each.terms),
                    "estimates": {name: estimate.to_json() for name, estimate in each.estimates.items()},
                    "failure": each.failure,
                }
                for each in found.found
            ],
            "effects": {
                term.name: [
                    {"factor": e.factor, "low": e.low, "high": e.high, "another_law": list(e.another)}
                    for e in found.effects(term.name)
                ]
                for term in found.terms
            },
            "explained": {term.name: found.explained(term.name) for term in found.terms},
        }
    )
    return plain


def summarise_sensitivity(found: Sensitivity) -> str:
    """Say in lines what settings do to the law."""
    failed = sum(bool(each.failure) for each in found.found)
    lines = [f"{len(found.found)} settings, {failed} failed; the same law under {found.same_law:.0%} of the others"]
    for term in found.terms:
        estimate, first = found.base.estimates[term.name], found.effects(term.name)[0]
        lines.append(
            f"  {describe(term).text:<12} {estimate}; {first.factor} moves it most: {first.low:.4g} ({first.at_low}) "
            f"to {first.high:.4g} ({first.at_high})"
        )
    lines += [f"  another law, or none, under {e.factor} {', '.join(e.another)}" for e in _turning(found)]
    return "\n".join(lines)


def _labels(found: Sensitivity, each: Found) -> dict[str, str]:
    return {f.name: f.levels[k].label for f, k in zip(found.factors, each.specification.levels, strict=True)}


def list_found(found: Sensitivity) -> Sheet:
    """List every specification: its levels, and what it found."""
    factors = [Entry(factor.name.replace(" ", "_"), factor.name) for factor in found.factors]
    estimates = [Entry(term.name, describe(term).text) for term in found.terms]
    entries = (Entry("name", "run"), *factors, Entry("verdict", "verdict"), Entry("terms", "terms"), *estimates)
    rows = []
    for each in found.found:
        levels = {name.replace(" ", "_"): label for name, label in _labels(found, each).items()}
        outcome = {"verdict": each.failure or each.verdict, "terms": ", ".join(each.terms)}
        rows.append({"name": each.specification.name, **levels, **outcome, **each.estimates})
    return fill("specifications", "Every specification, and the law under it.", entries, rows)


def list_changes(found: Sensitivity) -> Sheet:
    """List every specification by what is changed in it, as the page shows it."""
    estimates = [Entry(term.name, describe(term).text) for term in found.terms]
    entries = (Entry("name", "run"), Entry("changed", "changed"), Entry("terms", "terms"), *estimates)
    rows = []
    for each in found.found:
        labels, factors = _labels(found, each), [found.factors[k].name for k in each.specification.changed]
        changed = "; ".join(f"{name}: {labels[name]}" for name in factors) or "nothing"
        terms = each.failure or ", ".join(each.terms) or "no law"
        rows.append({"name": each.specification.name, "changed": changed, "terms": terms, **each.estimates})
    caption = "What is changed in every run, and the law under it."
    return fill("changes", caption, entries, rows)


def list_effects(found: Sensitivity) -> Sheet:
    """List what each factor alone does to each coefficient."""
    entries = (
        TERM,
        Entry("factor", "setting"),
        Entry("low", "lowest"),
        Entry("at_low", "under"),
        Entry("high", "highest"),
        Entry("at_high", "under"),
        Entry("another", "another law under"),
        Entry("share", "share of all scatter", percent=True, format=".2g"),
    )
    rows = []
    for term in found.terms:
        shares = found.explained(term.name)
        for e in found.effects(term.name):
            ends = {"low": e.low, "at_low": e.at_low, "high": e.high, "at_high": e.at_high}
            another = ", ".join(e.another)
            rows.append({"term": term.name, "factor": e.factor, **ends, "another": another, "share": shares[e.factor]})
    return fill("effects", "What each setting alone does to the coefficients.", entries, rows)


def compose_sensitivity(found: Sensitivity) -> Page:
    """Compose the page: a curve and a tornado for each coefficient."""
    steady, verdict = _judge(found)
    failed = [each for each in found.found if each.failure]
    notes = tuple(Note(f"{each.specification.name}: {each.failure}", "warning") for each in failed[:5])
    first = {term.name: found.effects(term.name)[0].factor for term in found.terms}
    turned = [f"another law under {e.factor} {', '.join(e.another)}" for e in _turning(found)]
    head = Head(
        verdict=verdict,
        level="good" if steady else "warning",
        summary="; ".join([*(f"{describe(t).text} follows {first[t.name]} most" for t in found.terms), *turned]) + ".",
        headlines=(
            Headline("Settings tried", str(len(found.found)), f"{len(failed)} failed" if failed else "none failed"),
            Headline("The same terms", f"{found.same_law:.0%}", "of the other settings choose them"),
        ),
        notes=notes,
    )
    sections = tuple(_section(found, term, place) for place, term in enumerate(found.terms))
    table = Section(
        "settings",
        "Every setting",
        "Each is a run of its own, up to the choice; the test window stays shut.",
        (show_table(list_changes(found)),),
    )
    return Page(
        f"Sensitivity of {found.film}",
        head,
        (*sections, table),
        footer=("Made by ", Code(f"video2pde {__version__}"), ". This page asks the network for nothing."),
    )


def _turning(found: Sensitivity) -> list[Effect]:
    """Return the factors that alone lead to another law, or to none."""
    return [effect for effect in found.effects(found.terms[0].name) if effect.another]


def _judge(found: Sensitivity) -> tuple[bool, str]:
    """Say whether terms and coefficients stay what they are."""
    if found.same_law < STEADY:
        return False, "the law depends on settings"
    if any(found.inside(term.name) < STEADY for term in found.terms):
        return False, "the terms hold under other settings, but coefficients leave their intervals"
    return True, "the law holds under other settings"


def _section(found: Sensitivity, term: Term, place: int) -> Section:
    text, base = describe(term).text, found.base.estimates[term.name]
    values = [f.estimates[term.name].value for f in found.alike]
    sentence = (
        f"Between {min(values):.4g} and {max(values):.4g} over the {len(values)} settings that choose these terms, "
        f"{base} under those given; {found.inside(term.name):.0%} of the other values lie inside that interval."
    )
    items: tuple[Item, ...] = (*_curve(found, term), _tornado(found, term))
    sheet = list_effects(found)
    rows = tuple(row[1:] for row in sheet.rows if row[0] == term.name)
    items = (*items, to_table(Sheet(sheet.name, sheet.caption, sheet.entries[1:], rows)))
    return Section(f"term-{place}", f"Coefficient of {text}", sentence, items)


def _curve(found: Sensitivity, term: Term) -> tuple[Chart, Heatmap]:
    """Draw the specification curve: estimates in order, and under each which settings it has."""
    ranked = sorted(found.alike, key=lambda f: f.estimates[term.name].value)
    estimates = [f.estimates[term.name] for f in ranked]
    labels = tuple(
        ", ".join(found.factors[k].levels[f.specification.levels[k]].label for k in f.specification.changed)
        or "as given"
        for f in ranked
    )
    series = Series(
        "settings",
        range(len(ranked)),
        [e.value for e in estimates],
        style="scatter",
        low=[e.low for e in estimates],
        high=[e.high for e in estimates],
        colour=term_colour(term.name),
        labels=labels,
    )
    text = describe(term).text
    chart = Chart(
        f"Specification curve of {text}",
        Axis("settings, in order of the coefficient"),
        Axis("coefficient", coefficient_units(term, found.unit)),
        (series,),
        f"The coefficient of {text} with its 95 % interval under {len(ranked)} settings, in order.",
        markers=(Marker("as given", found.base.estimates[term.name].value, "y"),),
    )
    levels = np.array([[f.specification.levels[k] for f in ranked] for k in range(len(found.factors))], float)
    runs = tuple(f.specification.name for f in ranked)
    dots = Heatmap(
        "Which settings these are",
        levels,
        tuple(factor.name for factor in found.factors),
        runs,
        "For each run, in the same order, the level of every setting: 0 is as given.",
        label="level",
        format=".0f",
        caption="0: as given; other levels are named in the table of all settings.",
    )
    return chart, dots


def _tornado(found: Sensitivity, term: Term) -> Chart:
    effects = found.effects(term.name)
    here = found.base.estimates[term.name].value
    places = range(len(effects))
    text = describe(term).text
    low, high = [e.low for e in effects], [e.high for e in effects]
    labels = tuple(f"{e.low:.4g} ({e.at_low}) to {e.high:.4g} ({e.at_high})" for e in effects)
    bars = Series(
        "range",
        places,
        [here] * len(effects),
        style="scatter",
        low=low,
        high=high,
        colour=term_colour(term.name),
        labels=labels,
    )
    return Chart(
        f"What moves {text}",
        Axis("setting, changed alone", categories=tuple(e.factor for e in effects)),
        Axis("coefficient", coefficient_units(term, found.unit)),
        (bars,),
        f"The range of the coefficient of {text} over the levels of each setting, the largest first.",
        markers=(Marker("as given", here, "y"),),
    )
