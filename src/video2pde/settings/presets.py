"""The presets: what each changes of the defaults, by section."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {},
    "paper": {
        "recording": {
            "smooth": 1.0,
            "pitch": "nodes",
            "border": 8,
            "grid": (200, 200),
            "extent": (200.0, 200.0),
            "unclip": False,
            "illumination": "none",
            "response": "linear",
            "channel": "luma",
            "stabilise": "none",
            "objects": "none",
            "saturated": "none",
            "frames": "all",
        },
        "drift": {"background": "none", "law_correction": False},
        "weak": {"gradient_sigma": 0.0, "noise_correction": False, "shrink": False},
        "regression": {"threshold_on": "coefficient", "threshold": 1e-3},
        "rollout": {"viscosity": 0.01, "start_frames": 1},
        "refinement": {
            "first": True,
            "network": "perceptron",
            "width": 128,
            "depth": 6,
            "pretrain_steps": 5000,
            "joint_steps": 12000,
            "data_samples": 8192,
            "residual_samples": 4096,
            "optimizer": "adam",
            "pretrain_rate": 8e-4,
            "joint_rate": 2e-4,
            "final_rate": 2e-4,
            "residual_weight": 1e-3,
            "scaled_loss": False,
            "coefficients": "trained",
            "frame": "fixed",
            "average": False,
            "cell_average": False,
            "concentration": 0.0,
            "output": "unit",
        },
        "calibration": {"optimizer": "nelder-mead", "drift": "fixed", "max_points": 100_000, "undo_coding": False},
    },
    "frap": {
        "recording": {"observable": "bright", "start": "auto", "response": "linear"},
        "split": {"by": "change"},
        "drift": {"flow": "none"},
        "rollout": {"clip": "off"},
        "refinement": {"enabled": False},
        "front": {"enabled": False},
        "frap": {"enabled": True},
    },
    "quick": {
        "weak": {"test_functions": 1000},
        "identifiability": {"stability_runs": 30},
        "refinement": {"enabled": False},
        "calibration": {"replicates": 12},
        "front": {"enabled": False},
    },
}
