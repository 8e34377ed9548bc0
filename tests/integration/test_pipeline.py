"""The whole way from a saved field or a film to the choice, on small recordings of known laws."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from video2pde.errors import InputError
from video2pde.field import Field, Grid, Windows
from video2pde.pipeline import run_pipeline, STAGES
from video2pde.record import load_run
from video2pde.recording import RecordingResult
from video2pde.recording.synth import Camera, exact_field, find_preset, noisy, render_film
from video2pde.runs.archive import load_artefact, read_meta, save_artefact
from video2pde.runs.events import QuietEvents
from video2pde.runs.listing import summarise_run, UNFINISHED
from video2pde.settings import load_settings, Settings

BEFORE_TEST = list(STAGES)[1 : list(STAGES).index("test")]
NOT_HERE = ("report", "recovery", "steadiness", "refinement", "comparison")  # after the test, or where asked for
"""The stages from the drift to the choice."""


def quick(**overrides: Any) -> Settings:
    """The quick preset, quicker still."""
    chosen = {"run.workers": 1, "calibration.replicates": 6, "identifiability.stability_runs": 10, **overrides}
    return load_settings("quick", overrides=chosen)


@cache
def small_field(name: str, n: int = 56, frames: int = 100, noise: float = 0.002) -> Field:
    case = find_preset(name)
    field = exact_field(case, Grid(n, n, 200.0, 200.0), np.linspace(0, case.duration, frames))
    return noisy(field, case.noise or noise, 7)


def run(field: Field, folder: Path, settings: Settings | None = None, until: str = "test") -> None:
    folder.mkdir(exist_ok=True)
    film = field.save(folder / "field.npz")
    run_pipeline(film, folder / "run", settings or quick(), until=until)


def artefact(folder: Path, stage: str) -> Any:
    return load_artefact(stage_file(folder, stage))


def stage_file(folder: Path, stage: str) -> Path:
    (found,) = (folder / "run" / "stages").glob(f"*-{stage}.npz")
    return found


def content(folder: Path, stage: str) -> dict[str, bytes]:
    """Return the bytes of an artefact, without the key under which it was stored."""
    with zipfile.ZipFile(stage_file(folder, stage)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "meta.json"}


class Listener(QuietEvents):
    """Note which stages were computed and which were found in the folder."""

    def __init__(self) -> None:
        super().__init__()
        self.computed: list[str] = []
        self.loaded: list[str] = []

    def done(self, name: str, seconds: float, cached: bool) -> None:
        (self.loaded if cached else self.computed).append(name)
        super().done(name, seconds, cached)


class Interrupter(QuietEvents):
    """Press Ctrl-C when a stage begins."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = at

    def stage(self, name: str, title: str) -> None:
        super().stage(name, title)
        if name == self.at:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over the field of C up to the test window."""
    folder = tmp_path_factory.mktemp("finished")
    run(small_field("C"), folder)
    return folder


def test_the_law_of_a_small_field_is_found(finished: Path) -> None:
    selection = artefact(finished, "selection")
    assert (selection.verdict, selection.chosen) == ("law", "C")
    chosen = artefact(finished, "calibration")["C"]
    for name, value in find_preset("C").law.coefficients.items():
        assert chosen.estimates[name].value == pytest.approx(value, rel=0.02)
    tested = artefact(finished, "test")
    scores = {row.library: row.measured for row in tested.scores.rows}
    assert scores["C"].full.rrmse < 0.5 * tested.scores.persistence.full.rrmse
    windows = Windows.split(100)
    assert [first for first, _ in tested.forecasts] == [windows.validation_end - 20, windows.validation_end]


@pytest.mark.parametrize(("name", "library"), [("A", "A"), ("Fisher", "R")])
def test_other_laws_are_found(name: str, library: str, tmp_path: Path) -> None:
    run(small_field(name), tmp_path, until="selection")
    selection = artefact(tmp_path, "selection")
    assert (selection.verdict, selection.chosen) == ("law", library)


@pytest.mark.parametrize("name", ["noise", "static", "drift"])
def test_a_recording_without_a_law_says_so(name: str, tmp_path: Path) -> None:
    """Noise and a still picture have none; pure drift is no law of spreading either."""
    run(small_field(name), tmp_path)
    selection = artefact(tmp_path, "selection")
    assert (selection.verdict, selection.chosen) == ("no_law", None)
    assert selection.reason
    assert artefact(tmp_path, "test").forecasts == ()


def test_nothing_up_to_the_choice_depends_on_the_test_window(finished: Path, tmp_path: Path) -> None:
    field = small_field("C")
    values = field.values.copy()
    values[Windows.split(len(field)).test] = np.random.default_rng(0).random(values[80:].shape, np.float32)
    run(replace(field, values=values), tmp_path)
    for stage in BEFORE_TEST:
        assert content(tmp_path, stage) == content(finished, stage), stage
    assert content(tmp_path, "test") != content(finished, "test")


def test_the_training_window_alone_makes_the_calibration(finished: Path, tmp_path: Path) -> None:
    """The comparison above has teeth: a change of one training frame is seen by every stage."""
    field = small_field("C")
    values = field.values.copy()
    values[30] += 0.01
    run(replace(field, values=values), tmp_path, until="calibration")
    assert content(tmp_path, "discovery") != content(finished, "discovery")
    assert content(tmp_path, "calibration") != content(finished, "calibration")


def test_same_seed_same_result_on_one_and_two_workers(finished: Path, tmp_path: Path) -> None:
    run(small_field("C"), tmp_path, quick(**{"run.workers": 2}))
    for stage in (*BEFORE_TEST, "test"):
        assert content(tmp_path, stage) == content(finished, stage), stage


def test_linear_algebra_sums_in_one_order_on_any_number_of_cores(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watch(QuietEvents):
        def stage(self, name: str, title: str) -> None:
            super().stage(name, title)
            seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    film = small_field("C", 24, 40).save(tmp_path / "film.npz")
    with threadpool_limits(2):
        run_pipeline(film, tmp_path / "run", quick(), events=Watch(), until="drift")
    assert seen
    assert set(seen) == {1}


def test_another_seed_is_another_draw(finished: Path, tmp_path: Path) -> None:
    run(small_field("C"), tmp_path, quick(**{"calibration.seed": 43}), until="calibration")
    assert content(tmp_path, "discovery") == content(finished, "discovery")
    assert content(tmp_path, "calibration") != content(finished, "calibration")


def test_a_late_setting_recomputes_only_what_depends_on_it(tmp_path: Path) -> None:
    film = small_field("A").save(tmp_path / "field.npz")
    for overrides, computed in (
        ({}, [stage for stage in STAGES if stage not in NOT_HERE]),
        ({}, []),
        ({"selection.tie": 0.06}, ["selection", "test"]),
        (
            {"selection.tie": 0.06, "calibration.replicates": 7},
            ["calibration", "fit", "front", "calibrated_validation", "selection", "test"],
        ),
    ):
        listener = Listener()
        run_pipeline(film, tmp_path / "run", quick(**overrides), events=listener, until="test")
        assert listener.computed == computed
        assert sorted(listener.computed + listener.loaded) == sorted(stage for stage in STAGES if stage not in NOT_HERE)


def test_a_film_goes_the_same_way(tmp_path: Path) -> None:
    film = render_film(find_preset("A"), tmp_path, Camera(size=(224, 224), frames=101, noise=0.005, crf=12))
    settings = quick(**{"recording.grid": (56, 56)})
    run_pipeline(film, tmp_path / "run", settings, until="selection")
    selection = artefact(tmp_path, "selection")
    assert (selection.verdict, selection.chosen) == ("law", "A")
    estimate = artefact(tmp_path, "calibration")["A"].estimates["laplacian"]
    assert estimate.value == pytest.approx(find_preset("A").law.laplacian, rel=0.02)


def test_an_unknown_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no stage 'coffee'"):
        run_pipeline(tmp_path / "none.npz", tmp_path / "run", until="coffee")


def test_a_stage_of_the_right_key_and_the_wrong_type_is_computed_again(tmp_path: Path) -> None:
    film = small_field("C", 24, 40).save(tmp_path / "film.npz")
    run_pipeline(film, tmp_path / "run", quick(), until="drift")
    stages = tmp_path / "run" / "stages"
    recording, drift = stages / "01-recording.npz", stages / "02-drift.npz"
    save_artefact(recording, load_artefact(drift), read_meta(recording))
    found = run_pipeline(film, tmp_path / "run", quick(), until="drift")
    assert isinstance(found.recording, RecordingResult)
    save_artefact(recording, None, read_meta(recording))
    with pytest.raises(InputError, match="holds no artefact of its stage"):
        load_run(tmp_path / "run")


def test_a_second_film_does_not_mix_with_the_first(tmp_path: Path) -> None:
    film = small_field("C", 24, 40).save(tmp_path / "film.npz")
    run_pipeline(film, tmp_path / "run", quick(), until="recording")
    field = Field.load(film)
    other = replace(field, values=field.values[:, ::-1].copy()).save(tmp_path / "other.npz")
    with pytest.raises(InputError, match="another film"):
        run_pipeline(other, tmp_path / "run", quick(), until="recording")
    found = run_pipeline(other, tmp_path / "run", quick(), until="recording", overwrite=True)
    assert found.field is not None
    assert np.array_equal(found.field.values, field.values[:, ::-1])


SHOWN = ("result.json", "model.json", "report.html", "tables/selected_model.csv", "figures/old.png")


@pytest.fixture
def shown(tmp_path: Path) -> tuple[Path, Path]:
    """A film, and the folder of a run that has come to its drift, with the files that show an older law."""
    film, folder = small_field("C", 24, 40).save(tmp_path / "film.npz"), tmp_path / "run"
    run_pipeline(film, folder, quick(), until="drift")
    for name in (*SHOWN, "mine.txt", "tables/mine.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("an older law")
    return film, folder


@pytest.mark.parametrize(
    ("overrides", "interrupted"),
    [
        ({"recording.crop": (0, 0, 20, 20)}, "recording"),
        ({"recording.smooth": 1.0}, "drift"),
        ({"calibration.replicates": 7}, "recording"),
        ({"selection.tie": 0.06}, "discovery"),
    ],
)
def test_an_older_law_never_stands_beside_other_settings(
    shown: tuple[Path, Path], overrides: dict[str, Any], interrupted: str
) -> None:
    film, folder = shown
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(film, folder, quick(**overrides), events=Interrupter(interrupted))
    assert not [name for name in SHOWN if (folder / name).exists()]
    assert summarise_run(folder).verdict == UNFINISHED
    assert list(load_run(folder).timings) == list(STAGES)[: list(STAGES).index(interrupted)]
    assert (folder / "mine.txt").exists()
    assert (folder / "tables" / "mine.txt").exists()


def test_what_was_found_with_these_settings_stays(shown: tuple[Path, Path]) -> None:
    film, folder = shown
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(film, folder, quick(**{"run.workers": 2}), events=Interrupter("discovery"))
    assert all((folder / name).exists() for name in SHOWN)


def test_a_law_of_a_stage_that_is_computed_anew_is_withdrawn(shown: tuple[Path, Path]) -> None:
    """The settings are the same, and something else is not: the code, a stage's file, a file beside the film."""
    film, folder = shown
    (folder / "stages" / "02-drift.npz").write_bytes(b"damaged")
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(film, folder, quick(), events=Interrupter("discovery"))
    assert summarise_run(folder).verdict == UNFINISHED
