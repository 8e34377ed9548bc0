"""Studies of twelve known-truth films: what they know together, and what is said where they differ.

``tools/studies.py`` repeats these twenty times; here each is made once.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.recovery

FILMS = 12


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "studies.py"
    spec = importlib.util.spec_from_file_location("studies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["KEPT"] = tmp_path_factory.mktemp("studies")
    return module


def judged(studies: ModuleType, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = studies.judge(kind, studies.repeat(kind, 0, FILMS, 1))
    return found


def test_twelve_films_of_one_law(studies: ModuleType) -> None:
    found = judged(studies, "one")
    for name in studies.TERMS:
        assert found[name]["holds"], found
        assert found[name]["width"] <= 1.3
    assert found["chance"] >= 0.05
    assert found["named"] == []


def test_a_coefficient_that_grows_with_a_condition(studies: ModuleType) -> None:
    found = judged(studies, "condition")
    assert found["chance"] < 0.05
    assert abs(found["slope"]) <= 0.1


def test_a_film_of_another_law_is_named(studies: ModuleType) -> None:
    assert judged(studies, "outlier")["named"] == [f"film{FILMS // 2:02d}"]
