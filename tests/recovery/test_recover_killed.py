"""The whole pipeline, killed at fifty random moments and continued: the same bytes as without a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from video2pde.field import Grid
from video2pde.recording.synth import exact_field, make_case, noisy

pytestmark = pytest.mark.recovery


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the kills need fork")
def test_fifty_kills_end_in_the_same_bytes(tmp_path: Path) -> None:
    field = exact_field(make_case("C"), Grid(32, 32, 200.0, 200.0), np.linspace(0, 34, 70))
    film = noisy(field, 0.002, 3).save(tmp_path / "field.npz")
    script = Path(__file__).with_name("killed_pipeline.py")
    done = subprocess.run(
        [sys.executable, str(script), str(film), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found["kills"], found["places"])
    assert found["kills"] == 50
    assert found["differences"] == [[] for _ in found["differences"]]
    # the moments are spread: over the computing, and over the writing of page, figures and tables
    assert found["places"].get("report", 0) >= 10
    assert len(found["places"]) >= 4
