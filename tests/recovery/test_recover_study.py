"""Studies of twelve rendered films of known truth: what they know together, and what is said where they differ.

``tools/studies.py`` repeats these twenty times; here each is made once.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.recovery

FILMS = 12
TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module")
def studies() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        yield importlib.import_module("studies")


def judged(studies: ModuleType, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = studies.judge(kind, studies.study_films(kind, 0, FILMS, 1))
    return found


def test_twelve_films_of_one_law(studies: ModuleType) -> None:
    found = judged(studies, "one")
    for name in studies.TERMS:
        assert found[name]["holds"], found
        assert abs(found[name]["error"]) <= 0.003
        assert found[name]["width"] <= 1.3
    assert found["chance"] >= 0.05
    assert found["named"] == []


def test_a_coefficient_that_grows_with_a_condition(studies: ModuleType) -> None:
    found = judged(studies, "condition")
    assert found["chance"] < 0.05
    assert abs(found["slope"]["error"]) <= 0.03


def test_a_film_of_another_law_is_named(studies: ModuleType) -> None:
    assert judged(studies, "outlier")["named"] == [f"film{FILMS // 2:02d}"]
