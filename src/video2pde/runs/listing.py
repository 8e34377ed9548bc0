"""What finished runs found, read from their ``result.json``, for a look at several side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from video2pde.errors import InputError
from video2pde.estimate import Estimate
from video2pde.files import require_regular
from video2pde.runs.folder import RESULT

UNFINISHED = "unfinished"
SCHEMA = 2
"""The newest form of ``result.json`` that is read; 1 had no test of fit, and no verdict ``approximation``."""


@dataclass(frozen=True)
class RunSummary:
    """Sum one run up.

    ``rrmse`` and ``persistence`` are relative errors on the test window, of the law and of the prediction that
    nothing changes; ``seconds`` the time of all stages. None: the run has no such number.
    """

    folder: str
    verdict: str
    library: str | None = None
    equation: str = ""
    terms: Mapping[str, Estimate] | None = None
    rrmse: float | None = None
    persistence: float | None = None
    seconds: float | None = None


def summarise_run(folder: Path) -> RunSummary:
    """Read what a run found; a folder with stages and no result yet is called unfinished."""
    path = folder / RESULT
    try:
        require_regular(path)
        result = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if (folder / "stages").is_dir():
            return RunSummary(str(folder), UNFINISHED)
        raise InputError(f"{folder} is not the folder of a run: it has no result.json") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a result written by video2pde ({error})") from None
    try:
        return _summarise(folder, result)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is not a result written by video2pde ({type(error).__name__}: {error})") from None


def _summarise(folder: Path, result: Mapping[str, Any]) -> RunSummary:
    if int(result.get("schema", 1)) > SCHEMA:
        raise InputError(
            f"{folder} was written by a newer video2pde: its result.json has schema {result['schema']}, and this one "
            f"reads up to {SCHEMA}; update video2pde"
        )
    law, test = result["selected"], result["test"] or {}
    return RunSummary(
        folder=str(folder),
        verdict=str(result["verdict"]),
        library=None if law is None else str(law["library"]),
        equation="" if law is None else str(law["equation"]["text"]),
        terms=None if law is None else {name: Estimate.from_json(entry) for name, entry in law["terms"].items()},
        rrmse=_number(test.get("rrmse")),
        persistence=_number(test.get("baselines", {}).get("persistence")),
        seconds=sum(float(seconds) for seconds in result["timings_s"].values()),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
