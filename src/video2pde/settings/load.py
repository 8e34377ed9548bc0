"""All settings of a run, from a preset, then a TOML file, then single overrides (``--set section.key=value``)."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_origin, Literal

from pydantic import Field, model_validator, ValidationError

from video2pde.errors import SettingsError, Video2pdeError
from video2pde.files import require_regular
from video2pde.settings.base import LibraryName, Section
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


class Settings(Section):
    """All settings of a run."""

    recording: RecordingSettings = RecordingSettings()
    split: SplitSettings = SplitSettings()
    drift: DriftSettings = DriftSettings()
    weak: WeakSettings = WeakSettings()
    regression: RegressionSettings = RegressionSettings()
    maps: MapSettings = MapSettings()
    constraints: ConstraintSettings = ConstraintSettings()
    search: SearchSettings = SearchSettings()
    identifiability: IdentifiabilitySettings = IdentifiabilitySettings()
    rollout: RolloutSettings = RolloutSettings()
    refinement: RefinementSettings = RefinementSettings()
    calibration: CalibrationSettings = CalibrationSettings()
    front: FrontSettings = FrontSettings()
    selection: SelectionSettings = SelectionSettings()
    frap: FrapSettings = FrapSettings()
    steadiness: SteadinessSettings = SteadinessSettings()
    run: RunSettings = RunSettings()
    terms: dict[str, tuple[TermSettings, ...]] = Field(
        default_factory=dict, description="terms of the user's own, by name: a list of parts that are added"
    )
    libraries: dict[LibraryName, tuple[str, ...]] = Field(
        default_factory=dict, description="libraries of the user's own, by name: term names without the drift"
    )

    @model_validator(mode="before")
    @classmethod
    def _open_the_edges(cls, values: Any) -> Any:
        """Let rollouts know of open edges."""
        if not isinstance(values, dict) or not isinstance(values.get("recording"), dict):
            return values
        recording = values["recording"]
        if recording.get("edges") != "open":
            return values
        if recording.get("mask") is not None:
            raise ValueError("recording.edges cannot be open with a mask; use no_flux or measured")
        rollout = values.get("rollout")
        return {**values, "rollout": {**(rollout if isinstance(rollout, dict) else {}), "boundary": "open"}}

    @model_validator(mode="before")
    @classmethod
    def _carry_along_a_gradient(cls, values: Any) -> Any:
        """Estimate one factor on a given gradient: it is the same along both axes."""
        if not isinstance(values, dict) or not isinstance(values.get("drift"), dict):
            return values
        if values["drift"].get("potential") is None:
            return values
        if values["drift"].get("velocity") is not None:
            raise ValueError("drift.potential and drift.velocity are two ways to say what carries u; give one")
        regression = values.get("regression")
        known = regression if isinstance(regression, dict) else {}
        if known.get("drift", "scale") != "scale":
            raise ValueError(
                f"drift.potential has one factor for both axes: regression.drift is not '{known['drift']}'"
            )
        return {**values, "regression": {**known, "drift": "scale"}}

    @model_validator(mode="after")
    def _let_vary_what_can(self) -> Settings:
        """Refuse what cannot be told apart from a coefficient that varies, or is not fitted beside one."""
        if self.maps.vary and self.drift.flow not in ("none", "uniform"):
            raise ValueError(
                f"maps.vary cannot be combined with drift.flow = '{self.drift.flow}': a flow and a map are not fitted "
                "together; choose one"
            )
        if self.maps.vary and self.search.over == "subsets":
            raise ValueError("maps.vary needs libraries or a named law; leave search.over = 'subsets' out")
        return self

    def to_toml(self) -> str:
        """Write every value used as TOML; ``load_settings`` reads it back to the same settings."""
        import tomli_w

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def only(self, *sections: str) -> Settings:
        """Return these sections alone; reading another one is an error.

        A stage is given the sections that its key holds, so that nothing else can change what it computes.

        Examples
        --------
        >>> part = Settings().only("drift", "split")
        >>> part.split.train
        0.6
        >>> part.weak
        Traceback (most recent call last):
            ...
        AttributeError: these settings hold drift, split alone, not weak
        """
        part = _SomeSettings.model_construct()
        object.__setattr__(part, "__dict__", {name: getattr(self, name) for name in sections})
        return part


class _SomeSettings(Settings):
    """Some sections of the settings; what is missing is missed aloud."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"these settings hold {', '.join(self.__dict__)} alone, not {name}")


def load_settings(
    preset: str = "default",
    file: str | os.PathLike[str] | None = None,
    overrides: Iterable[str] | Mapping[str, Any] = (),
) -> Settings:
    """Combine a preset, a TOML file and overrides, in this order, into validated settings.

    Parameters
    ----------
    preset : one of :data:`PRESETS`.
    file : TOML, such as the ``settings.toml`` of a run.
    overrides : ``section.key=value`` texts (values in TOML; bare words and lists without brackets are allowed), or a
        mapping from ``section.key`` to a value.

    Returns
    -------
    The settings, frozen.

    Examples
    --------
    >>> load_settings("quick", overrides={"run.seed": 3}).run.seed
    3
    """
    if preset not in PRESETS:
        raise SettingsError(f"unknown preset '{preset}'{_nearest(preset, PRESETS)}; there are: {', '.join(PRESETS)}")
    values: dict[str, Any] = {section: dict(keys) for section, keys in PRESETS[preset].items()}
    if file is not None:
        _merge(values, read_toml(Path(file)), str(file))
    if isinstance(overrides, Mapping):
        pairs: Iterable[tuple[str, Any]] = overrides.items()
    else:
        pairs = parse_overrides(overrides).items()
    for key, value in pairs:
        path = key.split(".")
        nested: Any = value
        for part in reversed(path):
            nested = {part: nested}
        _merge(values, nested, f"--set {key}")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None


def read_toml(path: Path, what: str = "settings file", kind: type[Video2pdeError] = SettingsError) -> dict[str, Any]:
    """Read a TOML file; ``what`` it is called, and the ``kind`` of error, where it cannot be read."""
    try:
        require_regular(path)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise kind(f"cannot read the {what} {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise kind(f"the {what} {path} is not valid TOML: {error}") from None


def parse_overrides(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``section.key=value`` texts as values by ``section.key``; of two for one key the later one counts.

    Examples
    --------
    >>> parse_overrides(["recording.grid=64,64", "run.seed=3"])
    {'recording.grid': [64, 64], 'run.seed': 3}
    """
    return dict(_split_override(text) for text in texts)


def _split_override(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found or "." not in key:
        raise SettingsError(f"'{text}' is not of the form section.key=value, such as recording.smooth=1.0")
    word = value.strip()
    return key.strip(), word if word == "none" and _has_word(key.strip(), word) else _parse_value(word)


def _has_word(key: str, word: str) -> bool:
    """Tell whether a word is one of those that a setting may have; ``none`` is such a word for some of them."""
    section, _, name = key.partition(".")
    held = Settings.model_fields.get(section)
    keys = getattr(held.annotation, "model_fields", {}) if held is not None else {}
    return name in keys and word in _words(keys[name].annotation)


def _words(annotation: Any) -> set[Any]:
    """Return the words that a type names, those of its parts included."""
    parts = get_args(annotation)
    own = {part for part in parts if isinstance(part, str)} if get_origin(annotation) is Literal else set()
    return own.union(*(_words(part) for part in parts if not isinstance(part, str)))


def _parse_value(text: str) -> Any:
    """Read a TOML value, a list without brackets such as 100,100, ``none`` or a bare word."""
    for form in (text, f"[{text}]") if "," in text else (text,):
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {form}")["value"]
    return None if text == "none" else text


def _merge(into: dict[str, Any], new: Mapping[str, Any], origin: str) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value, origin)
        elif isinstance(value, Mapping):
            into[key] = dict(value)
        elif isinstance(into.get(key), dict):
            raise SettingsError(f"{origin}: '{key}' is a section, not a value; give section.key")
        else:
            into[key] = value


def _nearest(word: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{match[0]}'?)" if match else ""


def _explain(error: ValidationError) -> str:
    """Turn pydantic's report into lines that name the key, the value and what is allowed."""
    lines: dict[str, None] = {}
    for item in error.errors():
        key, model, description = _locate(tuple(item["loc"]))
        value = item.get("input")
        if item["type"] == "extra_forbidden":
            known = list(model.model_fields)
            if len(key.split(".")) == 1 and key not in known:
                known_keys = [f"{s}.{k}" for s, f in Settings.model_fields.items() for k in _keys(f.annotation)]
                known = [*known, *known_keys]
            unknown = key if len(known) > len(model.model_fields) else key.rsplit(".", 1)[-1]
            lines[f"unknown setting '{key}'{_nearest(unknown, known)}; known here: {', '.join(model.model_fields)}"] = (
                None
            )
        else:
            text = item["msg"].removeprefix("Value error, ")
            lines[f"setting '{key}' cannot be {value!r}: {text}" + (f" ({description})" if description else "")] = None
    return "; ".join(lines)


def _keys(annotation: Any) -> list[str]:
    return list(annotation.model_fields) if isinstance(annotation, type) and issubclass(annotation, Section) else []


def _locate(location: tuple[Any, ...]) -> tuple[str, type[Section], str]:
    """Find the dotted key, the section that holds it, and the key's description."""
    model: type[Section] = Settings
    parts: list[str] = []
    description = ""
    for part in location:
        info = model.model_fields.get(str(part))
        if info is None:
            if not description:
                parts.append(str(part))
            break
        parts.append(str(part))
        if _keys(info.annotation):
            model = info.annotation  # type: ignore[assignment]
        else:
            description = info.description or ""
    return ".".join(parts), model, description
