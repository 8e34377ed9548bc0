"""Recordings as a laboratory makes them, with their law named: coefficients within 5 %, intervals that hold the truth.

Noise and D differ from those that examples and other tests use.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from video2pde.cli import main
from video2pde.recording.synth import LABORATORY, write_laboratory

pytestmark = pytest.mark.recovery

LAWS = dict.fromkeys(LABORATORY, "laplacian") | {"dome": "laplacian,u", "droplet": "constant,u,laplacian"}


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[dict, dict]:
    film = write_laboratory(name, folder, seed=11, diffusion=0.8 * LABORATORY[name].diffusion)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    monkeypatch.chdir(folder)
    given = ["--no-figures", "--quiet", "--set", "refinement.enabled=false"]
    assert main(["run", film.name, "--out", "run", *shlex.split(truth["arguments"]), *given, *more]) == 0
    return truth, json.loads(Path("run/result.json").read_text(encoding="utf-8"))


def assert_found(truth: dict[str, float], found: dict[str, dict[str, float]]) -> None:
    assert set(found) == set(truth)
    for name, value in truth.items():
        assert found[name]["value"] == pytest.approx(value, rel=0.05), name
        assert found[name]["low"] <= value <= found[name]["high"], name


@pytest.mark.parametrize("name", [name for name in LABORATORY if name != "frap"])
def test_named_laws_get_their_coefficients(name: str, tmp_path: Path, monkeypatch) -> None:
    truth, result = run(name, tmp_path, monkeypatch, "--law", LAWS[name])
    assert_found(truth["law"], result["selected"]["terms"])
    assert result["drift"]["mean"] == pytest.approx([0, 0], abs=0.02)


def test_recovery_of_a_bleached_spot(tmp_path: Path, monkeypatch) -> None:
    truth, result = run("frap", tmp_path, monkeypatch, "--law", LAWS["frap"])
    known = {"diffusion": truth["law"]["laplacian"], **{k: truth[k] for k in ("mobile_fraction", "bleaching_rate")}}
    assert_found(known, {name: result["frap"][name] for name in known})


@pytest.mark.parametrize("name", ["front", "few", "profile"])
def test_diffusion_alone_is_discovered(name: str, tmp_path: Path, monkeypatch) -> None:
    truth, result = run(name, tmp_path, monkeypatch)
    assert (result["verdict"], result["selected"]["library"]) == ("law", "A")
    assert result["selected"]["terms"]["laplacian"]["value"] == pytest.approx(truth["law"]["laplacian"], rel=0.05)
