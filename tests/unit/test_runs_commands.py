"""The commands on runs: what they pass on to the pipeline, what they print, and runs side by side."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cyclopts import App

from video2pde.cli.run import register, STAGE_COMMANDS
from video2pde.errors import InputError, StageError
from video2pde.field import Field, Grid
from video2pde.settings import load_settings, Settings


@dataclass
class Pipeline:
    """Stands in for the pipeline and remembers how it was called."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    error: BaseException | None = None

    def run_pipeline(
        self,
        film: Path,
        out: Path,
        settings: Settings,
        events: Any,
        until: str | None = None,
        latex: bool = False,
        figures: bool = True,
        pdf: bool = False,
        overwrite: bool = False,
    ) -> Any:
        events.stage("read", "film to field")
        events.warn("mind this")
        assert figures
        assert not overwrite
        self.calls.append((film, out, settings, until, latex, pdf))
        if self.error is not None:
            raise self.error
        return types.SimpleNamespace(summary=lambda: "u_t = 9 |∇u|²", test=None if until else "scores")


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    module = types.ModuleType("video2pde.pipeline")
    stand_in = Pipeline()
    module.run_pipeline = stand_in.run_pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "video2pde.pipeline", module)
    return stand_in


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return Field(np.ones((8, 5, 5)), np.arange(8.0), Grid(5, 5, 1.0, 1.0)).save(tmp_path / "film.npz")


def call(*words: object) -> Any:
    app = App(name="video2pde", help_format="plaintext")
    register(app)
    command, bound, *_ = app.parse_args([str(word) for word in words], exit_on_error=False, print_error=False)
    return command(*bound.args, **bound.kwargs)


def test_run_passes_everything_on_and_prints_the_summary(
    pipeline: Pipeline, film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    call("run", film, "--out", out, "--preset", "quick", "--set", "run.seed=3", "--every", "2", "--latex", "--pdf")
    expected = load_settings("quick", overrides=["recording.every=2", "run.seed=3"])
    assert pipeline.calls == [(film, out, expected, None, True, True)]
    printed = capsys.readouterr()
    assert printed.out == f"u_t = 9 |∇u|²\nreport: {out / 'report.html'}\n"
    assert printed.err == "read: film to field\nwarning: mind this\n"


def test_quiet_leaves_warnings_and_the_summary(
    pipeline: Pipeline, film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("run", film, "--out", tmp_path / "out", "--quiet")
    assert capsys.readouterr().err == "warning: mind this\n"
    assert len(pipeline.calls) == 1


def test_an_error_of_the_pipeline_comes_through(pipeline: Pipeline, film: Path, tmp_path: Path) -> None:
    pipeline.error = StageError("the fit failed")
    with pytest.raises(StageError, match="the fit failed"):
        call("run", film, "--out", tmp_path / "out", "--quiet")


def test_every_stage_has_a_command_that_keeps_the_settings_of_the_run(
    pipeline: Pipeline, film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used = load_settings("quick", overrides=["weak.support=3"])
    (tmp_path / "settings.toml").write_text(used.to_toml())
    for stage in STAGE_COMMANDS:
        call(stage.name, film, "--out", tmp_path, "--quiet")
    assert [given[3] for given in pipeline.calls] == [
        "discovery",
        "validation",
        "front",
        "selection",
        "test",
        "comparison",
    ]
    assert all(given[2] == used for given in pipeline.calls)
    assert "stage 'discovery' is done" in capsys.readouterr().err
    call("discover", film, "--out", tmp_path, "--preset", "paper")
    assert pipeline.calls[-1][2] == load_settings("paper")
    call("discover", film, "--out", tmp_path, "--set", "run.seed=4")
    assert pipeline.calls[-1][2] == load_settings("quick", overrides=["weak.support=3", "run.seed=4"])
    call("run", film, "--out", tmp_path)
    assert pipeline.calls[-1][2] == load_settings()


def test_the_stages_are_the_pipelines() -> None:
    from video2pde.pipeline import STAGES

    assert {stage.until for stage in STAGE_COMMANDS} <= set(STAGES)


def write_result(folder: Path, **changes: Any) -> Path:
    estimate = {"value": 9.0048, "low": 8.95, "high": 9.06, "unit": "1/s"}
    law = {
        "library": "C",
        "terms": {"grad_squared": estimate, "laplacian": {"value": 0.6655, "low": None, "high": None}},
        "equation": {"text": "u_t + v(t)·∇u = 9.005 |∇u|² + 0.6655 Δu", "latex": ""},
    }
    result = {
        "verdict": "law",
        "selected": law,
        "test": {"rrmse": 0.0031, "baselines": {"persistence": 0.0412, "drift": 0.03}},
        "timings_s": {"read": 20.5, "fit": 41.0},
        **changes,
    }
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def test_runs_are_listed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_result(Path("one"))
    write_result(Path("nothing"), verdict="no_law", selected=None, test={"rrmse": None, "baselines": {}})
    Path("half/stages").mkdir(parents=True)
    call("runs", "one", "nothing", "half")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert " ".join(lines[0].split()) == "run verdict law coefficients, 95 % intervals test error persistence time"
    assert "law         C: u_t + v(t)·∇u = 9.005 |∇u|² + 0.6655 Δu  grad_squared 9.005 [8.950, 9.060]" in lines[1]
    assert lines[1].endswith("0.31 %      4.12 %       62 s")
    assert lines[2].split() == ["laplacian", "0.6655"]
    assert lines[2].index("laplacian") == lines[1].index("grad_squared")
    assert lines[3].split() == ["nothing", "no_law", "–", "–", "–", "–", "62", "s"]
    assert lines[4].split() == ["half", "unfinished", "–", "–", "–", "–", "–"]
    call("runs", "one", "half", "--json")
    first, second = json.loads(capsys.readouterr().out)
    assert first["terms"]["grad_squared"] == {"value": 9.0048, "low": 8.95, "high": 9.06}
    assert (first["rrmse"], first["persistence"], first["seconds"]) == (0.0031, 0.0412, 61.5)
    assert second["verdict"] == "unfinished"


def test_recoveries_are_listed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("one", 2.0), ("two", 2.2)):
        found = {"value": value, "low": value - 0.1, "high": value + 0.1}
        nothing = {"value": None, "low": None, "high": None}
        write_result(
            Path(name),
            frap={
                "diffusion": {**found, "unit": "µm²/s"},
                "mobile_fraction": {"value": 0.9, "low": None, "high": None},
                "half_time_s": nothing,
                "bleaching_rate": found,
                "steady": name == "one",
            },
        )
    call("runs", "one", "two", "--frap", "--csv", "table.csv")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["run", "D", "(µm²/s)"]
    assert lines[1].split() == ["one", "2", "[1.9,", "2.1]", "0.9", "–", "2", "[1.9,", "2.1]", "yes"]
    assert lines[3].split()[4:7] == ["2.1", "±", "0.14"]
    table = Path("table.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("run,unit,diffusion,diffusion_low,diffusion_high,mobile_fraction")
    assert table[2] == "two,µm²/s,2.2,2.1,2.3000000000000003,0.9,,,,,,2.2,2.1,2.3000000000000003,False"
    write_result(Path("plain"))
    with pytest.raises(InputError, match="--preset frap"):
        call("runs", "plain", "--frap")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs one or more folders"):
        call("runs")
    with pytest.raises(InputError, match=r"is not the folder of a run: it has no result.json"):
        call("runs", tmp_path)
    for number, text in enumerate(["{", "[1]", '{"verdict": "law"}', "[" * 10**5]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "result.json").write_text(text)
        with pytest.raises(InputError, match="is not a result written by video2pde"):
            call("runs", folder)
