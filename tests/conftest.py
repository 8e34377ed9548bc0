"""What all tests share: steady property tests, and the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# The same examples every time and no time limit: a busy machine must not fail a test.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steady")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(tmp_path: Path) -> Command:
    """Run ``video2pde`` with arguments, in ``tmp_path``, and return what it printed and its exit status."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            cli_command(*arguments),
            **{"cwd": tmp_path, "capture_output": True, "text": True, "check": False, "timeout": 300, **options},
        )

    return run


def cli_command(*arguments: object) -> list[str]:
    """Return the command line of ``video2pde`` in this Python."""
    return [sys.executable, "-m", "video2pde.cli", *map(str, arguments)]


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a developer's terminal settings out of what is compared."""
    for name in ("VIDEO2PDE_DEBUG", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    source = Path(__file__).resolve().parent.parent / "src"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))
