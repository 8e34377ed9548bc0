"""The top of the page: verdict, law, coefficients, held-out error, player."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from video2pde.calibration import Calibration, find_derived, find_directions
from video2pde.estimate import Estimate
from video2pde.report.content.words import count, listed, MEANINGS, number, percent, Story
from video2pde.report.document import (
    Bar,
    Coefficient,
    Comparison,
    Equation,
    Head,
    Headline,
    Level,
    Link,
    Math,
    Note,
    Player,
    Text,
)
from video2pde.report.films import make_player
from video2pde.result import FAILS, held_out_doubt, Motion, summarise_motion
from video2pde.rollout.validate import DIFFUSION, Score, Validation
from video2pde.terms.words import coefficient_units

if TYPE_CHECKING:
    from video2pde.selection import Selection

VERDICTS: dict[str, tuple[str, Level]] = {
    "law": ("One law predicts this recording", "good"),
    "approximation": ("An approximation: the law leaves more than noise", "warning"),
    "ambiguous": ("More than one law fits this recording", "warning"),
    "no_law": ("No law was found in this recording", "warning"),
}
FAILED: tuple[str, Level] = ("A law was chosen, but it fails on the held-out frames", "error")
UNTESTED: tuple[str, Level] = ("A law was fitted; the held-out frames hardly test it", "warning")
MOST_RIVALS = 2
FILM_BYTES = 7_000_000
"""Of a page of 12 MB: pictures and charts of a paper-size run take about 4 MB."""


def compose_head(story: Story, player: bool = True) -> Head:
    """Say what the run found, or how far it has come."""
    run = story.run
    film = _player(story) if player else None
    if run.selection is None:
        done = listed(run.timings) or "none"
        so_far = f"Finished so far: {done}. What is there is shown below; 'video2pde run' goes on from there."
        return Head("This run is not finished", "info", so_far, player=film, notes=_notes(story))
    verdict, level = VERDICTS[run.selection.verdict]
    summary = _summary(story, run.selection)
    if run.test is None:
        return Head(f"{verdict}, so far", "info", summary, *_law(story), player=film, notes=_notes(story))
    doubt = held_out_doubt(run)
    if doubt:
        verdict, level = FAILED if doubt == FAILS else UNTESTED
    return Head(
        verdict,
        level,
        summary,
        *_law(story),
        headlines=_headlines(story),
        comparisons=_comparisons(story, run.test.scores),
        player=film,
        notes=_notes(story),
    )


def film_name(story: Story) -> str:
    """Return the recording's file name."""
    film = story.run.field
    path = "" if film is None else film.provenance.path
    return PurePath(path).name or "the recording"


def _summary(story: Story, selection: Selection) -> Text:
    reason = story.prose(selection.reason[:1].upper() + selection.reason[1:])
    score, run = story.run.test_score, story.run
    parts: list[str] = [reason.rstrip(".") + "."]
    if run.test is None:
        parts.append(" The test window has not been read yet.")
    elif score is None:
        persistence = run.test.scores.persistence.full.rrmse
        parts.append(f" Keeping the last known frame is wrong by {percent(persistence)} on the held-out frames.")
    else:
        diffusion_alone = run.chosen is not None and run.chosen.model.consists_of(("laplacian",))
        parts.append(f" {compare_held_out(score, run.test.scores, diffusion_alone)}")
    return (*parts, " See ", Link("how it was chosen", "selection"), ".")


def compare_held_out(score: Score, test: Validation, diffusion_alone: bool) -> str:
    """Compare the law with the best baseline on the test window, whichever way it went.

    Where the law is diffusion alone (``diffusion_alone``), drift + diffusion is that law and no baseline.
    """
    if score.failure:
        return f"Its rollout over the held-out frames failed: {score.failure}."
    baselines = [s for s in test.baselines if not (s.failure or (diffusion_alone and s.name == DIFFUSION))]
    best = min(baselines, key=lambda s: s.full.rrmse)
    error, other = score.full.rrmse, best.full.rrmse
    text = f"On the held-out test frames, read once after the choice was frozen, its error is {percent(error)}"
    if error < other:
        return (
            f"{text}, {other / error:.3g} times smaller than that of the best baseline ({best.name}, {percent(other)})."
        )
    text = f"{text}; the baseline “{best.name}” does better there with {percent(other)}"
    if score.coarse_skill > 0:
        removed = f"removes {score.coarse_skill:.0%} of the squared error of a picture that stands still"
        return f"{text}, which is noise and detail that stands still: in averages over blocks the law {removed}."
    return f"{text}, so do not rely on the law."


def _law(story: Story) -> tuple[Equation | None, tuple[Coefficient, ...]]:
    chosen = story.run.chosen
    if chosen is None:
        return None, ()
    words = chosen.model.equation
    equation = Equation(words.latex, words.text, _caption(story))
    terms = tuple(
        _coefficient(
            story.term_math(term.name),
            MEANINGS.get(term.name, "a term of your own"),
            chosen.estimates[term.name],
            coefficient_units(term, story.unit),
        )
        for term in chosen.terms
    )
    motion = _motion(story)
    scales = chosen.drift_scale if motion is None or not motion.negligible else {}
    drift = tuple(
        _coefficient(Math(f"c_{axis}", f"c_{axis}"), f"drift along {axis} over the measured one", estimate, "1")
        for axis, estimate in scales.items()
    )
    flow = chosen.model.flow
    if flow is not None and flow.shape.potential:
        mobility = chosen.drift_scale["x"]
        drift = (
            _coefficient(Math("\\chi", "χ"), "along the gradient of the given field", mobility, f"{story.unit}²/s"),
        )
    derived = tuple(
        _coefficient(Math(number.symbol, number.symbol), number.meaning, number.estimate, number.unit)
        for number in find_derived(chosen)
    )
    return equation, terms + _directions(story, chosen) + derived + drift


def _directions(story: Story, chosen: Calibration) -> tuple[Coefficient, ...]:
    """List what a diffusion tensor means, whatever way the camera was turned."""
    found = find_directions(chosen)
    if found is None:
        return ()
    unit = f"{story.unit}²/s"
    rows = (
        (Math(r"\lambda_1", "λ₁"), "diffusion along the faster direction", found.along, unit),
        (Math(r"\lambda_2", "λ₂"), "diffusion across it", found.across, unit),
        (Math(r"\theta", "θ"), "the faster direction, from x towards y (down)", found.angle, "degrees"),
    )
    return tuple(_coefficient(*row) for row in rows)


def _motion(story: Story) -> Motion | None:
    chosen, film = story.run.chosen, story.run.field
    return None if chosen is None or film is None else summarise_motion(chosen, film)


def _caption(story: Story) -> str:
    viscosity = story.run.settings.rollout.viscosity
    extra = (
        f" Rollouts add a numerical diffusion of {viscosity:g}, which the Laplacian's coefficient lacks."
        if viscosity
        else ""
    )
    motion = _motion(story)
    drift = "v(t) is the drift" if motion is None else f"v(t) is the drift: {motion.text}"
    chosen = story.run.chosen
    varies = " m is a coefficient that varies, over its mean." if chosen is not None and chosen.maps else ""
    return f"Lengths in {story.unit}, times in seconds; {drift}.{varies}{extra}"


def _coefficient(symbol: Math, meaning: str, estimate: Estimate, unit: str) -> Coefficient:
    note = "" if estimate.has_interval else "no interval: no bootstrap replicate converged, or none was asked for"
    return Coefficient(symbol, meaning, estimate, unit, note)


def _headlines(story: Story) -> tuple[Headline, ...]:
    run, score, film = story.run, story.run.test_score, story.run.field
    found: list[Headline] = []
    if score is not None:
        found = [
            Headline("Error on the test window", percent(score.full.rrmse), "relative root mean square, held out"),
            Headline(
                "Skill over persistence",
                number(score.skill, digits=4),
                "1 is perfect, 0 no better than nothing changes",
            ),
            _front(score, story.unit),
        ]
    if run.chosen is not None and run.discovery is not None and run.settings.regression.law is None:
        found.append(_selected(run.chosen, story))
    if film is not None:
        ny, nx = film.grid.shape
        found.append(Headline("Recording", count(len(film), "frame"), f"{film.duration:.4g} s at {ny} × {nx}"))
    return tuple(found)


def _front(score: Score, unit: str) -> Headline:
    if not score.full.has_front:
        return Headline("Front error", "no front", "no level is crossed on the test window")
    return Headline("Front error", number(score.full.front_rmse, digits=3), f"{unit}, rms over all levels")


def _selected(chosen: Calibration, story: Story) -> Headline:
    assert story.run.discovery is not None
    stability = story.run.discovery.identifiability.libraries[chosen.diagnosed].stability
    known = [term.name for term in chosen.terms if term.name in stability.frequency]
    least = min(stability.frequency[name] for name in known)
    more = ", ".join(story.term(term.name) for term in chosen.terms if term.name not in known)
    return Headline(
        "Terms selected in",
        f"{round(least * stability.runs)} of {stability.runs}",
        "random samples, at least" + (f"; {more} by rollouts" if more else ""),
    )


def _comparisons(story: Story, test: Validation) -> tuple[Comparison, ...]:
    chosen = None if story.run.selection is None else story.run.selection.chosen
    # law and baselines always, of the rivals the best few
    rivals = [row for row in sorted(test.rows, key=lambda r: r.measured.full.rrmse) if row.library != chosen]
    shown = [row for row in test.rows if row.library == chosen] + rivals[:MOST_RIVALS]
    scores = [(row.library, row.measured) for row in shown] + [(s.name, s) for s in test.baselines]
    usable = [(name, score) for name, score in scores if not score.failure]
    if not usable:
        return ()
    unit = story.unit
    kinds: tuple[tuple[str, str, Callable[[Score], float]], ...] = (
        ("Relative error on the test window", "%", lambda s: 100.0 * s.full.rrmse),
        ("Front error on the test window", unit, lambda s: s.full.front_rmse),
    )
    comparisons = []
    for label, measure, value in kinds if any(s.full.has_front for _, s in usable) else kinds[:1]:
        ranked = sorted(usable, key=lambda item: value(item[1]))
        bars = [Bar(_bar_name(name, s, chosen), value(s), name == chosen) for name, s in ranked]
        comparisons.append(Comparison(label, tuple(bars), measure, "Root mean square; less is better."))
    return tuple(comparisons)


def _bar_name(name: str, score: Score, chosen: str | None) -> str:
    if score.mode == "baseline":
        return {"persistence": "nothing changes", "drift": "drift alone"}.get(name, name)
    return f"this law ({name})" if name == chosen else f"law {name}"


def _player(story: Story) -> Player | None:
    run = story.run
    if run.field is None:
        return None
    forecasts = () if run.test is None else run.test.forecasts
    caption = (
        "Each forecast starts from the first frame of its window, validation or test, and sees no later one; "
        "only the drift is measured along the way."
        if forecasts
        else "The field as it was read from the recording."
    )
    return make_player(
        run.field,
        forecasts,
        run.windows,
        title="Observed and predicted" if forecasts else "Observed",
        caption=caption,
        budget=FILM_BYTES,
    )


def _notes(story: Story) -> tuple[Note, ...]:
    rivals = () if story.run.selection is None else story.run.selection.tied[1:]
    equals = tuple(Note(f"As good ({name}): {story.law_in_words(name)}.", "info") for name in rivals)
    return equals + _warning(story)


def _warning(story: Story) -> tuple[Note, ...]:
    if not story.run.warnings:
        return ()
    if len(story.run.warnings) == 1:
        return (Note(story.prose(story.run.warnings[0]), "warning"),)
    text = (
        f"{len(story.run.warnings)} warnings, the first: {story.prose(story.run.warnings[0])}. See ",
        Link("all of them", "warnings"),
        ".",
    )
    return (Note(text, "warning"),)
