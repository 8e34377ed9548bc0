"""The report page of two fields, from the parts that the page of one field is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from video2pde import __version__
from video2pde.pair import tables
from video2pde.pair.discover import EquationSearch
from video2pde.pair.record import NO_DRIFT, PairRun
from video2pde.report.content.head import FAILED, FILM_BYTES, VERDICTS
from video2pde.report.content.provenance import settings_section
from video2pde.report.document import (
    Axis,
    Bar,
    Chart,
    Coefficient,
    Comparison,
    Details,
    Equation,
    Head,
    Headline,
    Heatmap,
    Item,
    Marker,
    Math,
    Note,
    Page,
    Pairs,
    Paragraph,
    Player,
    Quantity,
    Section,
    Series,
    Span,
    Tiles,
)
from video2pde.report.films import make_player
from video2pde.report.sheets import to_table
from video2pde.terms.pairs import FIELDS, get_pair_term, PAIR_TERMS
from video2pde.terms.words import coefficient_units, describe

MEANINGS = {
    "laplacian": "spreading of u",
    "laplacian_w": "spreading of w",
    "constant": "source that is the same everywhere",
    "u": "linear in u",
    "w": "linear in w",
    "u_w": "reaction of u with w",
    "u_w_squared": "reaction of one u with two w",
    "u_squared_w": "reaction of two u with one w",
}
CROSS = {("u", "laplacian_w"): "cross diffusion", ("w", "laplacian"): "cross diffusion"}


def compose_pair_page(run: PairRun) -> Page:
    """Say what a run of two fields found, with the evidence."""
    path = "" if run.pair is None else run.pair.u.provenance.path
    name = PurePath(path).name or "the recording"
    channels = "" if run.pair is None else f", u = {run.pair.channels[0]}, w = {run.pair.channels[1]}"
    sections = [
        section for section in (_films(run), _structure(run), _calibration(run), _fit(run), _prediction(run)) if section
    ]
    sections += [_recording(run), settings_section(run.settings)]
    return Page(
        f"The laws of two fields in {name}",
        _head(run),
        tuple(sections),
        f"{name}{channels}",
        f"video2pde {__version__}",
    )


def _head(run: PairRun) -> Head:
    selection, notes = (
        run.selection,
        tuple(Note(text, "info" if text == NO_DRIFT else "warning") for text in run.warnings),
    )
    if selection is None:
        return Head(
            "This run is not finished", "info", f"Finished so far: {', '.join(run.timings) or 'nothing'}.", notes=notes
        )
    verdict, level = VERDICTS[selection.verdict]
    verdict = verdict.replace("One law predicts", "Two coupled laws predict") if selection.verdict == "law" else verdict
    reason = selection.reason[:1].upper() + selection.reason[1:]
    chosen = run.chosen
    if chosen is None or run.test is None:
        return Head(verdict, level, f"{reason}.", notes=notes, player=_player(run, 0))
    score, still = run.test.laws[chosen.name], run.test.persistence
    if score.failure or score.skill <= 0:
        verdict, level = FAILED
    law = chosen.law_within()
    coefficients = tuple(
        Coefficient(
            Math(describe(get_pair_term(term)).latex, describe(get_pair_term(term)).text),
            f"in {field}_t: {CROSS.get((field, term)) or MEANINGS.get(term, 'a term of the reaction')}",
            estimate,
            coefficient_units(get_pair_term(term), run.unit),
        )
        for field in FIELDS
        for term, estimate in chosen.estimates[field].items()
    )
    bars = tuple(
        Comparison(
            f"Error of {field} on the held-out frames",
            (Bar("the laws", 100 * own, ours=True), Bar("persistence", 100 * other)),
            "%",
        )
        for field, own, other in zip(FIELDS, score.rrmse, still.rrmse, strict=True)
    )
    return Head(
        verdict,
        level,
        f"{reason}. The held-out frames were read once, after the choice was frozen.",
        Equation(law.equations.latex, law.equations.text, "Both laws, with the medium at rest."),
        coefficients,
        headlines=tuple(
            Headline(f"error of {field}, held-out frames", f"{own:.2%}", f"persistence {other:.2%}")
            for field, own, other in zip(FIELDS, score.rrmse, still.rrmse, strict=True)
        ),
        comparisons=bars,
        player=_player(run, 0),
        notes=notes,
    )


def _player(run: PairRun, index: int) -> Player | None:
    """Play one field beside what the laws predict over the validation and test windows."""
    if run.pair is None or run.windows is None:
        return None
    field, name = run.pair.fields[index], FIELDS[index]
    predictions = list[tuple[int, NDArray[np.float32]]]()
    chosen = None if run.selection is None else run.selection.chosen
    for scores, window in ((run.validation, run.windows.validation), (run.test, run.windows.test)):
        if scores is not None and chosen is not None and chosen in scores.predicted:
            predictions.append((window.start, scores.predicted[chosen][index]))
    player = make_player(
        field,
        predictions,
        run.windows,
        title=f"{name} ({run.pair.channels[index]}): observed and predicted",
        alt=f"Film of the field {name} as it was recorded, as the laws predict it, and the difference.",
        budget=FILM_BYTES // 2,
    )
    return replace(player, quantity=name)


def _films(run: PairRun) -> Section | None:
    second = _player(run, 1)
    if second is None:
        return None
    sentence = "The field w beside its prediction; u is above. Both come from one rollout of the coupled laws."
    return Section("second-field", "The second field", sentence, (second,))


def _structure(run: PairRun) -> Section | None:
    found = run.discovery
    if found is None:
        return None
    if found.named:
        return Section("structure", "Structure", "Both laws were named; their terms were not searched for.")
    parts = [
        f"{search.field}_t has {len(search.candidates[0].terms)} of {len(PAIR_TERMS)} terms, chosen at "
        f"{search.candidates[0].frequency:.0%} of {found.runs} random sets of test functions"
        for search in found.searches
    ]
    items: tuple[Item, ...] = (
        Tiles(tuple(_front(search) for search in found.searches)),
        to_table(tables.list_search(run)),
        _inclusion(run),
    )
    sentence = f"Of all sets of up to eight terms for each law, {'; '.join(parts)}."
    return Section("structure", "Structure: all sets of terms", sentence, items)


def _front(search: EquationSearch) -> Chart:
    sizes = [len(found.terms) for found in search.front]
    best = search.candidates[0]
    labels = tuple(", ".join(describe(get_pair_term(name)).text for name in found.terms) for found in search.front)
    return Chart(
        f"Front of {search.field}_t",
        Axis("terms"),
        Axis("share of the weak signal that is left", log=True),
        (
            Series(
                "best of its size", sizes, [found.unexplained for found in search.front], colour="grey", labels=labels
            ),
            Series("chosen", [len(best.terms)], [best.unexplained], style="scatter", colour="blue"),
        ),
        f"What the best set of each size leaves of the weak signal of {search.field}.",
        markers=(Marker("noise leaves", search.expected, "y"),) if search.expected > 0 else (),
    )


def _inclusion(run: PairRun) -> Heatmap:
    assert run.discovery is not None
    values = np.array([[search.inclusion.get(name, 0.0) for name in PAIR_TERMS] for search in run.discovery.searches])
    return Heatmap(
        title="Terms that are chosen, over random sets of centres",
        values=values,
        rows=tuple(f"{field}_t" for field in FIELDS),
        columns=tuple(describe(term).text for term in PAIR_TERMS.values()),
        alt="How often each term belongs to the chosen set of each law, over random sets of centres.",
        label="share of the runs",
        colour_map="viridis",
        limits=(0.0, 1.0),
        format=".0%",
        row_title="law",
        column_title="term",
    )


def _calibration(run: PairRun) -> Section | None:
    if not run.calibration:
        return None
    chosen = run.chosen
    items: list[Item] = [to_table(tables.list_calibrated(run))]
    if chosen is not None and len(chosen.draws) > 2:
        quantities = tuple(
            Quantity(f"{describe(get_pair_term(term)).text} in {field}_t", "", chosen.estimates[field][term])
            for field, term in chosen.law.keys
        )
        items.append(
            Details(
                "Replicates of the bootstrap, pair by pair",
                (
                    Pairs(
                        "Replicates",
                        quantities,
                        chosen.draws,
                        "Coefficients of the bootstrap's replicates, pair by pair.",
                    ),
                ),
            )
        )
    items.append(Details("Error budget", (to_table(tables.list_budget(run)),)))
    many = len(run.calibration)
    sentence = (
        f"{'One system was' if many == 1 else f'{many} systems were'} fitted to the rollout of the whole training "
        "window; intervals come from a block bootstrap of the residuals, and from what grid, grey levels and encoder "
        "leave uncertain; where the weak form finds something else, they hold both."
    )
    return Section("calibration", "Coefficients", sentence, tuple(items))


def _fit(run: PairRun) -> Section | None:
    tests = run.chosen_fit
    if not tests:
        return None
    failing = [f"{test.field}_t" for test in tests if not test.passes]
    sentence = (
        f"More is left of {' and '.join(failing)} than noise leaves."
        if failing
        else "Both laws leave no more of the weak signal than noise does."
    )
    apart = [f"{describe(get_pair_term(name)).text} in {test.field}_t" for test in tests for name in test.apart]
    if apart:
        sentence += f" Weak form and rollout disagree beyond both intervals about {', '.join(apart)}."
    return Section("fit", "Test of fit", sentence, (to_table(tables.list_fit(run)),))


def _prediction(run: PairRun) -> Section | None:
    if run.test is None or run.selection is None or run.selection.chosen is None or run.pair is None:
        return None
    sheets = {sheet.name: sheet for sheet in tables.collect_sheets(run)}
    charts = tuple(
        Chart(
            f"Error of {field} over the test window",
            Axis("time", "s"),
            Axis(f"rms error of {field}, share of its range"),
            (
                Series("the laws", run.test.times, run.test.laws[run.selection.chosen].error[index], colour="blue"),
                Series("persistence", run.test.times, run.test.persistence.error[index], colour="grey"),
            ),
            f"Error of the predicted field {field} over time, beside that of a picture that stands still.",
            spans=(Span("test", float(run.test.times[0]), float(run.test.times[-1]), "green"),),
        )
        for index, field in enumerate(FIELDS)
    )
    return Section(
        "prediction",
        "Prediction of frames that were held out",
        "Both fields are carried on from the last known frames, and compared with what was recorded.",
        (Tiles(charts), to_table(sheets["test"]), Details("Validation frames", (to_table(sheets["validation"]),))),
    )


def _recording(run: PairRun) -> Section:
    if run.recording is None or run.pair is None:
        return Section("recording", "Recording", "The recording has not been read yet.")
    pair = run.pair
    rows = [
        f"{len(pair)} frames of {pair.grid.ny} × {pair.grid.nx} cells over {pair.u.duration:.4g} s; a cell is "
        f"{pair.grid.dx:.4g} × {pair.grid.dy:.4g} {pair.grid.unit}."
    ]
    rows += [
        f"{name} is the channel {channel}, from {float(part.values.min()):.3g} to {float(part.values.max()):.3g}."
        for name, channel, part in zip(FIELDS, pair.channels, pair.fields, strict=True)
    ]
    notes = tuple(Paragraph(text) for text in (*rows, *run.recording.notes))
    return Section("recording", "Recording", rows[0], notes[1:], collapsed=True)
