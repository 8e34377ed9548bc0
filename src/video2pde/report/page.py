"""One file that opens anywhere: the document, its films and the built bundle, with no request to a network.

The document travels as JSON in a data block and the films as base64 beside it. The bundle builds the page
from them node by node, so that text from outside is never read as markup.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import zlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from video2pde.estimate import Estimate
from video2pde.files import atomic_write
from video2pde.numbers import format_estimate, format_number
from video2pde.report.document import (
    Check,
    Code,
    Coefficient,
    Column,
    Equation,
    Film,
    Heatmap,
    Image,
    Math,
    Page,
    Play,
    Player,
    Quantity,
    Strong,
    Table,
)
from video2pde.report.mathml import latex_to_tree

_SIGNIFICANT = 7
_NOT_IN_SCRIPT = str.maketrans(
    {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)


def write_page(page: Page, path: str | Path) -> Path:
    """Write the page as one HTML file, whole or not at all."""
    target = Path(path)
    text = render_page(page)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def render_page(page: Page) -> str:
    """Return the page as one HTML text."""
    packed, films = pack(page)
    document = json.dumps(packed, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    style = _static("report.css")
    # the laws come first: the page's own script finds them when it is run
    laws = {item.law: item.source for section in page.sections for item in section.items if isinstance(item, Play)}
    scripts = [*laws.values(), _static("report.js")]
    for name, text in (*(("script", text) for text in scripts), ("style", style)):
        if f"</{name}" in text or "<!--" in text:
            raise ValueError(f"the built {name} cannot be inlined: it contains '</{name}' or '<!--'")
    return _template().render(
        page=page,
        document=Markup(document.translate(_NOT_IN_SCRIPT)),
        films=[Markup(film) for film in films],
        scripts=[Markup(text) for text in scripts],
        style=Markup(style),
        script_hashes=[base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts],
    )


def pack(value: Any) -> tuple[Any, list[str]]:
    """Turn a page, or a part of one, into what JSON can hold, and its films into base64 texts that it numbers."""
    films: list[str] = []
    return _plain(value, films), films


@cache
def _static(name: str) -> str:
    return resources.files("video2pde.report").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_static("page.html"))


def _plain(value: Any, films: list[str]) -> Any:
    """Turn a document into what JSON can hold; films leave their payload in ``films``."""
    match value:
        case None | bool() | str():
            return value
        case int() | float() | np.number():
            return _number(value)
        case np.ndarray():
            return _plain(value.tolist(), films)
        case tuple() | list() | range():
            return [_plain(entry, films) for entry in value]
        case Table():
            return _fields(value, films) | {"rows": [_row(row, value.columns) for row in value.rows]}
        case Math() | Equation():
            return _fields(value, films) | {"tree": latex_to_tree(value.latex)}
        case Coefficient():
            shown, interval = format_estimate(value.estimate)
            return _fields(value, films) | value.estimate.to_json() | {"shown": shown, "interval": interval}
        case Quantity():
            known = Estimate(math.nan) if value.estimate is None else value.estimate
            return _fields(value, films) | {key: _plain(end, films) for key, end in known.to_json().items()}
        case Heatmap():
            texts = [[format_number(float(v), value.format) for v in row] for row in value.values]
            return _fields(value, films) | {"texts": texts}
        case Image():
            data = base64.b64encode(value.data).decode()
            return {"kind": "image", "source": f"data:{value.media_type};base64,{data}", "alt": value.alt} | {
                "caption": _plain(value.caption, films)
            }
        case Film():
            packed = base64.b64encode(value.payload).decode()
            if packed not in films:  # the same film may be shown twice
                films.append(packed)
            return _fields(dataclasses.replace(value, payload=b""), films) | {"payload": films.index(packed)}
        case Player():
            return _fields(value, films) | {"mask": None if value.mask is None else _mask(value.mask)}
        case Play():
            outside = None if value.outside is None else _mask(value.outside)
            return _fields(value, films) | {"outside": outside, "flow": _pack_fields(value.flow, films)}
        case bytes():
            return None
    if dataclasses.is_dataclass(value):
        return _fields(value, films)
    raise TypeError(f"a page cannot hold a {type(value).__name__}")


def _fields(value: Any, films: list[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {"kind": type(value).__name__.lower()}
    for entry in dataclasses.fields(value):
        if (entry.name, type(value)) not in _OWN_FORM:
            plain[entry.name] = _plain(getattr(value, entry.name), films)
    return plain


_OWN_FORM = {
    ("estimate", Coefficient),
    ("estimate", Quantity),
    ("rows", Table),
    ("mask", Player),
    ("payload", Film),
    ("outside", Play),
    ("source", Play),
    ("flow", Play),
}


def _number(value: Any) -> float | int | None:
    """Shorten a number to what a chart can show; JSON has no NaN, so that becomes null."""
    if isinstance(value, int | np.integer):
        return int(value)
    return float(f"{float(value):.{_SIGNIFICANT}g}") if np.isfinite(value) else None


def _row(row: tuple[Any, ...], columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    return [_cell(cell, column.format) for cell, column in zip(row, columns, strict=True)]


def _cell(cell: Any, spec: str) -> dict[str, Any]:
    """Return a table cell as text, with what sorts it and what marks it."""
    match cell:
        case str():
            return {"text": cell, "sort": cell}
        case bool() | Check():
            check = cell if isinstance(cell, Check) else Check(cell)
            word = check.text or {True: "pass", False: "fail", None: "not applicable"}[check.passed]
            state = {True: "pass", False: "fail", None: "none"}[check.passed]
            return {"text": word, "sort": {"pass": 0, "fail": 1, "none": 2}[state], "state": state}
        case Estimate():
            shown, interval = format_estimate(cell, spec)
            return {"text": shown, "interval": interval, "sort": _number(cell.value)}
        case Math():
            return {"text": cell.plain, "sort": cell.plain, "tree": latex_to_tree(cell.latex)}
        case Code() | Strong():
            return {"text": cell.text, "sort": cell.text, "face": type(cell).__name__.lower()}
        case None:
            return {"text": "–", "sort": None}
    number = cell.item() if isinstance(cell, np.generic) else cell
    return {"text": format_number(number, spec), "sort": _number(number)}


def _mask(mask: Any) -> str:
    """Pack a mask's bits row by row, deflated, in base64."""
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


def _pack_fields(fields: Any, films: list[str]) -> dict[str, Any] | None:
    """Deflate fields (l, 2, y, x) of 32-bit numbers into a text of their own, beside the films."""
    if fields is None:
        return None
    films.append(base64.b64encode(zlib.compress(np.ascontiguousarray(fields, "<f4").tobytes(), 6)).decode())
    return {"payload": len(films) - 1, "fields": fields.shape[0]}
