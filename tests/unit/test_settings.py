"""Settings: presets, files, overrides, and errors that name the key and the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from video2pde.errors import SettingsError
from video2pde.settings import load_settings, PRESETS, Settings


def test_defaults_are_the_design() -> None:
    settings = load_settings()
    assert settings == Settings()
    assert (settings.split.train, settings.split.validation) == (0.6, 0.2)
    assert (settings.weak.test_functions, settings.weak.sigma_space, settings.weak.sigma_time) == (2000, 0.06, 0.025)
    assert (settings.weak.support, settings.regression.ridge, settings.regression.max_iterations) == (4.0, 1e-6, 100)
    assert settings.regression.threshold_on == "share"
    assert (settings.identifiability.stability_runs, settings.identifiability.stability_centres) == (100, 1000)


def test_paper_preset_is_the_papers() -> None:
    paper = load_settings("paper")
    assert (paper.regression.threshold_on, paper.regression.threshold) == ("coefficient", 1e-3)
    assert paper.drift.background == "none"
    assert paper.recording.pitch == "nodes"
    assert paper.recording.smooth == 1.0


@pytest.mark.parametrize("preset", list(PRESETS))
def test_settings_survive_toml(preset: str, tmp_path: Path) -> None:
    settings = load_settings(preset, overrides=["run.seed=7", "recording.crop=[1, 2, 30, 40]"])
    path = tmp_path / "settings.toml"
    path.write_text(settings.to_toml())
    assert load_settings(file=path) == settings


def test_overrides_beat_the_file_which_beats_the_preset(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[weak]\ntest_functions = 500\nsupport = 3.0\n")
    settings = load_settings("quick", path, ["weak.test_functions=700", "recording.observable=bright"])
    assert settings.weak.test_functions == 700
    assert settings.weak.support == 3.0
    assert settings.recording.observable == "bright"
    assert settings.identifiability.stability_runs == PRESETS["quick"]["identifiability"]["stability_runs"]


def test_override_none_and_mappings() -> None:
    assert load_settings(overrides=["weak.gradient_sigma=none"]).weak.gradient_sigma is None
    # a word where it is one that the setting knows, as warnings advise
    words = ["recording.illumination=none", "recording.objects=none", "drift.background=none", "recording.mask=none"]
    settings = load_settings(overrides=words)
    assert (settings.recording.illumination, settings.recording.objects, settings.drift.background) == ("none",) * 3
    assert settings.recording.mask is None
    assert load_settings(overrides=["recording.grid=100, 80"]).recording.grid == (100, 80)
    assert load_settings(overrides={"weak.gradient_sigma": 1.5}).weak.gradient_sigma == 1.5


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("weak.suport=3", "unknown setting 'weak.suport' .did you mean 'support'"),
        ("week.support=3", "unknown setting 'week'"),
        ("weak.support=1", "setting 'weak.support' cannot be 1"),
        ("weak.test_functions=0", "setting 'weak.test_functions' cannot be 0"),
        ("split.train=0.9", "leaves no test window"),
        ("regression.threshold_on=size", "regression.threshold_on"),
        ("weak=3", "not of the form section.key=value"),
        ("weak.support", "not of the form section.key=value"),
        ("weak.support=nan", "weak.support"),
    ],
)
def test_wrong_settings_name_the_key_and_the_cure(override: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(overrides=[override])


def test_wrong_files_and_presets(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the settings file"):
        load_settings(file=tmp_path / "missing.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[weak\n")
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(file=broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(file=broken)
    broken.write_text("weak = 3\n")
    with pytest.raises(SettingsError):
        load_settings(file=broken)
    with pytest.raises(SettingsError, match="did you mean 'paper'"):
        load_settings("papers")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().weak.support = 3.0
