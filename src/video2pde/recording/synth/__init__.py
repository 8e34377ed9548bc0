"""Known-truth recordings: fields and films whose law is known, from solvers that the pipeline does not use."""

from video2pde.recording.synth.laws import Case, Drift, find_preset, Law, make_case, Plume, PRESETS
from video2pde.recording.synth.render import (
    Camera,
    DEMO_CAMERA,
    DEMO_CASE,
    describe_film,
    render_demo,
    render_film,
)
from video2pde.recording.synth.solvers import exact_field, noisy, sample_case

__all__ = [
    "DEMO_CAMERA",
    "DEMO_CASE",
    "PRESETS",
    "Camera",
    "Case",
    "Drift",
    "Law",
    "Plume",
    "describe_film",
    "exact_field",
    "find_preset",
    "make_case",
    "noisy",
    "render_demo",
    "render_film",
    "sample_case",
]
