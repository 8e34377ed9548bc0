"""Rollout calibration: fit, bootstrap, error budget. ``docs/calibration.md`` is the way in."""

from video2pde.calibration.bootstrap import Bootstrap
from video2pde.calibration.budget import Correction
from video2pde.calibration.calibrate import calibrate, Calibration, MISFIT
from video2pde.calibration.fit import Fit
from video2pde.calibration.problem import make_problem, Problem

__all__ = ["MISFIT", "Bootstrap", "Calibration", "Correction", "Fit", "Problem", "calibrate", "make_problem"]
