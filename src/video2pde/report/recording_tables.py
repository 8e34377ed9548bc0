"""Tables of the recording: what each step left, checks with their limits, smoothing."""

from __future__ import annotations

from video2pde.recording.checks import Checks, SmoothingSweep
from video2pde.recording.warn import FLICKER, REPEATED, SATURATED, SHAKE, SIGNAL_SATURATED
from video2pde.report.document import Check
from video2pde.report.sheets import Entry, fill, Sheet


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
