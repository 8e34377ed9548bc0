"""Every table of a run, as sheets made from artefacts; they compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from video2pde.calibration.parts import InParts
from video2pde.files import atomic_write
from video2pde.frap.populations import Populations
from video2pde.frap.recovery import Recovery
from video2pde.record import Run
from video2pde.report import fit_tables
from video2pde.report.calibration_tables import (
    list_budget,
    list_calibrated,
    list_fronts,
    list_populations,
    list_recovery,
    list_refined,
    list_starts,
    list_steadiness,
)
from video2pde.report.discovery_tables import (
    list_coefficients,
    list_conditioning,
    list_front,
    list_set_aside,
    list_stability,
)
from video2pde.report.map_tables import list_maps
from video2pde.report.recording_tables import list_checks, list_preprocessing, list_smoothing
from video2pde.report.rollout_tables import list_direct, list_modes, list_scores, list_selection
from video2pde.report.sheets import Sheet, to_csv, to_latex

NAMES = (
    "preprocessing",
    "checks",
    "smoothing",
    "conditioning",
    "coefficients",
    "stability",
    "search",
    "search-set-aside",
    "validation",
    "validation-scores",
    "pinn",
    "pinn-validation",
    "calibration",
    "budget",
    "calibration-starts",
    "front",
    "selection",
    "calibrated-validation",
    "test",
    "recovery",
    "steadiness",
    *fit_tables.NAMES,
)
"""Names of all tables; a run leaves those that it has numbers for."""


def collect_sheets(run: Run) -> list[Sheet]:
    """Make every table that the run has numbers for."""
    sheets: list[Sheet] = [list_recovery(run.recovery)] if isinstance(run.recovery, Recovery) else []
    found = getattr(run.recovery, "populations", None)
    if isinstance(run.recovery, Recovery) and isinstance(found, Populations):
        sheets.append(list_populations(run.recovery, found))
    if isinstance(run.steadiness, InParts):
        sheets.append(list_steadiness(run.steadiness, run.unit))
    if run.recording is not None and run.recording.checks is not None:
        checks = run.recording.checks
        sheets += [
            list_preprocessing(checks),
            list_checks(checks, len(run.recording.field)),
            list_smoothing(checks.sweep),
        ]
    if run.discovery is not None:
        found = run.discovery.identifiability
        sheets += [list_conditioning(found), list_coefficients(found), list_stability(found)]
        if run.discovery.search is not None:
            sheets += [list_front(run.discovery.search), list_set_aside(run.discovery.search)]
    if run.validation is not None:
        sheets += [list_modes(run.validation), list_scores(run.validation, "validation-scores")]
    if run.refinement:
        sheets.append(list_refined(run.refinement, run.laws))
    if run.comparison is not None:
        sheets.append(list_direct(run.comparison))
    if run.calibration:
        sheets += [
            list_calibrated(run.laws, run.calibrated_validation),
            list_budget(run.laws),
            list_starts(run.calibration),
        ]
    if run.chosen is not None and run.field is not None:
        sheets += list_maps(run.chosen, run.field)
    if run.chosen_fit is not None:
        test = run.chosen_fit
        sheets += [fit_tables.list_scales(test, run.unit), fit_tables.list_suspects(test), fit_tables.list_parts(test)]
    if run.front:
        sheets.append(list_fronts(run.front))
    if run.selection is not None and run.selection.candidates:
        sheets.append(list_selection(run.selection))
    if run.calibrated_validation is not None and run.calibrated_validation.rows:
        sheets.append(list_scores(run.calibrated_validation, "calibrated-validation", ("measured", "baseline")))
    if run.test is not None:
        sheets.append(list_scores(run.test.scores, "test", ("measured", "baseline")))
    return sheets


def write_tables(sheets: Sequence[Sheet], folder: Path, latex: bool = False) -> None:
    """Write each sheet as CSV, and as LaTeX where asked for; tables of an earlier run that are gone now go too."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for sheet in sheets:
        texts = {"csv": to_csv(sheet)} | ({"tex": to_latex(sheet)} if latex else {})
        for suffix, text in texts.items():
            path = folder / f"{sheet.name}.{suffix}"
            with atomic_write(path) as file:
                file.write(text.encode())
            written.add(path)
    for path in (folder / f"{name}.{suffix}" for name in NAMES for suffix in ("csv", "tex")):
        if path not in written:
            path.unlink(missing_ok=True)
