"""What lies in the folder: recordings, runs and studies, as the library shows them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from video2pde.errors import InputError
from video2pde.recording.pictures import PICTURE_SUFFIXES
from video2pde.recording.source import KNOWN_SUFFIXES
from video2pde.runs.listing import RunSummary, summarise_run, UNFINISHED
from video2pde.studio.folder import Folder
from video2pde.studio.studies import FILMS, is_study, summarise_study

DEPTH = 4
MOST = 2000
"""Entries shown at most: a page with more is of no use."""
FEW_PICTURES = 5
"""Pictures from which a folder counts as a recording."""


@dataclass(frozen=True)
class Card:
    """One recording, run or study: its name in the folder, when it changed (s since 1970), and what is known of it."""

    kind: str
    name: str
    changed: float
    version: str
    details: dict[str, Any]


def list_library(folder: Folder) -> dict[str, Any]:
    """List recordings, runs and studies, newest first; links that lead out of the folder are left out."""
    cards: list[Card] = []
    for card in _walk(folder, folder.root, 0):
        cards.append(card)
        if len(cards) >= MOST:
            break
    cards.sort(key=lambda card: (-card.changed, card.name))
    return {
        "folder": folder.root.name or str(folder.root),
        "cards": [asdict(card) for card in cards],
        "more": len(cards) >= MOST,
    }


def is_run(path: Path) -> bool:
    """Tell whether a folder is that of a run."""
    return is_worked_in(path) and not is_study(path)


def is_worked_in(path: Path) -> bool:
    """Tell whether a folder is that of a run or a study."""
    return (path / "stages").is_dir() and (path / "settings.toml").is_file()


def is_running(path: Path) -> bool:
    """Tell whether a process works in the folder of a run, without touching its lock."""
    import psutil

    holder = path / ".lock-holder"
    try:
        written = holder.stat().st_mtime
        process = psutil.Process(int(holder.read_text(encoding="ascii")))
        # a process that is younger than the note only has the number of one that is gone
        return bool(process.create_time() <= written + 1.0 and process.status() != psutil.STATUS_ZOMBIE)
    except (OSError, ValueError, psutil.Error):
        return False


def describe_run(folder: Folder, path: Path) -> Card:
    """Sum a run, or a study, up as a card."""
    result = path / "result.json"
    shown = result if result.is_file() else path / "settings.toml"
    study = is_study(path)
    try:
        details = summarise_study(path) if study else {**asdict(summarise_run(path)), "film": _film_of(result)}
    except InputError as error:
        details = {**asdict(RunSummary(str(path), "unreadable")), "problem": str(error), "film": None}
    details.pop("folder", None)
    details |= {"running": is_running(path), "page": (path / "report.html").is_file()}
    details["finished"] = details["verdict"] not in (UNFINISHED, "unreadable")
    return Card("study" if study else "run", folder.name(path), shown.stat().st_mtime, folder.version(shown), details)


def _walk(folder: Folder, at: Path, depth: int) -> Iterator[Card]:
    try:
        entries = sorted(at.iterdir())
    except OSError:
        return
    pictures = [entry for entry in entries if entry.suffix.lower() in PICTURE_SUFFIXES and entry.is_file()]
    if depth > 0 and len(pictures) >= FEW_PICTURES:
        yield _recording(folder, at, f"{len(pictures)} pictures")
        entries = [entry for entry in entries if entry not in set(pictures)]
    for entry in entries:
        if entry.name.startswith(".") or (entry.is_symlink() and not _stays(folder, entry)):
            continue
        try:
            if entry.is_dir():
                if is_worked_in(entry):
                    card = describe_run(folder, entry)
                    yield card
                    if card.kind == "study" and card.details["films"]:
                        yield from _walk(folder, entry / FILMS, depth + 1)
                elif depth < DEPTH:
                    yield from _walk(folder, entry, depth + 1)
            elif entry.suffix.lower() in KNOWN_SUFFIXES and entry.is_file():
                yield _recording(folder, entry, entry.suffix.lower()[1:])
        except OSError:
            continue  # it went away, or may not be read


def _recording(folder: Folder, path: Path, kind: str) -> Card:
    found = path.stat()
    size = found.st_size if path.is_file() else None
    return Card("recording", folder.name(path), found.st_mtime, folder.version(path), {"format": kind, "bytes": size})


def _stays(folder: Folder, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder.root)


def _film_of(result: Path) -> str | None:
    try:
        found = json.loads(result.read_text(encoding="utf-8"))["recording"]["path"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(found).removeprefix("./")
