"""Run the benchmarks and keep their figures with the machine and the versions they were measured with.

Usage: python -m benchmarks [MODULE ...] [--out FOLDER] [--page FILE]     (all modules by default)

Every module of this package takes part. Its ``run()`` returns rows {"name", "value", "unit"}, which may carry "limit",
the largest value allowed, or rows with columns of their own; its ``TITLE`` and ``NOTES`` stand above them. The tables
are printed and stored as latest.json and latest.md; a run of all modules also writes docs/benchmarks.md. The exit
status is 1 where a module failed or a limit was exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import platform
import sys
from datetime import datetime, UTC
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.support.running import run_apart
from benchmarks.support.tables import exceeds, to_markdown

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
LIBRARIES = ("numpy", "scipy", "numba", "jax", "av", "pysindy", "py-pde", "deepxde", "flax")


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
    modules = pkgutil.iter_modules([str(HERE)])
    return sorted(module.name for module in modules if not module.ispkg and not module.name.startswith("_"))


def store(folder: Path, name: str, text: str) -> None:
    """Write a file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{name}.tmp"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(folder / name)


def main() -> int:
    known = find_modules()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed, memory and accuracy.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of: {', '.join(known)}; all by default")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of latest.json and latest.md")
    parser.add_argument("--page", type=Path, help="page to write; default: docs/benchmarks.md if all modules run")
    options = parser.parse_args()
    if unknown := sorted(set(options.modules) - set(known)):
        parser.error(f"no benchmark is called {unknown[0]}; there are: {', '.join(known)}")
    machine = describe_machine()
    results = [run_apart(name) for name in options.modules or known]
    table = to_markdown(machine, results)
    print(table)
    stored = {"machine": machine, "results": results}
    store(options.out, "latest.json", json.dumps(stored, indent=2, ensure_ascii=False, default=float) + "\n")
    store(options.out, "latest.md", table)
    if page := options.page or (None if options.modules else PAGE):
        store(page.parent, page.name, table)
    failed = any(result["failure"] or any(map(exceeds, result["rows"])) for result in results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
