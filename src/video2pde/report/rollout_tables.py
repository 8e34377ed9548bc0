"""Tables of rollouts and of the choice: models and baselines, learned and measured drift, criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from video2pde.report.document import Check
from video2pde.report.sheets import Entry, fill, LIBRARY, RRMSE, Sheet
from video2pde.rollout.validate import Score, Validation
from video2pde.selection import Selection

DRIFTS = ("learned", "measured")


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
            line |= {f"{mode}_{key}": value for key, value in list_errors(score).items()}
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
            **list_errors(s),
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


def list_direct(comparison: Validation) -> Sheet:
    """List weak and refined coefficients on the validation window."""
    rows = [{"model": r.library, **list_errors(r.measured), "skill": r.measured.skill} for r in comparison.rows]
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


def list_errors(score: Score) -> dict[str, float]:
    """List the errors of a rollout that tables show."""
    full = score.full
    return {
        "rrmse": full.rrmse,
        "front_mae": full.front_mae,
        "front_rmse": full.front_rmse,
        "centroid_rmse": full.centroid_rmse,
    }
