"""Finished runs that several files of tests look at; each file has runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import add_refinement, HOSTILE, make_run, spreading_field

from video2pde.record import load_run, Run


@pytest.fixture(scope="module")
def law_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that found a law, of a film with a hostile name."""
    return make_run(spreading_field(), tmp_path_factory.mktemp("law"), HOSTILE)


@pytest.fixture(scope="module")
def law(law_run: Path) -> Run:
    return add_refinement(load_run(law_run))
