"""The study's page: one file, made of the report's own parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from video2pde import __version__
from video2pde.estimate import Estimate
from video2pde.report.colours import term_colour
from video2pde.report.content.words import MEANINGS
from video2pde.report.document import (
    Axis,
    Chart,
    Code,
    Coefficient,
    Equation,
    Head,
    Headline,
    Heatmap,
    Item,
    Level,
    Math,
    Note,
    Page,
    Section,
    Series,
    Tiles,
)
from video2pde.report.films import make_player
from video2pde.result import VERDICTS
from video2pde.study import tables
from video2pde.study.formulas import show_table, write_terms
from video2pde.study.joint import JointLaw
from video2pde.study.mosaic import side_by_side
from video2pde.study.order import Comparison, Study
from video2pde.study.prediction import Predictions
from video2pde.study.trends import Trend
from video2pde.terms import Term
from video2pde.terms.words import coefficient_units, describe

LEVELS: dict[str, Level] = {"law": "good", "approximation": "warning", "ambiguous": "warning", "no_law": "error"}
ALL, MEAN = "all together", "random-effects mean"
CURVE_POINTS = 60


def compose_study(study: Study) -> Page:
    """Compose the page of a study: what is there is shown."""
    told = (
        _forest(study),
        _one_law(study),
        _conditions(study),
        _left_out(study),
        _transfer(study),
        _structure(study),
        _films(study),
    )
    return Page(
        f"Study: {study.title}",
        _head(study),
        tuple(section for section in told if section is not None),
        subtitle=f"{len(study.films)} films together",
        footer=("Made by ", Code(f"video2pde {__version__}"), ". This page asks the network for nothing."),
    )


def _head(study: Study) -> Head:
    law, choice = study.chosen, study.choice
    assert choice is not None
    equation = None
    coefficients: tuple[Coefficient, ...] = ()
    if law is not None:
        words = law.model.equation
        equation = Equation(words.latex, words.text)
        coefficients = tuple(_coefficient(law, term, study.unit) for term in law.terms)
    films = None if study.predictions is None else side_by_side(study.predictions.films, study.predictions.shown)
    player = None
    if films is not None:
        field, predicted = films
        caption = (
            f"{', '.join(study.predictions.films if study.predictions else ())}: row by row, each from its own "
            "beginning, in step. A film that is over stands still. Forecasts by the shared law begin with each film's "
            "validation window."
        )
        player = make_player(
            field, [predicted], title="All films in step", caption=caption, alt="The films side by side."
        )
    return Head(
        verdict=_verdict(study),
        level="warning"
        if study.comparison is not None and study.comparison.equality.rejected
        else LEVELS[choice.verdict],
        summary=f"{choice.reason}.",
        equation=equation,
        coefficients=coefficients,
        headlines=tuple(_headlines(study)),
        player=player,
        notes=tuple(_notes(study)),
    )


def _verdict(study: Study) -> str:
    assert study.choice is not None
    if study.comparison is None:
        return VERDICTS[study.choice.verdict]
    if study.comparison.equality.rejected:
        return "no one law: the films' coefficients differ"
    return f"one law for {len(study.films)} films" if study.choice.verdict == "law" else VERDICTS[study.choice.verdict]


def _coefficient(law: JointLaw, term: Term, unit: str) -> Coefficient:
    words = describe(term)
    meaning = MEANINGS.get(term.name, term.name)
    return Coefficient(Math(words.latex, words.text), meaning, law.estimates[term.name], coefficient_units(term, unit))


def _headlines(study: Study) -> Iterator[Headline]:
    yield Headline(
        "Films", str(len(study.films)), f"{len(study.failed)} could not be used" if study.failed else "all were used"
    )
    if study.comparison is not None:
        yield Headline(
            "Chance under one law", f"{study.comparison.equality.chance:.2g}", "of films that differ as much"
        )
        most = max(study.comparison.pooled.values(), key=lambda pooled: pooled.i_squared)
        yield Headline("Scatter beyond errors", f"{most.i_squared:.0%}", "I², of the coefficient with most")
    if study.predictions is not None:
        worst = max(study.predictions.left_out, key=lambda entry: entry.by_others)
        yield Headline("Error when left out", f"{worst.by_others:.2%}", f"at worst ({worst.film}), test window")


def _notes(study: Study) -> Iterator[Note]:
    for film in study.another_law:
        yield Note(f"{film} seems to obey another law than the others.", "warning", "Another law")
    for film, reason in study.failed.items():
        yield Note(f"{film} is left out: {reason}.", "error")
    if study.unit == "image units":
        yield Note("Lengths are image units: the films share a law only if they show the same size of scene.", "info")


def _forest(study: Study) -> Section | None:
    law = study.chosen
    if law is None:
        return None
    charts = tuple(_forest_of(law, k, term, study) for k, term in enumerate(law.terms))
    sentence = f"Each film by itself, and {law.library} fitted to all of them together in {law.rounds} rounds."
    items: tuple[Item, ...] = (*charts, show_table(tables.list_coefficients(law)))
    return Section("films-and-law", "Coefficients film by film", sentence, items)


def _forest_of(law: JointLaw, k: int, term: Term, study: Study) -> Chart:
    names = [own.asked.film for own in law.own]
    values = np.array([own.asked.values[k] for own in law.own])
    half = np.array([own.asked.half[k] for own in law.own])
    text, shared = describe(term).text, law.estimates[term.name]
    together = [(ALL, shared)]
    if study.comparison is not None:
        together.append((MEAN, study.comparison.pooled[term.name].mean))
    labels = (*names, *(label for label, _ in together))
    series = (
        Series(
            "each film",
            range(len(names)),
            values,
            style="scatter",
            low=values - half,
            high=values + half,
            colour=term_colour(term.name),
        ),
        *(_point(label, len(names) + n, e, "ink" if n == 0 else "grey") for n, (label, e) in enumerate(together)),
    )
    return Chart(
        f"Coefficient of {text}",
        Axis("film", categories=labels),
        Axis("coefficient", coefficient_units(term, study.unit)),
        series,
        f"The coefficient of {text} in each of {len(names)} films with its 95 % interval, and together {shared}.",
        "Bars: 95 % intervals. All together: the joint fit, one law for all films. The random-effects mean lets films "
        "differ.",
    )


def _point(name: str, place: int, e: Estimate, colour: str) -> Series:
    return Series(name, [place], [e.value], style="scatter", low=[e.low], high=[e.high], colour=colour)  # type: ignore[arg-type]


def _one_law(study: Study) -> Section | None:
    found = study.comparison
    if found is None:
        return None
    chance = found.equality.chance
    said = (
        f"No: under one law the films' coefficients would differ as much with a chance of {chance:.2g} only."
        if found.equality.rejected
        else f"Nothing speaks against it: films of one law differ as much with a chance of {chance:.2g}."
    )
    named = [outlier for outlier in found.outliers if outlier.stands_out]
    if named:
        said += f" {named[0].film} lies {named[0].distance:.3g} errors from all others."
    items = (
        show_table(tables.list_heterogeneity(found)),
        *((show_table(tables.list_outliers(found)),) if found.outliers else ()),
    )
    return Section("one-law", "Is it one law?", said, items)


def _conditions(study: Study) -> Section | None:
    if study.comparison is None or study.chosen is None or not study.comparison.trends:
        return None
    charts = tuple(
        c for trend in study.comparison.trends if (c := _trend_chart(trend, study, study.chosen)) is not None
    )
    items: tuple[Item, ...] = (*((Tiles(charts),) if charts else ()), show_table(tables.list_trends(study.comparison)))
    return Section("conditions", "Coefficients against conditions", _trend_sentence(study.comparison), items)


def _trend_sentence(found: Comparison) -> str:
    clear = [t for t in found.trends if t.line is not None and t.line.chance < 0.05]
    if not clear:
        return "No coefficient depends on a condition beyond what chance does."
    return " ".join(
        f"The coefficient of {write_terms(t.term)} changes by {t.line.slope.value:.4g} "
        f"({t.line.slope.low:.4g} to {t.line.slope.high:.4g}) "
        f"for each unit of {t.condition}."
        for t in clear
        if t.line is not None
    )


def _trend_chart(trend: Trend, study: Study, law: JointLaw) -> Chart | None:
    if trend.line is None:
        return None
    k = [term.name for term in law.terms].index(trend.term)
    given = {film.name: film.conditions[trend.condition] for film in study.films}
    x = np.array([float(given[own.asked.film]) for own in law.own])
    values, half = (np.array([getattr(own.asked, part)[k] for own in law.own]) for part in ("values", "half"))
    along = np.linspace(x.min(), x.max(), CURVE_POINTS)
    line = trend.line
    series = [
        Series(
            "films",
            x,
            values,
            style="scatter",
            low=values - half,
            high=values + half,
            colour=term_colour(trend.term),
            labels=law.films,
        ),
        Series("line", along, line.intercept.value + line.slope.value * along, colour="ink"),
    ]
    if trend.power is not None:
        series.append(
            Series(
                "power law",
                along,
                trend.power.factor.value * along**trend.power.exponent.value,
                colour="grey",
                dashed=True,
            )
        )
    text = describe(law.terms[k]).text
    return Chart(
        f"{text} against {trend.condition}",
        Axis(trend.condition),
        Axis("coefficient", coefficient_units(law.terms[k], study.unit)),
        tuple(series),
        f"The coefficient of {text} in films of different {trend.condition}; the line's slope is {line.slope}.",
    )


def _left_out(study: Study) -> Section | None:
    found = study.predictions
    if found is None:
        return None
    ratio = np.median([entry.by_others / entry.by_own for entry in found.left_out])
    sentence = (
        f"Fitted to the other films, the law predicts a film's test window with {ratio:.3g} times the error of the "
        "film's own law, at the median. The terms were chosen on all films."
    )
    places = range(len(found.left_out))
    kinds = (
        ("law of the others", "by_others", "ink"),
        ("its own law", "by_own", "blue"),
        ("nothing changes", "persistence", "grey"),
    )
    series = tuple(
        Series(name, places, [100 * getattr(entry, key) for entry in found.left_out], style="scatter", colour=colour)  # type: ignore[arg-type]
        for name, key, colour in kinds
    )
    chart = Chart(
        "Each film, left out of the fit",
        Axis("film", categories=found.films),
        Axis("relative error on the test window", "%", log=True),
        series,
        "Relative error on each film's test window under the law of the others, its own law, and if nothing changed.",
    )
    return Section("leave-one-out", "Leave one film out", sentence, (chart, show_table(tables.list_left_out(found))))


def _transfer(study: Study) -> Section | None:
    found = study.predictions
    if found is None:
        return None
    return Section("transfer", "The law of one film on another", _transfer_sentence(found), (_heatmap(found),))


def _transfer_sentence(found: Predictions) -> str:
    own = np.diag(found.matrix)
    worse = found.matrix / own[None]
    i, j = np.unravel_index(int(np.nanargmax(worse)), worse.shape)
    return (
        f"The error grows most from its own law to another film's on {found.films[j]} under the law of "
        f"{found.films[i]}: from {own[j]:.2%} to {found.matrix[i, j]:.2%}."
    )


def _heatmap(found: Predictions) -> Heatmap:
    return Heatmap(
        "Relative error on the test window",
        100 * found.matrix,
        found.films,
        found.films,
        "Relative error of each film's law (rows) on each film (columns).",
        label="%",
        row_title="law of",
        column_title="on",
        format=".2f",
    )


def _structure(study: Study) -> Section | None:
    found = study.structure
    if found is None:
        return None
    terms = list(dict.fromkeys(s.term for s in found.support))
    films = list(dict.fromkeys(s.film for s in found.support))
    items: list[Item] = []
    if terms:
        strength = {(s.film, s.term): s.significance for s in found.support}
        matrix = np.array([[strength[film, term] for film in films] for term in terms])
        items.append(
            Heatmap(
                "Who supports which term",
                matrix,
                tuple(terms),
                tuple(films),
                "Standard errors from zero, term by film.",
                label="standard errors",
                format=".0f",
            )
        )
        items.append(show_table(tables.list_support(found)))
    if study.choice is not None and study.choice.entries:
        items.insert(0, show_table(tables.list_entries(study)))
    return Section(
        "structure", "Terms that the films support together", f"{found.identifiability.verdict}.", tuple(items)
    )


def _films(study: Study) -> Section:
    return Section(
        "films",
        "Films",
        "Each film is a run of its own, with its own report, in films/NAME.",
        (show_table(tables.list_films(study)),),
    )
