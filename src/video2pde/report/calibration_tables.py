"""Tables of coefficients: refined, calibrated, their error budget, starts, front-aware fits, recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from video2pde.calibration import Calibration
from video2pde.calibration.parts import InParts
from video2pde.frap.populations import Populations, units_of
from video2pde.frap.recovery import Recovery
from video2pde.front import FrontFit
from video2pde.refinement.result import check_agreement, Refinement
from video2pde.report.document import Check
from video2pde.report.rollout_tables import list_errors
from video2pde.report.sheets import Entry, fill, LIBRARY, RRMSE, Sheet, TERM
from video2pde.rollout.validate import Validation
from video2pde.terms.words import coefficient_units


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
                    **(list_errors(scores[name]) if name in scores else {}),
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
        Entry("positive", "diffusion"),
        Entry("coefficients", "coefficients"),
        Entry("objective", "objective", format=".3g"),
        Entry("pixel", "pixel part", format=".3g"),
        Entry("radius", "radius part", format=".3g"),
        Entry("growth", "growth part", format=".3g"),
        Entry("converged", "converged"),
    )
    return fill("front", "Front-aware recalibration, with diffusion kept positive, and free.", entries, rows)


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
    if np.isfinite(recovery.patterned.value):
        rows.append({"quantity": "D, with any pattern standing still", "estimate": recovery.patterned, "unit": square})
    steadiness = recovery.steadiness
    for (start, end), estimate in zip(steadiness.spans, steadiness.estimates, strict=True):
        rows.append({"quantity": f"D from {start:.4g} to {end:.4g} s", "estimate": estimate, "unit": square})
    entries = (Entry("quantity", "quantity"), Entry("estimate", "value, 95 % interval"), Entry("unit", "unit"))
    return fill("recovery", "Recovery after the bleach", entries, rows)


def list_populations(recovery: Recovery, found: Populations) -> Sheet:
    """List the parameters of every law of populations, and what it leaves in held-out frames."""
    rows = [
        {
            "law": law.name,
            "parameter": name,
            "estimate": estimate,
            "unit": units_of(name, recovery.unit),
            "held_out": law.held_out,
            "verdict": "out" if law.out else law.degenerate or ("chosen" if law.name == found.chosen else "allowed"),
        }
        for law in found.laws
        for name, estimate in law.estimates.items()
    ]
    entries = (
        Entry("law", "law"),
        Entry("parameter", "parameter"),
        Entry("estimate", "value, 95 % interval"),
        Entry("unit", "unit"),
        Entry("held_out", "left in held-out frames"),
        Entry("verdict", "verdict"),
    )
    return fill("populations", "Laws of one and of two populations", entries, rows)


def list_steadiness(found: InParts, unit: str) -> Sheet:
    """List a named law's coefficients in parts of the training window."""
    rows = [
        {
            "term": term.name,
            "from": start,
            "to": end,
            "estimate": estimate,
            "unit": coefficient_units(term, unit),
            "chance": found.chance[term.name],
        }
        for term in found.terms
        for (start, end), estimate in zip(found.spans, found.estimates[term.name], strict=True)
    ]
    entries = (
        TERM,
        Entry("from", "from (s)", format=".4g"),
        Entry("to", "to (s)", format=".4g"),
        Entry("estimate", "value, 95 % interval"),
        Entry("unit", "unit"),
        Entry("chance", "chance of parts that differ as much", format=".2g"),
    )
    return fill("steadiness", "Coefficients in parts of the training window", entries, rows)
