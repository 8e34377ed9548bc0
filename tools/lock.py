"""Write the two constraints files from pyproject.toml: newest versions that fit, and the lowest ones allowed.

Run by ``make lock``. The newest versions are resolved for every supported Python; where one of them needs another
version of a package, the line carries a marker. With ``--keep`` the versions that constraints.txt has are kept, and
only what is new (a requirement, a Python) is added.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEWEST, LOWEST = ROOT / "constraints.txt", ROOT / "constraints-lowest.txt"


def read_requirements() -> tuple[list[str], list[str]]:
    """Return the requirements of the package itself, and all of them with every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own: list[str] = project["dependencies"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return own, own + [line for line in extras if not line.startswith(project["name"])]


def resolve(requirements: list[str], python: str, constraints: dict[str, str]) -> dict[str, str] | None:
    """Ask pip which versions it would install on ``python``; None where the constraints cannot be met."""
    with tempfile.TemporaryDirectory() as folder:
        limits, report = Path(folder) / "limits.txt", Path(folder) / "report.json"
        limits.write_text("".join(f"{name}=={version}\n" for name, version in constraints.items()), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--python-version", python, "--only-binary=:all:", "--target", folder]
        command += ["-c", str(limits), "--report", str(report), *requirements]
        if subprocess.run(command, check=False).returncode:
            return None
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"] for item in found}


def read_pins() -> dict[str, str]:
    """Read the versions of constraints.txt that hold on every Python."""
    lines = NEWEST.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#") and ";" not in line)


def lock(requirements: list[str], common: dict[str, str]) -> str:
    """Merge the versions of all Pythons into one constraints file; those in ``common`` are kept where they can be."""
    pins: dict[str, dict[str, str]] = {}
    for python in PYTHONS:
        found = resolve(requirements, python, common) or resolve(requirements, python, {})
        if found is None:
            raise SystemExit(f"pip finds no versions for Python {python}")
        common = common or found
        for name, version in found.items():
            pins.setdefault(name, {})[python] = version
    lines = ["# Written by `make lock`: what a fresh environment gets on Python " + ", ".join(PYTHONS) + "."]
    for name in sorted(pins):
        versions = pins[name]
        if len(set(versions.values())) == 1:
            lines.append(f"{name}=={next(iter(versions.values()))}")
        else:
            lines += [f'{name}=={version} ; python_version == "{python}"' for python, version in versions.items()]
    return "\n".join(lines) + "\n"


def lowest(requirements: list[str]) -> str:
    """Pin every requirement of the package to its lower bound."""
    lines = ["# Written by `make lock`: the lower bounds of pyproject.toml, which `make lowest` tests."]
    for line in requirements:
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
        if match is None:
            raise SystemExit(f"'{line}' in pyproject.toml is not of the form name>=version")
        lines.append(f"{match[1]}=={match[2]}")
    return "\n".join(lines) + "\n"


def main() -> None:
    own, everything = read_requirements()
    LOWEST.write_text(lowest(own), encoding="utf-8")
    kept = read_pins() if "--keep" in sys.argv[1:] else {}
    NEWEST.write_text(lock(everything, kept), encoding="utf-8")


if __name__ == "__main__":
    main()
