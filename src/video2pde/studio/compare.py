"""Runs and studies side by side: coefficients with intervals, errors, and the settings in which they differ."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from video2pde.errors import InputError
from video2pde.settings import load_settings, PRESETS, Section, Settings
from video2pde.studio.folder import Folder
from video2pde.studio.library import describe_run, is_worked_in

MOST = 8


def compare_runs(folder: Folder, names: Sequence[str]) -> dict[str, Any]:
    """Put finished runs and studies side by side; of a study, its shared law."""
    if not 1 <= len(names) <= MOST:
        raise InputError(f"pick one to {MOST} runs or studies")
    runs = []
    for name in dict.fromkeys(names):
        path = folder.find(name)
        if not is_worked_in(path):
            raise InputError(f"'{name}' is not the folder of a run or a study")
        card = describe_run(folder, path)
        more = _of_study(card.details) if card.kind == "study" else _more(path)
        runs.append({"name": name, "kind": card.kind, **card.details, **more})
    return {"runs": runs, "differences": _differences(folder, [run["name"] for run in runs])}


def _more(path: Path) -> dict[str, Any]:
    """Read what a card does not show: units, all errors on the held-out frames, the reason of the verdict."""
    try:
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
        law = result["selected"]
        terms = {} if law is None else law["terms"]
        test = result["test"] or {}
        return {
            "units": {name: str(entry.get("unit", "")) for name, entry in terms.items()},
            "errors": {key: test.get(key) for key in ("rrmse", "front_rmse", "centroid_rmse", "one_step_rrmse")},
            "baselines": test.get("baselines", {}),
            "reason": result.get("reason", ""),
            "length": result["recording"].get("unit", ""),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {"units": {}, "errors": {}, "baselines": {}, "reason": "", "length": ""}


def _of_study(details: dict[str, Any]) -> dict[str, Any]:
    """Say of a study what a run's comparison needs; lengths are those of its units."""
    relative = any("image unit" in unit for unit in details["units"].values())
    return {"errors": {"rrmse": details["rrmse"]}, "baselines": {}, "length": "image units" if relative else ""}


def _differences(folder: Folder, names: Sequence[str]) -> list[dict[str, Any]]:
    """List the settings whose values are not the same in all runs."""
    flat = [_flatten(_settings(folder.root / name)) for name in names]
    keys = sorted({key for values in flat for key in values})
    rows = []
    for key in keys:
        values = [values.get(key, "–") for values in flat]
        if any(value != values[0] for value in values):
            rows.append({"key": key, "values": values})
    return rows


def _settings(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((path / "settings.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}


def _flatten(values: dict[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= _flatten(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = json.dumps(value, ensure_ascii=False)
    return found


def gather_settings(preset: str) -> dict[str, Any]:
    """List every setting of a preset with its value and what it means."""
    if preset not in PRESETS:
        raise InputError(f"unknown preset '{preset}'; there are: {', '.join(PRESETS)}")
    chosen = load_settings(preset).model_dump(mode="json")
    sections = {}
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            sections[name] = {
                "title": (section.__doc__ or "").strip().rstrip("."),
                "keys": [
                    {"key": key, "value": chosen[name][key], "meaning": entry.description or ""}
                    for key, entry in section.model_fields.items()
                ],
            }
    return {"preset": preset, "presets": list(PRESETS), "sections": sections}
