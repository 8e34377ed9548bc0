"""Leave a run's files: result, model, tables, figures and the page."""

from __future__ import annotations

import json
import os
from pathlib import Path

from video2pde.files import atomic_write
from video2pde.report.artefacts import Artefacts, load_artefacts
from video2pde.report.content import compose_page, Story
from video2pde.report.figures import write_figures
from video2pde.report.page import write_page
from video2pde.report.tables import collect_sheets, write_tables
from video2pde.stages import window_velocities
from video2pde.using.analysis import analyse_model, Analysis
from video2pde.using.modelfile import SavedModel

__all__ = ["Artefacts", "publish", "render_folder", "save_model"]


def publish(folder: Path, artefacts: Artefacts, latex: bool = False, figures: bool = True) -> Path:
    """Write what a run leaves behind, each file whole or not at all; return the page.

    A finished run gets ``result.json`` and, where there is a law, ``model.json``; an unfinished one the tables,
    figures and sections of the stages that it has. Figures take most of the time; without them the page lacks a few
    pictures, and those of an earlier run stay.
    """
    model = save_model(artefacts) if artefacts.evaluation is not None else None
    if artefacts.evaluation is not None:
        _write(
            folder / "result.json",
            json.dumps(artefacts.result.to_json(artefacts.timings), indent=2, ensure_ascii=False),
        )
    if model is not None:
        model.save(folder / "model.json")
    else:
        (folder / "model.json").unlink(missing_ok=True)
    write_tables(collect_sheets(artefacts), folder / "tables", latex)
    pictures = write_figures(artefacts, folder / "figures") if figures else {}
    story = Story(artefacts, pictures, _analyse(artefacts, model), model)
    return write_page(compose_page(story), folder / "report.html")


def render_folder(path: str | os.PathLike[str], latex: bool = False, figures: bool = True) -> Path:
    """Render a run's report again from its stored artefacts, finished or not; return the page."""
    folder = Path(path)
    return publish(folder, load_artefacts(folder), latex, figures)


def save_model(run: Artefacts) -> SavedModel | None:
    """Collect the chosen law with what is needed to use it; None where there is none."""
    chosen, field, drift, windows = run.chosen, run.field, run.drift, run.windows
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
        # centred on the estimate: the replicates' own bias is no part of the law's uncertainty
        draws=None if chosen.bootstrap is None else chosen.bootstrap.draws - chosen.bootstrap.bias,
        noise=float(chosen.fit.mse**0.5),
        rollout=run.settings.rollout,
        verdict=run.selection.verdict,
        path=field.provenance.path,
        sha256=field.provenance.sha256,
        recording=run.settings.recording,
    )


def _analyse(run: Artefacts, model: SavedModel | None) -> Analysis | None:
    if model is None or run.field is None:
        return None
    return analyse_model(model, run.field.values[0])


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write((text + "\n").encode())
