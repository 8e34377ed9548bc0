"""Leave the files of a run of two fields: result, model, tables, figures and the page."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from video2pde.files import json_text, write_text
from video2pde.pair.figures import draw_figures
from video2pde.pair.model import PairModel
from video2pde.pair.page import compose_pair_page
from video2pde.pair.record import load_pair_run, PairRun
from video2pde.pair.tables import collect_sheets
from video2pde.report.page import write_page
from video2pde.report.tables import write_tables
from video2pde.runs.folder import MODEL, PAGE, RESULT


def publish_pair(run: PairRun, folder: Path, latex: bool = False, figures: bool = True, pdf: bool = False) -> PairRun:
    """Write what a run leaves behind; return it with the seconds that this took."""
    began = time.perf_counter()
    if run.test is not None:
        write_text(folder / RESULT, json_text(run.to_json()))
    if run.chosen is not None and run.pair is not None and run.selection is not None:
        verdict, recording = run.selection.verdict, run.settings.recording
        PairModel.of(run.chosen, run.pair, run.settings.rollout, verdict, recording).save(folder / MODEL)
    else:
        (folder / MODEL).unlink(missing_ok=True)
    write_tables(collect_sheets(run), folder / "tables", latex)
    write_page(compose_pair_page(run), folder / PAGE)
    if figures:
        draw_figures(run, folder / "figures", pdf)
    done = replace(run, timings={**run.timings, "report": time.perf_counter() - began})
    if run.test is not None:
        write_text(folder / RESULT, json_text(done.to_json()))
    return done


def render_pair(path: str | os.PathLike[str], latex: bool = False, figures: bool = True, pdf: bool = False) -> Path:
    """Render the report of a run of two fields again from its stored artefacts; return the page."""
    folder = Path(path)
    publish_pair(load_pair_run(folder), folder, latex, figures, pdf)
    return folder / PAGE
