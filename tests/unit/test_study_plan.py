"""The plan of a study: what it says, and what is wrong with it, before anything begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from video2pde.errors import InputError, SettingsError
from video2pde.field import Field, Grid
from video2pde.study.plan import check_plan, Given, plan_films, read_plan

PLAN = """
title = "Two depths"
preset = "quick"

[settings.calibration]
replicates = 9

[[films]]
path = "a.npz"
conditions = { depth = 2, dye = "blue" }

[[films]]
path = "b.npz"
name = "deep"
conditions = { depth = 4.5, dye = "blue" }
[films.settings.calibration]
replicates = 5
"""


def save_film(path: Path, unit: str = "mm") -> Path:
    values = np.random.default_rng(1).random((6, 8, 8), dtype=np.float32)
    return Field(values, np.arange(6.0), Grid(8, 8, 8.0, 8.0, unit)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_film(tmp_path / "a.npz")
    save_film(tmp_path / "b.npz")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_has_settings_for_all_and_for_each(folder: Path) -> None:
    plan = read_plan(write(folder, PLAN), Given(overrides=("run.seed=7",)))
    assert plan.title == "Two depths"
    assert [film.name for film in plan.films] == ["a", "deep"]
    assert [film.settings.calibration.replicates for film in plan.films] == [9, 5]
    assert plan.settings.weak.test_functions == 1000  # the preset's
    assert {film.settings.run.seed for film in plan.films} == {7}
    assert plan.films[1].conditions == {"depth": 4.5, "dye": "blue"}
    assert plan.films[0].path == folder / "a.npz"
    assert check_plan(plan) == []


def test_the_command_line_has_the_last_word(folder: Path) -> None:
    plan = read_plan(write(folder, PLAN), Given(overrides=("calibration.replicates=3",)))
    assert [film.settings.calibration.replicates for film in plan.films] == [3, 3]


def test_films_alone_share_their_settings(folder: Path) -> None:
    plan = plan_films([folder / "a.npz", folder / "b.npz"], Given("quick"))
    assert [film.name for film in plan.films] == ["a", "b"]
    assert plan.films[0].settings == plan.settings
    assert check_plan(plan) == []


WRONG = {
    "no film": ('title = "x"', "names no films"),
    "no path": ("[[films]]\nname = 'a'", "film 1: give its path"),
    "unknown key": ("[[films]]\npath = 'a.npz'\ncondition = 1", "film 1: unknown key 'condition'"),
    "unknown above": ("film = 1\n[[films]]\npath = 'a.npz'", "unknown key 'film'"),
    "odd condition": ("[[films]]\npath = 'a.npz'\nconditions = { d = true }", "the condition 'd' is True"),
    "not TOML": ("title = ", "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_says_nothing_sensible_is_refused(folder: Path, case: str) -> None:
    text, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        read_plan(write(folder, text))


def test_a_film_with_an_unknown_setting_is_named(folder: Path) -> None:
    text = "[[films]]\npath = 'a.npz'\nsettings = { recording = { gird = [8, 8] } }"
    with pytest.raises(SettingsError, match=r"film 1: unknown setting 'recording\.gird' .did you mean 'grid'"):
        read_plan(write(folder, text))


def test_everything_that_is_wrong_with_films_is_said_at_once(folder: Path) -> None:
    save_film(folder / "c.npz", "image units")
    (folder / "broken.mp4").write_bytes(b"no film")
    text = """
    films = [
      { path = "a.npz", conditions = { depth = 1 } },
      { path = "b.npz", name = "A", conditions = { depth = "deep" } },
      { path = "c.npz", name = "in units" },
      { path = "missing.mp4" },
      { path = "broken.mp4", name = "../up" },
      { path = "a.npz", name = "again", settings = { regression = { threshold = 0.1 } } },
    ]
    """
    wrong = "\n".join(check_plan(read_plan(write(folder, text))))
    for part in (
        "2 films are called 'a'",
        "the condition 'depth' is missing for in units, missing, ../up, again",
        "'depth' is a number for some films and a label for others",
        "lengths are in different units (mm: a, A, again; image units: in units)",
        "missing: no such recording",
        "'../up' cannot name a film's folder",
        "[regression] says which laws are compared",
        "broken.mp4",
    ):
        assert part in wrong, wrong


def test_one_film_twice_and_one_film_alone(folder: Path) -> None:
    twice = read_plan(write(folder, "films = [{ path = 'a.npz' }, { path = 'a.npz', name = 'b' }]"))
    assert "is in the study 2 times with the same settings" in check_plan(twice)[0]
    alone = replace(twice, films=twice.films[:1])
    assert check_plan(alone) == ["a study needs 2 films or more, and this has 1"]


def test_the_command_says_each_thing_in_a_line(folder: Path, quick_cli: Callable[..., CompletedProcess[str]]) -> None:
    save_film(folder / "c.npz", "image units")
    done = quick_cli("study", folder / "a.npz", folder / "c.npz", folder / "none.mp4", "--out", folder / "out")
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 3
    assert lines[-1] == "error: nothing was started: 2 things are wrong with the study"
    assert not (folder / "out").exists()
