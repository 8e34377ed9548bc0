"""Artefacts as a JSON tree and a list of arrays, and back to equal objects. Nothing is ever pickled.

A run folder may come from elsewhere, so a tree can only name what stands here: plain values, arrays, settings
sections, terms (as text, through the whitelist), and dataclasses that are defined inside this package.

    {"!": "object", "type": "video2pde.field:Grid", "fields": {"ny": 200, ...}}
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import video2pde.settings
from video2pde.errors import InputError, StageError
from video2pde.settings import Section
from video2pde.terms import Term
from video2pde.terms.text import term_parts
from video2pde.zipped import AnyArray, ARRAY_KINDS

Tree = Any  # what JSON can hold

TAG = "!"
PACKAGE = "video2pde"
MOVED = {"video2pde.calibration.front:FrontFit": "video2pde.front:FrontFit"}
"""Types that run folders of an earlier state know by another name."""
DROPPED = {
    "video2pde.calibration.fit:Fit": ("iterations", "path"),
    "video2pde.calibration.bootstrap:Bootstrap": ("form", "correlation"),
}
"""Fields that types had in an earlier state."""
TYPE_NAME = re.compile(rf"({PACKAGE}(?:\.[a-z_][a-z0-9_]*)+):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


def encode(value: Any) -> tuple[Tree, list[AnyArray]]:
    """Turn an artefact into a JSON tree and the arrays that it refers to by number."""
    encoder = _Encoder()
    return encoder.encode(value, "the artefact"), encoder.arrays


def decode(tree: Tree, arrays: Sequence[AnyArray]) -> Any:
    """Rebuild the artefact; whatever the tree may not name is refused."""
    return _Decoder(arrays).decode(tree)


class _Encoder:
    """Walk through an artefact and collect its arrays; an array that occurs twice is kept once."""

    def __init__(self) -> None:
        self.arrays: list[AnyArray] = []
        self._numbers: dict[int, int] = {}

    def encode(self, value: Any, where: str) -> Tree:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {TAG: "float", "text": repr(value)}
        if kind is list:
            return self._items(value, where)
        if kind is tuple:
            return {TAG: "tuple", "items": self._items(value, where)}
        if kind is dict:
            return {TAG: "dict", "items": self._entries(value, where)}
        if kind is np.ndarray:
            return {TAG: "array", "number": self._keep(value, where)}
        if isinstance(value, np.generic):
            return {TAG: "scalar", "number": self._keep(np.asarray(value), where)}
        if kind is slice:
            return {TAG: "slice", "items": self._items((value.start, value.stop, value.step), where)}
        if isinstance(value, Path):
            return {TAG: "path", "text": str(value)}
        if kind is Term:
            return {TAG: "term", "name": value.name, "parts": [list(part) for part in term_parts(value)]}
        if isinstance(value, Section) and kind is getattr(video2pde.settings, kind.__name__, None):
            return {TAG: "settings", "type": kind.__name__, "values": value.model_dump(mode="json")}
        if dataclasses.is_dataclass(kind):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}
            return {TAG: "object", "type": name_type(kind), "fields": self._entries(fields, where)}
        raise StageError(f"{where} cannot be stored: a {kind.__module__}.{kind.__qualname__} is no kind of artefact")

    def _items(self, values: Sequence[Any], where: str) -> list[Tree]:
        return [self.encode(value, f"{where}[{number}]") for number, value in enumerate(values)]

    def _entries(self, values: dict[Any, Any], where: str) -> dict[str, Tree]:
        for key in values:
            if type(key) is not str:
                raise StageError(f"{where} cannot be stored: the key {key!r} is not a text")
        return {key: self.encode(value, f"{where}.{key}") for key, value in values.items()}

    def _keep(self, array: AnyArray, where: str) -> int:
        if array.dtype.kind not in ARRAY_KINDS:
            raise StageError(f"{where} cannot be stored: an array of {array.dtype} holds more than numbers and text")
        # the array is held here, so its identity cannot be taken over by another one
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[id(array)]


def name_type(kind: type) -> str:
    """Name a dataclass of this package as ``module:class``; refuse every other type."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found: type | None = find_type(name)
    except InputError:
        found = None
    if found is not kind:
        raise StageError(f"a {name} cannot be stored: only dataclasses of {PACKAGE}, defined in a module, can")
    return name


def find_type(name: str) -> type:
    """Find the dataclass that ``module:class`` names, inside this package alone."""
    match = TYPE_NAME.fullmatch(MOVED.get(name, name)) if isinstance(name, str) else None
    # a module such as __main__ would run when it is imported
    if match is None or any(part.startswith("__") for part in match[1].split(".")):
        raise InputError(f"'{str(name)[:80]}' does not name a type of {PACKAGE}")
    try:
        found: Any = import_module(match[1])
        for part in match[2].split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise InputError(f"{PACKAGE} has no type '{name}'") from None
    if not isinstance(found, type) or not dataclasses.is_dataclass(found) or not _is_home(found, match[1], match[2]):
        raise InputError(f"'{name}' is not a dataclass of {PACKAGE}")
    return found


def _is_home(kind: type, module: str, name: str) -> bool:
    """Tell whether a class is defined in a module, or in one of a package that the module has become since."""
    return kind.__qualname__ == name and (kind.__module__ == module or kind.__module__.startswith(f"{module}."))


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


class _Decoder:
    """Rebuild an artefact from its tree, tag by tag."""

    def __init__(self, arrays: Sequence[AnyArray]) -> None:
        self._arrays = arrays

    def decode(self, tree: Tree) -> Any:
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        return self._rebuild(tree) if isinstance(tree, dict) else tree

    def _rebuild(self, node: dict[str, Any]) -> Any:
        match node.get(TAG):
            case "float":
                return _special_float(node["text"])
            case "tuple":
                return tuple(self._items(node["items"]))
            case "dict":
                return self._entries(node["items"])
            case "array":
                return self._array(node["number"])
            case "scalar":
                return self._array(node["number"])[()]
            case "slice":
                return slice(*self._items(node["items"]))
            case "path":
                return Path(node["text"])
            case "term":
                return Term.of(node["name"], *((derivative, density) for derivative, density in node["parts"]))
            case "settings":
                return _rebuild_settings(node)
            case "object":
                return self._object(node)
        raise InputError(f"unknown kind of value '{str(node.get(TAG))[:40]}'")

    def _items(self, items: Any) -> list[Any]:
        if not isinstance(items, list):
            raise InputError("a list was expected")
        return [self.decode(item) for item in items]

    def _entries(self, entries: dict[str, Tree]) -> dict[str, Any]:
        return {key: self.decode(value) for key, value in entries.items()}

    def _array(self, number: int) -> AnyArray:
        if type(number) is not int or not 0 <= number < len(self._arrays):
            raise InputError(f"there is no array {number!r}")
        return self._arrays[number]

    def _object(self, node: dict[str, Any]) -> Any:
        kind: Any = find_type(node["type"])
        fields = {field.name: field for field in dataclasses.fields(kind)}
        past = DROPPED.get(_full_name(kind), ())
        values = self._entries({name: entry for name, entry in node["fields"].items() if name not in past})
        needed = {name for name, field in fields.items() if not _has_default(field)}
        # beside those, an artefact of an earlier version may lack a field that has a default, and nothing else
        if not needed <= values.keys() <= fields.keys():
            raise InputError(f"the fields of {node['type']} are {', '.join(fields)}, not {', '.join(values)}")
        # through the constructor, so that the type's own checks are made
        result = kind(**{name: value for name, value in values.items() if fields[name].init})
        for name, value in values.items():
            if not fields[name].init:
                object.__setattr__(result, name, value)
        return result


def _special_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise InputError(f"'{str(text)[:40]}' is no special number")
    return float(text)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _rebuild_settings(node: dict[str, Any]) -> Section:
    kind = getattr(video2pde.settings, node["type"], None)
    if not isinstance(kind, type) or not issubclass(kind, Section):
        raise InputError(f"'{str(node['type'])[:80]}' is not a section of the settings")
    return kind.model_validate(node["values"])
