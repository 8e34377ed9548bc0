"""The examples in docstrings are run, and every public function has one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import video2pde

SOURCE = Path(video2pde.__file__).parent
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules_with_examples() -> list[str]:
    """Name the modules in whose source an example stands."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            found.append(".".join(parts).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_are_true(name: str) -> None:
    result = doctest.testmod(import_module(name), optionflags=OPTIONS, extraglobs={"np": np, "vp": video2pde})
    assert result.attempted > 0
    assert result.failed == 0


def public_functions() -> list[str]:
    return [name for name in video2pde.__all__ if inspect.isfunction(getattr(video2pde, name))]


@pytest.mark.parametrize("name", public_functions())
def test_public_functions_say_what_they_take_and_give(name: str) -> None:
    function = getattr(video2pde, name)
    text = inspect.getdoc(function) or ""
    sections = [line for line in text.splitlines() if line in ("Parameters", "Returns", "Examples")]
    assert sections == ["Parameters", "Returns", "Examples"][not inspect.signature(function).parameters :]


def test_a_wrong_example_would_be_seen() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(test, out=lambda _: None).failed == 1
