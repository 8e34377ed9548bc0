"""Sections on how it was made: settings, provenance, timings, warnings."""

from __future__ import annotations

import platform

from video2pde import __version__
from video2pde.report.content.words import count, number, Story
from video2pde.report.document import Axis, Cell, Chart, Code, Column, Item, Note, Section, Series, Table
from video2pde.result import package_versions
from video2pde.settings import Settings


def tell_settings(story: Story) -> Section:
    """List every value used, those that differ from the default first."""
    return settings_section(story.run.settings)


def settings_section(settings: Settings) -> Section:
    """List every value of some settings, those that differ from the default first."""
    used = _flatten(settings)
    plain = _flatten(Settings())
    changed = [key for key in used if used[key] != plain.get(key)]
    rest = [key for key in used if key not in changed]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (Code(key), used[key], plain.get(key, "–") if key in changed else "") for key in (*changed, *rest)
    )
    columns = (Column("setting"), Column("value"), Column("default, where it differs"))
    what = (
        "All settings have their default"
        if not changed
        else f"{count(len(changed), 'setting differs', 'settings differ').capitalize()} from the default"
    )
    sentence = (f"{what}; all are in ", Code("settings.toml"), ".")
    return Section("settings", "Settings", sentence, (Table(columns, rows),), collapsed=True)


def _flatten(settings: Settings) -> dict[str, str]:
    values: dict[str, str] = {}
    for section, keys in settings.model_dump(mode="json").items():
        if isinstance(keys, dict):
            values |= {f"{section}.{key}": _show(value) for key, value in keys.items()}
    return values


def _show(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_show, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_show(item)}" for key, item in value.items()) or "none"
    return (
        {None: "none", True: "yes", False: "no"}.get(value, f"{value}")
        if value is None or isinstance(value, bool)
        else f"{value}"
    )


def tell_provenance(story: Story) -> Section:
    """Tell where the recording came from and what made the report."""
    field, run = story.run.field, story.run
    rows: list[tuple[Cell, ...]] = []
    if field is not None:
        grid = field.grid
        rows += [
            ("recording", Code(field.provenance.path or "–")),
            ("SHA-256", Code(field.provenance.sha256 or "–")),
            ("frames", f"{len(field)}, one every {number(field.dt, 's')}" if len(field) > 1 else "1"),
            ("cells", f"{grid.ny} × {grid.nx} of {number(grid.dy)} × {number(grid.dx)} {grid.unit}"),
            *(("note", note) for note in field.provenance.notes),
        ]
    if run.recording is not None and run.recording.header is not None:
        header = run.recording.header
        rows.append(("kind", f"{header.kind}, {header.width} × {header.height} pixels"))
    rows += [("seed", f"{run.settings.run.seed}"), ("video2pde", __version__), ("Python", platform.python_version())]
    rows += list(package_versions().items())
    sentence = (
        "The same recording, settings and versions give the same result."
        if field is None
        else (
            "Made from ",
            Code(field.provenance.path or "a field without a path"),
            "; the same recording, settings and versions give the same result.",
        )
    )
    return Section(
        "provenance", "Provenance", sentence, (Table((Column("what"), Column("value")), tuple(rows)),), collapsed=True
    )


def tell_timings(story: Story) -> Section:
    """Tell how long each stage took."""
    timings = story.run.timings
    if not timings:
        return Section("timings", "Timings", "No stage is finished yet.")
    names = tuple(timings)
    longest = max(names, key=lambda name: timings[name])
    chart = Chart(
        "Time of each stage",
        Axis("stage", categories=names),
        Axis("time", "s"),
        (Series("seconds", range(len(names)), [timings[name] for name in names], style="bars", colour="blue"),),
        f"The longest stage is {longest} with {timings[longest]:.3g} s.",
    )
    table = Table(
        (Column("stage"), Column("time", "s", "right", ".3g")), tuple((name, timings[name]) for name in names)
    )
    most = f"most of it {longest} ({number(timings[longest], 's', 3)})"
    sentence = f"The stages took {number(sum(timings.values()), 's', 3)} together, {most}."
    return Section("timings", "Timings", sentence, (chart, table), collapsed=True)


def tell_warnings(story: Story) -> Section:
    """List what to bear in mind."""
    warnings = story.run.warnings
    items: tuple[Item, ...] = tuple(Note(story.prose(text), "warning") for text in warnings)
    sentence = (
        "There are no warnings."
        if not warnings
        else f"There {'is' if len(warnings) == 1 else 'are'} {count(len(warnings), 'warning')}."
    )
    return Section("warnings", "Warnings", sentence, items)
