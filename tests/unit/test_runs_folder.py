"""The run folder: keys, cached and recomputed stages, the lock, the log, and disks that refuse."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from video2pde.errors import InputError, StageError
from video2pde.field import Grid
from video2pde.runs.archive import save_artefact
from video2pde.runs.events import QuietEvents
from video2pde.runs.folder import RunFolder, stage_key
from video2pde.settings import load_settings

GRID = Grid(3, 4, 1.0, 2.0)


class Counter:
    """A stage that counts how often it is computed."""

    def __init__(self, value: object) -> None:
        self.value, self.calls = value, 0

    def __call__(self) -> object:
        self.calls += 1
        return self.value


class Notes(QuietEvents):
    """Remember the notes."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def show_note(self, text: str) -> None:
        self.lines.append(text)


def is_grid(value: object) -> bool:
    return isinstance(value, Grid)


def test_a_stage_is_computed_once_for_each_key(tmp_path: Path) -> None:
    stage = Counter({"grid": GRID, "values": np.arange(3.0)})
    for expected, (key, cached) in enumerate([("a", False), ("a", True), ("b", False), ("b", True), ("a", False)]):
        with RunFolder(tmp_path / "deep" / "run") as folder:
            artefact, seconds, found = folder.stage("field", key, stage)
        assert artefact["grid"] == GRID
        assert (found, seconds >= 0) == (cached, True)
        assert stage.calls == [1, 1, 2, 2, 3][expected]
    assert [path.name for path in (tmp_path / "deep/run/stages").iterdir()] == ["01-field.npz"]


def test_the_seconds_of_a_cached_stage_are_those_of_its_computation(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        first = folder.stage("slow", "k", lambda: time.sleep(0.05) or 1)
    with RunFolder(tmp_path) as folder:
        assert folder.stage("slow", "k", lambda: 1) == (1, first.seconds, True)
    assert first.seconds >= 0.05


def test_what_a_stage_gives_was_read_from_its_file(tmp_path: Path) -> None:
    values = np.arange(20.0).reshape(4, 5)[:, 1]  # not contiguous: sums over a copy may round differently
    with RunFolder(tmp_path) as folder:
        given = folder.stage("one", "k", lambda: values).artefact
    assert given is not values
    assert given.flags.c_contiguous


def test_a_stage_that_moves_in_the_order_takes_its_file_along(tmp_path: Path) -> None:
    two = Counter(2)
    with RunFolder(tmp_path) as folder:
        folder.stage("one", "k", lambda: 1)
        folder.stage("two", "k", two)
    with RunFolder(tmp_path) as folder:
        assert folder.stage("two", "k", two).cached
    assert sorted(path.name for path in folder.stages.iterdir()) == ["01-one.npz", "01-two.npz"]
    with RunFolder(tmp_path) as folder:
        with pytest.raises(ValueError, match="cannot name a stage"):
            folder.stage("../two", "k", two)
        folder.stage("one", "k", lambda: 1)
        with pytest.raises(ValueError, match="names two"):
            folder.stage("one", "k", lambda: 1)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other type", "no archive", "no seconds"])
def test_an_unusable_artefact_is_computed_again_with_a_note(damage: str, tmp_path: Path) -> None:
    stage = Counter(GRID)
    with RunFolder(tmp_path) as folder:
        folder.stage("grid", "k", stage, accepts=is_grid)
    path = tmp_path / "stages" / "01-grid.npz"
    whole = path.read_bytes()
    if damage == "other type":
        save_artefact(path, "no grid", {"key": "k", "seconds": 1.0})
    elif damage == "no seconds":
        save_artefact(path, GRID, {"key": "k"})
    else:
        middle = whole.index(b"height")
        flipped = whole[:middle] + b"heighT" + whole[middle + 6 :]
        path.write_bytes({"cut": whole[:-30], "flip": flipped, "empty": b"", "no archive": b"text"}[damage])
    notes = Notes()
    with RunFolder(tmp_path, notes) as folder:
        assert folder.stage("grid", "k", stage, accepts=is_grid).artefact == GRID
    assert stage.calls == 2
    assert len(notes.lines) == 1
    assert notes.lines[0].startswith("stage 'grid' is computed again: ")
    assert notes.lines[0] in (tmp_path / "log.txt").read_text()
    with RunFolder(tmp_path) as folder:
        assert folder.stage("grid", "k", stage, accepts=is_grid).cached


def test_a_failing_stage_leaves_what_was_there(tmp_path: Path) -> None:
    def fail() -> int:
        raise StageError("it does not work")

    with RunFolder(tmp_path) as folder:
        folder.stage("one", "old", lambda: 1)
    with pytest.raises(StageError), RunFolder(tmp_path) as folder:
        folder.stage("one", "new", fail)
    with RunFolder(tmp_path) as folder:
        assert folder.stage("one", "old", fail).artefact == 1
    assert "stopped by StageError: it does not work" in (tmp_path / "log.txt").read_text()


def test_keys_depend_on_everything_but_the_workers() -> None:
    settings = load_settings()
    weak = stage_key("weak", ["film"], [settings.weak, settings.terms], code="1")
    assert weak == stage_key("weak", ["film"], [load_settings("default").weak, {}], code="1")
    changed = load_settings(overrides=["weak.support=3"])
    others = {
        stage_key("drift", ["film"], [settings.weak, {}], code="1"),
        stage_key("weak", ["other"], [settings.weak, {}], code="1"),
        stage_key("weak", ["film", "film"], [settings.weak, {}], code="1"),
        stage_key("weak", ["film"], [changed.weak, {}], code="1"),
        stage_key("weak", ["film"], [settings.drift, {}], code="1"),
        stage_key("weak", ["film"], [settings.weak, {}], code="2"),
        stage_key("weak", ["film"], [settings.weak, {}], version="0.0.0", code="1"),
    }
    assert len(others | {weak}) == 8
    two = load_settings(overrides=["run.workers=2"])
    assert stage_key("s", [], two) == stage_key("s", [], settings)
    assert stage_key("s", [], two.run) == stage_key("s", [], settings.run)
    assert stage_key("s", [], {"b": 1, "a": 2}) == stage_key("s", [], {"a": 2, "b": 1})
    with pytest.raises(TypeError):
        stage_key("s", [], [object()])


HOLD = """
import sys, time
from video2pde.runs.folder import RunFolder
with RunFolder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "held\n"
            message = f"{tmp_path} is in use by process {first.pid}; wait for it or choose another --out"
            with pytest.raises(InputError) as caught:
                RunFolder(tmp_path)
            assert str(caught.value) == message
        finally:
            first.kill()
    with RunFolder(tmp_path), pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
        RunFolder(tmp_path)
    RunFolder(tmp_path).close()


def test_leftovers_of_a_killed_writer_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir()
    left = [tmp_path / "stages" / ".01-field.npz.ab12_x9z.npz", tmp_path / ".result.json.abcdefgh.json"]
    kept = [tmp_path / ".hidden.txt", tmp_path / ".notes.overview", tmp_path / "stages" / "refinement-C.npz"]
    for path in (*left, *kept):
        path.write_text("x")
    RunFolder(tmp_path).close()
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)


def test_places_that_cannot_be_a_folder_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for path in (file, file / "below"):
        with pytest.raises(InputError, match=r"cannot write into .*choose another --out"):
            RunFolder(path)


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    for path in (tmp_path, tmp_path / "new"):
        with pytest.raises(InputError, match=r"cannot write into .*Permission denied; choose another --out"):
            RunFolder(path)
    tmp_path.chmod(0o700)


@pytest.mark.posix
def test_a_read_only_disk_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot write into /proc/run: .*; choose another --out"):
        RunFolder("/proc/run")


FULL = """
import resource, sys
import numpy as np
from video2pde.errors import InputError
from video2pde.runs.folder import RunFolder
with RunFolder(sys.argv[1]) as folder:
    folder.stage("small", "k", lambda: np.zeros(10))
    folder.stage("large", "old", lambda: np.zeros(100))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with RunFolder(sys.argv[1]) as folder:
        assert folder.stage("small", "k", lambda: None).cached
        folder.stage("large", "new", lambda: np.zeros(100_000))
except InputError as error:
    print(error)
"""


def test_a_full_disk_is_one_line_and_nothing_earlier_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL, tmp_path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"cannot write {tmp_path}/stages/02-large.npz: File too large\n"
    assert done.stderr == ""
    with RunFolder(tmp_path) as folder:
        assert folder.stage("small", "k", lambda: None).cached
        assert folder.stage("large", "old", lambda: None).artefact.shape == (100,)
    assert sorted(path.name for path in folder.stages.iterdir()) == ["01-small.npz", "02-large.npz"]


def test_texts_and_json_are_whole_files(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.write_text("tables/a.csv", "é,1\n")
        folder.write_json("result.json", {"b": float("nan"), "a": (1.5, float("inf"), "Δu"), "c": {"d": None}})
    assert (tmp_path / "tables/a.csv").read_text(encoding="utf-8") == "é,1\n"
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"b": None, "a": [1.5, None, "Δu"], "c": {"d": None}}
    assert text.index('"b"') < text.index('"a"')
    assert "Δu" in text


def test_the_log_holds_everything_of_every_run(tmp_path: Path) -> None:
    for line in ("first", "second"):
        with RunFolder(tmp_path):
            logging.getLogger("video2pde.anywhere").debug("the %s line", line)
    logging.getLogger("video2pde").warning("after the end")
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split(maxsplit=3)[3] for line in lines if "line" in line] == ["the first line", "the second line"]
    assert sum("process" in line for line in lines) == 2
    assert not any("after the end" in line for line in lines)


def test_a_folder_belongs_to_one_film(tmp_path: Path) -> None:
    first, second = {"name": "a.mp4", "sha256": "1"}, {"name": "b.mp4", "sha256": "2"}
    with RunFolder(tmp_path) as folder:
        folder.claim(first)
        folder.claim({**first, "name": "renamed.mp4"})
        folder.stage("grid", "k", lambda: GRID)
        (tmp_path / "result.json").write_text("{}")
        (tmp_path / "mine.txt").write_text("kept")
    with RunFolder(tmp_path) as folder:
        with pytest.raises(InputError, match=r"run of another film, renamed\.mp4; .*--overwrite"):
            folder.claim(second)
        assert (tmp_path / "result.json").exists()
        folder.claim(second, overwrite=True)
        assert not (tmp_path / "result.json").exists()
        assert not list((tmp_path / "stages").glob("*.npz"))
        assert (tmp_path / "mine.txt").read_text() == "kept"
        with pytest.raises(InputError, match="another film"):
            folder.claim(first)


def test_an_interrupted_stage_repeats_no_finished_part(tmp_path: Path) -> None:
    parts = {name: Counter({"values": np.arange(float(n))}) for n, name in enumerate(["A", "C-both"], start=2)}

    def run(folder: RunFolder, key: str, interrupted: bool) -> dict[str, object]:
        keep = folder.keep_parts("calibration", key)

        def compute() -> dict[str, object]:
            done = {"A": keep("A", parts["A"])}
            if interrupted:
                raise KeyboardInterrupt
            return {**done, "C-both": keep("C-both", parts["C-both"])}

        return folder.stage("calibration", key, compute).artefact

    with pytest.raises(KeyboardInterrupt), RunFolder(tmp_path) as folder:
        run(folder, "k", interrupted=True)
    assert (tmp_path / "stages" / "calibration-part-A.npz").exists()
    with RunFolder(tmp_path) as folder:
        whole = run(folder, "k", interrupted=False)
    assert [parts[name].calls for name in parts] == [1, 1]
    assert list(whole) == ["A", "C-both"]
    assert not list((tmp_path / "stages").glob("*-part-*"))
    # another key: other settings, and the parts are other parts
    with pytest.raises(KeyboardInterrupt), RunFolder(tmp_path) as folder:
        run(folder, "k2", interrupted=True)
    with RunFolder(tmp_path) as folder:
        run(folder, "k3", interrupted=False)
    assert parts["A"].calls == 3
