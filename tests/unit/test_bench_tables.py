"""The benchmarks' tables and page, and the run that writes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as bench
from benchmarks.support.running import run_apart
from benchmarks.support.tables import exceeds, format_value, to_markdown, to_tables

MEASURED = {"name": "a|b", "value": 0.51234, "unit": "s", "limit": 0.5}
PEER = {"method": "x", "time (s)": 12.345678, "structure": "right"}


def result(**changes: Any) -> dict[str, Any]:
    return {"module": "m", "title": "M", "notes": "", "failure": None, "rows": [MEASURED], "seconds": 1.2, **changes}


def test_a_limit_is_an_upper_bound() -> None:
    assert exceeds(MEASURED)
    assert not exceeds({**MEASURED, "limit": 0.6})
    assert not exceeds({"name": "", "value": 1e9})
    assert not exceeds(PEER)


def test_measurements_share_one_table() -> None:
    lines = to_tables([MEASURED, {"name": "c", "value": 3, "unit": ""}])
    assert lines[0] == "| measurement | value | unit | limit |"
    assert lines[1] == "| --- | ---: | --- | ---: |"
    assert lines[2] == "| a\\|b | 0.512 | s | 0.5 EXCEEDED |"
    assert lines[3] == "| c | 3 |  |  |"


def test_rows_with_other_columns_start_a_new_table() -> None:
    lines = to_tables([MEASURED, PEER])
    assert "| method | time (s) | structure |" in lines
    assert "| x | 12.35 | right |" in lines
    assert lines.count("") == 2


def test_what_is_not_a_number_is_a_dash() -> None:
    assert format_value(float("nan")) == "—"
    lines = to_tables([PEER, {**PEER, "time (s)": float("nan"), "structure": "failed"}])
    assert lines[1] == "| --- | ---: | --- |"
    assert lines[3] == "| x | — | failed |"


def test_the_page_names_machine_notes_and_failures() -> None:
    page = to_markdown({"cores": 2}, [result(notes="Why.\n"), result(rows=[], failure="ValueError: no")])
    assert "- cores: 2" in page
    assert "Why." in page
    assert "failed: ValueError: no" in page
    assert page.endswith("\n")


@pytest.mark.parametrize(("limit", "status"), [(1.0, 0), (0.1, 1)])
def test_a_run_stores_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], limit: float, status: int
) -> None:
    monkeypatch.setattr(bench, "run_apart", lambda name: result(module=name, rows=[{**MEASURED, "limit": limit}]))
    page = tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "growth", "--out", str(tmp_path), "--page", str(page)])
    assert bench.main() == status
    stored = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    assert stored["results"][0]["module"] == "growth"
    assert {"pysindy", "py-pde", "deepxde", "cores"} <= set(stored["machine"])
    assert (tmp_path / "latest.md").read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
    assert "## M" in capsys.readouterr().out


def test_single_modules_leave_the_page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "run_apart", lambda name: result(module=name, rows=[]))
    monkeypatch.setattr(bench, "PAGE", tmp_path / "benchmarks.md")
    for modules, written in ((["growth"], False), ([], True)):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *modules, "--out", str(tmp_path)])
        bench.main()
        assert (tmp_path / "benchmarks.md").exists() is written


def test_a_module_that_fails_is_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    found = run_apart("absent")
    assert found["failure"].startswith("ModuleNotFoundError")
    assert found["rows"] == []
    assert "benchmarks.absent" in capfd.readouterr().err


def test_helpers_are_no_benchmarks() -> None:
    assert {"peers", "growth", "literature"} <= set(bench.find_modules())
    assert "support" not in bench.find_modules()
