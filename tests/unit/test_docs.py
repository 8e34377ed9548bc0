"""The documentation, without building it: links, cells, settings, and imports as the architecture page has them."""

from __future__ import annotations

import ast
import importlib.util
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import video2pde as vp
from video2pde.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXECUTED = [page for page in PAGES if page.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb")]
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDEST = 90
"""Characters of a line of code that fit beside the page's navigation."""


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def cells(page: Path) -> Iterator[tuple[str, str]]:
    """Return every cell of a page as its tags and its code."""
    for content in CELL.findall(page.read_text(encoding="utf-8")):
        tags, code = re.fullmatch(r"(?::tags: \[([\w, -]*)\]\n\n)?(.*)", content, re.DOTALL).groups(default="")
        yield tags, code


def test_the_executed_pages_are_there() -> None:
    expected = {"tutorial.md", "method.md", "light.md", "camera.md"}
    expected |= {f"examples/{page}.md" for page in ("command-line", "step-by-step", "microscope", "frap", "own-term")}
    assert {name(page) for page in EXECUTED} == expected


def test_every_page_is_in_the_index() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8").split()
    assert {name(page).removesuffix(".md") for page in PAGES} - {"index"} <= set(listed)


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_an_executed_page_checks_what_it_claims(page: Path) -> None:
    hidden = [code for tags, code in cells(page) if tags == "remove-cell"]
    assert any("assert " in code for code in hidden), "a hidden cell must assert what the text says"


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_cells_parse_and_fit_the_page(page: Path) -> None:
    found = list(cells(page))
    assert len(found) >= 5
    for tags, code in found:
        if not code.startswith("%"):
            ast.parse(code)
        if tags != "remove-cell":
            assert max(map(len, code.splitlines())) <= WIDEST


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_commands_on_a_page_are_quiet(page: Path) -> None:
    """Progress and timings of one machine are noise on a page."""
    for _, code in cells(page):
        for command in re.findall(
            r"^video2pde (?:run|field|simulate|synth|preview)\b(?:.*\\\n)*.*", code, re.MULTILINE
        ):
            assert re.search(r"--quiet|--list|2> ", command), command


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\{doc\}`([\w./-]+)`", text):
        generated = target in ("settings", "api")
        assert generated or (page.parent / f"{target}.md").exists(), target
    for target in re.findall(r"\]\(((?:\.\./)?img/[\w.-]+)\)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_settings_on_a_page_are_known(page: Path) -> None:
    for assignment in re.findall(r"--set ([\w.]+=[\w.]+)", page.read_text(encoding="utf-8")):
        if not assignment.endswith("key=value"):
            load_settings(overrides=[assignment])


def test_every_picture_is_shown() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "README.md"])
    assert [path.name for path in (DOCS / "img").iterdir() if path.name not in shown] == []


# --- who may import whom ------------------------------------------------------------------------------------------


def layers() -> dict[str, int]:
    """Read the list of the page on architecture: the top may import what stands below it."""
    section = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## Who may import whom")[1]
    lines = re.findall(r"^(\d+)\. (.*)$", section, re.MULTILINE)
    return {module: int(number) for number, names in lines for module in re.findall(r"`(\w+)`", names)}


def imports(path: Path) -> set[str]:
    """Name the parts of video2pde that a module imports, but for the sake of types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "video2pde"
        for alias in node.names
    }
    return {module.split(".")[1] for module in names if module.startswith("video2pde.")}


def breaches(order: dict[str, int]) -> list[str]:
    source = ROOT / "src" / "video2pde"
    found = []
    for path in sorted(source.rglob("*.py")):
        part = path.relative_to(source).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        allowed = {other for other, rank in order.items() if rank >= order[part]} | {"__version__"}
        found += [f"{part} imports {other}" for other in sorted(imports(path) - allowed)]
    return found


def test_imports_point_down_the_list_of_the_architecture_page() -> None:
    order = layers()
    assert breaches(order) == []
    # a list that is wrong must not pass: with terms above everything, all that use them break the rule
    assert "discovery imports terms" in breaches({**order, "terms": 0})


def test_every_part_of_the_package_has_its_place() -> None:
    source = ROOT / "src" / "video2pde"
    parts = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__"} == set(layers())


def test_the_figures_of_a_budget_are_written_from_a_run() -> None:
    """The page on intervals is refreshed by a script; what it writes adds up."""
    spec = importlib.util.spec_from_file_location("interval_page", ROOT / "tools" / "interval_page.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    truth = {"case": "A", "law": {"laplacian": 1.0}, "size": (40, 40), "frames": 60, "noise": 0.002, "crf": 0}
    section = script.write_section(vp.example_run(), truth)
    halves = [float(half) for half in re.findall(r"([\d.]+)²", section)]
    total = float(re.findall(r"\) = ([\d.e-]+), so β", section)[0])
    assert math.hypot(*halves) == pytest.approx(total, rel=0.1)
    page = script.PAGE.read_text(encoding="utf-8")
    refreshed = script.refresh(page, section)
    assert section in refreshed
    assert refreshed.split(script.END)[1] == page.split(script.END)[1]
