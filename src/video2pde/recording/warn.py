"""Turn the checks' numbers into the warnings that matter, each with what to do."""

from __future__ import annotations

from video2pde.recording.checks import Checks

FEW_FRAMES = 50
SATURATED = 0.005
SIGNAL_SATURATED = 0.01
FLICKER = 0.005
SHAKE = 0.1  # grid cells
REPEATED = 0.01
HELD_BACK = 0.3


def collect_warnings(
    checks: Checks, frames: int, masked: bool, line: bool = False, left_out: str = ""
) -> tuple[str, ...]:
    """Return one line for each check that failed; of a ``line``, top and bottom are no border.

    ``left_out``: the end of the range, black or white, at which a saturated signal is masked; empty: none is.
    """
    found: list[str] = []
    if frames < FEW_FRAMES:
        found.append(f"only {frames} frames: a law needs more to be found and tested; {FEW_FRAMES} or more are advised")
    saturation = checks.saturation
    for name, share in (("black", saturation.black), ("white", saturation.white)):
        if share > SATURATED and name != left_out:
            found.append(
                f"saturated pixels: {share:.1%} are at full {name}, {saturation.where}; "
                "what happens there is not recorded, change the exposure or crop it away"
            )
    if saturation.signal > SIGNAL_SATURATED and max(saturation.black, saturation.white) <= SATURATED and not left_out:
        found.append(
            f"the signal is saturated at {saturation.signal_at:.3g} s: {saturation.signal:.1%} of its stronger half is "
            "at the end of the camera's range and not recorded; change the exposure or start later (recording.start)"
        )
    if checks.flicker.share > FLICKER:
        found.append(
            f"flicker: the background jumps by {checks.flicker.rms:.2g} (rms) from frame to frame, "
            f"{checks.flicker.share:.1%} of the signal; use steady light or a fixed exposure"
        )
    if checks.shake.rms > max(SHAKE, 4 * checks.shake.uncertainty):
        found.append(
            f"camera shake: the picture jitters by {checks.shake.rms:.2g} grid cells (rms); "
            "set recording.stabilise to shift, or fix the camera"
        )
    repeats = checks.repeats
    if repeats.count > REPEATED * frames:
        found.append(
            f"frozen or duplicated frames: {repeats.count} equal the one before, up to {repeats.longest} in a row, "
            f"first at frame {repeats.first}; the camera dropped frames or nothing moves"
        )
    if checks.held_back > HELD_BACK and repeats.count <= REPEATED * frames:
        found.append(
            f"compression holds small changes back: {checks.held_back:.0%} of the values that change repeat the frame "
            "before; the intervals are widened for that, a higher bit rate would make it needless"
        )
    sides = [side for side in checks.contact.sides if not (line and side in ("top", "bottom"))]
    if checks.contact.since is not None and not masked and (sides or not line):
        found.append(
            f"the signal touches the border ({', '.join(sides) or 'in places'}) "
            f"from {checks.contact.since:.3g} s on, {checks.contact.share:.0%} of the edge at most; "
            "crop wider, stop earlier or mask"
        )
    return tuple(found)
