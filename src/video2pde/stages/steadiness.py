"""A named law's coefficients in parts of the training window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from video2pde.calibration import Calibration, Problem
from video2pde.calibration.parts import divide_frames, fit_parts, InParts
from video2pde.drift import Drift
from video2pde.errors import StageError
from video2pde.field import Field
from video2pde.settings import Settings
from video2pde.stages.calibration import as_calibrated, pose_problem
from video2pde.stages.structure import Contender, Discovery


def follow_coefficients(
    contenders: Sequence[Contender],
    calibrations: Mapping[str, Calibration],
    train: Field,
    drift: Drift,
    found: Discovery,
    settings: Settings,
) -> InParts | str:
    """Fit the named law to parts of the training window by themselves; a text says why that failed.

    It changes nothing in what is chosen or predicted.
    """
    named = next((contender for contender in contenders if contender.library in calibrations), None)
    if named is None:
        return "the law has not been calibrated: its coefficients cannot be followed through the recording"
    if named.flow is not None:
        return "coefficients are not followed through the recording beside a flow that varies in space"
    if named.maps:
        return "coefficients are not followed through the recording in parts where one of them is a map already"

    law = calibrations[named.library]
    named = as_calibrated(named, law)
    held = {k: law.estimates[term.name].value for k, term in enumerate(law.terms) if term.name in law.held}

    def pose(part: slice) -> Problem:
        moments = {name: moment[part] for name, moment in found.moments.items()}
        posed = replace(found, moments=moments)
        return pose_problem(named, train.frames(part), drift.frames(part), posed, settings).holding(held)

    guess = calibrations[named.library].fit.coefficients
    try:
        parts = divide_frames(len(train), settings.steadiness.parts)
        return fit_parts(named.library, parts, pose, list(guess), settings.calibration)
    except StageError as error:
        return str(error)
