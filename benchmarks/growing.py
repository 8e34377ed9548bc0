"""A law that grows beside one that does not: the whole command on noisy fields of Fisher's law and of law C.

A growing law's coefficients and its initial frame have to be fitted together, which is more work; ``run.workers`` is
left at its default, and the inverse PINN is off: it takes the same time for every law.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pipeline import time_run, Timed
from video2pde.field import Grid
from video2pde.recording.synth import exact_field, find_preset, noisy

TITLE = "A growing law"
SIZE, FRAMES, NOISE = 200, 405, 0.005
OPTIONS = ("--set", "refinement.enabled=false")
LIMIT = 3.0
"""How many times as long as C a growing law may take."""
NOTES = f"""\
`video2pde run` without the inverse PINN on fields of {SIZE}×{SIZE}×{FRAMES} with noise of {100 * NOISE:g} %, each in
a process of its own, caches full.
"""


def time_law(folder: Path, name: str, size: int, frames: int) -> Timed:
    """Run the command on a noisy field of a law."""
    case = find_preset(name)
    exact = exact_field(case, Grid(size, size, 200.0, 200.0), np.linspace(0, case.duration, frames))
    film = noisy(exact, NOISE, 1).save(folder / f"{name}-{frames}.npz")
    return time_run(film, folder / f"{name}-{frames}-run", *OPTIONS)


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        time_law(folder, "Fisher", SIZE // 2, 60)  # compiles
        timed = {law: time_law(folder, law, SIZE, FRAMES) for law in ("C", "Fisher")}
    rows: list[dict[str, Any]] = []
    for law, each in timed.items():
        rows.append({"name": f"{law}, until report.html", "value": each.answered, "unit": "s"})
        rows += each.rows(law)
    ratio = timed["Fisher"].answered / timed["C"].answered
    return [*rows, {"name": "Fisher / C, until report.html", "value": ratio, "unit": "×", "limit": LIMIT}]


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']}: {row['value']:.4g} {row['unit']}")
