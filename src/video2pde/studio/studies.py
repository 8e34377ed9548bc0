"""Studies, many films under one law, as the library and the comparison show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILMS = "films"
"""Folder of a study in which each film's run lies."""
KIND = "study"
NOTHING: dict[str, Any] = {
    "title": "",
    "verdict": "unfinished",
    "reason": "",
    "one_law": None,
    "another_law": [],
    "equation": "",
    "library": None,
    "terms": None,
    "units": {},
    "rrmse": None,
    "persistence": None,
}


def is_study(path: Path) -> bool:
    """Tell whether a folder is that of a study, finished or not: runs lie in its ``films``, and it is no run itself."""
    if (path / "result.json").is_file():
        return _read(path).get("kind") == KIND
    return not (path / "stages" / "film.json").is_file() and bool(_films(path))


def summarise_study(path: Path) -> dict[str, Any]:
    """Sum a study up: the shared law with its intervals, whether it is one law, and the error on films left out.

    ``rrmse`` and ``persistence`` are those of the film that the law of the others predicts worst.
    """
    films = _films(path)
    common = {"films": films, "failed": [], "seconds": None}
    if not (path / "result.json").is_file():
        return NOTHING | common
    try:
        return common | _summarise(_read(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"result.json is not one of this program's studies ({type(error).__name__}: {error})"
        return NOTHING | common | {"verdict": "unreadable", "problem": problem}


def _summarise(result: dict[str, Any]) -> dict[str, Any]:
    law = result["selected"] or {"library": None, "equation": {"text": ""}, "terms": {}}
    terms = {name: {key: entry[key] for key in ("value", "low", "high")} for name, entry in law["terms"].items()}
    left_out = (result["test"] or {}).get("leave_one_out", [])
    worst: dict[str, Any] = max(left_out, key=lambda entry: float(entry["rrmse_by_others"] or 0.0), default={})
    return {
        "title": str(result["title"]),
        "verdict": str(result["verdict"] or "no_law"),
        "reason": str(result["reason"]),
        "one_law": result["one_law"],
        "another_law": [str(film) for film in result["another_law"]],
        "failed": sorted(result["failed"]),
        "equation": str(law["equation"]["text"]),
        "library": law["library"],
        "terms": terms or None,
        "units": {name: str(entry.get("unit", "")) for name, entry in law["terms"].items()},
        "rrmse": worst.get("rrmse_by_others"),
        "persistence": worst.get("persistence"),
    }


def _films(path: Path) -> list[str]:
    """List the films whose runs lie in the study's folder; a link may lead anywhere, and counts as none."""
    try:
        found = [] if (path / FILMS).is_symlink() else sorted((path / FILMS).iterdir())
    except OSError:
        return []
    return [entry.name for entry in found if (entry / "stages").is_dir() and (entry / "settings.toml").is_file()]


def _read(path: Path) -> dict[str, Any]:
    try:
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}
