"""Runs in the studio: queued and stopped, watched by their log, shown and compared; studies among them."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from studio_server import serving
from study_folders import DIFFUSION, make_study

from video2pde.errors import InputError
from video2pde.pipeline import STAGES as PIPELINE_STAGES
from video2pde.studio.jobs import Job
from video2pde.studio.pages import read_page
from video2pde.studio.watch import read_state, STAGES


def test_the_stages_are_those_of_the_pipeline() -> None:
    assert STAGES == PIPELINE_STAGES


def test_studies_are_listed_and_compared(tmp_path: Path) -> None:
    """A study is a card with its shared law; beside it are its films' runs; it stands in a comparison like a run."""
    make_study(tmp_path / "ink")
    make_study(tmp_path / "begun", finished=False)
    with serving(tmp_path) as client:
        client.enter()
        cards = {card["name"]: card for card in client.get("library").json["cards"]}
        found = client.get("compare", run=["ink", "begun"]).json["runs"]
        document = client.get("page", run="ink").json
        assert client.get("compare", run=["nothing"]).status == 400
    assert {name for name, card in cards.items() if card["kind"] == "study"} == {"ink", "begun"}
    assert {f"ink/films/{film}" for film in DIFFUSION} < cards.keys()
    ink = cards["ink"]["details"]
    assert (ink["verdict"], ink["one_law"], ink["finished"], ink["failed"]) == ("law", True, True, ["broken"])
    assert ink["terms"] == {"laplacian": {"value": 1.0, "low": 0.97, "high": 1.03}}
    assert ink["rrmse"] == 0.04
    assert cards["begun"]["details"]["verdict"] == "unfinished"
    assert [(run["kind"], run["name"]) for run in found] == [("study", "ink"), ("study", "begun")]
    assert found[0]["units"] == {"laplacian": "mm²/s"}
    assert "films-and-law" in [section["id"] for section in document["sections"]]


def test_a_folder_that_is_no_study_is_not_taken_for_one(tmp_path: Path) -> None:
    outside = make_study(tmp_path / "outside")
    folder = tmp_path / "open"
    linked = folder / "linked"
    (linked / "stages").mkdir(parents=True)
    (linked / "settings.toml").write_text("")
    (linked / "films").symlink_to(outside / "films")
    damaged = make_study(folder / "damaged")
    (damaged / "result.json").write_text('{"kind": "study", "selected": 3}')
    with serving(folder) as client:
        client.enter()
        cards = {card["name"]: card for card in client.get("library").json["cards"]}
    assert cards["linked"]["kind"] == "run"
    assert cards["damaged"]["details"]["verdict"] == "unreadable"
    assert not any(name.startswith("linked/") for name in cards)


def test_closing_the_studio_ends_a_check_that_is_under_way(tmp_path: Path) -> None:
    np.save(tmp_path / "long.npy", np.zeros((400, 200, 200), np.uint8))
    wish = {"film": "long.npy", "preset": "quick", "settings": {"recording.fps": 10}}
    before = set(psutil.Process().children())
    with ThreadPoolExecutor(1) as pool:
        with serving(tmp_path) as client:
            client.enter()
            asked = pool.submit(client.post, "checks", wish)
            end = time.monotonic() + 20
            while set(psutil.Process().children()) == before:
                assert time.monotonic() < end, "no check was started"
                time.sleep(0.02)
        assert set(psutil.Process().children()) <= before
        assert b"error" in asked.result(20).body


def test_the_log_tells_how_a_run_stands(tmp_path: Path) -> None:
    stamp = "2026-01-01 00:00:00,000"
    lines = [
        "INFO    video2pde 0.1.0, process 1",
        "INFO    recording: film to field",
        "ERROR   stopped by X: old",
        "INFO    video2pde 0.1.0, process 12",
        "INFO    recording: film to field",
        "INFO    recording: taken from the run folder (it took 1.5 s)",
        "INFO    drift: background, centroid, drift",
        "INFO    drift: done in 0.3 s",
        "INFO    refinement: inverse PINN",
        "INFO    refinement: 100 of 1000 after 6 s, about 54 s left, C: grad_squared 8.5, laplacian 0.6",
        "INFO    refinement: 200 of 1000 after 12 s, about 48 s left, C: grad_squared 9, laplacian 6e-01",
        "WARNING the camera shakes",
        "DEBUG   replicates of C (grad_squared, laplacian): 9.01 0.6; 8.9 7e-01",
        "DEBUG   replicates of C (grad_squared, laplacian): nan 0.6; 9.2 0.55",
        "DEBUG   replicates of A (laplacian): 0.61",
    ]
    (tmp_path / "log.txt").write_text("\n".join(f"{stamp} {line}" for line in lines))
    state = read_state(tmp_path)
    by_name = {stage.name: stage for stage in state.stages}
    assert (by_name["recording"].state, by_name["recording"].seconds) == ("cached", 1.5)
    assert (by_name["drift"].state, by_name["drift"].seconds) == ("done", 0.3)
    refining = by_name["refinement"]
    assert (refining.state, refining.done, refining.total, refining.left) == ("running", 200, 1000, 48.0)
    assert state.figures == {
        "C: grad_squared": [[100.0, 8.5], [200.0, 9.0]],
        "C: laplacian": [[100.0, 0.6], [200.0, 0.6]],
    }
    clouds = {cloud.library: (cloud.terms, cloud.draws) for cloud in state.clouds}
    assert clouds == {
        "C": (["grad_squared", "laplacian"], [[9.01, 0.6], [8.9, 0.7], [9.2, 0.55]]),
        "A": (["laplacian"], [[0.61]]),
    }
    assert not any("replicates" in line for line in state.lines)
    assert state.warnings == ["the camera shakes"]
    assert state.stopped == ""
    assert by_name["test"].state == "waiting"


def test_a_report_gives_data_and_no_script(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        '<script>alert(1)</script><script type="application/json" id="document">{"head": {}, "sections": []}</script>'
        '<script type="text/plain" id="film-0">AAAA</script><script type="text/plain" id="film-1"><b></script>'
    )
    data = read_page(page)
    assert json.loads(data.document) == {"head": {}, "sections": []}
    assert data.films == {0: b"AAAA"}
    page.write_text("<p>something else</p>")
    with pytest.raises(InputError, match="not a report"):
        read_page(page)


def test_jobs_wait_stop_and_are_found_again(tmp_path: Path) -> None:
    folder = tmp_path
    np.save(folder / "plume.npy", np.full((30, 40, 60), 200, np.uint8))
    wish = {"film": "plume.npy", "preset": "quick", "settings": {"recording.fps": 10}}
    with serving(folder) as client:
        client.enter()
        first = client.post("jobs", {**wish, "out": "one"}).json["id"]
        second = client.post("jobs", {**wish, "out": "two"}).json["id"]
        assert client.post("jobs", {**wish, "out": "two"}).status == 400
        assert _jobs(folder)[first].state == "running"
        assert _jobs(folder)[second].state == "waiting"
        assert client.post(f"jobs/{second}/stop", {}).status == 200
        assert client.post(f"jobs/{first}/stop", {}).status == 200
        end = time.monotonic() + 30
        while _jobs(folder)[first].state == "stopping":
            assert time.monotonic() < end, "the run was not stopped"
            time.sleep(0.1)
        assert _jobs(folder)[first].state == "stopped"
        assert client.post(f"jobs/{first}/nonsense", {}).status == 400
        assert client.post(f"jobs/{second}/remove", {}).status == 200
    with serving(folder) as client:
        client.enter()
        assert set(_jobs(folder)) == {first}
        assert client.post(f"jobs/{first}/remove", {}).status == 200
    assert threading.active_count() < 60


def _jobs(folder: Path) -> dict[str, Job]:
    entries = json.loads((folder / ".video2pde-studio" / "jobs.json").read_text())
    return {entry["id"]: Job(**{**entry, "arguments": tuple(entry["arguments"])}) for entry in entries}
