"""Run the benchmarks and keep their figures with the machine and the versions they were measured with.

Usage: python -m benchmarks [MODULE ...] [--out FOLDER]     (all modules by default)

Every module of this package that has a ``run()`` takes part. It returns rows {"name", "value", "unit"}; a row may carry
"limit", the largest value allowed. The table is printed and stored as latest.json and latest.md; the exit status is 1
where a module failed or a limit was exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import platform
import sys
import time
import traceback
from datetime import datetime, UTC
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARIES = ("numpy", "scipy", "numba", "jax", "av")


def describe_machine() -> dict[str, Any]:
    """Describe the processor, the system and the versions of what was measured."""
    from video2pde import __version__

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "video2pde": __version__,
        **{name: _version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def find_modules() -> list[str]:
    """Name the modules of this package that hold benchmarks."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE)]) if not module.name.startswith("_"))


def run_module(name: str) -> dict[str, Any]:
    """Run one module; a failure is a result too."""
    print(f"benchmarks.{name} ...", file=sys.stderr, flush=True)
    began = time.perf_counter()
    try:
        rows = list(import_module(f"benchmarks.{name}").run())
        failure = None
    except Exception as error:
        traceback.print_exc()
        rows, failure = [], f"{type(error).__name__}: {error}"
    return {"module": name, "seconds": round(time.perf_counter() - began, 1), "failure": failure, "rows": rows}


def exceeds(row: dict[str, Any]) -> bool:
    """Tell whether a row breaks its limit."""
    return row.get("limit") is not None and row["value"] > row["limit"]


def to_markdown(machine: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """Write the machine and all rows as a page."""
    lines = ["# Benchmarks", "", *(f"- {key}: {value}" for key, value in machine.items()), ""]
    for result in results:
        lines += [f"## {result['module']} ({result['seconds']} s)", ""]
        if result["failure"]:
            lines += [f"failed: {result['failure']}", ""]
        if not result["rows"]:
            continue
        lines += ["| measurement | value | unit | limit |", "| --- | ---: | --- | ---: |"]
        for row in result["rows"]:
            limit = "" if row.get("limit") is None else f"{row['limit']:g}{' EXCEEDED' if exceeds(row) else ''}"
            name = str(row["name"]).replace("|", "\\|")
            lines.append(f"| {name} | {_number(row['value'])} | {row.get('unit', '')} | {limit} |")
        lines.append("")
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def store(folder: Path, name: str, text: str) -> None:
    """Write a file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{name}.tmp"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(folder / name)


def main() -> int:
    known = find_modules()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(known)}; all by default")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of latest.json and latest.md")
    options = parser.parse_args()
    if unknown := sorted(set(options.modules) - set(known)):
        parser.error(f"no benchmark is called {unknown[0]}; there are: {', '.join(known)}")
    machine = describe_machine()
    results = [run_module(name) for name in options.modules or known]
    table = to_markdown(machine, results)
    print(table)
    stored = {"machine": machine, "results": results}
    store(options.out, "latest.json", json.dumps(stored, indent=2, ensure_ascii=False, default=float) + "\n")
    store(options.out, "latest.md", table)
    failed = any(result["failure"] or any(map(exceeds, result["rows"])) for result in results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
