"""The report of a run, taken out of its file: the document and its films are data, and data alone is handed on.

A run's folder may come from somebody else. The script in its ``report.html`` is not used: the studio shows the
document with its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from video2pde.errors import InputError

DOCUMENT = re.compile(rb'<script type="application/json" id="document">(.*?)</script>', re.DOTALL)
FILM = re.compile(rb'<script type="text/plain" id="film-(\d{1,4})">([A-Za-z0-9+/=]*)</script>')
MOST_BYTES = 64_000_000


@dataclass(frozen=True, eq=False)
class PageData:
    """What a report's file holds: the document (JSON text) and its films (base64 texts by number)."""

    document: bytes
    films: dict[int, bytes]


def read_page(path: Path) -> PageData:
    """Read a report's file; refuse one that is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path.name} is too large to be a report")
        text = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the report cannot be read: {error.strerror or error}; 'video2pde report' writes it anew"
        ) from None
    match = DOCUMENT.search(text)
    if match is None:
        raise InputError(f"{path.name} is not a report written by video2pde; 'video2pde report' writes it anew")
    document = match[1]
    try:
        parsed: Any = json.loads(document)
    except ValueError as error:
        raise InputError(f"the report's document is damaged ({error}); 'video2pde report' writes it anew") from None
    if not isinstance(parsed, dict) or "head" not in parsed or "sections" not in parsed:
        raise InputError("the report's document is not one of this program; 'video2pde report' writes it anew")
    return PageData(document, {int(number): data for number, data in FILM.findall(text)})
