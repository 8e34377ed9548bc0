"""Options that several commands share. Each is only another way to write a setting: ``--smooth 1`` is
``--set recording.smooth=1``, so that values are checked in one place, ``settings``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, TYPE_CHECKING

from cyclopts import Group, Parameter

from video2pde.errors import InputError
from video2pde.numbers import is_number

if TYPE_CHECKING:
    from video2pde.settings import Settings

RECORDING = Group("Recording", sort_key=1)
SETTINGS = Group("Settings", sort_key=2)
LISTS = ("crop", "grid")  # given as 1,2,3
NAMES = ("channels",)  # given as a,b: numbers or words
WORDS = ("colours", "edges", "kymograph", "observable", "scale", "mask", "second", "times")
MAYBE = ("reference", "dark", "start", "border", "channel")  # numbers or words


def _recording(text: str) -> Parameter:
    return Parameter(help=text, group=RECORDING, allow_leading_hyphen=True, negative="", show_default=False)


def _settings(text: str) -> Parameter:
    return Parameter(help=text, group=SETTINGS, negative="", show_default=False)


def flag(text: str) -> Parameter:
    """Describe an option that is off unless it is given."""
    return Parameter(help=text, negative="", show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class RecordingOptions:
    """Flags for the settings of the ``[recording]`` section; what is not given stays as the settings have it."""

    crop: Annotated[str | None, _recording("Rectangle x0,y0,width,height in camera pixels.")] = None
    border: Annotated[str | None, _recording("Pixels cut off on each side of the crop, or auto.")] = None
    grid: Annotated[str | None, _recording("Rows,columns of the field.")] = None
    observable: Annotated[str | None, _recording("dark (ink), bright (fluorescence) or absorbance.")] = None
    scale: Annotated[str | None, _recording("Size of a camera pixel with its unit, such as 0.05mm.")] = None
    fps: Annotated[str | None, _recording("Frames per second, for pictures and arrays without times.")] = None
    start: Annotated[str | None, _recording("First frame used, counted from 0.")] = None
    stop: Annotated[str | None, _recording("First frame no longer used.")] = None
    every: Annotated[str | None, _recording("Use every n-th frame.")] = None
    reference: Annotated[
        str | None,
        _recording("What counts as 1: a picture, its name in the folder, frames such as 0,2, or before."),
    ] = None
    dark: Annotated[
        str | None, _recording("The camera without light: a picture, its name in the folder, or a level.")
    ] = None
    channel: Annotated[str | None, _recording("Channel that is read: its name in the file, or its number.")] = None
    channels: Annotated[
        str | None, _recording("Two channels as two fields u and w, whose laws are found together, such as r,g.")
    ] = None
    second: Annotated[str | None, _recording("Recording of the second field, where it is a file of its own.")] = None
    z: Annotated[str | None, _recording("Plane that is read of a stack in depth, counted from 1.")] = None
    series: Annotated[str | None, _recording("Series of a microscope's file: its name, or its number.")] = None
    times: Annotated[str | None, _recording("CSV file with the times of the frames (file,time).")] = None
    mask: Annotated[str | None, _recording("Region that obeys the law: a picture, or such as 'u>0.3@0'.")] = None
    edges: Annotated[
        str | None, _recording("no_flux, measured (the rim drives, for what enters or leaves) or open.")
    ] = None
    colours: Annotated[
        str | None, _recording("False colours: the colour map's name, or its legend: legend:x,y,width,height.")
    ] = None
    kymograph: Annotated[
        str | None, _recording("A line over time: its times are rows or columns of a picture, or average across.")
    ] = None
    smooth: Annotated[str | None, _recording("Width of a Gaussian filter in grid pixels; 0 is none.")] = None
    allow_truncated: Annotated[bool, _recording("Go on with the readable frames of a damaged file.")] = False

    def overrides(self) -> list[str]:
        """Write the options that were given as ``section.key=value``."""
        found = []
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is None or value is False:
                continue
            found.append(f"recording.{entry.name}={_as_toml(entry.name, value)}")
        return found


def _as_toml(name: str, value: str | bool) -> str:
    if value is True:
        return "true"
    text = str(value)
    if name in MAYBE:
        numbers = text.split(",")
        if not all(is_number(part) for part in numbers):
            return json.dumps(text)
        return f"[{text}]" if len(numbers) > 1 else text
    if name in NAMES:
        parts = [part.strip() for part in text.split(",")]
        return json.dumps([int(part) if part.isdigit() else part for part in parts])
    if name in LISTS:
        return f"[{text}]" if all(is_number(part) for part in text.split(",")) else json.dumps(text)
    return json.dumps(text) if name in WORDS else text


@Parameter(name="*")
@dataclass(frozen=True)
class SettingsOptions:
    """Where settings come from: a preset, then a file, then single values."""

    preset: Annotated[str, _settings("default, paper, quick or frap; default if not given.")] = "default"
    settings: Annotated[Path | None, _settings("TOML file with settings that differ from the preset.")] = None
    set: Annotated[tuple[str, ...], _settings("section.key=value; may be given again and again.")] = ()
    quiet: Annotated[bool, _settings("No progress and no messages, only warnings and errors.")] = False

    def load(self, recording: RecordingOptions | None = None, more: tuple[str, ...] = ()) -> Settings:
        """Combine everything into validated settings; ``--set`` has the last word."""
        from video2pde.settings import load_settings

        given = [] if recording is None else recording.overrides()
        return load_settings(self.preset, self.settings, [*given, *more, *self.set])


def _absolute(value: str | Path) -> str:
    """Write a path so that it means the same from any folder."""
    return str(value.resolve()) if isinstance(value, Path) else value


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _known_coefficient(text: str) -> str:
    name, given, value = (part.strip() for part in text.partition("="))
    if not given or not name.isidentifier() or not is_number(value):
        raise InputError(f"--fix {text}: give a term and its coefficient, such as laplacian=0.5")
    return f"{name} = {float(value)!r}"


@Parameter(name="*")
@dataclass(frozen=True)
class LawOptions:
    """What is known of the law before anything is fitted."""

    law: Annotated[
        str | None, _settings("The law to fit, without discovery: a library (A, B, C …) or terms such as laplacian,u.")
    ] = None
    search: Annotated[
        str | None, _settings("Which laws are tried: libraries, or subsets of the catalogue's terms.")
    ] = None
    diffusion: Annotated[
        str | None, _settings("isotropic, or tensor: for what spreads faster in one direction than across it.")
    ] = None
    vary: Annotated[
        tuple[str, ...],
        _settings("A coefficient that varies: TERM over space, TERM=time over time, such as laplacian or u=time."),
    ] = ()
    drift: Annotated[str | None, _settings("What is carried along: none, auto, uniform, affine or stream.")] = None
    conserve: Annotated[bool, _settings("Nothing is made or lost: terms in divergence form alone are candidates.")] = (
        False
    )
    fix: Annotated[
        tuple[str, ...], _settings("A coefficient that is known, such as laplacian=0.5; may be given again and again.")
    ] = ()
    positive: Annotated[
        str | None, _settings("Terms whose coefficient is not negative: names, diffusion or tensor, with commas.")
    ] = None
    equal: Annotated[
        tuple[str, ...], _settings("Terms with one coefficient, such as dxx,dyy; may be given again and again.")
    ] = ()
    populations: Annotated[
        bool, _settings("After a bleach: compare one D, an immobile part, two D's, and exchange with a bound part.")
    ] = False
    velocity: Annotated[
        Path | None, _settings("File (.npz, .nc) with the velocity u, v, in place of the drift that is measured.")
    ] = None
    potential: Annotated[
        Path | None, _settings("File (.npz, .tif) with a field g along whose gradient u is carried, χ ∇g·∇u.")
    ] = None

    def overrides(self) -> tuple[str, ...]:
        """Write the options that were given as ``section.key=value``."""
        keys = {
            "law": "regression.law",
            "search": "search.over",
            "diffusion": "regression.diffusion",
            "drift": "drift.flow",
            "velocity": "drift.velocity",
            "potential": "drift.potential",
        }
        given = {key: getattr(self, name) for name, key in keys.items() if getattr(self, name) is not None}
        plain = tuple(f"{key}={json.dumps(_absolute(value))}" for key, value in given.items())
        vary = (each.partition("=") for each in self.vary)
        varying = tuple(f"maps.vary.{name.strip()}={json.dumps(over.strip() or 'space')}" for name, _, over in vary)
        recovery = ("frap.enabled=true", "frap.populations=true") if self.populations else ()
        return (*plain, *varying, *self._constraints(), *recovery)

    def _constraints(self) -> tuple[str, ...]:
        """Write what is known of the law beforehand as settings."""
        found = ["constraints.conserve=true"] if self.conserve else []
        if self.fix:
            found.append(f"constraints.fixed={{ {', '.join(_known_coefficient(text) for text in self.fix)} }}")
        if self.positive is not None:
            found.append(f"constraints.positive={json.dumps(_split(self.positive))}")
        if self.equal:
            found.append(f"constraints.equal={json.dumps([_split(text) for text in self.equal])}")
        return tuple(found)

    def joined(self, settings: SettingsOptions) -> SettingsOptions:
        """Add the options to the other settings; what ``--set`` says has the last word."""
        return replace(settings, set=(*self.overrides(), *settings.set))


DEFAULT_LAW = LawOptions()
DEFAULT_SETTINGS = SettingsOptions()
DEFAULT_RECORDING = RecordingOptions()


def split_numbers(option: str, text: str, count: int) -> tuple[float, ...]:
    """Read ``count`` numbers separated by commas (or by x, as in 1920x1080)."""
    parts = text.lower().replace("x", ",").split(",")
    if len(parts) != count or not all(is_number(part) for part in parts):
        raise InputError(f"{option} {text}: give {count} numbers separated by commas")
    return tuple(float(part) for part in parts)
