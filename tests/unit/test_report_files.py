"""The files of a report: a folder rendered again, tables in full, figures of every kind."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_runs import keep_stages, walk

from video2pde import publish
from video2pde.errors import InputError
from video2pde.record import load_run, Run
from video2pde.report.content import compose_page, Story
from video2pde.report.document import Image
from video2pde.report.figurefiles import FigureFiles
from video2pde.report.figures import collect_figures, PAGE, SETTLED
from video2pde.report.tables import collect_sheets, NAMES, write_tables


@pytest.fixture(scope="module")
def result(law_run: Path) -> dict[str, Any]:
    return json.loads((law_run / "result.json").read_text())


def test_a_folder_renders_again_to_the_same_files(law_run: Path) -> None:
    names = ("model.json", "report.html")
    before = {name: (law_run / name).read_bytes() for name in names}
    result = json.loads((law_run / "result.json").read_text())
    (law_run / "report.html").unlink()
    target = publish.render_folder(law_run, latex=True, figures=False)
    assert target == law_run / "report.html"
    assert {name: (law_run / name).read_bytes() for name in names} == before
    again = json.loads((law_run / "result.json").read_text())
    assert result["timings_s"].pop("report") > 0
    assert again["timings_s"].pop("report") > 0
    assert again == result
    assert {path.stem for path in (law_run / "tables").glob("*.tex")} == {
        path.stem for path in (law_run / "tables").glob("*.csv")
    }


def test_a_choice_without_the_laws_it_was_made_from_is_refused(law_run: Path) -> None:
    """A damaged list of what stands leaves the choice and takes the laws away."""
    standing = law_run / "stages" / "standing.json"
    kept = standing.read_text()
    try:
        standing.write_text(json.dumps({**json.loads(kept), "calibration": "0" * 64}))
        with pytest.raises(InputError, match="are of two runs"):
            load_run(law_run)
    finally:
        standing.write_text(kept)


def test_artefacts_of_an_older_run_are_left_out(law_run: Path) -> None:
    standing = law_run / "stages" / "standing.json"
    keys = json.loads(standing.read_text())
    try:
        standing.write_text(json.dumps({**keys, "selection": "0" * 64, "test": "0" * 64}))
        run = load_run(law_run)
        assert run.selection is None
        assert run.test is None
        assert run.calibration
    finally:
        standing.write_text(json.dumps(keys))


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not the folder of a run"):
        publish.render_folder(tmp_path)


def test_tables_hold_the_artefacts_in_full(law: Run, result: dict[str, Any], tmp_path: Path) -> None:
    sheets = collect_sheets(law)
    of_others = {"preprocessing", "checks", "smoothing", "recovery", "steadiness", "search", "search-set-aside"}
    assert {sheet.name for sheet in sheets} == set(NAMES) - of_others
    stale = tmp_path / "smoothing.csv"
    stale.write_text("an earlier run's")
    write_tables(sheets, tmp_path, latex=True)
    assert not stale.exists()
    with (tmp_path / "calibration.csv").open() as file:
        rows = list(csv.DictReader(file))
    library = result["selected"]["library"]
    row = next(r for r in rows if r["library"] == library and r["term"] == "laplacian")
    assert float(row["estimate"]) == result["selected"]["terms"]["laplacian"]["value"]
    assert float(row["estimate_low"]) == result["selected"]["terms"]["laplacian"]["low"]
    with (tmp_path / "test.csv").open() as file:
        scores = {r["name"]: float(r["rrmse"]) for r in csv.DictReader(file)}
    assert scores[library] == result["test"]["rrmse"]
    assert scores["persistence"] == result["test"]["baselines"]["persistence"]


def test_every_kind_of_figure_is_drawn(law: Run, tmp_path: Path) -> None:
    drawings = dict(collect_figures(law))
    library = law.selection.chosen if law.selection is not None else ""
    assert {
        "snapshots",
        "drift",
        "correlations",
        "threshold-counts",
        "threshold-paths",
        "stability-frequencies",
        "stability-coefficients",
        "validation-errors",
        "validation-over-time",
        "validation-snapshots",
        "validation-fronts",
        "pinn-comparison",
        "coefficients",
        f"bootstrap-{library}",
        f"bootstrap-convergence-{library}",
        "test-over-time",
        "test-snapshots",
        "test-fronts",
    } <= set(drawings)
    few = keep_stages(law, ("recording", "drift"))
    (tmp_path / "figures.txt").write_text("snapshots\ngone\n../outside\n")
    (tmp_path / "gone.png").write_bytes(b"old")
    files = FigureFiles(tmp_path, pdf=True)
    pictures = files.draw_page(few)
    assert not list(tmp_path.glob("*.pdf"))  # the page does not wait for what it does not show
    drawn = (tmp_path / "drift.png").stat().st_mtime_ns
    files.draw_rest(few)
    assert (tmp_path / "drift.png").stat().st_mtime_ns == drawn  # and no figure is drawn twice
    assert set(pictures) == {"snapshots", "drift"}
    assert {path.name for path in tmp_path.iterdir()} == {
        "snapshots.png",
        "snapshots.pdf",
        "drift.png",
        "drift.pdf",
        "figures.txt",
    }
    FigureFiles(tmp_path).draw_rest(few)
    assert not list(tmp_path.glob("*.pdf"))  # only where they are asked for: an old one would show other numbers
    page = compose_page(Story(few, pictures))
    images = [v for v in walk(page) if isinstance(v, Image)]
    assert len(images) == 2
    assert all(image.alt for image in images)


def test_processes_beside_draw_the_same_figures(law_run: Path, tmp_path: Path) -> None:
    """What is drawn ahead, beside the run and here is the same to the byte."""
    law = load_run(law_run)
    names = [name for name, _ in collect_figures(law)]
    settled = [name for name in names if name.startswith(SETTLED)]
    FigureFiles(tmp_path / "here").draw_rest(law)
    folder = law_run / "figures-beside"
    files = FigureFiles(folder, workers=2)
    try:
        early = keep_stages(law, ("recording", "drift", "discovery", "validation", "calibration"))
        files.draw_ahead(early)
        pictures = files.draw_page(law)
        files.draw_rest(law)
    finally:
        files.close()
    assert len(settled) > 8
    assert set(pictures) == {name for name in names if name in PAGE}
    for name in names:
        assert (folder / f"{name}.png").read_bytes() == (tmp_path / "here" / f"{name}.png").read_bytes(), name
    shutil.rmtree(folder)


def test_a_figure_that_no_process_can_draw_is_drawn_here(law: Run, tmp_path: Path) -> None:
    """The folder holds no run, so that every process beside fails."""
    files = FigureFiles(tmp_path / "figures", workers=2)
    try:
        files.draw_ahead(law)
        files.draw_page(law)
    finally:
        files.close()
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == {
        name for name, _ in collect_figures(law) if name in PAGE
    }


def test_figures_drawn_ahead_need_nothing_of_later_stages(law: Run) -> None:
    """Every settled figure is there as soon as the law is chosen, the last stage that the run draws after."""
    stages = ("recording", "drift", "discovery", "validation", "calibration", "fit", "front", "selection")
    early = {name for name, _ in collect_figures(keep_stages(law, stages))}
    late = {name for name, _ in collect_figures(law)}
    assert {name for name in late if name.startswith(SETTLED)} <= early
    assert not any(name.startswith(SETTLED) for name in late - early)


def test_a_process_beside_ends_with_its_run(tmp_path: Path) -> None:
    """A run that is killed closes what it told the process by; a figure that is not there is answered at once."""
    command = [sys.executable, "-m", "video2pde.report.beside", str(tmp_path / "figures")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    answers, _ = process.communicate("no-such-figure\n", timeout=120)
    assert answers == "\n"
    assert process.returncode == 0
