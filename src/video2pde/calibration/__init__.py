"""Rollout calibration: fit, bootstrap, error budget. ``docs/calibration.md`` is the way in."""

from video2pde.calibration.bootstrap import Bootstrap
from video2pde.calibration.budget import Correction
from video2pde.calibration.calibrate import calibrate, Calibration, MISFIT
from video2pde.calibration.derived import Derived, find_derived
from video2pde.calibration.directions import Directions, find_directions
from video2pde.calibration.fit import Fit
from video2pde.calibration.problem import make_problem, Problem

__all__ = [
    "MISFIT",
    "Bootstrap",
    "Calibration",
    "Correction",
    "Derived",
    "Directions",
    "Fit",
    "Problem",
    "calibrate",
    "find_derived",
    "find_directions",
    "make_problem",
]
