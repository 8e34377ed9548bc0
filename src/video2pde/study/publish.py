"""Leave a study's files: result.json, tables, report.html."""

from __future__ import annotations

from pathlib import Path

from video2pde.files import json_text, write_text
from video2pde.report.page import write_page
from video2pde.report.sheets import to_csv
from video2pde.runs.folder import PAGE, RESULT
from video2pde.study.order import Study
from video2pde.study.page import compose_study
from video2pde.study.result import describe_study
from video2pde.study.tables import collect_tables, NAMES


def publish(folder: Path, study: Study) -> None:
    """Write what a study leaves behind, each file whole or not at all."""
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (place / f"{name}.csv").unlink(missing_ok=True)
    for sheet in collect_tables(study):
        write_text(place / f"{sheet.name}.csv", to_csv(sheet))
    write_page(compose_study(study), folder / PAGE)
    write_text(folder / RESULT, json_text(describe_study(study)))
