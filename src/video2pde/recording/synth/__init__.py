"""Known-truth recordings: fields and films whose law is known, from solvers that the pipeline does not use."""

from video2pde.recording.synth.deviations import (
    describe_deviations,
    deviate,
    Deviation,
    DEVIATIONS,
    find_deviation,
    parse_deviations,
)
from video2pde.recording.synth.laboratory import LABORATORY, write_laboratory
from video2pde.recording.synth.laws import Case, Drift, find_preset, Law, make_case, Plume, PRESETS
from video2pde.recording.synth.medium import Flow, Medium, Source
from video2pde.recording.synth.optics import Optics
from video2pde.recording.synth.render import (
    Camera,
    DEMO_CAMERA,
    DEMO_CASE,
    describe_film,
    render_demo,
    render_film,
)
from video2pde.recording.synth.solvers import exact_field, noisy, sample_case
from video2pde.recording.synth.systems import make_system, sample_system, System, SYSTEMS
from video2pde.recording.synth.twofilms import write_system
from video2pde.recording.synth.volumes import sample_volumes

__all__ = [
    "DEMO_CAMERA",
    "DEMO_CASE",
    "DEVIATIONS",
    "LABORATORY",
    "PRESETS",
    "SYSTEMS",
    "Camera",
    "Case",
    "Deviation",
    "Drift",
    "Flow",
    "Law",
    "Medium",
    "Optics",
    "Plume",
    "Source",
    "System",
    "describe_deviations",
    "describe_film",
    "deviate",
    "exact_field",
    "find_deviation",
    "find_preset",
    "make_case",
    "make_system",
    "noisy",
    "parse_deviations",
    "render_demo",
    "render_film",
    "sample_case",
    "sample_system",
    "sample_volumes",
    "write_laboratory",
    "write_system",
]
