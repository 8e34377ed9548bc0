"""What all tests share: steady property tests, and the command line in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# A job that a shell starts in the background ignores SIGINT, and so would every process that a test starts: Ctrl-C is
# part of what is tested, so the test run listens to it again.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The same examples every time and no time limit: a busy machine must not fail a test.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steady")

Result = subprocess.CompletedProcess[str]


@pytest.fixture
def command_line() -> Callable[..., list[str]]:
    """Return the words that start ``video2pde`` with arguments in a process of its own."""
    return lambda *arguments: [sys.executable, "-m", "video2pde.cli", *map(str, arguments)]


@pytest.fixture
def cli(tmp_path: Path, command_line: Callable[..., list[str]]) -> Callable[..., Result]:
    """Run ``video2pde`` in a process of its own, in ``tmp_path``; give what it printed and its exit status."""

    def run(*arguments: object, **options: Any) -> Result:
        kept = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False, "timeout": 300, **options}
        return subprocess.run(command_line(*arguments), **kept)

    return run


@pytest.fixture
def quick_cli(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Run ``video2pde`` as ``cli`` does, but in this process, where the slow imports are done already."""
    from video2pde.cli import main

    def run(*arguments: object) -> Result:
        monkeypatch.chdir(tmp_path)
        capfd.readouterr()
        words = [str(word) for word in arguments]
        status = main(words)
        return subprocess.CompletedProcess(words, status, *capfd.readouterr())

    return run


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a developer's terminal settings out of what is compared."""
    for name in ("VIDEO2PDE_DEBUG", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    source = Path(__file__).resolve().parent.parent / "src"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out on Windows what it has not: signals to processes, limits on them, and /proc."""
    if sys.platform == "win32":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="Windows has no signals, limits or /proc"))
