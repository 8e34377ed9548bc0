"""Write the reference pages from the source: every setting from ``settings``, the API from its docstrings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

import video2pde
from video2pde.settings import PRESETS, Section, Settings, TermSettings


def write_pages(folder: Path) -> None:
    """Write settings.md and api.md into ``folder``, touching only what has changed."""
    for name, text in {"settings.md": settings_page(), "api.md": api_page()}.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def settings_page() -> str:
    """List every key with what it means, its default, and what the presets change."""
    lines = [
        "# Settings",
        "",
        "Values come from a preset, then a TOML file (`--settings FILE`), then single values",
        "(`--set section.key=value`). Every run writes all values it used to `settings.toml`,",
        "which can be given as the file of another run.",
        "",
    ]
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            lines += [f"## [{name}]", "", section.__doc__ or "", "", *_table(name, section), ""]
    lines += ["## [terms] and [libraries]", "", _sentence(Settings.model_fields["terms"].description), ""]
    lines += ["Each part of a term has:", "", *_table("", TermSettings), ""]
    lines += [_sentence(Settings.model_fields["libraries"].description), ""]
    return "\n".join(lines)


def _table(name: str, section: type[Section]) -> list[str]:
    others = [preset for preset, values in PRESETS.items() if name in values]
    head = ["key", "default", *(f"`{preset}`" for preset in others), "meaning"]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    for key, info in section.model_fields.items():
        default = info.get_default(call_default_factory=True)
        values = ["required" if default is PydanticUndefined else _toml(default)]
        values += [_toml(PRESETS[preset][name][key]) if key in PRESETS[preset][name] else "" for preset in others]
        lines.append(f"| {' | '.join([f'`{key}`', *values, _escape(info.description or '')])} |")
    return lines


def _toml(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _sentence(text: str | None) -> str:
    return f"{(text or '')[:1].upper()}{(text or '')[1:]}."


def api_page() -> str:
    """Show each public name with its signature and docstring."""
    lines = ["# Python API", "", "Everything here can be imported from `video2pde`.", ""]
    for name in video2pde.__all__:
        if name.startswith("_"):
            continue
        thing = getattr(video2pde, name)
        lines += [f"## {name}", "", "```python", _signature(name, thing), "```", ""]
        summary, _, rest = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")
        lines += [_escape(" ".join(summary.split())), ""]
        if rest:
            lines += ["```text", rest, "```", ""]
        lines += [line for method in _methods(thing) for line in _describe_method(name, method)]
    return "\n".join(lines)


def _signature(name: str, thing: Any) -> str:
    if isinstance(thing, type) and issubclass(thing, Section):
        return f"class {name}  # see the page on settings"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return f"class {name}({thing.__base__.__name__})"  # type: ignore[union-attr]
    keyword = "class" if isinstance(thing, type) else "def"
    parameters = inspect.signature(thing)
    if isinstance(thing, type):
        parameters = parameters.replace(return_annotation=inspect.Signature.empty)
    return f"{keyword} {name}{_wrapped(parameters)}"


def _wrapped(signature: inspect.Signature) -> str:
    text = str(signature).replace("'", "")
    if len(text) < 88:
        return text
    end = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    return "(\n" + "".join(f"    {str(p).replace(chr(39), '')},\n" for p in signature.parameters.values()) + f"){end}"


def _methods(thing: Any) -> list[tuple[str, Any]]:
    if not isinstance(thing, type) or issubclass(thing, Exception | Section):
        return []
    return [(name, value) for name, value in vars(thing).items() if not name.startswith("_") and _has_words(value)]


def _has_words(value: Any) -> bool:
    return bool(inspect.getdoc(value)) and (inspect.isroutine(value) or isinstance(value, property | classmethod))


def _describe_method(owner: str, method: tuple[str, Any]) -> list[str]:
    name, value = method
    summary = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    brackets = "" if isinstance(value, property) else "(…)"
    return [f"- `{owner}.{name}{brackets}`: {_escape(summary)}", ""]
