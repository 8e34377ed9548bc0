"""Every figure of a run, as files for a paper and as smaller pictures for the page."""

from __future__ import annotations

import gc
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from video2pde.files import atomic_path
from video2pde.frap.recovery import Recovery
from video2pde.record import Run
from video2pde.report import (
    calibration_figures,
    discovery_figures,
    fit_figures,
    flow_figures,
    map_figures,
    recording_figures,
    recovery_figures,
    refinement_figures,
    rollout_figures,
    style,
)
from video2pde.stages import FRONT

FORMATS = ("png", "pdf")
PAGE = (
    "recording-panels",
    "snapshots",
    "smoothing",
    "recording-background",
    "drift",
    "flow",
    "maps",
    "validation-snapshots",
    "test-snapshots",
    "recovery",
    "fit-maps",
    "fit-consistency",
)
"""Figures that the page shows as pictures; the others it draws itself."""
INDEX = "figures.txt"
Drawing = tuple[str, Callable[[], Figure]]


def collect_figures(run: Run) -> list[Drawing]:
    """List what can be drawn of this run: (name, function that draws it)."""
    return [
        *_of_recording(run),
        *_of_structure(run),
        *_of_validation(run),
        *_of_refinement(run),
        *_of_calibration(run),
        *_of_fit(run),
        *_of_test(run),
        *_of_recovery(run),
    ]


class FigureFiles:
    """Write a run's figures: those of the page first, then the other PNGs, and PDFs, if asked for, last; none twice."""

    def __init__(self, folder: Path, pdf: bool = False) -> None:
        self._folder, self._pdf = folder, pdf
        # a figure holds its pictures: it is kept for its PDF alone
        self._drawn: dict[str, Figure | None] = {}
        self._pictures: dict[str, bytes] = {}

    def draw_page(self, run: Run) -> Mapping[str, bytes]:
        """Write the page's figures as PNG, those that are not there yet, and return small ones for it, by name."""
        self._draw([drawing for drawing in collect_figures(run) if drawing[0] in PAGE])
        return self._pictures

    def draw_rest(self, run: Run) -> None:
        """Write every other figure as PNG, then all as PDF, if asked for; remove those that only an earlier run had."""
        drawings = collect_figures(run)
        self._draw(drawings)
        for name, figure in self._drawn.items():
            style.save_pdf(figure, self._folder / name)
        self._drawn.clear()
        _forget_old(self._folder, [name for name, _ in drawings])

    def _draw(self, drawings: Sequence[Drawing]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # drawing makes and drops very many small objects; what was there before need not be searched each time
        gc.freeze()
        for name, draw in drawings:
            if name not in self._drawn:
                with style.apply():
                    figure = draw()
                    picture = style.save_png(figure, self._folder / name)
                self._drawn[name] = figure if self._pdf else None
                if name in PAGE:
                    self._pictures[name] = _halve(picture)
        gc.unfreeze()


def _halve(picture: Image.Image) -> bytes:
    """Return a picture at half its size, as PNG."""
    data = io.BytesIO()
    picture.reduce(2).save(data, "png")
    return data.getvalue()


def _forget_old(folder: Path, written: list[str]) -> None:
    """Remove the figures listed by an earlier run that were not drawn again, and list what there is now."""
    index = folder / INDEX
    known = index.read_text(encoding="utf-8").split() if index.is_file() else []
    for name in known:
        if name not in written and name == _file_name(name):
            for suffix in FORMATS:
                (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    with atomic_path(index) as temporary:
        temporary.write_text("\n".join(written) + "\n", encoding="utf-8")


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).lstrip(".")


def _of_recording(run: Run) -> Iterator[Drawing]:
    recording = run.recording
    if recording is None:
        return
    if recording.checks is not None and recording.samples:
        yield "recording-panels", partial(recording_figures.draw_panels, recording)
        yield "recording-background", partial(recording_figures.draw_background, recording)
        yield "smoothing", partial(recording_figures.draw_smoothing, recording)
        yield "smoothing-midline", partial(recording_figures.draw_midline, recording)
    yield "snapshots", partial(recording_figures.draw_snapshots, recording)
    if run.longest_drift is not None:
        yield "drift", partial(discovery_figures.draw_drift, run.longest_drift, recording.field)


def _of_structure(run: Run) -> Iterator[Drawing]:
    if run.discovery is None:
        return
    found, on = run.discovery.identifiability, run.settings.regression.threshold_on
    flow = None if run.chosen is None else run.chosen.model.flow
    if flow is not None and run.discovery.flow is not None and run.field is not None and run.drift is not None:
        yield "flow", partial(flow_figures.draw_flow, flow, run.discovery.flow, run.field, run.drift)
    if run.discovery.search is not None:
        yield "search-front", partial(discovery_figures.draw_front, run.discovery.search)
    yield "correlations", partial(discovery_figures.draw_correlations, found)
    yield "threshold-counts", partial(discovery_figures.draw_threshold_counts, found, threshold_on=on)
    yield "threshold-paths", partial(discovery_figures.draw_coefficient_paths, found, threshold_on=on)
    yield "stability-frequencies", partial(discovery_figures.draw_selection_frequencies, found)
    yield "stability-coefficients", partial(discovery_figures.draw_coefficient_stability, found, unit=run.unit)


def _of_validation(run: Run) -> Iterator[Drawing]:
    validation = run.validation
    if validation is None:
        return
    yield "validation-errors", partial(rollout_figures.figure_errors, validation)
    yield "validation-over-time", partial(rollout_figures.figure_errors_over_time, validation)
    yield "validation-snapshots", partial(rollout_figures.figure_snapshots, validation)
    yield "validation-fronts", partial(rollout_figures.figure_fronts, validation)


def _of_refinement(run: Run) -> Iterator[Drawing]:
    for name, refinement in run.refinement.items():
        verdict = "converged" if refinement.converged else "not converged"
        title = f"{name}: {verdict}"
        yield (
            f"pinn-coefficients-{_file_name(name)}",
            partial(refinement_figures.figure_coefficients, refinement, title),
        )
        yield f"pinn-losses-{_file_name(name)}", partial(refinement_figures.figure_losses, refinement, title)
    if run.comparison is not None:
        metrics = {row.library: row.measured.full for row in run.comparison.rows}
        yield (
            "pinn-comparison",
            partial(refinement_figures.figure_comparison, run.comparison.times, metrics, run.comparison.unit),
        )


def _of_calibration(run: Run) -> Iterator[Drawing]:
    if not run.calibration:
        return
    weak = {}
    if run.discovery is not None:
        weak = {c.library: c.coefficients for c in run.discovery.contenders}
    yield "coefficients", partial(calibration_figures.figure_intervals, run.laws, run.refinement, weak, run.unit)
    for name, calibration in run.calibration.items():
        if calibration.bootstrap is not None and calibration.bootstrap.converged >= 3:
            yield f"bootstrap-{_file_name(name)}", partial(calibration_figures.figure_pairs, calibration, run.unit)
            yield (
                f"bootstrap-convergence-{_file_name(name)}",
                partial(calibration_figures.figure_convergence, calibration, run.unit),
            )
    if run.chosen is not None and run.chosen.maps and run.field is not None:
        yield "maps", partial(map_figures.draw_maps, run.chosen, run.field)
    final = run.calibrated_validation
    names = set() if final is None else {row.library for row in final.rows}
    for name in run.front:
        if final is not None and f"{name} {FRONT}" in names:
            yield f"front-{_file_name(name)}", partial(calibration_figures.figure_front_fits, final, name)


def _of_fit(run: Run) -> Iterator[Drawing]:
    test, law = run.chosen_fit, run.chosen
    if test is None or law is None or run.field is None or run.windows is None:
        return
    if test.maps is not None:
        yield "fit-maps", partial(fit_figures.draw_maps, test.maps, run.field.frames(run.windows.train))
    if test.consistency:
        yield "fit-consistency", partial(fit_figures.draw_consistency, test, law, run.unit)


def _of_recovery(run: Run) -> Iterator[Drawing]:
    if isinstance(run.recovery, Recovery) and run.field is not None:
        yield "recovery", partial(recovery_figures.figure_recovery, run.recovery, run.field)


def _of_test(run: Run) -> Iterator[Drawing]:
    if run.test is None:
        return
    test, score = run.test.scores, run.test_score
    scores = [row.measured for row in test.rows]
    yield "test-over-time", partial(rollout_figures.figure_errors_over_time, test, scores)
    if test.rows:
        yield "test-errors", partial(rollout_figures.figure_errors, test)
    if score is not None:
        yield "test-snapshots", partial(rollout_figures.figure_snapshots, test, score)
        yield "test-fronts", partial(rollout_figures.figure_fronts, test, score)
