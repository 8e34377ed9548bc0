"""Results of films that are kept as soon as they are there, so that an interrupted run continues."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def fingerprint() -> str:
    """Hash the sources, so that a result of other code is not taken for one of this."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def recall(
    path: Path,
    sources: str | None,
    compute: Callable[[], dict[str, Any]],
    say: Callable[[dict[str, Any]], str],
    again: bool = False,
) -> dict[str, Any]:
    """Return the result kept at ``path`` where it is one of these ``sources`` (None: of any), or compute and keep it.

    ``say`` writes a line about a new one; ``again``: compute it in any case.
    """
    if path.exists() and not again:
        known = json.loads(path.read_text(encoding="utf-8"))
        if sources is None or known["sources"] == sources:
            return dict(known)
    result = compute() if sources is None else {**compute(), "sources": sources}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(path)
    print(f"  {say(result)}", file=sys.stderr, flush=True)
    return result


def show(table: str, page: Path | None) -> None:
    """Print a table, and write it where a page is wanted."""
    print(table)
    if page is not None:
        page.write_text(table, encoding="utf-8")
