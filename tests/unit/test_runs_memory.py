"""Memory that a run will need: refused before any work, in one line."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from video2pde import machine
from video2pde.errors import InputError
from video2pde.field import Field, Grid
from video2pde.machine import available_memory, return_memory
from video2pde.runs import memory
from video2pde.runs.memory import check_memory, check_recording, estimate_memory
from video2pde.settings import load_settings

SETTINGS = load_settings(overrides=["run.workers=2"])


def test_a_paper_size_film_fits_and_a_huge_grid_does_not() -> None:
    paper = estimate_memory(1009, (200, 200), SETTINGS, (1080, 1920))
    # the benchmark compares it with the peak
    assert 1.2e9 < paper < 2.4e9
    check_memory(1009, (200, 200), SETTINGS, available=8_000_000_000)
    with pytest.raises(InputError, match=r"^1000 frames on a grid of 4000×4000 need about \d+\.\d GB .*--grid"):
        check_memory(1000, (4000, 4000), SETTINGS, available=8_000_000_000)


def test_a_film_of_any_length_fits_because_the_rest_goes_to_files() -> None:
    """What a few frames take does not grow with the film; large arrays stop growing at what they may take."""
    given = load_settings(overrides=["run.workers=2", "run.memory=1GB"])
    long = estimate_memory(20_000, (200, 200), given)
    assert long == estimate_memory(200_000, (200, 200), given)
    assert long > estimate_memory(200, (200, 200), given)
    check_memory(2_000, (512, 512), load_settings(overrides=["run.workers=2", "run.memory=2GB"]), available=6 * 2**30)


def test_the_limit_is_four_fifths_of_what_is_available() -> None:
    given = load_settings(overrides=["run.workers=2", "run.memory=1GB"])
    needed = estimate_memory(1000, (200, 200), given)
    check_memory(1000, (200, 200), given, available=round(needed / 0.79))
    with pytest.raises(InputError):
        check_memory(1000, (200, 200), given, available=round(needed / 0.81))


def test_the_estimate_grows_with_frames_grid_and_workers() -> None:
    base = estimate_memory(1000, (200, 200), SETTINGS, available=10**11)
    assert estimate_memory(2000, (200, 200), SETTINGS) > base
    assert estimate_memory(1000, (400, 200), SETTINGS) > base
    assert estimate_memory(1000, (200, 200), load_settings(overrides=["run.workers=8"])) > base
    assert estimate_memory(1000, (200, 200), SETTINGS, (40_000, 40_000)) > base


def test_the_machine_and_the_container_are_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert available_memory() > 1e8
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("100\n")
    assert available_memory() > 1e8
    (tmp_path / "memory.max").write_text("1100\n")
    assert available_memory() == 1000


def test_a_recording_is_judged_by_its_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[object, ...]] = []
    monkeypatch.setattr(memory, "check_memory", lambda *given: seen.append(given))
    saved = Field(np.ones((9, 5, 6)), np.arange(9.0), Grid(5, 6, 1.0, 1.0)).save(tmp_path / "field.npz")
    chosen = load_settings(overrides=["recording.start=1", "recording.every=2"])
    check_recording(saved, chosen)
    np.save(tmp_path / "stack.npy", np.ones((7, 30, 20), np.uint8))
    gridded = load_settings(overrides=["recording.grid=[15, 10]", "recording.fps=5", "recording.stop=4"])
    check_recording(tmp_path / "stack.npy", gridded)
    assert seen == [(4, (5, 6), chosen, (0, 0)), (4, (15, 10), gridded, (30, 20))]
    with pytest.raises(InputError, match="no such recording"):
        check_recording(tmp_path / "none.mp4", chosen)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked for what it holds")
def test_free_memory_goes_back_to_the_system() -> None:
    """Blocks below one that is in use stay with the C library until it is asked for them."""
    blocks = [bytes(50_000) for _ in range(2000)]
    last = blocks.pop()
    blocks.clear()
    before = psutil.Process().memory_info().rss
    return_memory()
    assert before - psutil.Process().memory_info().rss > 50e6
    assert len(last) == 50_000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_memory_that_was_freed_is_kept_for_the_next_array() -> None:
    """Under Dask's threshold every array of a megabyte costs its pages anew; told so, a process keeps them."""
    code = """
import resource, sys
import numpy as np
from video2pde.machine import keep_memory
if sys.argv[1] == "keep":
    assert keep_memory()
np.ones(2**17)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(200):
    np.ones(2**17)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    faults = {
        how: int(
            subprocess.run(
                [sys.executable, "-c", code, how],
                env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for how in ("plain", "keep")
    }
    assert faults["keep"] < 0.1 * faults["plain"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_threads_share_heaps() -> None:
    """Heaps of threads begin at multiples of 64 MiB: where their blocks lie tells how many there are."""
    code = """
import ctypes, sys, threading
from video2pde.machine import share_heaps
if sys.argv[1] == "shared":
    assert share_heaps()
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_size_t
places, together = set(), threading.Barrier(8)
def ask():
    together.wait()
    places.add(malloc(5000) >> 26)
    together.wait()
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(places))
"""
    found = {
        how: int(subprocess.run([sys.executable, "-c", code, how], check=True, capture_output=True, text=True).stdout)
        for how in ("own", "shared")
    }
    assert found["own"] >= 4
    assert found["shared"] <= 2
