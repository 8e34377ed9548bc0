"""The stages between field and report: plain functions from artefacts and settings to an artefact.

``pipeline.py`` calls them in order, each with the sections of the settings that it needs. None of them sees the test
window but :func:`evaluate`; what comes before is given ``known``, the frames of training and validation alone.
"""

from video2pde.stages.calibration import calibrate_contender, calibrate_contenders
from video2pde.stages.drift import measure_drift
from video2pde.stages.evaluation import choose, evaluate, Evaluation
from video2pde.stages.front import final_models, FRONT, recalibrate_front, recalibrate_fronts
from video2pde.stages.refinement import refine_contenders
from video2pde.stages.structure import Contender, discover_structure, Discovery
from video2pde.stages.validation import (
    compare_refined,
    forecast,
    REFINED,
    validate_models,
    WEAK,
    window_velocities,
)
from video2pde.stages.windows import choose_windows

__all__ = [
    "FRONT",
    "REFINED",
    "WEAK",
    "Contender",
    "Discovery",
    "Evaluation",
    "calibrate_contender",
    "calibrate_contenders",
    "choose",
    "choose_windows",
    "compare_refined",
    "discover_structure",
    "evaluate",
    "final_models",
    "forecast",
    "measure_drift",
    "recalibrate_front",
    "recalibrate_fronts",
    "refine_contenders",
    "validate_models",
    "window_velocities",
]
