"""Test of fit: every calibrated law against what noise leaves, on the training window."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from video2pde.calibration import Calibration
from video2pde.drift import Drift
from video2pde.errors import InputError
from video2pde.field import Field, Windows
from video2pde.fit import FitTest, test_laws
from video2pde.settings import Settings
from video2pde.stages.calibration import without_drift
from video2pde.stages.structure import Discovery

FEWEST_FRAMES = 20
"""Frames of the training window that a test of fit needs: differences over several frames must show the noise."""


def test_calibrated(
    train: Field,
    drift: Drift,
    windows: Windows,
    found: Discovery,
    calibrations: Mapping[str, Calibration],
    settings: Settings,
) -> dict[str, FitTest]:
    """Test every calibrated law on the training window; no later frame is looked at.

    Empty where the recording is too small for a lattice of test functions, or its frames are few or uneven in time, so
    that their noise cannot be measured by differences; the run's warnings say so.
    """
    if len(train) < FEWEST_FRAMES or not train.uniform:
        return {}
    settings = settings if drift.moving else without_drift(settings)
    with suppress(InputError):
        return test_laws(train, drift, found.moments, calibrations, settings, windows.frames)
    return {}


test_calibrated.__test__ = False  # type: ignore[attr-defined]
