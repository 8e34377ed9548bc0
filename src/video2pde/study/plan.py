"""The plan of a study: which films, under which conditions, read with which settings; checked before anything begins.

A plan is a TOML file, or a list of films that share their settings::

    title = "Ink at three depths"
    preset = "default"

    [settings.recording]              # for all films
    grid = [100, 100]

    [[films]]
    path = "shallow.mp4"              # relative to this file
    name = "shallow"                  # of its folder; default: the file's
    conditions = { depth = 2.0, dye = "blue" }

    [films.settings.recording]        # for this film alone
    scale = "0.05mm"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from video2pde.discovery.shapes import unknown_family
from video2pde.errors import InputError, SettingsError, Video2pdeError
from video2pde.field import Field
from video2pde.recording.arrays import is_saved_field
from video2pde.recording.layout import plan_layout
from video2pde.recording.source import open_recording
from video2pde.runs.memory import check_recording
from video2pde.settings import load_settings, parse_overrides, Settings
from video2pde.settings.load import read_toml
from video2pde.study.trends import Condition

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.+-]{0,79}")
KEYS = ("title", "preset", "settings", "films")
FILM_KEYS = ("path", "name", "conditions", "settings")
SHARED = ("terms", "libraries", "regression", "constraints", "selection")
"""Sections that say which laws are compared, and how: the same for all films."""
LEAST_FILMS = 2


@dataclass(frozen=True)
class FilmPlan:
    """One film: its name, where it lies, how it is read, and under which conditions it was made."""

    name: str
    path: Path
    settings: Settings
    conditions: Mapping[str, Condition] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The films of a study, and the settings that they share."""

    title: str
    films: tuple[FilmPlan, ...]
    settings: Settings

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions, in the order in which they are first given."""
        return tuple(dict.fromkeys(name for film in self.films for name in film.conditions))


@dataclass(frozen=True)
class Given:
    """What the command line says of the settings: a preset, a file, and single values, which have the last word."""

    preset: str | None = None
    file: Path | None = None
    overrides: tuple[str, ...] = ()

    def settings(self, preset: str, *layers: Mapping[str, Any]) -> Settings:
        """Combine the preset, the file, ``layers`` in their order, and the single values."""
        values: dict[str, Any] = {}
        for layer in layers:
            values.update(_flatten(layer))
        values.update(parse_overrides(self.overrides))
        return load_settings(self.preset or preset, self.file, values)


def plan_films(paths: Sequence[Path], given: Given | None = None) -> Plan:
    """Plan a study of films that share all their settings."""
    settings = (given or Given()).settings("default")
    films = tuple(FilmPlan(path.resolve().stem, path, settings) for path in paths)
    return Plan(f"{len(films)} films", films, settings)


def read_plan(path: Path, given: Given | None = None) -> Plan:
    """Read a plan from a TOML file; paths in it are relative to its folder."""
    said = given or Given()
    content = read_toml(path, "study", InputError)
    _refuse_unknown(content, KEYS, str(path))
    entries = content.get("films")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} names no films; give each as [[films]] with its path")
    preset, common = str(content.get("preset", "default")), _section(content, "settings", str(path))
    films = tuple(_read_film(entry, number, path, preset, common, said) for number, entry in enumerate(entries, 1))
    return Plan(str(content.get("title", path.stem)), films, said.settings(preset, common))


def _read_film(entry: Any, number: int, file: Path, preset: str, common: Mapping[str, Any], given: Given) -> FilmPlan:
    where = f"{file}, film {number}"
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        raise InputError(f'{where}: give its path, such as path = "film.mp4"')
    _refuse_unknown(entry, FILM_KEYS, where)
    path = file.parent / entry["path"]
    conditions = _section(entry, "conditions", where)
    for name, value in conditions.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InputError(f"{where}: the condition '{name}' is {value!r}; give a number or a label")
    try:
        settings = given.settings(preset, common, _section(entry, "settings", where))
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None
    values = {name: value if isinstance(value, str) else float(value) for name, value in conditions.items()}
    return FilmPlan(str(entry.get("name", path.resolve().stem)), path, settings, values)


def _refuse_unknown(found: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'; known here: {', '.join(known)}")


def _section(found: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{where}: '{key}' holds names and values, such as {key} = {{ depth = 2.0 }}")
    return value


def _flatten(sections: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Write nested sections as ``section.key``."""
    for section, values in sections.items():
        if not isinstance(values, dict):
            raise SettingsError(f"'{section}' is no section of settings; write it as [settings.section]")
        yield from ((f"{section}.{key}", value) for key, value in values.items())


# --- what is wrong with a plan -----------------------------------------------------------------------------------


def check_plan(plan: Plan) -> list[str]:
    """Say what is wrong with a plan, a line for each; no frame is read for it."""
    if len(plan.films) < LEAST_FILMS:
        return [f"a study needs {LEAST_FILMS} films or more, and this has {len(plan.films)}"]
    units: dict[str, str] = {}
    found = [*_check_names(plan.films), *_check_conditions(plan), *_check_shared(plan)]
    if any(film.settings.maps.vary for film in plan.films):
        found.append(
            "a study shares coefficients that are constant in every film; leave maps.vary out, and run it alone"
        )
    for film in plan.films:
        try:
            units[film.name] = _unit_of(film)
            check_recording(film.path, film.settings)
        except Video2pdeError as error:
            found.append(f"{film.name}: {error}")
    return [*found, *_check_units(units)]


def _check_names(films: Iterable[FilmPlan]) -> Iterator[str]:
    films = list(films)
    for name in (film.name for film in films if not NAME.fullmatch(film.name)):
        yield f"'{name}' cannot name a film's folder; use letters, digits, spaces and _ . + - , 80 at most"
    # folders of some systems do not tell capitals from small letters
    for name, count in Counter(film.name.lower() for film in films).items():
        if count > 1:
            paths = ", ".join(str(film.path) for film in films if film.name.lower() == name)
            yield f"{count} films are called '{name}' ({paths}); give each a name of its own in a study.toml"
    for (path, _), count in Counter((film.path.resolve(), film.settings.to_toml()) for film in films).items():
        if count > 1:
            yield f"{path} is in the study {count} times with the same settings; it would count {count} times"


def _check_conditions(plan: Plan) -> Iterator[str]:
    for condition in plan.conditions:
        missing = [film.name for film in plan.films if condition not in film.conditions]
        if missing:
            yield f"the condition '{condition}' is missing for {', '.join(missing)}"
        kinds = {isinstance(film.conditions[condition], str) for film in plan.films if condition in film.conditions}
        if len(kinds) > 1:
            yield f"the condition '{condition}' is a number for some films and a label for others"


def _check_shared(plan: Plan) -> Iterator[str]:
    known = plan.settings.constraints
    if known.fixed or known.positive or known.negative:
        yield "a study fits its films' coefficients without bounds: leave constraints.fixed, positive and negative out"
    family = unknown_family(plan.settings)
    if family is not None:
        yield f"give {family.symbol} of '{family.name}' a value for all films: regression.shapes.{family.name}"
    for section in SHARED:
        different = [
            film.name for film in plan.films if getattr(film.settings, section) != getattr(plan.settings, section)
        ]
        if different:
            names = ", ".join(different)
            yield f"[{section}] says which laws are compared, and must be one for all films; it differs for {names}"
    if len({film.settings.recording.observable for film in plan.films}) > 1:
        yield "the films have different observables: their u need not obey the same law; give all the same one"


def _check_units(units: Mapping[str, str]) -> Iterator[str]:
    if len(set(units.values())) > 1:
        by_unit = {
            unit: [name for name, other in units.items() if other == unit] for unit in dict.fromkeys(units.values())
        }
        listed = "; ".join(f"{unit}: {', '.join(names)}" for unit, names in by_unit.items())
        yield f"lengths are in different units ({listed}); give all films the same one (recording.scale)"


def _unit_of(film: FilmPlan) -> str:
    """Return the unit of a film's lengths, by its header and settings."""
    if film.path.is_file() and is_saved_field(film.path):
        return Field.load(film.path).grid.unit
    return plan_layout(open_recording(film.path, film.settings.recording).header, film.settings.recording).grid.unit
