"""The package from outside: what it needs, what it says of itself, and what importing it costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import video2pde

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT_NAMES = {"pillow": "PIL", "sse-starlette": "sse_starlette", "tomli-w": "tomli_w"}
LOADED_BY_OTHERS = {"imagecodecs"}  # by tifffile, for compressed pages
COMES_WITH = {"anyio", "czifile", "distributed", "liffile", "markupsafe", "nd2", "roifile", "xarray"}  # extras, too


def bounds(lines: list[str]) -> dict[str, str]:
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ")[0].split("==") for line in lines if not line.startswith("#"))


def imported() -> set[str]:
    """Name the top-level modules that the package imports anywhere."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"video2pde"}


def test_what_is_imported_is_required_and_what_is_required_is_imported() -> None:
    required = {IMPORT_NAMES.get(name, name) for name in bounds(PROJECT["dependencies"])}
    assert imported() - required <= COMES_WITH
    assert required - imported() == LOADED_BY_OTHERS


def test_every_requirement_has_a_lower_bound_that_is_tested() -> None:
    own = bounds(PROJECT["dependencies"])
    assert len(own) == len(PROJECT["dependencies"])
    assert pins("constraints-lowest.txt") == own


def test_the_lock_covers_every_requirement() -> None:
    locked = pins("constraints.txt")
    wanted = dict(bounds(PROJECT["dependencies"]))
    for lines in PROJECT["optional-dependencies"].values():
        wanted |= bounds(lines)
    for name, lowest in wanted.items():
        assert name in locked, f"run `make lock`: {name} is missing"
        assert _numbers(locked[name]) >= _numbers(lowest), name


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def test_every_dependency_is_justified() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", text))
    named = {name for lines in PROJECT["optional-dependencies"].values() for name in bounds(lines)}
    assert named | set(bounds(PROJECT["dependencies"])) <= words


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    listed = set((ROOT / "docs" / "index.md").read_text(encoding="utf-8").split())
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed


def test_the_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {video2pde.__version__}\n" in citation
    assert f"## {video2pde.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", video2pde.__all__)
def test_every_public_name_is_there_and_explained(name: str) -> None:
    thing = getattr(video2pde, name)
    assert name.startswith("_") or thing.__doc__


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = video2pde.nothing


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, video2pde; print(sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    others = [name for name in ast.literal_eval(done.stdout) if not name.startswith("_")]
    assert others == ["video2pde"]


def test_no_file_names_the_place_where_it_was_written() -> None:
    """Absolute paths of one machine are of no use on another."""
    pattern = re.compile(r"/(?:home|root|work|Users)/\w")
    kinds = ("*.py", "*.md", "*.toml", "*.txt", "*.cff", "Makefile")
    folders = [ROOT / name for name in ("src", "tests", "benchmarks", "docs", "examples", "tools")]
    files = [path for folder in folders for kind in kinds for path in folder.rglob(kind)]
    files += [path for kind in kinds for path in ROOT.glob(kind)]
    assert [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_the_makefile_runs_in_a_path_with_spaces() -> None:
    """Make's own file lists break at spaces, so the Makefile names no absolute path."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(CURDIR)" not in text
    assert "$(PWD)" not in text
