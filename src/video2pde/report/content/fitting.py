"""Sections on coefficients: inverse PINN, calibration with its bootstrap, front-aware recalibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from video2pde.agreement import NORMAL
from video2pde.calibration import Calibration
from video2pde.calibration.bootstrap import Bootstrap
from video2pde.record import Run
from video2pde.refinement.result import check_agreement, Refinement
from video2pde.report.calibration_tables import list_budget, list_calibrated, list_fronts, list_refined, list_starts
from video2pde.report.colours import BUDGET, library_colour, term_colour
from video2pde.report.content.prediction import draw_over_time
from video2pde.report.content.words import count, listed, number, percent, Story
from video2pde.report.document import (
    Axis,
    Chart,
    Details,
    histogram,
    Item,
    Level,
    Marker,
    Note,
    Pairs,
    Quantity,
    Section,
    Series,
    Tiles,
)
from video2pde.report.rollout_tables import list_direct
from video2pde.report.summaries import bootstrap_covariance, relative_half_widths, running_intervals, thin
from video2pde.stages import FRONT
from video2pde.terms.words import coefficient_units

MOST_STEPS = 600
PENDING = (
    "The second opinion is still to come: the network is trained once the result is there, and this page is completed "
    "with it. A training that was stopped goes on with the same command."
)


def tell_refinement(story: Story) -> Section | None:
    """Tell what the inverse PINN made of the weak coefficients."""
    run = story.run
    if not run.has("refinement"):
        return Section("refinement", "Inverse PINN", PENDING) if _is_pending(run) else None
    if not run.refinement:
        why = (
            "switched off in the settings"
            if not run.settings.refinement.enabled
            else "there was no contender to refine"
        )
        return Section("refinement", "Inverse PINN", f"No refinement was made: {why}.")
    items: list[Item] = [story.table(list_refined(run.refinement, run.laws))]
    for name, refinement in run.refinement.items():
        charts = (*_coefficient_histories(story, name, refinement), _losses(name, refinement))
        items.append(Tiles(charts, min(3, len(charts))))
        level: Level = "good" if refinement.converged else "warning"
        items.append(
            Note(
                story.prose(f"{name}: {refinement.reason}."),
                level,
                "Converged" if refinement.converged else "Not converged",
            )
        )
    if run.comparison is not None:
        items.append(story.table(list_direct(run.comparison)))
        items += draw_over_time(run.comparison, [row.measured for row in run.comparison.rows])
    return Section("refinement", "Inverse PINN", _refinement_sentence(story), tuple(items))


def _is_pending(run: Run) -> bool:
    """Tell whether the answer is there and the inverse PINN is not yet."""
    return run.test is not None and bool(run.calibration) and run.settings.refinement.enabled


def _refinement_sentence(story: Story) -> str:
    parts = []
    for name, refinement in story.run.refinement.items():
        state = "converged" if refinement.converged else "did not converge"
        moves = listed(
            f"{story.term(t)} from {number((refinement.start or {}).get(t))} to {number(v)}"
            for t, v in refinement.coefficients.items()
        )
        calibration = story.run.laws.get(name)
        agree = ""
        if calibration is not None:
            inside = [a.inside for a in check_agreement(refinement, calibration.estimates)]
            agree = (
                ""
                if not inside
                else ", inside the calibrated intervals"
                if all(inside)
                else ", outside the calibrated intervals"
            )
        parts.append(f"{name} {state}: {moves}{agree}")
    return "; ".join(parts) + "."


def _coefficient_histories(story: Story, name: str, refinement: Refinement) -> list[Chart]:
    charts = []
    known = story.terms()
    for column, term in enumerate(refinement.terms):
        unit = coefficient_units(known[term], story.unit) if term in known else ""
        series = tuple(
            Series(
                f"seed {run.seed}",
                *thin(run.history.steps, run.history.coefficients[:, column], MOST_STEPS),
                colour=term_colour(term),
            )
            for run in refinement.runs
        )
        final = refinement.coefficients[term]
        markers = [Marker("refined", final, "y", "ink")]
        if refinement.start is not None:
            markers.append(Marker("weak fit", refinement.start[term], "y", "grey"))
        charts.append(
            Chart(
                f"{name}: coefficient of {story.term(term)}",
                Axis("joint step"),
                Axis("coefficient", unit),
                series,
                f"The coefficient of {story.term(term)} over the joint training; at its end {number(final)}.",
                markers=tuple(markers),
            )
        )
    return charts


def _losses(name: str, refinement: Refinement) -> Chart:
    history = refinement.runs[0].history
    first = float(history.pretrain_steps[-1]) if len(history.pretrain_steps) else 0.0
    steps = np.concatenate([history.pretrain_steps, first + history.steps])
    data = np.concatenate([history.pretrain_data, history.data])
    series = (
        Series("data error", *thin(steps, data, MOST_STEPS), colour="blue"),
        Series("residual of the law", *thin(first + history.steps, history.residual, MOST_STEPS), colour="red"),
        Series("data, held-out points", first + history.checked, history.held_out_data, style="scatter", colour="sky"),
        Series(
            "residual, held-out points",
            first + history.checked,
            history.held_out_residual,
            style="scatter",
            colour="orange",
        ),
    )
    markers = (Marker("the law joins", first, "x", "grey"),) if first else ()
    return Chart(
        f"{name}: training",
        Axis("step"),
        Axis("relative error", log=True),
        series,
        "Data error and residual of the law over the training, on trained and held-out points.",
        "Relative to the field's spread and to its rate of change.",
        markers=markers,
    )


def tell_calibration(story: Story) -> Section | None:
    """Tell the calibrated coefficients and how the bootstrap spreads them."""
    run = story.run
    if not run.has("calibration"):
        return None
    if not run.calibration:
        return Section("calibration", "Calibration and bootstrap", "Nothing was calibrated: no library went on.")
    chosen = run.chosen or next(iter(run.laws.values()))
    sheet = list_calibrated(run.laws, run.calibrated_validation)
    items: list[Item] = [
        story.table(
            sheet.only("library", "term", "estimate", "bias", "std", "replicates", "converged", "starts_agree", "rrmse")
        )
    ]
    items += _by_stage(story, chosen)
    items += _budget(story, chosen)
    items += _bootstrap(story, chosen)
    for name, calibration in run.laws.items():
        if calibration is not chosen:
            items.append(Details(f"Library {name}", (*_by_stage(story, calibration), *_bootstrap(story, calibration))))
    items.append(Details("Every start and where it ended", (story.table(list_starts(run.calibration)),)))
    return Section("calibration", "Calibration and bootstrap", _calibration_sentence(story, chosen), tuple(items))


def _calibration_sentence(story: Story, chosen: Calibration) -> str:
    values = listed(
        f"{number(e.value)} ({number(e.low)} to {number(e.high)}) for {story.term(n)}"
        if e.has_interval
        else f"{number(e.value)} for {story.term(n)}"
        for n, e in chosen.estimates.items()
    )
    starts = f"all {len(chosen.attempts)} starts ended there" if chosen.starts_agree else "not all starts ended there"
    starts = "it was fitted from one start" if len(chosen.attempts) == 1 else starts
    boot = chosen.bootstrap
    spread = "no bootstrap was made"
    if boot is not None:
        blocks = count(boot.block_length, "frame")
        spread = f"{boot.converged} of {boot.requested} bootstrap replicates in blocks of {blocks} converged"
    grown = " This law amplifies its first frame, which was therefore fitted jointly." if chosen.fit.whole else ""
    return f"Fitted to the whole training window, {chosen.library} has {values}; {starts}, and {spread}.{grown}"


def _by_stage(story: Story, calibration: Calibration) -> tuple[Item, ...]:
    """Chart each coefficient as the stages found it, one after the other."""
    found = story.run.discovery
    refinement = story.run.refinement.get(calibration.library)
    fronts = [f for f in story.run.front.get(calibration.library, ()) if f.positive and f.converged]
    best = min(fronts, key=lambda f: f.objective, default=None)
    charts = []
    for term in calibration.terms:
        name, estimate = term.name, calibration.estimates[term.name]
        steps: list[tuple[str, float, float, float]] = []
        if found is not None:
            fit = found.identifiability.libraries[calibration.diagnosed].fit
            value, error = fit.coefficients.get(name, np.nan), NORMAL * fit.errors.get(name, 0.0)
            steps.append(("weak fit", value, value - error, value + error))
        if refinement is not None:
            value, error = refinement.coefficients[name], 2 * (refinement.spread or {}).get(name, 0.0)
            steps.append(("inverse PINN", value, value - error, value + error))
        steps.append(("calibrated", estimate.value, estimate.low, estimate.high))
        if best is not None:
            steps.append((FRONT, *(best.coefficients[name],) * 3))
        labels, values, low, high = zip(*steps, strict=True)
        charts.append(
            Chart(
                f"{story.term(name)}, stage by stage",
                Axis("stage", categories=tuple(labels)),
                Axis("coefficient", coefficient_units(term, story.unit)),
                (
                    Series(
                        story.term(name),
                        range(len(labels)),
                        values,
                        style="scatter",
                        low=low,
                        high=high,
                        colour=term_colour(name),
                    ),
                ),
                f"The coefficient of {story.term(name)} as each stage found it, with its 95 % interval.",
                "Bars: 95 % intervals; for the inverse PINN the spread over seeds; none where a stage gives none.",
            )
        )
    return (Tiles(tuple(charts)),)


def _budget(story: Story, calibration: Calibration) -> tuple[Item, ...]:
    """Show the error budget: a table, and the half-width of each coefficient as a bar of its lines."""
    if not calibration.budget:
        return ()
    sheet = list_budget({calibration.library: calibration})
    table = story.table(sheet.only("term", "line", "shift", "uncertainty", "share"))
    halves = relative_half_widths(calibration)
    if not np.isfinite(halves).any():
        return (table,)
    names = tuple(story.term(term.name) for term in calibration.terms)
    series = tuple(
        Series(line.name, range(len(names)), 100 * share * halves, style="bars", colour=BUDGET.get(line.name))
        for line, share in zip(calibration.budget, calibration.budget_shares, strict=True)
        if share.any()
    )
    totals = listed(f"{percent(half)} for {name}" for name, half in zip(names, halves, strict=True))
    chart = Chart(
        f"Error budget of {calibration.library}",
        Axis("coefficient", categories=names),
        Axis("half-width of the interval, of the value", "%"),
        series,
        f"The half-widths of {calibration.library}, {totals}, divided among the lines of the error budget.",
        "A bar is as high as the half-width of the 95 % interval. Half-widths add in quadrature: each line takes the "
        "part of the bar that is its share of the squared half-width.",
        stacked=True,
    )
    return table, chart


def _bootstrap(story: Story, calibration: Calibration) -> tuple[Item, ...]:
    boot = calibration.bootstrap
    if boot is None or boot.converged < 3:
        return ()
    units = [coefficient_units(term, story.unit) for term in calibration.terms]
    names = [story.term(term.name) for term in calibration.terms]
    estimates = [calibration.estimates[term.name] for term in calibration.terms]
    quantities = tuple(Quantity(n, u, e) for n, u, e in zip(names, units, estimates, strict=True))
    centre, covariance = bootstrap_covariance(boot)
    pairs = Pairs(
        f"Bootstrap replicates of {calibration.library}",
        quantities,
        boot.draws,
        f"{boot.converged} replicates of {listed(names)}, their histograms and 95 % ellipses.",
        centre,
        covariance,
        caption="Shaded: the 95 % interval reported, which includes every line of the error budget. Ellipses hold 95 % "
        "of the replicates.",
        colour=library_colour(calibration.library) or "blue",
    )
    return pairs, Tiles(_convergence(boot, names, units, calibration)), *_histograms(boot, names, units, calibration)


def _convergence(
    boot: Bootstrap, names: Sequence[str], units: Sequence[str], calibration: Calibration
) -> tuple[Chart, ...]:
    counts, middle, low, high = running_intervals(boot.draws)
    return tuple(
        Chart(
            f"Interval of {names[k]} against replicates",
            Axis("replicates"),
            Axis("coefficient", units[k]),
            (
                Series(
                    "median and 95 % interval",
                    counts,
                    middle[:, k],
                    low=low[:, k],
                    high=high[:, k],
                    band=True,
                    colour=term_colour(calibration.terms[k].name),
                ),
            ),
            f"Median and 95 % range of the first replicates of {names[k]}; it should settle.",
        )
        for k in range(len(names))
    )


def _histograms(
    boot: Bootstrap, names: Sequence[str], units: Sequence[str], calibration: Calibration
) -> tuple[Item, ...]:
    charts = tuple(
        Chart(
            f"Replicates of {names[k]}",
            Axis("coefficient", units[k]),
            Axis("replicates"),
            (histogram(names[k], boot.draws[:, k], colour=term_colour(term.name)),),
            f"Histogram of the replicates of {names[k]}.",
            markers=(Marker("fit", float(calibration.fit.coefficients[k])),),
        )
        for k, term in enumerate(calibration.terms)
    )
    return (Details("Histograms", (Tiles(charts),)),)


def tell_front(story: Story) -> Section | None:
    """Tell what fitting the front's position changes."""
    run = story.run
    if not run.has("front"):
        return None
    title = "Front-aware recalibration"
    if not run.front:
        why = "switched off in the settings" if not run.settings.front.enabled else "no contender has a front to follow"
        return Section("front", title, f"No front-aware fit was made: {why}.")
    items: list[Item] = [story.table(list_fronts(run.front))]
    final = run.calibrated_validation
    sentence = "The front-aware fits were made; they have not been rolled out yet."
    if final is not None:
        scores = {row.library: row.measured for row in final.rows}
        pairs = [(n, scores[n], scores[f"{n} {FRONT}"]) for n in run.front if n in scores and f"{n} {FRONT}" in scores]
        wanted = [score for _, plain, aware in pairs for score in (plain, aware)]
        items += draw_over_time(final, wanted) if wanted else ()
        sentence = "; ".join(
            f"{n}: the front's error on the validation window goes from {number(plain.full.front_rmse, digits=3)} to "
            f"{number(aware.full.front_rmse, story.unit, 3)}, the field's from {percent(plain.full.rrmse)} to "
            f"{percent(aware.full.rrmse)}"
            for n, plain, aware in pairs
        )
        sentence = f"{sentence}." if sentence else "No front-aware fit with a positive Laplacian converged."
    return Section("front", title, sentence, tuple(items))
