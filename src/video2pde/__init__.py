"""Turn a recording of something that spreads into the equation that it follows.

The names below are the public API. Each is loaded on first use, so that ``import video2pde`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from video2pde.lazy import load_on_use

if TYPE_CHECKING:
    from video2pde.api import example_field as example_field
    from video2pde.api import example_run as example_run
    from video2pde.api import run as run
    from video2pde.calibration import calibrate as calibrate
    from video2pde.calibration import make_problem as make_problem
    from video2pde.discovery import diagnose as diagnose
    from video2pde.discovery import discover as discover
    from video2pde.discovery import weak_system as weak_system
    from video2pde.drift import Drift as Drift
    from video2pde.drift import estimate_drift as estimate_drift
    from video2pde.errors import InputError as InputError
    from video2pde.errors import StageError as StageError
    from video2pde.errors import Video2pdeError as Video2pdeError
    from video2pde.estimate import Estimate as Estimate
    from video2pde.field import Field as Field
    from video2pde.field import Grid as Grid
    from video2pde.field import Windows as Windows
    from video2pde.record import load_run as load_run
    from video2pde.record import Run as Run
    from video2pde.recording import preview as preview
    from video2pde.recording import read_field as read_field
    from video2pde.recording import read_recording as read_recording
    from video2pde.refinement.refine import refine as refine
    from video2pde.rollout.model import Model as Model
    from video2pde.rollout.simulate import simulate as simulate
    from video2pde.rollout.validate import validate as validate
    from video2pde.selection import select as select
    from video2pde.settings import load_settings as load_settings
    from video2pde.settings import Settings as Settings
    from video2pde.stages import calibrate_contenders as calibrate_contenders
    from video2pde.stages import choose_windows as choose_windows
    from video2pde.stages import discover_structure as discover_structure
    from video2pde.stages import evaluate as evaluate
    from video2pde.stages import final_models as final_models
    from video2pde.stages import validate_models as validate_models
    from video2pde.terms import Term as Term
    from video2pde.using import SavedModel as SavedModel

__version__ = "0.1.0"

_HOMES = {
    "example_field": "api",
    "example_run": "api",
    "choose_windows": "stages",
    "discover_structure": "stages",
    "calibrate_contenders": "stages",
    "final_models": "stages",
    "validate_models": "stages",
    "Estimate": "estimate",
    "Drift": "drift",
    "Field": "field",
    "Grid": "field",
    "InputError": "errors",
    "Model": "rollout.model",
    "Run": "record",
    "Settings": "settings",
    "SavedModel": "using",
    "StageError": "errors",
    "Term": "terms",
    "Video2pdeError": "errors",
    "Windows": "field",
    "calibrate": "calibration",
    "diagnose": "discovery",
    "discover": "discovery",
    "estimate_drift": "drift",
    "evaluate": "stages",
    "load_run": "record",
    "load_settings": "settings",
    "make_problem": "calibration",
    "preview": "recording",
    "read_field": "recording",
    "read_recording": "recording",
    "refine": "refinement.refine",
    "run": "api",
    "select": "selection",
    "simulate": "rollout.simulate",
    "validate": "rollout.validate",
    "weak_system": "discovery",
}

__all__ = [
    "Drift",
    "Estimate",
    "Field",
    "Grid",
    "InputError",
    "Model",
    "Run",
    "SavedModel",
    "Settings",
    "StageError",
    "Term",
    "Video2pdeError",
    "Windows",
    "__version__",
    "calibrate",
    "calibrate_contenders",
    "choose_windows",
    "diagnose",
    "discover",
    "discover_structure",
    "estimate_drift",
    "evaluate",
    "example_field",
    "example_run",
    "final_models",
    "load_run",
    "load_settings",
    "make_problem",
    "preview",
    "read_field",
    "read_recording",
    "refine",
    "run",
    "select",
    "simulate",
    "validate",
    "validate_models",
    "weak_system",
]


__getattr__ = load_on_use(__name__, _HOMES, globals())


def __dir__() -> list[str]:
    return __all__
