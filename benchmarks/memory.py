"""Memory by stage: the most that a run holds while each stage works, in multiples of the field.

A noisy field of law C goes through the whole pipeline. What the program itself takes (the libraries, compiled code, the
figures) is measured first, by a run of a small field in the same process, and taken off; the field itself counts.
Beside it a field that is larger than ``run.memory`` allows, whose large arrays lie in files.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from video2pde.field import Grid
from video2pde.machine import return_memory
from video2pde.pipeline import run_pipeline
from video2pde.recording.synth import exact_field, find_preset, noisy
from video2pde.runs.events import QuietEvents
from video2pde.settings import load_settings, Settings

TITLE = "Memory"
SIZE, FRAMES, FEW_FRAMES = 200, 1009, 60
LIMIT = 4.0
"""Fields that a stage may hold, the field itself included."""
ALLOWED, ALLOWED_FRAMES = "64MB", 1009
"""Memory for large arrays, and frames of a field that is larger."""
INTERVAL = 0.005
NOTES = f"""\
Peak resident memory of each stage over what the program takes without a film, divided by the size of the field
({SIZE}×{SIZE}×{FRAMES} in single precision). The run beside it may take {ALLOWED} for large arrays
(`run.memory`) with a field of {4 * SIZE * SIZE * ALLOWED_FRAMES / 1e6:.0f} MB: what it holds beyond the program is
what a few frames take while they pass, whatever the length of the film. Pages of mapped files, which the system takes
back whenever it needs them, count in the first run and not in the second.

A field of 512×512×2000 (2.1 GB, noisy, law A named, 10 replicates, `run.memory = "2GB"`) was run by hand on 2026-11-19,
with two cores: 375 s, at most 2.4 GiB of memory of its own, and 6.3 GiB with mapped files, while it was read.
"""


def resident(mapped: bool) -> float:
    """Return the resident bytes of this process, with or without pages of mapped files."""
    kinds = ("RssAnon", "RssShmem", *(("RssFile",) if mapped else ()))
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line.startswith(kinds))


@dataclass
class Watch(QuietEvents):
    """Note the peak of every stage."""

    mapped: bool
    peaks: dict[str, float] = field(default_factory=dict)
    highest: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    def stage(self, name: str, title: str) -> None:
        super().stage(name, title)
        self.highest = resident(self.mapped)

    def done(self, name: str, seconds: float, cached: bool) -> None:
        super().done(name, seconds, cached)
        self.peaks[name] = max(self.highest, self.peaks.get(name, 0.0))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the memory every few milliseconds."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(INTERVAL):
                self.highest = max(self.highest, resident(self.mapped))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def save_film(folder: Path, size: int, frames: int) -> Path:
    """Make the noisy field of law C."""
    case = find_preset("C")
    exact = exact_field(case, Grid(size, size, 200.0, 200.0), np.linspace(0, case.duration, frames))
    return noisy(exact, 0.005, 1).save(folder / f"{size}-{frames}.npz")


def measure(film: Path, settings: Settings, mapped: bool) -> dict[str, float]:
    """Run the pipeline on a field; return the peak of every stage, in bytes."""
    watch = Watch(mapped)
    with watch.watching():
        run_pipeline(film, film.with_suffix(""), settings, events=watch)
    return watch.peaks


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = load_settings(overrides={"run.workers": 2})
        little = load_settings(overrides={"run.workers": 2, "run.memory": ALLOWED})
        measure(save_film(folder, SIZE // 2, FEW_FRAMES), plain, True)  # loads and compiles everything
        return_memory()
        base, anonymous = resident(True), resident(False)
        peaks = measure(save_film(folder, SIZE, FRAMES), plain, True)
        return_memory()
        beyond = measure(save_film(folder, SIZE, ALLOWED_FRAMES), little, False)
    size, larger = 4.0 * SIZE * SIZE * FRAMES, 4.0 * SIZE * SIZE * ALLOWED_FRAMES
    rows: list[dict[str, Any]] = [{"name": "the program itself", "value": base / 2**20, "unit": "MiB"}]
    for stage, peak in peaks.items():
        rows.append({"name": f"{stage}, peak / field", "value": (peak - base) / size, "unit": "×", "limit": LIMIT})
    for stage, peak in beyond.items():
        excess = (peak - anonymous) / 2**20
        rows.append(
            {"name": f"run.memory = {ALLOWED}, field of {larger / 1e6:.0f} MB, {stage}", "value": excess, "unit": "MiB"}
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']}: {row['value']:.4g} {row['unit']}")
