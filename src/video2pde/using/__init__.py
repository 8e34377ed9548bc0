"""Using the law: the model file, simulation forward of the film, export, analysis and transfer to other films.

The names are loaded on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from video2pde.lazy import load_on_use

if TYPE_CHECKING:
    from video2pde.using.analysis import analyse_model as analyse_model
    from video2pde.using.analysis import Analysis as Analysis
    from video2pde.using.analysis import Statement as Statement
    from video2pde.using.ensemble import Ensemble as Ensemble
    from video2pde.using.ensemble import simulate_ensemble as simulate_ensemble
    from video2pde.using.export import export_model as export_model
    from video2pde.using.modelfile import SavedModel as SavedModel
    from video2pde.using.transfer import apply_model as apply_model
    from video2pde.using.transfer import Transfer as Transfer

_HOMES = {
    "Analysis": "analysis",
    "Ensemble": "ensemble",
    "SavedModel": "modelfile",
    "Statement": "analysis",
    "Transfer": "transfer",
    "analyse_model": "analysis",
    "apply_model": "transfer",
    "export_model": "export",
    "simulate_ensemble": "ensemble",
}

__all__ = [
    "Analysis",
    "Ensemble",
    "SavedModel",
    "Statement",
    "Transfer",
    "analyse_model",
    "apply_model",
    "export_model",
    "simulate_ensemble",
]


__getattr__ = load_on_use(__name__, _HOMES, globals())
