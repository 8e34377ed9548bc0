"""What the report says of a law, of two laws, of none, and of a run that is not finished."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import (
    HOSTILE,
    keep_stages,
    LAW_SECTIONS,
    make_run,
    noise_field,
    walk,
    words,
)

from video2pde import publish
from video2pde.calibration import Calibration
from video2pde.estimate import Estimate
from video2pde.fit import FitTest
from video2pde.record import load_run, Run
from video2pde.report.content import compose_page, Story
from video2pde.report.content.head import compare_held_out
from video2pde.report.document import Bar, Chart, Check, Code, Equation, Math, Page, Series, Strong
from video2pde.report.page import render_page
from video2pde.report.tables import collect_sheets
from video2pde.result import summarise_motion
from video2pde.rollout.validate import DIFFUSION, Row, Validation
from video2pde.selection import Selection
from video2pde.selection.criteria import Candidate
from video2pde.stages.evaluation import Evaluation
from video2pde.terms import CATALOGUE
from video2pde.terms.words import describe
from video2pde.using.analysis import analyse_model


@pytest.fixture(scope="module")
def page(law: Run) -> Page:
    model = publish.save_model(law)
    assert model is not None
    return compose_page(Story(law, analysis=analyse_model(model)))


@pytest.fixture(scope="module")
def result(law_run: Path) -> dict[str, Any]:
    return json.loads((law_run / "result.json").read_text())


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(noise_field(), tmp_path_factory.mktemp("none"), "noise.npz")


# ------------------------------------------------------------------ a law


def test_a_law_is_told_from_head_to_warnings(page: Page, result: dict[str, Any]) -> None:
    assert result["verdict"] == "law"
    assert page.head.verdict == "One law predicts this recording"
    assert page.head.level == "good"
    assert [section.id for section in page.sections] == LAW_SECTIONS
    assert page.head.equation is not None
    assert page.head.equation.plain == result["selected"]["equation"]["text"]
    assert all(len(words(section.sentence)) > 15 for section in page.sections)


def test_the_head_says_what_result_json_says(page: Page, result: dict[str, Any]) -> None:
    shown = {c.symbol.plain: c for c in page.head.coefficients}
    for name, stored in result["selected"]["terms"].items():
        plain = describe(CATALOGUE[name]).text
        assert shown[plain].estimate == Estimate.from_json(stored)
        assert shown[plain].unit == stored["unit"]
    for axis in "xy":
        assert shown[f"c_{axis}"].estimate == Estimate.from_json(result["selected"]["drift_scale"][axis])
    ours = [bar for bar in page.head.comparisons[0].bars if bar.ours]
    assert [bar.value for bar in ours] == [pytest.approx(100 * result["test"]["rrmse"])]
    others = {bar.name: bar.value for bar in walk(page.head.comparisons[0]) if isinstance(bar, Bar)}
    assert others["nothing changes"] == pytest.approx(100 * result["test"]["baselines"]["persistence"])


def test_every_number_on_the_page_is_the_artefacts(page: Page, law: Run, result: dict[str, Any]) -> None:
    sections = {section.id: section for section in page.sections}
    cells = [v for v in walk(sections["calibration"]) if isinstance(v, Estimate)]
    stored = result["selected"]["terms"]["laplacian"]
    assert Estimate.from_json(stored) in cells
    conditions = {result["libraries"][name]["condition"] for name in result["libraries"]}
    assert conditions <= {v for v in walk(sections["conditioning"]) if isinstance(v, float)}
    lines = [v for v in walk(sections["test"]) if isinstance(v, Series) and v.name == result["selected"]["library"]]
    assert law.test_score is not None
    assert np.allclose(np.asarray(lines[0].y), 100 * law.test_score.full.rrmse_over_time)
    assert f"{100 * result['test']['rrmse']:.3g}\u202f%" in words(sections["test"].sentence)


def test_the_criteria_stand_as_pass_and_fail(page: Page, result: dict[str, Any]) -> None:
    selection = next(section for section in page.sections if section.id == "selection")
    marks = [v.passed for v in walk(selection) if isinstance(v, Check)]
    judged = [k["passed"] for c in result["selection"]["candidates"] for k in c["criteria"].values()]
    assert judged.count(False) > 0
    assert marks.count(False) >= judged.count(False)
    assert Strong(f"{result['selected']['library']}, chosen") in list(walk(selection))


def test_a_hostile_name_stays_text(page: Page, law_run: Path) -> None:
    assert HOSTILE in page.title
    html = (law_run / "report.html").read_text()
    assert "<img" not in html
    assert r"\u003cimg src=x onerror" in html


def test_terms_are_written_as_formulas(page: Page) -> None:
    conditioning = next(section for section in page.sections if section.id == "conditioning")
    assert Math(r"\Delta u", "Δu") in list(walk(conditioning))
    # the names of settings and files belong to the settings and provenance alone
    for section in page.sections:
        if section.id not in ("settings", "provenance"):
            assert not re.search(r"\b(grad_squared|laplacian)\b", words(section)), section.id


# ------------------------------------------------------------------ two laws, none, not finished


def test_an_ambiguous_verdict_shows_the_alternatives(law: Run) -> None:
    selection = law.selection
    assert selection is not None
    other = next(name for name in law.calibration if name != selection.chosen)
    reason = f"{selection.chosen} and {other} have 2 terms each"
    two = replace(selection, verdict="ambiguous", reason=reason, tied=(selection.chosen, other))
    page = compose_page(Story(replace(law, selection=two)))
    assert page.head.verdict == "More than one law fits this recording"
    assert page.head.level == "warning"
    told = next(section for section in page.sections if section.id == "selection")
    assert "not unique" in words(told.sentence)
    assert f"The alternative {other}, as good" in words(told)
    shown = [v for v in walk(told) if isinstance(v, Equation)]
    estimates = law.laws[other].estimates
    assert [v.plain for v in shown] == [law.calibration[other].model.equation.text]
    assert all(str(estimate) in words(page.head.notes) for estimate in estimates.values())
    text = replace(law, selection=two).summary()
    assert f"or, as good ({other}):" in text
    assert all(str(estimate) in text for estimate in estimates.values())
    assert "or, as good" not in law.summary()
    assert selection.tied == ()


def test_terminal_and_page_say_how_fast_the_drift_is(law: Run, page: Page) -> None:
    chosen, film = law.chosen, law.field
    assert chosen is not None
    assert film is not None
    assert page.head.equation is not None
    text = summarise_motion(chosen, film).text
    v_x, v_y = chosen.fit.velocity.mean(axis=0)
    assert text.startswith(f"v = ({v_x:.3g}, {v_y:.3g}) {film.grid.unit}/s")
    assert text in law.summary()
    assert text in words(page.head.equation)


def test_a_drift_of_less_than_a_cell_is_none_to_speak_of(law: Run) -> None:
    chosen, film = law.chosen, law.field
    assert chosen is not None
    assert film is not None
    count = len(chosen.fit.velocity)
    step = film.grid.dx / (film.dt * count)  # a cell over the window
    even = np.ones((count, 1)) * [[1.0, 0.0]]
    swing = np.where(np.arange(count) < count / 2, 3.0, -3.0)[:, None] * [[1.0, 0.0]]

    def with_drift(velocity: Any) -> Any:
        return replace(chosen, fit=replace(chosen.fit, velocity=velocity))

    slow, fast, back = (with_drift(step * v) for v in (0.9 * even, 2.2 * even, swing))
    assert summarise_motion(slow, film).text.startswith("no drift to speak of")
    assert "average" not in summarise_motion(fast, film).text
    # there and back again: its mean alone would call it no drift
    assert not summarise_motion(back, film).negligible
    assert "on average, vx from" in summarise_motion(back, film).text
    name = chosen.library
    still = replace(law, calibration={**law.calibration, name: slow})
    assert "scale" not in still.summary()
    assert "no drift to speak of" in still.summary()
    head = compose_page(Story(still)).head
    assert not any(c.symbol.plain.startswith("c_") for c in head.coefficients)
    assert "no drift to speak of" in words(head.equation)


def test_a_law_that_fails_on_the_test_frames_is_not_praised(law: Run) -> None:
    evaluation = law.test
    assert evaluation is not None
    rows = tuple(
        replace(
            r, measured=replace(r.measured, skill=-0.5, coarse_skill=-0.4, full=replace(r.measured.full, rrmse=9.0))
        )
        for r in evaluation.scores.rows
    )
    poor = replace(evaluation, scores=replace(evaluation.scores, rows=rows))
    page = compose_page(Story(replace(law, test=poor)))
    assert page.head.level == "error"
    assert "do not rely on the law" in words(page.head.summary)
    assert "better there: " in words(next(s for s in page.sections if s.id == "test").sentence)


def test_warnings_are_the_same_everywhere_and_the_gravest_comes_first(law: Run) -> None:
    assert law.selection is not None
    name = law.selection.chosen or ""
    failed = replace(law.fit[name], passes=False, reason=f"{name} leaves twice the noise", cause=None, lack={})
    stuck = replace(law.calibration[name], starts_agree=False)
    run = replace(law, fit={name: failed}, calibration={**law.calibration, name: stuck})
    assert run.warnings[0].startswith(f"{name} is an approximation: {name} leaves twice the noise")
    assert f"the starts of {name} did not all end at the same coefficients" in run.warnings[1:]
    told = [line.removeprefix("warning: ") for line in run.summary().splitlines() if line.startswith("warning: ")]
    assert tuple(told) == run.warnings
    page = compose_page(Story(run))
    listed = words(next(section for section in page.sections if section.id == "warnings"))
    places = [listed.index(words(Story(run).prose(text))) for text in run.warnings]
    assert places == sorted(places)
    assert "twice the noise" in words(page.head)


def test_without_a_bootstrap_there_is_no_interval(law: Run) -> None:
    assert law.selection is not None
    name = law.selection.chosen or ""
    bare = {term: Estimate(estimate.value) for term, estimate in law.calibration[name].estimates.items()}
    unsure = replace(law.calibration[name], estimates=bare, bootstrap=None)
    run = replace(law, calibration={**law.calibration, name: unsure})
    assert "(no interval)" in run.summary()
    shown = [c for c in compose_page(Story(run)).head.coefficients if not c.symbol.plain.startswith("c_")]
    assert all(c.note.startswith("no interval") and not c.estimate.has_interval for c in shown)
    stored = run.to_json()["selected"]["terms"]
    assert all(stored[term]["low"] is None and stored[term]["high"] is None for term in bare)


def test_where_no_level_is_crossed_there_is_no_front(law: Run) -> None:
    assert law.test is not None

    def flat(row: Any) -> Any:
        full = replace(row.measured.full, radii_observed=np.zeros_like(row.measured.full.radii_observed))
        return replace(row, measured=replace(row.measured, full=full))

    rows = tuple(flat(row) for row in law.test.scores.rows)
    run = replace(law, test=replace(law.test, scores=replace(law.test.scores, rows=rows)))
    headline = next(h for h in compose_page(Story(run)).head.headlines if h.label == "Front error")
    assert headline.value == "no front"
    assert run.to_json()["test"]["front_rmse"] is None


def test_diffusion_alone_is_not_measured_against_itself(law: Run) -> None:
    assert law.test is not None
    scores = law.test.scores
    itself = next(s for s in scores.baselines if s.name == DIFFUSION)
    behind = replace(itself, full=replace(itself.full, rrmse=1.01 * itself.full.rrmse))
    assert "“drift + diffusion” does better there" in compare_held_out(behind, scores, diffusion_alone=False)
    assert "drift + diffusion" not in compare_held_out(behind, scores, diffusion_alone=True)


def test_no_law_is_said_plainly(nothing: Path) -> None:
    run = load_run(nothing)
    page = compose_page(Story(run))
    stored = json.loads((nothing / "result.json").read_text())
    assert stored["verdict"] == "no_law"
    assert "; nearest comes " in stored["reason"]
    assert page.head.verdict == "No law was found in this recording"
    assert page.head.equation is None
    assert page.head.coefficients == ()
    assert not (nothing / "model.json").exists()
    summary = run.summary()
    assert "verdict: no law: " in summary
    assert summary.count("no law") == 1
    assert "no law" not in words(page.head.summary)
    assert "No law was chosen" in words(next(s for s in page.sections if s.id == "selection").sentence)
    assert "No law was left" in words(next(s for s in page.sections if s.id == "test").sentence)
    assert len(render_page(page)) > 10_000


def test_a_law_whose_first_frame_was_fitted_jointly_says_so(law: Run) -> None:
    assert law.selection is not None
    name = law.selection.chosen
    grown = replace(law.calibration[name], fit=replace(law.calibration[name].fit, whole=True))
    sections = {
        whole: next(s for s in compose_page(Story(run)).sections if s.id == "calibration")
        for whole, run in (
            (False, law),
            (True, replace(law, calibration={**law.calibration, name: grown})),
        )
    }
    assert "fitted jointly" in str(sections[True].sentence)
    assert "fitted jointly" not in str(sections[False].sentence)


def test_the_bars_of_the_budget_are_the_half_widths(law: Run, page: Page) -> None:
    chosen = law.chosen
    assert chosen is not None
    section = next(section for section in page.sections if section.id == "calibration")
    chart = next(v for v in walk(section) if isinstance(v, Chart) and v.stacked)
    bars = {series.name: np.asarray(series.y) for series in chart.series}
    halves = [(e.high - e.low) / 2 / abs(e.value) for e in chosen.estimates.values()]
    assert np.allclose(sum(bars.values()), 100 * np.array(halves))
    grid, statistics = chosen.correction("grid").uncertainty, chosen.correction("statistics").uncertainty
    assert np.allclose(bars["grid"] / bars["statistics"], grid**2 / statistics**2)


@pytest.mark.parametrize("last", ["recording", "drift", "discovery", "validation", "calibration", "selection"])
def test_an_unfinished_run_shows_what_is_there(law: Run, last: str) -> None:
    names = list(law.timings)
    kept = names[: names.index(last) + 1]
    run = keep_stages(law, kept)
    page = compose_page(Story(run))
    there = [section.id for section in page.sections]
    assert there == [name for name in LAW_SECTIONS if name in there]
    assert "test" not in there
    assert ("validation" in there) == ("validation" in kept)
    assert page.head.player is not None
    assert page.head.player.predicted is None
    if last == "selection":
        assert page.head.verdict == "One law predicts this recording, so far"
        assert "has not been read yet" in words(page.head.summary)
    else:
        assert page.head.verdict == "This run is not finished"
        assert last in words(page.head.summary)
    assert len(render_page(page)) > 10_000


def test_a_run_without_a_single_stage_has_a_page(law: Run) -> None:
    page = compose_page(Story(Run(law.settings)))
    assert [section.id for section in page.sections] == ["settings", "provenance", "timings", "warnings"]


def test_provenance_and_settings_are_complete(page: Page, law: Run) -> None:
    sections = {section.id: section for section in page.sections}
    assert law.field is not None
    assert Code(law.field.provenance.path) in list(walk(sections["provenance"]))
    named = {v.text for v in walk(sections["settings"]) if isinstance(v, Code)}
    assert {"recording.crop", "calibration.replicates", "run.seed"} <= named
    assert set(law.timings) <= set(words(sections["timings"]).split())


def test_terms_are_shown_as_formulas_and_options_as_they_are_typed(law: Run) -> None:
    shown = Story(law).prose("laplacian 0.26 (try --law grad_squared,laplacian), not laplacian alone: 3% left")
    assert "--law grad_squared,laplacian)" in shown
    assert shown.startswith("Δu 0.26")
    assert "not Δu alone" in shown


# ------------------------------------------------------------------ a law that rollouts asked for


def renamed(value: Any, old: str, new: str) -> Any:
    """Give a library another name wherever it stands in artefacts."""
    if isinstance(value, str):
        return new if value == old else value
    if isinstance(value, dict):
        return {renamed(k, old, new): renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(renamed(item, old, new) for item in value)
    if isinstance(value, Calibration | FitTest | Validation | Row | Selection | Candidate | Evaluation):
        return replace(value, **{f.name: renamed(getattr(value, f.name), old, new) for f in fields(value)})
    return value


def test_a_law_that_no_library_holds_is_told_like_any_other(law: Run) -> None:
    """It has a diagnosis of the smaller law alone, and none of its own."""
    name = "A+grad_squared"
    changed = {
        stage: renamed(getattr(law, stage), "C", name)
        for stage in ("calibration", "fit", "front", "calibrated_validation", "selection", "test")
    }
    changed["calibration"][name] = replace(changed["calibration"][name], enlarges="A")
    run = replace(law, **changed)
    model = publish.save_model(run)
    assert model is not None
    page = compose_page(Story(run, analysis=analyse_model(model)))
    assert any("|∇u|² by rollouts" in headline.note for headline in page.head.headlines)
    assert render_page(page)
    assert run.to_json()["selected"]["library"] == name
    assert {sheet.name for sheet in collect_sheets(run)} == {sheet.name for sheet in collect_sheets(law)}
