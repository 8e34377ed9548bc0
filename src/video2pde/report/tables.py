"""Every table of a run, as sheets made from artefacts; they compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from video2pde.calibration import Calibration
from video2pde.calibration.front import FrontFit
from video2pde.discovery.identifiability import Identifiability
from video2pde.files import atomic_write
from video2pde.frap.recovery import Recovery
from video2pde.record import Run
from video2pde.recording.checks import Checks, SmoothingSweep
from video2pde.recording.warn import FLICKER, REPEATED, SATURATED, SHAKE, SIGNAL_SATURATED
from video2pde.refinement.result import check_agreement, Refinement
from video2pde.report.discovery_tables import tabulate_coefficients, tabulate_conditioning, tabulate_stability
from video2pde.report.document import Check
from video2pde.report.sheets import Entry, fill, Sheet, to_csv, to_latex
from video2pde.rollout.validate import Score, Validation
from video2pde.selection import Selection

DRIFTS = ("learned", "measured")
LIBRARY = Entry("library", "library")
TERM = Entry("term", "term")
RRMSE = Entry("rrmse", "rRMSE", percent=True, format=".3g")
NAMES = (
    "preprocessing",
    "checks",
    "smoothing",
    "conditioning",
    "coefficients",
    "stability",
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
)
"""Names of all tables; a run leaves those that it has numbers for."""


def collect_sheets(run: Run) -> list[Sheet]:
    """Make every table that the run has numbers for."""
    sheets: list[Sheet] = [list_recovery(run.recovery)] if isinstance(run.recovery, Recovery) else []
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
    if run.validation is not None:
        sheets += [list_modes(run.validation), list_scores(run.validation, "validation-scores")]
    if run.refinement:
        sheets.append(list_refined(run.refinement, run.laws))
    if run.comparison is not None:
        sheets.append(list_direct(run.comparison))
    if run.calibration:
        sheets += [
            list_calibrated(run.laws, run.calibrated_validation),
            list_budget(run.calibration),
            list_starts(run.calibration),
        ]
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


def list_preprocessing(checks: Checks) -> Sheet:
    """List shape and statistics after each step from film to field."""
    rows = [
        {
            "stage": s.name,
            "frames": s.shape[0],
            "rows": s.shape[1],
            "columns": s.shape[2],
            "minimum": s.minimum,
            "mean": s.mean,
            "maximum": s.maximum,
        }
        for s in checks.stages
    ]
    entries = (
        Entry("stage", "after"),
        Entry("frames", "frames"),
        Entry("rows", "rows"),
        Entry("columns", "columns"),
        Entry("minimum", "least"),
        Entry("mean", "mean"),
        Entry("maximum", "greatest"),
    )
    return fill("preprocessing", "What each step from film to field left.", entries, rows)


def list_checks(checks: Checks, frames: int) -> Sheet:
    """List the checks on the recording with their limits."""
    saturated = max(checks.saturation.black, checks.saturation.white)
    hidden = checks.saturation.signal
    shake = max(SHAKE, 4 * checks.shake.uncertainty)
    contact = checks.contact
    touch = "never" if contact.since is None else f"from {contact.since:.3g} s, {contact.share:.0%} of the edge"
    rows = [
        ("saturated pixels", f"{saturated:.2%}", f"{SATURATED:.1%}", saturated <= SATURATED),
        ("saturated signal, worst frame", f"{hidden:.2%}", f"{SIGNAL_SATURATED:.1%}", hidden <= SIGNAL_SATURATED),
        (
            "flicker, share of the signal",
            f"{checks.flicker.share:.2%}",
            f"{FLICKER:.1%}",
            checks.flicker.share <= FLICKER,
        ),
        ("camera shake, cells (rms)", f"{checks.shake.rms:.2g}", f"{shake:.2g}", checks.shake.rms <= shake),
        (
            "repeated frames",
            f"{checks.repeats.count}",
            f"{REPEATED * frames:.3g}",
            checks.repeats.count <= REPEATED * frames,
        ),
        ("signal inside the crop", f"{checks.retention.signal:.1%}", "", None),
        ("signal touches the border", touch, "never", contact.since is None),
        ("resize keeps the mean, change", f"{checks.resize_mean_change:.2g}", "", None),
    ]
    entries = (Entry("check", "check"), Entry("value", "found"), Entry("limit", "limit"), Entry("passed", "verdict"))
    keys = [entry.key for entry in entries]
    listed = [
        dict(zip(keys, (*r[:3], Check(r[3], "" if r[3] is not None else "for information")), strict=True)) for r in rows
    ]
    return fill("checks", "Checks on the recording.", entries, listed)


def list_smoothing(sweep: SmoothingSweep) -> Sheet:
    """List how much each smoothing width changes one frame."""
    entries = (
        Entry("sigma", "σ", "cells", "g"),
        Entry("rms", "rms change of u", format=".3g"),
        Entry("maximum", "largest change of u", format=".3g"),
    )
    rows = [{"sigma": r.sigma, "rms": r.rms, "maximum": r.maximum} for r in sweep.rows]
    return fill("smoothing", f"A Gaussian filter on the frame at {sweep.time:.4g} s.", entries, rows)


def list_conditioning(found: Identifiability) -> Sheet:
    """List condition number, active terms and verdict of each library."""
    entries = (
        LIBRARY,
        Entry("terms", "terms"),
        Entry("condition", "condition κ", format=".3g"),
        Entry("active", "active"),
        Entry("explained", "explained", percent=True, format=".4g"),
        Entry("contender", "goes on"),
        Entry("verdict", "verdict"),
    )
    return fill("conditioning", "Conditioning and active terms of each library.", entries, tabulate_conditioning(found))


def list_coefficients(found: Identifiability) -> Sheet:
    """List the coefficients of the sparse fits."""
    entries = (
        LIBRARY,
        TERM,
        Entry("coefficient", "coefficient"),
        Entry("standard_error", "standard error", format=".2g"),
        Entry("share", "share of the signal", percent=True, format=".3g"),
        Entry("unique_share", "lost without it", percent=True, format=".3g"),
        Entry("active", "active"),
    )
    return fill("coefficients", "Sparse weak-form fits.", entries, tabulate_coefficients(found))


def list_stability(found: Identifiability) -> Sheet:
    """List how often each term is selected over random centres, and its coefficient then."""
    entries = (
        LIBRARY,
        TERM,
        Entry("frequency", "selected in", percent=True, format=".3g"),
        Entry("mean", "mean"),
        Entry("std", "standard deviation", format=".2g"),
        Entry("runs", "runs"),
    )
    return fill("stability", "Selection over random sets of centres.", entries, tabulate_stability(found))


def list_modes(validation: Validation) -> Sheet:
    """List every library under learned and measured drift."""
    unit = validation.unit
    rows = []
    for row in validation.rows:
        line: dict[str, Any] = {
            "library": row.library,
            "preferred": row.preferred,
            "beats": _beats(row.best),
            "verdict": row.best.verdict,
        }
        for mode, score in zip(DRIFTS, (row.learned, row.measured), strict=True):
            line |= {f"{mode}_{key}": value for key, value in _errors(score).items()}
        rows.append(line)
    entries = [LIBRARY]
    entries += [Entry(f"{m}_rrmse", f"rRMSE, {m} drift", percent=True, format=".3g") for m in DRIFTS]
    entries += [Entry(f"{m}_front_rmse", f"front, {m} drift", unit, ".3g") for m in DRIFTS]
    entries += [Entry(f"{m}_centroid_rmse", f"centroid, {m} drift", unit, ".3g") for m in DRIFTS]
    entries += [Entry("preferred", "better drift"), Entry("beats", "beats persistence"), Entry("verdict", "verdict")]
    caption = "Rollouts over the validation window with learned and with measured drift; root-mean-square errors."
    return fill("validation", caption, entries, rows)


def list_scores(validation: Validation, name: str, modes: Sequence[str] = ("learned", "measured", "baseline")) -> Sheet:
    """List models and baselines from the smallest error to the largest."""
    scores = sorted((s for s in validation.scores if s.mode in modes), key=lambda s: s.full.rrmse)
    rows = [
        {
            "name": s.name,
            "drift": "–" if s.mode == "baseline" else s.mode,
            **_errors(s),
            "one_step_rrmse": s.one_step.rrmse,
            "skill": s.skill,
            "beats": _beats(s),
            "verdict": s.verdict,
        }
        for s in scores
    ]
    unit = validation.unit
    entries = (
        Entry("name", "model"),
        Entry("drift", "drift"),
        RRMSE,
        Entry("one_step_rrmse", "one step", percent=True, format=".3g"),
        Entry("skill", "skill"),
        Entry("front_mae", "front, mean", unit, ".3g"),
        Entry("front_rmse", "front, rms", unit, ".3g"),
        Entry("centroid_rmse", "centroid, rms", unit, ".3g"),
        Entry("beats", "beats persistence"),
        Entry("verdict", "verdict"),
    )
    window = f"{validation.times[0]:.4g} to {validation.times[-1]:.4g} s"
    return fill(
        name, f"Models and baselines over {window}, best first; skill is 1 − MSE/MSE of persistence.", entries, rows
    )


def list_refined(refined: Mapping[str, Refinement], calibrations: Mapping[str, Calibration]) -> Sheet:
    """List weak, refined and calibrated coefficients side by side."""
    rows = []
    for library, refinement in refined.items():
        calibration = calibrations.get(library)
        known = {} if calibration is None else calibration.estimates
        agreement = {a.term: a for a in check_agreement(refinement, known)}
        for term, value in refinement.coefficients.items():
            rows.append(
                {
                    "library": library,
                    "term": term,
                    "weak": (refinement.start or {}).get(term),
                    "refined": value,
                    "spread": (refinement.spread or {}).get(term),
                    "calibrated": None if calibration is None else calibration.estimates[term],
                    "inside": Check(agreement[term].inside, "yes" if agreement[term].inside else "no")
                    if term in agreement
                    else None,
                    "converged": refinement.converged,
                }
            )
    entries = (
        LIBRARY,
        TERM,
        Entry("weak", "weak fit"),
        Entry("refined", "inverse PINN"),
        Entry("spread", "over seeds ±", format=".2g"),
        Entry("calibrated", "calibrated"),
        Entry("inside", "in the interval"),
        Entry("converged", "converged"),
    )
    return fill("pinn", "Coefficients before and after the inverse PINN, beside the calibrated ones.", entries, rows)


def list_direct(comparison: Validation) -> Sheet:
    """List weak and refined coefficients on the validation window."""
    rows = [{"model": r.library, **_errors(r.measured), "skill": r.measured.skill} for r in comparison.rows]
    unit = comparison.unit
    entries = (
        Entry("model", "coefficients"),
        RRMSE,
        Entry("front_mae", "front, mean", unit, ".3g"),
        Entry("front_rmse", "front, rms", unit, ".3g"),
        Entry("centroid_rmse", "centroid, rms", unit, ".3g"),
        Entry("skill", "skill"),
    )
    return fill(
        "pinn-validation", "Weak and refined coefficients on the validation window, measured drift.", entries, rows
    )


def list_calibrated(calibrations: Mapping[str, Calibration], validation: Validation | None) -> Sheet:
    """List calibrated coefficients with their intervals and how they predict the validation window."""
    scores = {} if validation is None else {row.library: row.measured for row in validation.rows}
    rows = []
    for name, calibration in calibrations.items():
        boot = calibration.bootstrap
        for index, term in enumerate(calibration.terms):
            rows.append(
                {
                    "library": name,
                    "term": term.name,
                    "estimate": calibration.estimates[term.name],
                    "fit": float(calibration.fit.coefficients[index]),
                    "bias": None if boot is None else float(boot.bias[index]),
                    "std": None if boot is None or boot.converged < 2 else float(boot.draws[:, index].std(ddof=1)),
                    "replicates": "–" if boot is None else f"{boot.converged} of {boot.requested}",
                    "converged": calibration.fit.converged,
                    "starts_agree": calibration.starts_agree,
                    **(_errors(scores[name]) if name in scores else {}),
                }
            )
    unit = "" if validation is None else validation.unit
    entries = (
        LIBRARY,
        TERM,
        Entry("estimate", "estimate, 95 % interval"),
        Entry("fit", "fit"),
        Entry("bias", "bootstrap bias", format=".2g"),
        Entry("std", "bootstrap std", format=".2g"),
        Entry("replicates", "replicates"),
        Entry("converged", "converged"),
        Entry("starts_agree", "starts agree"),
        RRMSE,
        Entry("front_rmse", "front, rms", unit, ".3g"),
        Entry("centroid_rmse", "centroid, rms", unit, ".3g"),
    )
    return fill("calibration", "Calibrated coefficients; errors on the validation window.", entries, rows)


def list_budget(calibrations: Mapping[str, Calibration]) -> Sheet:
    """List the error budget of every coefficient: what was corrected, what stays uncertain, and each line's share."""
    rows = []
    for name, calibration in calibrations.items():
        shares = calibration.budget_shares
        for index, term in enumerate(calibration.terms):
            for line, share in zip(calibration.budget, shares[:, index], strict=True):
                rows.append(
                    {
                        "library": name,
                        "term": term.name,
                        "line": line.name,
                        "shift": float(line.shift[index]),
                        "uncertainty": float(line.uncertainty[index]),
                        "share": float(share),
                    }
                )
    entries = (
        LIBRARY,
        TERM,
        Entry("line", "line"),
        Entry("shift", "corrected by", format="+.3g"),
        Entry("uncertainty", "half-width left", format=".3g"),
        Entry("share", "share of the squared half-width", percent=True, format=".3g"),
    )
    return fill("budget", "Error budget: shifts add up, half-widths add in quadrature.", entries, rows)


def list_starts(calibrations: Mapping[str, Calibration]) -> Sheet:
    """List every start of the calibration and where it ended."""
    rows = [
        {
            "library": name,
            "start": attempt.source,
            "guess": ", ".join(f"{g:.4g}" for g in attempt.guess),
            "end": ", ".join(f"{c:.6g}" for c in attempt.coefficients),
            "mse": attempt.mse,
            "rollouts": attempt.rollouts,
            "converged": attempt.converged,
            "reason": attempt.reason,
        }
        for name, calibration in calibrations.items()
        for attempt in calibration.attempts
    ]
    entries = (
        LIBRARY,
        Entry("start", "start"),
        Entry("guess", "from"),
        Entry("end", "to"),
        Entry("mse", "MSE", format=".3g"),
        Entry("rollouts", "rollouts"),
        Entry("converged", "converged"),
        Entry("reason", "reason"),
    )
    return fill("calibration-starts", "Where each start of the calibration ended.", entries, rows)


def list_fronts(fronts: Mapping[str, Sequence[FrontFit]]) -> Sheet:
    """List the front-aware fits."""
    rows = [
        {
            "library": name,
            "start": fit.source,
            "positive": "positive" if fit.positive else "free",
            "coefficients": ", ".join(f"{term} {value:.4g}" for term, value in fit.coefficients.items()),
            "objective": fit.objective,
            "pixel": fit.pixel,
            "radius": fit.radius,
            "growth": fit.growth,
            "converged": Check(fit.converged, "yes" if fit.converged else "no"),
        }
        for name, fits in fronts.items()
        for fit in fits
    ]
    entries = (
        LIBRARY,
        Entry("start", "start"),
        Entry("positive", "Laplacian"),
        Entry("coefficients", "coefficients"),
        Entry("objective", "objective", format=".3g"),
        Entry("pixel", "pixel part", format=".3g"),
        Entry("radius", "radius part", format=".3g"),
        Entry("growth", "growth part", format=".3g"),
        Entry("converged", "converged"),
    )
    return fill("front", "Front-aware recalibration, with and without a positive Laplacian.", entries, rows)


def list_selection(selection: Selection) -> Sheet:
    """List the criteria, pass and fail."""
    rows = []
    for candidate in sorted(selection.candidates, key=lambda c: c.rrmse):
        line: dict[str, Any] = {
            "library": candidate.library,
            "terms": len(candidate.terms),
            "skill": candidate.skill,
            "beats_persistence": candidate.beats_persistence,
            "chosen": candidate.library == selection.chosen,
        }
        for criterion, key in zip(candidate.criteria, ("rrmse", "front", "centroid", "sign"), strict=True):
            line[key] = criterion.value
            line[f"{key}_passed"] = Check(criterion.passed)
        rows.append(line)
    entries = (
        LIBRARY,
        Entry("terms", "terms"),
        RRMSE,
        Entry("rrmse_passed", "error"),
        Entry("front", "front rms", format=".3g"),
        Entry("front_passed", "front"),
        Entry("centroid", "centroid rms", format=".3g"),
        Entry("centroid_passed", "centroid"),
        Entry("sign", "least diffusion", format=".3g"),
        Entry("sign_passed", "sign"),
        Entry("skill", "skill", format=".3f"),
        Entry("beats_persistence", "beats persistence"),
        Entry("chosen", "chosen"),
    )
    return fill("selection", "The four criteria on the validation window.", entries, rows)


def _beats(score: Score) -> Check:
    if score.model is None:
        return Check(None, "the reference")
    return Check(score.beats_persistence, "failed" if score.failure else "yes" if score.beats_persistence else "no")


def _errors(score: Score) -> dict[str, float]:
    full = score.full
    return {
        "rrmse": full.rrmse,
        "front_mae": full.front_mae,
        "front_rmse": full.front_rmse,
        "centroid_rmse": full.centroid_rmse,
    }


def list_recovery(recovery: Recovery) -> Sheet:
    """List what is told of a recovery after a bleach, and D in parts of the recording."""
    square = f"{recovery.unit}²/s"
    rows: list[dict[str, Any]] = [
        {"quantity": "D", "estimate": recovery.diffusion, "unit": square},
        {"quantity": "D, if everything were mobile", "estimate": recovery.all_mobile, "unit": square},
        {"quantity": "mobile fraction", "estimate": recovery.mobile, "unit": ""},
        {"quantity": "half time", "estimate": recovery.half_time, "unit": "s"},
        {"quantity": "bleaching rate", "estimate": recovery.bleaching, "unit": "1/s"},
    ]
    steadiness = recovery.steadiness
    for (start, end), estimate in zip(steadiness.spans, steadiness.estimates, strict=True):
        rows.append({"quantity": f"D from {start:.4g} to {end:.4g} s", "estimate": estimate, "unit": square})
    entries = (Entry("quantity", "quantity"), Entry("estimate", "value, 95 % interval"), Entry("unit", "unit"))
    return fill("recovery", "Recovery after the bleach", entries, rows)
