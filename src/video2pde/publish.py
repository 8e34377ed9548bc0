"""Leave a run's files: result, model, tables, figures and the page.

What the report needs beyond the artefacts of the stages is computed here: the model file and the law's analysis.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Self

from video2pde.field import Field
from video2pde.files import json_text, write_text
from video2pde.parallel import count_workers
from video2pde.record import load_run, Run
from video2pde.report.content import compose_page, Story
from video2pde.report.figurefiles import FigureFiles
from video2pde.report.page import write_page
from video2pde.report.tables import collect_sheets, write_tables
from video2pde.runs.folder import MODEL, PAGE, RESULT
from video2pde.stages.validation import window_velocities
from video2pde.using.analysis import analyse_model, Analysis
from video2pde.using.modelfile import SavedModel
from video2pde.using.schema import SavedRegion


class Publisher:
    """Leave a run's files, each whole or not at all; what is drawn for a run that goes on is not drawn again.

    Parameters
    ----------
    folder : of the run.
    latex : write the tables as LaTeX too.
    pdf : draw the figures as PDF, too.
    figures : draw. Without figures the page lacks a few pictures, and those of an earlier run stay.
    workers : processes that draw, this one included.
    """

    def __init__(
        self, folder: Path, latex: bool = False, figures: bool = True, pdf: bool = False, workers: int = 1
    ) -> None:
        self._folder, self._latex = folder, latex
        self._figures = FigureFiles(folder / "figures", pdf, workers) if figures else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._figures is not None:
            self._figures.close()

    def prepare(self, run: Run) -> None:
        """Begin with the figures that the rest of the run will not change, where there are processes for it."""
        if self._figures is not None:
            self._figures.draw_ahead(run)

    def publish(self, run: Run, whole: bool = True) -> Run:
        """Write what a run leaves behind.

        A finished run gets ``result.json`` and, where there is a law, ``model.json``; an unfinished one the tables,
        figures and sections of the stages that it has. Figures take most of the time: the page is written as soon as
        its own are there. Where the run goes on (``whole`` False), the others are left to the next call.

        Returns
        -------
        The run, with the seconds that this and earlier calls took among its timings.
        """
        began = time.perf_counter()
        folder = self._folder
        model = save_model(run) if run.test is not None else None
        if run.test is not None:
            write_text(folder / RESULT, json_text(run.to_json()))
        if model is not None:
            model.save(folder / MODEL)
        else:
            (folder / MODEL).unlink(missing_ok=True)
        write_tables(collect_sheets(run), folder / "tables", self._latex)
        pictures = {} if self._figures is None else self._figures.draw_page(run)
        write_page(compose_page(Story(run, pictures, _analyse(run, model), model)), folder / PAGE)
        if self._figures is not None and whole:
            self._figures.draw_rest(run)
        seconds = run.timings.get("report", 0.0) + time.perf_counter() - began
        done = replace(run, timings={**run.timings, "report": seconds})
        if run.test is not None:
            # once more: how long the report takes is known only now
            write_text(folder / RESULT, json_text(done.to_json()))
        return done


def render_folder(path: str | os.PathLike[str], latex: bool = False, figures: bool = True, pdf: bool = False) -> Path:
    """Render a run's report again from its stored artefacts, finished or not; return the page."""
    folder = Path(path)
    run = load_run(folder)
    with Publisher(folder, latex, figures, pdf, count_workers(run.settings.run.workers)) as publisher:
        publisher.publish(run)
    return folder / PAGE


def save_model(run: Run) -> SavedModel | None:
    """Collect the chosen law with what is needed to use it; None where there is none."""
    chosen, field, drift, windows = run.chosen, run.field, run.longest_drift, run.windows
    if chosen is None or field is None or drift is None or windows is None or run.selection is None:
        return None
    velocity = window_velocities(field, drift, {"law": chosen.model}, run.settings)["law"]
    return SavedModel.of(
        chosen.terms,
        chosen.estimates,
        field.grid,
        windows,
        field.times,
        velocity,
        flow=chosen.model.flow,
        maps=chosen.model.maps,
        region=_save_region(field, run.settings.recording.mask is None),
        # centred on the estimate: the replicates' own bias is no part of the law's uncertainty
        draws=None if chosen.bootstrap is None else chosen.bootstrap.draws - chosen.bootstrap.bias,
        noise=float(chosen.fit.mse**0.5),
        rollout=run.settings.rollout,
        verdict=run.selection.verdict,
        path=field.provenance.path,
        sha256=field.provenance.sha256,
        recording=run.settings.recording,
    )


def _save_region(field: Field, rim_alone: bool) -> SavedRegion | None:
    """Close a simulation with walls where the recording has a mask; a rim that drives the picture stays as it is."""
    if field.mask is None:
        return None
    return SavedRegion.of(field.mask, "held" if rim_alone and not field.walls else "walls")


def _analyse(run: Run, model: SavedModel | None) -> Analysis | None:
    if model is None or run.field is None:
        return None
    return analyse_model(model, run.field.values[0])
