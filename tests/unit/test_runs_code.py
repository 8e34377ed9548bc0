"""The hash of the code behind a stage: it changes with what computes the stage, and with nothing else."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import video2pde
from video2pde.device import cache_folder
from video2pde.errors import StageError
from video2pde.pipeline import STAGES
from video2pde.runs import code
from video2pde.runs.code import hash_code, used_modules

CACHED = (code.hash_code, code._hash_sources, code._imports, code._home, code._parse, code._tree)


class Sources:
    """A small package inside video2pde, whose modules can be written again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "scratch"
        self.folder.mkdir()

    def write(self, **modules: str) -> None:
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        for function in CACHED:
            function.cache_clear()

    def hash(self, name: str = "stage") -> str:
        return hash_code(f"video2pde.scratch.{name}")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sources]:
    monkeypatch.setattr(video2pde, "__path__", [*video2pde.__path__, str(tmp_path)])
    monkeypatch.setenv("VIDEO2PDE_CACHE", str(tmp_path / "cache"))
    made = Sources(tmp_path)
    made.write(
        __init__="""
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from video2pde.scratch.deep import lazy as lazy
            from video2pde.scratch.aside import other
            """,
        stage="""
            from typing import TYPE_CHECKING
            from video2pde.scratch.helper import double
            if TYPE_CHECKING:
                from video2pde.scratch.typed import Kind
            def compute(x: "Kind"):
                from video2pde.scratch import lazy
                return double(x) + lazy(x)
            """,
        helper="def double(x): return 2 * x",
        deep="def lazy(x): return x",
        aside="def other(x): return x",
        typed="class Kind: pass",
    )
    yield made
    for function in CACHED:
        function.cache_clear()
    for name in [name for name in sys.modules if name.startswith("video2pde.scratch")]:
        del sys.modules[name]


@pytest.mark.usefixtures("sources")
def test_a_stage_uses_what_it_imports_directly_lazily_and_through_others() -> None:
    assert used_modules("video2pde.scratch.stage") == {
        "video2pde.scratch.stage",
        "video2pde.scratch.helper",
        "video2pde.scratch.deep",
    }


@pytest.mark.parametrize("module", ["stage", "helper", "deep"])
def test_an_edit_of_what_computes_changes_the_hash(sources: Sources, module: str) -> None:
    before = sources.hash()
    text = (sources.folder / f"{module}.py").read_text()
    sources.write(**{module: text.replace("return", "return 1 +")})
    assert sources.hash() != before


@pytest.mark.parametrize("module", ["aside", "typed"])
def test_an_edit_of_what_does_not_compute_leaves_it(sources: Sources, module: str) -> None:
    before = sources.hash()
    sources.write(**{module: "value = 3"})
    assert sources.hash() == before


def test_comments_docstrings_and_layout_do_not_count(sources: Sources) -> None:
    before = sources.hash()
    sources.write(
        helper='"""Words."""\n# why\ndef double(x):\n    """More words."""\n    return (2 *\n            x)\n'
    )
    assert sources.hash() == before


def test_a_module_that_is_missing_is_named(sources: Sources) -> None:
    sources.write(stage="import video2pde.scratch.gone")
    with pytest.raises(StageError, match=r"video2pde\.scratch\.gone"):
        sources.hash()


def test_stages_depend_on_their_own_code() -> None:
    """Calibration is not part of the drift's code, and reading films not of the calibration's."""
    drift = used_modules("video2pde.stages.drift")
    calibration = used_modules("video2pde.stages.calibration")
    assert "video2pde.drift" in drift
    assert not any(name.startswith(("video2pde.calibration", "video2pde.rollout")) for name in drift)
    assert {"video2pde.calibration.fit", "video2pde.rollout.kernels", "video2pde.terms.stencil"} <= calibration
    assert not any(name.startswith("video2pde.report") for name in calibration)
    assert len(STAGES) > 10


def _forget() -> None:
    """Stand for a new process."""
    for function in CACHED:
        function.cache_clear()


def test_the_next_process_parses_nothing(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.hash()
    _forget()
    monkeypatch.setattr(code, "used_modules", lambda module: pytest.fail(f"{module} was parsed"))
    assert sources.hash() == before


@pytest.mark.parametrize("text", ["", "[]", '{"sources": "other", "hashes": {"video2pde.scratch.stage": "wrong"}}'])
def test_what_was_kept_for_other_sources_or_is_damaged_does_not_count(sources: Sources, text: str) -> None:
    before = sources.hash()
    kept = cache_folder() / code.KEPT
    assert before in kept.read_text(encoding="utf-8")
    kept.write_text(text, encoding="utf-8")
    _forget()
    assert sources.hash() == before


def test_without_a_folder_hashes_are_computed_each_time(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.hash()
    monkeypatch.setenv("VIDEO2PDE_CACHE", "/proc/nowhere")
    _forget()
    assert sources.hash() == before
