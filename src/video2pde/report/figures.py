"""Every figure of a run: what can be drawn, under which name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from matplotlib.figure import Figure

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
)
from video2pde.stages import FRONT

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
SETTLED = (
    "recording-",
    "smoothing",
    "snapshots",
    "correlations",
    "threshold-",
    "stability-",
    "validation-",
    "bootstrap-",
    "fit-",
    "search-",
)
"""How names of figures begin that stay as they are while the run goes on."""
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


def file_name(text: str) -> str:
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
            f"pinn-coefficients-{file_name(name)}",
            partial(refinement_figures.figure_coefficients, refinement, title),
        )
        yield f"pinn-losses-{file_name(name)}", partial(refinement_figures.figure_losses, refinement, title)
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
            yield f"bootstrap-{file_name(name)}", partial(calibration_figures.figure_pairs, calibration, run.unit)
            yield (
                f"bootstrap-convergence-{file_name(name)}",
                partial(calibration_figures.figure_convergence, calibration, run.unit),
            )
    if run.chosen is not None and run.chosen.maps and run.field is not None:
        yield "maps", partial(map_figures.draw_maps, run.chosen, run.field)
    final = run.calibrated_validation
    names = set() if final is None else {row.library for row in final.rows}
    for name in run.front:
        if final is not None and f"{name} {FRONT}" in names:
            yield f"front-{file_name(name)}", partial(calibration_figures.figure_front_fits, final, name)


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
