"""Run a module of benchmarks in a process of its own."""

from __future__ import annotations

import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run_module(name: str) -> dict[str, Any]:
    """Run one module; a failure is a result too."""
    print(f"benchmarks.{name} ...", file=sys.stderr, flush=True)
    began = time.perf_counter()
    result: dict[str, Any] = {"module": name, "title": name.capitalize(), "notes": "", "failure": None, "rows": []}
    try:
        module = import_module(f"benchmarks.{name}")
        result["title"], result["notes"] = getattr(module, "TITLE", result["title"]), getattr(module, "NOTES", "")
        result["rows"] = list(module.run())
    except Exception as error:
        traceback.print_exc()
        # the page is committed: it shall not name this machine's folders
        result["failure"] = f"{type(error).__name__}: {error}".replace(str(ROOT), ".")
    return {**result, "seconds": round(time.perf_counter() - began, 1)}


def run_apart(name: str) -> dict[str, Any]:
    """Run one module in a process of its own: a process inherits the peak of memory of the one that starts it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run_module, name).result()
