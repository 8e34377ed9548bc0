"""The result of a run: what was found, in the form that scripts rely on (``result.json``), and in words."""

from __future__ import annotations

import math
import platform
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from video2pde import __version__
from video2pde.calibration import Calibration, find_derived, find_directions
from video2pde.calibration.parts import InParts
from video2pde.discovery.identifiability import LibraryDiagnosis
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.files import plain_json
from video2pde.fit.describe import describe_fit
from video2pde.fit.noise import relative_noise
from video2pde.flow.words import describe_flow, summarise_flow
from video2pde.frap.populations import Populations
from video2pde.frap.recovery import Recovery
from video2pde.maps.words import describe_map, summarise_map
from video2pde.record import Run
from video2pde.rollout.validate import Validation
from video2pde.selection import Selection
from video2pde.stages import Discovery
from video2pde.terms.words import coefficient_units, describe

SCHEMA = 2
"""2: verdict ``approximation``, and ``fit``; intervals hold the lack of fit."""
VERDICTS = {
    "law": "law found",
    "approximation": "an approximation, not the law",
    "ambiguous": "ambiguous",
    "no_law": "no law",
}
FAILS, HARDLY_TESTED = "it fails on the held-out frames", "the held-out frames hardly test it"
STEADY = 0.2
"""Range of the drift, relative to its mean speed, up to which its mean alone is worth telling."""
PACKAGES = ("numpy", "scipy", "numba", "jax", "sympy", "av")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def describe_run(run: Run) -> dict[str, Any]:
    """Return ``result.json`` of a finished run; numbers that do not exist are null."""
    done = finished(run)
    plain: dict[str, Any] = plain_json(
        {
            "schema": SCHEMA,
            "verdict": done.selection.verdict,
            "reason": done.selection.reason,
            "recording": _recording(done.field),
            "drift": {"mean": list(done.drift.mean), "background": float(done.drift.background.mean())},
            "selected": None if run.chosen is None else describe_law(run.chosen, done.field.grid),
            "alternatives": [
                describe_law(run.laws[name], done.field.grid)
                for name in done.selection.alternatives
                if name in run.calibration
            ],
            "fit": None if run.chosen_fit is None else describe_fit(run.chosen_fit),
            "front_best": done.selection.front_best,
            "selection": _selection(done.selection),
            "libraries": {name: _library(found) for name, found in done.discovery.identifiability.libraries.items()},
            "constraints": _constraints(run, done.discovery),
            "search": None if done.discovery.search is None else done.discovery.search.to_json(),
            "validation": _scores(done.validation),
            "calibrated_validation": {} if run.calibrated_validation is None else _scores(run.calibrated_validation),
            "test": {**_test(done.scores, done.selection.chosen), "noise": held_out_noise(run)},
            "frap": _recovery(run.recovery) if isinstance(run.recovery, Recovery) else None,
            "steadiness": _steadiness(run.steadiness) if isinstance(run.steadiness, InParts) else None,
            "warnings": list(run.warnings),
            "seed": run.settings.run.seed,
            "device": run.settings.run.device,
            "versions": {
                "video2pde": __version__,
                "python": platform.python_version(),
                **package_versions(),
            },
            "timings_s": dict(run.timings),
        }
    )
    return plain


def _constraints(run: Run, discovery: Discovery) -> dict[str, Any] | None:
    """Return what was known of the law beforehand, and what the film says of coefficients that were held."""
    known = run.settings.constraints
    if not known.any:
        return None
    held = {each.term: {"value": each.value, "free": each.free, "error": each.error} for each in discovery.held}
    return {**known.model_dump(mode="json"), "held": held}


def _recovery(recovery: Recovery) -> dict[str, Any]:
    steadiness, found = recovery.steadiness, recovery.populations
    return {
        "diffusion": {**recovery.diffusion.to_json(), "unit": f"{recovery.unit}²/s"},
        "diffusion_all_mobile": recovery.all_mobile.to_json(),
        "diffusion_with_pattern": recovery.patterned.to_json(),
        "mobile_fraction": recovery.mobile.to_json(),
        "half_time_s": recovery.half_time.to_json(),
        "bleaching_rate": recovery.bleaching.to_json(),
        "edges": recovery.edges,
        "reference": recovery.reference,
        "parts": [
            {"from_s": start, "to_s": end, "diffusion": estimate.to_json()}
            for (start, end), estimate in zip(steadiness.spans, steadiness.estimates, strict=True)
        ],
        "populations": found.to_json() if isinstance(found, Populations) else found,
        "steady": steadiness.steady,
        "steady_chance": steadiness.chance,
        "curve": {
            "times_s": recovery.times.tolist(),
            "measured": recovery.measured.tolist(),
            "fitted": recovery.fitted.tolist(),
        },
        "notes": list(recovery.notes),
    }


def _steadiness(found: InParts) -> dict[str, Any]:
    return {
        "parts": [
            {"from_s": start, "to_s": end, "terms": {name: each[k].to_json() for name, each in found.estimates.items()}}
            for k, (start, end) in enumerate(found.spans)
        ],
        "steady": {name: name not in found.unsteady for name in found.chance},
        "chance": dict(found.chance),
    }


class Finished(NamedTuple):
    """What a run must have to be called finished."""

    field: Field
    drift: Drift
    discovery: Discovery
    validation: Validation
    selection: Selection
    scores: Validation


def finished(run: Run) -> Finished:
    """Return the artefacts that a result is made of; refuse a run that has not come so far."""
    if (
        run.field is None
        or run.discovery is None
        or run.validation is None
        or run.selection is None
        or run.test is None
    ):
        raise InputError("the run is not finished: its test window has not been predicted yet; finish it first")
    return Finished(run.field, run.test.drift, run.discovery, run.validation, run.selection, run.test.scores)


def held_out_noise(run: Run) -> float | None:
    """Return the relative error that the camera's noise alone makes on the test window; None before it was read."""
    if run.test is None or run.field is None or run.windows is None:
        return None
    return relative_noise(run.field.values[run.windows.test], run.field.mask)


def _recording(field: Field) -> dict[str, Any]:
    return {
        "path": field.provenance.path,
        "sha256": field.provenance.sha256,
        "frames": len(field),
        "duration_s": field.duration,
        "grid": list(field.grid.shape),
        "dx": field.grid.dx,
        "dy": field.grid.dy,
        "dt": field.dt,
        "unit": field.grid.unit,
    }


def _selection(selection: Selection) -> dict[str, Any]:
    return {
        "digest": selection.digest,
        "tolerance": selection.tolerance,
        "candidates": [
            {
                "library": c.library,
                "rrmse": c.rrmse,
                "front_rmse": c.front_rmse,
                "centroid_rmse": c.centroid_rmse,
                "skill": c.skill,
                "criteria": {k.name: {"value": k.value, "limit": k.limit, "passed": k.passed} for k in c.criteria},
            }
            for c in selection.candidates
        ],
    }


def _library(found: LibraryDiagnosis) -> dict[str, Any]:
    return {
        "terms": list(found.terms),
        "condition": found.condition,
        "active": list(found.fit.active),
        "coefficients": dict(found.fit.coefficients),
        "standard_errors": dict(found.fit.errors),
        "explained": found.fit.explained,
        "selection_frequency": dict(found.stability.frequency),
        "contender": found.contender,
        "verdict": found.verdict,
    }


def _test(test: Validation, chosen: str | None) -> dict[str, Any]:
    best = next((row.measured for row in test.rows if row.library == chosen), None)
    return {
        "rrmse": None if best is None else best.full.rrmse,
        "front_rmse": None if best is None or not best.full.has_front else best.full.front_rmse,
        "centroid_rmse": None if best is None else best.full.centroid_rmse,
        "one_step_rrmse": None if best is None else best.one_step.rrmse,
        "skill": None if best is None else best.skill,
        "skill_in_blocks": None if best is None else best.coarse_skill,
        "baselines": {score.name: score.full.rrmse for score in test.baselines},
        "alternatives": {row.library: row.measured.full.rrmse for row in test.rows if row.library != chosen},
    }


def headline(run: Run) -> str:
    """Say in one line what was found."""
    if run.selection is None:
        return "nothing has been chosen yet"
    verdict = VERDICTS[run.selection.verdict]
    return verdict if run.chosen is None else f"{verdict}: {run.chosen.model.equation.text}"


def summarise(run: Run) -> str:
    """Say what was found, for the terminal: equation with intervals, verdict, errors, warnings."""
    if run.selection is None:
        return f"an unfinished run; done: {', '.join(run.timings) or 'nothing'}"
    lines = []
    chosen, field = run.chosen, run.field
    if chosen is not None and field is not None:
        for index, name in enumerate(run.selection.tied or (chosen.library,)):
            lines += [f"or, as good ({name}):"] if index else []
            lines += [*_law_lines(run.laws[name], field), ""]
        lines.pop()
    if isinstance(run.steadiness, InParts) and field is not None:
        lines += ["in parts of the training window:", *_part_lines(run.steadiness, field.grid.unit), ""]
    if isinstance(run.recovery, Recovery):
        lines += ["recovery after the bleach:", *run.recovery.summary(), ""]
    doubt = held_out_doubt(run)
    verdict = VERDICTS[run.selection.verdict] + (f", but {doubt}" if doubt else "")
    lines.append(f"verdict: {verdict}: {run.selection.reason}")
    held_out = () if run.test is None else run.test.scores.baselines
    for score in (*(() if run.test_score is None else (run.test_score,)), *held_out):
        lines.append(f"  held-out error {score.full.rrmse:8.3%}  {score.name}")
    noise = held_out_noise(run)
    if noise is not None:
        lines.append(f"  camera's noise {noise:8.3%}  in these errors")
    lines += [f"warning: {text}" for text in run.warnings]
    return "\n".join(lines)


def held_out_doubt(run: Run) -> str:
    """Say where the held-out frames do not bear a law out; an empty text where they do, or where there is no law.

    Where a picture that stands still is as good pixel by pixel, but not in averages over blocks, they hardly test it.
    """
    score = run.test_score
    if run.selection is None or run.selection.verdict != "law" or score is None or score.beats_persistence:
        return ""
    return HARDLY_TESTED if score.coarse_skill > 0 else FAILS


def _law_lines(law: Calibration, field: Field) -> list[str]:
    terms = [
        f"  {describe(term).text:<12} {law.estimates[term.name]} {coefficient_units(term, field.grid.unit)}"
        + (f" ({law.held[term.name]})" if term.name in law.held else "")
        for term in law.terms
    ]
    motion = summarise_motion(law, field)
    drift = f"  drift        {motion.text}"
    if not motion.negligible:
        scales = ", ".join(f"{axis} {estimate}" for axis, estimate in law.drift_scale.items())
        drift += f"; over the measured one: {scales}"
    lines = [law.model.equation.text, "", *terms, drift]
    directions = find_directions(law)
    if directions is not None:
        lines.append(f"  directions   {directions.words(field.grid.unit)}")
    lines += [f"  {number.words()}" for number in find_derived(law)]
    if law.model.flow is not None:
        lines.append(f"  flow         {describe_flow(law.model.flow, field.grid)}")
    means = {term.name: law.estimates[term.name].value for term in law.terms}
    return [*lines, *(f"  map          {describe_map(each, means[each.term], field.grid)}" for each in law.maps)]


def _part_lines(found: InParts, unit: str) -> list[str]:
    return [
        f"  {describe(term).text}, {start:.4g} to {end:.4g} s: {estimate} {coefficient_units(term, unit)}"
        for term in found.terms
        for (start, end), estimate in zip(found.spans, found.estimates[term.name], strict=True)
    ]


@dataclass(frozen=True)
class Motion:
    """Sum up a law's drift v(t) over the training window.

    ``mean``, ``low``, ``high``: (v_x, v_y) in ``unit`` per second. ``negligible``: it never carries the picture as far
    as one grid cell.
    """

    mean: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]
    unit: str
    negligible: bool

    @property
    def text(self) -> str:
        """Say how fast the drift is, and between what it varies where it does."""
        if self.negligible:
            return "no drift to speak of (less than one grid cell over the training window)"
        speed = math.hypot(*self.mean)
        varying = [
            f"v{axis} from {low:.3g} to {high:.3g}"
            for axis, low, high in zip("xy", self.low, self.high, strict=True)
            if high - low > STEADY * speed
        ]
        between = f" on average, {', '.join(varying)}" if varying else ""
        return f"v = ({self.mean[0]:.3g}, {self.mean[1]:.3g}) {self.unit}/s{between}"


def summarise_motion(law: Calibration, field: Field) -> Motion:
    """Sum up the drift that goes with a calibrated law, over the training window of ``field``."""
    v = law.fit.velocity
    path = np.cumsum(v * np.gradient(field.times[: len(v)])[:, None], axis=0)
    cells = np.ptp(path, axis=0) / (field.grid.dx, field.grid.dy)
    mean, low, high = ((float(x), float(y)) for x, y in (v.mean(axis=0), v.min(axis=0), v.max(axis=0)))
    return Motion(mean, low, high, field.grid.unit, bool(cells.max() < 1))


def describe_law(calibration: Calibration, grid: Grid) -> dict[str, Any]:
    """Return one law as ``result.json`` holds it."""
    unit, flow, directions = grid.unit, calibration.model.flow, find_directions(calibration)
    units = {term.name: coefficient_units(term, unit) for term in calibration.terms}
    return {
        "library": calibration.library,
        "drift_scale": {axis: estimate.to_json() for axis, estimate in calibration.drift_scale.items()},
        "terms": {
            term.name: {
                **calibration.estimates[term.name].to_json(),
                "unit": units[term.name],
                **({"held": calibration.held[term.name]} if term.name in calibration.held else {}),
            }
            for term in calibration.terms
        },
        "equation": {"text": calibration.model.equation.text, "latex": calibration.model.equation.latex},
        "flow": None if flow is None else summarise_flow(flow, grid),
        "directions": None if directions is None else directions.to_json(),
        "maps": {
            each.term: summarise_map(each, calibration.estimates[each.term], units[each.term], grid)
            for each in calibration.maps
        },
        "derived": [number.to_json() for number in find_derived(calibration)],
        "starts_agree": calibration.starts_agree,
        "replicates": None
        if calibration.bootstrap is None
        else {"converged": calibration.bootstrap.converged, "requested": calibration.bootstrap.requested},
    }


def _scores(validation: Validation) -> dict[str, Any]:
    return {
        "baselines": {score.name: score.full.rrmse for score in validation.baselines},
        "libraries": {
            row.library: {
                mode: {
                    "rrmse": score.full.rrmse,
                    "one_step_rrmse": score.one_step.rrmse,
                    "front_mae": score.full.front_mae,
                    "front_rmse": score.full.front_rmse,
                    "centroid_rmse": score.full.centroid_rmse,
                    "skill": score.skill,
                    "failure": score.failure,
                }
                for mode, score in (("learned", row.learned), ("measured", row.measured))
            }
            for row in validation.rows
        },
    }
