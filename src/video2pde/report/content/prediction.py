"""Sections on prediction: validation under both drift modes, and the test window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from video2pde.report.colours import baseline_colour, library_colour
from video2pde.report.content.words import finite, is_variant, listed, number, percent, Story
from video2pde.report.document import Axis, Chart, Details, Item, Marker, Note, Section, Series, Tiles
from video2pde.report.plots import Colour
from video2pde.report.rollout_tables import list_modes, list_scores
from video2pde.report.sheets import Sheet
from video2pde.rollout.metrics import Metrics
from video2pde.rollout.validate import Score, Validation

_LEVELS: tuple[Colour, ...] = ("blue", "orange", "green", "purple", "red", "sky", "olive", "ink")


def tell_validation(story: Story) -> Section | None:
    """Tell how every library predicts the validation window, with learned and with measured drift."""
    validation = story.run.validation
    if validation is None:
        return None
    best = validation.best
    shown = None if best is None else best.best
    modes = list_modes(validation)
    items: list[Item] = [draw_modes(validation), story.table(modes.only(*_without_verdict(modes)))]
    items += [*_failures(validation), *draw_over_time(validation)]
    if shown is not None:
        items += story.picture(
            "validation-snapshots", f"Observed, predicted by {shown.name} and difference at four times."
        )
        items.append(Details(f"Front radii of {shown.name}", (draw_fronts(validation, shown),)))
    scores = story.table(list_scores(validation, "validation-scores"))
    items.append(Details("All scores, one-step predictions included", (scores,)))
    return Section("validation", "Validation under both drift modes", _validation_sentence(validation), tuple(items))


def _without_verdict(sheet: Sheet) -> list[str]:
    return [entry.key for entry in sheet.entries if entry.key != "verdict"]


def _failures(validation: Validation) -> tuple[Item, ...]:
    """Say why rollouts failed."""
    reasons = [f"{row.library}: {row.measured.failure}" for row in validation.rows if row.measured.failure]
    return (Note(f"Rollouts that failed: {'; '.join(reasons)}."),) if reasons else ()


def _validation_sentence(validation: Validation) -> str:
    best, persistence = validation.best, validation.persistence
    if best is None:
        return "No library had a law to roll out."
    beaten = sum(row.best.beats_persistence for row in validation.rows)
    failed = [row.library for row in validation.rows if row.best.failure]
    mode, other = ("learned", best.measured) if best.preferred == "learned" else ("measured", best.learned)
    text = (
        f"Rolled out over {len(validation.times)} frames it was not fitted to, {best.library} does best with an error "
        f"of {percent(best.best.full.rrmse)} ({mode} drift; the other mode {percent(other.full.rrmse)}), against "
        f"{percent(persistence.full.rrmse)} if nothing changed; {beaten} of {len(validation.rows)} libraries beat that"
    )
    return text + (f", and {listed(failed)} could not be run to the end." if failed else ".")


def draw_modes(validation: Validation) -> Chart:
    """Chart the rollout error of every library under both modes, the baselines as lines."""
    rows = validation.rows
    modes: tuple[tuple[str, Colour, list[Score]], ...] = (
        ("A: learned drift", "orange", [row.learned for row in rows]),
        ("B: measured drift", "blue", [row.measured for row in rows]),
    )
    series = tuple(
        Series(
            label,
            range(len(rows)),
            [np.nan if s.failure else 100 * s.full.rrmse for s in scores],
            style="bars",
            colour=colour,
        )
        for label, colour, scores in modes
    )
    markers = tuple(
        Marker(s.name, 100 * s.full.rrmse, "y", baseline_colour(i))
        for i, s in enumerate(validation.baselines)
        if not s.failure
    )
    return Chart(
        "Rollout error",
        Axis("library", categories=tuple(r.library for r in rows)),
        Axis("rRMSE", "%", log=True),
        series,
        "Relative error of every library under learned and measured drift; lines: the baselines.",
        "Lines: the baselines. No bar: the rollout failed.",
        markers=markers,
    )


def draw_over_time(validation: Validation, scores: Sequence[Score] | None = None) -> tuple[Item, ...]:
    """Chart relative, front and centroid errors over time; of each library's better mode where none are given."""
    wanted = list(scores) if scores is not None else [row.best for row in validation.rows]
    ranked = sorted(wanted, key=lambda s: s.full.rrmse)
    unit = validation.unit
    kinds: tuple[tuple[str, str, str, Callable[[Metrics], Any]], ...] = (
        ("Relative error over time", "rRMSE", "%", lambda m: 100 * m.rrmse_over_time),
        ("Centroid error over time", "distance", unit, lambda m: m.centroid_error),
        ("Front error over time", "mean over the levels", unit, lambda m: np.abs(m.front_error).mean(axis=1)),
    )
    charts = []
    for title, label, measure, values in kinds:
        series = [
            Series(
                s.name,
                validation.times,
                finite(values(s.full)),
                colour=library_colour(s.name),
                dashed=is_variant(s.name),
            )
            for s in ranked
        ]
        series += [
            Series(s.name, validation.times, finite(values(s.full)), colour=baseline_colour(i), dashed=True)
            for i, s in enumerate(validation.baselines)
        ]
        charts.append(
            Chart(
                title,
                Axis("time", "s"),
                Axis(label, measure, log=True),
                tuple(series),
                f"{title} of every model and baseline; a line that ends is a rollout that failed.",
            )
        )
    return charts[0], Tiles((charts[1], charts[2]))


def draw_fronts(validation: Validation, score: Score) -> Chart:
    """Chart observed and predicted front radii at all levels."""
    series = []
    for index, level in enumerate(score.full.levels):
        colour = _LEVELS[index % len(_LEVELS)]
        series += [
            Series(
                f"γ = {level:g}, observed",
                validation.times,
                score.full.radii_observed[:, index],
                colour=colour,
                dashed=True,
            ),
            Series(f"γ = {level:g}", validation.times, finite(score.full.radii_predicted[:, index]), colour=colour),
        ]
    return Chart(
        f"Front radii, {score.name}",
        Axis("time", "s"),
        Axis("radius", validation.unit),
        tuple(series),
        f"Equivalent radii of the fronts at {len(score.full.levels)} levels, observed (dashed) and predicted.",
        "γ: level of u above the background; the radius is √(area/π). Dashed: observed.",
    )


def tell_test(story: Story) -> Section | None:
    """Tell how the frozen choice predicts the test window."""
    run = story.run
    if run.test is None:
        return None
    test, score = run.test.scores, run.test_score
    listing = list_scores(test, "test", ("measured", "baseline"))
    items: list[Item] = [story.table(listing.only(*_without_verdict(listing))), *_failures(test)]
    items += draw_over_time(test, [row.measured for row in test.rows])
    if score is not None:
        items += story.picture(
            "test-snapshots", f"Observed, predicted by {score.name} and difference at four times of the test window."
        )
        items.append(draw_fronts(test, score))
    return Section("test", "The test window", _test_sentence(test, score), tuple(items))


def _test_sentence(test: Validation, score: Score | None) -> str:
    frames = f"{len(test.times)} frames from {number(float(test.times[0]))} s to {number(float(test.times[-1]))} s"
    if score is None:
        best = min(test.baselines, key=lambda s: s.full.rrmse)
        rest = f"the best baseline there is “{best.name}” with {percent(best.full.rrmse)}"
        return f"No law was left to predict the {frames}; {rest}."
    if score.failure:
        return f"The law's rollout over the {frames} failed: {score.failure}."
    better = [s.name for s in test.baselines if s.full.rrmse < score.full.rrmse]
    error = f"{percent(score.full.rrmse)} (skill {number(score.skill)})"
    text = f"Over the {frames}, read once, {score.name} is wrong by {error}"
    return f"{text}; better there: {listed(better)}." if better else f"{text}, less than every baseline."
