"""Settings: one frozen section per stage, four presets, and errors that name the key and the cure."""

from video2pde.settings.base import Section
from video2pde.settings.load import load_settings, parse_overrides, Settings
from video2pde.settings.presets import PRESETS
from video2pde.settings.recording import RecordingSettings
from video2pde.settings.sections import (
    CalibrationSettings,
    ConstraintSettings,
    DriftSettings,
    FrapSettings,
    FrontSettings,
    IdentifiabilitySettings,
    MapSettings,
    RefinementSettings,
    RegressionSettings,
    RolloutSettings,
    RunSettings,
    SearchSettings,
    SelectionSettings,
    SplitSettings,
    SteadinessSettings,
    TermSettings,
    WeakSettings,
)

__all__ = [
    "PRESETS",
    "CalibrationSettings",
    "ConstraintSettings",
    "DriftSettings",
    "FrapSettings",
    "FrontSettings",
    "IdentifiabilitySettings",
    "MapSettings",
    "RecordingSettings",
    "RefinementSettings",
    "RegressionSettings",
    "RolloutSettings",
    "RunSettings",
    "SearchSettings",
    "Section",
    "SelectionSettings",
    "Settings",
    "SplitSettings",
    "SteadinessSettings",
    "TermSettings",
    "WeakSettings",
    "load_settings",
    "parse_overrides",
]
