"""Kernels that are compiled ahead, beside a run: once for a cache, and not where there is no core for it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from video2pde.rollout import ahead
from video2pde.rollout.kernels import compile_kernel, Structure
from video2pde.settings import load_settings, Settings
from video2pde.terms import CATALOGUE

SECONDS = 120
"""How long a busy machine may take to compile a few kernels."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Watch what is started, with an empty cache."""
    monkeypatch.setenv("VIDEO2PDE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    commands: list[list[str]] = []
    really = subprocess.Popen

    def start(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return really(command, **options)

    monkeypatch.setattr(ahead.subprocess, "Popen", start)
    return commands


def settings(workers: int) -> Settings:
    return load_settings(overrides={"run.workers": workers, "regression.law": "laplacian"})


def test_kernels_are_there_for_the_next_run(started: list[list[str]], tmp_path: Path) -> None:
    began = time.monotonic()
    with ahead.compiled_ahead(settings(2), "code"):
        while not list((tmp_path / "cache").glob("ahead_*")) and time.monotonic() - began < SECONDS:
            time.sleep(0.2)
    assert len(started) == 1
    kernels = {path.name for path in (tmp_path / "cache").glob("kernel_*.py")}
    compile_kernel.cache_clear()
    compile_kernel(Structure((CATALOGUE["laplacian"],)))
    assert {path.name for path in (tmp_path / "cache").glob("kernel_*.py")} == kernels != set()
    with ahead.compiled_ahead(settings(2), "code"):
        pass
    assert len(started) == 1  # all is there
    with ahead.compiled_ahead(settings(2), "other code"):
        pass
    assert len(started) == 2  # and was ended with the run


def test_a_single_core_is_left_to_the_run(started: list[list[str]]) -> None:
    with ahead.compiled_ahead(settings(1), "code"):
        pass
    assert started == []


def test_nothing_is_compiled_that_cannot_be_kept(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VIDEO2PDE_CACHE", str(tmp_path / "file" / "cache"))
    with ahead.compiled_ahead(settings(2), "code"):
        pass
    assert started == []
