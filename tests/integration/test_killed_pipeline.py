"""The whole command, killed and run again: the result must not depend on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video2pde.field import Grid
from video2pde.recording.synth import exact_field, make_case, noisy

SETTINGS = (
    "--preset",
    "quick",
    "--no-figures",
    "--set",
    "weak.test_functions=200",
    "--set",
    "identifiability.stability_runs=5",
    "--set",
    "calibration.replicates=4",
)
LONGEST_S = 240.0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    field = exact_field(make_case("C"), Grid(48, 48, 200.0, 200.0), np.linspace(0, 34, 80))
    return noisy(field, 0.002, 3).save(tmp_path_factory.mktemp("recording") / "field.npz")


def start(recording: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "video2pde.cli", "run", str(recording), "--out", str(out), "--quiet", *SETTINGS]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ.copy())


def finish(recording: Path, out: Path) -> dict[str, Any]:
    process = start(recording, out)
    _, errors = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, errors.decode()
    result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result.pop("timings_s")
    return result


def kill_when(recording: Path, out: Path, stage: str, delay: float) -> None:
    """Kill the command ``delay`` seconds after the stage's file has appeared."""
    process = start(recording, out)
    began = time.monotonic()
    while process.poll() is None and not list((out / "stages").glob(f"*-{stage}.npz")):
        assert time.monotonic() - began < LONGEST_S
        time.sleep(0.01)
    time.sleep(delay)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate()


def differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Name every place at which two results differ, with both values."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        return [line for key in found for line in differences(found[key], expected[key], f"{path}/{key}")]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for index, (a, b) in pairs for line in differences(a, b, f"{path}[{index}]")]
    return [] if found == expected else [f"{path}: {found!r}, not {expected!r}"]


@pytest.mark.posix
def test_a_killed_run_continues_to_the_same_result(recording: Path, tmp_path: Path) -> None:
    whole = finish(recording, tmp_path / "whole")
    assert whole["verdict"] == "law"
    assert whole["selected"]["library"] == "C"
    rng = np.random.default_rng(0)
    for stage in ("discovery", "calibration", "selection"):
        kill_when(recording, tmp_path / "broken", stage, float(rng.uniform(0, 0.3)))
    assert differences(finish(recording, tmp_path / "broken"), whole) == []
    left = [
        path.name for path in (tmp_path / "broken").rglob(".*") if path.is_file() and not path.name.startswith(".lock")
    ]
    assert not [name for name in left if name.endswith((".npz", ".json", ".html"))]


def test_a_second_process_is_refused(recording: Path, tmp_path: Path) -> None:
    first = start(recording, tmp_path / "run")
    while not (tmp_path / "run" / "stages").exists() and first.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    second = start(recording, tmp_path / "run")
    _, errors = second.communicate(timeout=LONGEST_S)
    first.kill()
    first.communicate()
    assert second.returncode == 2
    assert b"in use" in errors
